"""Searches for the worst case of each row: among finite candidates, and along gradients."""
