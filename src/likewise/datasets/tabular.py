"""The shape of every tabular data set: people in their own units, the encoding beside them, a split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.core.checks import IntArray
from likewise.datasets.bundled import SplitRows, open_bundled, split_indices

if TYPE_CHECKING:
    from likewise.data.tabular import TabularDomain


@dataclass(frozen=True, eq=False, repr=False)
class TabularData(SplitRows):
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
        Columns of `frame` that decisions should not depend on.
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
    y: IntArray
    target_names: tuple[str, str]
    sensitive_features: tuple[str, ...]
    domain: TabularDomain
    train_index: IntArray
    test_index: IntArray
    split: int

    test_share = 0.2  # Appendix D.4: 80% of the data for training

    def __repr__(self) -> str:
        return (
            f"TabularData({self.name!r}, {len(self.frame)} people, {self.frame.shape[1]} columns encoded as "
            f"{self.X.shape[1]}, split {self.split}: {len(self.train_index)} train, {len(self.test_index)} test)"
        )

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
    """Fit the domain, encode, split: the part that every tabular loader shares."""
    from likewise.data.tabular import TabularDomain

    train, test = split_indices(len(frame), split, test_share=TabularData.test_share, owner=f"load_{name}")
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


# Adult: who earns more than $50k a year (UCI census extract), prepared as in the paper's Appendix D.1.


NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORIES = ("workclass", "marital-status", "occupation", "relationship", "race", "sex")
# Appendix D.1 removes these; a row that lacks one of them (native-country does) still leaves with "anyone
# with missing data".
REMOVED = ("fnlwgt", "education", "native-country")


def load_adult(split: int = 0) -> TabularData:
    """Load UCI Adult as the paper's Appendix D.1 prepares it: 45,222 people, 41 encoded features.

    People with missing data leave; `fnlwgt`, `education` and `native-country` are not used; race is
    ``"White"`` or ``"Non-White"``, and race and sex stay features. Numbers are standardised and categories
    one-hot encoded; the two binary columns take one column each (``race_White``, ``sex_Male``).

    Parameters
    ----------
    split : int, default=0
        Which seeded 80/20 split (36,177 train, 9,045 test); the paper's protocol uses ten, 0 to 9.

    Returns
    -------
    TabularData
        `frame` has age, education-num, capital-gain, capital-loss, hours-per-week (whole numbers) and
        workclass, marital-status, occupation, relationship, race, sex (words). `y` is 1 for more than $50k.
        A fresh copy on every call.

    Notes
    -----
    As in Appendix D.1 the mean and the standard deviation are those of all 45,222 people, the test part
    included. To standardise on training people only, fit a domain on them:
    ``TabularDomain.from_frame(data.frame_train)``.

    Source: B. Becker and R. Kohavi (1996), Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20;
    licence CC BY 4.0.

    Examples
    --------
    >>> data = load_adult()
    >>> data.X.shape, round(float(data.y.mean()), 2)
    ((45222, 41), 0.25)
    >>> data.frame["race"].unique().tolist()
    ['White', 'Non-White']
    """
    frame, y = _parsed()
    return make_tabular(
        "adult",
        frame.copy(),
        y,
        target_names=("<=50K", ">50K"),
        sensitive_features=("sex", "race"),
        split=split,
    )


@cache
def _parsed() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Parse the file once per process; callers get copies."""
    wanted = [*NUMBERS, *CATEGORIES, *REMOVED, "income"]
    with open_bundled("adult.csv.gz") as stream:
        table = pd.read_csv(stream, compression="gzip", usecols=wanted, na_values=["?"])
    table = table.dropna(ignore_index=True)
    y = (table["income"] == ">50K").to_numpy(dtype=np.int64)
    frame = table[[*NUMBERS, *CATEGORIES]].copy()
    frame["race"] = frame["race"].where(frame["race"] == "White", "Non-White")
    return frame, y


# German credit: who is a good credit risk (UCI Statlog), with UCI's codes turned into words.


def load_german(split: int = 0) -> TabularData:
    """Load UCI Statlog German credit: 1,000 applicants, 21 columns, good or bad credit risk.

    UCI's codes are turned into words (``A11`` is ``"below 0 DM"``). Its one column of personal status and
    sex becomes two: `sex` (A91, A93, A94 male; A92, A95 female) and `personal_status`.

    Parameters
    ----------
    split : int, default=0
        Which seeded 80/20 split (800 train, 200 test).

    Returns
    -------
    TabularData
        `frame` keeps UCI's order of columns. `y` is 1 for a good credit risk (700 of 1,000). `sensitive` is
        ``("sex", "age")``, the two that the fairness literature studies on this data. A fresh copy on
        every call.

    Notes
    -----
    Every woman in the file has status A92, "divorced or separated or married", and no man has it, so
    `personal_status` gives `sex` away completely: a correspondence study should edit the two together, and
    a fair metric should learn the proxy.

    The words are UCI's own documentation. U. Grömping (2019, South German Credit Data: Correcting a Widely
    Used Data Set) went back to the source and found several of the codes mislabelled; by her table A92 also
    holds single men and the two values of `foreign_worker` are swapped. Use the data to test methods, not
    to conclude about credit in Germany.

    Source: H. Hofmann (1994), Statlog (German Credit Data), UCI Machine Learning Repository,
    doi:10.24432/C5NC77; licence CC BY 4.0.

    Examples
    --------
    >>> data = load_german()
    >>> data.frame.shape, int(data.y.sum())
    ((1000, 21), 700)
    >>> data.frame["sex"].value_counts().to_dict()
    {'male': 690, 'female': 310}
    """
    frame, y = _read_german()
    return make_tabular(
        "german",
        frame.copy(),
        y,
        target_names=("bad", "good"),
        sensitive_features=("sex", "age"),
        split=split,
    )


@cache
def _read_german() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Parse the file once per process; callers get copies."""
    with open_bundled("german.csv.gz") as stream:
        table = pd.read_csv(stream, compression="gzip")
    y = (table.pop("credit_risk") == 1).to_numpy(dtype=np.int64)
    # The words name encoded columns too ("savings_below 100 DM"). XGBoost refuses [ ] < in a feature name and LightGBM
    # refuses , : " [ ] { }, so the words do without them.
    with open_bundled("german_codes.csv") as stream:
        codes = pd.read_csv(stream, keep_default_na=False)
    words = {
        str(name): dict(zip(some["code"], some["word"], strict=True))
        for name, some in codes.groupby("column")
    }
    columns: dict[str, pd.Series[Any]] = {}
    for column in table.columns:
        for name in ("personal_status", "sex") if column == "personal_status_sex" else (column,):
            columns[name] = table[column].map(words[name]) if name in words else table[column]
    return pd.DataFrame(columns), y


# Scores that language models gave one CV, as it is and with one thing changed.


def load_hiring_scores() -> pd.DataFrame:
    """Load 32,193 scores of one CV by eleven language models, for `audit_scores`.

    Returns
    -------
    DataFrame
        model, vendor, job (17 job descriptions), variant (``baseline``, 29 edits in 8 families called
        ``family_value``, 7 ``placebo_*``), run (1 to 5), score (1 to 10) and recommend (yes, maybe, no). Four
        models have no placebos.

    Notes
    -----
    Source: B. Szabo (2026), re-cinq/hiring-bias, CC BY 4.0.

    Examples
    --------
    >>> frame = load_hiring_scores()
    >>> frame.shape, frame["model"].nunique(), frame["variant"].nunique()
    ((32193, 7), 11, 37)
    """
    with open_bundled("hiring_scores.csv.gz") as stream:
        return pd.read_csv(stream, compression="gzip")
