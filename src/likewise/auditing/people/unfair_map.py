"""The unfair map (paper, equation 6) as people read it: each person beside the twin that fares worst."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.people.harm import HarmRule, harm_by_value, harm_rules
from likewise.auditing.support.frontier import Floats

__all__ = ["TWIN", "UnfairMap", "make_unfair_map"]

# Prefix of the twin's columns in `UnfairMap.frame`.
TWIN = "twin "

_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class UnfairMap:
    """Every person with their worst comparable twin (their counterfactual), in original units.

    Parameters
    ----------
    people, twins : DataFrame of shape (n, p)
        Row i of `twins` is where the unfair map sends row i of `people`; the person again where they stay.
    outcomes : DataFrame of shape (n, 8)
        ``person`` (number of the audited row), ``label``, ``loss``, ``twin_loss``, ``harm`` (their difference),
        ``decision``, ``twin_decision``, ``squared_distance`` (fair distance spent) and ``changed`` (the columns
        that differ, in words).
    total : int
        How many people were audited; more than n where only the most harmed are kept.
    tolerance : float, default=0.0
        Predicted numbers that differ by no more are the same decision.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"], "age": [30, 40]})
    >>> twins = pd.DataFrame({"sex": ["M", "M"], "age": [30, 40]})
    >>> unfair = make_unfair_map(
    ...     people, twins, label=[1, 0], loss=[0.1, 0.2], twin_loss=[0.9, 0.2], decision=[1, 0],
    ...     twin_decision=[0, 0], squared_distance=[0.0, 0.0],
    ... )
    >>> unfair.top(1)[["harm", "changed", "sex", "twin sex"]].to_dict("records")
    [{'harm': 0.8, 'changed': 'sex', 'sex': 'F', 'twin sex': 'M'}]
    """

    people: pd.DataFrame
    twins: pd.DataFrame
    outcomes: pd.DataFrame
    total: int
    tolerance: float = 0.0

    @property
    def frame(self) -> pd.DataFrame:
        """Outcomes, then the person's columns, then the twin's with the prefix ``"twin "``."""
        return pd.concat([self.outcomes, self.people, self.twins.add_prefix(TWIN)], axis=1)

    def top(self, k: int = 10) -> pd.DataFrame:
        """Return the `k` people who are harmed most, the worst first."""
        order = np.argsort(-self.harm, kind="stable")[:k]
        return self.frame.iloc[order].reset_index(drop=True)

    @property
    def harm(self) -> Floats:
        """Increase of each person's loss at their twin, shape (n,)."""
        return self.outcomes["harm"].to_numpy(dtype=float)

    @cached_property
    def flipped(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether the twin gets another decision, shape (n,)."""
        own, other = (self.outcomes[key].to_numpy() for key in ("decision", "twin_decision"))
        if self.tolerance and own.dtype.kind in "iuf":
            return np.asarray(np.abs(own - other) > self.tolerance)
        return np.asarray(own != other)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """How often each column differs between person and twin, and the mean harm then."""
        differs = _differences(self.people, self.twins)
        counts = differs.sum(axis=0)
        harms = [float(self.harm[differs[:, j]].mean()) if counts[j] else 0.0 for j in range(len(counts))]
        table = pd.DataFrame(
            {
                "column": list(self.people.columns),
                "people": counts,
                "share": counts / len(differs),
                "mean_harm": harms,
            }
        )
        return table.sort_values(["people", "column"], ascending=[False, True], ignore_index=True)

    @cached_property
    def rules(self) -> tuple[HarmRule, ...]:
        """Who is harmed, as a few rules in words."""
        return harm_rules(self.people, self.harm)

    @cached_property
    def by_value(self) -> pd.DataFrame:
        """Harm by value of each column."""
        return harm_by_value(self.people, self.harm, self.flipped)


def make_unfair_map(
    people: pd.DataFrame,
    twins: pd.DataFrame,
    *,
    label: Any,
    loss: Any,
    twin_loss: Any,
    decision: Any,
    twin_decision: Any,
    squared_distance: Any,
    person: Any = None,
    total: int | None = None,
    tolerance: float = 0.0,
) -> UnfairMap:
    """Put persons and twins side by side and name the columns in which they differ.

    Parameters
    ----------
    people, twins : DataFrame of shape (n, p)
        The same columns in the same order.
    label, loss, twin_loss, decision, twin_decision, squared_distance : arrays of shape (n,)
        What `UnfairMap.outcomes` shows.
    person : int array of shape (n,), optional
        Numbers of the audited rows; default 0 … n − 1.
    total : int, optional
        How many people were audited in all; default n.
    tolerance : float, default=0.0
        As in `UnfairMap`.

    Returns
    -------
    UnfairMap
    """
    people, twins = people.reset_index(drop=True), twins.reset_index(drop=True)
    loss, twin_loss = np.asarray(loss, dtype=float), np.asarray(twin_loss, dtype=float)
    differs = _differences(people, twins)
    names = np.asarray(people.columns, dtype=object)
    outcomes = pd.DataFrame(
        {
            "person": np.arange(len(people)) if person is None else np.asarray(person),
            "label": np.asarray(label),
            "loss": loss,
            "twin_loss": twin_loss,
            "harm": twin_loss - loss,
            "decision": np.asarray(decision),
            "twin_decision": np.asarray(twin_decision),
            "squared_distance": np.asarray(squared_distance, dtype=float),
            "changed": [", ".join(map(str, names[row])) for row in differs],
        }
    )
    return UnfairMap(people, twins, outcomes, len(people) if total is None else total, tolerance)


def _differences(people: pd.DataFrame, twins: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Cells in which person and twin differ, (n, p); numbers to rounding."""
    columns = []
    for name in people.columns:
        a, b = people[name], twins[name]
        if pd.api.types.is_float_dtype(a) and pd.api.types.is_float_dtype(b):
            x, z = a.to_numpy(dtype=float), b.to_numpy(dtype=float)
            columns.append((np.abs(x - z) > _CLOSE * (1 + np.abs(x))) | (np.isnan(x) != np.isnan(z)))
        else:
            both_missing = (a.isna() & b.isna()).to_numpy()
            columns.append((a.astype(object) != b.astype(object)).to_numpy() & ~both_missing)
    return np.column_stack(columns) if columns else np.zeros((len(people), 0), dtype=bool)
