"""What a fitted model knows of a table's columns: categories of its encoders, units of its scalers, thresholds of its trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.dual.frontier import Floats
from likewise.core.errors import InputError, LikewiseError
from likewise.core.frames import is_frame
from likewise.models.boosted import lightgbm_categories, xgboost_categories
from likewise.models.matching import MissingCellsModel
from likewise.models.model import OneHotModel, TableModel, select_columns
from likewise.models.table_features import column_positions, is_table_pipeline, read_table_features
from likewise.models.tree_ensemble import TreeEnsemble, read_trees

if TYPE_CHECKING:
    from likewise.auditing.people import AuditedPeople

Scale = Callable[[Floats], Floats]

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
            return self.trees.reads(str(column))
        place = problem.coordinates
        form = place.linear_form()
        own = next((one for one in getattr(place.encoding, "columns", ()) if one.name == column), None)
        if form is None or own is None:
            return None
        weights = form[0][:, own.start : own.stop]
        # Weights that are the same for every class decide nothing.
        return bool((weights != weights[:1]).any() if len(weights) > 1 else (weights != 0).any())


def known_columns(problem: AuditedPeople) -> KnownColumns:
    """Read what a model knows of its columns, as far as that can be read."""
    place = problem.coordinates
    trees = _quietly(_read_trees, problem)
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
    return KnownColumns(rows, found.categories, found.scaled, inputs, trees)


def _quietly(read: Any, problem: AuditedPeople) -> Any:
    try:
        return read(problem)
    except LikewiseError:
        return None


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
        for part in _parts(step):
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
        centre, spread = _units(step)
        if centre is not None and len(centre) == len(names):
            for name, at, width in zip(names, centre, spread, strict=True):
                if name is not None and np.isfinite([at, width]).all() and width > 0:
                    self.scaled[name] = partial(_standardised, float(at), float(width))


def _is_plain(step: Any) -> bool:
    """Whether a step is scikit-learn's own, and so looks at nothing but what its parts get."""
    return type(step).__module__.startswith("sklearn.")


def _parts(step: Any) -> Iterator[Any]:
    """The fitted models inside of a wrapper that get the same columns as it does."""
    for name in _PARTS:
        found = getattr(step, name, None)
        listed = list(np.ravel(found)) if isinstance(found, np.ndarray) else found
        for part in listed if isinstance(listed, list) else [listed]:
            if hasattr(part, "get_params") or hasattr(part, "estimator"):
                yield part


def _standardised(centre: float, spread: float, values: Floats) -> Floats:
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


def _units(step: Any) -> tuple[Any, Any]:
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
    same = _units(step)[0] is not None and not hasattr(step, "bin_edges_")
    return [None] * len(names) if same or type(step).__name__ == "OrdinalEncoder" else None


# ---- trees -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReadTrees:
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
            cuts = np.unique(trees.threshold[splits & (trees.feature == feature)])
            values = self._values(int(feature)) if len(cuts) >= FEWEST_CUTS else None
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
        part: Any = self._columns[:, [feature]]
        return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64).ravel()

    @cached_property
    def _columns(self) -> Any:
        return self.rows.tocsc() if hasattr(self.rows, "tocsc") else self.rows


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
    estimator = getattr(model, "estimator", None)
    if is_table_pipeline(estimator):
        return _behind_pipeline(estimator, rows, place.encoding)
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


def _behind_pipeline(pipeline: Any, rows: Any, encoding: Any) -> ReadTrees:
    trees = read_trees(pipeline.steps[-1][1])
    seen = pipeline[:-1].transform(rows)
    try:
        known = {c.name: c.categories for c in getattr(encoding, "columns", ()) if c.categories}
        features = read_table_features(pipeline, known)[1]
    except InputError:
        return ReadTrees(trees, _feature_names(pipeline[:-1], trees.n_features), seen, traced=False)
    return ReadTrees(trees, [feature.column for feature in features], seen)


def _feature_names(steps: Any, n_features: int) -> list[str]:
    try:
        return [str(name).rpartition("__")[2] for name in steps.get_feature_names_out()]
    except (AttributeError, ValueError):  # some step does not name what it makes
        return [f"x{number}" for number in range(n_features)]


def _owners(columns: Iterable[Any]) -> list[str]:
    return [column.name for column in columns for _ in range(column.stop - column.start)]
