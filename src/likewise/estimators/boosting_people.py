"""The people of a boosting run: nodes, groups and neighbours, from what `fit` was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.core.frames import is_frame, to_pandas
from likewise.domains import TabularDomain
from likewise.evaluation.table_cells import Table, find_attribute
from likewise.fair_metrics import AttributeSubspace, FairMetric
from likewise.fair_metrics.fitted_metric import ready_metric
from likewise.fair_metrics.neighbours import same_places

__all__ = ["filled_table", "fitted_metric", "group_codes", "nodes_of", "stratified_split"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

_MANY_GROUPS = 20


def stratified_split(labels: Ints, share: float, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Row numbers of a training and a held-out part, class by class; every class keeps a row in training.

    Examples
    --------
    >>> kept, held = stratified_split(np.array([0, 0, 0, 0, 1, 1]), 0.5, np.random.default_rng(0))
    >>> len(kept), len(held)
    (3, 3)
    """
    out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        count = min(max(1, round(share * len(own))), len(own) - 1)
        out[random.permutation(own)[:count]] = True
    return np.flatnonzero(~out), np.flatnonzero(out)


def group_codes(
    sensitive: dict[str, tuple[str, ...]], frame: pd.DataFrame, beside: Any, *, owner: str
) -> list[Ints]:
    """Return the group of each person, one array per attribute; -1 where it is not known.

    Parameters
    ----------
    sensitive : dict
        Attributes that are columns, as `sensitive_columns` found them.
    frame : DataFrame
    beside : array, Series, frame, dict or None
        Attributes that are not.
    owner : str

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", None, "M"]})
    >>> group_codes({"sex": ("sex",)}, people, None, owner="fit")[0].tolist()
    [0, -1, 1]
    """
    named: dict[str, Any] = {}
    for name, columns in sensitive.items():
        if columns == (name,):
            named[name] = frame[name]
        else:
            named[name] = find_attribute(Table(frame), name, owner=owner).codes
    if beside is not None:
        if isinstance(beside, dict):
            named |= beside
        elif is_frame(beside):
            table = to_pandas(beside, owner=owner, name="sensitive_features")
            named |= {str(name): table[name] for name in table.columns}
        else:
            array = np.asarray(beside)
            named |= {f"group {i}": c for i, c in enumerate(array.reshape(len(array), -1).T)}
    found = []
    for name, values in named.items():
        codes, distinct = pd.factorize(np.asarray(values, dtype=object), sort=False)
        if len(codes) != len(frame):
            raise InputError(
                f"{owner}: 'sensitive_features' has {len(codes)} values of {name!r} for {len(frame)} rows of X."
            )
        if len(distinct) > _MANY_GROUPS:
            raise InputError(
                f"{owner}: {name!r} has {len(distinct)} values, too many groups for group_penalty (at most "
                f"{_MANY_GROUPS}). Pass wider groups as fit(X, y, sensitive_features=...)."
            )
        found.append(codes.astype(np.int64))
    return found


def filled_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table without holes, for distances: the median of numbers, the commonest category.

    Examples
    --------
    >>> filled_table(pd.DataFrame({"age": [1.0, None, 3.0], "job": ["a", "a", None]})).values.tolist()
    [[1.0, 'a'], [2.0, 'a'], [3.0, 'a']]
    """
    changed = {}
    for name in frame.columns[frame.isna().any()]:
        column = frame[name]
        numbers = column.dtype.kind in "iuf" and not isinstance(column.dtype, pd.CategoricalDtype)
        known = column.dropna()
        if not len(known):
            changed[name] = pd.Series(0.0, index=frame.index)
            continue
        changed[name] = column.fillna(known.median() if numbers else known.mode().iloc[0])
    return frame.assign(**changed) if changed else frame


def fitted_metric(metric: Any, sensitive: Any, given: Any, beside: Any, *, owner: str) -> FairMetric:
    """Return the metric that was given, or learn it; raw tables are encoded by a domain of their own.

    Parameters
    ----------
    metric : None, FairMetric, learner or list
        None learns the directions that give the sensitive attributes away.
    sensitive : list
        Sensitive attributes among the columns.
    given : DataFrame or array
        Without holes.
    beside : object
        `sensitive_features` of `fit`.
    owner : str
    """
    if metric is None:
        if not sensitive and beside is None:
            raise InputError(
                f"{owner}: eps > 0, but nothing says who is comparable. Name sensitive_features=['sex'], or pass "
                "metric=AttributeSubspace(['sex']) or another metric or learner."
            )
        metric = AttributeSubspace(list(sensitive)) if sensitive else AttributeSubspace()
    encoder = TabularDomain.from_frame(given) if isinstance(given, pd.DataFrame) else None
    return ready_metric(metric, given, owner=owner, sensitive_features=beside, encoder=encoder)


def nodes_of(matrix: FloatArray, places: FloatArray | None) -> tuple[Ints, Ints]:
    """Find people that neither the trees nor the metric tell apart; as `same_places`.

    Examples
    --------
    >>> nodes_of(np.array([[1.0], [np.nan], [1.0]]), None)[1].tolist()
    [0, 1, 0]
    """
    # Ranks: what the trees see must stay apart however close it is, and a hole is a value of its own.
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in matrix.T], axis=1)
    first, place = same_places(ranks.astype(np.float64))
    if places is None:
        return first, place
    _, other = same_places(places)
    return same_places(np.column_stack([place, other]).astype(np.float64))
