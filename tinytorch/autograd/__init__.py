"""The tape."""
