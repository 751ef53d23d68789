"""Features of a model as functions of one cell each: what a number, a category, a gap or a strange word becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.domains.column import Column
from likewise.domains.curve import Curve
from likewise.domains.reading import category_codes, read_numbers
from likewise.models.model_rows import same_words
from likewise.models.table_features import REFUSED, TableFeature
from likewise.models.tree_ensemble import TreeEnsemble
from likewise.report.explore.cells import exact_cell

__all__ = ["CellFeature", "encoded_features", "pipeline_features", "table_features"]


@dataclass(frozen=True, eq=False)
class CellFeature:
    """One feature.

    Parameters
    ----------
    column : str
        The table's column.
    mean, scale : float
        A number v becomes (curve(v) − mean) / scale.
    categories : tuple, optional
        Of a category: those that are known.
    answers : tuple of float or REFUSED, optional
        What each of them becomes.
    missing, unseen : float or REFUSED
        What a missing cell, and a category that is not known, become; NaN stays missing.
    curve : Curve, optional
        The scale of a number where that is not linear.
    """

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
    """Features of a model that takes encoded rows, in which nothing is missing and nothing strange.

    Examples
    --------
    >>> from likewise.domains import TabularDomain
    >>> domain = TabularDomain.from_frame(pd.DataFrame({"age": [20, 40], "sex": ["F", "M"]}))
    >>> [(one.column, one.answers) for one in encoded_features(domain.columns_)]
    [('age', None), ('sex', (0.0, 1.0))]
    """
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
    strange: Any = REFUSED,
) -> tuple[CellFeature, ...]:
    """Features of a model that takes the table's own columns.

    Parameters
    ----------
    columns : sequence of Column
        Of the domain, in the order of the table.
    names : sequence of str, optional
        The model's columns in its order; those of the table by default.
    trees : TreeEnsemble, optional
        Knows the codes of its categories.
    strange : float or REFUSED
        What the model makes of a category that it does not know.
    """
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
            answers = tuple(places.get(category, strange) for category in column.categories)
            found.append(
                CellFeature(column.name, categories=column.categories, answers=answers, unseen=strange)
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
    """Features of a model behind the encoders and scalers of a scikit-learn pipeline.

    Parameters
    ----------
    columns : sequence of Column
    features : sequence of TableFeature
        What `read_table_features` read, with the categories of these columns.
    """
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
                # Codes that no step encodes: what the table never had is no code.
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
