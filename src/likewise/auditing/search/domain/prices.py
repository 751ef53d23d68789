"""The λ at which the domain is searched: fixed by ε and the loss, so that nobody else's rows have a say in them.

The dual's own λ* depends on everybody. It is at most (V(ε) − mean loss)/ε, and every row that is found serves every λ,
so a few prices around 1/ε serve whatever λ* turns out to be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.problem.coordinates import Coordinates
from likewise.auditing.search.domain.probed_cuts import draw_rows

__all__ = ["furthest", "loss_unit", "prices_of"]

# Times the unit of the loss over ε.
_SHARES = (2.0, 0.7, 0.25, 0.08)
# A move that costs more than so many units at the lowest price is not tried alone.
_REACH = 8.0


def prices_of(eps: float, unit: float) -> tuple[float, ...]:
    """Return the λ to search at for a budget ε; ∞, moves that cost nothing, always comes along.

    Parameters
    ----------
    eps : float
        ε ≥ 0.
    unit : float
        Of the loss.

    Examples
    --------
    >>> [round(lam, 6) for lam in prices_of(0.1, 1.0)]
    [inf, 20.0, 7.0, 2.5, 0.8]
    >>> prices_of(0.0, 1.0)
    (inf,)
    """
    if eps == 0:
        return (np.inf,)
    if np.isinf(eps):
        return (np.inf, 0.0)
    return (np.inf, *(float(share * unit / eps) for share in _SHARES))


def furthest(eps: float) -> float:
    """Return the squared fair distance beyond which a single move is not worth a question for a budget ε.

    Examples
    --------
    >>> furthest(0.01)
    1.0
    """
    return _REACH / _SHARES[-1] * eps


def loss_unit(place: Coordinates, layout: TableLayout) -> float:
    """Return what a large difference of the loss is: 1 for decisions, for a regression how answers vary in the domain.

    Parameters
    ----------
    place : Coordinates
    layout : TableLayout
    """
    if not place.model.loss.regression:
        return 1.0
    encoded = np.asarray(layout.encode(draw_rows(layout, 256)), dtype=np.float64)
    rows = place.encoded_for_model(encoded)
    answers: Any = np.asarray(place.model.outputs(rows), dtype=np.float64)[:, 0]
    varies = float(np.var(answers))
    return varies if np.isfinite(varies) and varies > 0 else 1.0
