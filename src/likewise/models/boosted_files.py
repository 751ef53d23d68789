"""Boosted models from the bytes of their files, by the libraries that wrote them."""

from __future__ import annotations

import json
from typing import Any

from likewise.core.errors import FormatError
from likewise.core.extras import require

__all__ = ["load_boosted"]

# What XGBoost's scikit-learn wrappers write into their files, and which of them reads it back.
_WRAPPERS = {"classifier": "XGBClassifier", "regressor": "XGBRegressor", "ranker": "XGBRanker"}
_LABEL = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}


def load_boosted(kind: str, data: bytes, name: str) -> Any:
    """Load a boosted model with the library that wrote it.

    Parameters
    ----------
    kind : {"xgboost", "lightgbm", "catboost"}
    data : bytes
        The whole file.
    name : str
        Of the file, for messages.

    Returns
    -------
    object
        `xgboost.Booster`, `lightgbm.Booster` or `catboost.CatBoost`. A file that was saved by one of XGBoost's
        scikit-learn wrappers gives that wrapper, which uses `best_iteration` where the booster alone does not.
    """
    library = require(kind, extra="boosting", why=f"Reading a {_LABEL[kind]} model")
    try:
        return _load(kind, library, data)
    except Exception as error:
        lines = str(error).strip().splitlines() or ["no reason given"]
        raise FormatError(
            f"{name} is a damaged {_LABEL[kind]} model: {lines[0].rstrip('.')[:300]}. Save the model again."
        ) from error


def _load(kind: str, library: Any, data: bytes) -> Any:
    if kind == "xgboost":
        booster = library.Booster()
        booster.load_model(bytearray(data))
        saved_by = booster.attr("scikit_learn")
        if saved_by is None:
            return booster
        kind_of_estimator = json.loads(saved_by).get("_estimator_type")
        wrapper = getattr(library, _WRAPPERS.get(kind_of_estimator, "XGBModel"))()
        wrapper.load_model(bytearray(data))
        return wrapper
    if kind == "lightgbm":
        return library.Booster(model_str=data.decode("utf-8"))
    model = library.CatBoost()
    model.load_model(blob=data)
    return model
