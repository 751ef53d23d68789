"""Tree ensembles: the sum of the highest leaves that a region can reach."""
