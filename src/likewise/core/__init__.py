"""Foundations with no fairness in them: linear algebra of subspaces, errors, input checks, randomness."""
