"""Where a model's answers change along each number: the splits of its trees, or what probing a black box finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.auditing.bounds.families import family_of
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.bounds.trees.tree_family import TreeFamily
from likewise.auditing.problem.coordinates import Coordinates
from likewise.auditing.search.domain.prices import loss_unit
from likewise.auditing.search.domain.probed_cuts import probe_cuts
from likewise.auditing.search.domain.proposals import Scale
from likewise.auditing.support.frontier import Floats
from likewise.core.errors import InputError

__all__ = ["split_points"]


def split_points(place: Coordinates, probes: int) -> dict[str, list[float]]:
    """Return the cuts of every number by name, in original units; a number along which answers are smooth has none.

    Parameters
    ----------
    place : Coordinates
        With the model and the domain.
    probes : int
        Rows that a black box may be asked about.
    """
    layout = TableLayout.of(place.domain)
    known = _trees(place)
    if known is not None:
        return known.trees.thresholds(layout)
    scale, unit = Scale.of(place.model.loss), loss_unit(place, layout) ** 0.5

    def answers(values: Floats) -> Floats:
        rows: Any = place.encoded_for_model(np.asarray(layout.encode(values), dtype=np.float64))
        if place.model.loss.regression:
            return np.asarray(place.model.outputs(rows) / unit, dtype=np.float64)
        return scale.effect(np.asarray(place.model.loss_table(rows), dtype=np.float64))

    return probe_cuts(answers, layout, calls=probes)


def _trees(place: Coordinates) -> TreeFamily | None:
    """The model as trees over the domain's columns, where it is that."""
    if place.takes == "own" and (place.own is None or not place.own.is_identity):
        return None
    try:
        family = family_of(place.model, place.domain, encoded=place.takes in ("encoded", "own"))
    except InputError:
        return None
    return family if isinstance(family, TreeFamily) else None
