"""Operators: matrix products."""
