"""Operators: views and rearrangements."""
