"""What an audit may claim: an `Estimate` is attained and can refute, a `Bound` holds and can certify.

An (ε, δ)-fair model has V(ε) ≤ δ (Definition 2.1 of the paper). A search that lists the rows it moved people to
knows that V(ε) is at least their mean loss, so it can show that a model is unfair and never that it is fair. A
dual value λε + mean ℓ^c_λ with ℓ^c exact or over-estimated is at least V(ε) for every λ, so it can show that a
model is fair and never that it is unfair. Nothing else is a certificate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from likewise.core.checks import FloatArray, check_number, check_same_length, check_share, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.messages import Message
from likewise.core.text import short_number

# A confidence interval that says what it is about.


IntervalAbout = Literal["given candidates", "population"]
_WORDS: dict[IntervalAbout, str] = {
    "given candidates": "for everybody like those audited, moved among the same candidates",
    "population": "for the population",
}


@dataclass(frozen=True)
class ConfidenceInterval:
    """An interval of a gap, a mean loss or a share, and the quantity it covers.

    Parameters
    ----------
    estimate : float
        Of the people at hand.
    low, high : float
        The ends; `high` is inf if nothing bounds it from above.
    confidence : float
        Probability that the interval covers.
    n : int
        People it was computed from.
    quantity : {"value", "gap", "share"}
        V(ε), the gap V(ε) − mean loss, or a share of people.
    about : {"given candidates", "population"}
        What is covered. "given candidates": the expectation over people of what moves among the candidates of this
        audit add, these candidates held fixed. It grows with their number, so audits of more people are about more.
        "population": the worst case of the population itself, whoever was audited.
    method : str
        How it was made, in words.
    notes : tuple of str
        What it rests on, and why an end is open.

    Examples
    --------
    >>> found = ConfidenceInterval(0.5, 0.4, 0.6, 0.95, 100, "gap", about="population")
    >>> round(found.width, 9), found.open
    (0.2, False)
    >>> print(found)
    95% interval 0.400 to 0.600 for the population
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    quantity: Literal["value", "gap", "share"]
    about: IntervalAbout = "given candidates"
    method: str = "Student's t"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(self.notes))
        if self.about not in _WORDS:
            allowed = " or ".join(repr(name) for name in _WORDS)
            raise bad_parameter("ConfidenceInterval", "about", allowed=allowed, got=self.about)

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.high - self.low

    @property
    def open(self) -> bool:
        """Whether nothing bounds it from above."""
        return math.isinf(self.high)

    @property
    def about_words(self) -> str:
        """What the interval is about, to follow its ends in a sentence."""
        return _WORDS[self.about]

    def __str__(self) -> str:
        if self.open:
            return (
                f"at least {short_number(self.low)} ({self.confidence:.0%} confidence) {self.about_words}, "
                "no upper end"
            )
        return f"{self.confidence:.0%} interval {short_number(self.low)} to {short_number(self.high)} {self.about_words}"


# Upper confidence bounds of an expectation for every sample size, and the paper's δ_n.


def mean_upper_bound(values: FloatArray, upper: float, *, confidence: float = 0.95) -> float:
    """Upper confidence bound of the mean of independent values in [0, M] (Maurer and Pontil 2009, theorem 4)."""
    owner = "mean_upper_bound"
    t = 1.0 - check_share(confidence, owner=owner, name="confidence")
    values = np.asarray(values, dtype=float)
    slack = 1e-9 * upper
    if values.min() < -slack or values.max() > upper + slack:
        raise InputError(
            f"{owner}: values run from {values.min():g} to {values.max():g}, outside [0, {upper:g}]. "
            "Pass an upper bound that holds for every row of the domain."
        )
    n, mean = len(values), float(values.mean())
    if n < 2:
        raise InputError(f"{owner}: one row is not enough for a variance. Pass more.")
    log = float(np.log(2.0 / t))
    spread = float(np.sqrt(2.0 * values.var(ddof=1) * log / n))
    return mean + spread + 7.0 * upper * log / (3.0 * (n - 1))


def delta_n(
    *, C_L: float, L: float, D: float, delta_c: float, M: float, n: int, eps: float, t: float
) -> dict[str, float]:
    """Calculate δ_n of Proposition 3.1 of the paper with its own symbols (assumptions A1–A3).

    Parameters
    ----------
    C_L : float
        C(L): entropy integral of the loss class.
    L : float
        Lipschitz constant of the losses with respect to the fair metric (A2).
    D : float
        Diameter of the sample space under the fair metric (A1).
    delta_c : float
        δ_c: error of the transport cost, relative to D² (A3); 0 for a known metric.
    M : float
        Upper bound of the losses (A2).
    n : int
        Sample size.
    eps : float
        ε > 0.
    t : float
        In (0, 1).

    Returns
    -------
    dict of str to float
        The four terms by name, and their ``total``, δ_n. A gap on the sample is within 2δ_n of that on the population
        (Proposition 3.3).

    Examples
    --------
    >>> parts = delta_n(C_L=0.5, L=1.0, D=2.0, delta_c=0.01, M=1.0, n=10_000, eps=0.04, t=0.05)
    >>> {name: round(term, 4) for name, term in parts.items()}
    {'complexity': 0.24, 'transport': 9.6, 'metric': 0.2, 'deviation': 0.0136, 'total': 10.0536}
    """
    owner = "delta_n"
    for name, value in {"C_L": C_L, "L": L, "D": D, "delta_c": delta_c, "M": M}.items():
        check_number(value, owner=owner, name=name, low=0.0)
    check_number(n, owner=owner, name="n", low=1)
    check_number(eps, owner=owner, name="eps", low=0.0, open_low=True)
    check_share(t, owner=owner, name="t")
    root = float(np.sqrt(n))
    terms = {
        "complexity": 48.0 * C_L / root,
        "transport": 48.0 * L * D**2 / float(np.sqrt(n * eps)),
        "metric": L * delta_c * D**2 / float(np.sqrt(eps)),
        "deviation": M * float(np.sqrt(np.log(2.0 / t) / (2.0 * n))),
    }
    return terms | {"total": sum(terms.values())}


Quantity = Literal["value", "gap"]
Measure = Literal["loss", "decisions"]
About = Literal["sample", "population"]

ROUNDING = 1e-6

Fair = Literal["fair (proved)"]
Unfair = Literal["unfair (shown)"]
FAIR: Fair = "fair (proved)"
UNFAIR: Unfair = "unfair (shown)"


@dataclass(frozen=True)
class _Claim:
    """What the two kinds of claim have in common."""

    value: float
    gap: float | None
    eps: float
    n: int
    method: str
    confidence: float = 1.0
    about: About = "sample"
    lambda_: float | None = None
    assumptions: tuple[str, ...] = ()
    measure: Measure = "loss"

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for name in ("value", "gap"):
            number = getattr(self, name)
            if number is not None and np.isnan(number):
                raise bad_parameter(
                    owner,
                    name,
                    allowed="a number",
                    got="not a number",
                    remedy="A search that diverged claims nothing: fix its domain or its step size.",
                )
        check_number(self.eps, owner=owner, name="eps", low=0.0)
        check_number(self.n, owner=owner, name="n", low=1)
        check_number(self.confidence, owner=owner, name="confidence", low=0.0, high=1.0, open_low=True)
        if self.about not in ("sample", "population"):
            raise bad_parameter(owner, "about", allowed="'sample' or 'population'", got=self.about)
        if self.measure not in ("loss", "decisions"):
            raise bad_parameter(owner, "measure", allowed="'loss' or 'decisions'", got=self.measure)

    def of(self, quantity: Quantity) -> float:
        """Return the claimed value or the claimed gap."""
        if quantity not in ("value", "gap"):
            raise bad_parameter(type(self).__name__, "of", allowed="'value' or 'gap'", got=quantity)
        number = self.value if quantity == "value" else self.gap
        if number is None:
            raise InputError(
                f"{type(self).__name__}: there is no claim about the gap. Make it with the losses of the rows."
            )
        return number


@dataclass(frozen=True)
class Estimate(_Claim):
    """A lower bound of V(ε), attained by a listed set of rows. It can refute fairness, never certify it.

    Parameters
    ----------
    value : float
        Mean loss of the moved rows; V(ε) is at least this.
    gap : float or None
        The same minus the mean loss of the rows as they are.
    eps : float
        ε, the budget that was kept.
    n : int
        Number of rows.
    method : str
        How the rows were found, in words.
    confidence : float, default=1
        Probability that the claim holds; 1 for the rows at hand, where nothing is random.
    about : {"sample", "population"}, default="sample"
        The rows at hand (the paper's P_n), or the people they were drawn from.
    lambda_ : float, optional
        λ of the map.
    assumptions : tuple of str
        What must hold for the claim.
    measure : {"loss", "decisions"}, default="loss"
        What is claimed: the mean loss, or the share of people whose decision changes.

    Examples
    --------
    >>> found = Estimate(value=0.7, gap=0.2, eps=0.1, n=100, method="gradient search")
    >>> found.verdict(0.1), found.verdict(0.3), found.verdict(0.5, of="value")
    ('unfair (shown)', 'not refuted', 'unfair (shown)')
    """

    def verdict(self, delta: float, *, of: Quantity = "gap") -> Unfair | Literal["not refuted"]:
        """Whether the gap (or V(ε) itself, with ``of="value"``) is shown to be above δ."""
        delta = check_number(delta, owner="Estimate.verdict", name="delta")
        return UNFAIR if self.of(of) > delta else "not refuted"


@dataclass(frozen=True)
class Bound(_Claim):
    """An upper bound of V(ε). It can certify fairness, never refute it.

    Parameters
    ----------
    value : float
        V(ε) is at most this.
    gap : float or None
        V(ε) minus the mean loss is at most this.
    eps, n, method, confidence, about, lambda_, assumptions, measure
        As in `Estimate`; λ is the one at which the dual was evaluated.

    Examples
    --------
    >>> shown = Bound(value=0.7, gap=0.2, eps=0.1, n=100, method="exact dual")
    >>> shown.verdict(0.25), shown.verdict(0.1), shown.verdict(0.9, of="value")
    ('fair (proved)', 'not certified', 'fair (proved)')
    """

    def verdict(self, delta: float, *, of: Quantity = "gap") -> Fair | Literal["not certified"]:
        """Whether the gap (or V(ε) itself, with ``of="value"``) is shown to be at most δ."""
        delta = check_number(delta, owner="Bound.verdict", name="delta")
        return FAIR if self.of(of) <= delta else "not certified"


@dataclass(frozen=True)
class Certificate:
    """What is known about V(ε) from below and, where there is one, from above.

    Parameters
    ----------
    estimate : Estimate
        From below.
    bound : Bound, optional
        From above, at the same ε.

    Examples
    --------
    >>> low = Estimate(value=0.6, gap=0.1, eps=0.1, n=100, method="gradient search")
    >>> high = Bound(value=0.7, gap=0.2, eps=0.1, n=100, method="exact dual")
    >>> Certificate(low).verdict(0.3), Certificate(low, high).verdict(0.3), Certificate(low, high).verdict(0.15)
    ('undecided', 'fair (proved)', 'undecided')
    """

    estimate: Estimate
    bound: Bound | None = None

    def __post_init__(self) -> None:
        if self.bound is None:
            return
        low, high = self.estimate, self.bound
        if low.eps != high.eps:
            raise InputError(
                f"Certificate: the estimate is for eps={low.eps:g}, the bound for eps={high.eps:g}. "
                "Make both at the same ε."
            )
        both_here = low.about == high.about == "sample" and low.n == high.n and high.confidence == 1
        if both_here and low.value > high.value + ROUNDING * (1.0 + abs(high.value)):
            raise InputError(
                f"Certificate: the estimate {low.value:.6g} is above the bound {high.value:.6g}, which cannot be "
                "for the same rows, loss, metric and domain. Check that both used the same."
            )

    def verdict(self, delta: float, *, of: Quantity = "gap") -> Fair | Unfair | Literal["undecided"]:
        """Whether the gap is at most δ: "unfair (shown)", "fair (proved)", or "undecided" where δ lies between.

        With ``of="value"`` it is about V(ε) itself, the (ε, δ)-fairness of the paper's definition 2.1.
        """
        if self.estimate.verdict(delta, of=of) == UNFAIR:
            return UNFAIR
        if self.bound is not None and self.bound.verdict(delta, of=of) == FAIR:
            return FAIR
        return "undecided"


def finite_sample_bound(
    transformed: Any,
    *,
    lambda_: float,
    eps: float,
    upper: float,
    losses: Any = None,
    confidence: float = 0.95,
    assumptions: tuple[str, ...] = (),
) -> Bound:
    """Upper bound of the population's V(ε), for every sample size.

    For any fixed λ, V(ε) ≤ λε + E ℓ^c_λ (equation 4 of the paper). With λ chosen on other people, the ℓ^c_λ of
    these are independent and lie in [0, M], so their expectation is bounded from above by the empirical Bernstein
    inequality of Maurer and Pontil (2009, theorem 4).

    Parameters
    ----------
    transformed : array of shape (n,)
        ℓ^c_λ of each row: exact, or over-estimated. A local search under-estimates it and must not be used.
    lambda_ : float
        λ ≥ 0, chosen without looking at these rows. Infinity goes with ε = 0: moves that cost nothing.
    eps : float
        ε ≥ 0.
    upper : float
        M: no loss in the domain is larger, whoever comes.
    losses : array of shape (n,), optional
        Losses of the rows as they are; with them the gap is bounded as well, at the same confidence by itself.
    confidence : float, default=0.95
        1 − t.
    assumptions : tuple of str
        More to say about what was assumed.

    Returns
    -------
    Bound
        About the population.

    Examples
    --------
    >>> import numpy as np
    >>> shown = finite_sample_bound(np.full(1000, 0.2), lambda_=1.0, eps=0.1, upper=1.0)
    >>> round(shown.value, 4)
    0.3086
    """
    owner = "finite_sample_bound"
    eps = check_number(eps, owner=owner, name="eps", low=0.0)
    if not (lambda_ == np.inf and eps == 0):
        check_number(lambda_, owner=owner, name="lambda_", low=0.0)
    spent = transport_cost(lambda_, eps)
    upper = check_number(upper, owner=owner, name="upper", low=0.0, open_low=True)
    values = _rows(transformed, owner, "transformed")
    value = spent + mean_upper_bound(values, upper, confidence=confidence)
    gap = None
    if losses is not None:
        base = _rows(losses, owner, "losses")
        check_same_length(owner, transformed=values, losses=base)
        added = values - base
        if (added < -ROUNDING * (1.0 + upper)).any():
            row = int(added.argmin())
            raise InputError(
                f"{owner}: 'transformed' is below 'losses' at row {row} ({values[row]:g} < {base[row]:g}), which "
                "cannot be: staying put costs nothing. Pass ℓ^c and losses of the same rows."
            )
        gap = spent + mean_upper_bound(added.clip(min=0.0), upper, confidence=confidence)
    said = (
        Message("assumption.row_draws"),
        Message("assumption.other_rows"),
        Message("assumption.ceiling", loss=float(upper)),
        Message("assumption.over_estimated"),
        *assumptions,
    )
    return Bound(
        value=min(value, upper),
        gap=None if gap is None else min(gap, upper),
        eps=float(eps),
        n=len(values),
        method=Message("method.fixed", name=Message("method.bernstein")),
        confidence=confidence,
        about="population",
        lambda_=float(lambda_),
        assumptions=said,
    )


def _rows(values: Any, owner: str, name: str) -> FloatArray:
    array = np.asarray(to_numpy(values), dtype=float)
    if array.ndim != 1 or array.size == 0:
        raise bad_parameter(owner, name, allowed="one number per row", got=f"shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(
            f"{owner}: {name!r} has values that are not finite, first at row {int((~np.isfinite(array)).argmax())}. "
            "An unbounded supremum bounds nothing; give the audit a bounded domain."
        )
    return array


def transport_cost(lambda_: float, eps: float) -> float:
    """λε, which is 0 at ε = 0 whatever λ is."""
    return lambda_ * eps if eps > 0 else 0.0
