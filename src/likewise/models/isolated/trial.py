"""Whether a model file holds what its library expects: checked before it is loaded, and tried on noise after."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from likewise.models.tree_structure import check_lightgbm, check_xgboost

__all__ = ["check_before", "check_loaded"]


def check_before(container: str, path: Path) -> None:
    """Check what can be read without the library that made the file.

    Parameters
    ----------
    container : str
        What `find_container` said.
    path : Path
    """
    if container == "lightgbm":
        check_lightgbm(path.read_bytes().decode("utf-8"))
    if container == "xgboost":
        with path.open("rb") as file:
            start = file.read(2)
        # {" is JSON, {L is UBJSON, which is checked once it is loaded.
        if start != b"{L":
            check_xgboost(json.loads(path.read_bytes()))
    if container == "onnx":
        from likewise.models.onnx_structure import check_onnx

        check_onnx(path)


def check_loaded(container: str, native: Any) -> None:
    """Check the trees of a loaded model, and let it decide about a few rows of noise.

    Parameters
    ----------
    container : str
    native : object
        What the library made of the file.
    """
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
