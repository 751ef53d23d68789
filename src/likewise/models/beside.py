"""Files of estimators that wrap a model: the model in its library's own format, the estimator beside it. No pickle.

``<path>.likewise.json`` has parameters and what was learned, ``<path>.arrays.safetensors`` its arrays if there are some. A
class that is saved so has a class method ``_reopened(about, arrays, model)``.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.core.errors import FormatError, InputError, require
from likewise.core.files import LARGEST_TENSORS, Fields, atomic_path, check_form, read_file
from likewise.models.containers import damage_named, read_sidecar, sidecar_path, write_with_sidecar
from likewise.models.model import libraries_of
from likewise.models.model_files import read_model, read_tried, writer_of
from likewise.models.stored import DESCRIBED, Arrays, described

_FORM = Fields(DESCRIBED, {"arrays_sha256": str}, more=True)


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
        check_form(found, _FORM, "it")
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
