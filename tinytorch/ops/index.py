"""Operators: indexing, gathering, scattering."""
