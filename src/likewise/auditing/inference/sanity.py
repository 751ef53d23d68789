"""What has to be right before a verdict: do the model and the table belong together, and is the question trivial.

A model fitted on z-scores and asked about a raw table answers, and its answers prove nothing about anybody. A model that
does not read a column cannot be moved by it, whatever it does with its proxies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import softmax

from likewise.auditing.dual.frontier import Floats
from likewise.core.errors import InputError, LikewiseError
from likewise.core.frames import is_frame
from likewise.core.messages import Message
from likewise.counterfactuals.edits import edited_columns
from likewise.models.matching import MissingCellsModel
from likewise.models.model import TableModel, select_columns
from likewise.models.table_features import is_table_pipeline, read_table_features
from likewise.models.tree_ensemble import TreeEnsemble, read_trees

if TYPE_CHECKING:
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.results.effects import SensitiveSums

FindingKind = Literal["unstable", "units", "one class", "guessing", "unread"]

# A column tells of its units if the model cuts it at so many places and the table has so many values of it.
_CUTS, _VALUES = 3, 10
# Standard deviations from a scaler's mean beyond which nobody of a table is expected to be, let alone everybody.
_FAR = 5.0
# Share of people with one decision, and the share of that label up to which labels do not look like that.
_NEARLY_ALL, _NOT_ALL = 0.995, 0.95
# People of a class below which nothing is said about it.
_FEW = 10
# Standard errors that are chance (one-sided 5%), and those that are not, with the least share of the loss.
_CHANCE, _CLEAR, _MARGIN = 1.645, 3.0, 0.25
# Balanced accuracy that people enough can tell from chance, and an error of a mean probability that is large.
_TELLS, _OFF = 0.05, 0.1
# Balanced accuracy above chance that is hardly any, for a model with so many times the loss of the shares.
_HARDLY, _TIMES = 0.15, 3.0
_LEAST = 1e-12


@dataclass(frozen=True)
class Finding:
    """Something that a reader has to know before any number of an audit.

    Parameters
    ----------
    kind : {"unstable", "units", "one class", "guessing", "unread"}
        The model does not give the same answer twice; the table lies outside of all that the model distinguishes; nearly everybody gets one decision; the model is
        worse than a constant on the labels; the model does not read a sensitive column.
    sentence : str
        In words.
    columns : tuple of str
        The columns it is about, if it is about columns.
    """

    kind: FindingKind
    sentence: str
    columns: tuple[str, ...] = ()

    @property
    def blocks(self) -> bool:
        """Whether nothing can be concluded from the audit until this is settled."""
        return self.kind != "unread"


def check_before_verdict(problem: AuditProblem, asked: SensitiveSums | None = None) -> tuple[Finding, ...]:
    """Look for reasons not to believe an audit, or to call its answer trivial.

    A column is called unread if the model was asked about everybody with other values of it and nothing changed, and
    besides either these were all values that exist, or the splits or weights of the model do not use the column.
    `asked` is what was found by asking; by default that is done here.
    """
    from likewise.auditing.results.effects import SensitiveSums
    from likewise.auditing.results.sensitive import enumerate_sensitive

    read = _read_model(problem)
    found = [*_units(problem, read), *_labels(problem)]
    if not problem.repeats:
        found.insert(0, Finding("unstable", Message("gate.unstable")))
    if asked is None:
        found_by_asking = enumerate_sensitive(problem)
        asked = None if found_by_asking is None else SensitiveSums.of(found_by_asking)
    absent = _absent(problem)
    told: dict[str, list[str]] = {"gate.unread": [*absent], "gate.unmoved": []}
    for column in _sensitive_columns(problem):
        name, reads = str(column), _reads(problem, read, column)
        still = asked is None or name in asked.unmoved
        if reads is False and still:
            told["gate.unread"].append(name)
        elif reads is None and asked is not None and still and asked.telling:
            told["gate.unmoved"].append(name)
    found += [
        Finding("unread", Message(key, columns=names), tuple(names)) for key, names in told.items() if names
    ]
    return tuple(found)


# ---- units -----------------------------------------------------------------------------------------------


def far_from_range(cuts: Any, values: Any) -> bool:
    """Whether the places where a model cuts a column lie far from all the values that a table has of it.

    True if no cut separates any two people, and the way from the table's range to the nearest cut is longer than
    that range or than the range of the cuts, whichever is shorter. Columns with few cuts or few values tell nothing.
    """
    places = np.unique(np.asarray(cuts, dtype=np.float64))
    places = places[np.isfinite(places)]
    if len(places) < _CUTS:
        return False
    known = np.asarray(values, dtype=np.float64)
    known = np.unique(known[np.isfinite(known)])
    if len(known) < _VALUES:
        return False
    away = max(known[0] - places[-1], places[0] - known[-1])
    return bool(away > min(known[-1] - known[0], places[-1] - places[0]))


def _units(problem: AuditProblem, read: _ReadModel | None) -> Iterator[Finding]:
    if read is not None:
        cut = tuple(dict.fromkeys(name for name, cuts, values in read.cuts() if far_from_range(cuts, values)))
        if cut:
            yield Finding("units", Message("gate.thresholds", columns=list(cut)), cut)
    far = tuple(
        name
        for name, values in _scaled_columns(problem)
        if len(np.unique(values)) >= _VALUES and np.nanmin(np.abs(values)) > _FAR
    )
    if far:
        yield Finding("units", Message("gate.scaler", columns=list(far), far=_FAR), far)


@dataclass(frozen=True, eq=False)
class _ReadModel:
    """A tree ensemble that was read, and the rows as its features see them."""

    trees: TreeEnsemble
    columns: Sequence[str]
    rows: Any
    traced: bool = True

    def cuts(self) -> Iterator[tuple[str, Floats, Floats]]:
        """Yield the column, the thresholds and the people's values of each feature that is split as a number."""
        trees = self.trees
        splits = (trees.left >= 0) & (trees.last == trees.first)
        for feature in np.unique(trees.feature[splits]):
            cuts = trees.threshold[splits & (trees.feature == feature)]
            values = self._values(int(feature)) if len(cuts) >= _CUTS else None
            if values is not None:
                yield self.columns[feature], cuts, values

    def reads(self, column: str) -> bool:
        """Whether any tree splits by a column."""
        used = np.unique(self.trees.feature[self.trees.left >= 0])
        return any(self.columns[feature] == column for feature in used)

    def _values(self, feature: int) -> Floats | None:
        if is_frame(self.rows):
            series = self.rows.iloc[:, feature]
            return np.asarray(series, dtype=np.float64) if series.dtype.kind in "biuf" else None
        part: Any = self.rows[:, [feature]]
        return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64).ravel()


def _read_model(problem: AuditProblem) -> _ReadModel | None:
    """Read the trees of the model; None if it has none that can be read."""
    place = problem.coordinates
    model, rows = place.model, problem.X
    try:
        if place.takes == "own":
            own = tuple(column.name for column in model.encoder.columns_)
            if place.encoding is None or tuple(place.encoding.names) != own:
                return None
            return _ReadModel(
                read_trees(model), _owners(model.encoder.columns_), place.encoded_for_model(rows)
            )
        if place.takes == "encoded" and place.encoding is not None:
            return _ReadModel(read_trees(model), _owners(place.encoding.columns), rows)
        model, rows = _unwrapped(model, place.for_model(problem.rows))
        estimator = getattr(model, "estimator", None)
        if is_table_pipeline(estimator):
            return _behind_pipeline(estimator, rows, place.encoding)
        trees = read_trees(model)
        names = [str(name) for name in rows.columns] if is_frame(rows) else None
        names = names or [str(name) for name in (model.feature_names or range(trees.n_features))]
        return _ReadModel(trees, names, rows) if len(names) == trees.n_features else None
    except LikewiseError:
        return None


def _unwrapped(model: Any, rows: Any) -> tuple[Any, Any]:
    """The model inside of what shows it a table, and the rows that it gets."""
    while isinstance(model, (MissingCellsModel, TableModel)):
        if isinstance(model, MissingCellsModel):
            rows = model.missing.restored(rows)
        else:
            rows = select_columns(rows, model.feature_names, owner="audit")
        model = model.inner
    return model, select_columns(rows, model.feature_names, owner="audit") if is_frame(rows) else rows


def _behind_pipeline(pipeline: Any, rows: Any, encoding: Any) -> _ReadModel:
    trees = read_trees(pipeline.steps[-1][1])
    seen = pipeline[:-1].transform(rows)
    try:
        features = read_table_features(pipeline, _categories(encoding))[1]
    except InputError:
        return _ReadModel(trees, _feature_names(pipeline[:-1], trees.n_features), seen, traced=False)
    return _ReadModel(trees, [feature.column for feature in features], seen)


def _feature_names(steps: Any, n_features: int) -> list[str]:
    try:
        return [str(name).rpartition("__")[2] for name in steps.get_feature_names_out()]
    except (AttributeError, ValueError):  # some step does not name what it makes
        return [f"x{number}" for number in range(n_features)]


def _scaled_columns(problem: AuditProblem) -> Iterator[tuple[str, Floats]]:
    """Numbers of the table in the units of the model's own scaler: its encoder's, or that of a pipeline."""
    place = problem.coordinates
    if not place.raw:
        return
    if place.takes == "own" and place.model.encoder is not None:
        for column in place.model.encoder.columns_:
            if column.kind != "categorical" and column.name in problem.rows:
                yield column.name, column.place(np.asarray(problem.rows[column.name], dtype=np.float64))
        return
    model, rows = _unwrapped(place.model, place.for_model(problem.rows))
    estimator = getattr(model, "estimator", None)
    if not is_table_pipeline(estimator) or not is_frame(rows):
        return
    try:
        features = read_table_features(estimator, _categories(place.encoding))[1]
    except InputError:
        return
    for feature in features:
        if feature.answers is None and (feature.mean, feature.scale) != (0.0, 1.0):
            values = np.asarray(rows[feature.column], dtype=np.float64)
            yield feature.column, (values - feature.mean) / feature.scale


def _categories(encoding: Any) -> dict[str, Sequence[Any]]:
    return {} if encoding is None else {c.name: c.categories for c in encoding.columns if c.categories}


def _owners(columns: Iterable[Any]) -> list[str]:
    return [column.name for column in columns for _ in range(column.stop - column.start)]


# ---- labels ----------------------------------------------------------------------------------------------


def one_class(
    decided: Any, target: Any, probability: Any = None, *, loss: Any = None, constant: Any = None
) -> tuple[int, float, float] | None:
    """Return the class that nearly everybody gets although the labels do not look like that.

    A weak model may give everybody the most frequent class with good reason; then its mean probability of that class
    is about the class's share of the labels. If another class is clearly more frequent, one decision for everybody may
    come from the threshold, of a model whose probabilities are better than the same ones for everybody; else nothing
    speaks for it.
    """
    kinds, counts = np.unique(decided, return_counts=True)
    top, n = int(kinds[counts.argmax()]), len(decided)
    share, labelled = float(counts.max() / n), float((np.asarray(target) == top).mean())
    if share < _NEARLY_ALL or labelled > _NOT_ALL or n * (1.0 - labelled) < _FEW:
        return None
    believed = 1.0 if probability is None else float(np.asarray(probability)[:, top].mean())
    doubted = believed > (1.0 + labelled) / 2.0
    if loss is not None and np.mean(loss) >= np.mean(constant):
        most = float(np.unique(target, return_counts=True)[1].max() / n)
        # The variance of a difference of two shares of the same people is at most their sum over the number of people.
        doubted |= most - labelled > _CLEAR * float(np.sqrt((most + labelled) / n))
    return (top, share, labelled) if doubted else None


def worse_than_guessing(
    decided: Any, target: Any, loss: Any, constant: Any, probability: Any = None
) -> tuple[float, float, float] | None:
    """Return balanced accuracy and both mean losses if the model is worse than one answer for everybody.

    Decisions that are right clearly less often, class by class, than by chance are those of a model that knows the
    labels by other names. Else everything has to speak against it: decisions that are right no more often than by
    chance, with people enough to tell, or hardly more often at several times the loss; a mean loss clearly above that
    of the labels' own shares; and mean probabilities that are not those shares. A model may be certain of itself and
    often right, or weak and careful; that is not a sign that it was not made for these people.
    """
    decided, target = np.asarray(decided), np.asarray(target)
    kinds, counts = np.unique(target, return_counts=True)
    least = 1.0 / len(kinds)
    kinds, counts = kinds[counts >= _FEW], counts[counts >= _FEW]
    if len(kinds) < 2:
        return None
    above = float(np.mean([(decided[target == kind] == kind).mean() for kind in kinds])) - 1.0 / len(kinds)
    # The variance of a share is at most 1/4 over the number of people.
    chance = _CHANCE * float(np.sqrt((0.25 / counts).sum())) / len(kinds)
    guessing = above <= chance and (above < -chance or chance <= _TELLS)
    mean, guessed = float(np.mean(loss)), float(np.mean(constant))
    off = probability is None or _mean_is_off(np.asarray(probability), target)
    if probability is not None:
        guessing = guessing or (above < _HARDLY and mean > _TIMES * guessed)
    right = above + 1.0 / len(kinds)
    reversed_ = right < least - max(_TELLS, _CLEAR / _CHANCE * chance) and mean > guessed
    doubted = guessing and off and _clearly_above(np.asarray(loss), np.asarray(constant))
    return (right, mean, guessed) if reversed_ or doubted else None


def _mean_is_off(probability: Floats, target: Any) -> bool:
    """Whether some class's mean probability is far from its share of the labels."""
    excess = probability - (np.asarray(target)[:, None] == np.arange(probability.shape[1]))
    error = excess.std(axis=0) / np.sqrt(len(excess))
    return bool((np.abs(excess.mean(axis=0)) > np.maximum(_OFF, _CLEAR * error)).any())


def _clearly_above(loss: Floats, constant: Floats, margin: float = _MARGIN) -> bool:
    excess = loss - constant
    error = float(excess.std(ddof=1)) / np.sqrt(len(excess)) if len(excess) > 1 else np.inf
    return bool(excess.mean() > max(margin * constant.mean(), _CLEAR * error))


def _labels(problem: AuditProblem) -> Iterator[Finding]:
    model = problem.coordinates.model
    target = problem.target
    if not problem.decides:
        residual, spread = (np.square(target - centre) for centre in (problem.decisions, target.mean()))
        # Twice the spread of the labels: no model that was fitted on such people errs that much.
        if problem.n >= _FEW and _clearly_above(residual, spread, margin=1.0):
            said = Message("gate.guessing_number", error=float(residual.mean()), guess=float(spread.mean()))
            yield Finding("guessing", said)
        return
    decided = problem.decided
    counts = np.bincount(target) / problem.n
    probability: Floats | None = None
    loss, constant = (decided != target).astype(np.float64), (counts.argmax() != target).astype(np.float64)
    if model.loss.wants not in ("scores", "decisions"):
        probability = problem.outputs if model.gives_probabilities else softmax(problem.outputs, axis=1)
        own = probability[np.arange(problem.n), target]
        loss, constant = -np.log(np.maximum(own, _LEAST)), -np.log(counts[target])
    alone = one_class(decided, target, probability, loss=loss, constant=constant)
    if alone is not None:
        top, share, labelled = alone
        name = str(model.classes_[top]) if model.classes_ is not None else str(top)
        yield Finding("one class", Message("gate.one_class", name=name, share=share, labelled=labelled))
    worse = worse_than_guessing(decided, target, loss, constant, probability)
    if worse is not None:
        right, mean, guessed = worse
        key = "gate.guessing" if probability is not None else "gate.guessing_errors"
        yield Finding("guessing", Message(key, accuracy=right, loss=mean, guess=guessed))


# ---- columns that are not read ---------------------------------------------------------------------------


def _sensitive_columns(problem: AuditProblem) -> tuple[Any, ...]:
    """The edited columns that were called sensitive and may change."""
    fixed = problem.coordinates.fixed_names()
    return tuple(name for name in edited_columns(problem.sensitive_edits) if name not in fixed)


def _absent(problem: AuditProblem) -> tuple[str, ...]:
    """Columns that the metric was told of and that are not in the table that the model gets."""
    place = problem.coordinates
    known = {*(place.encoding.names if place.encoding else ()), *getattr(problem.rows, "columns", ())}
    return tuple(name for name in place.metric.sensitive_features if known and name not in known)


def _reads(problem: AuditProblem, read: _ReadModel | None, column: Any) -> bool | None:
    """Whether the model reads a column, by its splits or weights; None if these cannot be read."""
    if read is not None and read.traced:
        return read.reads(str(column))
    place = problem.coordinates
    form = place.linear_form()
    own = (
        next((one for one in place.encoding.columns if one.name == column), None) if place.encoding else None
    )
    if form is None or own is None:
        return None
    weights = form[0][:, own.start : own.stop]
    # Weights that are the same for every class decide nothing.
    return bool((weights != weights[:1]).any() if len(weights) > 1 else (weights != 0).any())
