"""Open the data files that ship inside the package."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import IO

import numpy as np

from likewise.core.checks import IntArray, check_integer


def open_bundled(name: str) -> IO[bytes]:
    r"""Open a file of ``likewise/datasets/data`` for reading bytes."""
    return files("likewise.datasets").joinpath("data", name).open("rb")


def read_bundled_text(name: str) -> str:
    """Return the whole text of a small bundled file."""
    with open_bundled(name) as stream:
        return stream.read().decode("utf-8")


# Seeded train/test splits: split i is the same everywhere, whatever ran before it.


def split_indices(n: int, split: int, *, test_share: float, owner: str) -> tuple[IntArray, IntArray]:
    """Row numbers of the train and the test part of split number `split`."""
    seed = check_integer(
        split, owner=owner, name="split", low=0, remedy="The paper's protocol uses split=0 to split=9."
    )
    order = np.random.default_rng(seed).permutation(n)
    # 1e-9 keeps 0.1 * 30 = 3.0000000000000004 from holding out a fourth row.
    n_test = math.ceil(test_share * n - 1e-9)
    return order[n_test:], order[:n_test]
