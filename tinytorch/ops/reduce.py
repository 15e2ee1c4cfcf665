"""Operators: reductions."""
