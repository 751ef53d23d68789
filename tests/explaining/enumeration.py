"""Random small cases of recourse, and the answer by asking about every row that there is."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

NUMBERS, WORDS = ("age", "hours", "rate"), ("job", "home")
TREES = ("tree", "forest", "extra", "hist", "xgboost", "lightgbm")
FAMILIES = (*TREES, "logistic", "network")


@dataclass
class SmallCase:
    """A model of few columns with few values, and rules."""

    model: Any
    table: pd.DataFrame
    family: str
    favourable: Any
    actions: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, Any] | None = None
    cost: str = "range"

    def options(self, name: str, own: Any) -> list[Any]:
        """Values that a person may take in a column, by the rules alone."""
        said = self.actions.get(name, {})
        said = {"fixed": {"actionable": False}, "up": {"direction": "up"}, "down": {"direction": "down"}}.get(
            said if isinstance(said, str) else "", said
        )
        if name == "sex" or not said.get("actionable", True):
            return [own]
        if name in WORDS:
            return sorted(self.table[name].unique())
        low, high = self.table[name].min(), self.table[name].max()
        if "range" in said:
            low, high = max(low, said["range"][0]), min(high, said["range"][1])
        step = said.get("step", 1 if name != "rate" else 0.1)
        found = [own]
        for k in range(1, 200):
            for sign in (1, -1):
                value = own + sign * k * step
                value = round(value, 6) if name == "rate" else value
                inside = low - 1e-9 <= value <= high + 1e-9
                if inside and said.get("direction", "any") in ("any", "up" if sign > 0 else "down"):
                    found.append(value)
        return found

    def price(self, name: str, own: Any, values: Any) -> Any:
        """What values cost instead of a person's own."""
        said = self.actions.get(name, {})
        factor = said.get("cost", 1.0) if isinstance(said, dict) else 1.0
        if name in (*WORDS, "sex"):
            return factor * (np.asarray(values) != own).astype(float)
        column = self.table[name].to_numpy(dtype=float)
        if self.cost == "percentile":
            at = np.unique(column)
            to = [((column < v).sum() + (column <= v).sum()) / 2 / len(column) for v in at]
            return factor * np.abs(np.interp(values, at, to) - np.interp(own, at, to))
        low, high = np.quantile(column, [0.1, 0.9])
        return factor * np.abs(np.asarray(values, dtype=float) - own) / (high - low)

    def broken(self, rows: pd.DataFrame) -> Any:
        """Which rows the rules exclude."""
        bad = np.zeros(len(rows), dtype=bool)
        for what in (self.rules or {}).get("forbid", ()):
            bad |= np.logical_and.reduce(
                [rows[k].isin(v if isinstance(v, list) else [v]) for k, v in what.items()]
            )
        for rule in (self.rules or {}).get("implies", ()):
            when = np.logical_and.reduce(
                [rows[k].isin(v if isinstance(v, list) else [v]) for k, v in rule["if"].items()]
            )
            then = np.logical_and.reduce(
                [rows[k].isin(v if isinstance(v, list) else [v]) for k, v in rule["then"].items()]
            )
            bad |= when & ~then
        return bad

    def least(self, own: pd.Series) -> float:
        """The least cost of all rows that the model decides favourably; infinite if there is none."""
        names = list(self.table.columns)
        values = [self.options(name, own[name]) for name in names]
        costs = [self.price(name, own[name], some) for name, some in zip(names, values, strict=True)]
        rows = pd.DataFrame(list(itertools.product(*values)), columns=names).astype(
            self.table.dtypes.to_dict()
        )
        total = np.array([sum(one) for one in itertools.product(*costs)])
        start = pd.DataFrame([own]).astype(self.table.dtypes.to_dict())
        if not self.broken(start)[0]:
            keep = ~self.broken(rows)
        else:
            # A rule that the person breaks as they are does not bind them; others do.
            keep = np.ones(len(rows), dtype=bool)
            for kind, rules in (self.rules or {}).items():
                for rule in rules:
                    one = SmallCase(self.model, self.table, "", None, {}, {kind: [rule]})
                    keep &= ~one.broken(rows) | one.broken(start)[0]
        good = keep & (np.asarray(self.model.predict(rows)) == self.favourable)
        return float(total[good].min()) if good.any() else np.inf


def small_case(seed: int, family: str | None = None) -> SmallCase:
    """Make a random case."""
    rng = np.random.default_rng(seed)
    family = family or FAMILIES[seed % len(FAMILIES)]
    n = 120
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 32, n),
            "job": rng.choice(list("abc"), n),
            "hours": rng.integers(0, 9, n),
            "sex": rng.choice(["F", "M"], n),
            "rate": rng.integers(0, 8, n) / 10,
            "home": rng.choice(["own", "rent"], n),
        }
    )
    names = list(rng.permutation(table.columns))[: int(rng.integers(3, 7))]
    if "sex" not in names:
        names.append("sex")
    table = table[[name for name in table.columns if name in names]]
    score = rng.normal(size=6)
    target = sum(
        weight * (pd.factorize(table[name], sort=True)[0] / 5)
        for weight, name in zip(score, table.columns, strict=False)
    ) + rng.normal(0, 0.3, n)
    classes = 3 if family in ("tree", "forest", "hist", "lightgbm", "xgboost") and rng.random() < 0.25 else 2
    y = pd.qcut(
        pd.Series(target).rank(method="first"),
        [0, 0.6, 0.8, 1] if classes == 3 else [0, 0.6, 1],
        labels=False,
    )
    model = make_pipeline(_encoder(table), _model(family, seed)).fit(table, y)
    case = SmallCase(model, table, family, int(rng.integers(classes)) if rng.random() < 0.2 else classes - 1)
    _rules(case, rng)
    if family != "network" and rng.random() < 0.3:
        case.cost = "percentile"
    return case


def _encoder(table: pd.DataFrame) -> Any:
    words = [name for name in table.columns if name in (*WORDS, "sex")]
    numbers = [name for name in table.columns if name in NUMBERS]
    parts = [(OneHotEncoder(sparse_output=False), words)] + ([(StandardScaler(), numbers)] if numbers else [])
    return make_column_transformer(*parts)


def _model(family: str, seed: int) -> Any:
    if family == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=8, max_depth=3, random_state=seed, n_jobs=1)
    if family == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            n_estimators=8, num_leaves=6, min_child_samples=5, random_state=seed, n_jobs=1, verbose=-1
        )
    models: dict[str, Any] = {
        "tree": DecisionTreeClassifier(max_depth=5, random_state=seed),
        "forest": RandomForestClassifier(7, max_depth=4, random_state=seed),
        "extra": ExtraTreesClassifier(7, max_depth=4, random_state=seed),
        "hist": HistGradientBoostingClassifier(
            max_iter=8, max_leaf_nodes=6, min_samples_leaf=5, random_state=seed
        ),
        "logistic": LogisticRegression(),
        "network": MLPClassifier((6,), solver="lbfgs", max_iter=60, random_state=seed),
    }
    return models[family]


def _rules(case: SmallCase, rng: np.random.Generator) -> None:
    table = case.table
    for name in table.columns:
        draw = rng.random()
        if name == "sex" or draw < 0.5:
            continue
        if draw < 0.58:
            case.actions[name] = "fixed"
        elif name in WORDS:
            case.actions[name] = {"cost": float(rng.choice([0.3, 2.0]))}
        elif draw < 0.7:
            case.actions[name] = str(rng.choice(["up", "down"]))
        else:
            low, high = table[name].min(), table[name].max()
            case.actions[name] = {
                "direction": str(rng.choice(["any", "up", "down"])),
                "step": float(rng.choice([1, 2]) * (0.1 if name == "rate" else 1)),
                "cost": float(rng.choice([0.5, 1.0, 3.0])),
            }
            if rng.random() < 0.5:
                # Somebody may be outside, and then stays or comes into it at once.
                off = [float(k) * (0.1 if name == "rate" else 1.0) for k in rng.integers(0, 4, 2)]
                case.actions[name]["range"] = [round(float(low) + off[0], 6), round(float(high) - off[1], 6)]
    if rng.random() < 0.6:
        known = [name for name in table.columns if name != "rate"]
        first, second = rng.choice(known, 2, replace=False)
        one, other = (sorted(table[name].unique().tolist()) for name in (first, second))
        forbid = {str(first): one[int(rng.integers(len(one)))], str(second): other[: max(1, len(other) // 2)]}
        case.rules = {"forbid": [forbid]}
        if rng.random() < 0.5:
            then = {str(first): one[: max(1, len(one) // 2)]}
            case.rules["implies"] = [{"if": {str(second): other[-1]}, "then": then}]
