"""The sandboxed process: loads a model file, then answers requests about it until the pipe is closed."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import FormatError, InputError, MissingExtraError, ModelError, first_line_of
from likewise.models.layers import read_network
from likewise.models.sandbox.confined import allow_seconds
from likewise.models.sandbox.facts import describe, loss_like, pack_network, pack_trees, unpack_rows
from likewise.models.sandbox.messages import Array, receive, send
from likewise.models.table_features import is_table_pipeline
from likewise.models.tree_ensemble import read_trees
from likewise.models.tree_readers import check_lightgbm, check_xgboost

if TYPE_CHECKING:
    from likewise.models.model import Model

# Whether a model file holds what its library expects: checked before it is loaded, and tried on noise
# after.


def check_before(container: str, path: Path) -> None:
    """Check what can be read without the library that made the file."""
    if container == "lightgbm":
        check_lightgbm(path.read_bytes().decode("utf-8"))
    # {" is JSON, {L is UBJSON, which is checked once it is loaded.
    if container == "xgboost" and not path.read_bytes().startswith(b"{L"):
        check_xgboost(json.loads(path.read_bytes()))
    if container == "onnx":
        from likewise.models.onnx_model import check_onnx

        check_onnx(path)


def check_loaded(container: str, native: Any) -> None:
    """Check the trees of a loaded model, and let it decide about a few rows of noise."""
    rng = np.random.default_rng(0)
    if container == "xgboost":
        booster = native.get_booster() if hasattr(native, "get_booster") else native
        check_xgboost(json.loads(booster.save_raw("json")))
        if "c" not in (booster.feature_types or []):
            rows = 100.0 * rng.normal(size=(64, booster.num_features()))
            matrix = sys.modules["xgboost"].DMatrix(rows, feature_names=booster.feature_names)
            booster.predict(matrix, validate_features=False)
    if container == "lightgbm" and not native.pandas_categorical:
        native.predict(100.0 * rng.normal(size=(64, native.num_feature())))
    if container == "catboost" and not native.get_cat_feature_indices():
        native.predict(100.0 * rng.normal(size=(64, len(native.feature_names_))))
    if container == "onnx":
        from likewise.models.onnx_model import empty_feeds

        # An encoder may not know the empty word; only a crash would say something about the file.
        with contextlib.suppress(Exception):
            native.run(None, empty_feeds(native))


# The loop that answers requests.


Answer = tuple[dict[str, Any], Sequence[Array]]

# The process that asks is trusted, and its rows are in memory already.
_MOST = 2**50
_KNOWN = (FormatError, ModelError, MissingExtraError, InputError)


def serve(questions: int, answers: int, held: Sequence[str]) -> None:
    """Answer questions from one pipe on another.

    Parameters
    ----------
    questions, answers : int
        File descriptors.
    held : sequence of str
        The limits that are in force, which are sent with the first answer.
    """
    worker = _Worker(held)
    with os.fdopen(questions, "rb") as ask, os.fdopen(answers, "wb") as tell:
        while True:
            try:
                text, arrays = receive(ask, most=_MOST)
            except EOFError:
                return
            allow_seconds(float(text["seconds"]))
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("default")
                said, found = _answered(worker, text, arrays)
            told = [
                str(w.message)[:500] for w in heard if issubclass(w.category, (UserWarning, RuntimeWarning))
            ]
            said["warnings"] = list(dict.fromkeys(told))[:20]
            try:
                send(tell, said, found)
            except (TypeError, ValueError) as error:
                # Nothing was written yet: JSON does not hold this.
                why = f"the answer cannot be written: {error}"
                send(tell, {"error": "other", "message": why, "warnings": []})


def _answered(worker: _Worker, text: dict[str, Any], arrays: Sequence[Array]) -> Answer:
    try:
        said, found = getattr(worker, text["ask"])(text, arrays)
    except MemoryError:
        return {"error": "MemoryError", "message": ""}, ()
    except _KNOWN as error:
        kind = next(kind for kind in _KNOWN if isinstance(error, kind))
        return {"error": kind.__name__, "message": str(error)}, ()
    except Exception as error:
        line = first_line_of(error)
        if "bad_alloc" in line or "bad allocation" in line:
            return {"error": "MemoryError", "message": ""}, ()
        return {"error": "other", "message": f"{type(error).__name__}: {line}"}, ()
    return {"answer": said}, found


class _Worker:
    """The file that was loaded, its models, and a method for each question about them.

    The process that started this one asks, so the name of a question is taken as it comes.
    """

    def __init__(self, held: Sequence[str]) -> None:
        self.held, self.native, self.models = list(held), None, list[Any]()

    def load(self, text: dict[str, Any], arrays: Sequence[Array]) -> Answer:
        """Check the file as far as that can be done without its library, load it, and try it on noise."""
        from likewise.models.model_files import read_model

        path = Path(text["path"])
        check_before(text["container"], path)
        loaded = read_model(path, trusted=text["trusted"], trust=True, sidecar=text["sidecar"])
        self.native = loaded.native
        inner = loaded.native
        if loaded.container == "likewise":
            # A wrapper's model may itself be an estimator of this package.
            inner = getattr(inner, "model", inner)
            inner = getattr(inner, "booster_", inner)
        check_loaded(text["container"], inner)
        return {"held": self.held}, ()

    def model(self, text: dict[str, Any], arrays: Sequence[Array]) -> Answer:
        """Make a model of the file, as `as_model` would, and describe it."""
        from likewise.models.convert import as_model

        choices = {name: text[name] for name in ("classes", "takes_frame", "output")}
        made = as_model(self.native, loss=loss_like(text["loss"]), **choices)
        self.models.append(made)
        said, found = describe(made)
        return {"number": len(self.models) - 1, **said}, found

    def outputs(self, text: dict[str, Any], arrays: Sequence[Array]) -> Answer:
        """What a model says about rows, (n, C)."""
        model: Model = self.models[text["number"]]
        rows, first = model._rows(unpack_rows(text["rows"], arrays)), text["start"]
        found = model._batched(
            rows, lambda part, at: model._canonical(model._ask(part, first + at), len(part), first + at)
        )
        classes = model.known_classes
        return {"classes": None if classes is None else classes.tolist()}, [found]

    def decisions(self, text: dict[str, Any], arrays: Sequence[Array]) -> Answer:
        """The class that an estimator itself decides for, by its number, (n,)."""
        model = self.models[text["number"]]
        rows = model._rows(unpack_rows(text["rows"], arrays))
        hot = model._ask(rows, text["start"], model._decisions)
        return {}, [hot.argmax(axis=1).astype(np.int64)]

    def trees(self, text: dict[str, Any], arrays: Sequence[Array]) -> Answer:
        """The trees of a model."""
        model = self.models[text["number"]]
        _check_no_pipeline(model, "read_trees")
        return pack_trees(read_trees(model))

    def network(self, text: dict[str, Any], arrays: Sequence[Array]) -> Answer:
        """The layers of a model that is a plain network."""
        model = self.models[text["number"]]
        _check_no_pipeline(model, "read_relu_network")
        return pack_network(read_network(model))


def _check_no_pipeline(model: Any, owner: str) -> None:
    if is_table_pipeline(getattr(model, "estimator", None)):
        raise InputError(f"{owner}: the steps of a pipeline in a file are only read outside the sandbox.")
