"""`lw.audit` against brute force on whole tables: `changed` and every cell of `effects`, asked one counterpart at a time.

    python benchmarks/brute_force.py                              # the bundled tables
    python benchmarks/brute_force.py FILE.csv TARGET COLUMN …     # a table of your own, and its sensitive columns

Prints a line for each model with the cells compared and those that differ; ends with 1 if any does.
"""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

import likewise as lw


def tables() -> list[tuple[str, pd.DataFrame, np.ndarray, list[str]]]:
    """Name, people, labels 0 and 1, sensitive columns."""
    if len(sys.argv) > 3:
        path, target, *columns = sys.argv[1:]
        found = pd.read_csv(path).dropna()
        labels = (found[target] == found[target].max()).to_numpy().astype(int)
        return [(path, found.drop(columns=target), labels, columns)]
    adult, german = lw.datasets.load_adult(), lw.datasets.load_german()
    return [
        ("Adult", adult.frame_test.reset_index(drop=True), adult.y_test, ["sex", "race"]),
        ("German", german.frame.reset_index(drop=True), german.y, ["sex", "foreign_worker", "age"]),
    ]


def models(X: pd.DataFrame, y: np.ndarray) -> dict[str, tuple[object, pd.DataFrame, object]]:
    """Model, the table it takes, and a function from such a table to decisions."""
    words = X.select_dtypes(exclude="number").columns
    typed = X.astype(dict.fromkeys(words, "category"))
    encoder = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    linear = make_pipeline(encoder, LogisticRegression(max_iter=1000)).fit(X, y)
    network = make_pipeline(encoder, MLPClassifier((32,), max_iter=30, random_state=0)).fit(X, y)
    trees = XGBClassifier(n_estimators=50, enable_categorical=True, n_jobs=1).fit(typed, y)
    light = LGBMClassifier(n_estimators=50, n_jobs=1, verbose=-1).fit(typed, y)
    return {
        "scikit-learn": (linear, X, linear.predict),
        "network": (network, X, network.predict),
        "XGBoost": (trees, typed, trees.predict),
        "LightGBM": (light, typed, light.predict),
        "function": (lambda table: linear.predict_proba(table)[:, 1], X, linear.predict),
    }


def compare(model: object, X: pd.DataFrame, decide: object, columns: list[str]) -> tuple[int, int]:
    """Cells compared, and cells that differ."""
    result = lw.audit(model, X, sensitive_features=columns, favourable=1)
    own, changed, wrong, cells = np.asarray(decide(X)), np.zeros(len(X), dtype=bool), 0, 1  # type: ignore[operator]
    values = {name: sorted(X[name].unique()) for name in columns}
    for combination in itertools.product(*values.values()):
        twin = X.assign(
            **{
                n: pd.Series([v] * len(X)).astype(X[n].dtype)
                for n, v in zip(columns, combination, strict=True)
            }
        )
        changed |= np.asarray(decide(twin)) != own  # type: ignore[operator]
    wrong += result.changed.count != changed.sum()
    for row in result.effects.itertuples():
        if row.attribute not in columns or row.recorded not in values[row.attribute]:
            continue  # several attributes at once, or all values of a number together
        twin = X.assign(**{row.attribute: pd.Series([row.instead] * len(X)).astype(X[row.attribute].dtype)})
        inside, then = (X[row.attribute] == row.recorded).to_numpy(), np.asarray(decide(twin))  # type: ignore[operator]
        expected = (
            inside.sum(),
            (inside & (own == 1) & (then == 0)).sum(),
            (inside & (own == 0) & (then == 1)).sum(),
        )
        cells, wrong = cells + 3, wrong + sum(a != b for a, b in zip(expected, row[4:7], strict=True))
    return cells, int(wrong)


def main() -> int:
    """Compare every model of every table."""
    total = 0
    for name, X, y, columns in tables():
        for kind, (model, given, decide) in models(X, np.asarray(y)).items():
            start = time.process_time()
            cells, wrong = compare(model, given, decide, columns)
            total += wrong
            print(
                f"{name}, {len(X):,} people, {kind}: {cells} cells, {wrong} differ ({time.process_time() - start:.1f} CPU-s)"
            )
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
