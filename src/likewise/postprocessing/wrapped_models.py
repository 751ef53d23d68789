"""The model inside of a wrapper as a file of its library's own format; nothing is pickled."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likewise.core.errors import InputError
from likewise.core.extras import require
from likewise.models.isolated.model_file import IsolatedFile
from likewise.models.model_files import read_described, read_model, read_tried
from likewise.models.sidecars import read_sidecar

__all__ = ["model_bytes", "read_wrapped"]


def read_wrapped(path: Path, inner: Any, *, trusted: Sequence[str], trust: bool) -> Any:
    """Return the model of a file that `model_bytes` filled.

    Parameters
    ----------
    path : Path
    inner : dict or None
        Its own description, where it has one.
    trusted : sequence of str
        As in `load_model`.
    trust : bool
        Whether to load the model at once; else it is tried in a process of its own first.
    """
    if inner is not None:
        return read_described(path, inner, trusted=trusted, trust=trust)
    if trust:
        return read_model(path, trusted=trusted, trust=True, sidecar=False).native
    return read_tried(path, trusted=trusted).native


def model_bytes(model: Any, path: Path, *, owner: str) -> tuple[bytes, dict[str, Any] | None]:
    """Return a model in its library's own format, and its own description where it is two files.

    Parameters
    ----------
    model : object
        Of XGBoost, LightGBM, CatBoost, ONNX, scikit-learn (as skops) or this package.
    path : Path
        Its ending chooses between the formats of a library.
    owner : str
        For error messages.
    """
    if isinstance(model, IsolatedFile):
        return model.path.read_bytes(), read_sidecar(model.path) if model.sidecar else None
    if "likewise" in _roots(model) and hasattr(model, "save"):
        return _saved(model, path.suffix)
    return _plain_bytes(model, path, owner), None


def _roots(model: Any) -> set[str]:
    return {kind.__module__.split(".")[0] for kind in type(model).__mro__}


def _plain_bytes(model: Any, path: Path, owner: str) -> bytes:
    roots = _roots(model)
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
