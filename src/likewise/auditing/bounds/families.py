"""From a model to its family: which bounds apply, how its features come from the columns, and whether it answers so.

What was read off a model and the model itself are asked about the audited people and about rows of the whole domain: at
random, every category, the ends of every range, numbers that often mean something else, and, for trees, both sides of every
split at a row that reaches it. Any difference beyond the rounding of that row withdraws the reading.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from scipy.special import softmax

from likewise.auditing.bounds.family import Family
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import affine_of, encoded_sources, pipeline_sources, raw_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.core.checks import FloatArray, IntArray
from likewise.core.compiled import is_loaded
from likewise.core.errors import InputError, ModelError
from likewise.data.encoding import AffineMap
from likewise.models import Model, as_model
from likewise.models.layers import Layers, read_relu_network
from likewise.models.losses import Loss, ZeroOne
from likewise.models.model import TableModel, are_made_up
from likewise.models.sklearn_model import SklearnModel
from likewise.models.table_features import is_table_pipeline, read_table_features, read_trees_behind
from likewise.models.tree_ensemble import TreeEnsemble, read_trees

if TYPE_CHECKING:
    from likewise.auditing.problem import AuditProblem, Coordinates

# The model itself, asked about rows of values: what it is shown, and which values that really is.


class Asker:
    """A model that answers about rows of values (n, P), one number per column."""

    def __init__(self, place: Coordinates, layout: TableLayout) -> None:
        self.place, self.layout = place, layout
        self._sees_table = place.encoding is not None and place.takes in ("table", "numbers")

    def shown(self, values: FloatArray) -> tuple[Any, FloatArray]:
        """Return rows as the model takes them, and the values that they hold."""
        if not self._sees_table and self.place.encoding is not None:
            # As their columns hold them: what is listed is what the model was asked about.
            pairs = zip(self.layout.columns, values.T, strict=True)
            stored = [column.stored(part) if column.kind == "continuous" else part for column, part in pairs]
            values = np.stack(stored, axis=1)
        x: Any = self.layout.encode(values)
        if not self._sees_table:
            return self.place.encoded_for_model(x), values
        table = self.place.original(self.place.given(x))
        seen = np.array(values, dtype=np.float64)
        for i, column in enumerate(self.layout.columns):
            if column.kind == "continuous" and table[column.name].dtype.kind == "f":
                kept: Any = table[column.name].dtype
                table[column.name] = pd.Series(seen[:, i], index=table.index).astype(kept)
            if column.kind != "categorical":
                seen[:, i] = table[column.name].to_numpy(dtype=np.float64)
        return (self.place.for_model(table) if self.place.raw else table), seen

    def losses(self, values: FloatArray, targets: Any) -> tuple[FloatArray, FloatArray]:
        """Return the model's own losses of rows under targets (class positions, or numbers), and what was shown."""
        rows, seen = self.shown(values)
        classes = self.place.model.classes_
        labels = targets if classes is None else np.asarray(classes)[np.asarray(targets, dtype=np.int64)]
        return np.asarray(self.place.model.losses(rows, labels), dtype=np.float64), seen

    def decisions(self, values: FloatArray) -> IntArray:
        """Return the model's own decisions as positions of classes, (n,)."""
        if not len(values):
            return np.zeros(0, dtype=np.int64)
        model = self.place.model
        return np.asarray(model.targets(model.predict(self.shown(values)[0])), dtype=np.int64)


_ROWS = 2_000
# Rows of splits, at most: an unpruned forest has a hundred times as many.
_SPLIT_ROWS = 24_000
# Numbers that stand for something else in many a table.
_SENTINELS = (0.0, -1.0, 1.0, -9.0, 99.0, -99.0, 999.0, -999.0, 9999.0, -9999.0, 99999.0)
_HIGHEST = 1e300


def check_reading(reading: Family, asker: Asker, people: FloatArray, *, decides: bool) -> None:
    """Compare a reading with its model over the domain."""
    rng = np.random.default_rng(0)
    rows = random_rows(reading.layout, people, rng, _ROWS)
    for part in (rows, reading.split_rows(rows, rng, _SPLIT_ROWS)):
        check_rows(reading, asker, part, decides=decides)


def check_rows(reading: Family, asker: Asker, values: FloatArray, *, decides: bool) -> None:
    """Compare a reading with its model on rows of values; as `check_reading`."""
    if not len(values):
        return
    try:
        rows, seen = asker.shown(values)
        graded = asker.place.model.graded()
        own = graded.outputs(rows)
    except ModelError as error:
        # A row of the domain that the model refuses says nothing of the others, but nothing is known of it either.
        raise InputError(f"the model does not answer about rows that the domain allows: {error}") from error
    found, error_of = reading.outputs(seen)
    off = _differences(found, error_of, own, reading.kind, graded.output_kind)
    if off.any():
        i = int(off.argmax())
        raise _withdrawn(reading.layout, seen[i], f"{_words(own[i])} instead of {_words(found[i])}", off)
    if decides and isinstance(asker.place.model.loss, ZeroOne):
        sure = np.asarray(reading.decisions(seen))
        model = asker.place.model
        other = (sure >= 0) & (sure != np.asarray(model.targets(model.predict(rows))))
        if other.any():
            i = int(other.argmax())
            raise _withdrawn(reading.layout, seen[i], "it decides otherwise", other)


def _differences(found: FloatArray, error: FloatArray, own: FloatArray, kind: str, answers: str) -> Any:
    """Which rows differ by more than rounding, (n,)."""
    if found.shape[1] == 1 and own.shape[1] == 2:
        found, error = np.hstack([-found / 2, found / 2]), error / 2
    if found.shape != own.shape:
        return np.ones(len(own), dtype=bool)
    allowed = error[:, None] + 1e-14 * (1.0 + np.abs(found))
    if kind == "scores" and answers == "probabilities":
        # A probability is at most half as far off as the scores; it is answered in single precision at worst.
        found = np.asarray(softmax(found, axis=1))
        allowed = np.minimum(allowed, 1.0) + 2.0**-21
    elif kind == "scores":
        # Scores count up to a number that is the same for all classes.
        found, own = (part - part.mean(axis=1, keepdims=True) for part in (found, own))
        allowed = 2.0 * allowed
    return ~(np.abs(found - own) <= allowed).all(axis=1)


def _withdrawn(layout: TableLayout, row: FloatArray, what: str, off: Any) -> InputError:
    cells = []
    for column, value in zip(layout.columns, row, strict=True):
        shown = column.categories[int(value)] if column.categories else f"{value:.6g}"
        cells.append(f"{column.name} = {shown}")
    more = ", …" if len(cells) > 6 else ""
    return InputError(
        f"the model was read differently than it answers: {what} at {', '.join(cells[:6])}{more} "
        f"({int(off.sum())} of {len(off)} rows). Nothing is proved with such a reading."
    )


def _words(outputs: FloatArray) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in outputs[:4]) + ")"


def uniform_rows(layout: TableLayout, rng: np.random.Generator, count: int) -> FloatArray:
    """Rows of a domain drawn uniformly, (count, P): every value of a column as likely as every other."""
    rows = np.empty((count, layout.n_columns))
    for i, column in enumerate(layout.columns):
        if column.categories:
            rows[:, i] = rng.integers(len(column.categories), size=count)
            continue
        low, high = _range(column)
        if column.kind == "integer":
            rows[:, i] = low + np.minimum(np.floor(rng.random(count) * (high - low + 1.0)), high - low)
        else:
            rows[:, i] = rng.uniform(low, high, size=count)
    return rows


def random_rows(layout: TableLayout, people: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:
    """Rows of a domain: values of people and values of the domain mixed column by column, and every category."""
    # Every category, or the ends of a range with their neighbours and the sentinels inside it.
    special: list[list[float]] = []
    for column in layout.columns:
        if column.categories:
            special.append([float(code) for code in range(len(column.categories))])
            continue
        low, high = _range(column)
        whole = column.kind == "integer"
        after = low + 1.0 if whole else np.nextafter(low, np.inf)
        before = high - 1.0 if whole else np.nextafter(high, -np.inf)
        special.append([v for v in (low, after, before, high, *_SENTINELS) if low <= v <= high])
    total = count + sum(map(len, special))
    rows = uniform_rows(layout, rng, total)
    if len(people):
        # Half of the cells are somebody's own.
        whose, own = rng.integers(len(people), size=rows.shape), rng.random(rows.shape) < 0.5
        rows = np.where(own, people[whose, np.arange(layout.n_columns)[None, :]], rows)
    first = count
    for i, values in enumerate(special):
        rows[first : first + len(values), i] = values
        first += len(values)
    return rows


def _range(column: Any) -> tuple[float, float]:
    low, high = max(column.lower, -_HIGHEST), min(column.upper, _HIGHEST)
    return (np.ceil(low), np.floor(high)) if column.kind == "integer" else (low, high)


def behind(net: Layers, numbers: AffineMap) -> Layers:
    """Put an affine map in front of a network: W(Ax + c) + b = (WA)x + (Wc + b)."""
    weight, bias = net.weights[0], net.biases[0]
    sizes = (np.abs(weight), np.abs(bias)) if net.first_sizes is None else net.first_sizes
    per_unit = sizes[0] @ np.abs(numbers.matrix)
    without = sizes[0] @ np.abs(numbers.offset) + sizes[1]
    return replace(
        net,
        weights=(weight @ numbers.matrix, *net.weights[1:]),
        biases=(bias + weight @ numbers.offset, *net.biases[1:]),
        # What is taken off and added again on the way through the encoding.
        first_sizes=(per_unit, without),
    )


# An audit asks for its family time and again, and to read a model takes longer than many a question.
_KNOWN: WeakKeyDictionary[Coordinates, tuple[TreeFamily | NetworkFamily, float]] = WeakKeyDictionary()
_CHECKED: WeakKeyDictionary[AuditProblem, TreeFamily | NetworkFamily | InputError] = WeakKeyDictionary()
# People whose cells rows of the domain are mixed with, at most.
_MIXED = 2_000


def family_of(
    model: Any, domain: Any, *, encoded: bool, own: AffineMap | None = None
) -> TreeFamily | NetworkFamily:
    """Return the family that bounds a model of encoded rows, or of the table's own columns, over a domain.

    It is what was read: `family_at` compares it with the model.
    """
    adapter = model if isinstance(model, Model) else as_model(model)
    objective, layout = adapter.loss, TableLayout.of(domain)
    # A table's own numbers go through such a wrapper; what is read is inside it.
    inner = adapter.inner if isinstance(adapter, TableModel) else adapter
    estimator = getattr(inner, "estimator", inner)
    if not encoded and adapter.encoder is not None:
        raise InputError("the model's own encoding of the table is not the domain's.")
    if not encoded and is_table_pipeline(estimator):
        return _behind_pipeline(estimator, adapter, layout, objective)
    reasons = []
    try:
        trees = read_trees(inner)
    except InputError as error:
        reasons.append(str(error))
    else:
        if encoded and own is not None and not own.is_identity:
            raise InputError("the trees' own encoding of the table is not the domain's.")
        names = trees.feature_names if adapter.feature_names is None else adapter.feature_names
        sources = encoded_sources(layout) if encoded else raw_sources(layout, names, trees.categories)
        return TreeFamily(trees, layout, sources, objective, _answered(adapter, trees))
    try:
        net = _network(inner, adapter, layout, encoded, own)
        return NetworkFamily(net, layout, objective, _answered(adapter, net))
    except InputError as error:
        reasons.append(str(error))
    raise InputError("no upper bound is known for this model. " + " ".join(map(_without_owner, reasons)))


def _without_owner(sentence: str) -> str:
    """Return an error's sentence without the name of the function that raised it."""
    owner, colon, rest = sentence.partition(": ")
    return rest if colon and owner.isidentifier() else sentence


def family_in(problem: AuditProblem) -> TreeFamily | NetworkFamily:
    """Return the family of an audit's model, once it has given the model's own answers."""
    if problem not in _CHECKED:
        place = problem.coordinates
        try:
            if place not in _KNOWN:
                clock = time.perf_counter()
                _KNOWN[place] = family_at(place, problem.X), time.perf_counter() - clock
            family = _KNOWN[place][0]
            asker = Asker(place, family.layout)
            check_rows(family, asker, family.layout.values(problem.X), decides=problem.decides)
            _CHECKED[problem] = family
        except InputError as error:
            _CHECKED[problem] = error
    found = _CHECKED[problem]
    if isinstance(found, InputError):
        raise found
    return found


def is_read(problem: AuditProblem) -> bool:
    """Whether reading an audit's model was tried already, so that it takes no time."""
    return problem in _CHECKED


def seconds_to_read(problem: AuditProblem) -> float:
    """How long it took, or about takes, to read an audit's model and to compare it with its own answers."""
    known = _KNOWN.get(problem.coordinates)
    return (0.2 if is_loaded() else 0.8) + 3.0 * problem.seconds_to_ask if known is None else known[1]


def family_at(place: Coordinates, people: FloatArray) -> TreeFamily | NetworkFamily:
    """Return the family of a model in a coordinate system, once it has given the model's own answers over the domain."""
    encoded = place.takes in ("encoded", "own")
    family = family_of(place.model, place.domain, encoded=encoded, own=place.own)
    own = family.layout.values(people[:_MIXED])
    check_reading(family, Asker(place, family.layout), own, decides=not place.model.loss.regression)
    return family


def _behind_pipeline(
    pipeline: Any, adapter: Model, layout: TableLayout, loss: Loss
) -> TreeFamily | NetworkFamily:
    """The family of the model at the end of a pipeline whose steps can be read."""
    categories = {column.name: column.categories for column in layout.columns if column.categories}
    model, features = read_table_features(pipeline, categories)
    sources = pipeline_sources(layout, features)
    try:
        trees = read_trees_behind(model, features)
    except InputError as error:
        try:
            net = behind(read_relu_network(model), AffineMap(*affine_of(layout, sources)))
        except InputError as other:
            reasons = " ".join(map(_without_owner, (str(error), str(other))))
            raise InputError(f"no upper bound is known for this model. {reasons}") from error
        return NetworkFamily(net, layout, loss, _answered(adapter, net))
    return TreeFamily(trees, layout, sources, loss, _answered(adapter, trees))


def _answered(adapter: Model, read: TreeEnsemble | Layers) -> float:
    """How far an answered probability may lie from that of the score: one of two is 1 minus the other, rounded."""
    scores = isinstance(read, Layers) or read.kind == "scores"
    return 4.0 * read.roundoff if adapter.gives_probabilities and scores else 0.0


def _network(
    inner: Model, adapter: Model, layout: TableLayout, encoded: bool, own: AffineMap | None
) -> Layers:
    """The network of encoded rows that a model is."""
    # What a general adapter of scikit-learn wraps may be a network all the same.
    net = read_relu_network(inner.estimator if isinstance(inner, SklearnModel) else inner)
    if own is not None:
        return net if own.is_identity else behind(net, own)
    if encoded:
        return net
    # A network of the table's own numbers: the encoding goes into the first layer.
    names = adapter.feature_names
    if names is None or are_made_up(names):
        names = tuple(column.name for column in layout.columns)
    if len(names) != net.n_inputs:
        raise InputError(
            f"bounds: the network takes {net.n_inputs} columns of the table, and the domain has {len(names)} of them. "
            "Pass the domain of its table."
        )
    return behind(net, AffineMap(*affine_of(layout, raw_sources(layout, names))))
