"""Values of a sensitive attribute, where they come from, and what kind of attribute it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray, is_tensor, to_numpy
from likewise.core.checks import check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import is_frame, to_pandas
from likewise.fair_metrics.learner import Features

__all__ = ["Attribute", "Target", "as_list", "collect", "make_target", "resolve_kinds"]

KINDS = ("categorical", "continuous", "count")
_FEW = 10
_MANY = 100


@dataclass(frozen=True)
class Attribute:
    """One sensitive attribute.

    Parameters
    ----------
    name : str or int
    values : pandas.Series of length n
        Missing where the attribute is unknown.
    own : list of int
        Coordinates of φ that are the attribute itself.
    """

    name: Any
    values: pd.Series[Any]
    own: list[int]


@dataclass(frozen=True)
class Target:
    """What the regression predicts.

    Parameters
    ----------
    family : {"softmax", "logistic", "gaussian", "poisson"}
    y : ndarray of shape (m, k)
        For the rows in `known` only.
    known : ndarray of shape (n,) of bool
    codes : ndarray of shape (m,), optional
        The class of each row, for an attribute with classes.
    """

    family: str
    y: FloatArray
    known: Any
    codes: Any = None


def as_list(attributes: Any) -> list[Any]:
    """One or several names as a list."""
    if attributes is None:
        return []
    return [attributes] if isinstance(attributes, (str, int, np.integer)) else list(attributes)


def collect(
    owner: str, features: Features, attributes: Any, y: Any, sensitive_features: Any
) -> list[Attribute]:
    """Find the values of every attribute: in `sensitive_features`, in the columns of X, or in y."""
    wanted = as_list(attributes)
    if attributes is not None and not wanted:
        raise bad_parameter(owner, "attributes", allowed="at least one column", got="none")
    given = sensitive_features if sensitive_features is not None or wanted else y
    if given is None and not wanted:
        raise InputError(
            f"{owner} requires y to be passed, but the target y is None: no attribute was given. Name columns of X "
            "in 'attributes', or pass the values as sensitive_features=."
        )
    table = None if given is None else _as_table(owner, given)
    if table is not None:
        check_same_length(owner, X=features.phi, sensitive_features=table)
    names = wanted or list(table.columns if table is not None else [])
    return [_attribute(features, table, name) for name in names]


def _as_table(owner: str, values: Any) -> pd.DataFrame:
    if is_frame(values):
        return to_pandas(values, owner=owner, name="sensitive_features")
    if isinstance(values, pd.Series):
        return values.to_frame(values.name if values.name is not None else 0)
    if isinstance(values, Mapping):
        return pd.DataFrame(dict(values))
    array = to_numpy(values) if is_tensor(values) else np.asarray(values)
    if array.dtype.kind == "c":
        raise bad_parameter(
            owner, "y", allowed="real", got="complex values", remedy="Complex data not supported."
        )
    if array.ndim not in (1, 2):
        raise bad_parameter(
            owner, "sensitive_features", allowed="one column per attribute", got=f"shape {array.shape}"
        )
    return pd.DataFrame(array if array.ndim == 2 else array[:, None])


def _attribute(features: Features, table: pd.DataFrame | None, name: Any) -> Attribute:
    where = features.where
    by_name = isinstance(name, str)
    if table is not None and name in table.columns:
        return Attribute(name, table[name], where.find(name) if by_name and where.has(name) else [])
    frame = features.frame
    if by_name and frame is not None and name in frame.columns:
        return Attribute(name, frame[name], where.find(name) if where.has(name) else [])
    own = where.find(name)
    if len(own) > 1:
        return Attribute(name, _one_hot_classes(features, own), own)
    values = np.array(features.phi[:, own[0]], dtype=float)
    values[features.holes.get(own[0], [])] = np.nan
    return Attribute(name, pd.Series(values), own)


def _one_hot_classes(features: Features, own: list[int]) -> pd.Series[Any]:
    """Class of each row from its one-hot columns; rows without any 1 are a class of their own."""
    block = features.phi[:, own]
    if not np.isin(block, (0.0, 1.0)).all() or (block.sum(1) > 1).any():
        names = ", ".join((features.where.names or ())[i] for i in own[:4])
        raise InputError(
            f"{features.where.owner}: the columns {names} … belong together but are no one-hot columns. "
            "Pass the attribute's values as sensitive_features=."
        )
    classes = np.where(block.any(1), block.argmax(1), -1).astype(float)
    for i in own:
        if i in features.holes:
            classes[features.holes[i]] = np.nan
    return pd.Series(classes)


def resolve_kinds(owner: str, kind: Any, attributes: list[Attribute]) -> list[str]:
    """The kind of every attribute, as asked for or found from its values."""
    if isinstance(kind, Mapping):
        unknown = [name for name in kind if name not in [a.name for a in attributes]]
        if unknown:
            raise bad_parameter(
                owner, "kind", allowed=f"about the attributes {[a.name for a in attributes]}", got=unknown
            )
        asked = [kind.get(attribute.name, "auto") for attribute in attributes]
    elif isinstance(kind, str):
        asked = [kind] * len(attributes)
    else:
        asked = list(kind)
    if len(asked) != len(attributes) or not all(one in ("auto", *KINDS) for one in asked):
        raise bad_parameter(
            owner,
            "kind",
            allowed="'auto', 'categorical', 'continuous' or 'count', one for all or one per attribute",
            got=kind,
        )
    return [
        _guess(a.values.dropna()) if one == "auto" else one for one, a in zip(asked, attributes, strict=True)
    ]


def _guess(values: pd.Series[Any]) -> str:
    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        try:
            values = pd.to_numeric(values) if values.dtype == object else values
        except (TypeError, ValueError):
            return "categorical"
        if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
            return "categorical"
    numbers = values.to_numpy(dtype=float)
    distinct = np.unique(numbers)
    if len(distinct) == 2:
        return "categorical"
    if not np.equal(np.floor(distinct), distinct).all():
        return "continuous"
    if len(distinct) <= _FEW:
        return "categorical"
    return "count" if distinct[0] == 0 and distinct[-1] <= _MANY else "continuous"


def make_target(owner: str, attribute: Attribute, kind: str) -> Target:
    """Turn the known values of an attribute into what the regression of its kind predicts."""
    known = attribute.values.notna().to_numpy()
    values = attribute.values[known]
    shown = f"attribute {attribute.name!r}"
    if not known.any():
        raise InputError(f"{owner}: {shown} is missing in every row. At least some rows must know it.")
    if kind == "categorical":
        return _classes(owner, shown, values, known)
    try:
        numbers = values.to_numpy(dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{owner}: {shown} is no number, so it cannot be {kind}. Pass kind='categorical'."
        ) from error
    if not np.isfinite(numbers).all():
        raise InputError(
            f"{owner}: {shown}: Input y contains infinity or a value too large. Drop those rows."
        )
    if np.ptp(numbers) == 0:
        raise InputError(
            f"{owner}: {shown} has one value only ({numbers[0]:g}), one class. Nothing can be learned from it."
        )
    if kind == "continuous":
        # In units of its own spread, so that the penalty means the same for years and for dollars.
        return Target("gaussian", ((numbers - numbers.mean()) / numbers.std())[:, None], known)
    if (numbers < 0).any() or not np.equal(np.floor(numbers), numbers).all():
        raise InputError(
            f"{owner}: {shown} is no count: counts are whole numbers >= 0. Pass kind='continuous'."
        )
    return Target("poisson", numbers[:, None], known)


def _classes(owner: str, shown: str, values: pd.Series[Any], known: Any) -> Target:
    if values.dtype.kind == "f" and np.isinf(values.to_numpy()).any():
        raise InputError(
            f"{owner}: {shown}: Input y contains infinity or a value too large. Drop those rows."
        )
    codes, categories = pd.factorize(values, sort=False)
    if len(categories) < 2:
        raise InputError(
            f"{owner}: {shown} has one category only ({categories[0]!r}), one class. Two or more are needed."
        )
    # Order by the category's text, so that the order of the rows does not matter.
    order = sorted(range(len(categories)), key=lambda i: str(categories[i]))
    codes = np.argsort(order)[codes]
    if len(categories) == 2:
        return Target("logistic", codes[:, None].astype(float), known, codes)
    return Target("softmax", np.eye(len(categories))[codes], known, codes)
