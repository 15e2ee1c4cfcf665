"""Operators: creation from values and ranges."""
