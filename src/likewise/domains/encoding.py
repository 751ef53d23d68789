"""From a table in original units to encoded rows: numbers standardised, categories as indicators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.core.frames import check_no_missing
from likewise.domains.column import Column
from likewise.domains.reading import category_codes, check_known, check_numbers

__all__ = ["encode_frame"]


def encode_frame(frame: pd.DataFrame, columns: Sequence[Column], *, owner: str) -> FloatArray:
    """Encode the rows of a frame that has all the columns.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, p)
        Rows in original units. A number out of range is encoded like any other.
    columns : sequence of Column
        In the order of the encoding.
    owner : str
        For error messages.

    Returns
    -------
    ndarray of shape (n, d), float64
    """
    if len(frame) == 0:
        raise InputError(f"{owner}: 'frame' is empty: it has no rows. Pass at least one row.")
    check_no_missing(frame, owner=owner)
    encoded = np.zeros((len(frame), columns[-1].stop))
    rows = np.arange(len(frame))
    for column in columns:
        series = frame[column.name]
        if column.kind != "categorical":
            encoded[:, column.start] = (check_numbers(series, owner=owner) - column.mean) / column.scale
            continue
        codes = category_codes(series, column.categories)
        check_known(codes, series, column.categories, owner=owner)
        if column.is_binary:
            encoded[:, column.start] = codes
        else:
            encoded[rows, column.start + codes] = 1.0
    return encoded
