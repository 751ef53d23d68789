"""German credit: who is a good credit risk (UCI Statlog), with UCI's codes turned into words."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from likewise.datasets.bundled import open_bundled
from likewise.datasets.tabular import TabularData, make_tabular

__all__ = ["load_german"]

# The words name encoded columns too ("savings_below 100 DM"). XGBoost refuses [ ] < in a feature name and
# LightGBM refuses , : " [ ] { }, so the words do without them.
WORDS: dict[str, dict[str, str]] = {
    "status": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "no checking account",
    },
    "credit_history": {
        "A30": "no credits or all paid back",
        "A31": "all credits here paid back",
        "A32": "existing credits paid so far",
        "A33": "delays in the past",
        "A34": "critical or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture or equipment",
        "A43": "radio or television",
        "A44": "domestic appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employment": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "real estate",
        "A122": "savings agreement or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "other_installment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "free"},
    "job": {
        "A171": "unemployed or unskilled non-resident",
        "A172": "unskilled resident",
        "A173": "skilled employee or official",
        "A174": "management or self-employed",
    },
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}
SEX = {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}
PERSONAL_STATUS = {
    "A91": "divorced or separated",
    "A92": "divorced or separated or married",
    "A93": "single",
    "A94": "married or widowed",
    "A95": "single",
}


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
    frame, y = _parsed()
    return make_tabular(
        "german",
        frame.copy(),
        y,
        target_names=("bad", "good"),
        sensitive_features=("sex", "age"),
        split=split,
    )


@cache
def _parsed() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Parse the file once per process; callers get copies."""
    with open_bundled("german.csv.gz") as stream:
        table = pd.read_csv(stream, compression="gzip")
    y = (table.pop("credit_risk") == 1).to_numpy(dtype=np.int64)
    columns: dict[str, pd.Series[Any]] = {}
    for column in table.columns:
        if column == "personal_status_sex":
            columns["personal_status"] = table[column].map(PERSONAL_STATUS)
            columns["sex"] = table[column].map(SEX)
        else:
            columns[column] = table[column].map(WORDS[column]) if column in WORDS else table[column]
    return pd.DataFrame(columns), y
