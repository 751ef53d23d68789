"""The shape of every tabular data set: people in their own units, the encoding beside them, a split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.core.renaming import warn_renamed
from likewise.datasets.splits import IndexArray, split_indices

if TYPE_CHECKING:
    from likewise.domains import TabularDomain

__all__ = ["TEST_SHARE", "TabularData", "make_tabular"]

TEST_SHARE = 0.2  # Appendix D.4: 80% of the data for training


@dataclass(frozen=True, eq=False, repr=False)
class TabularData:
    """A table of people with labels, its domain, its encoding and one train/test split.

    Parameters
    ----------
    name : str
        Which data set.
    frame : DataFrame of shape (n, columns)
        The features in their original units and words.
    X : DataFrame of shape (n, d)
        ``domain.encode(frame)``: standardised numbers and one-hot categories, with the same index.
    y : ndarray of int of shape (n,)
        0 or 1.
    target_names : tuple of str
        What the labels 0 and 1 mean.
    sensitive_features : tuple of str
        Columns of `frame` that should not decide.
    domain : TabularDomain
        Which rows can exist, and how they are encoded; fitted on all of `frame`.
    train_index, test_index : ndarray of int
        Row numbers of the two parts.
    split : int
        Number of the split.

    Examples
    --------
    >>> from likewise.datasets import load_german
    >>> data = load_german()
    >>> data
    TabularData('german', 1000 people, 21 columns encoded as 60, split 0: 800 train, 200 test)
    >>> data.X_train.shape, data.with_split(3).frame_test.shape
    ((800, 60), (200, 21))
    """

    name: str
    frame: pd.DataFrame
    X: pd.DataFrame
    y: np.ndarray[Any, np.dtype[np.int64]]
    target_names: tuple[str, str]
    sensitive_features: tuple[str, ...]
    domain: TabularDomain
    train_index: IndexArray
    test_index: IndexArray
    split: int

    def __repr__(self) -> str:
        return (
            f"TabularData({self.name!r}, {len(self.frame)} people, {self.frame.shape[1]} columns encoded as "
            f"{self.X.shape[1]}, split {self.split}: {len(self.train_index)} train, {len(self.test_index)} test)"
        )

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The old name of `sensitive_features`."""
        warn_renamed("TabularData.sensitive", "TabularData.sensitive_features")
        return self.sensitive_features

    def with_split(self, split: int) -> TabularData:
        """Return the same table with split number `split` (any int >= 0).

        The table itself is shared with this object, not copied.
        """
        train, test = split_indices(
            len(self.frame), split, test_share=TEST_SHARE, owner="TabularData.with_split"
        )
        return replace(self, train_index=train, test_index=test, split=int(split))

    @property
    def X_train(self) -> pd.DataFrame:  # noqa: N802 - the field says X
        """Encoded training rows."""
        return self.X.iloc[self.train_index]

    @property
    def X_test(self) -> pd.DataFrame:  # noqa: N802 - the field says X
        """Encoded test rows."""
        return self.X.iloc[self.test_index]

    @property
    def y_train(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Labels of the training rows."""
        return self.y[self.train_index]

    @property
    def y_test(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Labels of the test rows."""
        return self.y[self.test_index]

    @property
    def frame_train(self) -> pd.DataFrame:
        """Training rows in their original units."""
        return self.frame.iloc[self.train_index]

    @property
    def frame_test(self) -> pd.DataFrame:
        """Test rows in their original units."""
        return self.frame.iloc[self.test_index]


def make_tabular(
    name: str,
    frame: pd.DataFrame,
    y: np.ndarray[Any, Any],
    *,
    target_names: tuple[str, str],
    sensitive_features: tuple[str, ...],
    split: int,
) -> TabularData:
    """Fit the domain, encode, split: the part that every tabular loader shares.

    Parameters
    ----------
    name : str
        Which data set; its loader is called ``load_<name>``.
    frame : DataFrame
        Features; owned by the result from here on.
    y : array of shape (n,)
        Labels 0 and 1.
    target_names, sensitive_features, split
        As in `TabularData`.

    Returns
    -------
    TabularData

    Examples
    --------
    >>> frame = pd.DataFrame({"age": range(20, 30), "sex": ["Female", "Male"] * 5})
    >>> make_tabular("tiny", frame, np.arange(10) % 2, target_names=("no", "yes"), sensitive_features=("sex",), split=0)
    TabularData('tiny', 10 people, 2 columns encoded as 2, split 0: 8 train, 2 test)
    """
    from likewise.domains import TabularDomain

    train, test = split_indices(len(frame), split, test_share=TEST_SHARE, owner=f"load_{name}")
    domain = TabularDomain.from_frame(frame)
    return TabularData(
        name=name,
        frame=frame,
        X=domain.encode(frame),
        y=np.array(y, dtype=np.int64),
        target_names=target_names,
        sensitive_features=sensitive_features,
        domain=domain,
        train_index=train,
        test_index=test,
        split=int(split),
    )
