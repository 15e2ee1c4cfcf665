"""Operators: random numbers."""
