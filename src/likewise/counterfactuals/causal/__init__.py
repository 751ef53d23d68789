"""Counterparts whose other columns follow the changed attribute along a graph."""
