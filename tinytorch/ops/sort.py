"""Operators: sorting."""
