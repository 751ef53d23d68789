"""Parameters and learned values as JSON beside named arrays, and back: no pickle, and only known classes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from likewise.core.arrays import is_tensor, to_numpy
from likewise.core.errors import FormatError
from likewise.core.plain_forms import plain_dtype

__all__ = ["Arrays", "CannotStoreError", "decode", "encode"]

Arrays = dict[str, np.ndarray[Any, Any]]


class CannotStoreError(TypeError):
    """A value that no file can hold without pickle, such as a function."""


@cache
def _known() -> dict[str, type[Any]]:
    """Classes that a file may name."""
    from likewise import domains, fair_metrics
    from likewise.auditing.search.gradient.gradient_search import GradientSearch
    from likewise.core.subspace import Subspace
    from likewise.estimators.attributes import AttributeCodes, ProxyVectors
    from likewise.estimators.beside_baseline import BesideBaseline
    from likewise.training.findings import Finding

    classes: list[type[Any]] = [
        GradientSearch,
        Subspace,
        AttributeCodes,
        ProxyVectors,
        Finding,
        BesideBaseline,
    ]
    for room, names in (
        (domains, ("BoxDomain", "DataRangeDomain", "TabularDomain", "Unbounded")),
        (fair_metrics, ("AttributeSubspace", "ComparableSubspace", "ExpertSubspace", "FairMetric")),
    ):
        classes += [getattr(room, name) for name in names]
    return {found.__name__: found for found in classes}


def encode(value: Any, arrays: Arrays) -> Any:
    """Return a value as JSON can hold it; arrays in it are added to `arrays` and named.

    Parameters
    ----------
    value : object
        Plain values, tuples, lists, mappings with string keys, arrays, and the package's own metrics, domains,
        learners and choices.
    arrays : dict
        Filled with the arrays met.

    Raises
    ------
    CannotStoreError
        For anything else.

    Examples
    --------
    >>> found: Arrays = {}
    >>> encode({"a": (1, None), "b": np.zeros(2)}, found)
    {'dict': {'a': {'tuple': [1, None]}, 'b': {'array': 'value.0'}}}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [encode(item, arrays) for item in value]}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise CannotStoreError("a mapping whose keys are not all strings")
        return {"dict": {key: encode(item, arrays) for key, item in value.items()}}
    if is_tensor(value) or isinstance(value, np.ndarray):
        return _array(to_numpy(value), arrays)
    return _object(value, arrays)


def _array(array: np.ndarray[Any, Any], arrays: Arrays) -> dict[str, Any]:
    if array.dtype.kind not in "biuf":
        return {"labels": [encode(item, arrays) for item in array.tolist()], "dtype": array.dtype.str}
    name = f"value.{len(arrays)}"
    arrays[name] = np.ascontiguousarray(array)
    return {"array": name}


def _object(value: Any, arrays: Arrays) -> dict[str, Any]:
    cls: Any = type(value)
    kind = cls.__name__
    if _known().get(kind) is not cls:
        raise CannotStoreError(kind)
    if kind == "TabularDomain" and hasattr(value, "columns_"):
        return {"domain": value.to_dict()}
    if dataclasses.is_dataclass(value):
        chosen = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    else:
        chosen = value.get_params(deep=False)
    return {"object": kind, "values": {name: encode(item, arrays) for name, item in chosen.items()}}


def decode(stored: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    """Return the value that `encode` wrote.

    Examples
    --------
    >>> decode({"tuple": [1, {"array": "value.0"}]}, {"value.0": np.zeros(1)})
    (1, array([0.]))
    """
    if not isinstance(stored, dict):
        return stored
    if "list" in stored or "tuple" in stored:
        kind = "list" if "list" in stored else "tuple"
        items = [decode(item, arrays) for item in stored[kind]]
        return items if kind == "list" else tuple(items)
    if "dict" in stored:
        return {key: decode(item, arrays) for key, item in stored["dict"].items()}
    if "array" in stored:
        return arrays[stored["array"]]
    if "labels" in stored:
        return np.array(
            [decode(item, arrays) for item in stored["labels"]], dtype=plain_dtype(stored["dtype"])
        )
    if "domain" in stored:
        from likewise.domains import TabularDomain

        return TabularDomain.from_dict(stored["domain"])
    if stored.get("object") in _known():
        values = {name: decode(item, arrays) for name, item in stored["values"].items()}
        return _known()[stored["object"]](**values)
    raise FormatError(f"the file names something unknown: {sorted(stored)[:3]}")
