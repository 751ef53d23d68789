"""The scale of a column of numbers: a strictly increasing curve that is applied before a number is standardised.

A standardised distance calls 0 → 114 dollars of a capital gain nothing, because few gains are very large. On a curve that
keeps the order of values and spreads them otherwise, everything that lives in encoded coordinates (metrics, searches,
bounds) stays as it is, and an interval of values stays an interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from likewise.core.checks import FloatArray

ScaleName = Literal["linear", "signed log", "rank", "value or not"]
SCALES: tuple[ScaleName, ...] = get_args(ScaleName)
# Ranks are known at so many values of a table at most, and are straight between them.
MOST_KNOTS = 128
# Of a continuous number the unit of its logarithm is a power of ten that so few of its amounts are below.
_SMALL = 0.05


@dataclass(frozen=True)
class Curve:
    """A strictly increasing function of a number: perhaps a logarithm, then perhaps a chain of straight pieces."""

    name: str
    middle: float = 0.0
    unit: float | None = None
    at: tuple[float, ...] = ()
    to: tuple[float, ...] = ()
    below: float = 1.0
    above: float = 1.0

    def __call__(self, values: Any) -> FloatArray:
        """Return the curve at values."""
        found = np.asarray(values, dtype=np.float64) - self.middle
        with np.errstate(over="ignore", invalid="ignore"):
            if self.unit is not None:
                found = np.copysign(np.log1p(np.abs(found) / self.unit), found)
            return np.asarray(_straight(found, *self._knots, self.below, self.above) if self.at else found)

    def inverse(self, places: Any) -> FloatArray:
        """Return the values at which the curve is at these places."""
        found = np.asarray(places, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.at:
                at, to = self._knots
                found = _straight(found, to, at, 1.0 / self.below, 1.0 / self.above).astype(np.float64)
            if self.unit is not None:
                found = np.copysign(np.expm1(np.abs(found)) * self.unit, found)
        return np.asarray(found + self.middle)

    @cached_property
    def _knots(self) -> tuple[FloatArray, FloatArray]:
        return np.array(self.at), np.array(self.to)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain JSON."""
        return {**asdict(self), "at": list(self.at), "to": list(self.to)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Curve:
        """Read what `to_dict` wrote; a curve that does not rise everywhere is an error."""
        curve = cls(**{**values, "at": tuple(values["at"]), "to": tuple(values["to"])})
        numbers = [curve.middle, curve.below, curve.above, *curve.at, *curve.to]
        rises = len(curve.at) == len(curve.to) and all((np.diff(end) > 0).all() for end in curve._knots)
        positive = min(curve.below, curve.above, 1.0 if curve.unit is None else curve.unit) > 0
        if curve.name not in SCALES[1:] or not (np.isfinite(numbers).all() and rises and positive):
            raise ValueError(f"the scale {curve.name!r} is none, or does not rise everywhere")
        return curve


def learn_curve(name: ScaleName | Curve, values: FloatArray, *, whole: bool) -> Curve | None:
    """Learn the curve of a scale from a column; None for the linear one, and if all values are one."""
    if isinstance(name, Curve):
        return name
    if name == "linear" or float(values.min()) == float(values.max()):
        return None
    if name == "rank":
        return _ranks(values)
    return _value_or_not(values) if name == "value or not" else Curve(name, unit=_unit(values, whole))


def _unit(values: FloatArray, whole: bool) -> float:
    """One for whole numbers; else the power of ten below the small amounts of a column."""
    if whole:
        return 1.0
    small = float(np.quantile(np.abs(values[values != 0]), _SMALL))
    return float(10.0 ** np.clip(np.floor(np.log10(small)), -300, 300))


def _ranks(values: FloatArray) -> Curve:
    """Mid-ranks F(v) = (#{< v} + #{≤ v}) / 2n at the values of a column, or at its quantiles and around its masses."""
    known, counts = np.unique(values, return_counts=True)
    upto = np.cumsum(counts)
    rank = (upto - counts / 2.0) / len(values)
    if len(known) > MOST_KNOTS:
        # A mass needs no more points than any other value; those are for where the others lie.
        light = np.cumsum(np.minimum(counts, len(values) / MOST_KNOTS))
        wanted = np.linspace(0.0, 1.0, MOST_KNOTS // 2)
        chosen = np.searchsorted(light / light[-1], wanted, side="left").clip(0, len(known) - 1)
        # Beside a mass the rank jumps, which a straight piece to a value further off would hide.
        heavy = np.argsort(-counts, kind="stable")[: MOST_KNOTS // 8]
        near = np.concatenate([heavy - 1, heavy, heavy + 1]).clip(0, len(known) - 1)
        at = np.unique(np.concatenate([[0, len(known) - 1], chosen, near]))
        known, rank = known[at], rank[at]
    slope = float((rank[-1] - rank[0]) / (known[-1] - known[0]))
    return Curve("rank", at=tuple(known.tolist()), to=tuple(rank.tolist()), below=slope, above=slope)


def _value_or_not(values: FloatArray) -> Curve:
    """A step of 1 from the commonest value to the least amount beside it, then logarithms in standard deviations."""
    known, counts = np.unique(values, return_counts=True)
    middle = float(known[counts.argmax()])
    amounts = np.abs(values[values != middle] - middle)
    unit = float(amounts.min())
    spread = float(np.log1p(amounts / unit).std())
    slope = 1.0 / spread if spread > 1e-9 else 1.0
    step = float(np.log(2.0))
    return Curve(
        "value or not", middle, unit, at=(-step, 0.0, step), to=(-1.0, 0.0, 1.0), below=slope, above=slope
    )


def _straight(values: FloatArray, at: FloatArray, to: FloatArray, below: float, above: float) -> FloatArray:
    """Straight pieces through the points, and straight on before the first and after the last."""
    inside = np.interp(values, at, to)
    before, after = to[0] + (values - at[0]) * below, to[-1] + (values - at[-1]) * above
    return np.asarray(np.where(values < at[0], before, np.where(values > at[-1], after, inside)))
