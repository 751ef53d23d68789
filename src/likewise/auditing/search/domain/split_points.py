"""Where a model's answers change along each number: the splits of its trees, or what probing a black box finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.auditing.bounds.families import family_in
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.bounds.trees.tree_family import TreeFamily
from likewise.auditing.problem.audit_problem import AuditProblem
from likewise.auditing.search.domain.prices import loss_unit
from likewise.auditing.search.domain.probed_cuts import probe_cuts
from likewise.auditing.search.domain.proposals import Scale
from likewise.auditing.support.frontier import Floats
from likewise.core.errors import InputError

__all__ = ["split_points"]


def split_points(problem: AuditProblem, probes: int) -> dict[str, list[float]]:
    """Return the cuts of every number by name, in original units; a number along which answers are smooth has none.

    Parameters
    ----------
    problem : AuditProblem
    probes : int
        Rows that a black box may be asked about.
    """
    place = problem.coordinates
    layout = TableLayout.of(place.domain)
    try:
        family = family_in(problem)
    except InputError:
        family = None
    if isinstance(family, TreeFamily):
        return family.trees.thresholds(layout)
    scale, unit = Scale.of(place.model.loss), loss_unit(place, layout) ** 0.5

    def answers(values: Floats) -> Floats:
        rows: Any = place.encoded_for_model(np.asarray(layout.encode(values), dtype=np.float64))
        if place.model.loss.regression:
            return np.asarray(place.model.outputs(rows) / unit, dtype=np.float64)
        return scale.effect(np.asarray(place.model.loss_table(rows), dtype=np.float64))

    return probe_cuts(answers, layout, calls=probes)
