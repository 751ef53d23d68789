"""What the user says about columns beyond what the data shows, checked against the frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns
from likewise.domains.curve import SCALES, Curve, ScaleName

__all__ = ["Choices", "check_choices", "check_scale"]


@dataclass(frozen=True)
class Choices:
    """The user's word on columns, every name known to exist.

    Parameters
    ----------
    immutable, integers : frozenset of str
        Columns that may not change; columns of whole numbers.
    ranges : dict of str to (float, float)
        Bounds in original units, infinite where open.
    categories : dict of str to tuple
        Categories besides those the data shows.
    scales : dict of str to str or Curve
        Scales of numbers where they are not linear; a curve was learned elsewhere.
    """

    immutable: frozenset[str]
    integers: frozenset[str]
    ranges: dict[str, tuple[float, float]]
    categories: dict[str, tuple[Any, ...]]
    scales: dict[str, ScaleName | Curve]


def check_choices(
    frame: pd.DataFrame,
    *,
    immutable: Iterable[str] | None,
    ranges: Mapping[str, Any] | None,
    integers: Iterable[str] | None,
    categories: Mapping[str, Any] | None,
    scales: Mapping[str, Any] | None = None,
    owner: str,
) -> Choices:
    """Check the parameters of a `TabularDomain` against the frame it is fitted on.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30]})
    >>> chosen = check_choices(
    ...     frame, immutable=["age"], ranges={"age": (18, None)}, integers=None, categories=None, owner="fit"
    ... )
    >>> chosen.ranges
    {'age': (18.0, inf)}
    """
    names = {
        "immutable": _names(immutable, frame, owner=owner, parameter="immutable"),
        "integers": _names(integers, frame, owner=owner, parameter="integers"),
    }
    for parameter, mapping in (("ranges", ranges), ("categories", categories), ("scales", scales)):
        if mapping is not None and not isinstance(mapping, Mapping):
            raise bad_parameter(
                owner, parameter, allowed="a dict from column names", got=mapping, remedy="Or leave it out."
            )
        check_columns(frame, mapping or {}, owner=f"{owner}, {parameter!r}")
    both = sorted(set(categories or {}) & (names["integers"] | set(ranges or {}) | set(scales or {})))
    if both:
        raise InputError(
            f"{owner}: column {both[0]!r} is named in 'categories' and also in 'integers', 'ranges' or 'scales'. "
            "A column is either numeric or categorical: name it in one of them."
        )
    return Choices(
        immutable=names["immutable"],
        integers=names["integers"],
        ranges={name: _range(name, pair, owner=owner) for name, pair in (ranges or {}).items()},
        categories={name: _listed(name, given, owner=owner) for name, given in (categories or {}).items()},
        scales={
            name: check_scale(said, f"scales[{name!r}]", owner=owner) for name, said in (scales or {}).items()
        },
    )


def check_scale(said: Any, parameter: str, *, owner: str) -> ScaleName | Curve:
    """Return the name of a scale, or the curve of one as it is, or raise an error that names the known ones.

    Examples
    --------
    >>> check_scale("log", "scales['gain']", owner="TabularDomain")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: TabularDomain: "scales['gain']" must be one of 'linear', 'signed log', 'rank', 'value or not', got 'log'. Did you mean 'signed log'?
    """
    if isinstance(said, Curve):
        return said
    if isinstance(said, str) and said in SCALES:
        return next(scale for scale in SCALES if scale == said)
    close = [scale for scale in SCALES if isinstance(said, str) and said.lower() in scale] if said else []
    raise bad_parameter(
        owner,
        parameter,
        allowed=f"one of {', '.join(map(repr, SCALES))}",
        got=repr(said),
        remedy=f"Did you mean {close[0]!r}?" if close else "",
    )


def _names(given: Iterable[str] | None, frame: pd.DataFrame, *, owner: str, parameter: str) -> frozenset[str]:
    if given is None:
        return frozenset()
    if isinstance(given, str) or not isinstance(given, Iterable):
        remedy = f"Pass [{given!r}]." if isinstance(given, str) else ""
        raise bad_parameter(
            owner, parameter, allowed="a list of column names", got=repr(given), remedy=remedy
        )
    names = list(given)
    check_columns(frame, names, owner=f"{owner}, {parameter!r}")
    return frozenset(names)


def _range(name: str, pair: Any, *, owner: str) -> tuple[float, float]:
    try:
        low, high = pair
    except (TypeError, ValueError) as error:
        raise bad_parameter(
            owner,
            f"ranges[{name!r}]",
            allowed="a pair (lowest, highest)",
            got=pair,
            remedy="Use None for an open end: (0, None).",
        ) from error
    ends = []
    for end, open_end in ((low, -np.inf), (high, np.inf)):
        is_open = end is None or end == open_end
        ends.append(open_end if is_open else check_number(end, owner=owner, name=f"ranges[{name!r}]"))
    if ends[0] > ends[1]:
        raise bad_parameter(owner, f"ranges[{name!r}]", allowed="a pair (lowest, highest)", got=pair)
    return ends[0], ends[1]


def _listed(name: str, given: Any, *, owner: str) -> tuple[Any, ...]:
    if given is None:
        return ()
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise bad_parameter(
            owner,
            f"categories[{name!r}]",
            allowed="a list of categories, or None for those the frame shows",
            got=given,
        )
    return tuple(given)
