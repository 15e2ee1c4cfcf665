"""Operators: cumulative operators."""
