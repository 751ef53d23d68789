"""Models from files, safely: what a file is comes from its content, and nothing in it runs unless allowed.

Read without any risk of running code: the package's own files (safetensors and JSON), ONNX, XGBoost, LightGBM,
CatBoost, and skops with the types it lists. Pickle, joblib, torch's pickles, TorchScript and .pt2 need permission.
"""

from __future__ import annotations

import importlib
import json
import operator
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.core.errors import FormatError, InputError, LikewiseError, bad_parameter
from likewise.core.extras import require
from likewise.models.containers import Container, check_archive, find_container
from likewise.models.convert import as_model
from likewise.models.losses import LossLike
from likewise.models.model import Model
from likewise.models.pickles import check_allowed, load_unsafe
from likewise.models.sidecars import read_sidecar

__all__ = ["LoadedModel", "load_model", "read_model"]

_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_RUNS_CODE = ("pickle", "torch", "torchscript", "pt2")

# The rooms above this one that write files of their own: kind in the file, and who reads it.
_READERS = {"estimator": "likewise.estimators.network_classifier:NetworkClassifier.load"}
# The same for kinds that a description beside a model file names.
_SIDECAR_READERS = {
    "graph_smoothing": "likewise.postprocessing.smoothing_files:load_smoothing",
    "boosting": "likewise.estimators.boosting_files:load_boosting",
    "twin_consensus": "likewise.postprocessing.consensus_files:load_consensus",
}


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model from a file, before it is wrapped.

    Parameters
    ----------
    native : object
        What the file or the import path gave: an estimator, a booster, a session, a module, a function.
    container : str
        What the file was; "import path" for one.
    """

    native: Any
    container: str


def load_model(
    source: str | os.PathLike[str],
    *,
    loss: LossLike = "cross_entropy",
    classes: Any = None,
    takes_frame: bool | None = None,
    allow_pickle: bool = False,
    trusted: Sequence[str] = (),
) -> Model:
    """Load a model from a file or an import path.

    Parameters
    ----------
    source : path or str
        A file: the package's own, ONNX, XGBoost (.json, .ubj), LightGBM (.txt), CatBoost (.cbm), skops. Or
        ``"package.module:attribute"``, which imports the module.
    loss, classes, takes_frame
        As in `as_model`.
    allow_pickle : bool, default=False
        Whether to load files that can run code: pickle, joblib, torch's pickles, TorchScript, .pt2. A warning says
        what that means.
    trusted : sequence of str, default=()
        Types in a skops file to trust beyond those that skops knows.

    Returns
    -------
    Model

    Raises
    ------
    FormatError
        The file is damaged, or no model.
    InputError
        There is no such file, or it was not allowed.

    Examples
    --------
    >>> load_model("model.onx")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: load_model: there is no file 'model.onx'. Pass the path of a model file, or package.module:attribute.
    """
    found = read_model(source, allow_pickle=allow_pickle, trusted=trusted)
    return as_model(found.native, loss=loss, classes=classes, takes_frame=takes_frame)


def read_model(
    source: str | os.PathLike[str],
    *,
    allow_pickle: bool = False,
    trusted: Sequence[str] = (),
    sidecar: bool = True,
) -> LoadedModel:
    """Load what a file or an import path holds, without wrapping it; see `load_model`.

    Parameters
    ----------
    source, allow_pickle, trusted
        As in `load_model`.
    sidecar : bool, default=True
        Whether a description beside the file (``model.ubj.likewise.json``) says what the file is part of.

    Returns
    -------
    LoadedModel
    """
    path = Path(source)
    if not path.exists():
        if _IMPORT_PATH.fullmatch(str(source)):
            return LoadedModel(_imported(str(source)), "import path")
        raise InputError(
            f"load_model: there is no file {str(source)!r}. "
            "Pass the path of a model file, or package.module:attribute."
        )
    if not path.is_file():
        raise bad_parameter(
            "load_model", "source", allowed="one file", got=f"the folder or device {str(source)!r}"
        )
    data = path.read_bytes()
    about = read_sidecar(path, data) if sidecar else None
    if about is not None:
        reader = _reader(_SIDECAR_READERS, about["likewise"], path)
        return LoadedModel(reader(path, trusted=trusted), "likewise")
    kind = find_container(data, path.name)
    if kind in _RUNS_CODE:
        check_allowed(kind, path, allow_pickle=allow_pickle)
        return LoadedModel(load_unsafe(kind, data, path), kind)
    return LoadedModel(_LOADERS[kind](data, path, trusted), kind)


def _imported(source: str) -> Any:
    """Import ``package.module:attribute``, also from the current folder, as ``python -m`` would."""
    module_name, _, attribute = source.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.split(".")[0] == error.name.split(".")[0]:
            raise InputError(
                f"load_model: there is no module {module_name!r} (looked in the current folder and in the installed "
                "packages). Check the name before the colon."
            ) from error
        raise InputError(f"load_model: importing {module_name!r} failed: {error}") from error
    except LikewiseError:
        raise
    except Exception as error:
        raise InputError(
            f"load_model: importing {module_name!r} raised {type(error).__name__}: {error}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            have = ", ".join(name for name in dir(found) if not name.startswith("_"))[:200]
            raise InputError(f"load_model: {module_name!r} has no {attribute!r}. It has: {have}.")
        found = getattr(found, part)
    return found


def _own(data: bytes, path: Path, trusted: Sequence[str]) -> Any:
    length = int.from_bytes(data[:8], "little")
    about = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["likewise"])
    return _reader(_READERS, about.get("kind"), path)(path)


def _reader(readers: Mapping[str, str], kind: Any, path: Path) -> Callable[..., Any]:
    if kind not in readers:
        raise FormatError(f"{path.name} was written by likewise, but holds no model (kind {kind!r}).")
    module, _, names = readers[kind].partition(":")
    found: Callable[..., Any] = operator.attrgetter(names)(importlib.import_module(module))
    return found


def _onnx(data: bytes, path: Path, trusted: Sequence[str]) -> Any:
    from likewise.models.onnx_model import open_session
    from likewise.models.trial_process import try_model

    require("onnxruntime", extra="onnx", why="Reading an ONNX model")
    try_model("onnx", path)
    return open_session(path)


def _boosted(kind: str) -> Callable[[bytes, Path, Sequence[str]], Any]:
    def load(data: bytes, path: Path, trusted: Sequence[str]) -> Any:
        from likewise.models.trial_process import load_boosted, try_model

        try_model(kind, path)
        return load_boosted(kind, data)

    return load


def _skops(data: bytes, path: Path, trusted: Sequence[str]) -> Any:
    io = require("skops.io", extra="skops", why="Reading a skops file")
    check_archive(data, path.name)
    try:
        unknown = [name for name in io.get_untrusted_types(data=data) if name not in trusted]
    except Exception as error:
        raise FormatError(f"{path.name} is a damaged skops file: {error}. Save the model again.") from error
    if unknown:
        raise InputError(
            f"{path.name} contains types that skops does not know to be harmless: {', '.join(unknown)}. "
            "Nothing was loaded. If you know them, name each: trusted=[...] (--trust TYPE)."
        )
    try:
        return io.loads(data, trusted=list(trusted))
    except Exception as error:
        raise FormatError(
            f"{path.name} cannot be loaded: {type(error).__name__}: {error}. Save the model again with the "
            "installed versions."
        ) from error


_LOADERS: dict[Container, Callable[[bytes, Path, Sequence[str]], Any]] = {
    "likewise": _own,
    "onnx": _onnx,
    "xgboost": _boosted("xgboost"),
    "lightgbm": _boosted("lightgbm"),
    "catboost": _boosted("catboost"),
    "skops": _skops,
}
