"""From a model to its family: which bounds apply, how its features come from the columns, and whether it answers so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.reading_check import Asker, check_reading, check_rows
from likewise.auditing.bounds.regions import TableLayout, not_linear
from likewise.auditing.bounds.tree_tables import affine_of, encoded_sources, pipeline_sources, raw_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.core.checks import FloatArray
from likewise.core.compiled import is_loaded
from likewise.core.errors import InputError
from likewise.data.encoding import AffineMap
from likewise.models import Model, as_model
from likewise.models.layers import Layers, read_relu_network
from likewise.models.losses import Loss
from likewise.models.model import TableModel, are_made_up
from likewise.models.sklearn_model import SklearnModel
from likewise.models.table_features import is_table_pipeline, read_table_features, read_trees_behind
from likewise.models.tree_ensemble import TreeEnsemble, read_trees

if TYPE_CHECKING:
    from likewise.auditing.coordinates import Coordinates
    from likewise.auditing.problem import AuditProblem

# A network of a table's own numbers as a network of encoded rows: the encoding goes into the first layer.


def of_encoded_rows(net: Layers, layout: TableLayout, names: Sequence[str] | None) -> Layers:
    """Put the way from encoded rows to the table's numbers in front of a network: W(Ax + c) + b = (WA)x + (Wc + b)."""
    known = {column.name: i for i, column in enumerate(layout.columns)}
    wanted = list(known) if names is None else list(names)
    missing = [name for name in wanted if name not in known]
    if missing or len(wanted) != net.n_inputs:
        raise InputError(
            f"bounds: the network takes {net.n_inputs} columns of the table, and the domain has "
            f"{'no ' + repr(missing[0]) if missing else f'{len(wanted)} of them'}. Pass the domain of its table."
        )
    spread, centre = np.zeros((len(wanted), layout.width)), np.zeros(len(wanted))
    for row, name in enumerate(wanted):
        column = layout.columns[known[name]]
        if not column.categories:
            if column.curve is not None:
                raise InputError(not_linear(column))
            spread[row, column.start], centre[row] = column.scale, column.mean
            continue
        try:
            values = np.array([float(category) for category in column.categories])
        except (TypeError, ValueError):
            raise InputError(
                f"bounds: the network takes numbers, and column {name!r} is text. Pass a network of encoded rows."
            ) from None
        if column.is_binary:
            spread[row, column.start], centre[row] = values[1] - values[0], values[0]
        else:
            spread[row, column.slice] = values
    return behind(net, AffineMap(spread, centre))


def behind(net: Layers, numbers: AffineMap) -> Layers:
    """Put an affine map in front of a network."""
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
_KNOWN: WeakKeyDictionary[Coordinates, TreeFamily | NetworkFamily] = WeakKeyDictionary()
_CHECKED: WeakKeyDictionary[AuditProblem, TreeFamily | NetworkFamily | InputError] = WeakKeyDictionary()
_SECONDS: WeakKeyDictionary[Coordinates, float] = WeakKeyDictionary()
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
        raise InputError("family_of: the model's own encoding of the table is not the domain's.")
    if not encoded and is_table_pipeline(estimator):
        return _behind_pipeline(estimator, adapter, layout, objective)
    reasons = []
    try:
        trees = read_trees(inner)
    except InputError as error:
        reasons.append(str(error))
    else:
        if encoded and own is not None and not own.is_identity:
            raise InputError("family_of: the trees' own encoding of the table is not the domain's.")
        sources = encoded_sources(layout) if encoded else raw_sources(layout, trees, adapter.feature_names)
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
    place = problem.coordinates
    if problem not in _CHECKED:
        _CHECKED[problem] = _checked(problem, place)
    found = _CHECKED[problem]
    if isinstance(found, InputError):
        raise found
    return found


def seconds_to_read(problem: AuditProblem) -> float:
    """How long it took, or about takes, to read an audit's model and to compare it with its own answers."""
    known = _SECONDS.get(problem.coordinates)
    return (0.2 if is_loaded() else 0.8) + 3.0 * problem.seconds_to_ask if known is None else known


def _checked(problem: AuditProblem, place: Coordinates) -> TreeFamily | NetworkFamily | InputError:
    try:
        if place not in _KNOWN:
            clock = time.perf_counter()
            _KNOWN[place] = family_at(place, problem.X)
            _SECONDS[place] = time.perf_counter() - clock
        family = _KNOWN[place]
        asker = Asker(place, family.layout)
        check_rows(family, asker, family.layout.values(problem.X), decides=problem.decides)
    except InputError as error:
        return error
    return family


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
            raise InputError(f"family_of: no upper bound is known for this model. {reasons}") from error
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
    names = adapter.feature_names
    return of_encoded_rows(net, layout, None if names is None or are_made_up(names) else names)
