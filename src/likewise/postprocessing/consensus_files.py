"""A `TwinConsensus` as files: the model in its library's own format, and a JSON description beside it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import FormatError, InputError
from likewise.core.extras import require
from likewise.evaluation.twins import TwinFactor
from likewise.models.model_files import read_model
from likewise.models.sidecars import plain_value, read_sidecar, sidecar_path, write_with_sidecar

if TYPE_CHECKING:
    from likewise.postprocessing.twin_consensus import TwinConsensus

__all__ = ["described_factors", "load_consensus", "read_factors", "save_consensus"]

_KIND = "twin_consensus"
_OWNER = "TwinConsensus.save"


def save_consensus(consensus: TwinConsensus, path: str | os.PathLike[str]) -> None:
    """Write a consensus and its model; see `TwinConsensus.save`."""
    classes = consensus._inner().known_classes
    labels = None
    if classes is not None:
        labels = [plain_value(label, owner=_OWNER, what="a class label") for label in classes.tolist()]
    about = {
        "factors": described_factors(consensus._factors(), owner=_OWNER),
        "how": consensus.how,
        "favourable": plain_value(consensus.favourable, owner=_OWNER, what="'favourable'"),
        "takes_frame": consensus.takes_frame,
        "classes": labels,
    }
    data, inner = _model_bytes(consensus.model, Path(path))
    # A model that is a file and a description itself keeps its description inside of ours.
    write_with_sidecar(path, data, _KIND, about if inner is None else about | {"inner": inner})


def load_consensus(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Read a consensus that `save_consensus` wrote.

    Parameters
    ----------
    path : path-like
        Of the model's file.
    trusted : sequence of str, default=()
        Types in a skops file to trust, as in `load_model`.

    Returns
    -------
    TwinConsensus
    """
    from likewise.postprocessing.twin_consensus import TwinConsensus

    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"load: there is no file {str(where)!r}.")
    about = read_sidecar(where)
    if about is None or about["likewise"] != _KIND:
        raise FormatError(f"{where.name} has no {sidecar_path(where).name} of a TwinConsensus beside it.")
    native = _read_native(where, about.get("inner"), trusted)
    try:
        factors = read_factors(about["factors"])
        loaded = TwinConsensus(
            native,
            sensitive_features={
                f.columns[0]: [s[f.columns[0]] for s in f.settings]
                for f in factors
                if f.everybody and len(f.columns) == 1
            }
            or None,
            edits=[list(f.settings) for f in factors if not f.everybody] or None,
            how=about["how"],
            favourable=about["favourable"],
            takes_frame=about["takes_frame"],
        )
        labels = None if about["classes"] is None else np.asarray(list(about["classes"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(
            f"{sidecar_path(where).name} is damaged ({type(error).__name__}: {error}). Save the model again."
        ) from error
    loaded.factors_ = factors
    loaded._labels = labels
    return loaded


def described_factors(factors: Sequence[TwinFactor], *, owner: str) -> list[dict[str, Any]]:
    """Return factors as JSON holds them.

    Examples
    --------
    >>> described_factors([TwinFactor(({"sex": "F"}, {"sex": "M"}), True)], owner="save")
    [{'everybody': True, 'settings': [{'sex': 'F'}, {'sex': 'M'}]}]
    """
    return [
        {
            "everybody": factor.everybody,
            "settings": [
                {c: plain_value(v, owner=owner, what=f"a value of {c!r}") for c, v in setting.items()}
                for setting in factor.settings
            ],
        }
        for factor in factors
    ]


def read_factors(stored: Sequence[Mapping[str, Any]]) -> tuple[TwinFactor, ...]:
    """Return the factors that `described_factors` described."""
    return tuple(
        TwinFactor(tuple(dict(setting) for setting in part["settings"]), bool(part["everybody"]))
        for part in stored
    )


def _read_native(path: Path, inner: Any, trusted: Sequence[str]) -> Any:
    """The model inside; one with a description of its own is read beside it, in a folder that is gone afterwards."""
    if inner is None:
        return read_model(path, trusted=trusted, sidecar=False).native
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        sidecar_path(copy).write_text(json.dumps(inner), encoding="utf-8")
        return read_model(copy, trusted=trusted).native


def _model_bytes(model: Any, path: Path) -> tuple[bytes, dict[str, Any] | None]:
    """The model in its library's own format, and its own description where it has one."""
    if "likewise" in _roots(model) and hasattr(model, "save"):
        return _saved(model, path.suffix)
    return _plain_bytes(model, path), None


def _roots(model: Any) -> set[str]:
    return {kind.__module__.split(".")[0] for kind in type(model).__mro__}


def _plain_bytes(model: Any, path: Path) -> bytes:
    roots = _roots(model)
    if isinstance(model, (bytes, bytearray)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        return Path(model).read_bytes()
    if "onnx" in roots:
        return bytes(model.SerializeToString())
    if "xgboost" in roots:
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        return bytes(booster.save_raw("json" if path.suffix == ".json" else "ubj"))
    if "lightgbm" in roots:
        return str(getattr(model, "booster_", model).model_to_string()).encode()
    if "catboost" in roots:
        return _saved(model, ".cbm")[0]
    if "sklearn" in roots:
        io = require("skops.io", extra="skops", why="Writing a scikit-learn model without pickle")
        return bytes(io.dumps(model))
    raise InputError(
        f"{_OWNER}: a model of type {type(model).__name__} cannot be written without pickle. Save it in its own way, "
        "and wrap it again after loading."
    )


def _saved(model: Any, suffix: str) -> tuple[bytes, dict[str, Any] | None]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"model{suffix}"
        (model.save if hasattr(model, "save") else model.save_model)(str(target))
        return target.read_bytes(), read_sidecar(target)
