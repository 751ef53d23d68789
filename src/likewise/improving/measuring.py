"""One model, some people: count what it decides, what it decides about their twins, and their worst cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.support.finite_dual import dual_curve
from likewise.auditing.support.frontier import Frontier
from likewise.core.arrays import FloatArray
from likewise.evaluation.correspondence import correspondence_study
from likewise.evaluation.decisions import decide
from likewise.improving.people import Ground
from likewise.improving.tally import Spread, Tally
from likewise.models.convert import as_model

__all__ = ["tally_model", "worst_case_gains"]


def tally_model(model: Any, ground: Ground, rows: Any, *, seed: int) -> Tally:
    """Ask a model about people of the table.

    Parameters
    ----------
    model : object
        Fitted; `predict` takes the raw table.
    ground : Ground
        The table and how unfairness is measured on it.
    rows : int array
        Positions of people the model was not fitted on.
    seed : int
        Draws those who are audited, as many as everywhere: gaps found among more people are larger.

    Returns
    -------
    Tally
    """
    frame, labels = ground.frame.iloc[rows].reset_index(drop=True), ground.labels[rows]
    decided = decide(model, frame, len(frame), owner="improve")
    right = (decided == labels).astype(np.int64)
    codes = np.searchsorted(ground.classes, labels)
    n_classes = len(ground.classes)
    groups = {}
    for attribute, values in ground.groups.items():
        members = frame[attribute].to_numpy()
        counts = np.zeros((len(values), n_classes, 2), dtype=np.int64)
        for place, value in enumerate(values):
            own = members == value
            counts[place] = _by_class(codes[own], right[own], n_classes)
        groups[attribute] = counts
    random = np.random.default_rng(seed)
    some = np.sort(random.permutation(len(frame))[: ground.n_audited])
    people, their_labels = frame.iloc[some].reset_index(drop=True), labels[some]
    study = correspondence_study(model, people, list(ground.twin_edits), allow_new=True)
    changed = int(study.flipped.sum())
    gains = worst_case_gains(_frontier(model, ground, people, their_labels), (0.0, ground.eps))
    return Tally(
        _by_class(codes, right, n_classes),
        groups,
        np.array([len(people) - changed, changed]),
        *(Spread.of(gain) for gain in gains),
    )


def worst_case_gains(frontier: Frontier, budgets: tuple[float, ...]) -> tuple[FloatArray, ...]:
    """Return what the worst case at each budget adds to everybody's loss; its mean is the gap.

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[1.0, 0.0], row=[0, 1], squared_distance=[0.0, 4.0], loss=[2.0, 3.0], candidate=[0, 1]
    ... )
    >>> free, near = worst_case_gains(frontier, (0.0, 1.0))
    >>> free, float(near.mean()), dual_curve(frontier).gap(1.0)
    (array([1., 0.]), 1.25, 1.25)
    """
    curve = dual_curve(frontier)
    found = []
    for eps in budgets:
        # V(ε) = λ*ε + mean_i max_j (ℓ_ij − λ* d²_ij), equation 4 at its minimiser.
        lam = float(curve.lambda_(eps))
        found.append(np.asarray(lam * eps + frontier.conjugate(lam) - frontier.base_loss))
    return tuple(found)


def _frontier(model: Any, ground: Ground, people: Any, labels: Any) -> Frontier:
    search = CandidateSearch(edits=list(ground.twin_edits))
    asked = as_model(model)
    return search.run(asked, people, labels, metric=ground.metric, domain=ground.domain).frontier


def _by_class(codes: Any, right: Any, n_classes: int) -> Any:
    return np.bincount(2 * codes + right, minlength=2 * n_classes).reshape(n_classes, 2).astype(np.int64)
