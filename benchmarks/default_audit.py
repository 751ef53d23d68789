"""What the default audit costs beside the model's own answers: CPU seconds, interleaved in one process.

    python benchmarks/default_audit.py [--repeats 9]

The model's own answers: `predict` of the fitted pipeline about the people as they are and about every counterpart with
another combination of sex and race, each once. The audit: `likewise.audit(pipeline, X, y, sensitive_features=[…])`.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier

import likewise as lw


def seconds(function):
    """CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    data = lw.datasets.load_adult()
    X, y, people, labels = data.frame_train, data.y_train, data.frame_test, data.y_test
    words = [name for name in X if X[name].dtype.kind not in "biuf"]
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough")
    model = make_pipeline(encode, XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1)).fit(X, y)
    others = []
    for sex, race in itertools.product(people["sex"].unique(), people["race"].unique()):
        rest = people[(people["sex"] != sex) | (people["race"] != race)].copy()
        rest["sex"] = pd.Series(sex, index=rest.index, dtype=people["sex"].dtype)
        rest["race"] = pd.Series(race, index=rest.index, dtype=people["race"].dtype)
        others.append(rest)
    asked = pd.concat([people, *others], ignore_index=True)
    runs = {
        "model's own answers": lambda: model.predict(asked),
        "default audit": lambda: lw.audit(model, people, labels, sensitive_features=["sex", "race"]),
    }
    for run in runs.values():
        run()
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            found[name].append(seconds(run))
    medians = {name: statistics.median(times) for name, times in found.items()}
    print(f"{len(people):,} people, {len(asked):,} rows asked about, median of {repeats} interleaved runs")
    for name, median in medians.items():
        print(f"  {name:22}{median:8.3f} CPU-s")
    own, audit = medians.values()
    print(f"  ratio                 {audit / own:8.2f}")


if __name__ == "__main__":
    main()
