"""How much of a table a sensitive subspace takes besides the sensitive columns, and because of which attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, to_numpy
from likewise.core.subspace import Subspace

# A network that is blind to more than this share has too little left to learn from.
MOST = 0.5
# A metric that makes more than this share free calls people comparable who differ in nearly everything. One direction
# alone does so only where there are hardly any columns.
_NEARLY_ALL = 0.8
_SEVERAL = 2
# A share is known to a percent by so many rows.
_ROWS = 10_000


def removed_share(x: FloatArray, free: Subspace, sensitive: Sequence[int] = ()) -> float:
    """Return the share of the variance of all but the sensitive columns that lies in free directions."""
    centred = x - x.mean(axis=0)
    centred[:, list(sensitive)] = 0.0
    everything = float(np.square(centred).sum())
    if not free.dim or everything == 0.0:
        return 0.0
    directions = np.array(to_numpy(free.basis), dtype=float).T
    directions[:, list(sensitive)] = 0.0
    # What is sensitive up to rounding is not a direction of its own.
    rest = Subspace.from_directions(directions[np.linalg.norm(directions, axis=1) > 1e-6])
    return float(np.square(rest.coordinates(centred)).sum()) / everything if rest.dim else 0.0


def who_swallows(
    phi: FloatArray, directions: Mapping[Any, FloatArray], own: Sequence[int], whole: Subspace
) -> str | None:
    """Return a sentence about attributes whose directions take nearly all of the other columns' variance; else None."""
    some = np.asarray(phi[:: max(1, len(phi) // _ROWS)], dtype=float)
    share = removed_share(some, whole, own)
    if share <= _NEARLY_ALL or sum(len(rows) for rows in directions.values()) < _SEVERAL:
        return None
    parts = []
    for name, rows in directions.items():
        span = Subspace.from_directions(rows)
        parts.append((removed_share(some, span, own), span.dim, name))
    parts.sort(key=lambda part: -part[0])
    said = [f"{parts[0][0]:.0%} by the {parts[0][1]} directions of {parts[0][2]!r}"]
    said += [f"{part:.0%} by the {dim} of {name!r}" for part, dim, name in parts[1:]]
    return f"{share:.0%} of the variance of the other columns is free, {', '.join(said)}"
