"""Was a fair metric learned well: what of the attribute is left, what was removed, and how stable it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from sklearn.utils import get_tags

from likewise.core.checks import FloatArray, check_integer, is_tensor, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import is_frame, to_pandas
from likewise.core.intervals import Measure
from likewise.core.messages import Message
from likewise.core.randomness import RandomState, numpy_generator, spawn_seeds
from likewise.core.text import text_table
from likewise.fair_metrics.attribute import Attribute, AttributeSubspace, collect, make_target, resolve_kinds
from likewise.fair_metrics.learner import MOST, Features, removed_share
from likewise.fair_metrics.metric import FairMetric
from likewise.fair_metrics.naming import ColumnPlaces, is_encoder
from likewise.fair_metrics.stability import Stability, bootstrap_angles

# How well an attribute can be predicted from rows: a linear and a gradient-boosted probe, cross-validated.


PROBES = ("linear", "boosted")

_ROUNDS = 100


def probe(name: str, X: FloatArray, y: Any, *, classes: bool, folds: int, seed: int) -> Measure:
    """Cross-validated score of one probe."""
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    splitter = StratifiedKFold if classes else KFold
    cv = splitter(folds, shuffle=True, random_state=seed)
    score = "r2" if not classes else "roc_auc" if len(np.unique(y)) == 2 else "roc_auc_ovr"
    scores = cross_val_score(_model(name, classes, seed), X, y, cv=cv, scoring=score)
    mean = float(scores.mean())
    error = float(scores.std(ddof=1)) * np.sqrt(1.0 / folds + 1.0 / (folds - 1.0))
    half = float(stdtrit(folds - 1, 0.975)) * error
    low, high = mean - half, min(mean + half, 1.0)
    return Measure(name, mean, max(low, 0.0) if classes else low, high, "folds")


def _model(name: str, classes: bool, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    if name == "linear":
        return LogisticRegression(max_iter=2000) if classes else Ridge()
    boosted = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return boosted(max_iter=_ROUNDS, early_stopping=False, random_state=seed)


def at_resolution(rows: FloatArray, before: FloatArray) -> FloatArray:
    """Return rows in units of the spread that the columns had before the projection, to a hundredth of a unit.

    A projection leaves tiny copies of what it takes: a column of a rare category is 0 for nearly everyone before
    it, and 0.0001 times the projected-off score after it; a column that was projected off itself keeps rounding
    of 1e-17. A probe that is blind to size reads the attribute from them, although they are nothing to the
    metric. So columns are not blown up to a common spread: those with less than the median spread keep their
    size, and values are rounded.
    """
    spread = before.std(0)
    typical = float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0
    # Adding zero turns -0.0 into 0.0.
    return np.asarray(np.round(rows / np.maximum(spread, typical), 2) + 0.0)


def choose_rows(y: Any, *, classes: bool, folds: int, max_rows: int | None, rng: np.random.Generator) -> Any:
    """Numbers of the rows to probe: all, or `max_rows` at random with the same shares of the classes."""
    n = len(y)
    if not classes:
        if n < 2 * folds:
            raise InputError(
                f"diagnose: {n} rows know the attribute, too few for {folds} folds. Pass at least {2 * folds}, or "
                "lower 'folds'."
            )
        return np.sort(rng.permutation(n)[:max_rows])
    counts = np.bincount(y)
    if counts.min() < folds:
        raise InputError(
            f"diagnose: one category of the attribute has {counts.min()} row(s), fewer than the {folds} folds. "
            "Merge rare categories, or lower 'folds'."
        )
    if max_rows is None or n <= max_rows:
        return np.arange(n)
    wanted = np.maximum(folds, np.round(counts * (max_rows / n)).astype(int))
    parts = [rng.permutation(np.flatnonzero(y == k))[:size] for k, size in enumerate(wanted)]
    return np.sort(np.concatenate(parts))


_SHOWN = 12


@dataclass(frozen=True)
class ProbeScores:
    """Score of one probe on the rows as they came, and after the subspace was projected off.

    Parameters
    ----------
    name : {"linear", "boosted"}
    before, after : Measure
        Mean over the folds with its interval.

    Examples
    --------
    >>> found = ProbeScores("linear", Measure("AUC", 0.93, 0.92, 0.95, "folds"), Measure("AUC", 0.63, 0.59, 0.66, "folds"))
    >>> found.after.value < found.before.low
    True
    """

    name: str
    before: Measure
    after: Measure


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; `print` shows it as small tables.

    Parameters
    ----------
    attribute : str
    kind : {"categorical", "continuous", "count"}
    score : {"AUC", "R²"}
        What the probes are scored by. No knowledge of the attribute is an AUC of 0.5, an R² of 0.
    n_rows : int
        Rows that were probed.
    n_folds : int
    dim : int
        Number of directions that were projected off.
    probes : tuple of ProbeScores
        The linear one, then the boosted one.
    variance_removed : dict of str to float
        For every column the share of its variance that the projection takes; negative if it adds some.
    total_variance_removed : float
        The same for all columns together.
    stability : Stability or None
        None if it could not be computed (the last of the notes says why) or was not asked for.
    notes : tuple of str
        What a reader should know about these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import AttributeSubspace, diagnose
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> learner = AttributeSubspace().fit(X, X[:, 0] > 0)
    >>> found = diagnose(learner.metric_, X, X[:, 0] > 0, folds=2)
    >>> found.score, found.dim, max(found.variance_removed.values()) > 0.9
    ('AUC', 1, True)
    """

    attribute: str
    kind: str
    score: str
    n_rows: int
    n_folds: int
    dim: int
    probes: tuple[ProbeScores, ...]
    variance_removed: dict[str, float]
    total_variance_removed: float
    stability: Stability | None
    notes: tuple[str, ...]

    @property
    def linear(self) -> ProbeScores:
        """Scores of the linear probe."""
        return self.probes[0]

    @property
    def boosted(self) -> ProbeScores:
        """Scores of the gradient-boosted probe."""
        return self.probes[1]

    def __str__(self) -> str:
        title = f"{self.score} of predicting {self.attribute!r}"
        rows = [[f"{p.name} probe", _cell(p.before), _cell(p.after)] for p in self.probes]
        what = f"{self.n_rows:,} rows, {self.n_folds} folds, {self.dim} direction(s) projected off"
        parts = [text_table([title, "before", "after projection"], rows) + f"\n{what}"]
        ranked = sorted(self.variance_removed.items(), key=lambda item: -item[1])
        rows = [[name, f"{share:.1%}"] for name, share in ranked[:_SHOWN]]
        if len(ranked) > _SHOWN:
            rows.append([f"{len(ranked) - _SHOWN} more columns", f"at most {ranked[_SHOWN][1]:.1%}"])
        rows.append(["all columns", f"{self.total_variance_removed:.1%}"])
        parts.append(text_table(["column", "variance removed"], rows))
        if self.stability is not None:
            parts.append(_stability_table(self.stability))
        return "\n\n".join(parts + ["\n".join(self.notes)] * bool(self.notes))


def _cell(measure: Measure) -> str:
    return f"{measure.value:.3f} [{measure.low:.3f}, {measure.high:.3f}]"


def _stability_table(stability: Stability) -> str:
    rows = [[measure.name, _cell(measure)] for measure in stability.angles[:_SHOWN]]
    table = text_table([f"{stability.n_resamples} bootstrap resamples", "radians"], rows)
    more = len(stability.angles) - _SHOWN
    low, high = stability.dims
    lines = [table] + [f"{more} more, all smaller"] * (more > 0)
    if (low, high) != (len(stability.angles),) * 2:
        lines.append(f"the resamples gave {low} to {high} directions")
    if stability.n_failed:
        lines.append(f"{stability.n_failed} more resamples could not be learned from")
    return "\n".join(lines)


# Columns whose standard deviation says little about how far apart people are: heavy tails, or a mass at one
# value.


# Half of the people have the same value, and the others more than one.
_MASS = 0.5
# A normal column has a standard deviation of 0.74 times the distance between its quartiles.
_NORMAL = 0.7413
_HEAVY = 3.0


def why_uneven(values: FloatArray) -> str | None:
    """Return why a standardised distance misleads in a column of numbers; None if it does not."""
    kinds, counts = np.unique(values, return_counts=True)
    if len(kinds) < 4:
        return None
    share = counts.max() / len(values)
    if share >= _MASS:
        return Message("diagnosis.one_value", share=round(float(share), 2))
    low, high = np.quantile(values, [0.25, 0.75])
    usual = _NORMAL * float(high - low)
    if usual > 0 and float(values.std()) > _HEAVY * usual:
        return Message("diagnosis.heavy", times=float(values.std()) / usual)
    return None


def uneven_columns(phi: FloatArray, where: ColumnPlaces) -> dict[str, str]:
    """Return the columns of numbers in which distances mislead, and why; not those with a scale of choice."""
    known = where.domain.columns_ if is_encoder(where.domain) else ()
    others = {c.name for c in known if c.kind == "categorical" or c.curve is not None}
    places = {name: block.start for name, block in where.columns.items() if name not in others}
    found = {name: why_uneven(np.asarray(phi[:, at], dtype=float)) for name, at in places.items()}
    return {name: why for name, why in found.items() if why is not None}


# Was the metric learned well? What of the attribute is left, what was removed, and how stable it is.


def diagnose(
    metric: Any,
    X: Any,
    attribute: Any,
    *,
    kind: str = "auto",
    learned_on: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    n_resamples: int = 30,
    folds: int = 5,
    max_rows: int | None = 10_000,
    random_state: RandomState = 0,
) -> Diagnosis:
    """Show what a fair metric still tells about an attribute, what it removed, and how stable it is.

    Parameters
    ----------
    metric : FairMetric or fitted learner
        With a learner the stability of its subspace is shown as well.
    X : array, tensor or frame of shape (n, p)
        Rows to look at; raw frames if the metric carries an encoder. Rows that the metric was not learned on
        give the honest number: on its own rows a projection looks a little better than it is.
    attribute : str, int or array of shape (n,)
        A column of X by name ("sex" is the whole group of its encoded columns) or by index, or values that are
        not a column of X. Rows without a value are left out. The attribute's own columns are kept from the
        probes, which would otherwise just read it; how much of them the metric leaves is in the notes.
    kind : {"auto", "categorical", "continuous", "count"}, default="auto"
        As in `AttributeSubspace`.
    learned_on : array, tensor or frame, optional
        Rows to resample for the stability, by default X. Best those that the learner was fitted on.
    fit_params : mapping, optional
        What else the learner's `fit` was given with those rows: ``{"sensitive_features": …}``,
        ``{"groups": …}``, ``{"pairs": …, "comparable": …}``.
    n_resamples : int, default=30
        Bootstrap resamples for the stability, one fit each; 0 leaves it out without a note.
    folds : int, default=5
        Of the cross-validation.
    max_rows : int or None, default=10_000
        At most so many rows are probed, drawn with the same shares of the categories; None takes all.
    random_state : int, numpy Generator or None, default=0
        Same seed, same diagnosis.

    Returns
    -------
    Diagnosis

    Notes
    -----
    Projection means removing ``metric.subspace``: a softened metric (weight > 0) is looked at as if its weight
    were 0. The probes see the projected rows in their original columns, to a hundredth of a column's spread.

    Columns of 0 and 1 survive a projection: who was at 1 can still be told from the shifted values, only not by a
    linear rule. So the boosted probe often finds nearly as much after the projection as before, and that is what
    a flexible model trained on projected rows will find too.

    Examples
    --------
    >>> from likewise.fair_metrics import AttributeSubspace
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> sex = X[:, 0] + X[:, 1] > 0
    >>> learner = AttributeSubspace().fit(X[:300], sex[:300])
    >>> found = diagnose(learner.metric_, X[300:], sex[300:])
    >>> bool(found.linear.before.value > 0.99), bool(found.linear.after.value < 0.7)
    (True, True)
    """
    check_integer(n_resamples, owner="diagnose", name="n_resamples", low=0)
    check_integer(folds, owner="diagnose", name="folds", low=2)
    if max_rows is not None:
        check_integer(max_rows, owner="diagnose", name="max_rows", low=10)
    if not isinstance(kind, str):
        raise bad_parameter("diagnose", "kind", "one kind as text", kind)
    learner = None if isinstance(metric, FairMetric) else metric
    metric = getattr(metric, "metric_", metric)
    if not isinstance(metric, FairMetric):
        raise bad_parameter(
            "diagnose",
            "metric",
            "a FairMetric or a fitted learner of one",
            type(metric).__name__,
            "Call fit first." if hasattr(metric, "fit") else "",
        )
    features, found = _read(metric, X, attribute)
    kind = resolve_kinds("diagnose", kind, [found])[0]
    target = make_target("diagnose", found, kind)
    classes = kind == "categorical"
    y = target.codes if classes else target.y[:, 0]
    before = features.phi[target.known].astype(float)
    free = metric.subspace
    after = before if free is None else to_numpy(free.remove(before))
    rng = numpy_generator(random_state)
    rows = choose_rows(y, classes=classes, folds=folds, max_rows=max_rows, rng=rng)
    # What the probes see before and after: the chosen rows without the attribute's own columns.
    kept = np.setdiff1d(np.arange(before.shape[1]), found.own)
    if not len(kept):
        raise InputError(
            f"diagnose: X has no columns besides the attribute {found.name!r}. Pass the others too."
        )
    views = [at_resolution(x[np.ix_(rows, kept)], before[:, kept]) for x in (before, after)]
    seed = spawn_seeds(rng, 1)[0]
    scored = partial(probe, classes=classes, folds=folds, seed=seed)
    probes = tuple(ProbeScores(name, *(scored(name, view, y[rows]) for view in views)) for name in PROBES)
    shares, total = _variance_removed(features.where, before, after)
    notes = _notes(metric, found, before, after)
    if probes[1].after.low > probes[0].after.high:
        notes.append(Message("diagnosis.boosted"))
    if min(shares.values()) < -1e-3:
        notes.append(Message("diagnosis.below_zero"))
    notes += _notes_on_space(features, metric, found)
    stability: Stability | None = None
    rows_learned, params, reason = _resampling(metric, learner, X, attribute, learned_on, fit_params)
    if n_resamples and not reason:
        stability = bootstrap_angles(learner, rows_learned, params, n_resamples, rng)
    elif n_resamples:
        notes.append(reason)
    return Diagnosis(
        attribute=str(found.name),
        kind=kind,
        score="AUC" if classes else "R²",
        n_rows=len(rows),
        n_folds=folds,
        dim=0 if free is None else free.dim,
        probes=probes,
        variance_removed=shares,
        total_variance_removed=total,
        stability=stability,
        notes=tuple(notes),
    )


def _read(metric: FairMetric, X: Any, attribute: Any) -> tuple[Features, Attribute]:
    """φ(X) with its names, and the values of the attribute; rows that lack a named attribute are left out."""
    named = isinstance(attribute, (str, int, np.integer)) and not isinstance(attribute, bool)
    frame = to_pandas(X, owner="diagnose", name="X") if is_frame(X) else None
    if frame is not None and isinstance(attribute, str):
        own = [c for c in frame.columns if c == attribute]
        own = own or [c for c in frame.columns if c.startswith(f"{attribute}_")]
        known = frame[own].notna().all(axis=1)
        if own and not known.any():
            raise InputError(
                f"diagnose: attribute {attribute!r} is missing in every row. At least some rows must know it."
            )
        frame = frame[known].reset_index(drop=True) if not known.all() else frame
    phi = np.asarray(to_numpy(metric.features(X if frame is None else frame)))
    names = metric.feature_names
    if names is None and frame is not None and frame.shape[1] == phi.shape[1]:
        names = tuple(frame.columns)
    where = ColumnPlaces("diagnose", phi.shape[1], names, metric.feature_map)
    features = Features(phi, where, metric.feature_map, frame, {})
    if named:
        return features, collect("diagnose", features, attribute, None, None)[0]
    if attribute is None:
        raise bad_parameter("diagnose", "attribute", "a column name, an index or values", None)
    values = to_numpy(attribute) if is_tensor(attribute) else attribute
    shape = np.shape(values)
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        allowed = "one attribute, one value per row"
        raise bad_parameter("diagnose", "attribute", allowed, f"shape {shape}")
    values = values if isinstance(values, (pd.Series, pd.DataFrame)) else np.asarray(values)
    found = collect("diagnose", features, None, None, values)[0]
    shown = found.name if isinstance(found.name, str) else "attribute"
    return features, Attribute(shown, found.values.reset_index(drop=True), found.own)


def _variance_removed(
    where: ColumnPlaces, before: FloatArray, after: FloatArray
) -> tuple[dict[str, float], float]:
    """Share of variance that the projection takes from every original column, and from all of them."""
    had, has = before.var(0), after.var(0)
    shares = {name: _share(float(had[at].sum()), float(has[at].sum())) for name, at in where.columns.items()}
    return shares, _share(float(had.sum()), float(has.sum()))


def _share(had: float, has: float) -> float:
    share = 1.0 - has / had if had > 0 else 0.0
    return 0.0 if abs(share) < 1e-12 else share


def _notes(metric: FairMetric, found: Attribute, before: FloatArray, after: FloatArray) -> list[str]:
    notes: list[str] = []
    if metric.subspace is None:
        notes.append(Message("diagnosis.no_subspace"))
    elif metric.weight is not None and metric.weight > 0:
        notes.append(Message("diagnosis.weight", weight=float(metric.weight)))
    if found.own:
        had, has = before[:, found.own].var(0).sum(), after[:, found.own].var(0).sum()
        left = 1.0 - _share(float(had), float(has))
        if left > 1e-6:
            notes.append(Message("diagnosis.still_seen", column=repr(found.name), share=float(left)))
    return notes


def _notes_on_space(features: Features, metric: FairMetric, found: Attribute) -> list[str]:
    """What to know of the distances themselves: a metric that takes nearly everything, columns that mislead."""
    notes: list[str] = []
    told = [
        i for name in metric.sensitive_features if features.where.has(name) for i in features.where.find(name)
    ]
    share = removed_share(features.phi.astype(float), metric.null_space, sorted({*found.own, *told}))
    if share > MOST:
        free, directions = metric.null_space.dim, metric.n_features
        whole = round(float(share), 2)
        notes.append(Message("diagnosis.removed_variance", share=whole, free=free, directions=directions))
    for name, why in uneven_columns(features.phi, features.where).items():
        notes.append(Message("diagnosis.uneven", column=repr(name), why=why))
    return notes


def _resampling(
    metric: FairMetric, learner: Any, X: Any, attribute: Any, learned_on: Any, fit_params: Any
) -> tuple[Any, Mapping[str, Any], str]:
    """Rows and parameters to learn from again, or the reason why there is no stability to show."""
    rows = X if learned_on is None else learned_on
    if learner is None:
        return rows, {}, Message("diagnosis.needs_learner")
    if metric.subspace is None:
        return rows, {}, Message("diagnosis.no_stability")
    if fit_params is not None or not get_tags(learner).target_tags.required:
        return rows, fit_params or {}, ""
    if isinstance(learner, AttributeSubspace) and learned_on is None and np.ndim(attribute):
        # An attribute that is not a column of X is what the learner was fitted with.
        return rows, {"sensitive_features": attribute}, ""
    return rows, {}, Message("diagnosis.needs_params")
