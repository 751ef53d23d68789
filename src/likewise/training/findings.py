"""What a training run says about itself: findings that a user should act on, and a warning for each."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from likewise.training.history import History

if TYPE_CHECKING:
    from likewise.training.objective import Objective, State


class TrainingWarning(UserWarning):
    """A training ended, but something about it needs a look.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always", TrainingWarning)
    ...     warnings.warn("the loss did not fall", TrainingWarning)
    >>> [warning.category.__name__ for warning in told]
    ['TrainingWarning']
    """


@dataclass(frozen=True)
class Finding:
    """One thing that went other than meant.

    Attributes
    ----------
    code : str
        Of a training: "eps_never_binds", "search_failed", "search_found_nothing" or "loss_flat". Of an estimator also
        "near_chance", "less_accurate", "cost_uncertain", "few_people", "flips_not_down", "not_more_robust",
        "gap_not_halved" and "subspace_swallows".
    message : str
        What was seen and what to do.
    share : float
        How much of the run it concerns, between 0 and 1.

    Examples
    --------
    >>> Finding("loss_flat", "the loss did not fall: try a larger learning rate", share=1.0).code
    'loss_flat'
    """

    code: str
    message: str
    share: float


def diagnose_training(objective: Objective, history: History, state: State) -> tuple[Finding, ...]:
    """Return what is remarkable about a run."""
    name = type(objective).__name__
    nothing = _nothing_found(name, state)
    # Where nothing moved, nothing was spent: λ at its floor is no news then.
    floor = None if nothing is not None else _floor(name, state)
    found = [floor, _failures(name, state), nothing, _flat(name, history, state)]
    return tuple(finding for finding in found if finding is not None)


def warn_about(findings: Sequence[Finding], *, stacklevel: int = 2) -> None:
    """Give one `TrainingWarning` per finding."""
    for finding in findings:
        warnings.warn(finding.message, TrainingWarning, stacklevel=stacklevel + 1)


def _floor(name: str, state: State) -> Finding | None:
    """λ at its floor: the worst case costs less than ε allows, so ε bounds nothing."""
    steps = state.counters.get("lambda_steps", 0)
    share = state.counters.get("at_floor", 0) / steps if steps else 0.0
    if share <= 0.5:
        return None
    return Finding(
        "eps_never_binds",
        f"{name}: λ was at its floor in {share:.0%} of the steps, so ε never bound: the search moved people less "
        "than ε allows, and a larger ε would change nothing. For ε to matter, lower it or give the full phase "
        "of the search more or larger steps; otherwise take the result as that of the subspace phase alone "
        "(the paper's own Adult run is of this kind).",
        share,
    )


def _failures(name: str, state: State) -> Finding | None:
    rows = state.counters.get("searched_rows", 0)
    share = state.counters.get("failed_rows", 0) / rows if rows else 0.0
    if share <= 0.01:
        return None
    return Finding(
        "search_failed",
        f"{name}: the search for the worst case was not finite for {share:.1%} of the rows, which were trained on "
        "where they stand. Scale the columns, or lower the search's step size.",
        share,
    )


def _nothing_found(name: str, state: State) -> Finding | None:
    rows = state.counters.get("looked_at_rows", 0)
    share = state.counters.get("unmoved_rows", 0) / rows if rows else 0.0
    if share <= 0.95:
        return None
    return Finding(
        "search_found_nothing",
        f"{name}: the search found nothing worse than the row itself for {share:.0%} of the rows, so this was "
        "plain training. Check that the metric's subspace has directions the data varies along, that the "
        "domain lets them change, and that the search's steps are large enough.",
        share,
    )


def _flat(name: str, history: History, state: State) -> Finding | None:
    """The loss never left where it began, measured against its own step-to-step noise."""
    continued = state.step > len(history)
    if "loss" not in history or len(history) < 50 or continued:
        return None
    loss = history["loss"]
    begin, end = float(loss[:5].mean()), float(loss[-len(loss) // 10 :].mean())
    # Differences of neighbours: a trend is no noise.
    noise = float(np.diff(loss).std()) / np.sqrt(2 * 5)
    if begin - end > max(2 * noise, 1e-3 * abs(begin)):
        return None
    return Finding(
        "loss_flat",
        f"{name}: the loss did not fall ({begin:.4g} in the first steps, {end:.4g} in the last tenth). Check the "
        "learning rate, that the columns are standardised, and that the search's steps are not so large that "
        "nothing can be learned.",
        1.0,
    )
