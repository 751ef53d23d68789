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

__all__ = ["Choices", "check_choices"]


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
    """

    immutable: frozenset[str]
    integers: frozenset[str]
    ranges: dict[str, tuple[float, float]]
    categories: dict[str, tuple[Any, ...]]


def check_choices(
    frame: pd.DataFrame,
    *,
    immutable: Iterable[str] | None,
    ranges: Mapping[str, Any] | None,
    integers: Iterable[str] | None,
    categories: Mapping[str, Any] | None,
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
    for parameter, mapping in (("ranges", ranges), ("categories", categories)):
        if mapping is not None and not isinstance(mapping, Mapping):
            raise bad_parameter(
                owner, parameter, allowed="a dict from column names", got=mapping, remedy="Or leave it out."
            )
        check_columns(frame, mapping or {}, owner=f"{owner}, {parameter!r}")
    both = sorted(set(categories or {}) & (names["integers"] | set(ranges or {})))
    if both:
        raise InputError(
            f"{owner}: column {both[0]!r} is named in 'categories' and also in 'integers' or 'ranges'. "
            "A column is either numeric or categorical: name it in one of them."
        )
    return Choices(
        immutable=names["immutable"],
        integers=names["integers"],
        ranges={name: _range(name, pair, owner=owner) for name, pair in (ranges or {}).items()},
        categories={name: _listed(name, given, owner=owner) for name, given in (categories or {}).items()},
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
