"""How a model's features come from the columns of a domain: what each value of a column becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.table_layout import TableLayout, not_linear
from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.domains.curve import Curve
from likewise.models.table_features import TableFeature
from likewise.models.tree_ensemble import TreeEnsemble

__all__ = ["FeatureSource", "affine_of", "encoded_sources", "pipeline_sources", "raw_sources"]


@dataclass(frozen=True, eq=False)
class FeatureSource:
    """One feature of a model as a function of one column.

    Parameters
    ----------
    column : int
        Which column of the layout.
    mean, scale : float
        A number v becomes (curve(v) − mean) / scale.
    table : float array, optional
        Of a categorical column: what each category becomes; NaN is missing.
    curve : Curve, optional
        The scale of a number where that is not linear.
    """

    column: int
    mean: float = 0.0
    scale: float = 1.0
    table: FloatArray | None = None
    curve: Curve | None = None

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the feature for values of the column."""
        if self.table is not None:
            return np.asarray(self.table[np.asarray(values, dtype=np.int64)])
        values = np.asarray(values, dtype=np.float64) if self.curve is None else self.curve(values)
        if self.mean == 0.0 and self.scale == 1.0:
            return values
        # The largest numbers there are may become infinite here, which lies on the same side of every threshold.
        with np.errstate(over="ignore"):
            return np.asarray((values - self.mean) / self.scale)


def encoded_sources(layout: TableLayout) -> tuple[FeatureSource, ...]:
    """Sources of a model that sees encoded rows: feature j is the encoded column j.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> [source.column for source in encoded_sources(TableLayout.of(BoxDomain([0.0, 0.0], [1.0, 1.0])))]
    [0, 1]
    """
    sources: list[FeatureSource] = []
    for i, column in enumerate(layout.columns):
        if column.kind != "categorical":
            sources.append(FeatureSource(i, column.mean, column.scale, curve=column.curve))
        elif column.is_binary:
            sources.append(FeatureSource(i, table=np.array([0.0, 1.0])))
        else:
            sources += [FeatureSource(i, table=row) for row in np.eye(len(column.categories))]
    return tuple(sources)


def raw_sources(
    layout: TableLayout, trees: TreeEnsemble, names: Sequence[str] | None = None
) -> tuple[FeatureSource, ...]:
    """Sources of a model that sees the table itself, its categories by their own codes.

    Parameters
    ----------
    layout : TableLayout
    trees : TreeEnsemble
        Knows the codes of its categories.
    names : sequence of str, optional
        The model's columns in order; its own by default.
    """
    known = {column.name: i for i, column in enumerate(layout.columns)}
    wanted = names if names is not None else trees.feature_names
    if wanted is None:
        raise InputError("bounds: the model does not know the names of its columns. Pass them as 'names'.")
    sources = []
    for j, name in enumerate(wanted):
        if name not in known:
            raise InputError(
                f"bounds: the model's column {name!r} is none of the domain's: {list(known)[:12]}."
            )
        column = layout.columns[known[name]]
        if column.kind != "categorical":
            sources.append(FeatureSource(known[name]))
            continue
        sources.append(
            FeatureSource(known[name], table=_codes(column.categories, trees.categories.get(j), name))
        )
    return tuple(sources)


def pipeline_sources(layout: TableLayout, features: Sequence[TableFeature]) -> tuple[FeatureSource, ...]:
    """Sources of a model behind the encoders and scalers of a pipeline.

    Parameters
    ----------
    layout : TableLayout
    features : sequence of TableFeature
        What `read_table_features` read, with the layout's own categories.
    """
    known = {column.name: i for i, column in enumerate(layout.columns)}
    sources = []
    for feature in features:
        if feature.column not in known:
            raise InputError(f"bounds: the pipeline's column {feature.column!r} is none of the domain's.")
        table = None if feature.answers is None else np.asarray(feature.answers, dtype=np.float64)
        sources.append(FeatureSource(known[feature.column], feature.mean, feature.scale, table))
    return tuple(sources)


def affine_of(layout: TableLayout, sources: Sequence[FeatureSource]) -> tuple[FloatArray, FloatArray]:
    """Return A (F, d) and c (F,) with feature = A x + c of an encoded row x.

    Parameters
    ----------
    layout : TableLayout
    sources : sequence of FeatureSource
        Of F features.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> affine_of(TableLayout.of(BoxDomain([0.0], [1.0])), (FeatureSource(0, mean=1.0, scale=2.0),))
    (array([[0.5]]), array([-0.5]))
    """
    matrix, shift = np.zeros((len(sources), layout.width)), np.zeros(len(sources))
    for j, source in enumerate(sources):
        column = layout.columns[source.column]
        if source.table is None:
            if source.curve != column.curve:
                raise InputError(not_linear(column))
            matrix[j, column.start] = column.scale / source.scale
            shift[j] = (column.mean - source.mean) / source.scale
        elif column.is_binary:
            matrix[j, column.start] = source.table[1] - source.table[0]
            shift[j] = source.table[0]
        else:
            matrix[j, column.slice] = source.table
    return matrix, shift


def _codes(categories: Sequence[Any], codes: Sequence[Any] | None, name: str) -> FloatArray:
    if codes is not None:
        places = {value: float(code) for code, value in enumerate(codes)}
        return np.array([places.get(category, np.nan) for category in categories])
    try:
        return np.array([float(category) for category in categories])
    except (TypeError, ValueError):
        raise InputError(
            f"bounds: the domain's column {name!r} has categories, and the model does not say their codes."
        ) from None
