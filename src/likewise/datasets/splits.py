"""Seeded train/test splits: split i is the same everywhere, whatever ran before it."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from likewise.core.checks import check_integer

__all__ = ["IndexArray", "split_indices"]

IndexArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def split_indices(n: int, split: int, *, test_share: float, owner: str) -> tuple[IndexArray, IndexArray]:
    """Row numbers of the train and the test part of split number `split`.

    Parameters
    ----------
    n : int
        Number of rows.
    split : int
        Any number >= 0; it seeds a generator of its own. The paper's protocol uses 0 to 9.
    test_share : float
        Share of the rows held out, rounded up to a whole row.
    owner : str
        For the error message: whose parameter `split` is.

    Returns
    -------
    train, test : ndarray of int64
        Disjoint, together every row, each in random order (so the first rows are a random sample).

    Examples
    --------
    >>> train, test = split_indices(10, 0, test_share=0.2, owner="load_adult")
    >>> len(train), len(test), sorted([*train.tolist(), *test.tolist()]) == list(range(10))
    (8, 2, True)
    """
    seed = check_integer(
        split, owner=owner, name="split", low=0, remedy="The paper's protocol uses split=0 to split=9."
    )
    order = np.random.default_rng(seed).permutation(n)
    # 1e-9 keeps 0.1 * 30 = 3.0000000000000004 from holding out a fourth row.
    n_test = math.ceil(test_share * n - 1e-9)
    return order[n_test:], order[:n_test]
