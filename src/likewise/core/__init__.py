"""Foundations with no fairness in them: linear algebra of subspaces, errors, input checks, randomness.

Examples
--------
>>> from likewise.core.errors import bad_parameter
>>> print(bad_parameter("audit", "eps", allowed="0 or more", got=-1))
audit: 'eps' must be 0 or more, got -1.
"""
