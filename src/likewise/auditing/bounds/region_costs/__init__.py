"""The least fair distance from a person into a region."""
