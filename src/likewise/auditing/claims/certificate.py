"""What an audit may claim: an `Estimate` is attained and can refute, a `Bound` holds and can certify.

An (ε, δ)-fair model has V(ε) ≤ δ (Definition 2.1 of the paper). A search that lists the rows it moved people to
knows that V(ε) is at least their mean loss, so it can show that a model is unfair and never that it is fair. A
dual value λε + mean ℓ^c_λ with ℓ^c exact or over-estimated is at least V(ε) for every λ, so it can show that a
model is fair and never that it is unfair. Nothing else is a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from likewise.auditing.claims.concentration import mean_upper_bound
from likewise.auditing.claims.confidence_interval import ConfidenceInterval
from likewise.auditing.support.moments import Moments
from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.checks import check_number, check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.core.renaming import renamed_parameters, warn_renamed
from likewise.texts import Said

__all__ = [
    "FAIR",
    "ROUNDING",
    "UNFAIR",
    "Bound",
    "Certificate",
    "CltInterval",
    "Estimate",
    "clt_interval",
    "finite_sample_bound",
    "interval_of_moments",
]

Quantity = Literal["value", "gap"]
Measure = Literal["loss", "decisions"]
About = Literal["sample", "population"]

ROUNDING = 1e-6

Fair = Literal["fair (proved)"]
Unfair = Literal["unfair (shown)"]
FAIR: Fair = "fair (proved)"
UNFAIR: Unfair = "unfair (shown)"

# The name that results of older versions and their readers know.
CltInterval = ConfidenceInterval


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

    @property
    def lam(self) -> float | None:
        """The old name of `lambda_`."""
        warn_renamed(f"{type(self).__name__}.lam", f"{type(self).__name__}.lambda_")
        return self.lambda_

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


@renamed_parameters(lam="lambda_")
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
        delta = _delta(delta, "Estimate.verdict")
        return UNFAIR if self.of(of) > delta else "not refuted"


@renamed_parameters(lam="lambda_")
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
        delta = _delta(delta, "Bound.verdict")
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

    def sentence(self, delta: float, *, of: Quantity = "gap") -> str:
        """Say the verdict in one sentence for people.

        Examples
        --------
        >>> low = Estimate(value=0.6, gap=0.1, eps=0.1, n=100, method="gradient search")
        >>> print(Certificate(low).sentence(0.05))
        Unfair (shown): moving 100 people to comparable places within a budget of 0.1 adds at least 0.1 to their mean loss, more than the 0.05 allowed.
        """
        verdict = self.verdict(delta, of=of)
        what = "adds {} to their mean loss" if of == "gap" else "brings their mean loss to {}"
        if verdict == "undecided":
            high = (
                "no upper bound is known" if self.bound is None else f"{_number(self.bound.of(of))} at most"
            )
            quantity = "the added loss" if of == "gap" else "the worst mean loss"
            return (
                f"Undecided: within a budget of {self.estimate.eps:g}, {quantity} is "
                f"{_number(self.estimate.of(of))} at least and {high}; {delta:g} is allowed."
            )
        claim: _Claim = self.estimate
        size, compare = "at least", f"more than the {delta:g} allowed"
        if verdict == FAIR and self.bound is not None:
            claim, size, compare = self.bound, "at most", f"within the {delta:g} allowed"
        who = f"{claim.n:,} people" if claim.about == "sample" else "people"
        text = what.format(f"{size} {_number(claim.of(of))}")
        sure = "" if claim.confidence == 1 else f" ({claim.confidence:.0%} confidence)"
        return (
            f"{verdict.capitalize()}: moving {who} to comparable places within a budget of {claim.eps:g} "
            f"{text}{sure}, {compare}."
        )


@renamed_parameters(lam="lambda_")
def finite_sample_bound(
    transformed: Any,
    *,
    lambda_: float,
    eps: float,
    upper: float,
    losses: Any = None,
    confidence: float = 0.95,
    method: str = "empirical_bernstein",
    assumptions: tuple[str, ...] = (),
) -> Bound:
    """Upper bound of the population's V(ε), for every sample size.

    For any fixed λ, V(ε) ≤ λε + E ℓ^c_λ (equation 4 of the paper). With λ chosen on other people, the ℓ^c_λ of
    these are independent and lie in [0, M], so their expectation is bounded from above by Hoeffding's inequality
    or by the empirical Bernstein inequality of Maurer and Pontil (2009, theorem 4), which is shorter where they
    vary little.

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
    method : {"empirical_bernstein", "hoeffding"}
        Which inequality.
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
    spent = _transport(lambda_, eps, owner)
    upper = check_number(upper, owner=owner, name="upper", low=0.0, open_low=True)
    values = _rows(transformed, owner, "transformed")
    value = spent + mean_upper_bound(values, upper, confidence=confidence, method=method)
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
        gap = spent + mean_upper_bound(added.clip(min=0.0), upper, confidence=confidence, method=method)
    said = (
        Said("assumption.row_draws"),
        Said("assumption.other_rows"),
        Said("assumption.ceiling", loss=float(upper)),
        Said("assumption.over_estimated"),
        *assumptions,
    )
    name = "Hoeffding" if method == "hoeffding" else Said("method.bernstein")
    return Bound(
        value=min(value, upper),
        gap=None if gap is None else min(gap, upper),
        eps=float(eps),
        n=len(values),
        method=Said("method.fixed", name=name),
        confidence=confidence,
        about="population",
        lambda_=float(lambda_),
        assumptions=said,
    )


@renamed_parameters(lam="lambda_")
def clt_interval(
    transformed: Any,
    *,
    lambda_: float,
    eps: float,
    losses: Any = None,
    confidence: float = 0.95,
) -> ConfidenceInterval:
    """Student's interval of the expected dual value, or of its gap where `losses` are given, for many people.

    The dual value is an average at the minimiser λ*, and how λ* itself was estimated matters only to second order
    (the derivative there is zero), so the central limit theorem applies to λε + mean ℓ^c_λ. It needs many people
    who gain: with few, or where λ* is 0 or not unique, it covers less often than it says. `gap_interval` holds for
    few as well, and `finite_sample_bound` always.

    Parameters
    ----------
    transformed : array of shape (n,)
        ℓ^c_λ of each row, at the minimiser.
    lambda_, eps : float
        λ* and ε.
    losses : array of shape (n,), optional
        Losses of the rows as they are: gives the interval of the gap V(ε) − E ℓ.
    confidence : float, default=0.95
        Asymptotic level; Student's quantiles are used.

    Returns
    -------
    ConfidenceInterval
        About the expectation given the candidates that ℓ^c_λ was taken over.

    Examples
    --------
    >>> found = clt_interval([0.1, 0.3, 0.2, 0.4], lambda_=1.0, eps=0.05)
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3)
    (0.3, 0.095, 0.505)
    """
    owner = "clt_interval"
    spent = _transport(lambda_, eps, owner)
    confidence = check_number(
        confidence, owner=owner, name="confidence", low=0.0, high=1.0, open_low=True, open_high=True
    )
    values = _rows(transformed, owner, "transformed")
    quantity: Quantity = "value"
    if losses is not None:
        base = _rows(losses, owner, "losses")
        check_same_length(owner, transformed=values, losses=base)
        values, quantity = values - base, "gap"
    return interval_of_moments(Moments.of(values), spent=spent, confidence=confidence, quantity=quantity)


def interval_of_moments(
    values: Moments, *, spent: float, confidence: float, quantity: Quantity
) -> ConfidenceInterval:
    """`clt_interval` of rows that are never in one place.

    Parameters
    ----------
    values : Moments
        Of ℓ^c_λ, or of ℓ^c_λ − ℓ for the gap.
    spent : float
        λε.
    confidence, quantity
        As in `ConfidenceInterval`.
    """
    if values.n < 2:
        raise InputError("clt_interval: one row is not enough for a variance. Pass at least two.")
    estimate, n = spent + values.mean, values.n
    half = values.std / float(np.sqrt(n)) * float(stats.t.ppf(0.5 + confidence / 2.0, n - 1))
    return ConfidenceInterval(estimate, estimate - half, estimate + half, confidence, n, quantity)


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


def _transport(lambda_: float, eps: float, owner: str) -> float:
    """λε, which is 0 at ε = 0 whatever λ is."""
    eps = check_number(eps, owner=owner, name="eps", low=0.0)
    if lambda_ == np.inf and eps == 0:
        return 0.0
    return check_number(lambda_, owner=owner, name="lambda_", low=0.0) * eps


def _delta(delta: float, owner: str) -> float:
    return check_number(delta, owner=owner, name="delta")


def _number(value: float) -> str:
    return "infinity" if np.isinf(value) else f"{value:.4g}"
