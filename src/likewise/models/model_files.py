"""Safe loading of model files: the kind is found from the content, and no code runs unless it is allowed.

The package's own files (safetensors and JSON) are read here. ONNX, XGBoost, LightGBM, CatBoost and skops (with the
types it lists) run no code, but their libraries believe what they read: they are loaded and asked in a process of
their own (`likewise.models.sandbox`) unless the user trusts the file. Pickle, joblib, torch's pickles, TorchScript
and .pt2 are programs, need permission, and then run here: no limit would hold them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.errors import FormatError, InputError, LikewiseError, first_line_of, require
from likewise.core.files import check_header, read_description, read_file
from likewise.core.text import option
from likewise.models.containers import Container, check_archive, find_container, read_sidecar
from likewise.models.convert import as_model
from likewise.models.losses import LossLike
from likewise.models.model import Model

# Boosted models from the bytes of their files, by the libraries that wrote them.


# What XGBoost's scikit-learn wrappers write into their files, and which of them reads it back.
_WRAPPERS = {"classifier": "XGBClassifier", "regressor": "XGBRegressor", "ranker": "XGBRanker"}
_LABEL = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}


def _boosted(kind: str, library: Any, data: bytes) -> Any:
    """Load a boosted model with the library that wrote it."""
    if kind == "lightgbm":
        return library.Booster(model_str=data.decode("utf-8"))
    if kind == "catboost":
        model = library.CatBoost()
        model.load_model(blob=data)
        return model
    booster = library.Booster()
    booster.load_model(bytearray(data))
    saved_by = booster.attr("scikit_learn")
    if saved_by is None:
        return booster
    wrapper = getattr(library, _WRAPPERS.get(json.loads(saved_by).get("_estimator_type"), "XGBModel"))()
    wrapper.load_model(bytearray(data))
    return wrapper


# Files that can run code when they are loaded: only opened if the user allows it, with a warning of what that means.


_NAMES = {
    "pickle": "a pickle (or joblib) file",
    "torch": "a torch file with a pickle inside",
    "torchscript": "a TorchScript program",
    "pt2": "a torch.export program (.pt2)",
}


class UnsafeFileWarning(UserWarning):
    """A file that can run any code was loaded because the user allowed it."""


def check_allowed(kind: Container, path: Path, *, allow_pickle: bool) -> None:
    """Refuse a file that can run code, unless it was allowed; then warn."""
    if not allow_pickle:
        better = "as ONNX (torch.onnx.export)"
        if kind == "pickle":
            better = (
                "in a format that holds no code, skops.io.dump(model, 'model.skops') or the library's own"
            )
        raise InputError(
            f"{path.name} is {_NAMES[kind]}, which can run any code on this machine when it is loaded, so it was not "
            f"opened. Save the model {better}; or, if you made the file yourself, pass "
            f"{option('allow_pickle')}."
        )
    warnings.warn(
        f"{path.name} is {_NAMES[kind]}. Loading it can run any code that its maker put there: read or delete files, "
        "send data away. Load only files from people you trust.",
        UnsafeFileWarning,
        stacklevel=3,
    )


def load_unsafe(kind: Container, data: bytes, path: Path) -> Any:
    """Load a file that `check_allowed` let through."""
    stream = io.BytesIO(data)
    try:
        # torch's magic number of files before 1.6.
        if kind == "pickle" and not data[2:15].startswith(b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"):
            loaded = importlib.import_module("joblib").load(stream)
        else:
            torch: Any = importlib.import_module("torch")
            if kind == "pt2":
                loaded = torch.export.load(stream).module()
            elif kind == "torchscript":
                loaded = torch.jit.load(stream, map_location="cpu")
            else:
                loaded = torch.load(stream, map_location="cpu", weights_only=False)
    except Exception as error:
        raise FormatError(f"{path.name} cannot be loaded: {type(error).__name__}: {error}") from error
    if isinstance(loaded, dict):
        raise FormatError(
            f"{path.name} holds a dictionary ({', '.join(map(str, list(loaded)[:4]))}, …), not a model. "
            "Weights need the module they belong to: save the module, export it to ONNX, or pass an import path."
        )
    return loaded


_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_RUNS_CODE = ("pickle", "torch", "torchscript", "pt2")
# A file is read whole.
MAX_FILE = 4 * 2**30

# Parts of scikit-learn's estimators that skops asks about, by module. They are settings, arrays and pure functions of
# numbers: none reads a file or runs what a file brings.
_SKLEARN_TYPES = {
    "builtins": ("object",),
    "numpy": ("dtype", "mean"),
    "scipy.interpolate._bsplines": ("BSpline",),
    "scipy._lib.array_api_compat.numpy._aliases": ("asarray",),
    "sklearn._loss.loss": ("HalfTweedieLossIdentity",),
    "sklearn.calibration": ("_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"),
    "sklearn.compose._column_transformer": ("_RemainderColsList", "make_column_selector"),
    "sklearn.feature_selection._mutual_info": ("mutual_info_classif", "mutual_info_regression"),
    "sklearn.feature_selection._univariate_selection": ("chi2", "f_classif", "f_regression"),
    "sklearn.gaussian_process._gpc": ("_BinaryGaussianProcessClassifierLaplace",),
    "sklearn.gaussian_process.kernels": (
        "ConstantKernel", "DotProduct", "Matern", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
    ),
    "sklearn.impute._iterative": ("IterativeImputer", "_ImputerTriplet"),
    "sklearn.metrics._classification": ("accuracy_score", "balanced_accuracy_score", "f1_score"),
    "sklearn.metrics._ranking": ("average_precision_score", "roc_auc_score"),
    "sklearn.metrics._scorer": ("_CurveScorer", "_PassthroughScorer", "_Scorer"),
    "sklearn.model_selection._split": (
        "GroupKFold", "KFold", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedGroupKFold",
        "StratifiedKFold", "StratifiedShuffleSplit", "TimeSeriesSplit",
    ),
    "sklearn.neural_network._stochastic_optimizers": ("AdamOptimizer", "SGDOptimizer"),
    "sklearn.utils._bunch": ("Bunch",),
    "sklearn.utils._metadata_requests": ("MetadataRequest", "MethodMetadataRequest"),
}  # fmt: skip
# Compiled parts, which follow the numbers of a file without looking: a malformed file can crash the process it runs in.
_SKLEARN_COMPILED = {
    "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
    "sklearn.metrics._dist_metrics": tuple(
        f"{name}Distance{bits}"
        for name in ("Chebyshev", "Euclidean", "Hamming", "Jaccard", "Manhattan", "Minkowski", "SEuclidean")
        for bits in (32, 64)
    ),
    "sklearn.neighbors._ball_tree": ("BallTree", "BallTree32", "BallTree64"),
    "sklearn.neighbors._kd_tree": ("KDTree", "KDTree32", "KDTree64"),
    "sklearn.tree._tree": ("Tree",),
}

# The rooms above this one that write files of their own: the kind that a file, or the description beside a model file,
# names, and the class that wrote it.
_WRITERS = {
    "estimator": "likewise.training.estimators.network_classifier:NetworkClassifier",
    "graph_smoothing": "likewise.mitigation.graph_smoothing:GraphSmoothing",
    "boosting": "likewise.training.boosting.classifier:FairBoostingClassifier",
    "twin_consensus": "likewise.mitigation.twin_consensus:TwinConsensus",
}


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model from a file or of Python, before it is asked."""

    native: Any
    container: str

    @cached_property
    def model(self) -> Model:
        """What is known of it before it is asked: its classes, and which columns it takes."""
        return self.under("auto")

    def under(self, loss: LossLike, takes_frame: bool | None = None) -> Model:
        """Return the model behind the common contract.

        Under "auto" by the cross-entropy of its probabilities, by the 0–1 loss of its decisions if it has no
        probabilities, or by the squared error if it predicts numbers.
        """
        losses = ("cross_entropy", "zero_one", "squared") if loss == "auto" else (loss,)
        for tried in losses[:-1]:
            with suppress(InputError):
                return as_model(self.native, loss=tried, takes_frame=takes_frame)
        return as_model(self.native, loss=losses[-1], takes_frame=takes_frame)


def load_model(
    source: str | os.PathLike[str],
    *,
    loss: LossLike = "cross_entropy",
    classes: Any = None,
    takes_frame: bool | None = None,
    allow_pickle: bool = False,
    trusted: Sequence[str] = (),
    trust: bool = False,
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
        Types in a skops file to trust beyond scikit-learn's own.
    trust : bool, default=False
        Whether to load the files of other libraries into this process, which is faster to start. A malformed file
        can then crash it, fill the memory or never end. By default they run in a process of their own with limits on
        memory, time and files, without network if the system allows that; answers are the same.

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
    found = read_model(source, allow_pickle=allow_pickle, trusted=trusted, trust=trust)
    return as_model(found.native, loss=loss, classes=classes, takes_frame=takes_frame)


def read_model(
    source: str | os.PathLike[str],
    *,
    allow_pickle: bool = False,
    trusted: Sequence[str] = (),
    trust: bool = False,
    sidecar: bool = True,
    compiled: bool = True,
) -> LoadedModel:
    """Load what a file or an import path holds, without wrapping it; see `load_model`.

    `compiled`: whether compiled parts of scikit-learn may be loaded into this process, if a file is.
    """
    path = Path(source)
    if not path.exists():
        if _IMPORT_PATH.fullmatch(str(source)):
            return LoadedModel(_imported(str(source)), "import path")
        raise InputError(
            f"load_model: there is no file {str(source)!r}. "
            "Pass the path of a model file, or package.module:attribute."
        )
    data = read_file(path, owner="load_model", largest=MAX_FILE)
    about = read_sidecar(path, data) if sidecar else None
    written = about is not None and bool(writer_of(about["likewise"], path))
    kind = find_container(data, path.name)
    if kind in _RUNS_CODE:
        if written:
            raise FormatError(f"{path.name} is not a file that likewise writes. Save the model again.")
        check_allowed(kind, path, allow_pickle=allow_pickle)
        return LoadedModel(load_unsafe(kind, data, path), kind)
    if not trust and kind != "likewise":
        from likewise.models.sandbox.model_file import SandboxedFile

        found = SandboxedFile(path, kind, trusted=trusted, sidecar=written)
        return LoadedModel(found, "likewise" if written else kind)
    if written:
        from likewise.models.stored import load_beside

        return LoadedModel(load_beside(path, trusted=trusted, trust=True), "likewise")
    if kind == "skops":
        return LoadedModel(_skops(data, path, trusted, compiled=compiled), kind)
    return LoadedModel(_loaded(kind, data, path), kind)


def read_tried(source: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> LoadedModel:
    """Load a file into this process, once a process of its own has loaded it without harm.

    For who needs the library's own object, as the loaders of estimators do that are files of other libraries.
    """
    first = read_model(source, trusted=trusted, sidecar=False)
    if first.container == "likewise":
        return first
    first.native.close()
    # To load a file is not to run it: what is compiled is not trusted for that.
    return read_model(source, trusted=trusted, trust=True, sidecar=False, compiled=False)


def _imported(source: str) -> Any:
    """Import ``package.module:attribute``, also from the current folder, as ``python -m`` would."""
    module_name, _, attribute = source.partition(":")
    try:
        found: Any = _import_here(module_name)
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


def _import_here(name: str) -> Any:
    """Import a module, of the current folder if it is there; nothing else there hides an installed package."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        # What the module itself imports may stand beside it, but comes after what is installed.
        sys.path.append(here)
    first = name.partition(".")[0]
    spec = PathFinder.find_spec(first, [here]) if first not in sys.modules else None
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules[first] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[first]
            raise
    return importlib.import_module(name)


def writer_of(kind: Any, path: Path) -> Any:
    """Return the class whose `save` writes files of a kind."""
    if not isinstance(kind, str) or kind not in _WRITERS:
        raise FormatError(f"{path.name} was written by likewise, but holds no model (kind {kind!r}).")
    module, _, name = _WRITERS[kind].partition(":")
    return getattr(importlib.import_module(module), name)


def _loaded(kind: Container, data: bytes, path: Path) -> Any:
    """Load a file that runs no code into this process."""
    if kind == "onnx":
        from likewise.models.onnx_model import open_session

        require("onnxruntime", extra="onnx", why="Reading an ONNX model")
        return open_session(path)
    if kind == "likewise":
        try:
            metadata = check_header(data)
        except FormatError as error:
            raise FormatError(f"{path.name} is damaged: {error}. Save the model again.") from error
        return writer_of(read_description(metadata, path.name).get("kind"), path).load(path)
    library = require(kind, extra="boosting", why=f"Reading a {_LABEL[kind]} model")
    try:
        return _boosted(kind, library, data)
    except Exception as error:
        raise FormatError(
            f"{path.name} is a damaged {_LABEL[kind]} model: {first_line_of(error)}. Save the model again."
        ) from error


def _skops(data: bytes, path: Path, trusted: Sequence[str], *, compiled: bool) -> Any:
    io = require("skops.io", extra="skops", why="Reading a skops file")
    check_archive(data, path.name)
    try:
        found = io.get_untrusted_types(data=data)
    except Exception as error:
        raise FormatError(f"{path.name} is a damaged skops file: {error}. Save the model again.") from error
    own = _SKLEARN_TYPES | (_SKLEARN_COMPILED if compiled else {})
    known = {*trusted, *(f"{module}.{name}" for module, names in own.items() for name in names)}
    unknown = [name for name in found if name not in known]
    if unknown:
        raise InputError(
            f"{path.name} contains types that skops does not know to be harmless: {', '.join(unknown)}. "
            f"Nothing was loaded. If you know them, name each: {' '.join(option('trusted', name) for name in unknown)}."
        )
    try:
        loaded = io.loads(data, trusted=[name for name in found if name in known])
    except Exception as error:
        raise FormatError(
            f"{path.name} cannot be loaded: {type(error).__name__}: {error}. Save the model again with the "
            "installed versions."
        ) from error
    readers = (one for one in _inside(loaded) if type(one).__module__ == "sklearn.feature_extraction.text")
    reader = next((one for one in readers if getattr(one, "input", "content") != "content"), None)
    if reader is not None:
        raise InputError(
            f"{path.name} contains a {type(reader).__name__} with input={reader.input!r}, which opens the files that the "
            "cells of a table name. It was not used. Save the model with input='content'."
        )
    return loaded


def _inside(loaded: Any) -> Iterator[Any]:
    """Walk everything that a loaded object holds."""
    seen, left = set(), [loaded]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float, type, type(None))):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, dict):
            left += [*one, *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            left += one
        elif isinstance(one, np.ndarray):
            left += one.ravel().tolist() if one.dtype == object else []
        elif isinstance(one, functools.partial):
            left += [one.func, one.args, one.keywords]
        left += [getattr(one, "__self__", None), *getattr(one, "__dict__", {}).values()]
