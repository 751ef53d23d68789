"""Searches for the worst case of each row (`contract`): among candidates, along gradients, and by moves over the domain."""
