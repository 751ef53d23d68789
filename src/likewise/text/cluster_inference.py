"""Means over units whose noise is shared in clusters: intervals, sign-flip tests, Holm, equivalence, power.

Every cluster counts once, by the mean of its units. Cluster means are independent, but their variances differ (one
cluster may hold most of the units): Student's t of them with G − 1 degrees of freedom covers at least as often as it
says for any variances (Bakirov and Székely 2005; Ibragimov and Müller 2010, Journal of Business & Economic Statistics
28: 453–468), and flipping the signs of whole clusters is exact if their noise is symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from likewise.core.checks import FloatArray, IntArray, check_integer, check_number, check_share
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns
from likewise.core.intervals import Interval, bounded_mean_interval


def cluster_means(values: FloatArray, clusters: IntArray) -> FloatArray:
    """Return the mean of the known values of each cluster along the first axis; NaN if none is known."""
    known = ~np.isnan(values)
    shape = (int(clusters.max()) + 1, *values.shape[1:])
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, clusters, np.where(known, values, 0.0))
    np.add.at(counts, clusters, known)
    return np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)


def mean_interval(
    means: FloatArray, confidence: float = 0.95, bounds: tuple[float, float] | None = None
) -> Interval:
    """Return the interval of the expectation of cluster means.

    Student's t; with `bounds` that no mean can exceed (decisions, scores of two values) Gaffke's
    limits, which hold for any distribution between them. Unknown if there is one cluster, or if unbounded means are all equal.
    """
    known = means[~np.isnan(means)]
    unknown = Interval(float("nan"), float("nan"), confidence, "cluster t")
    if len(known) < 2:
        return unknown
    if bounds is not None:
        return bounded_mean_interval(known, *bounds, confidence=confidence)
    error = _error(known)
    if error == 0.0:
        return unknown
    reach = _t_quantile(0.5 + confidence / 2, len(known) - 1) * error
    return Interval(float(known.mean()) - reach, float(known.mean()) + reach, confidence, "cluster t")


@cache
def _t_quantile(share: float, freedom: int) -> float:
    return float(stats.t.ppf(share, freedom))


def _error(known: FloatArray) -> float:
    """Standard error of the mean; 0 if all are equal but for rounding."""
    error = float(known.std(ddof=1) / math.sqrt(len(known)))
    return error if error > 1e-12 * float(np.abs(known).max()) else 0.0


@dataclass(frozen=True, eq=False)
class SignFlips:
    """Two-sided p-values of zero means, alone and adjusted for the largest of a family, and the statistics."""

    p_values: FloatArray
    adjusted: FloatArray
    statistics: FloatArray


def sign_flips(means: FloatArray, *, n_flips: int = 9999, rng: np.random.Generator) -> SignFlips:
    """Test that columns of cluster means, (G, …, columns), have mean zero by flipping the signs of clusters.

    The statistic is Σ m_c / √Σ m_c². Columns are one family: `adjusted` compares each with the largest of all of them.
    All 2^G patterns if they are no more than `n_flips`, else a sample of so many.
    """
    n_clusters = len(means)
    values = np.where(np.isnan(means), 0.0, means)
    norms = np.sqrt((values**2).sum(axis=0))
    scaled = np.divide(values, norms, out=np.zeros_like(values), where=norms > 0)
    if 2**n_clusters <= n_flips:
        bits = (np.arange(2**n_clusters)[:, None] >> np.arange(n_clusters)) & 1
        own = 0
    else:
        bits = rng.integers(0, 2, size=(n_flips, n_clusters))
        own = 1  # the pattern observed is one of those that could have been
    flipped = np.abs(np.tensordot(2.0 * bits - 1.0, scaled, axes=1))
    statistics = scaled.sum(axis=0)
    # Rounding must not break ties with the pattern that was observed.
    limits = np.abs(statistics) - 1e-9
    largest = flipped.max(axis=-1, keepdims=True)
    total = own + len(flipped)
    return SignFlips(
        (own + (flipped >= limits).sum(axis=0)) / total,
        (own + (largest >= limits).sum(axis=0)) / total,
        statistics,
    )


def larger_of_contrasts(values: FloatArray, statistics: FloatArray) -> FloatArray:
    """Return per edit the larger value of its two contrasts, the halves of the last axis; 1 if their signs differ."""
    half = values.shape[-1] // 2
    same_sign = statistics[..., :half] * statistics[..., half:] > 0.0
    return np.where(same_sign, np.maximum(values[..., :half], values[..., half:]), 1.0)


def least_p_value(n_clusters: int, n_tests: int = 1) -> float:
    """Return the smallest p-value that sign flips of so many clusters can give, adjusted by Holm over the tests."""
    return min(1.0, n_tests * 2.0 ** (1 - n_clusters))


def clusters_needed(n_tests: int, level: float) -> int:
    """Return from how many clusters on sign flips can show an effect at all."""
    return math.ceil(1.0 + math.log2(n_tests / level))


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


def equivalence_p_value(means: FloatArray, margin: float) -> float:
    """Test that |expectation| is at least `margin`: a small p-value shows that it is smaller (TOST, Schuirmann 1987).

    Never below 2^−G, the chance that all of G cluster means are on the inner side of the margin if half should be:
    equal means of a few clusters do not show anything.
    """
    known = means[~np.isnan(means)]
    if len(known) < 2 or abs(mean := float(known.mean())) >= margin:
        return 1.0
    error = _error(known)
    p_value = float(stats.t.sf((margin - abs(mean)) / error, len(known) - 1)) if error > 0.0 else 0.0
    return max(p_value, 2.0 ** -len(known))


# How many texts and repeats an audit needs to see an effect of a given size.

# Simulated audits, in batches that share their sign patterns, and how many patterns.
_N_BATCHES, _BATCH, _N_FLIPS = 40, 50, 2048
# Beyond so many clusters power depends on effect / standard error alone.
_MANY_CLUSTERS = 80
_MOST_TEXTS = 10_000_000


@dataclass(frozen=True)
class AuditDesign:
    """The size of a paired audit, and what it can see.

    Parameters
    ----------
    text_sd : float
        Standard deviation of what an edit or a placebo does to one text, beyond its mean and apart from repeats.
    repeat_sd : float
        Standard deviation of the score when the same text is scored again.
    repeats : int, default=1
        Scores per text and variant.
    n_placebos : int, default=3
        Effects must differ from the mean of the placebos too; 0: from the baseline alone.
    n_edits : int, default=1
        Families of edits that are tested in one run, over all models; Holm's adjustment is over them.
    values_per_family : int, default=1
        Edits of the family, of which one has the effect.
    texts_per_cluster : int, default=1
    cluster_correlation : float, default=0
        Of the differences of two texts of one cluster.
    level : float, default=0.05

    Notes
    -----
    Power is the share of simulated audits in which the audit's own rule (sign flips of clusters, from the baseline and
    from the placebos in one direction, the strongest value of a family, Holm's first step) shows the effect. Scores are
    normal: the baseline of a text has variance σ_repeat²/R, an edit or a placebo σ_text² + σ_repeat²/R; the mean of m
    texts of a cluster has (1 + (m − 1)ρ)/m of it.

    Examples
    --------
    >>> design = AuditDesign(text_sd=0.3, repeat_sd=0.5, repeats=5, n_edits=8)
    >>> design.power(90, effect=0.2) >= 0.8, round(design.power(40, effect=0.2), 1), design.power(8, effect=9.0)
    (True, 0.3, 0.0)
    """

    text_sd: float
    repeat_sd: float
    repeats: int = 1
    n_placebos: int = 3
    n_edits: int = 1
    values_per_family: int = 1
    texts_per_cluster: int = 1
    cluster_correlation: float = 0.0
    level: float = 0.05

    def __post_init__(self) -> None:
        owner = "AuditDesign"
        for name in ("text_sd", "repeat_sd"):
            check_number(getattr(self, name), owner=owner, name=name, low=0.0)
        check_number(self.cluster_correlation, owner=owner, name="cluster_correlation", low=0.0, high=1.0)
        for name in ("repeats", "n_edits", "values_per_family", "texts_per_cluster", "n_placebos"):
            check_integer(getattr(self, name), owner=owner, name=name, low=int(name != "n_placebos"))
        check_share(self.level, owner=owner, name="level")

    def power(self, n_texts: int, effect: float) -> float:
        """Return the probability that an effect of this size is found with so many texts."""
        n_clusters = n_texts // self.texts_per_cluster
        if least_p_value(n_clusters, self.n_edits) > self.level:
            return 0.0
        simulated = min(n_clusters, _MANY_CLUSTERS)
        inflation = (1.0 + (self.texts_per_cluster - 1) * self.cluster_correlation) / self.texts_per_cluster
        scale = math.sqrt(inflation * simulated / n_clusters)
        repeat = self.repeat_sd / math.sqrt(self.repeats)
        one = math.hypot(self.text_sd, repeat)
        rng = np.random.default_rng(0)
        n_flips = max(_N_FLIPS, math.ceil(6 * self.n_edits / self.level))
        found = 0
        for _ in range(_N_BATCHES):
            edits = rng.normal(0.0, scale * one, (simulated, _BATCH, self.values_per_family))
            edits[..., 0] += abs(effect)
            base = rng.normal(0.0, scale * repeat, (simulated, _BATCH, 1))
            placebo = rng.normal(0.0, scale * one / math.sqrt(self.n_placebos or 1), (simulated, _BATCH, 1))
            contrasts = [edits - base, edits - (placebo if self.n_placebos else base)]
            flips = sign_flips(np.concatenate(contrasts, axis=-1), n_flips=n_flips, rng=rng)
            p_values = larger_of_contrasts(flips.adjusted, flips.statistics).min(axis=-1)
            found += int((p_values * self.n_edits <= self.level).sum())
        return found / (_N_BATCHES * _BATCH)

    def texts_needed(self, effect: float, power: float = 0.8) -> int:
        """Return the smallest number of texts that finds an effect of this size with this probability."""
        owner = "AuditDesign.texts_needed"
        if not abs(effect) > 0.0:
            raise bad_parameter(owner, "effect", "not zero", effect)
        check_share(power, owner=owner, name="power")
        low, high = 1, 2
        while self.power(high * self.texts_per_cluster, effect) < power:
            low, high = high, high * 2
            if high * self.texts_per_cluster > _MOST_TEXTS:
                allowed = f"large enough to be seen with {_MOST_TEXTS:,} texts"
                raise bad_parameter(owner, "effect", allowed, effect)
        while high - low > 1:
            middle = (low + high) // 2
            if self.power(middle * self.texts_per_cluster, effect) < power:
                low = middle
            else:
                high = middle
        return high * self.texts_per_cluster

    def calls(self, n_texts: int) -> int:
        """Return how many scores that is: baseline, edits and placebos, repeated."""
        return n_texts * (1 + self.n_edits * self.values_per_family + self.n_placebos) * self.repeats


# A table of scores as pairs: per unit and variant the mean score, and how often the decision is another.


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Scores of units (texts, jobs) under a baseline, edits and placebos."""

    units: tuple[Any, ...]
    clusters: IntArray
    edits: tuple[str, ...]
    placebos: tuple[str, ...]
    changes: FloatArray
    flips: FloatArray | None
    dropped: int
    bounds: tuple[float, float] | None = None  # of differences, if scores take two values only

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return int(self.clusters.max()) + 1

    @property
    def floor(self) -> FloatArray:
        """Mean change by the placebos per unit; zero without placebos."""
        if not self.placebos:
            return np.zeros(len(self.units))
        return mean_of_known(self.changes[:, len(self.edits) :])


def mean_of_known(values: FloatArray) -> FloatArray:
    """Return the mean of each row without its NaNs; NaN for a row of nothing else."""
    return pd.DataFrame(values).mean(axis=1).to_numpy()


def pair_scores(
    frame: pd.DataFrame,
    *,
    unit: str,
    variant: str,
    score: str,
    baseline: str,
    placebo: Sequence[str] = ("placebo_*",),
    cluster: str | None = None,
    decision: str | None = None,
) -> PairedScores:
    """Pair each variant's scores with the baseline's of the same unit."""
    owner = "pair_scores"
    columns = [name for name in (unit, variant, score, cluster, decision) if name is not None]
    check_columns(frame, columns, owner=owner)
    if frame.empty:
        raise InputError(f"{owner}: the table has no rows. Pass one row per score.")
    if frame[[unit, variant]].isna().any(axis=None):
        raise InputError(
            f"{owner}: {unit!r} or {variant!r} has empty cells. Fill them or leave the rows out."
        )
    numbers = pd.to_numeric(frame[score], errors="coerce")
    if not np.isfinite(numbers.to_numpy(float)).all():
        raise bad_parameter(owner, "score", "a column of finite numbers", f"other cells in {score!r}")
    names = frame[variant].astype(str)
    present = list(dict.fromkeys(names))
    if baseline not in present:
        raise bad_parameter(owner, "baseline", f"one of {', '.join(present[:12])}", baseline)
    placebos = [name for name in present if name != baseline and any(fnmatchcase(name, p) for p in placebo)]
    edits = [name for name in present if name != baseline and name not in placebos]
    if not edits:
        raise InputError(f"{owner}: every variant is the baseline or a placebo. Add an edited one.")
    means = _cell_means(numbers, frame[unit], names)
    has_base = means[baseline].notna()
    means, order = means[has_base], [*edits, *placebos]
    if means.empty:
        raise InputError(f"{owner}: no unit has a score of the baseline {baseline!r}.")
    changes = means[order].sub(means[baseline], axis=0).to_numpy(float)
    flips = (
        None
        if decision is None
        else _flips(frame[decision], frame[unit], names, baseline, order, means.index)
    )
    span = float(numbers.max() - numbers.min())
    return PairedScores(
        tuple(means.index),
        _clusters(frame, unit, cluster, means.index),
        tuple(edits),
        tuple(placebos),
        changes,
        flips,
        int((~has_base).sum()),
        (-span, span) if numbers.nunique() == 2 else None,
    )


def _cell_means(values: pd.Series[Any], unit: pd.Series[Any], names: pd.Series[Any]) -> pd.DataFrame:
    """Mean over the repeats: one row per unit, one column per variant."""
    cells = pd.DataFrame({"unit": unit, "variant": names, "value": values})
    return cells.pivot_table(index="unit", columns="variant", values="value", aggfunc="mean")


def _clusters(frame: pd.DataFrame, unit: str, cluster: str | None, index: pd.Index[Any]) -> Any:
    if cluster is None:
        return np.arange(len(index))
    owners = frame[[unit, cluster]].drop_duplicates()
    if owners[unit].duplicated().any():
        raise InputError(f"pair_scores: a unit of {unit!r} stands in two clusters of {cluster!r}.")
    return pd.factorize(owners.set_index(unit)[cluster].loc[index])[0]


def _flips(
    decision: pd.Series[Any],
    unit: pd.Series[Any],
    names: pd.Series[Any],
    baseline: str,
    order: list[str],
    index: pd.Index[Any],
) -> FloatArray:
    """1 − Σ_k p_k q_k: a random repeat of each decided differently."""
    same = np.zeros((len(index), len(order)))
    for value in decision.dropna().unique():
        share = _cell_means((decision == value).astype(float), unit, names).loc[index]
        same += share[order].to_numpy(float) * share[[baseline]].to_numpy(float)
    return 1.0 - same
