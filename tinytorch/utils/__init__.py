"""Tools around the library."""
