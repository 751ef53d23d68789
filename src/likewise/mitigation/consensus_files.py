"""A `TwinConsensus` as files: the model in its library's own format, and a JSON description beside it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import InputError, require
from likewise.core.files import Fields, ListOf, MapOf, Maybe, check_form
from likewise.counterfactuals.causal.consequences import ConsequenceTwins
from likewise.counterfactuals.edited_rows import TwinFactor
from likewise.counterfactuals.edits import Edit
from likewise.counterfactuals.rules import Forbidden, Implication, Rules, ValueMap
from likewise.models.containers import (
    damage_named,
    find_sidecar,
    plain_value,
    read_sidecar,
    sidecar_path,
    write_with_sidecar,
)
from likewise.models.model_files import read_described, read_model, read_tried
from likewise.models.sandbox.model_file import SandboxedFile

if TYPE_CHECKING:
    from likewise.mitigation.twin_consensus import TwinConsensus

# What makes twins, as JSON holds it: an attribute, its values, and rules. What is learned along a graph is
# no such thing.


_CONDITION = MapOf(ListOf(object))
TWINS = Fields(
    {
        "column": str,
        "variants": ListOf(Fields({"value": object, "cells": MapOf(object)})),
        "maps": ListOf(Fields({"when": _CONDITION, "column": str, "old": list, "new": list})),
        "implications": ListOf(Fields({"when": _CONDITION, "then": _CONDITION})),
        "forbidden": ListOf(_CONDITION),
    }
)


def described_maker(maker: Any, *, owner: str) -> dict[str, Any]:
    """Return a fitted maker of twins by rules as JSON holds it; an error if its twins follow a graph."""
    if not isinstance(maker, ConsequenceTwins) or maker.moved_:
        why = (
            "what follows along the graph is learned"
            if isinstance(maker, ConsequenceTwins)
            else "of their maker"
        )
        raise InputError(
            f"{owner}: cannot write a model over these twins: {why}, and no file holds it without pickle. Twins by rules "
            "alone can be written; else keep the people and the Consequences, and fit again where it is used."
        )
    rules = maker.rules_
    column = str(maker.edit.column)
    return {
        "column": column,
        "variants": [
            {"value": _plain(variant[maker.edit.column], owner), "cells": _cells(cells, owner)}
            for variant, cells in zip(maker.plain_.variants_, maker.plain_.cells_, strict=True)
        ],
        "maps": [
            {
                "when": _condition(rule.when, owner),
                "column": rule.column,
                "old": [_plain(value, owner) for value in rule.values],
                "new": [_plain(value, owner) for value in rule.values.values()],
            }
            for rule in rules.maps
        ],
        "implications": [
            {"when": _condition(rule.when, owner), "then": _condition(rule.then, owner)}
            for rule in rules.implications
        ],
        "forbidden": [_condition(rule.what, owner) for rule in rules.forbidden],
    }


def read_maker(stored: Mapping[str, Any]) -> ConsequenceTwins:
    """Return the fitted maker that `described_maker` described; the form is checked before."""
    rules = Rules(
        tuple(
            ValueMap(dict(part["when"]), part["column"], dict(zip(part["old"], part["new"], strict=True)))
            for part in stored["maps"]
        ),
        tuple(Implication(dict(part["when"]), dict(part["then"])) for part in stored["implications"]),
        tuple(Forbidden(dict(part)) for part in stored["forbidden"]),
    )
    values = tuple(part["value"] for part in stored["variants"])
    cells = tuple(dict(part["cells"]) for part in stored["variants"])
    return ConsequenceTwins.by_rules(Edit(stored["column"], values), rules, cells)


def _plain(value: Any, owner: str) -> Any:
    return plain_value(value, owner=owner, what="a value of a rule or edit")


def _cells(cells: Mapping[Any, Any], owner: str) -> dict[str, Any]:
    return {str(column): _plain(value, owner) for column, value in cells.items()}


def _condition(condition: Mapping[str, Any], owner: str) -> dict[str, list[Any]]:
    many = (list, tuple, set, frozenset)
    return {
        column: [_plain(one, owner) for one in (value if isinstance(value, many) else [value])]
        for column, value in condition.items()
    }


# The model inside of a wrapper as a file of its library's own format; nothing is pickled.


def read_wrapped(path: Path, inner: Any, *, trusted: Sequence[str], trust: bool) -> Any:
    """Return the model of a file that `model_bytes` filled."""
    if inner is not None:
        return read_described(path, inner, trusted=trusted, trust=trust)
    if trust:
        return read_model(path, trusted=trusted, trust=True, sidecar=False).native
    return read_tried(path, trusted=trusted).native


def model_bytes(model: Any, path: Path, *, owner: str) -> tuple[bytes, dict[str, Any] | None]:
    """Return a model in its library's own format, and its own description if it is two files."""
    if isinstance(model, SandboxedFile):
        return model.path.read_bytes(), read_sidecar(model.path) if model.sidecar else None
    if "likewise" in _roots(model) and hasattr(model, "save"):
        return _saved(model, path.suffix)
    return _plain_bytes(model, path, owner), None


def _roots(model: Any) -> set[str]:
    return {kind.__module__.split(".")[0] for kind in type(model).__mro__}


def _plain_bytes(model: Any, path: Path, owner: str) -> bytes:
    roots = _roots(model)
    if isinstance(model, (bytes, bytearray)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        return Path(model).read_bytes()
    if "onnx" in roots:
        return bytes(model.SerializeToString())
    if "xgboost" in roots:
        # A wrapper writes that it is one, without which its best iteration would be lost.
        return _saved(model, ".json" if path.suffix == ".json" else ".ubj")[0]
    if "lightgbm" in roots:
        return str(getattr(model, "booster_", model).model_to_string()).encode()
    if "catboost" in roots:
        return _saved(model, ".cbm")[0]
    if "sklearn" in roots:
        io = require("skops.io", extra="skops", why="Writing a scikit-learn model without pickle")
        return bytes(io.dumps(model))
    raise InputError(
        f"{owner}: a model of type {type(model).__name__} cannot be written without pickle. Save it in its own way, "
        "and wrap it again after loading."
    )


def _saved(model: Any, suffix: str) -> tuple[bytes, dict[str, Any] | None]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"model{suffix}"
        (model.save if hasattr(model, "save") else model.save_model)(str(target))
        return target.read_bytes(), read_sidecar(target)


_KIND = "twin_consensus"
FACTORS = ListOf(Fields({"everybody": bool, "settings": ListOf(MapOf(object))}))
_FORM = Fields(
    {
        "factors": FACTORS,
        "how": str,
        "favourable": object,
        "takes_frame": Maybe(bool),
        "classes": Maybe(ListOf(object)),
    },
    {"twins": Maybe(TWINS)},
    more=True,
)
_OWNER = "TwinConsensus.save"


def save_consensus(consensus: TwinConsensus, path: str | os.PathLike[str]) -> None:
    """Write a consensus and its model; see `TwinConsensus.save`."""
    classes = consensus._inner().known_classes
    labels = None
    if classes is not None:
        labels = [plain_value(label, owner=_OWNER, what="a class label") for label in classes.tolist()]
    maker = consensus._maker()
    about = {
        "factors": [] if maker is not None else described_factors(consensus._factors(), owner=_OWNER),
        "twins": None if maker is None else described_maker(maker, owner=_OWNER),
        "how": consensus.how,
        "favourable": plain_value(consensus.favourable, owner=_OWNER, what="'favourable'"),
        "takes_frame": consensus.takes_frame,
        "classes": labels,
    }
    data, inner = model_bytes(consensus.model, Path(path), owner=_OWNER)
    # A model that is a file and a description itself keeps its description inside of ours.
    write_with_sidecar(path, data, _KIND, about if inner is None else about | {"inner": inner})


def load_consensus(
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str] = (),
    trust: bool = False,
    about: dict[str, Any] | None = None,
) -> Any:
    """Read a consensus that `save_consensus` wrote."""
    from likewise.mitigation.twin_consensus import TwinConsensus

    where = Path(path)
    about = find_sidecar(where, _KIND, "a TwinConsensus", about)
    native = read_wrapped(where, about.get("inner"), trusted=trusted, trust=trust)
    with damage_named(sidecar_path(where)):
        check_form(about, _FORM, "it")
        factors = read_factors(about["factors"])
        twins = about.get("twins")
        maker = None if twins is None else read_maker(twins)
        loaded = TwinConsensus(
            native,
            sensitive_features={
                f.columns[0]: [s[f.columns[0]] for s in f.settings]
                for f in factors
                if f.everybody and len(f.columns) == 1
            }
            or None,
            edits=maker or [list(f.settings) for f in factors if not f.everybody] or None,
            how=about["how"],
            favourable=about["favourable"],
            takes_frame=about["takes_frame"],
        )
        labels = None if about["classes"] is None else np.asarray(list(about["classes"]))
    loaded.factors_ = factors
    loaded.maker_ = maker
    loaded._labels = labels
    return loaded


def described_factors(factors: Sequence[TwinFactor], *, owner: str) -> list[dict[str, Any]]:
    """Return factors as JSON holds them."""
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
