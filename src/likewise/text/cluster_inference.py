"""Means over units whose noise is shared in clusters: intervals, sign-flip tests, Holm, equivalence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from likewise.core.checks import FloatArray, IntArray, check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.core.intervals import Interval

Codes = IntArray

# All 2^G sign patterns up to this many clusters, a sample of them beyond.
_ALL_SIGNS_UP_TO = 13


def cluster_sums(values: FloatArray, clusters: Codes, n_clusters: int) -> FloatArray:
    """Sum the rows of each cluster; NaN counts as absent."""
    sums = np.zeros((n_clusters, *values.shape[1:]))
    np.add.at(sums, clusters, np.where(np.isnan(values), 0.0, values))
    return sums


def mean_and_error(values: FloatArray, clusters: Codes) -> tuple[float, float, int]:
    """Return the mean, its cluster-robust standard error and the number of clusters.

    Var = G/(G−1) Σ_c (Σ_{u∈c} (d_u − d̄))² / n² (Liang and Zeger 1986, with the usual small-sample factor).
    """
    known = ~np.isnan(values)
    if not known.any():
        return float("nan"), float("nan"), 0
    n_clusters, n = int(np.count_nonzero(np.bincount(clusters[known]))), int(known.sum())
    mean = float(values[known].mean())
    if n_clusters < 2:
        return mean, float("nan"), n_clusters
    sums = np.bincount(clusters[known], weights=values[known] - mean)
    return mean, float(np.sqrt(n_clusters / (n_clusters - 1) * np.sum(sums**2)) / n), n_clusters


def mean_interval(values: FloatArray, clusters: Codes, confidence: float = 0.95) -> Interval:
    """Return the interval of a mean, Student's t with G − 1 degrees of freedom."""
    mean, error, n_clusters = mean_and_error(values, clusters)
    if not np.isfinite(error):
        return Interval(float("nan"), float("nan"), confidence, "cluster t")
    reach = _t_quantile(0.5 + confidence / 2, n_clusters - 1) * error
    return Interval(mean - reach, mean + reach, confidence, "cluster t")


@cache
def _t_quantile(share: float, freedom: int) -> float:
    return float(stats.t.ppf(share, freedom))


@dataclass(frozen=True, eq=False)
class SignFlips:
    """Two-sided p-values of zero means."""

    p_values: FloatArray
    adjusted: FloatArray
    statistics: FloatArray


def sign_flips(
    values: FloatArray, clusters: Codes, *, n_flips: int = 9999, rng: np.random.Generator
) -> SignFlips:
    """Test that columns have mean zero by flipping the signs of whole clusters."""
    n_clusters = int(clusters.max()) + 1
    sums = cluster_sums(values, clusters, n_clusters)
    norms = np.sqrt((sums**2).sum(axis=0))
    scaled = np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0)
    if n_clusters <= _ALL_SIGNS_UP_TO:
        bits = (np.arange(2**n_clusters)[:, None] >> np.arange(n_clusters)) & 1
        own = 0
    else:
        bits = rng.integers(0, 2, size=(n_flips, n_clusters))
        own = 1  # the pattern observed is one of those that could have been
    flipped = np.abs((2.0 * bits - 1.0) @ scaled)
    statistics = scaled.sum(axis=0)
    # Rounding must not break ties with the pattern that was observed.
    limits = np.abs(statistics) - 1e-9
    largest = flipped.max(axis=1)[:, None]
    total = own + len(flipped)
    return SignFlips(
        (own + (flipped >= limits).sum(axis=0)) / total,
        (own + (largest >= limits).sum(axis=0)) / total,
        statistics,
    )


def holm(p_values: FloatArray) -> FloatArray:
    """Adjust p-values so that all claims together hold at the level (Holm 1979)."""
    p_values = np.asarray(p_values, dtype=float)
    if np.isnan(p_values).any():
        raise InputError("holm: a p-value is not a number. Leave it out.")
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def equivalence_p_value(values: FloatArray, clusters: Codes, margin: float) -> float:
    """Test that |mean| is at least `margin`: a small p-value shows that it is smaller (TOST, Schuirmann 1987)."""
    mean, error, n_clusters = mean_and_error(values, clusters)
    if not np.isfinite(error):
        return 1.0
    if error == 0.0:
        return 0.0 if abs(mean) < margin else 1.0
    return float(stats.t.sf((margin - abs(mean)) / error, n_clusters - 1))


# How many texts and repeats an audit needs to see an effect of a given size.


@dataclass(frozen=True)
class AuditDesign:
    """The size of a paired audit, and what it can see.

    Parameters
    ----------
    text_sd : float
        Standard deviation of what an edit does to one text, beyond its mean and apart from repeats.
    repeat_sd : float
        Standard deviation of the score when the same text is scored again.
    repeats : int, default=1
        Scores per text and variant.
    n_placebos : int, default=3
        The control is their mean; 0 takes the baseline.
    n_edits : int, default=1
        The level is shared among them, as Holm does at its first step.
    texts_per_cluster : int, default=1
    cluster_correlation : float, default=0
        Of the differences of two texts of one cluster.
    level : float, default=0.05

    Notes
    -----
    A text's difference, edit − mean of k placebos, has variance (σ_text² + σ_repeat²/R)(1 + 1/k); clusters of
    m texts multiply that of the mean by 1 + (m − 1)ρ; the t test has G − 1 degrees of freedom.

    Examples
    --------
    >>> design = AuditDesign(text_sd=0.3, repeat_sd=0.5, repeats=5, n_edits=8)
    >>> n = design.texts_needed(effect=0.2)
    >>> n, round(design.power(n, effect=0.2), 2), round(design.power(n // 2, effect=0.2), 2)
    (64, 0.8, 0.39)
    """

    text_sd: float
    repeat_sd: float
    repeats: int = 1
    n_placebos: int = 3
    n_edits: int = 1
    texts_per_cluster: int = 1
    cluster_correlation: float = 0.0
    level: float = 0.05

    def __post_init__(self) -> None:
        owner = "AuditDesign"
        for name in ("text_sd", "repeat_sd"):
            check_number(getattr(self, name), owner=owner, name=name, low=0.0)
        check_number(self.cluster_correlation, owner=owner, name="cluster_correlation", low=0.0, high=1.0)
        for name, least in (("repeats", 1), ("n_placebos", 0), ("n_edits", 1), ("texts_per_cluster", 1)):
            if getattr(self, name) < least:
                raise bad_parameter(owner, name, allowed=f"an int >= {least}", got=getattr(self, name))
        if not 0.0 < self.level < 1.0:
            raise bad_parameter(owner, "level", allowed="between 0 and 1", got=self.level)

    def difference_sd(self) -> float:
        """Standard deviation of one text's difference from its control."""
        one = self.text_sd**2 + self.repeat_sd**2 / self.repeats
        return math.sqrt(one * (1.0 + 1.0 / max(self.n_placebos, 1)))

    def power(self, n_texts: int, effect: float) -> float:
        """Return the probability that an effect of this size is found with so many texts."""
        n_clusters = n_texts // self.texts_per_cluster
        if n_clusters < 2:
            return 0.0
        inflation = 1.0 + (self.texts_per_cluster - 1) * self.cluster_correlation
        error = self.difference_sd() * math.sqrt(inflation / n_texts)
        if error == 0.0:
            return 1.0
        limit = stats.t.ppf(1.0 - self.level / self.n_edits / 2.0, n_clusters - 1)
        shift = abs(effect) / error
        tails = stats.nct.sf(limit, n_clusters - 1, shift) + stats.nct.cdf(-limit, n_clusters - 1, shift)
        return float(tails)

    def texts_needed(self, effect: float, power: float = 0.8, at_most: int = 10_000_000) -> int:
        """Return the smallest number of texts that finds an effect of this size with this probability."""
        if not abs(effect) > 0.0:
            raise bad_parameter("AuditDesign.texts_needed", "effect", allowed="not zero", got=effect)
        if not 0.0 < power < 1.0:
            raise bad_parameter("AuditDesign.texts_needed", "power", allowed="between 0 and 1", got=power)
        low, high = 1, 2
        while self.power(high * self.texts_per_cluster, effect) < power:
            low, high = high, high * 2
            if high * self.texts_per_cluster > at_most:
                raise bad_parameter(
                    "AuditDesign.texts_needed",
                    "effect",
                    allowed=f"large enough to be seen with {at_most:,} texts",
                    got=effect,
                )
        while high - low > 1:
            middle = (low + high) // 2
            if self.power(middle * self.texts_per_cluster, effect) < power:
                low = middle
            else:
                high = middle
        return high * self.texts_per_cluster

    def calls(self, n_texts: int) -> int:
        """Return how many scores that is: baseline, edits and placebos, repeated."""
        return n_texts * (1 + self.n_edits + self.n_placebos) * self.repeats
