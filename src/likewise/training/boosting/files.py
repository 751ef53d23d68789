"""A `FairBoostingClassifier` as files: the trees in their library's own format, a JSON description beside. No pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likewise.core.errors import FormatError
from likewise.models.containers import damage_named, sidecar_path
from likewise.models.model_files import read_model, read_tried
from likewise.models.stored import described, read_beside, remade, save_beside

_KIND = "boosting"
_LEARNED = ("classes_", "columns_", "feature_names_in_", "n_features_in_", "n_iter_")


def save_boosting(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; see `FairBoostingClassifier.save`."""
    booster = estimator.booster_
    learned = {name: getattr(estimator, name) for name in _LEARNED if hasattr(estimator, name)}
    # A maker of twins is written with the columns.
    skip = () if estimator.columns_.maker is None else ("edits",)
    about = described(estimator, learned, skip=skip)
    if type(booster).__module__.split(".")[0] == "xgboost":
        trees = bytes(booster.save_raw("json" if Path(path).suffix == ".json" else "ubj"))
    else:
        trees = str(booster.model_to_string()).encode()
    save_beside(path, trees, _KIND, about)


def load_boosting(
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str] = (),
    trust: bool = False,
    about: dict[str, Any] | None = None,
) -> Any:
    """Read an estimator that `save_boosting` wrote."""
    from likewise.training.boosting.classifier import FairBoostingClassifier

    where = Path(path)
    about, arrays = read_beside(where, _KIND, "a FairBoostingClassifier", about)
    found = read_model(where, trust=True, sidecar=False) if trust else read_tried(where)
    if found.container not in ("xgboost", "lightgbm"):
        raise FormatError(f"{where.name} holds no trees of XGBoost or LightGBM. Save the model again.")
    booster = found.native
    width = booster.num_features() if hasattr(booster, "num_features") else booster.num_feature()
    with damage_named(sidecar_path(where)):
        estimator = remade(FairBoostingClassifier, about, arrays)
        columns, estimator.booster_ = estimator.columns_, booster
        if columns.maker is not None:
            estimator.edits = columns.maker
        named = len(columns.names)
    if int(width) != named:
        raise FormatError(f"{where.name} has trees of {width} columns, its description names {named}.")
    return estimator
