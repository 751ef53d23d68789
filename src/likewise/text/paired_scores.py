"""A table of scores as pairs: per unit and variant the mean score, and how often the decision is another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns

__all__ = ["PairedScores", "pair_scores"]


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Scores of units (texts, jobs) under a baseline, edits and placebos.

    Parameters
    ----------
    units : tuple
        Names of the n units.
    clusters : ndarray of int of shape (n,)
        Which units may share noise: code of each unit's cluster.
    edits, placebos : tuple of str
        Names of the variants.
    changes : ndarray of shape (n, edits + placebos)
        Mean score of the variant's repeats − mean score of the baseline's; NaN where there is none.
    flips : ndarray of the same shape or None
        Probability that a repeat of the variant and one of the baseline are decided differently.
    dropped : int
        Units left out since they have no baseline.
    """

    units: tuple[Any, ...]
    clusters: np.ndarray[Any, np.dtype[np.intp]]
    edits: tuple[str, ...]
    placebos: tuple[str, ...]
    changes: FloatArray
    flips: FloatArray | None
    dropped: int

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return int(self.clusters.max()) + 1

    @property
    def floor(self) -> FloatArray:
        """Mean change by the placebos per unit; zero where there is no placebo at all."""
        if not self.placebos:
            return np.zeros(len(self.units))
        return mean_of_known(self.changes[:, len(self.edits) :])


def mean_of_known(values: FloatArray) -> FloatArray:
    """Return the mean of each row without its NaNs; NaN for a row of nothing else."""
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    means: FloatArray = np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)
    return means


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
    """Pair each variant's scores with the baseline's of the same unit.

    Parameters
    ----------
    frame : DataFrame
        One row per score; several rows of one unit and variant are repeats.
    unit, variant, score : str
        Columns: what was scored, how it was edited, the number.
    baseline : str
        The variant that is no edit.
    placebo : sequence of str, default=("placebo_*",)
        Variants that should change nothing; * stands for any letters.
    cluster : str, optional
        Column of what units share, such as the job many CVs are for; each unit its own by default.
    decision : str, optional
        Column of what was decided.

    Examples
    --------
    >>> frame = pd.DataFrame({"job": ["a", "a", "a", "b", "b", "b"], "score": [1, 2, 1, 5, 6, 5],
    ...                       "variant": ["baseline", "name_x", "placebo_y"] * 2})
    >>> paired = pair_scores(frame, unit="job", variant="variant", score="score", baseline="baseline")
    >>> paired.edits, paired.placebos, paired.changes.tolist()
    (('name_x',), ('placebo_y',), [[1.0, 0.0], [1.0, 0.0]])
    """
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
        raise bad_parameter(
            owner, "score", allowed="a column of finite numbers", got=f"other cells in {score!r}"
        )
    names = frame[variant].astype(str)
    present = list(dict.fromkeys(names))
    if baseline not in present:
        raise bad_parameter(owner, "baseline", allowed=f"one of {', '.join(present[:12])}", got=baseline)
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
    return PairedScores(
        tuple(means.index),
        _clusters(frame, unit, cluster, means.index),
        tuple(edits),
        tuple(placebos),
        changes,
        flips,
        int((~has_base).sum()),
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
