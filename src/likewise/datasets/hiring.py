"""Scores that language models gave one CV, as it is and with one thing changed."""

from __future__ import annotations

import pandas as pd

from likewise.datasets.bundled import open_bundled

__all__ = ["load_hiring_scores"]


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
