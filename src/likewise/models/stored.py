"""Estimators as files: parameters and learned attributes as JSON beside named arrays. No pickle, known classes only.

One that wraps a model is written in its library's own format with ``<path>.likewise.json`` beside it, which has parameters
and what was learned, and ``<path>.arrays.safetensors`` for its arrays if there are some. A class that is saved so has a
class method ``_reopened(about, arrays, model)``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import math
import os
import tempfile
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.checks import is_tensor, to_numpy
from likewise.core.errors import FormatError, InputError, require
from likewise.core.files import (
    LARGEST_TENSORS,
    Fields,
    ListOf,
    MapOf,
    atomic_path,
    check_form,
    plain_dtype,
    read_file,
)
from likewise.models.containers import damage_named, read_sidecar, sidecar_path, write_with_sidecar
from likewise.models.model import libraries_of
from likewise.models.model_files import read_model, read_tried, writer_of

Arrays = dict[str, np.ndarray[Any, Any]]

# What a file may name, by the module that has it.
_CLASSES = {
    "likewise.auditing.search.gradient.search": ("GradientSearch",),
    "likewise.core.subspace": ("Subspace",),
    "likewise.counterfactuals.causal.consequences": ("ConsequenceTwins",),
    "likewise.counterfactuals.edited_rows": ("TwinFactor",),
    "likewise.counterfactuals.edits": ("Edit",),
    "likewise.counterfactuals.rules": ("Forbidden", "Implication", "Rules", "ValueMap"),
    "likewise.data": ("BoxDomain", "DataRangeDomain", "TabularDomain", "Unbounded"),
    "likewise.fair_metrics": ("AttributeSubspace", "ComparableSubspace", "ExpertSubspace", "FairMetric"),
    "likewise.training.boosting.columns": ("TreeColumns",),
    "likewise.training.boosting.growers": ("BoostingConfig",),
    "likewise.training.estimators.automatic": ("BesideBaseline",),
    "likewise.training.estimators.parameters": ("TrainingConfig",),
    "likewise.training.estimators.rows": ("AttributeCodes", "ProxyVectors"),
    "likewise.training.results": ("Finding",),
}
_MODULES = {name: module for module, names in _CLASSES.items() for name in names}
# What an estimator can have learned, by name, and the kinds of it: a file that says otherwise is refused before anything
# uses it.
_KINDS = {
    "attributes_": "AttributeCodes",
    "classes_": "ndarray",
    "columns_": "TreeColumns",
    "encoder_": "TabularDomain",
    "factors_": "tuple",
    "feature_names_in_": "ndarray",
    "findings_": "list tuple",
    "maker_": "ConsequenceTwins NoneType",
    "metric_": "FairMetric",
    "n_features_in_": "int",
    "n_iter_": "int",
    "proxy_": "ProxyVectors",
    "removed_": "Subspace NoneType",
    "scale_": "float",
    "search_domain_": "BoxDomain DataRangeDomain TabularDomain Unbounded NoneType",
    "status_": "str",
}
# The form of what `described` returns.
DESCRIBED = {"class": str, "parameters": MapOf(object), "left_out": ListOf(str), "learned": MapOf(object)}


class CannotStoreError(TypeError):
    """A value that no file can hold without pickle, such as a function."""


def encode(value: Any, arrays: Arrays | None) -> Any:
    """Return a value as JSON can hold it; arrays in it are added to `arrays` and named, or written out if that is None."""
    if isinstance(value, np.generic):
        value = value.item()
    if arrays is None and isinstance(value, float) and not math.isfinite(value):
        raise CannotStoreError(f"the number {value}")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [encode(item, arrays) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"tuple": [encode(item, arrays) for item in sorted(value, key=repr)]}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {"dict": {key: encode(item, arrays) for key, item in value.items()}}
        return {"pairs": [[encode(key, arrays), encode(item, arrays)] for key, item in value.items()]}
    if is_tensor(value) or isinstance(value, np.ndarray):
        return _array(to_numpy(value), arrays)
    return _object(value, arrays)


def _array(array: np.ndarray[Any, Any], arrays: Arrays | None) -> dict[str, Any]:
    if arrays is None or array.dtype.kind not in "biuf":
        return {"labels": [encode(item, arrays) for item in array.tolist()], "dtype": array.dtype.str}
    name = f"value.{len(arrays)}"
    arrays[name] = np.ascontiguousarray(array)
    return {"array": name}


def _object(value: Any, arrays: Arrays | None) -> dict[str, Any]:
    kind = type(value).__name__
    if kind not in _MODULES or _known(kind) is not type(value):
        raise CannotStoreError(kind)
    if kind == "TabularDomain" and hasattr(value, "columns_"):
        return {"domain": value.to_dict()}
    if kind == "ConsequenceTwins":
        if value.moved_:
            raise CannotStoreError("twins for whom what follows along the graph is learned")
        chosen = value.as_rules()
    elif dataclasses.is_dataclass(value):
        chosen = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    else:
        chosen = value.get_params(deep=False)
    return {"object": kind, "values": {name: encode(item, arrays) for name, item in chosen.items()}}


def _known(kind: str) -> Any:
    return getattr(importlib.import_module(_MODULES[kind]), kind)


def decode(stored: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    """Return the value that `encode` wrote."""
    if not isinstance(stored, dict):
        return stored
    if "list" in stored:
        return [decode(item, arrays) for item in stored["list"]]
    if "tuple" in stored:
        return tuple(decode(item, arrays) for item in stored["tuple"])
    if "dict" in stored:
        return {key: decode(item, arrays) for key, item in stored["dict"].items()}
    if "pairs" in stored:
        return {decode(key, arrays): decode(item, arrays) for key, item in stored["pairs"]}
    if "array" in stored:
        return arrays[stored["array"]]
    if "labels" in stored:
        values = [decode(item, arrays) for item in stored["labels"]]
        return np.array(values, dtype=plain_dtype(stored["dtype"]))
    if "domain" in stored:
        return _known("TabularDomain").from_dict(stored["domain"])
    kind = stored.get("object")
    if isinstance(kind, str) and kind in _MODULES:
        make = _known(kind).by_rules if kind == "ConsequenceTwins" else _known(kind)
        return make(**{name: decode(item, arrays) for name, item in stored["values"].items()})
    raise FormatError(f"the file names something unknown: {sorted(stored)[:3]}")


def described(
    estimator: Any,
    learned: Mapping[str, Any],
    arrays: Arrays | None = None,
    *,
    skip: Collection[str] = (),
    whole: bool = False,
) -> dict[str, Any]:
    """Return parameters and what was learned as JSON can hold them.

    Parameters that it cannot hold are left out, or raise an error if the description is to be `whole`.
    """
    owner, parameters, left_out = type(estimator).__name__, dict[str, Any](), []
    try:
        for name, value in estimator.get_params(deep=False).items():
            if name not in skip:
                try:
                    parameters[name] = encode(value, arrays)
                except CannotStoreError:
                    left_out.append(name)
                    if whole:
                        raise
        stored = {name: encode(value, arrays) for name, value in learned.items()}
    except CannotStoreError as error:
        raise InputError(
            f"{owner}.save: what was learned holds {error}, which cannot be written without pickle. Use plain labels and "
            "values, twins by rules alone, and a metric whose feature map is None or a TabularDomain."
        ) from error
    return {"class": owner, "parameters": parameters, "left_out": left_out, "learned": stored}


def remade(
    cls: type[Any],
    about: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    *,
    width: int | None = None,
    **given: Any,
) -> Any:
    """Return the estimator that `described` described; parameters that are `given` were not left out."""
    estimator = cls(**{name: decode(item, arrays) for name, item in about["parameters"].items()} | given)
    learned = {name: decode(item, arrays) for name, item in about["learned"].items()}
    _check_learned(learned, width)
    for name, value in learned.items():
        setattr(estimator, name, value)
    if left_out := [name for name in about["left_out"] if name not in given]:
        warnings.warn(
            f"{cls.__name__}.load: {', '.join(left_out)} could not be written to the file and have their defaults now. Set "
            "them with set_params before fitting again.",
            UserWarning,
            stacklevel=6,
        )
    return estimator


def _check_learned(learned: dict[str, Any], width: int | None) -> None:
    """Raise unless everything that a file calls learned is of the kind that its name promises."""
    for name, value in learned.items():
        if not name.endswith("_") or name.startswith("_"):
            raise FormatError(f"what was learned has {name!r}, which no estimator learns")
        if type(value).__name__ not in _KINDS.get(name, type(value).__name__).split():
            raise FormatError(f"what was learned has {name} as {type(value).__name__}")
    if "classes_" in learned or width is not None:
        classes = learned.get("classes_")
        if classes is None or classes.ndim != 1 or not 2 <= len(classes) == len(set(classes.tolist())):
            raise FormatError("its classes are not a list of two or more different labels")
    names = learned.get("feature_names_in_")
    if names is not None and (names.ndim != 1 or not all(isinstance(name, str) for name in names.tolist())):
        raise FormatError("its columns have names that are not text")
    for name in ("encoder_", "metric_", "removed_"):
        own = getattr(learned.get(name), "n_features", None)
        if width is not None and own not in (None, width):
            raise FormatError(f"{name} has {own} columns, and the network {width}")


# A model in its library's own format, and the estimator over it in files beside it.

_BESIDE = Fields(DESCRIBED, {"arrays_sha256": str}, more=True)


def save_beside(
    estimator: Any,
    path: str | os.PathLike[str],
    kind: str,
    model: Any,
    learned: Mapping[str, Any],
    *,
    arrays: Arrays | None = None,
    skip: Collection[str] = (),
    whole: bool = False,
    **more: Any,
) -> None:
    """Write a model and the estimator over it; `described` has the other parameters."""
    about = described(estimator, learned, arrays, skip=skip, whole=whole) | more
    # A model that is a file and a description itself keeps its description inside of ours.
    data, about["inner"] = model_bytes(model, Path(path), owner=f"{type(estimator).__name__}.save")
    if arrays:
        from safetensors.numpy import save

        raw = save(arrays)
        about["arrays_sha256"] = hashlib.sha256(raw).hexdigest()
        with atomic_path(arrays_path(path)) as temporary:
            temporary.write_bytes(raw)
    write_with_sidecar(path, data, kind, about)


def load_beside(
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str] = (),
    trust: bool = False,
    about: Any = None,
    cls: type[Any] | None = None,
) -> Any:
    """Read what `save_beside` wrote, of a class if one is given; `about` is the description if it is not beside the file."""
    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"load: there is no file {str(path)!r}.")
    found: Any = read_sidecar(where) if about is None else about
    kind = found.get("likewise") if isinstance(found, dict) else None
    writer = None if found is None else writer_of(kind, where)
    if (
        writer is None
        or not hasattr(writer, "_reopened")
        or (cls is not None and not issubclass(writer, cls))
    ):
        what = "an estimator" if cls is None else f"a {cls.__name__}"
        raise FormatError(f"{where.name} has no {sidecar_path(where).name} of {what} beside it.")
    with damage_named(sidecar_path(where)):
        check_form(found, _BESIDE, "it")
    arrays = _read_arrays(arrays_path(where), found["arrays_sha256"]) if "arrays_sha256" in found else {}
    if found.get("inner") is not None:
        model = load_beside(where, trusted=trusted, trust=trust, about=found["inner"])
    elif trust:
        model = read_model(where, trusted=trusted, trust=True, sidecar=False).native
    else:
        model = read_tried(where, trusted=trusted).native
    with damage_named(sidecar_path(where)):
        return writer._reopened(found, arrays, model)


def arrays_path(path: str | os.PathLike[str]) -> Path:
    """Return where the arrays of a model file's description are."""
    return Path(f"{os.fspath(path)}.arrays.safetensors")


def _read_arrays(path: Path, expected: str) -> Arrays:
    if not path.exists():
        raise FormatError(f"There is no {path.name} beside the model. Move the files of the model together.")
    raw = read_file(path, largest=LARGEST_TENSORS)
    if hashlib.sha256(raw).hexdigest() != expected:
        raise FormatError(
            f"{path.name} belongs to another model, or is damaged. Move the files of the model together."
        )
    from safetensors.numpy import load

    found: Arrays = load(raw)  # the digest says that `save_beside` wrote it
    return found


def model_bytes(model: Any, path: Path, *, owner: str) -> tuple[bytes, dict[str, Any] | None]:
    """Return a model in its library's own format, and its own description if it is two files."""
    from likewise.models.sandbox.model_file import SandboxedFile

    if isinstance(model, SandboxedFile):
        return model.path.read_bytes(), read_sidecar(model.path) if model.sidecar else None
    if "likewise" in libraries_of(model) and hasattr(model, "save"):
        return _saved(model, path.suffix)
    return _plain_bytes(model, path, owner), None


def _plain_bytes(model: Any, path: Path, owner: str) -> bytes:
    roots = libraries_of(model)
    if isinstance(model, (bytes, bytearray)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        return Path(model).read_bytes()
    if "onnx" in roots:
        return bytes(model.SerializeToString())
    if "xgboost" in roots:
        # A wrapper writes that it is one, without which its best iteration would be lost.
        return _saved(model, ".json" if path.suffix == ".json" else ".ubj")[0]
    if "lightgbm" in roots:
        return str(getattr(model, "booster_", model).model_to_string()).encode()
    if "catboost" in roots:
        return _saved(model, ".cbm")[0]
    if "sklearn" in roots:
        io = require("skops.io", extra="skops", why="Writing a scikit-learn model without pickle")
        return bytes(io.dumps(model))
    raise InputError(
        f"{owner}: a model of type {type(model).__name__} cannot be written without pickle. Save it in its own way, "
        "and wrap it again after loading."
    )


def _saved(model: Any, suffix: str) -> tuple[bytes, dict[str, Any] | None]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"model{suffix}"
        (model.save if hasattr(model, "save") else model.save_model)(str(target))
        return target.read_bytes(), read_sidecar(target)
