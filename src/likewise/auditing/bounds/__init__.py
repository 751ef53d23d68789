"""Upper bounds of the worst case: `family` is what one kind of models says of regions, `families` finds a model's."""
