"""Text columns as the categories that a boosted model learned: a CSV has words where the model knows categories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.errors import InputError

__all__ = ["as_categories", "lightgbm_categories", "xgboost_categories"]

Categories = dict[str, list[Any]]


def as_categories(frame: Any, categories: Mapping[str, list[Any]], *, owner: str) -> Any:
    """Return a frame whose text columns are categorical wherever the model learned categories.

    Parameters
    ----------
    frame : DataFrame or array
        An array is returned as it is, and so are columns that are categorical already.
    categories : mapping
        Column to the categories that the model learned.
    owner : str
        For the error message.

    Examples
    --------
    >>> as_categories(pd.DataFrame({"job": ["b"]}), {"job": ["a", "b"]}, owner="model")["job"].cat.codes.tolist()
    [1]
    """
    if not isinstance(frame, pd.DataFrame):
        return frame
    changed = {}
    for name, known in categories.items():
        if name not in frame.columns or isinstance(frame[name].dtype, pd.CategoricalDtype):
            continue
        column = frame[name]
        new = column[~column.isin(known) & column.notna()]
        if len(new):
            shown = ", ".join(map(repr, known[:12])) + (", …" if len(known) > 12 else "")
            raise InputError(
                f"{owner}: column {name!r} has the value {new.iloc[0]!r}, which the model never saw. "
                f"Its categories: {shown}."
            )
        changed[name] = pd.Categorical(column, categories=pd.Index(known, dtype=_dtype(known)))
    return frame.assign(**changed) if changed else frame


def xgboost_categories(booster: Any) -> Categories:
    """Return the categories of an XGBoost booster by column; none where the version did not store them."""
    if not any(kind == "c" for kind in booster.feature_types or []) or not hasattr(booster, "get_categories"):
        return {}
    try:
        found = booster.get_categories(export_to_arrow=True).to_arrow()
    except (TypeError, ValueError, AttributeError):
        return {}
    return {str(name): values.to_pylist() for name, values in found if values is not None}


def lightgbm_categories(booster: Any, header: str) -> Categories:
    """Return the categories of a LightGBM booster by column.

    Parameters
    ----------
    booster : lightgbm.Booster
        Keeps the categories, in the order of its categorical columns.
    header : str
        Beginning of its text form, whose `feature_infos` tell which columns those are: ``[low:high]`` is a
        number, ``0:2:1`` are codes.
    """
    lists = [list(part) for part in booster.pandas_categorical or []]
    found = re.search(r"^feature_infos=(.*)$", header, flags=re.MULTILINE)
    infos = found.group(1).split() if found else []
    names = [
        name
        for name, info in zip(booster.feature_name(), infos, strict=False)
        if not info.startswith("[") and info != "none"
    ]
    return dict(zip(names, lists, strict=True)) if len(names) == len(lists) else {}


def _dtype(known: list[Any]) -> Any:
    return object if any(isinstance(value, str) for value in known) else np.asarray(known).dtype
