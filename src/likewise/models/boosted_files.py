"""Boosted models from the bytes of their files, by the libraries that wrote them."""

from __future__ import annotations

from typing import Any

from likewise.core.errors import FormatError
from likewise.core.extras import require

__all__ = ["load_boosted"]

_LABEL = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}


def load_boosted(kind: str, data: bytes, name: str) -> Any:
    """Load a boosted model natively.

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
        `xgboost.Booster`, `lightgbm.Booster` or `catboost.CatBoost`.
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
        return booster
    if kind == "lightgbm":
        return library.Booster(model_str=data.decode("utf-8"))
    model = library.CatBoost()
    model.load_model(blob=data)
    return model
