"""What has to be right before a verdict: do the model and the table belong together, and is the question trivial.

A model fitted on z-scores and asked about a raw table answers, and its answers prove nothing about anybody. A model that
does not read a column cannot be moved by it, whatever it does with its proxies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import softmax

from likewise.core.checks import FloatArray
from likewise.core.errors import InputError, LikewiseError
from likewise.core.frames import is_frame
from likewise.core.messages import Message
from likewise.core.plain import plain_cell
from likewise.counterfactuals.edits import edited_columns
from likewise.models.boosted import lightgbm_categories, xgboost_categories
from likewise.models.matching import MissingCellsModel
from likewise.models.model import OneHotModel, TableModel, select_columns
from likewise.models.table_features import column_positions, is_table_pipeline, read_table_features
from likewise.models.tree_ensemble import TreeEnsemble, read_trees

if TYPE_CHECKING:
    from likewise.auditing.people import AuditedPeople
    from likewise.auditing.results.effects import SensitiveSums

# What a fitted model knows of a table's columns: categories of its encoders, units of its scalers, thresholds of its trees.


Scale = Callable[[FloatArray], FloatArray]

# A column tells of its units if the model cuts it at so many places.
FEWEST_CUTS = 3
# Wrappers whose parts get the same columns as they do.
_PARTS = ("best_estimator_", "estimator_", "estimator", "estimators_", "calibrated_classifiers_")


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """What could be read off a model, by column of the rows that it gets.

    Parameters
    ----------
    rows : DataFrame, array or None
        The people as the model gets them.
    categories : dict
        All values of a column that some encoder knows.
    scaled : dict
        Functions from a column's numbers to the units of the scaler that has learned them: 0 is the centre, 1 the spread.
    inputs : frozenset of str or None
        The columns that the model, behind its steps, can depend on; None if that is not known.
    trees : ReadTrees or None
    """

    rows: Any
    categories: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    scaled: dict[str, Scale] = field(default_factory=dict)
    inputs: frozenset[str] | None = None
    trees: ReadTrees | None = None

    def cells(self, column: str) -> Any:
        """The people's values of a column, without missing cells; None if they do not have it."""
        return self.rows[column].dropna() if is_frame(self.rows) and column in self.rows else None

    def reads(self, problem: AuditedPeople, column: Any) -> bool | None:
        """Whether the model reads a column, by its inputs, splits or weights; None if these cannot be read."""
        if self.inputs is not None and str(column) not in self.inputs:
            return False
        if self.trees is not None and self.trees.traced:
            used = np.unique(self.trees.trees.feature[self.trees.trees.left >= 0])
            return str(column) in {self.trees.columns[feature] for feature in used}
        place = problem.coordinates
        form = place.linear_form()
        own = next((one for one in getattr(place.encoding, "columns", ()) if one.name == column), None)
        return None if form is None or own is None else _weighs(form[0][:, own.start : own.stop])


def _weighs(weights: FloatArray) -> bool:
    """Whether some weight, of one score or several, matters: those that are the same for every class decide nothing."""
    return bool((weights != weights[:1]).any() if len(weights) > 1 else (weights != 0).any())


def known_columns(problem: AuditedPeople) -> KnownColumns:
    """Read what a model knows of its columns, as far as that can be read."""
    place = problem.coordinates
    trees: ReadTrees | None = None
    with suppress(LikewiseError):
        trees = _read_trees(problem)
    if place.takes == "own" and place.model.encoder is not None:
        if not place.raw:
            return KnownColumns(None, trees=trees)
        scaled = {one.name: one.place for one in place.model.encoder.columns_ if one.kind != "categorical"}
        return KnownColumns(problem.rows, scaled=scaled, trees=trees)
    try:
        model, rows = _unwrapped(place.model, place.for_model(problem.rows))
    except LikewiseError:
        return KnownColumns(None, trees=trees)
    if not is_frame(rows) or not place.raw:
        return KnownColumns(None, trees=trees)
    names: list[str | None] = [str(name) for name in rows.columns]
    everything, found = frozenset(str(name) for name in names), _Followed()
    inputs: frozenset[str] | None = None
    with suppress(Exception):  # steps of other libraries may raise anything when they are looked into
        inputs = found.through(getattr(model, "estimator", None), (names, everything))[1]
        form = model.linear_form()
        if form is not None and form[0].shape[1] == len(names):
            inputs &= {str(name) for i, name in enumerate(names) if _weighs(form[0][:, i])}
    return KnownColumns(rows, found.categories, found.scaled, inputs, trees)


# ---- encoders and scalers --------------------------------------------------------------------------------

# Which untouched column each feature is (None: none is), and all columns that the features are made of. The list is None
# if it is not known which feature is which.
_Features = tuple[list[str | None] | None, frozenset[str]]


class _Followed:
    """Follows columns through fitted steps; a step of an unknown kind ends what is known of its output."""

    def __init__(self) -> None:
        self.categories: dict[str, tuple[Any, ...]] = {}
        self.scaled: dict[str, Scale] = {}

    def through(self, step: Any, features: _Features) -> _Features:
        """Return the features behind a step, and remember what the step knows of columns."""
        names, made_of = features
        if hasattr(step, "steps"):
            for _, part in step.steps:
                features = self.through(part, features)
            return features if _is_plain(step) else (None, made_of)
        if hasattr(step, "transformers_"):
            return self._columns(step, features)
        if step is None or isinstance(step, str) or getattr(step, "func", step) is None:
            return features
        for _, part in getattr(step, "transformer_list", ()):
            self.through(part, features)
        for name in _PARTS:
            # The fitted models inside of a wrapper.
            inner = getattr(step, name, None)
            listed = list(np.ravel(inner)) if isinstance(inner, np.ndarray) else inner
            for part in listed if isinstance(listed, list) else [listed]:
                if hasattr(part, "get_params") or hasattr(part, "estimator"):
                    self.through(part, features)
        if names is not None:
            self._learn(step, names)
        return _untouched(step, names), made_of

    def _columns(self, step: Any, features: _Features) -> _Features:
        """A ColumnTransformer: every part gets the columns that it names."""
        names, made_of = features
        outputs = list(getattr(step, "output_indices_", {}).items())
        behind: list[str | None] = [None] * max((place.stop for _, place in outputs), default=0)
        used: frozenset[str] = frozenset()
        for name, part, chosen in step.transformers_:
            if isinstance(part, str) and part == "drop":
                continue
            mine, own = None, made_of
            if names is not None:
                try:
                    mine = [names[i] for i in column_positions(chosen, [str(one) for one in names])]
                except (ValueError, IndexError, TypeError):
                    mine = None
            if mine is not None and all(one is not None for one in mine):
                own = frozenset(str(one) for one in mine)
            found, own = self.through(part, (mine, own))
            used |= own
            place = dict(outputs).get(name)
            if found is not None and place is not None and len(found) == place.stop - place.start:
                behind[place] = found
        return (behind, used) if _is_plain(step) else (None, made_of)

    def _learn(self, step: Any, names: list[str | None]) -> None:
        for place, known in _categories(step, names):
            name = names[place] if place < len(names) else None
            if name is not None:
                self.categories[name] = (*self.categories.get(name, ()), *known)
        centre, spread = _units_of_scalers(step)
        if centre is not None and len(centre) == len(names):
            for name, at, width in zip(names, centre, spread, strict=True):
                if name is not None and np.isfinite([at, width]).all() and width > 0:
                    self.scaled[name] = partial(_standardised, float(at), float(width))


def _is_plain(step: Any) -> bool:
    """Whether a step is scikit-learn's own, and so looks at nothing but what its parts get."""
    return type(step).__module__.startswith("sklearn.")


def _standardised(centre: float, spread: float, values: FloatArray) -> FloatArray:
    return (values - centre) / spread


def _categories(step: Any, names: list[str | None]) -> Iterator[tuple[int, Sequence[Any]]]:
    """The values that an encoder, or a boosted model with categories of its own, knows of each feature."""
    lists = getattr(step, "categories_", None)
    if isinstance(lists, list):
        yield from enumerate(list(part) for part in lists)
    if getattr(step, "_preprocessor", None) is not None and hasattr(step, "is_categorical_"):
        own = step._preprocessor.named_transformers_["encoder"].categories_
        yield from zip(np.flatnonzero(step.is_categorical_).tolist(), map(list, own), strict=False)
    known: dict[str, list[Any]] = {}
    if hasattr(step, "get_booster"):
        known = xgboost_categories(step.get_booster())
    elif hasattr(step, "booster_") and step.booster_.pandas_categorical:
        known = lightgbm_categories(step.booster_, step.booster_.model_to_string(num_iteration=1))
    for name, values in known.items():
        if name in names:
            yield names.index(name), values


def _units_of_scalers(step: Any) -> tuple[Any, Any]:
    """Centre and spread of each feature as a scaler learned them."""
    if getattr(step, "mean_", None) is not None and getattr(step, "var_", None) is not None:
        return np.ravel(step.mean_), np.sqrt(np.ravel(step.var_))
    if getattr(step, "center_", None) is not None and getattr(step, "scale_", None) is not None:
        return np.ravel(step.center_), np.ravel(step.scale_)
    low, high = getattr(step, "data_min_", None), getattr(step, "data_max_", None)
    if getattr(step, "max_abs_", None) is not None:
        low, high = -step.max_abs_, step.max_abs_
    elif getattr(step, "quantiles_", None) is not None:
        low, high = step.quantiles_[0], step.quantiles_[-1]
    elif getattr(step, "bin_edges_", None) is not None:
        low, high = (np.array([part[end] for part in step.bin_edges_]) for end in (0, -1))
    if low is None or high is None:
        return None, None
    return (np.ravel(low) + np.ravel(high)) / 2.0, (np.ravel(high) - np.ravel(low)) / 2.0


def _untouched(step: Any, names: list[str | None] | None) -> list[str | None] | None:
    """The features behind a step that are columns as they were."""
    if names is None or hasattr(step, "fit_resample"):
        return names
    if hasattr(step, "statistics_"):
        # An imputer leaves columns out that it has seen no value of, and may add some.
        adds = getattr(step, "add_indicator", False) or any(value != value for value in step.statistics_)
        return None if adds else names
    if hasattr(step, "get_support"):
        return [name for name, kept in zip(names, step.get_support(), strict=True) if kept]
    same = _units_of_scalers(step)[0] is not None and not hasattr(step, "bin_edges_")
    return [None] * len(names) if same or type(step).__name__ == "OrdinalEncoder" else None


# ---- trees -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReadTrees:
    """A tree ensemble that was read, and the rows as its features see them."""

    trees: TreeEnsemble
    columns: Sequence[str]
    rows: Any
    traced: bool = True

    def cuts(self) -> Iterator[tuple[str, FloatArray, FloatArray]]:
        """Yield the column, the thresholds and the people's values of each feature that is split as a number."""
        trees, rows = self.trees, self.rows
        if hasattr(rows, "tocsc"):
            rows = rows.tocsc()
        splits = (trees.left >= 0) & (trees.last == trees.first)
        for feature in np.unique(trees.feature[splits]):
            cuts = np.unique(trees.threshold[splits & (trees.feature == feature)])
            if len(cuts) < FEWEST_CUTS:
                continue
            part: Any = rows.iloc[:, feature] if is_frame(rows) else rows[:, [feature]]
            if is_frame(rows) and part.dtype.kind not in "biuf":
                continue
            values = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
            yield self.columns[feature], cuts, values.ravel()


def _read_trees(problem: AuditedPeople) -> ReadTrees | None:
    """Read the trees of the model; None, or an error, if it has none that can be read."""
    place = problem.coordinates
    model = place.model
    if place.takes == "own":
        own = tuple(column.name for column in model.encoder.columns_)
        if place.encoding is None or tuple(place.encoding.names) != own:
            return None
        return ReadTrees(
            read_trees(model), _owners(model.encoder.columns_), place.encoded_for_model(problem.X)
        )
    if place.takes == "encoded" and place.encoding is not None:
        return ReadTrees(read_trees(model), _owners(place.encoding.columns), problem.X)
    model, rows = _unwrapped(model, place.for_model(problem.rows))
    if isinstance(model, OneHotModel):
        return ReadTrees(read_trees(model.inner), model.encoding.owners(), model.encoding.encode(rows))
    estimator: Any = getattr(model, "estimator", None)
    if is_table_pipeline(estimator):
        trees, seen = read_trees(estimator.steps[-1][1]), estimator[:-1].transform(rows)
        columns = getattr(place.encoding, "columns", ())
        try:
            features = read_table_features(
                estimator, {one.name: one.categories for one in columns if one.categories}
            )
            return ReadTrees(trees, [feature.column for feature in features[1]], seen)
        except InputError:
            made = [f"x{number}" for number in range(trees.n_features)]
            with suppress(AttributeError, ValueError):  # some step does not name what it makes
                made = [str(name).rpartition("__")[2] for name in estimator[:-1].get_feature_names_out()]
            return ReadTrees(trees, made, seen, traced=False)
    trees = read_trees(model)
    names = [str(name) for name in rows.columns] if is_frame(rows) else None
    names = names or [str(name) for name in (model.feature_names or range(trees.n_features))]
    return ReadTrees(trees, names, rows) if len(names) == trees.n_features else None


def _unwrapped(model: Any, rows: Any) -> tuple[Any, Any]:
    """The model inside of what shows it a table, and the rows that it gets."""
    while isinstance(model, (MissingCellsModel, TableModel)):
        if isinstance(model, MissingCellsModel):
            rows = model.missing.restored(rows)
        else:
            rows = select_columns(rows, model.feature_names, owner="audit")
        model = model.inner
    return model, select_columns(rows, model.feature_names, owner="audit") if is_frame(rows) else rows


def _owners(columns: Iterable[Any]) -> list[str]:
    return [column.name for column in columns for _ in range(column.stop - column.start)]


FindingKind = Literal[
    "unstable",
    "units",
    "values",
    "one class",
    "guessing",
    "same",
    "encoding",
    "unread",
    "unmoved",
    "recorded",
]
_SAID: tuple[FindingKind, ...] = ("same", "encoding", "unread", "unmoved", "recorded")

# A column tells of its units if the table has so many values of it.
_VALUES = 10
# Spreads from a scaler's centre beyond which most people are not expected to be, and the range of a whole table that is
# hardly a place on its scale.
_FAR, _NARROW = 5.0, 0.05
# Share of people up to which values of a sensitive column, or of another one, may be new to the model; values that are shown.
_NEW, _MOST_NEW, _SHOWN = 0.05, 0.5, 6
# Share of people with one decision, and the share of that label up to which labels do not look like that.
_NEARLY_ALL, _NOT_ALL = 0.995, 0.95
# Share of a label below which one probability for everybody is that of no fitted model, and what is one probability.
_BALANCED, _FLAT = 0.75, 1e-6
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
    kind : {"unstable", "units", "values", "one class", "guessing", "same", "encoding", "unread", "unmoved", "recorded"}
        The model does not give the same answer twice; the table lies outside of all that the model distinguishes; it does
        not know the table's values; nearly everybody gets one decision, and the labels differ; the model is worse than a
        constant on the labels; everybody gets one decision, whatever the sensitive columns are; nothing says how a table
        becomes the numbers that the model takes; the model does not read a sensitive column; no answer about these people depends on one; the result was read from a file.
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
        return self.kind not in _SAID


def check_before_verdict(problem: AuditedPeople, asked: SensitiveSums | None) -> tuple[Finding, ...]:
    """Look for reasons not to believe an audit, or to call its answer trivial; `asked` is what asking found."""
    known = known_columns(problem)
    found = [*_values(problem, known), *_units(known), *_labels(problem)]
    if not problem.repeats:
        found.insert(0, Finding("unstable", Message("gate.unstable")))
    if found:
        # Nothing else is worth saying about a model and a table that do not belong together.
        return tuple(found)
    return (*_unread(problem, known, asked), *_same(problem, asked))


# ---- values ----------------------------------------------------------------------------------------------


def _values(problem: AuditedPeople, known: KnownColumns) -> Iterator[Finding]:
    """Values of the table that the model's encoders do not know, so that it takes them all for the same.

    A rare new value of an honest table is none of this: two values of a sensitive column have to be known, and nearly
    everybody's; of another column those of half of the people.
    """
    sensitive = {str(name) for name in _sensitive_columns(problem)}
    for column, values in known.categories.items():
        cells = known.cells(column)
        if cells is None or not len(cells):
            continue
        listed = {value for value in values if value == value}
        here = cells.unique().tolist()
        new = [value for value in here if value not in listed]
        if column in sensitive:
            wrong = bool(new) and (len(here) - len(new) < 2 or float(cells.isin(new).mean()) > _NEW)
        else:
            wrong = float(cells.isin(new).mean()) > _MOST_NEW and len(here) <= len(cells) / 2
        if wrong:
            said = Message("gate.values", column=column, new=_quoted(new), known=_quoted(listed))
            yield Finding("values", said, (column,))


def _quoted(values: Collection[Any]) -> list[str]:
    shown = [repr(plain_cell(value)) for value in sorted(values, key=str)[:_SHOWN]]
    return [*shown, "…"] if len(values) > _SHOWN else shown


# ---- units -----------------------------------------------------------------------------------------------


def far_from_range(cuts: Any, values: Any) -> bool:
    """Whether the places where a model cuts a column lie far from all the values that a table has of it.

    True if no cut separates any two people, and the way from the table's range to the nearest cut is longer than
    that range or than the range of the cuts, whichever is shorter. Columns with few cuts or few values tell nothing.
    """
    places = np.unique(np.asarray(cuts, dtype=np.float64))
    places = places[np.isfinite(places)]
    if len(places) < FEWEST_CUTS:
        return False
    known = np.asarray(values, dtype=np.float64)
    known = np.unique(known[np.isfinite(known)])
    if len(known) < _VALUES:
        return False
    away = max(known[0] - places[-1], places[0] - known[-1])
    return bool(away > min(known[-1] - known[0], places[-1] - places[0]))


def _units(known: KnownColumns) -> Iterator[Finding]:
    cut = () if known.trees is None else known.trees.cuts()
    far = tuple(dict.fromkeys(name for name, cuts, values in cut if far_from_range(cuts, values)))
    if far:
        yield Finding("units", Message("gate.thresholds", columns=list(far)), far)
    # Most people too far from a scaler's centre, or all of them at one place of its scale.
    far = ()
    for name, scale in known.scaled.items():
        try:
            values = scale(np.asarray(known.cells(name), dtype=np.float64))
        except (TypeError, ValueError):
            continue
        away = np.abs(values)
        if len(np.unique(values)) >= _VALUES and (
            np.median(away) > _FAR or (np.ptp(values) < _NARROW and away.min() > 1.0)
        ):
            far = (*far, name)
    if far:
        yield Finding("units", Message("gate.scaler", columns=list(far), far=_FAR), far)


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
    if probability is not None and labelled < _BALANCED:
        # The very same probability for everybody.
        doubted |= bool(np.ptp(np.asarray(probability)[:, top]) < _FLAT)
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
    off = True
    if probability is not None:
        guessing = guessing or (above < _HARDLY and mean > _TIMES * guessed)
        # Whether some class's mean probability is far from its share of the labels.
        excess = np.asarray(probability) - (target[:, None] == np.arange(np.shape(probability)[1]))
        error = excess.std(axis=0) / np.sqrt(len(excess))
        off = bool((np.abs(excess.mean(axis=0)) > np.maximum(_OFF, _CLEAR * error)).any())
    right = above + 1.0 / len(kinds)
    reversed_ = right < least - max(_TELLS, _CLEAR / _CHANCE * chance) and mean > guessed
    doubted = guessing and off and _clearly_above(np.asarray(loss), np.asarray(constant))
    return (right, mean, guessed) if reversed_ or doubted else None


def _clearly_above(loss: FloatArray, constant: FloatArray, margin: float = _MARGIN) -> bool:
    excess = loss - constant
    error = float(excess.std(ddof=1)) / np.sqrt(len(excess)) if len(excess) > 1 else np.inf
    return bool(excess.mean() > max(margin * constant.mean(), _CLEAR * error))


def _labels(problem: AuditedPeople) -> Iterator[Finding]:
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
    probability: FloatArray | None = None
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


def _sensitive_columns(problem: AuditedPeople) -> tuple[Any, ...]:
    """The edited columns that were called sensitive and may change."""
    fixed = problem.coordinates.fixed_names()
    return tuple(name for name in edited_columns(problem.sensitive_edits) if name not in fixed)


def _unread(problem: AuditedPeople, known: KnownColumns, asked: SensitiveSums | None) -> Iterator[Finding]:
    """Sensitive columns that the model does not read, and those that move no answer about anybody who was asked about."""
    told: dict[FindingKind, list[str]] = {"unread": [], "unmoved": []}
    place = problem.coordinates
    metric = getattr(place, "metric", None)
    there = {*(place.encoding.names if place.encoding else ()), *getattr(problem.rows, "columns", ())}
    if metric is not None and there:
        # What the metric was told of, and is not in the table that the model gets.
        told["unread"] += [name for name in metric.sensitive_features if name not in there]
    for column in _sensitive_columns(problem):
        name = str(column)
        if asked is not None and name not in asked.unmoved:
            continue
        if known.reads(problem, column) is False:
            told["unread"].append(name)
        elif asked is not None and asked.telling:
            told["unmoved"].append(name)
    keys = {"unread": "gate.unread", "unmoved": "gate.unmoved"}
    for kind, names in told.items():
        if names:
            yield Finding(kind, Message(keys[kind], columns=names), tuple(names))


def _same(problem: AuditedPeople, asked: SensitiveSums | None) -> Iterator[Finding]:
    """One decision for everybody and every counterpart: true, and no evidence of anything."""
    if not problem.decides or asked is None or asked.changed:
        return
    decisions = {one.decision for one in asked.groups} or set(np.unique(problem.decisions).tolist())
    if len(decisions) == 1 and problem.n > 1:
        columns = tuple(map(str, asked.columns))
        yield Finding("same", Message("gate.same", name=str(*decisions), columns=list(columns)), columns)
