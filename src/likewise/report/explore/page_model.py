"""A model as plain data that a page can evaluate: read, checked against the model's own answers, and not too large."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from likewise.auditing.problem.coordinates import Coordinates
from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.domains import TabularDomain
from likewise.fair_metrics import euclidean
from likewise.models import Model
from likewise.models.missing_cells_model import MissingCellsModel
from likewise.models.model_rows import are_made_up
from likewise.models.table_features import (
    REFUSED,
    TableFeature,
    is_table_pipeline,
    read_table_features,
    read_trees_behind,
)
from likewise.models.table_model import TableModel
from likewise.models.tree_ensemble import TreeEnsemble
from likewise.report.explore.cell_features import (
    CellFeature,
    encoded_features,
    pipeline_features,
    table_features,
)
from likewise.report.explore.layer_data import PlainLayers, read_plain_layers
from likewise.report.explore.tree_data import tree_document

__all__ = ["MAX_MODEL_BYTES", "page_model"]

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
            "explore: this model predicts numbers, and the panel shows decisions. Leave --explore out."
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
    document = tree_document(read) if isinstance(read, TreeEnsemble) else read.document()
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
        "Leave --explore out, or let the page ask the model: likewise serve."
    )


def _read(
    model: Model, domain: TabularDomain, people: pd.DataFrame
) -> tuple[tuple[CellFeature, ...], TreeEnsemble | PlainLayers]:
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
    strange = np.nan if hasattr(estimator, "_preprocessor") else REFUSED
    return table_features(columns, names, trees, strange=strange), read


def _trees_or_layers(model: Any, features: Sequence[TableFeature] = ()) -> TreeEnsemble | PlainLayers:
    try:
        return read_trees_behind(model, features)
    except InputError as no_trees:
        try:
            return read_plain_layers(model)
        except InputError as error:
            # Each without the name of its reader; where both have the same reason it is said once.
            reasons = dict.fromkeys(str(one).partition(": ")[2] or str(one) for one in (no_trees, error))
            raise InputError(" ".join(reasons)) from error


def _takes_missing(model: Model, read: TreeEnsemble | PlainLayers) -> bool:
    """Whether the model itself takes a missing value among its features."""
    if isinstance(read, PlainLayers):
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
    read: TreeEnsemble | PlainLayers,
) -> None:
    """Raise unless what was read gives the model's own answers on these people."""
    rows = np.stack([feature.values(people) for feature in features], axis=1)
    outputs = read.outputs(rows) if isinstance(read, TreeEnsemble) else read.scores(rows)
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
