"""Twins of people: only the attribute changed, its consequences as well, or comparable real people."""
