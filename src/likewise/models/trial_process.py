"""Models of compiled libraries are tried in a process of their own first: a malformed node can crash the loader.

Run as a program (``python -m likewise.models.trial_process KIND FILE``) it loads the model, checks its trees and predicts
a few rows. What is wrong is one line on standard error; a crash stays in that process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.errors import FormatError, LikewiseError, MissingExtraError
from likewise.core.extras import require

__all__ = ["load_boosted", "try_model"]

TIMEOUT = 300.0
_REFUSED, _MISSING = 65, 69
_LABEL = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost", "onnx": "ONNX"}


def try_model(kind: str, path: Path) -> None:
    """Load a model in a child process, and raise what became of it.

    Parameters
    ----------
    kind : {"xgboost", "lightgbm", "catboost", "onnx"}
    path : Path
        The model file.

    Raises
    ------
    FormatError
        The child refused the file, crashed on it, or did not come back.
    MissingExtraError
        The library is not installed.
    """
    # -P: nothing in the current folder may pose as a library.
    command = [sys.executable, "-P", "-m", __name__, kind, str(path)]
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT, env=environment)
    except subprocess.TimeoutExpired as error:
        raise FormatError(
            f"{path.name} is no usable {_LABEL[kind]} model: a trial run did not end within {TIMEOUT:.0f} s. "
            "Save the model again."
        ) from error
    said = done.stderr.decode(errors="replace").strip().splitlines()
    reason = said[-1] if said else "no reason given"
    if done.returncode == _MISSING:
        raise MissingExtraError(reason)
    if done.returncode < 0:
        reason = f"a trial run crashed ({signal.Signals(-done.returncode).name})"
    if done.returncode != 0:
        raise FormatError(f"{path.name} is a damaged {_LABEL[kind]} model: {reason}. Save the model again.")


def load_boosted(kind: str, data: bytes) -> Any:
    """Load a boosted model natively from the bytes of its file.

    Parameters
    ----------
    kind : {"xgboost", "lightgbm", "catboost"}
    data : bytes

    Returns
    -------
    object
        `xgboost.Booster`, `lightgbm.Booster` or `catboost.CatBoost`.
    """
    library = require(kind, extra="boosting", why=f"Reading a {_LABEL[kind]} model")
    if kind == "xgboost":
        booster = library.Booster()
        booster.load_model(bytearray(data))
        return booster
    if kind == "lightgbm":
        return library.Booster(model_str=data.decode("utf-8"))
    model = library.CatBoost()
    model.load_model(blob=data)
    return model


def _try(kind: str, path: Path) -> None:
    from likewise.models.tree_structure import check_lightgbm, check_xgboost

    if kind == "onnx":
        from likewise.models.onnx_model import empty_feeds, open_session

        session = open_session(path)
        # An encoder may not know the empty word; only a crash would say something about the file.
        with contextlib.suppress(Exception):
            session.run(None, empty_feeds(session))
        return
    data = path.read_bytes()
    if kind == "lightgbm":
        check_lightgbm(data.decode("utf-8"))
    native = load_boosted(kind, data)
    if kind == "xgboost":
        check_xgboost(json.loads(native.save_raw("json")))
    _predict(kind, native)


def _predict(kind: str, native: Any) -> None:
    """Let the model decide about a few rows of noise; categories are left to the check of the trees."""
    rng = np.random.default_rng(0)
    if kind == "xgboost" and "c" not in (native.feature_types or []):
        rows = 100.0 * rng.normal(size=(64, native.num_features()))
        xgboost = sys.modules["xgboost"]
        native.predict(xgboost.DMatrix(rows, feature_names=native.feature_names), validate_features=False)
    if kind == "lightgbm" and not native.pandas_categorical:
        native.predict(100.0 * rng.normal(size=(64, native.num_feature())))
    if kind == "catboost" and not native.get_cat_feature_indices():
        native.predict(100.0 * rng.normal(size=(64, len(native.feature_names_))))


def main() -> None:
    """Try the model file and leave with an exit code that says how it went."""
    with contextlib.suppress(ImportError):  # no such limits on this system
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        _try(sys.argv[1], Path(sys.argv[2]))
    except MissingExtraError as error:
        sys.stderr.write(f"\n{error}")
        sys.exit(_MISSING)
    except LikewiseError as error:
        sys.stderr.write(f"\n{_first_line(error)}")
        sys.exit(_REFUSED)
    except Exception as error:
        sys.stderr.write(f"\n{type(error).__name__}: {_first_line(error)}")
        sys.exit(_REFUSED)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")[:300]


if __name__ == "__main__":
    main()
