"""Fused mode against eager mode."""
