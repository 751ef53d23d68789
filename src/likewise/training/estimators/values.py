"""Parameters and learned values as JSON beside named arrays, and back: no pickle, and only known classes."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from likewise.core.checks import is_tensor, to_numpy
from likewise.core.errors import FormatError
from likewise.core.files import plain_dtype

Arrays = dict[str, np.ndarray[Any, Any]]


class CannotStoreError(TypeError):
    """A value that no file can hold without pickle, such as a function."""


@cache
def _known() -> dict[str, type[Any]]:
    """Classes that a file may name."""
    from likewise import data as domains, fair_metrics
    from likewise.auditing.search.gradient.search import GradientSearch
    from likewise.core.subspace import Subspace
    from likewise.counterfactuals.edits import Edit
    from likewise.training.boosting.growers import BoostingConfig
    from likewise.training.estimators.automatic import BesideBaseline
    from likewise.training.estimators.parameters import TrainingConfig
    from likewise.training.estimators.rows import AttributeCodes, ProxyVectors
    from likewise.training.results import Finding

    classes: list[type[Any]] = [
        BoostingConfig,
        TrainingConfig,
        Edit,
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
    """Return a value as JSON can hold it; arrays in it are added to `arrays` and named."""
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
    """Return the value that `encode` wrote."""
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
        from likewise.data.tabular import TabularDomain

        return TabularDomain.from_dict(stored["domain"])
    if stored.get("object") in _known():
        values = {name: decode(item, arrays) for name, item in stored["values"].items()}
        return _known()[stored["object"]](**values)
    raise FormatError(f"the file names something unknown: {sorted(stored)[:3]}")


def encode_parameters(
    estimator: Any, arrays: Arrays, *, skip: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Return an estimator's parameters as JSON can hold them, and the names of those that it cannot hold."""
    stored, left_out = {}, []
    for name, value in estimator.get_params(deep=False).items():
        if name in skip:
            continue
        try:
            stored[name] = encode(value, arrays)
        except CannotStoreError:
            left_out.append(name)
    return stored, left_out


def warn_left_out(owner: str, left_out: Sequence[str], *, stacklevel: int) -> None:
    """Warn about parameters that a file does not hold."""
    if left_out:
        warnings.warn(
            f"{owner}.load: {', '.join(left_out)} could not be written to the file and have their defaults now. Set "
            "them with set_params before fitting again.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


# What an estimator can have learned, by name: a file that says otherwise is refused before anything uses it.


def check_learned(learned: dict[str, Any], width: int) -> None:
    """Raise unless everything that a file calls learned is of the kind that its name promises."""
    for name, value in learned.items():
        if not name.endswith("_") or name.startswith("_"):
            raise FormatError(f"what was learned has {name!r}, which no estimator learns")
        if not isinstance(value, _kinds().get(name, object)):
            raise FormatError(f"what was learned has {name} as {type(value).__name__}")
    classes = learned.get("classes_")
    if classes is None or classes.ndim != 1 or len(classes) < 2 or len(set(classes.tolist())) < len(classes):
        raise FormatError("its classes are not a list of two or more different labels")
    names = learned.get("feature_names_in_")
    if names is not None and (names.ndim != 1 or not all(isinstance(name, str) for name in names.tolist())):
        raise FormatError("its columns have names that are not text")
    for name in ("encoder_", "metric_", "removed_"):
        own = getattr(learned.get(name), "n_features", None)
        if own not in (None, width):
            raise FormatError(f"{name} has {own} columns, and the network {width}")


def _kinds() -> dict[str, Any]:
    from likewise.core.subspace import Subspace
    from likewise.data.domain import BoxDomain, DataRangeDomain, Unbounded
    from likewise.data.tabular import TabularDomain
    from likewise.fair_metrics import FairMetric
    from likewise.training.estimators.rows import AttributeCodes, ProxyVectors

    nothing = type(None)
    return {
        "classes_": np.ndarray,
        "n_features_in_": int,
        "feature_names_in_": np.ndarray,
        "encoder_": TabularDomain,
        "removed_": (Subspace, nothing),
        "metric_": FairMetric,
        "search_domain_": (BoxDomain, DataRangeDomain, TabularDomain, Unbounded, nothing),
        "attributes_": AttributeCodes,
        "proxy_": ProxyVectors,
        "status_": str,
        "findings_": (list, tuple),
        "n_iter_": int,
    }
