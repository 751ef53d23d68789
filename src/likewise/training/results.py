"""Results of a training: the history, findings that a user should act on, and the warnings for them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray

if TYPE_CHECKING:
    import torch
    from torch import nn

    from likewise.training.objective import Objective, State


@dataclass(frozen=True, eq=False)
class History:
    """One number per step and column.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (steps,)
        ``step``, ``loss`` (what was minimised), ``lambda_`` and what the objective notes (``squared_distance``,
        ``worst_loss``, …); ``validation`` is NaN if no validation was done.

    Examples
    --------
    >>> history = History.of([{"step": 1, "loss": 0.7}, {"step": 2, "loss": 0.5, "validation": 0.6}])
    >>> len(history), history["loss"], history["validation"]
    (2, array([0.7, 0.5]), array([nan, 0.6]))
    """

    columns: Mapping[str, FloatArray]

    @classmethod
    def of(cls, steps: Sequence[Mapping[str, float]]) -> History:
        """Put steps together; what a step does not tell is NaN there."""
        table = pd.DataFrame(list(steps))
        return cls({str(name): np.array(table[name], dtype=float) for name in table})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> FloatArray:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def frame(self) -> pd.DataFrame:
        """Return it as a data frame, one row per step."""
        return pd.DataFrame(dict(self.columns))


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
        "near_chance", "less_accurate", "cost_uncertain", "flips_not_down", "not_more_robust", "gap_not_halved" and
        "subspace_swallows".
    message : str
        What was seen and what to do.
    share : float
        How much of the run it concerns, between 0 and 1.
    summary : str
        The warning if it is not the message: without figures, so that Python shows it once in a search of many fits.

    Examples
    --------
    >>> Finding("loss_flat", "the loss did not fall: try a larger learning rate", share=1.0).code
    'loss_flat'
    """

    code: str
    message: str
    share: float
    summary: str = ""


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
        # If nothing moved, nothing was spent: λ at its floor says nothing then.
        found = [one for one in found if one.code != "eps_never_binds"]
    flat = _flat(name, history, state)
    return tuple(found) if flat is None else (*found, flat)


# Code, the counters whose ratio is the share, the share above which it is reported, and the message.
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
        warnings.warn(finding.summary or finding.message, TrainingWarning, stacklevel=stacklevel + 1)


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


Status: TypeAlias = Literal["finished", "stopped_early", "interrupted", "diverged"]


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What came out of a training.

    Attributes
    ----------
    net : torch.nn.Module
        The network that was passed, with its final weights: those of the best validation if there was one.
    status : {"finished", "stopped_early", "interrupted", "diverged"}
    reason : str
        The status in a sentence.
    history : History
    state : State
        Of the objective after the last step.
    optimizer : torch.optim.Optimizer
        To go on with.
    steps : int
        Steps done, those before a resume included.
    best_step : int
        The step whose weights the network has.
    best_validation : float or None
        The robust loss there on the validation rows.
    findings : tuple of Finding
        What a user should look at.
    seconds : float
        Wall time of the steps made here.

    Examples
    --------
    >>> import torch
    >>> from likewise.training import mlp, train
    >>> X = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
    >>> result = train(mlp(1, (), 2), (X, [0, 0, 1, 1]), steps=20, lr=0.1)
    >>> result.status, result.steps, result.findings
    ('finished', 20, ())
    """

    net: nn.Module
    status: Status
    reason: str
    history: History
    state: State
    optimizer: torch.optim.Optimizer
    steps: int
    best_step: int
    best_validation: float | None
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def ended(self) -> bool:
        """Whether the run came to its end, by its steps or by its patience."""
        return self.status in ("finished", "stopped_early")

    def __repr__(self) -> str:
        last = self.history["loss"][-1] if len(self.history) else float("nan")
        return (
            f"TrainingResult({self.status} after {self.steps} steps, loss {last:.4g}, "
            f"weights of step {self.best_step})"
        )
