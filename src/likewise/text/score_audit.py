"""The paired audit of a table of scores: effects of edits above the floor that placebos make."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, check_number
from likewise.core.errors import InputError, UnfairError, bad_parameter
from likewise.core.frames import check_columns
from likewise.core.intervals import Measure
from likewise.core.randomness import RandomState, numpy_generator
from likewise.core.text import truncated
from likewise.text.cluster_inference import (
    PairedScores,
    cluster_means,
    equivalence_p_value,
    holm,
    larger_of_contrasts,
    least_p_value,
    mean_interval,
    mean_of_known,
    pair_scores,
    sign_flips,
)


@dataclass(frozen=True)
class EditEffect:
    """What one edit, or all edits of a family, did to the scores.

    Means are over clusters: each counts once, by the mean of its units.

    Parameters
    ----------
    name : str
        The variant, or the family.
    n_units, n_clusters : int
        That the edits change.
    change : Measure
        Mean of edit − baseline. Of a family: that of the value that shifts most, `worst`, with an interval that holds
        for the strongest of all its values.
    shift : Measure
        Mean of edit − mean of the unit's placebos, the same way; equal to `change` without placebos.
    size : float
        Mean absolute change from the baseline.
    floor : float
        The same of the placebos; NaN without any.
    excess : Measure
        size − floor.
    p_value, adjusted : float
        By flipping signs of clusters: that the edit does no more than nothing, or no more than a placebo. Both
        must be refused, in one direction (the larger p-value counts). Holm over all edits (or all families) of the run,
        in every part. A family's is that of its strongest value, adjusted for having looked at all.
    changed : Measure or None
        Share of decisions that change, minus that of the placebos; None without decisions.
    equivalence : float or None
        p-value against a difference of `margin` or more, from the baseline and from the placebos (twice the
        smaller of the two); the largest of a family's, adjusted like `adjusted`. None without a margin.
    verdict : str
        ``"shifted"``, ``"equivalent"`` (smaller than the margin) or ``"undecided"``.
    worst : str
        The value that shifts most; of a variant, the variant itself.

    Examples
    --------
    >>> rows = [(text, variant, text % 2 + shift) for text in range(8)
    ...         for variant, shift in [("baseline", 0), ("name_a", 0), ("name_b", -1), ("placebo_1", 0)]]
    >>> result = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    >>> effect = result.parts[0].families[0]
    >>> effect.name, effect.worst, effect.change.value, effect.floor, effect.verdict
    ('name', 'name_b', -1.0, 0.0, 'shifted')
    """

    name: str
    n_units: int
    n_clusters: int
    change: Measure
    shift: Measure
    size: float
    floor: float
    excess: Measure
    p_value: float
    adjusted: float
    changed: Measure | None
    equivalence: float | None
    verdict: str
    worst: str


@dataclass(frozen=True, eq=False)
class ScoreAudit:
    """All effects in one table of scores.

    Parameters
    ----------
    name : str
        Of the part of the table (a model, a group of texts); empty for the whole.
    families, edits : tuple of EditEffect
    pairs : tuple of Measure
        Mean score of one edit − another's, within a family, with intervals.
    placebos : tuple of str
    n_units, n_clusters, dropped : int
    level : float
    margin : float or None
    n_tests : int
        Families that are tested in the same run, in all parts.

    Examples
    --------
    >>> rows = [(text, variant, text % 2 + shift) for text in range(8)
    ...         for variant, shift in [("baseline", 0), ("name_a", 0), ("name_b", -1), ("placebo_1", 0)]]
    >>> result = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    >>> part = result.parts[0]
    >>> [effect.name for effect in part.shifted], part.n_units, part.least_p_value
    (['name'], 8, 0.0078125)
    """

    name: str
    families: tuple[EditEffect, ...]
    edits: tuple[EditEffect, ...]
    pairs: tuple[Measure, ...]
    placebos: tuple[str, ...]
    n_units: int
    n_clusters: int
    dropped: int
    level: float
    margin: float | None
    n_tests: int

    @property
    def shifted(self) -> tuple[EditEffect, ...]:
        """Families whose effect is shown."""
        return tuple(effect for effect in self.families if effect.verdict == "shifted")

    @property
    def least_p_value(self) -> float:
        """The smallest adjusted p-value that so many clusters can give a family."""
        return least_p_value(self.n_clusters, self.n_tests)

    @property
    def undecidable(self) -> tuple[EditEffect, ...]:
        """Families that change too few clusters for any effect to be shown, whatever its size."""
        return tuple(e for e in self.families if least_p_value(e.n_clusters, self.n_tests) > self.level)


@dataclass(frozen=True, eq=False)
class ScoreAudits:
    """One `ScoreAudit` per model or group, tested together: iterate over them, or stop a build if one is unfair.

    Examples
    --------
    >>> rows = [(text, variant, text % 2 + shift) for text in range(8)
    ...         for variant, shift in [("baseline", 0), ("name_a", 0), ("name_b", -1), ("placebo_1", 0)]]
    >>> result = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    >>> len(result), result.frame["verdict"].tolist()
    (1, ['shifted'])
    """

    parts: tuple[ScoreAudit, ...]

    def __iter__(self) -> Iterator[ScoreAudit]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per part and family."""
        return pd.DataFrame([_row(part, effect) for part in self.parts for effect in part.families])

    def raise_if_unfair(self) -> None:
        """Raise `UnfairError` if an effect is shown."""
        shown = [f"{part.name} {one.name}".strip() for part in self.parts for one in part.shifted]
        if shown:
            raise UnfairError(f"The score depends on {truncated(shown, 3)}, beyond the noise.")


def audit_scores(
    frame: pd.DataFrame,
    *,
    unit: str,
    variant: str = "variant",
    score: str = "score",
    baseline: str = "baseline",
    placebo: Sequence[str] = ("placebo_*",),
    by: str | None = None,
    cluster: str | None = None,
    decision: str | None = None,
    margin: float | None = None,
    level: float = 0.05,
    n_flips: int = 9999,
    random_state: RandomState = 0,
) -> ScoreAudits:
    """Audit a table of scores that somebody already has.

    Parameters
    ----------
    frame : DataFrame
        One row per score.
    unit, variant, score, baseline, placebo, cluster, decision
        As in `pair_scores`: columns, the variant that is not an edit, and those that should change nothing.
    by : str, optional
        Column of models or groups to audit one by one; p-values are adjusted over all of them together.
    margin : float, optional
        τ: a shift smaller than this does not matter. With it, "no effect larger than τ" can be shown.
    level : float, default=0.05
        Of the tests; intervals are at 1 − level.
    n_flips : int, default=9999
        Sign patterns at least; more if many edits are tested.
    random_state : int, Generator or None, default=0

    Returns
    -------
    ScoreAudits

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = [(text, variant, shift + rng.normal(0, 0.1))
    ...         for text in range(20)
    ...         for variant, shift in [("baseline", 0), ("name_a", 0), ("name_b", -1), ("placebo_1", 0)]]
    >>> result = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    >>> [(effect.name, effect.verdict, effect.worst) for effect in result.parts[0].families]
    [('name', 'shifted', 'name_b')]
    """
    owner = "audit_scores"
    if by is not None:
        check_columns(frame, [by], owner=owner)
    if margin is not None:
        margin = check_number(margin, owner=owner, name="margin", low=0.0)
    if not 0.0 < level < 0.5:
        raise bad_parameter(owner, "level", "between 0 and 0.5", level)
    groups = [("", frame)] if by is None else [(str(key), part) for key, part in frame.groupby(by)]
    if not groups:
        raise InputError(f"{owner}: the table has no rows. Pass one row per score.")
    rng = numpy_generator(random_state)
    columns: dict[str, Any] = {
        "unit": unit,
        "variant": variant,
        "score": score,
        "baseline": baseline,
        "placebo": placebo,
        "cluster": cluster,
        "decision": decision,
    }
    paired = {name: pair_scores(part, **columns) for name, part in groups}
    return audit_together(paired, margin=margin, level=level, n_flips=n_flips, rng=rng)


def audit_together(
    parts: Mapping[str, PairedScores],
    *,
    margin: float | None = None,
    level: float = 0.05,
    n_flips: int = 9999,
    rng: np.random.Generator,
) -> ScoreAudits:
    """Audit paired scores of one or more models, and adjust over all that is reported."""
    # The smallest p-value of a sample of patterns must be small enough for all edits together.
    n_flips = max(n_flips, math.ceil(4 * sum(len(one.edits) for one in parts.values()) / level))
    found = [_audit_part(one, name, margin, level, n_flips, rng) for name, one in parts.items()]
    n_tests = sum(len(part.families) for part in found)
    families = iter(_verdicts([one for part in found for one in part.families], level))
    edits = iter(_verdicts([one for part in found for one in part.edits], level))
    return ScoreAudits(
        tuple(
            replace(
                part,
                families=tuple(next(families) for _ in part.families),
                edits=tuple(next(edits) for _ in part.edits),
                n_tests=n_tests,
            )
            for part in found
        )
    )


def _audit_part(
    paired: PairedScores,
    name: str,
    margin: float | None,
    level: float,
    n_flips: int,
    rng: np.random.Generator,
) -> ScoreAudit:
    """Effects of one part, their p-values not yet adjusted."""
    n_edits = len(paired.edits)
    changes = paired.changes[:, :n_edits]
    shifts = changes - paired.floor[:, None]
    members: dict[str, list[int]] = {}
    for column, edit in enumerate(paired.edits):
        members.setdefault(edit.split("_")[0], []).append(column)
    edits: list[EditEffect] = []
    families = []
    for family, columns in members.items():
        both = np.concatenate([changes[:, columns], shifts[:, columns]], axis=1)
        flips = sign_flips(cluster_means(both, paired.clusters), n_flips=n_flips, rng=rng)
        alone = larger_of_contrasts(flips.p_values, flips.statistics)
        together = larger_of_contrasts(flips.adjusted, flips.statistics)
        for column, p_value in zip(columns, alone, strict=True):
            edits.append(_effect(paired, shifts, [column], column, (float(p_value), margin, level)))
        strength = larger_of_contrasts(-np.abs(flips.statistics), flips.statistics)
        test = (float(together.min()), margin, level)
        if len(columns) == 1:
            found = replace(edits[-1], p_value=test[0])
        else:
            found = _effect(paired, shifts, columns, columns[int(np.argmin(strength))], test)
        families.append(replace(found, name=family))
    return ScoreAudit(
        name,
        tuple(families),
        tuple(edits),
        tuple(_pairs(paired, members, level)),
        paired.placebos,
        len(paired.units),
        paired.n_clusters,
        paired.dropped,
        level,
        margin,
        len(families),
    )


def _effect(
    paired: PairedScores,
    shifts: FloatArray,
    columns: list[int],
    worst: int,
    test: tuple[float, float | None, float],
) -> EditEffect:
    p_value, margin, level = test
    sizes = mean_of_known(np.abs(paired.changes[:, columns]))
    floors = (
        mean_of_known(np.abs(paired.changes[:, len(paired.edits) :]))
        if paired.placebos
        else np.full(len(sizes), np.nan)
    )
    # The strongest of several values was chosen by what is shown: all of them share the level (Bonferroni).
    chosen = level / len(columns)
    return EditEffect(
        paired.edits[worst],
        int((~np.isnan(sizes)).sum()),
        len(np.unique(paired.clusters[~np.isnan(sizes)])),
        _measure("change", paired.changes[:, worst], paired, chosen, paired.bounds),
        _measure("shift", shifts[:, worst], paired, chosen, paired.bounds),
        _mean(cluster_means(sizes, paired.clusters)),
        _mean(cluster_means(floors, paired.clusters)),
        _measure("excess", sizes - floors, paired, level, paired.bounds),
        p_value,
        1.0,
        _changed(paired, columns, level),
        None if margin is None else max(_equivalence(paired, shifts, column, margin) for column in columns),
        "undecided",
        paired.edits[worst],
    )


def _verdicts(effects: Sequence[EditEffect], level: float) -> Iterator[EditEffect]:
    adjusted = holm(np.array([effect.p_value for effect in effects]))
    small = holm(np.array([1.0 if one.equivalence is None else one.equivalence for one in effects]))
    for effect, p_value, margin in zip(effects, adjusted, small, strict=True):
        # Shown to be smaller than what matters is fair, however surely it is not zero.
        verdict = "equivalent" if margin <= level else "shifted" if p_value <= level else "undecided"
        equivalence = None if effect.equivalence is None else float(margin)
        yield replace(effect, adjusted=float(p_value), equivalence=equivalence, verdict=verdict)


def _pairs(paired: PairedScores, members: dict[str, list[int]], level: float) -> Iterator[Measure]:
    for columns in members.values():
        for place, first in enumerate(columns):
            for second in columns[place + 1 :]:
                difference = paired.changes[:, first] - paired.changes[:, second]
                name = f"{paired.edits[first]} − {paired.edits[second]}"
                yield _measure(name, difference, paired, level, paired.bounds)


def _changed(paired: PairedScores, columns: list[int], level: float) -> Measure | None:
    if paired.flips is None:
        return None
    flips = mean_of_known(paired.flips[:, columns])
    if paired.placebos:
        flips = flips - mean_of_known(paired.flips[:, len(paired.edits) :])
    return _measure("changed decisions", flips, paired, level, (-1.0 if paired.placebos else 0.0, 1.0))


def _measure(
    name: str, values: FloatArray, paired: PairedScores, level: float, bounds: tuple[float, float] | None
) -> Measure:
    means = cluster_means(values, paired.clusters)
    return Measure.of(name, _mean(means), mean_interval(means, 1.0 - level, bounds))


def _mean(means: FloatArray) -> float:
    known = means[~np.isnan(means)]
    return float(known.mean()) if len(known) else float("nan")


def _equivalence(paired: PairedScores, shifts: FloatArray, column: int, margin: float) -> float:
    """An edit is harmless if it does about nothing, or about what a placebo does; Bonferroni for the or."""
    from_baseline = equivalence_p_value(cluster_means(paired.changes[:, column], paired.clusters), margin)
    if not paired.placebos:
        return from_baseline
    from_placebos = equivalence_p_value(cluster_means(shifts[:, column], paired.clusters), margin)
    return min(1.0, 2.0 * min(from_baseline, from_placebos))


def _row(part: ScoreAudit, effect: EditEffect) -> dict[str, Any]:
    return {
        "part": part.name,
        "family": effect.name,
        "worst": effect.worst,
        "change": effect.change.value,
        "shift": effect.shift.value,
        "low": effect.shift.low,
        "high": effect.shift.high,
        "size": effect.size,
        "floor": effect.floor,
        "excess": effect.excess.value,
        "excess_low": effect.excess.low,
        "excess_high": effect.excess.high,
        "p_value": effect.p_value,
        "adjusted": effect.adjusted,
        "verdict": effect.verdict,
    }
