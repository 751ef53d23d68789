"""Adult: who earns more than $50k a year (UCI census extract), prepared as in the paper's Appendix D.1."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from likewise.datasets.bundled import open_bundled
from likewise.datasets.tabular import TabularData, make_tabular

__all__ = ["load_adult"]

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
