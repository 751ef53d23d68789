"""Small models of every kind that travels in a page, and rows that try their edges."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

import likewise as lw
from likewise.core.errors import LikewiseError
from likewise.data import TabularDomain
from likewise.models import as_model
from likewise.models.tree_ensemble import read_trees

WORDS = ["workclass", "marital-status", "occupation", "relationship", "race", "sex"]
NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
NAMES = (
    "XGBoost", "XGBoost of encoded rows", "LightGBM", "LightGBM without gaps", "HistGradientBoosting", "RandomForest",
    "LogisticRegression", "MLP", "SenSR",
)  # fmt: skip
# Zeros of both signs, numbers that single precision rounds to nothing, and large ones.
SPECIAL = (0.0, -0.0, 1e-40, -1e-310, 1e9, -1e9, 3e37)
ROWS = 1000


@cache
def people() -> tuple[pd.DataFrame, np.ndarray, TabularDomain]:
    data = lw.datasets.load_adult()
    frame = data.frame_train.iloc[:500].reset_index(drop=True)
    frame = frame.astype(dict.fromkeys(NUMBERS, float)).astype(dict.fromkeys(WORDS, object))
    return frame, np.asarray(data.y_train[:500]), TabularDomain.from_frame(frame)


def _with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = frame.copy()
    for name in ("age", "hours-per-week", "workclass"):
        table.loc[rng.random(len(table)) < 0.1, name] = np.nan
    known = {name: pd.CategoricalDtype(sorted(frame[name].unique())) for name in WORDS}
    return table.astype(known)


@cache
def fitted(name: str) -> object:
    """One of the models, fitted on 500 people of Adult."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame, y, domain = people()
    known = {one: pd.CategoricalDtype(sorted(frame[one].unique())) for one in WORDS}
    # Splits on small sets of categories, which the defaults avoid on so few people.
    eager = {"num_leaves": 15, "min_child_samples": 5, "cat_smooth": 1, "min_data_per_group": 5}

    def words(unknown: str) -> OneHotEncoder:
        return OneHotEncoder(handle_unknown=unknown, sparse_output=False)

    if name.startswith("XGBoost"):
        from xgboost import XGBClassifier

        choices = {"n_estimators": 30, "max_depth": 4, "n_jobs": 1}
        if name == "XGBoost":
            return XGBClassifier(enable_categorical=True, **choices).fit(_with_gaps(frame), y)
        return XGBClassifier(**choices).fit(domain.encode_array(frame), y)
    if name.startswith("LightGBM"):
        from lightgbm import LGBMClassifier

        table = _with_gaps(frame) if name == "LightGBM" else frame.astype(known)
        return LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1, **eager).fit(table, y)
    if name == "HistGradientBoosting":
        model = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, min_samples_leaf=5)
        return model.fit(_with_gaps(frame), y)
    if name == "RandomForest":
        encoder = make_column_transformer((words("ignore"), WORDS), remainder="passthrough")
        return make_pipeline(encoder, RandomForestClassifier(25, max_depth=6, random_state=0)).fit(frame, y)
    if name == "LogisticRegression":
        numbers = make_pipeline(SimpleImputer(), StandardScaler())
        encoder = make_column_transformer((numbers, NUMBERS), (words("error"), WORDS))
        return make_pipeline(encoder, LogisticRegression(max_iter=500)).fit(frame, y)
    if name == "MLP":
        filled = make_pipeline(SimpleImputer(strategy="most_frequent"), words("ignore"))
        encoder = make_column_transformer((StandardScaler(), NUMBERS), (filled, WORDS))
        net = MLPClassifier((8, 6), activation="tanh", tol=1.0, random_state=0)
        return make_pipeline(encoder, net).fit(frame, y)
    metric = lw.AttributeSubspace(["sex"])
    few = lw.SenSRClassifier(
        metric=metric,
        domain=TabularDomain(),
        n_steps=5,
        training=lw.training.TrainingConfig(baseline=False),
        random_state=0,
    )
    return few.fit(frame, y)


def thresholds(name: str, features: list[dict], columns: list[dict]) -> dict[str, list[float]]:
    """Where the splits of a tree model lie, in the units of the table; nothing for another model."""
    model = fitted(name)
    try:
        trees = read_trees(model.steps[-1][1] if hasattr(model, "steps") else model)
    except LikewiseError:
        return {}
    found: dict[str, list[float]] = {}
    for node in np.flatnonzero(trees.left >= 0):
        feature = features[trees.feature[node]]
        if "mean" in feature and trees.first[node] == trees.last[node]:
            value = float(trees.threshold[node] * feature["scale"] + feature["mean"])
            found.setdefault(columns[feature["column"]]["name"], []).append(value)
    return found


def edge_rows(cuts: dict[str, list[float]]) -> tuple[pd.DataFrame, list[str]]:
    """1,000 rows: people, values at and beside thresholds, special ones, gaps, strange words, numbers beyond float32."""
    frame, _, _ = people()
    rng = np.random.default_rng(1)
    rows = {name: frame[name].to_numpy(dtype=object)[rng.integers(0, len(frame), ROWS)] for name in frame}
    kinds = [""] * ROWS
    for i in range(150, ROWS):
        name = str(rng.choice(NUMBERS))
        if i < 650:
            cut = float(rng.choice(cuts.get(name) or [0.0]))
            beside = [np.nextafter(cut, np.inf), np.nextafter(cut, -np.inf)]
            beside += [float(np.nextafter(np.float32(cut), np.float32(end))) for end in (np.inf, -np.inf)]
            rows[name][i] = float(rng.choice([cut, *beside]))
        elif i < 750:
            rows[name][i] = float(rng.choice(SPECIAL))
        elif i < 900:
            name = str(rng.choice(["age", "capital-gain", "hours-per-week", "workclass", "sex"]))
            rows[name][i] = np.nan
            kinds[i] = f"missing {name}"
        elif i < 970:
            name = str(rng.choice(["workclass", "race", "sex"]))
            rows[name][i] = "Martian"
            kinds[i] = f"unseen {name}"
        else:
            name = str(rng.choice(["age", "capital-gain"]))
            rows[name][i] = (1e39, -1e300)[i % 2]
            kinds[i] = f"huge {name} {i % 2}"
    return pd.DataFrame(rows).astype(dict.fromkeys(NUMBERS, float)), kinds


def answers(name: str, rows: pd.DataFrame, kinds: list[str]) -> tuple[list[list[float] | None], list[int]]:
    """Probabilities and decisions of the library itself; None where it refuses rows of that kind."""
    model = as_model(fitted(name))
    _, _, domain = people()
    found: list[list[float] | None] = [None] * len(rows)
    decisions = [-1] * len(rows)
    for kind in dict.fromkeys(kinds):
        at = [i for i, one in enumerate(kinds) if one == kind]
        part = rows.iloc[at].reset_index(drop=True)
        try:
            if not model.takes_frame and model.encoder is None:
                part = domain.encode_array(part)
            probabilities, decided = model.predict_proba(part), model.predict(part)
        except LikewiseError:
            continue
        for i, row, decision in zip(at, probabilities.tolist(), decided.tolist(), strict=True):
            found[i], decisions[i] = row, decision
    return found, decisions
