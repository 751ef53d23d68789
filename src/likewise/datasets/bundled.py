"""Open the data files that ship inside the package."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import IO

import numpy as np

from likewise.core.checks import IntArray, check_integer


def open_bundled(name: str) -> IO[bytes]:
    r"""Open a file of ``likewise/datasets/data`` for reading bytes.

    Examples
    --------
    >>> with open_bundled("german.csv.gz") as stream:
    ...     stream.read(2) == b"\x1f\x8b"
    True
    """
    return files("likewise.datasets").joinpath("data", name).open("rb")


def read_bundled_text(name: str) -> str:
    """Return the whole text of a small bundled file.

    Examples
    --------
    >>> read_bundled_text("census_first_names.csv").splitlines()[0]
    'name,sex,percent'
    """
    with open_bundled(name) as stream:
        return stream.read().decode("utf-8")


# Seeded train/test splits: split i is the same everywhere, whatever ran before it.


def split_indices(n: int, split: int, *, test_share: float, owner: str) -> tuple[IntArray, IntArray]:
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
