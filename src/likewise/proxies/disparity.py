"""Differences between groups that are known by probability only: estimates that assume something, bounds that do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from likewise.core.checks import FloatArray, check_same_length, check_share
from likewise.core.errors import bad_parameter
from likewise.core.intervals import Measure
from likewise.core.messages import Message
from likewise.core.plain import Written
from likewise.proxies.probabilities import GroupProbabilities, group_probabilities, known_groups
from likewise.proxies.rates import (
    Ends,
    Events,
    IndependentNames,
    Rates,
    known_rates,
    rate_bounds,
    weighted_rates,
)

# An impact ratio below this is taken as evidence of adverse impact (29 CFR § 1607.4 D).
FOUR_FIFTHS = 0.8
# A disagreement of known people with an estimate is reported if chance makes it less often than this.
_CHANCE = 0.01


@dataclass(frozen=True)
class GroupFigure:
    """One rate of a group, or its difference from or ratio to that of the reference group.

    Parameters
    ----------
    measure : {"selection", "error", "true positive", "false positive"}
    kind : {"rate", "difference", "ratio"}
    group : str
    weighted : Measure
        Everybody counted in each group by their probability. Assumes that the outcome is independent of the group given
        names and places, which hides disparity if it is not.
    corrected : Measure
        Assumes that the outcome is independent of names given the group and the area.
    low, high : float
        Bounds that assume nothing but the probabilities.
    outer_low, outer_high : float
        Bounds with sampling error, wide enough for those of two groups together.
    known : Measure or None
        From people whose group is known, if there are enough. Assumes that they are a random sample.

    Examples
    --------
    >>> given = group_probabilities(pd.DataFrame({"a": [0.9, 0.1] * 50, "b": [0.1, 0.9] * 50}))
    >>> disparity_bounds([1, 0] * 50, given, reference="a").figure("b", "ratio").verdict
    'below'
    """

    measure: str
    kind: str
    group: str
    weighted: Measure
    corrected: Measure
    low: float
    high: float
    outer_low: float
    outer_high: float
    known: Measure | None = None

    @property
    def verdict(self) -> str | None:
        """Of a ratio: "below" or "not below" four fifths whatever holds within the bounds, else "open"; None if not a ratio."""
        if self.kind != "ratio":
            return None
        return (
            "below"
            if self.outer_high < FOUR_FIFTHS
            else "not below"
            if self.outer_low >= FOUR_FIFTHS
            else "open"
        )


@dataclass(frozen=True)
class Disparity(Written):
    """Rates of groups that are known by probability only, and what separates them.

    Parameters
    ----------
    figures : tuple of GroupFigure
    reference : str
        The group that the others are compared with.
    people : int
    known : int
        People whose group is known.
    by_area : bool
        Whether the corrected estimate allows for places.
    findings : tuple of Message
        What has to be known before any number.
    confidence : float

    Examples
    --------
    >>> given = group_probabilities(pd.DataFrame({"a": [0.9, 0.1] * 50, "b": [0.1, 0.9] * 50}))
    >>> disparity_bounds([1, 0] * 50, given).figure("b").group
    'b'
    """

    figures: tuple[GroupFigure, ...]
    reference: str
    people: int
    known: int
    by_area: bool
    findings: tuple[Message, ...] = ()
    confidence: float = 0.95

    def figure(self, group: str, kind: str = "rate", measure: str = "selection") -> GroupFigure:
        """One figure of a group."""
        for one in self.figures:
            if (one.group, one.kind, one.measure) == (group, kind, measure):
                return one
        raise bad_parameter(
            "figure", "group", "a group, kind and measure of the result", f"{group}, {kind}, {measure}"
        )

    @property
    def table(self) -> pd.DataFrame:
        """One row per figure."""
        none = Measure("", np.nan, np.nan, np.nan)
        rows = []
        for one in self.figures:
            row: dict[str, Any] = {"measure": one.measure, "kind": one.kind, "group": one.group}
            for name in ("weighted", "corrected", "known"):
                value = getattr(one, name) or none
                row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            bounds = {name: getattr(one, name) for name in ("low", "high", "outer_low", "outer_high")}
            rows.append(row | bounds | {"four_fifths": one.verdict})
        return pd.DataFrame(rows)


def disparity_bounds(
    decisions: Any,
    probabilities: Any,
    *,
    y: Any = None,
    favourable: Any = 1,
    reference: str | None = None,
    known: Any = None,
    confidence: float = 0.95,
) -> Disparity:
    """Compare groups whose members are known by probability only.

    Parameters
    ----------
    decisions : array-like of shape (n,)
        What was decided about everybody.
    probabilities : GroupProbabilities or DataFrame of shape (n, k)
        How likely everybody is of each group (`group_probabilities`).
    y : array-like of shape (n,), optional
        What was true; adds error rates, true and false positive rates.
    favourable : value, default=1
        The favourable decision.
    reference : str, optional
        The group that the others are compared with; by default the largest.
    known : array-like of shape (n,), optional
        The group of those who are a random sample of everybody, None for the others.
    confidence : float, default=0.95

    Returns
    -------
    Disparity

    Notes
    -----
    The bounds contain the truth whatever the outcome depends on, provided that the probabilities are right for these people:
    among all to whom 30% is given, 30% are of the group. A sample whose group is known tells whether they are, and
    `GroupProbabilities.calibrated` brings them there.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.3, 0.3, 4000)
    >>> group = rng.uniform(size=4000) < p
    >>> decisions = rng.uniform(size=4000) < np.where(group, 0.3, 0.5)
    >>> found = disparity_bounds(decisions, pd.DataFrame({"a": p, "b": 1 - p}), reference="b")
    >>> gap = found.figure("a", "difference")
    >>> gap.low < -0.2 < gap.high, gap.corrected.low < -0.2 < gap.corrected.high, gap.weighted.value > -0.2
    (True, True, True)
    """
    owner = "disparity_bounds"
    given = (
        probabilities if isinstance(probabilities, GroupProbabilities) else group_probabilities(probabilities)
    )
    level = check_share(confidence, owner=owner, name="confidence")
    chosen = np.asarray(decisions)
    check_same_length(owner, decisions=chosen, probabilities=given.table, y=y)
    if chosen.ndim != 1:
        raise bad_parameter(owner, "decisions", "one decision per person", f"shape {chosen.shape}")
    favours = _is(chosen, favourable, owner)
    p, names = given.table.to_numpy(float), [str(name) for name in given.table.columns]
    if reference is not None and reference not in names:
        raise bad_parameter(owner, "reference", f"one of {names}", reference)
    base = int(p.sum(0).argmax()) if reference is None else names.index(reference)
    codes, rows = (
        (np.zeros(0, int), np.zeros(0, int))
        if known is None
        else known_groups(known, given.table, owner=owner)
    )
    findings: list[Message] = _miscalibrated(p, codes, rows, names)
    figures: list[GroupFigure] = []
    for measure, events in _measures(
        favours, None if y is None else _is(np.asarray(y), favourable, owner)
    ).items():
        weighted = weighted_rates(events, p)
        model = IndependentNames(events, p, given.area)
        corrected = model.rates()
        told = known_rates(events, model.posterior(), codes, rows) if len(rows) else None
        # A difference has two ends that each may miss: half of the chance for each.
        ends = rate_bounds(events, p, confidence=(1.0 + level) / 2)
        estimates = (weighted, corrected, told)
        for a, name in enumerate(names):
            figures.append(_rate(measure, name, a, ends, estimates, level))
        for a, name in enumerate(names):
            if a != base:
                figures += _comparisons(measure, name, a, base, ends, estimates, level)
        findings += _disagreement(measure, names, base, corrected, told)
    return Disparity(
        tuple(figures), names[base], len(p), len(rows), given.area is not None, tuple(findings), level
    )


def _is(values: Any, favourable: Any, owner: str) -> FloatArray:
    missing = pd.isna(values)
    if missing.any():
        raise bad_parameter(owner, "decisions", "known for everybody", f"{int(missing.sum())} missing")
    same: FloatArray = (values == favourable).astype(float)
    if not same.any():
        same = (values.astype(str) == str(favourable)).astype(float)
    if not same.any():
        seen = ", ".join(map(str, pd.unique(values)[:5]))
        raise bad_parameter(owner, "favourable", f"one of the decisions ({seen})", favourable)
    return same


def _measures(favours: FloatArray, true: FloatArray | None) -> dict[str, Events]:
    everybody = np.ones(len(favours))
    found = {"selection": Events(favours, everybody)}
    if true is not None:
        found["error"] = Events((favours != true).astype(float), everybody)
        found["true positive"] = Events(favours * true, true)
        found["false positive"] = Events(favours * (1 - true), 1 - true)
    return found


_Estimates = tuple[Rates, Rates, Rates | None]


def _known(told: Rates | None, a: int) -> bool:
    return told is not None and bool(np.isfinite(told.values[a]))


def _rate(measure: str, name: str, a: int, ends: Ends, estimates: _Estimates, level: float) -> GroupFigure:
    weighted, corrected, told = estimates
    sample = told.rate(a, level) if told is not None and _known(told, a) else None
    low, high, outer, outer_high = (
        float(one[a]) for one in (ends.low, ends.high, ends.outer_low, ends.outer_high)
    )
    found = weighted.rate(a, level), corrected.rate(a, level)
    return GroupFigure(measure, "rate", name, *found, low, high, outer, outer_high, sample)


def _comparisons(
    measure: str, name: str, a: int, base: int, ends: Ends, estimates: _Estimates, level: float
) -> list[GroupFigure]:
    told = estimates[2]
    both = told if told is not None and _known(told, a) and _known(told, base) else None
    sides = (
        (ends.low, ends.high),
        (ends.high, ends.low),
        (ends.outer_low, ends.outer_high),
        (ends.outer_high, ends.outer_low),
    )
    limits = {
        "difference": [float(one[a] - other[base]) for one, other in sides],
        "ratio": [float(one[a] / other[base]) if other[base] > 0 else float("inf") for one, other in sides],
    }
    figures = []
    for kind, (low, high, outer, outer_high) in limits.items():

        def of(rates: Rates, kind: str = kind) -> Any:
            return getattr(rates, kind)(a, base, level)

        sample = None if both is None else of(both)
        found = of(estimates[0]), of(estimates[1])
        figures.append(GroupFigure(measure, kind, name, *found, low, high, outer, outer_high, sample))
    return figures


def _miscalibrated(p: FloatArray, codes: Any, rows: Any, names: list[str]) -> list[Message]:
    """The groups of which the sample holds another number of people than the probabilities say."""
    if not len(rows):
        return []
    expected, spread = p[rows].sum(0), np.sqrt((p[rows] * (1 - p[rows])).sum(0))
    seen = np.bincount(codes, minlength=p.shape[1])
    reach = -float(ndtri(_CHANCE / 2 / p.shape[1]))
    # Half a person for the count being whole.
    off = np.flatnonzero(np.abs(seen - expected) > reach * spread + 0.5)
    return [
        Message(
            "proxies.miscalibrated",
            group=names[a],
            seen=int(seen[a]),
            expected=float(expected[a]),
            known=len(rows),
        )
        for a in off
    ]


def _disagreement(
    measure: str, names: list[str], base: int, corrected: Rates, told: Rates | None
) -> list[Message]:
    """Groups whose difference from the reference is another in the sample than under the assumption."""
    if told is None or not _known(told, base):
        return []
    reach = -float(ndtri(_CHANCE / 2 / max(len(names) - 1, 1)))
    said = []
    for a, name in enumerate(names):
        if a == base or not _known(told, a):
            continue
        gaps = [float(rates.values[a] - rates.values[base]) for rates in (corrected, told)]
        moved = [rates.influence[:, a] - rates.influence[:, base] for rates in (corrected, told)]
        # Less than half a person is not a difference, however sure both are.
        spread = float(np.sqrt(((moved[0] - moved[1]) ** 2).sum()))
        if abs(gaps[0] - gaps[1]) > reach * spread + 0.5 / told.people[a]:
            said.append(
                Message(
                    "proxies.assumption_fails",
                    group=name,
                    reference=names[base],
                    measure=measure,
                    corrected=gaps[0],
                    known=gaps[1],
                )
            )
    return said
