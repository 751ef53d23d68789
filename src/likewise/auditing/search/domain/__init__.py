"""The search of the whole domain: moves of a person's columns, for any model at all."""
