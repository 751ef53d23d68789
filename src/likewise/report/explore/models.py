"""A model as plain data that a page can evaluate: read, checked against the model's own answers, and not too large."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from likewise.auditing.problem import Coordinates
from likewise.core.checks import FloatArray
from likewise.core.errors import InputError
from likewise.core.frames import same_words
from likewise.data.column import Column
from likewise.data.curve import Curve
from likewise.data.encoding import category_codes, read_numbers
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import euclidean
from likewise.models import Model
from likewise.models.layers import Layers, read_network
from likewise.models.matching import MissingCellsModel
from likewise.models.model import TableModel, are_made_up
from likewise.models.table_features import (
    REFUSED,
    TableFeature,
    is_table_pipeline,
    read_table_features,
    read_trees_behind,
)
from likewise.models.tree_ensemble import TreeEnsemble

# Cells of a table as JSON values that mean exactly the same to the page.


def exact_cell(value: Any) -> Any:
    """Return a cell as text, number, truth value, or None where it is missing; no digit is lost."""
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


# Arrays as text: the smallest type that holds every number exactly, its bytes in base64.


# In the order of their size; the names are those that `evaluate.js` knows.
_WHOLE = {"u1": np.uint8, "i2": np.int16, "u2": np.uint16, "i4": np.int32}
_REAL = {"f4": np.float32, "f8": np.float64}


def pack(values: Any) -> dict[str, Any]:
    """Return an array as JSON values, exactly."""
    array = np.asarray(values)
    array = array.astype(np.int64) if array.dtype.kind == "b" else array
    types: dict[str, Any] = _REAL if array.dtype.kind == "f" else _WHOLE
    for name, dtype in types.items():
        with np.errstate(over="ignore", invalid="ignore"):
            held = array.astype(dtype)
        if np.array_equal(held.astype(array.dtype), array, equal_nan=array.dtype.kind == "f"):
            data = base64.b64encode(held.astype(f"<{np.dtype(dtype).str[1:]}").tobytes()).decode()
            return {"type": name, "shape": list(array.shape), "data": data}
    raise OverflowError(f"pack: no type holds whole numbers up to {array.max()}")


def unpack(packed: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the array that `pack` wrote."""
    dtype = np.dtype((_WHOLE | _REAL)[packed["type"]]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(packed["data"]), dtype=dtype).reshape(packed["shape"])


# Features of a model as functions of one cell each: what a number, a category, a missing cell or an unseen word
# becomes.


@dataclass(frozen=True, eq=False)
class CellFeature:
    """One feature."""

    column: str
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[Any, ...] | None = None
    answers: tuple[Any, ...] | None = None
    missing: Any = np.nan
    unseen: Any = REFUSED
    curve: Curve | None = None

    def values(self, frame: pd.DataFrame) -> FloatArray:
        """Return the feature of each row; a cell that is refused is NaN here."""
        series = frame[self.column]
        if self.categories is None or self.answers is None:
            numbers = read_numbers(series)
            numbers = ((numbers if self.curve is None else self.curve(numbers)) - self.mean) / self.scale
            return np.where(series.isna().to_numpy(), _number(self.missing), numbers)
        codes = category_codes(series, self.categories)
        found = np.array([_number(answer) for answer in (*self.answers, self.unseen)])[codes]
        return np.where(series.isna().to_numpy(), _number(self.missing), found)

    def document(self, places: Mapping[str, int]) -> dict[str, Any]:
        """Return the feature as plain data; `places` says where each column stands in a row."""
        plain: dict[str, Any] = {"column": places[self.column], "missing": _written(self.missing)}
        if self.categories is None or self.answers is None:
            curve = {} if self.curve is None else {"curve": self.curve.to_dict()}
            return plain | {"mean": self.mean, "scale": self.scale} | curve
        plain |= {"unseen": _written(self.unseen)}
        hot = [k for k, answer in enumerate(self.answers) if answer != 0.0]
        if len(hot) == 1 and self.answers[hot[0]] == 1.0:
            # Only whether it is known besides: an encoder of a thousand categories stays small.
            return plain | {"one": exact_cell(self.categories[hot[0]])}
        return plain | {"answers": [_written(answer) for answer in self.answers]}


def encoded_features(columns: Sequence[Column]) -> tuple[CellFeature, ...]:
    """Features of a model that takes encoded rows, without missing or unseen values."""
    found: list[CellFeature] = []
    for column in columns:
        if column.kind != "categorical":
            found.append(
                CellFeature(column.name, column.mean, column.scale, missing=REFUSED, curve=column.curve)
            )
            continue
        n = len(column.categories)
        hot = [np.arange(2.0)] if column.is_binary else list(np.eye(n))
        found += [
            CellFeature(
                column.name,
                categories=column.categories,
                answers=tuple(float(one) for one in row[:n]),
                missing=REFUSED,
            )
            for row in hot
        ]
    return tuple(found)


def table_features(
    columns: Sequence[Column],
    names: Sequence[str] | None,
    trees: TreeEnsemble | None = None,
    *,
    unseen: Any = REFUSED,
) -> tuple[CellFeature, ...]:
    """Features of a model that takes the table's own columns."""
    wanted = [column.name for column in columns] if names is None else list(names)
    found = []
    for j, name in enumerate(wanted):
        column = next((one for one in columns if same_words(one.name, name)), None)
        if column is None:
            raise InputError(f"explore: the model's column {name!r} is none of the domain's.")
        codes = None if trees is None else trees.categories.get(j)
        if column.kind != "categorical":
            found.append(CellFeature(column.name))
        elif codes is not None:
            places = {value: float(code) for code, value in enumerate(codes)}
            answers = tuple(places.get(category, unseen) for category in column.categories)
            found.append(
                CellFeature(column.name, categories=column.categories, answers=answers, unseen=unseen)
            )
        else:
            try:
                numbers = tuple(float(category) for category in column.categories)
            except (TypeError, ValueError):
                raise InputError(
                    f"explore: column {name!r} has categories, and the model does not say their codes."
                ) from None
            found.append(CellFeature(column.name, categories=column.categories, answers=numbers))
    return tuple(found)


def pipeline_features(columns: Sequence[Column], features: Sequence[TableFeature]) -> tuple[CellFeature, ...]:
    """Features of a model behind the encoders and scalers of a scikit-learn pipeline."""
    known = {column.name: column for column in columns}
    found = []
    for one in features:
        if one.column not in known:
            raise InputError(f"explore: the pipeline's column {one.column!r} is none of the domain's.")
        if one.answers is None:
            found.append(CellFeature(one.column, one.mean, one.scale, missing=one.missing))
            continue
        found.append(
            CellFeature(
                one.column,
                categories=known[one.column].categories,
                answers=tuple(float(answer) for answer in one.answers),
                missing=one.missing,
                # Codes that no step encodes: what the table never had is not a code.
                unseen=REFUSED if one.unseen is None else one.unseen,
            )
        )
    return tuple(found)


def _number(value: Any) -> float:
    return float("nan") if value is REFUSED else float(value)


def _written(value: Any) -> float | str:
    """A number, "nan" for one that stays missing, "refused" for one that the model does not take."""
    if value is REFUSED:
        return "refused"
    number = float(value)
    return "nan" if number != number else number


# Linear models and plain networks as plain data: weights, biases and the activations between them.

_WRITTEN_UNITS = ("leaky", "tanh", "logistic", "silu", "identity")


def layers_document(layers: Layers) -> dict[str, Any]:
    """Return layers as plain data."""
    return {
        "kind": "layers",
        "weights": [pack(weight) for weight in layers.weights],
        "biases": [pack(bias) for bias in layers.biases],
        "activations": [list(unit) for unit in layers.units],
        "single": layers.roundoff > 2.0**-50,
    }


def read_layers(model: Any) -> Layers:
    """Read a linear model, an MLP or a torch module of linear layers with simple activations."""
    layers = read_network(model)
    other = next((unit for unit in layers.units if unit.name not in _WRITTEN_UNITS), None)
    if other is not None:
        raise InputError(f"explore: hidden units of the kind {other.name!r} are not written.")
    return layers


# Trees as plain data: nodes in the order of a walk, so that the left child of a node is the next one.


def tree_document(trees: TreeEnsemble) -> dict[str, Any]:
    """Return an ensemble as plain data."""
    order, starts = _walk(trees)
    place = np.empty(len(trees.left), dtype=np.int64)
    place[order] = np.arange(len(order))
    leaf = trees.left[order] < 0
    by_category = trees.last[order] > trees.first[order]
    document: dict[str, Any] = {
        "kind": "trees",
        "roots": pack(np.asarray(starts, dtype=np.int64)),
        "feature": pack(np.where(leaf, -1, trees.feature[order])),
        "threshold": pack(np.where(leaf | by_category, 0.0, trees.threshold[order])),
        "right": pack(np.where(leaf, 0, place[trees.right[order]] - np.arange(len(order)))),
        "missing": pack(trees.missing_left[order]),
        "leaves": pack(trees.values[order][leaf]),
        "base": [float(value) for value in trees.base],
        "strict": bool(trees.strict),
        "single": bool(trees.single.any()),
        "single_sum": bool(trees.roundoff > 2.0**-53),
        # scikit-learn's forests refuse what single precision cannot hold; XGBoost takes it for infinite.
        "bounded": bool(trees.single.any() and trees.kind == "probabilities"),
    }
    if by_category.any():
        document |= _sets(trees, order, by_category)
    return document


def _walk(trees: TreeEnsemble) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Nodes of all trees with each left child behind its parent, and where each tree begins."""
    order: list[int] = []
    starts: list[int] = []
    left, right = trees.left.tolist(), trees.right.tolist()
    for root in trees.roots.tolist():
        starts.append(len(order))
        stack = [root]
        while stack:
            node = stack.pop()
            order.append(node)
            if left[node] >= 0:
                stack += [right[node], left[node]]
    return np.asarray(order, dtype=np.int64), starts


def _sets(trees: TreeEnsemble, order: np.ndarray[Any, Any], by_category: Any) -> dict[str, Any]:
    nodes = order[by_category]
    number = np.full(len(order), -1, dtype=np.int64)
    number[by_category] = np.arange(len(nodes))
    spans = [trees.codes[trees.first[node] : trees.last[node]] for node in nodes]
    ends = np.cumsum([0, *(len(span) for span in spans)])
    return {
        "set": pack(number),
        "ends": pack(ends),
        "codes": pack(np.concatenate(spans)),
        # One library sends the listed categories left, another right, in all of its splits.
        "listed_left": bool(trees.listed_left[nodes].all()),
    }


# What is left of a page of 2 MB once people, texts and scripts are in it.
MAX_MODEL_BYTES = 1_200_000
# People on whom the copy must give the model's own answers.
_CHECKED = 512
_CLOSE = 1e-5


def page_model(
    model: Model, domain: TabularDomain, people: pd.DataFrame, *, max_bytes: int = MAX_MODEL_BYTES
) -> dict[str, Any]:
    """Return a model as plain data for ``evaluate.js``.

    Parameters
    ----------
    model : Model
        A linear model, a tree ensemble or a plain network; behind the encoders of a scikit-learn pipeline, or taking
        encoded rows or the table itself.
    domain : TabularDomain
        Of the table.
    people : DataFrame
        Some people in original units, on whom the copy is compared with the model.
    max_bytes : int, default=1200000
        Largest size of the data as JSON.

    Returns
    -------
    dict

    Raises
    ------
    InputError
        Where the model cannot travel inside a page: it says why, and what to do instead.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from likewise.models import as_model
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> domain = TabularDomain.from_frame(people)
    >>> fitted = LogisticRegression().fit(domain.encode_array(people), [0, 0, 1, 1])
    >>> document = page_model(as_model(fitted), domain, people)
    >>> document["kind"], len(document["features"])
    ('layers', 2)
    """
    if model.loss.regression:
        raise InputError(
            "explore: this model predicts numbers, and the panel shows decisions. Leave explore=yes out."
        )
    # Gaps were filled and marked for the audit; the page gives the inner model the gaps themselves.
    inner = model.inner if isinstance(model, MissingCellsModel) else model
    shown = model.missing.restored(people) if isinstance(model, MissingCellsModel) else people
    try:
        features, read = _read(inner, domain, people)
    except InputError as error:
        raise _stays(str(error).rstrip(".")) from error
    _check_same(inner, domain, shown.head(_CHECKED), features, read)
    places = {name: i for i, name in enumerate(domain.encoding_.names)}
    document = tree_document(read) if isinstance(read, TreeEnsemble) else layers_document(read)
    document |= {
        "features": [feature.document(places) for feature in features],
        "takes_missing": _takes_missing(inner, read),
        "output": read.kind if isinstance(read, TreeEnsemble) else "scores",
    }
    size = len(json.dumps(document, separators=(",", ":")))
    if size > max_bytes:
        raise _stays(f"it takes {size / 1e6:.1f} MB, and a page may carry {max_bytes / 1e6:.1f} MB")
    return document


def _stays(why: str) -> InputError:
    return InputError(
        f"explore: this model cannot travel inside a page: {why}. "
        "Leave explore=yes out, or let the page ask the model: likewise serve."
    )


def _read(
    model: Model, domain: TabularDomain, people: pd.DataFrame
) -> tuple[tuple[CellFeature, ...], TreeEnsemble | Layers]:
    columns = [domain.column(name) for name in domain.encoding_.names]
    place = Coordinates.build(people, model=model, metric=euclidean(), domain=domain)
    inner = model.inner if isinstance(model, TableModel) else model
    estimator = getattr(inner, "estimator", inner)
    if place.takes == "table" and is_table_pipeline(estimator):
        categories = {column.name: column.categories for column in columns if column.categories}
        last, described = read_table_features(estimator, categories)
        return pipeline_features(columns, described), _trees_or_layers(last, described)
    read = _trees_or_layers(inner)
    if place.takes == "own":
        return encoded_features(model.encoder.columns_), read
    if place.takes == "encoded":
        return encoded_features(domain.columns_), read
    names = inner.feature_names if inner.feature_names and not are_made_up(inner.feature_names) else None
    names = names or model.feature_names
    trees = read if isinstance(read, TreeEnsemble) else None
    # scikit-learn's gradient boosting takes a category that it never saw for a missing one; the others refuse it.
    unseen = np.nan if hasattr(estimator, "_preprocessor") else REFUSED
    return table_features(columns, names, trees, unseen=unseen), read


def _trees_or_layers(model: Any, features: Sequence[TableFeature] = ()) -> TreeEnsemble | Layers:
    try:
        return read_trees_behind(model, features)
    except InputError as no_trees:
        try:
            return read_layers(model)
        except InputError as error:
            # Each without the name of its reader; where both have the same reason it is said once.
            reasons = dict.fromkeys(str(one).partition(": ")[2] or str(one) for one in (no_trees, error))
            raise InputError(" ".join(reasons)) from error


def _takes_missing(model: Model, read: TreeEnsemble | Layers) -> bool:
    """Whether the model itself takes a missing value among its features."""
    if isinstance(read, Layers):
        return False
    if read.kind == "scores":
        return True
    from sklearn.utils import get_tags

    inner = model.inner if isinstance(model, TableModel) else model
    estimator = getattr(inner, "estimator", None)
    steps = getattr(estimator, "steps", None)
    last = steps[-1][1] if steps else estimator
    return last is not None and bool(get_tags(last).input_tags.allow_nan)


def _check_same(
    model: Model,
    domain: TabularDomain,
    people: pd.DataFrame,
    features: Sequence[CellFeature],
    read: TreeEnsemble | Layers,
) -> None:
    """Raise unless what was read gives the model's own answers on these people."""
    rows = np.stack([feature.values(people) for feature in features], axis=1)
    outputs = read.outputs(rows)
    own = _answers(model, domain, people)
    if outputs.shape[1] == 1:
        outputs = np.hstack([-outputs / 2, outputs / 2])
    found = outputs
    if not isinstance(read, TreeEnsemble) or read.kind == "scores":
        found = np.asarray(softmax(outputs, axis=1))
    if found.shape != own.shape or not np.allclose(found, own, rtol=0.0, atol=_CLOSE):
        raise _stays("what was read of it does not give its answers")


def _answers(model: Model, domain: TabularDomain, people: pd.DataFrame) -> FloatArray:
    rows = people if model.takes_frame or model.encoder is not None else None
    if rows is None:
        place = Coordinates.build(people, model=model, metric=euclidean(), domain=domain)
        rows = place.for_model(people)
    return model.predict_proba(rows)
