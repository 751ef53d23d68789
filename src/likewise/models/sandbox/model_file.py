"""A model file that is open in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from likewise.core.errors import FormatError, InputError, MissingExtraError, ModelError
from likewise.core.frames import is_frame, to_pandas
from likewise.core.text import option
from likewise.models.containers import model_files
from likewise.models.layers import LayeredModel, Layers
from likewise.models.losses import Loss, LossLike, as_loss
from likewise.models.model import Model
from likewise.models.sandbox.facts import (
    class_labels,
    pack_rows,
    plain_labels,
    read_facts,
    unpack_network,
    unpack_trees,
    written_loss,
)
from likewise.models.sandbox.messages import Array, Limits
from likewise.models.sandbox.process import Child

if TYPE_CHECKING:
    from likewise.models.tree_ensemble import TreeEnsemble

T = TypeVar("T")

# The model of a file in a process of its own, behind the contract of every other model.


class SandboxedModel(Model):
    """A model that is asked in another process.

    It answers what the same file answers in this process, to the bit. Made by `likewise.models.load_model`.

    Parameters
    ----------
    file : SandboxedFile
    choices : mapping
        What the model was made with there.
    facts : SimpleNamespace
        What is known of it.
    loss : Loss
    classes : array-like, optional
        Other names for its classes.
    """

    def __init__(
        self,
        file: SandboxedFile,
        choices: Mapping[str, Any],
        facts: SimpleNamespace,
        loss: Loss,
        classes: Any = None,
    ) -> None:
        super().__init__(
            loss=loss,
            kind=facts.kind,
            classes=facts.classes if classes is None else classes,
            takes_frame=facts.takes_frame,
            feature_names=facts.feature_names,
            n_features=facts.n_features,
            missing=facts.missing,
        )
        self.file, self._choices = file, dict(choices)
        self.batch_rows = facts.batch_rows
        self._named = facts.classes is not None
        self._adapter: str = facts.adapter
        self._decides = facts.decides
        self._guessed, self._keeps_frames = facts.guessed, facts.keeps_frames
        if facts.layers is not None:
            self.layers = facts.layers

    @property
    def adapter(self) -> str:
        """The class that the model has where it runs."""
        return self._adapter

    def with_classes(self, classes: Any) -> Self:
        """Return the same model with other names for its classes; see `Model.with_classes`."""
        renamed = super().with_classes(classes)
        if not self._named:
            # It does not know its classes, so they are passed to it.
            labels = None if renamed._classes is None else renamed._classes.tolist()
            renamed._choices = self._choices | {"classes": plain_labels(labels)}
        return renamed

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the decision for each row, (n,), as the model itself decides."""
        classes = self.classes_ if self._decides else None
        if classes is None:
            return super().predict(X)
        found = self._batched(
            self._rows(X), lambda batch, start: self.file.decisions(self._choices, batch, start)
        )
        return np.asarray(classes[np.clip(found, 0, len(classes) - 1)])

    def read_trees(self) -> TreeEnsemble:
        """Return the trees of the model, if it has some; see `likewise.models.tree_ensemble.read_trees`."""
        return self.file.trees(self._choices)

    def read_network(self) -> Layers:
        """Return the layers of the model if it is a plain network; see `likewise.models.layers.read_network`."""
        return self.file.network(self._choices)

    def _rows(self, X: Any) -> Any:
        if self._keeps_frames and is_frame(X):
            return to_pandas(X, owner=self._adapter, name="X")
        return super()._rows(X)

    def _ask(self, batch: Any, start: int, question: Any = None) -> np.ndarray[Any, Any]:
        outputs, classes = self.file.outputs(self._choices, batch, start)
        if self._classes is None:
            self._classes = classes
        return outputs

    def _answer(self, rows: Any) -> Any:
        return self._ask(rows, 0)


class SandboxedNetwork(SandboxedModel, LayeredModel):
    """A model in another process that is a linear model or a small network: its weights came with its description."""


LABELS = {
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "onnx": "ONNX",
    "skops": "skops",
}
# The widest answer about one person, and what a file's weights and trees may take beyond its size.
_MAX_WIDTH = 10_000
_SPREAD = 64
_ROOM = 64 * 2**20
# How often a request is sent again if the process that should answer it is killed.
_TRIES = 4


class SandboxedFile:
    """A model file of somebody else's, loaded and asked in a process of its own under `Limits`.

    `likewise.models.as_model` makes an `SandboxedModel` of it. The process starts with the object and ends with it.

    Parameters
    ----------
    path : Path
        Of the file.
    container : str
        What kind of file it is, as `find_container` says.
    trusted : sequence of str
        Types in a skops file to trust.
    sidecar : bool
        Whether a description beside the file belongs to it.
    limits : Limits, optional

    Attributes
    ----------
    held : list of str
        Which limits this system enforces, of "network", "memory", "files"; time always is.
    """

    def __init__(
        self,
        path: Path,
        container: str,
        *,
        trusted: Sequence[str] = (),
        sidecar: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.path, self.container = path.resolve(), container
        self.trusted, self.sidecar = list(trusted), sidecar
        self._size = path.stat().st_size
        self.limits = Limits.from_environment(self._size) if limits is None else limits
        self._made: dict[str, SimpleNamespace] = {}
        self._closed = False
        self._turn = threading.RLock()
        self._child = self._started()

    def __reduce__(self) -> tuple[Any, ...]:
        # A process cannot be sent to another one; what it loaded can.
        files = {name: one.read_bytes() for name, one in model_files(self.path).items() if one.is_file()}
        return _reopened, (files, self.path.name, self.container, self.trusted, self.sidecar, self.limits)

    def close(self) -> None:
        """End the process; asked again, the file answers no more."""
        self._closed = True
        self._child.close()

    def model(
        self, *, loss: LossLike, classes: Any = None, takes_frame: bool | None = None, output: str = "auto"
    ) -> SandboxedModel:
        """Return the file's model; the parameters are those of `as_model`."""
        objective = as_loss(loss)
        choices = {
            "loss": written_loss(objective),
            "classes": plain_labels(classes),
            "takes_frame": takes_frame,
            "output": output,
        }
        facts = self.facts(choices)
        kind = SandboxedModel if facts.layers is None else SandboxedNetwork
        return kind(self, choices, facts, objective, classes)

    def facts(self, choices: Mapping[str, Any]) -> SimpleNamespace:
        """Return what is known of the model under some choices; it is made if it does not exist yet."""
        return self._asked(lambda child: self._facts(child, choices))

    def outputs(self, choices: Mapping[str, Any], rows: Any, start: int) -> tuple[Array, Array | None]:
        """Return what the model says about rows, and its classes if it knows them by now."""
        said, arrays = self._about_rows("outputs", choices, rows, start, most=8 * len(rows) * _MAX_WIDTH)
        found = self._one(arrays, len(rows), dimensions=2, kind="f")
        try:
            return found, class_labels(said.get("classes"))
        except FormatError as error:
            raise self._no_model(error) from error

    def decisions(self, choices: Mapping[str, Any], rows: Any, start: int) -> Array:
        """Return the number of the class that the model itself decides for, (n,)."""
        _, arrays = self._about_rows("decisions", choices, rows, start, most=8 * len(rows))
        return self._one(arrays, len(rows), dimensions=1, kind="i")

    def trees(self, choices: Mapping[str, Any]) -> TreeEnsemble:
        """Return the model's trees; see `read_trees`."""
        if self.container == "catboost":
            # CatBoost writes its trees to a file, and the process may write none.
            raise InputError(
                f"read_trees: the trees of a CatBoost file are only read in this process ({option('this_process')})."
            )
        trees: TreeEnsemble = self._part("trees", choices, unpack_trees)
        return trees

    def network(self, choices: Mapping[str, Any]) -> Layers:
        """Return the layers of the model; see `read_network`."""
        layers: Layers = self._part("network", choices, unpack_network)
        return layers

    def _part(self, ask: str, choices: Mapping[str, Any], unpack: Callable[..., Any]) -> Any:
        return self._asked(
            lambda child: self._read(
                child, {"ask": ask, "number": self._facts(child, choices).number}, unpack
            )
        )

    def _about_rows(
        self, ask: str, choices: Mapping[str, Any], rows: Any, start: int, most: int
    ) -> tuple[dict[str, Any], list[Array]]:
        text, arrays = pack_rows(rows)
        about = {"ask": ask, "start": start, "rows": text}

        def asked(child: Child) -> tuple[dict[str, Any], list[Array]]:
            return self._ask(
                child, {**about, "number": self._facts(child, choices).number}, arrays, most=most
            )

        return self._asked(asked)

    def _facts(self, child: Child, choices: Mapping[str, Any]) -> SimpleNamespace:
        key = json.dumps(choices, sort_keys=True)
        if key not in self._made:
            self._made[key] = self._read(child, {"ask": "model", **choices}, read_facts)
        return self._made[key]

    def _asked(self, question: Callable[[Child], T]) -> T:
        """Ask the process that runs, or one that is started; a question that somebody killed it over is asked again."""
        if self._child.owner != os.getpid():
            self._turn = threading.RLock()  # this is a fork: the thread that held it was not copied
        with self._turn:
            for left in reversed(range(_TRIES)):
                try:
                    return question(self._alive())
                except ModelError:
                    if not (left and self._child.killed) or self._closed:
                        raise
        raise AssertionError("the last try returns or raises")

    def _read(self, child: Child, question: dict[str, Any], unpack: Callable[..., Any]) -> Any:
        said, arrays = self._ask(child, question, most=_ROOM + _SPREAD * self._size)
        try:
            return unpack(said, arrays)
        except FormatError as error:
            raise self._no_model(error) from error

    def _ask(
        self, child: Child, text: dict[str, Any], arrays: Sequence[Array] = (), *, most: int = 0
    ) -> tuple[dict[str, Any], list[Array]]:
        said, found = child.ask(text, arrays, most=most)
        answer = said.get("answer")
        if not isinstance(answer, dict):
            raise self._no_model(FormatError("it does not answer"))
        return answer, found

    def _one(self, arrays: list[Array], n: int, *, dimensions: int, kind: str) -> Array:
        if len(arrays) != 1 or arrays[0].ndim != dimensions or len(arrays[0]) != n:
            raise self._no_model(FormatError(f"it does not answer once for each of {n} people"))
        if arrays[0].dtype.kind != kind:
            raise self._no_model(FormatError(f"it answers with {arrays[0].dtype}"))
        return arrays[0]

    def _started(self) -> Child:
        # Types that the user named may be anywhere that this process finds modules.
        paths = [path for path in sys.path if path] if self.trusted else []
        child = Child(
            self.path.name,
            LABELS.get(self.container, self.container),
            self.limits,
            paths,
            [str(one) for one in model_files(self.path).values()],
        )
        question = {
            "ask": "load",
            "path": str(self.path),
            "container": self.container,
            "trusted": self.trusted,
            "sidecar": self.sidecar,
        }
        try:
            said, _ = self._ask(child, question)
        except (MissingExtraError, InputError) as error:
            child.close()
            if type(error) is FormatError:
                raise self._no_model(error) from error
            raise
        except ModelError as error:
            child.close()
            if child.over is not None or child.exhausted:
                raise FormatError(str(error)) from error
            raise self._no_model(error) from error
        self.held = [str(part) for part in said.get("held") or []]
        return child

    def _alive(self) -> Child:
        if self._child.owner != os.getpid():
            # This is a fork: the process belongs to the one that was forked.
            self._made.clear()
            self._child = self._started()
        elif self._child.may_restart and not self._closed:
            # Killed, which says nothing about the file, or crashed over one question: the next starts it again.
            self._made.clear()
            try:
                self._child = self._started()
            except FormatError as error:  # it was a model before
                raise ModelError(str(error)) from error
        return self._child

    def _no_model(self, error: Exception) -> FormatError:
        reason = str(error).removeprefix(f"{self.path.name}: ").rstrip(". ")
        if reason.startswith(self.path.name):
            return FormatError(str(error))
        label = LABELS.get(self.container, self.container)
        return FormatError(f"{self.path.name} is a damaged {label} model: {reason}. Save the model again.")


# The file that came last: each part of a table that is sent to a worker brings the model along.
_last: list[tuple[tuple[Any, ...], SandboxedFile]] = []


def _reopened(
    files: dict[str, bytes], name: str, container: str, trusted: Sequence[str], sidecar: bool, limits: Limits
) -> SandboxedFile:
    key = (files, name, container, tuple(trusted), sidecar, limits)
    if _last and _last[0][0] == key:
        return _last[0][1]
    folder = Path(tempfile.mkdtemp(prefix="likewise-"))
    for part, data in files.items():
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / part).write_bytes(data)
    found = SandboxedFile(folder / name, container, trusted=trusted, sidecar=sidecar, limits=limits)
    # The folder stays as long as the file, which may be sent on.
    weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    _last[:] = [(key, found)]
    return found
