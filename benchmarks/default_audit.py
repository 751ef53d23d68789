"""What the default audit costs beside the model's own answers: CPU seconds, interleaved in one process.

    python benchmarks/default_audit.py [--repeats 5] [--people 1000,10000,100000]

The model's own answers: its decisions about the people as they are and about every counterpart with another combination
of sex and race, each once. The audit: `likewise.audit(model, X, y, sensitive_features=[…])`. People beyond those of the
test split are drawn from the training split, with a few years and dollars added.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

import likewise as lw


def seconds(function, *given, **choices):
    """CPU seconds of one call."""
    start = time.process_time()
    function(*given, **choices)
    return time.process_time() - start


def some_people(data, n):
    """So many people of Adult, with labels."""
    if n <= len(data.frame_test):
        return data.frame_test[:n].reset_index(drop=True), data.y_test[:n]
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(data.frame_train), n)
    people = data.frame_train.iloc[rows].reset_index(drop=True)
    numbers = [name for name in people if people[name].dtype.kind in "iuf"]
    for name in numbers[:2]:
        people[name] = people[name] + rng.integers(0, 50, n)
    return people, np.asarray(data.y_train)[rows]


def with_counterparts(people):
    """The people and everybody's counterparts."""
    others = [people]
    for sex, race in itertools.product(people["sex"].unique(), people["race"].unique()):
        rest = people[(people["sex"] != sex) | (people["race"] != race)].copy()
        rest["sex"] = pd.Series(sex, index=rest.index, dtype=people["sex"].dtype)
        rest["race"] = pd.Series(race, index=rest.index, dtype=people["race"].dtype)
        others.append(rest)
    return pd.concat(others, ignore_index=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--people", default="9045")
    given = parser.parse_args()
    data = lw.datasets.load_adult()
    X, y = data.frame_train, data.y_train
    words = [name for name in X if X[name].dtype.kind not in "biuf"]
    numbers = [name for name in X if name not in words]
    hot = OneHotEncoder(handle_unknown="ignore")
    encode = make_column_transformer((hot, words), remainder="passthrough")
    scale = make_column_transformer((hot, words), (StandardScaler(), numbers))
    boosted = make_pipeline(encode, XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1)).fit(X, y)
    linear = make_pipeline(scale, LogisticRegression(max_iter=500)).fit(X, y)

    def score(table):
        return boosted.predict_proba(table)[:, 1]

    models = {"XGBoost pipeline": boosted, "logistic pipeline": linear, "function": score}
    for n in map(int, given.people.split(",")):
        people, labels = some_people(data, n)
        asked = with_counterparts(people)
        print(f"{n:,} people, {len(asked):,} rows, median of {given.repeats} interleaved runs, CPU-s")
        for name, model in models.items():
            answer = getattr(model, "predict", model)
            pairs = []
            for _ in range(given.repeats + 1):
                own = seconds(answer, asked)
                audit = seconds(lw.audit, model, people, labels, sensitive_features=["sex", "race"])
                pairs.append((own, audit))
            own, audit = map(statistics.median, zip(*pairs[1:], strict=True))
            print(f"  {name:20} own answers {own:7.3f}   audit {audit:7.3f}   ratio {audit / own:5.2f}")


if __name__ == "__main__":
    main()
