"""Upper bounds of the worst case, one folder per family of models."""
