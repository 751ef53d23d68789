"""What may be said of a result: estimates, bounds, intervals, tests and the verdict."""
