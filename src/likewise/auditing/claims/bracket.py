"""What is known of one number from both sides: attained by listed people, and not to be exceeded by anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from likewise.auditing.claims.certificate import Bound
from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.core.text import short_number

__all__ = ["Bracket", "Bracketed", "brackets_of"]

Bracketed: TypeAlias = Literal["value", "gap", "changed"]
QUANTITIES: tuple[Bracketed, ...] = ("value", "gap", "changed")

# Narrower than this a bracket is one number: sums in another order, and the rounding of what costs nothing.
_CLOSED = 1e-9


@dataclass(frozen=True)
class Bracket:
    """The truth lies between `lower` and `upper`.

    Parameters
    ----------
    quantity : {"value", "gap", "changed"}
        V(ε), V(ε) − mean loss, or the share of people whose decision changes within the budget.
    eps : float
        The budget ε.
    lower : float
        Attained by listed people (`Estimate`).
    upper : float or None
        Not to be exceeded (`Bound`); None where nothing is proved.
    confidence : float, default=1
        Probability that `upper` holds: 1 where everybody was looked at, less where a sample was.
    method : str, optional
        How `upper` was found, in words.

    Examples
    --------
    >>> print(Bracket("gap", 0.0, 0.01, 0.02)), print(Bracket("changed", 0.1, 0.25, None))
    0.010 to 0.020
    at least 25.0%
    (None, None)
    >>> Bracket("gap", 0.0, 0.01, 0.01).closed
    True
    """

    quantity: Bracketed
    eps: float
    lower: float
    upper: float | None
    confidence: float = 1.0
    method: str | None = None

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise bad_parameter(
                "Bracket", "quantity", allowed=f"one of {', '.join(QUANTITIES)}", got=self.quantity
            )
        check_number(self.eps, owner="Bracket", name="eps", low=0.0)
        check_number(self.lower, owner="Bracket", name="lower")
        if self.upper is not None and self.upper < self.lower:
            raise bad_parameter("Bracket", "upper", allowed="at least 'lower'", got=self.upper)

    @property
    def closed(self) -> bool:
        """Whether the truth is known: both ends are the same number but for rounding."""
        return self.upper is not None and self.upper - self.lower <= _CLOSED * (1.0 + abs(self.upper))

    def __str__(self) -> str:
        low = self._number(self.lower)
        if self.upper is None:
            return f"at least {low}"
        sure = "" if self.confidence == 1 else f" ({self.confidence:.0%} confidence)"
        return f"exactly {low}{sure}" if self.closed else f"{low} to {self._number(self.upper)}{sure}"

    @property
    def name(self) -> str:
        """What it is about, in words."""
        at = f"ε = {self.eps:g}"
        if self.quantity == "changed":
            return f"decided differently at {at}"
        return f"gap at {at}" if self.quantity == "gap" else f"worst mean loss at {at}"

    def _number(self, number: float) -> str:
        return f"{number:.1%}" if self.quantity == "changed" else short_number(number)


def brackets_of(
    *,
    eps: float,
    base_loss: float,
    values: tuple[float, float],
    changed: tuple[float, float] | None,
    bounds: Sequence[Bound],
) -> tuple[Bracket, ...]:
    """Put what was attained and what was proved side by side: V, the gap and changed decisions, at 0 and at ε.

    Parameters
    ----------
    eps : float
        The budget of the audit.
    base_loss : float
        Mean loss of the people as they are.
    values : tuple of float
        V(0) and V(ε), attained.
    changed : tuple of float or None
        Shares of people whose decision changes at 0 and within ε, attained; None for a regression.
    bounds : sequence of Bound
        About the people at hand, of any ε and measure.

    Returns
    -------
    tuple of Bracket
        Those at 0 first; those at ε are the same where ε is 0 and stand once.

    Examples
    --------
    >>> proved = Bound(value=0.7, gap=0.2, eps=0.1, n=10, method="exact dual")
    >>> found = brackets_of(eps=0.1, base_loss=0.5, values=(0.5, 0.6), changed=(0.0, 0.1), bounds=[proved])
    >>> [(b.quantity, b.eps, b.upper) for b in found][:4]
    [('value', 0.0, 0.7), ('gap', 0.0, 0.2), ('changed', 0.0, None), ('value', 0.1, 0.7)]
    """
    here = [bound for bound in bounds if bound.about == "sample"]
    found: list[Bracket] = []
    for at, budget in enumerate(dict.fromkeys((0.0, float(eps)))):
        value = values[at]
        # V and the share rise with ε, so what bounds them at a larger one bounds them here as well.
        loss = [bound for bound in here if bound.measure == "loss" and bound.eps >= budget]
        best = min(loss, key=lambda bound: bound.value, default=None)
        high = None if best is None else max(best.value, value)
        found.append(_bracket("value", budget, value, high, best))
        low, high = value - base_loss, None if high is None else high - base_loss
        if best is not None and best.gap is not None:
            high = max(best.gap, low)
        found.append(_bracket("gap", budget, low, high, best))
        if changed is None:
            continue
        share = [bound for bound in here if bound.measure == "decisions" and bound.eps >= budget]
        best = min(share, key=lambda bound: bound.value, default=None)
        low = changed[at]
        found.append(
            _bracket("changed", budget, low, None if best is None else min(1.0, max(best.value, low)), best)
        )
    return tuple(found)


def _bracket(quantity: Bracketed, eps: float, low: float, high: float | None, by: Bound | None) -> Bracket:
    # Means of the same numbers in another order.
    if high is not None and high - low <= 1e-12 * (1.0 + abs(low)):
        high = low
    return Bracket(
        quantity, eps, low, high, 1.0 if by is None else by.confidence, None if by is None else by.method
    )
