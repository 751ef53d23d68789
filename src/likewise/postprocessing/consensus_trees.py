"""A consensus of XGBoost as one XGBoost model: the trees of all twins, summed.

The mean over T twins of a sum of trees is a sum of T times as many trees: each has its splits on the twins' columns
settled as they go for one of the twins, and its leaves divided by T. It is asked once, and it cannot tell twins apart.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.core.extras import require
from likewise.evaluation.twins import TwinFactor
from likewise.models.categories import xgboost_categories
from likewise.models.xgboost_trees import kept_rounds, kept_trees

__all__ = ["summed_trees"]

_OWNER = "TwinConsensus.export"
# Every number is below the one and none below the other.
_ALWAYS_LEFT, _ALWAYS_RIGHT = float(np.finfo(np.float32).max), float(np.finfo(np.float32).min)


def summed_trees(model: Any, factors: Sequence[TwinFactor]) -> Any:
    """Return an XGBoost booster whose margin is the mean of a model's margins over a person's twins.

    Parameters
    ----------
    model : xgboost.Booster or wrapper
        Of plain trees.
    factors : sequence of TwinFactor
        Of one column each. One that concerns only some people must be of a categorical column.

    Returns
    -------
    xgboost.Booster
        It takes the same columns, and the factors' columns make no difference.
    """
    xgboost = require("xgboost", extra="boosting", why="Writing a consensus as trees")
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    document = json.loads(bytes(booster.save_raw("json")).decode())
    learner = document["learner"]
    ensemble = learner["gradient_booster"].get("model")
    if ensemble is None or learner["gradient_booster"].get("name") != "gbtree":
        raise InputError(f"{_OWNER}: only XGBoost's plain trees (booster='gbtree') can be summed.")
    columns = _columns(factors, booster)
    trees, groups = kept_trees(ensemble, kept_rounds(model))
    twins = [dict(parts) for parts in itertools.product(*(_codes(f, columns) for f in factors))]
    summed: list[dict[str, Any]] = []
    info: list[int] = []
    for tree, group in zip(trees, groups, strict=True):
        for twin in twins:
            summed.append(_settled(tree, twin, factors, columns, len(twins)) | {"id": len(summed)})
            info.append(group)
    ensemble["trees"], ensemble["tree_info"] = summed, info
    ensemble["gbtree_model_param"]["num_trees"] = str(len(summed))
    if "iteration_indptr" in ensemble:
        last = [start for start in ensemble["iteration_indptr"] if start <= len(trees)]
        ensemble["iteration_indptr"] = [start * len(twins) for start in last]
    learner["attributes"] = {}
    found = xgboost.Booster()
    found.load_model(bytearray(json.dumps(document).encode()))
    return found


class _Column:
    """A column of the booster: its position, and the number that stands for each of the factor's values."""

    def __init__(self, position: int, codes: Mapping[Any, float]) -> None:
        self.position, self.codes = position, codes


def _columns(factors: Sequence[TwinFactor], booster: Any) -> dict[str, _Column]:
    names = list(booster.feature_names or [str(i) for i in range(booster.num_features())])
    known = xgboost_categories(booster)
    found = {}
    for factor in factors:
        if len(factor.columns) > 1:
            raise InputError(f"{_OWNER}: columns that change together cannot be summed into trees.")
        name = factor.columns[0]
        if name not in names:
            raise InputError(
                f"{_OWNER}: the trees have no column {name!r}. They have: {', '.join(names[:12])}."
            )
        values = [setting[name] for setting in factor.settings]
        if name in known:
            codes = {value: float(known[name].index(value)) for value in values if value in known[name]}
        else:
            codes = {v: float(v) for v in values if isinstance(v, (bool, int, float, np.number))}
        missing = [value for value in values if value not in codes]
        if missing:
            raise InputError(f"{_OWNER}: the trees never saw {missing[0]!r} in column {name!r}.")
        found[name] = _Column(names.index(name), codes)
    return found


def _codes(factor: TwinFactor, columns: Mapping[str, _Column]) -> list[tuple[str, float]]:
    name = factor.columns[0]
    return [(name, columns[name].codes[setting[name]]) for setting in factor.settings]


def _settled(
    tree: Any,
    twin: Mapping[str, float],
    factors: Sequence[TwinFactor],
    columns: Mapping[str, _Column],
    n_twins: int,
) -> dict[str, Any]:
    """A tree as it is for one twin, its leaves divided by the number of twins."""
    new: dict[str, Any] = copy.deepcopy(tree)
    sets = {
        int(node): set(tree["categories"][int(start) : int(start) + int(size)])
        for node, start, size in zip(
            *(tree[f"categories_{part}"] for part in ("nodes", "segments", "sizes")), strict=True
        )
    }
    by_position = {columns[f.columns[0]].position: f for f in factors}
    for node, left in enumerate(tree["left_children"]):
        if left < 0:
            new["split_conditions"][node] = float(np.float32(tree["split_conditions"][node] / n_twins))
            continue
        factor = by_position.get(tree["split_indices"][node])
        if factor is None:
            continue
        name = factor.columns[0]
        code, members = twin[name], {int(c) for c in columns[name].codes.values()}
        if factor.everybody:
            right = code in sets[node] if node in sets else code >= np.float32(tree["split_conditions"][node])
            _force(new, node, bool(right), sets)
        elif node not in sets:
            raise InputError(
                f"{_OWNER}: {name!r} concerns only some people and is a number to the trees; make it categorical."
            )
        else:
            sets[node] = sets[node] | members if int(code) in sets[node] else sets[node] - members
            if not sets[node]:
                _force(new, node, False, sets, missing=tree["default_left"][node])
    _write_sets(new, sets)
    return new


def _force(tree: Any, node: int, right: bool, sets: dict[int, Any], missing: int | None = None) -> None:
    """Let everybody at a node go the same way; a missing value too, unless it is told otherwise."""
    sets.pop(node, None)
    tree["split_type"][node] = 0
    tree["split_conditions"][node] = _ALWAYS_RIGHT if right else _ALWAYS_LEFT
    tree["default_left"][node] = int(not right) if missing is None else missing


def _write_sets(tree: Any, sets: Mapping[int, set[int]]) -> None:
    nodes = sorted(sets)
    sizes = [len(sets[node]) for node in nodes]
    tree["categories"] = [code for node in nodes for code in sorted(sets[node])]
    tree["categories_nodes"], tree["categories_sizes"] = nodes, sizes
    tree["categories_segments"] = [sum(sizes[:i]) for i in range(len(sizes))]
