"""Data files that ship inside the package, and seeded train/test splits of what they hold."""

from __future__ import annotations

import dataclasses
import math
from importlib.resources import files
from typing import IO, Any, ClassVar, Self

import numpy as np
import pandas as pd

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


class SplitRows:
    """Rows with labels and one train/test split: what the data sets of the paper have in common."""

    test_share: ClassVar[float]
    X: Any
    y: IntArray
    train_index: IntArray
    test_index: IntArray
    split: int

    def with_split(self, split: int) -> Self:
        """Return the same rows with split number `split` (any int >= 0); the rows are shared, not copied."""
        owner = f"{type(self).__name__}.with_split"
        train, test = split_indices(len(self.y), split, test_share=self.test_share, owner=owner)
        return dataclasses.replace(self, train_index=train, test_index=test, split=int(split))  # type: ignore[type-var]

    @property
    def X_train(self) -> Any:  # noqa: N802 - the field says X
        """Encoded training rows."""
        return _rows(self.X, self.train_index)

    @property
    def X_test(self) -> Any:  # noqa: N802 - the field says X
        """Encoded test rows."""
        return _rows(self.X, self.test_index)

    @property
    def y_train(self) -> IntArray:
        """Labels of the training rows."""
        return self.y[self.train_index]

    @property
    def y_test(self) -> IntArray:
        """Labels of the test rows."""
        return self.y[self.test_index]


def _rows(table: Any, index: IntArray) -> Any:
    return table.iloc[index] if isinstance(table, pd.DataFrame) else table[index]
