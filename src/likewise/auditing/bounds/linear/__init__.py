"""Linear models, whose worst case in a box is solved: the ground truth of every search, and a `Bound`."""
