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
    found = []
    for code, part, whole, limit, message in _SHARES:
        count = state.counters.get(whole, 0)
        share = state.counters.get(part, 0) / count if count else 0.0
        if share > limit:
            found.append(Finding(code, f"{name}: {message.format(share=share)}", share))
    if any(one.code == "search_found_nothing" for one in found):
        # If nothing moved, nothing was spent: λ at its floor is no news then.
        found = [one for one in found if one.code != "eps_never_binds"]
    flat = _flat(name, history, state)
    return tuple(found) if flat is None else (*found, flat)


# Code, the counters whose ratio is the share, the share above which it is said, and what is said.
_SHARES = (
    (
        "eps_never_binds",
        "at_floor",
        "lambda_steps",
        0.5,
        "λ was at its floor in {share:.0%} of the steps, so ε never bound: the search moved people less than ε allows, "
        "and a larger ε would change nothing. For ε to matter, lower it or give the full phase of the search more or "
        "larger steps; otherwise take the result as that of the subspace phase alone (the paper's own Adult run is of "
        "this kind).",
    ),
    (
        "search_failed",
        "failed_rows",
        "searched_rows",
        0.01,
        "the search for the worst case was not finite for {share:.1%} of the rows, which were trained on where they "
        "stand. Scale the columns, or lower the search's step size.",
    ),
    (
        "search_found_nothing",
        "unmoved_rows",
        "looked_at_rows",
        0.95,
        "the search found nothing worse than the row itself for {share:.0%} of the rows, so this was plain training. "
        "Check that the metric's subspace has directions the data varies along, that the domain lets them change, and "
        "that the search's steps are large enough.",
    ),
)


def warn_about(findings: Sequence[Finding], *, stacklevel: int = 2) -> None:
    """Give one `TrainingWarning` per finding."""
    for finding in findings:
        warnings.warn(finding.message, TrainingWarning, stacklevel=stacklevel + 1)


def _flat(name: str, history: History, state: State) -> Finding | None:
    """The loss never left where it began, measured against its own step-to-step noise."""
    continued = state.step > len(history)
    if "loss" not in history or len(history) < 50 or continued:
        return None
    loss = history["loss"]
    begin, end = float(loss[:5].mean()), float(loss[-len(loss) // 10 :].mean())
    # Differences of neighbours: a trend is not noise.
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
