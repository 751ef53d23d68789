"""How λ, the price of fair distance, moves from step to step: named rules, pure functions."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from likewise.auditing.support.finite_dual import dual_curve
from likewise.auditing.support.frontier import Frontier
from likewise.core.arrays import to_numpy
from likewise.core.errors import bad_parameter

__all__ = ["AUTHORS_FLOOR", "LambdaRule", "authors_rule", "check_rule", "dual_rule", "paper_rule"]

LambdaRule: TypeAlias = Literal["paper", "authors", "dual", "fixed"]

# The least λ of the authors' code.
AUTHORS_FLOOR = 1e-5


def paper_rule(lambda_: float, eps: float, mean_squared_distance: float, step_size: float) -> float:
    """Return the next λ of Algorithms 1 and 2, line 4: max(0, λ − α(ε − mean d²)).

    Parameters
    ----------
    lambda_ : float
        λ now.
    eps : float
        The budget ε.
    mean_squared_distance : float
        Mean squared fair distance between the rows of the batch and their worst cases.
    step_size : float
        α.

    Examples
    --------
    >>> paper_rule(1.0, eps=0.1, mean_squared_distance=0.3, step_size=0.5)
    1.1
    >>> paper_rule(0.01, eps=0.1, mean_squared_distance=0.0, step_size=0.5)
    0.0
    """
    return max(0.0, lambda_ - step_size * (eps - mean_squared_distance))


def authors_rule(
    lambda_: float, eps: float, mean_squared_distance: float, floor: float = AUTHORS_FLOOR
) -> float:
    """Return the next λ of the authors' code: λ + max(m, ε)/min(m, ε) · (m − ε), at least 1e-5.

    The step grows with the ratio of what was spent to what was allowed, so λ falls to its floor in a few steps
    where the worst case costs much less than ε.

    Examples
    --------
    >>> authors_rule(1.0, eps=0.1, mean_squared_distance=0.2)
    1.2
    >>> authors_rule(1.0, eps=0.1, mean_squared_distance=0.0)
    1e-05
    """
    least, most = sorted((mean_squared_distance, eps))
    if most == 0.0:
        return lambda_
    if least == 0.0:
        # The ratio is infinite: down to the floor, or up as far as the distance itself.
        return floor if mean_squared_distance < eps else lambda_ + mean_squared_distance
    return max(floor, lambda_ + most / least * (mean_squared_distance - eps))


def dual_rule(
    lambda_: float, eps: float, base_loss: Any, squared_distance: Any, loss: Any, smoothing: float = 0.1
) -> float:
    """Move λ towards the exact minimiser of the dual on the worst cases that this batch found.

    Every row may stay where it is or go to the point that the search found (or anything between, in
    probability): on that support the dual (equation 4) is solved exactly, and λ goes a share of the way.

    Parameters
    ----------
    lambda_ : float
        λ now.
    eps : float
        The budget ε.
    base_loss : array of shape (n,)
        Loss of each row where it stands.
    squared_distance, loss : arrays of shape (n,)
        Of the worst case of each row.
    smoothing : float, default=0.1
        The share of the way, since a batch is a sample.

    Examples
    --------
    Both rows can gain 1 at a distance of 0.5; the budget pays for one of them, so λ* = 1 / 0.5.

    >>> dual_rule(0.0, 0.25, [0.0, 0.0], [0.5, 0.5], [1.0, 1.0], smoothing=1.0)
    2.0
    """
    base = to_numpy(base_loss).astype(np.float64)
    rows = np.arange(len(base))
    frontier = Frontier.from_points(
        base_loss=base,
        row=rows,
        squared_distance=to_numpy(squared_distance).astype(np.float64),
        loss=to_numpy(loss).astype(np.float64),
        candidate=rows,
    )
    return lambda_ + smoothing * (float(dual_curve(frontier).lambda_(eps)) - lambda_)


def check_rule(rule: str, *, owner: str) -> None:
    """Raise unless the rule has a name that exists.

    Examples
    --------
    >>> check_rule("newton", owner="SenSR")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: SenSR: 'lambda_rule' must be one of ('paper', 'authors', 'dual', 'fixed'), got 'newton'.
    """
    if rule not in get_args(LambdaRule):
        raise bad_parameter(owner, "lambda_rule", allowed=f"one of {get_args(LambdaRule)}", got=repr(rule))
