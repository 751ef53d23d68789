"""Upper confidence bounds of an expectation for every sample size, and the paper's δ_n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.checks import check_number
from likewise.core.errors import InputError, bad_parameter

__all__ = ["DeltaN", "delta_n", "mean_upper_bound"]


def mean_upper_bound(
    values: FloatArray, upper: float, *, confidence: float = 0.95, method: str = "empirical_bernstein"
) -> float:
    """Upper confidence bound of the mean of independent values in [0, M].

    Parameters
    ----------
    values : array of shape (n,)
        Independent draws.
    upper : float
        M.
    confidence : float, default=0.95
        1 − t; the bound is at least the expectation with this probability, for every n.
    method : {"empirical_bernstein", "hoeffding"}
        Maurer and Pontil (2009, theorem 4): mean + √(2 v log(2/t) / n) + 7 M log(2/t) / (3 (n − 1)) with v the
        sample variance. Hoeffding: mean + M √(log(1/t) / 2n).

    Returns
    -------
    float

    Examples
    --------
    >>> round(mean_upper_bound(np.full(200, 0.5), 1.0, method="hoeffding"), 4)
    0.5865
    """
    owner = "mean_upper_bound"
    t = 1.0 - check_number(
        confidence, owner=owner, name="confidence", low=0.0, high=1.0, open_low=True, open_high=True
    )
    values = np.asarray(values, dtype=float)
    slack = 1e-9 * upper
    if values.min() < -slack or values.max() > upper + slack:
        raise InputError(
            f"{owner}: values run from {values.min():g} to {values.max():g}, outside [0, {upper:g}]. "
            "Pass an upper bound that holds for every row of the domain."
        )
    n, mean = len(values), float(values.mean())
    if method == "hoeffding":
        return mean + upper * float(np.sqrt(np.log(1.0 / t) / (2.0 * n)))
    if method != "empirical_bernstein":
        raise bad_parameter(owner, "method", allowed="'empirical_bernstein' or 'hoeffding'", got=method)
    if n < 2:
        raise InputError(f"{owner}: one row is not enough for a variance. Pass more, or method='hoeffding'.")
    log = float(np.log(2.0 / t))
    spread = float(np.sqrt(2.0 * values.var(ddof=1) * log / n))
    return mean + spread + 7.0 * upper * log / (3.0 * (n - 1))


@dataclass(frozen=True)
class DeltaN:
    """The uniform convergence error δ_n of Proposition 3.1, term by term.

    Parameters
    ----------
    complexity : float
        48 C(L) / √n: the size of the class of models.
    transport : float
        48 L D² / √(nε): the choice of λ.
    metric : float
        L δ_c D² / √ε: the error of a learned fair metric. It does not vanish with n.
    deviation : float
        M √(log(2/t) / 2n): the chance of an unlucky sample.
    n : int
        Sample size.
    eps : float
        ε.
    t : float
        The bound holds with probability at least 1 − t.

    Examples
    --------
    >>> delta_n(C_L=1.0, L=1.0, D=1.0, delta_c=0.0, M=1.0, n=10**6, eps=1.0, t=0.05).total < 0.1
    True
    """

    complexity: float
    transport: float
    metric: float
    deviation: float
    n: int
    eps: float
    t: float

    @property
    def total(self) -> float:
        """δ_n itself: the sum of the four terms."""
        return self.complexity + self.transport + self.metric + self.deviation

    @property
    def terms(self) -> dict[str, float]:
        """The four terms by name."""
        return {
            "complexity": self.complexity,
            "transport": self.transport,
            "metric": self.metric,
            "deviation": self.deviation,
        }

    def trained_gap(self, delta_star: float) -> float:
        """Return δ* + 2δ_n of Proposition 3.2: a bound on the population gap of a SenSR-trained model.

        Parameters
        ----------
        delta_star : float
            δ*: some model of the class has a worst-case loss of at most this on the population.
        """
        return check_number(delta_star, owner="DeltaN.trained_gap", name="delta_star") + 2.0 * self.total

    @property
    def certificate_error(self) -> float:
        """2δ_n of Proposition 3.3: how far the gap on the sample can be above the gap on the population.

        The proof bounds absolute differences, so it says as much about how far it can be below.
        """
        return 2.0 * self.total

    def population_gap(self, sample_gap: float) -> float:
        """Return sample gap + 2δ_n: what Proposition 3.3 lets a gap on the sample say about the population."""
        return check_number(sample_gap, owner="DeltaN.population_gap", name="sample_gap") + 2.0 * self.total


def delta_n(
    *, C_L: float, L: float, D: float, delta_c: float, M: float, n: int, eps: float, t: float
) -> DeltaN:
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
    DeltaN

    Examples
    --------
    >>> parts = delta_n(C_L=0.5, L=1.0, D=2.0, delta_c=0.01, M=1.0, n=10_000, eps=0.04, t=0.05)
    >>> {name: round(term, 4) for name, term in parts.terms.items()}
    {'complexity': 0.24, 'transport': 9.6, 'metric': 0.2, 'deviation': 0.0136}
    """
    owner = "delta_n"
    for name, value in {"C_L": C_L, "L": L, "D": D, "delta_c": delta_c, "M": M}.items():
        check_number(value, owner=owner, name=name, low=0.0)
    check_number(n, owner=owner, name="n", low=1)
    check_number(eps, owner=owner, name="eps", low=0.0, open_low=True)
    check_number(t, owner=owner, name="t", low=0.0, high=1.0, open_low=True, open_high=True)
    root = float(np.sqrt(n))
    return DeltaN(
        complexity=48.0 * C_L / root,
        transport=48.0 * L * D**2 / float(np.sqrt(n * eps)),
        metric=L * delta_c * D**2 / float(np.sqrt(eps)),
        deviation=M * float(np.sqrt(np.log(2.0 / t) / (2.0 * n))),
        n=int(n),
        eps=float(eps),
        t=float(t),
    )
