"""Operators: losses."""
