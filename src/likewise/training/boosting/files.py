"""A `FairBoostingClassifier` as files: the trees in their library's own format, a JSON description beside. No pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.errors import FormatError
from likewise.core.files import Fields, ListOf, MapOf, Maybe, Whole, check_form, plain_dtype
from likewise.mitigation.consensus_files import (
    FACTORS,
    TWINS,
    described_factors,
    described_maker,
    read_factors,
    read_maker,
)
from likewise.models.containers import (
    damage_named,
    find_sidecar,
    plain_value,
    sidecar_path,
    write_with_sidecar,
)
from likewise.models.model_files import read_model, read_tried
from likewise.training.boosting.columns import TreeColumns
from likewise.training.estimators.values import Arrays, decode, encode_parameters, warn_left_out

_KIND = "boosting"
_FORM = Fields(
    {
        "parameters": MapOf(object),
        "arrays": MapOf(Fields({"type": str, "values": list})),
        "left_out": ListOf(str),
        "classes": ListOf(object),
        "class_type": str,
        "columns": Fields(
            {"names": ListOf(str), "categories": ListOf(Maybe(ListOf(object))), "factors": FACTORS},
            {"twins": Maybe(TWINS)},
        ),
        "sensitive_columns": ListOf(str),
        "n_features_in": Whole(1),
        "feature_names_in": Maybe(ListOf(str)),
        "n_iter": Whole(),
    },
    more=True,
)


def save_boosting(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; see `FairBoostingClassifier.save`."""
    owner = f"{type(estimator).__name__}.save"
    booster, columns = estimator.booster_, estimator.columns_
    arrays: Arrays = {}
    # A maker of twins is written with the columns.
    skip = () if columns.maker is None else ("edits",)
    parameters, left_out = encode_parameters(estimator, arrays, skip=skip)
    names = getattr(estimator, "feature_names_in_", None)
    about = {
        "parameters": parameters,
        "arrays": {name: {"type": a.dtype.str, "values": a.tolist()} for name, a in arrays.items()},
        "left_out": left_out,
        "classes": [
            plain_value(label, owner=owner, what="a class label") for label in estimator.classes_.tolist()
        ],
        "class_type": estimator.classes_.dtype.str,
        "columns": {
            "names": list(columns.names),
            "categories": [
                None
                if values is None
                else [plain_value(v, owner=owner, what=f"a value of {n!r}") for v in values]
                for n, values in zip(columns.names, columns.categories, strict=True)
            ],
            "factors": described_factors(columns.factors, owner=owner),
            "twins": None if columns.maker is None else described_maker(columns.maker, owner=owner),
        },
        "sensitive_columns": list(estimator._left_out),
        "n_features_in": int(estimator.n_features_in_),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "n_iter": int(estimator.n_iter_),
    }
    write_with_sidecar(path, _trees(booster, Path(path)), _KIND, about)


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
    about = find_sidecar(where, _KIND, "a FairBoostingClassifier", about)
    found = read_model(where, trust=True, sidecar=False) if trust else read_tried(where)
    if found.container not in ("xgboost", "lightgbm"):
        raise FormatError(f"{where.name} holds no trees of XGBoost or LightGBM. Save the model again.")
    with damage_named(sidecar_path(where)):
        check_form(about, _FORM, "it")
        arrays = {
            name: np.array(part["values"], dtype=plain_dtype(part["type"]))
            for name, part in about["arrays"].items()
        }
        estimator = FairBoostingClassifier(
            **{name: decode(item, arrays) for name, item in about["parameters"].items()}
        )
        columns = about["columns"]
        twins = columns.get("twins")
        maker = None if twins is None else read_maker(twins)
        if maker is not None:
            estimator.edits = maker
        estimator.columns_ = TreeColumns(
            tuple(columns["names"]),
            tuple(None if values is None else tuple(values) for values in columns["categories"]),
            read_factors(columns["factors"]),
            maker,
        )
        estimator._left_out = tuple(about["sensitive_columns"])
        estimator.classes_ = np.array(list(about["classes"]), dtype=plain_dtype(about["class_type"]))
        estimator.n_features_in_ = int(about["n_features_in"])
        if about["feature_names_in"] is not None:
            estimator.feature_names_in_ = np.asarray(about["feature_names_in"], dtype=object)
        estimator.n_iter_ = int(about["n_iter"])
        left_out = list(about["left_out"])
    estimator.booster_ = found.native
    _check_width(estimator, where)
    warn_left_out("FairBoostingClassifier", left_out, stacklevel=3)
    return estimator


def _trees(booster: Any, path: Path) -> bytes:
    if type(booster).__module__.split(".")[0] == "xgboost":
        return bytes(booster.save_raw("json" if path.suffix == ".json" else "ubj"))
    return str(booster.model_to_string()).encode()


def _check_width(estimator: Any, path: Path) -> None:
    booster = estimator.booster_
    width = booster.num_features() if hasattr(booster, "num_features") else booster.num_feature()
    if int(width) != len(estimator.columns_.names):
        raise FormatError(
            f"{path.name} has trees of {width} columns, its description names {len(estimator.columns_.names)}."
        )
