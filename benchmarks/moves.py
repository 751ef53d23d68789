"""What an audit with a metric costs: Adult's 9,045 test people for five families, and planted tables of growing width.

    OMP_NUM_THREADS=1 python benchmarks/moves.py --model network --model xgboost --people 9045
    OMP_NUM_THREADS=1 python benchmarks/moves.py --columns 20 --columns 80 --columns 148 --people 80

Each line is one `lw.audit(model, X, y, metric=AttributeSubspace(["sex", "race"]), eps=0.1)` with its CPU seconds
(`time.process_time`, the first audit of the process, compiled code from the cache on disk), the gap, and the peak memory of
the process. To compare with other code, run it with another checkout on PYTHONPATH: models are trained from fixed seeds.
"""

import argparse
import resource
import time
import warnings

import numpy as np
import pandas as pd

import likewise as lw


def categorical(data, frame):
    """The table with its words as categories, as the boosted libraries take them."""
    frame = frame.copy()
    for column in data.domain.columns_:
        if column.categories:
            frame[column.name] = pd.Categorical(frame[column.name], categories=list(column.categories))
    return frame


def adult(name):
    """Train a model of Adult; return it with the rows as it takes them, their labels and the metric."""
    data = lw.datasets.load_adult(split=0)
    metric = lw.AttributeSubspace(["sex", "race"]).fit(data.frame_train).metric_
    train, test, y = data.frame_train, data.frame_test, data.y_train
    if name == "network":
        model = lw.MLPBaselineClassifier(random_state=0)
    elif name == "forest":
        from sklearn.compose import make_column_transformer
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        words = [column.name for column in data.domain.columns_ if column.categories]
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        model = make_pipeline(
            make_column_transformer((encoder, words), remainder="passthrough"),
            RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=1),
        )
    else:
        train, test = categorical(data, train), categorical(data, test)
        model = _boosted(name)
    return model.fit(train, y), test, data.y_test, metric


def _boosted(name):
    if name == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=100, max_depth=6, enable_categorical=True, n_jobs=1, random_state=0)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)


def planted(columns, kind):
    """A table in which ten of many columns matter, and a model of it."""
    rng = np.random.default_rng(0)
    n = 3_000
    numbers = rng.normal(size=(n, columns - 2)).round(3)
    frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(columns - 2)])
    frame["sex"], frame["race"] = rng.choice(["f", "m"], n), rng.choice(["a", "b", "c"], n)
    score = numbers[:, :8].sum(axis=1) + (frame["sex"] == "m") + (frame["race"] == "a")
    y = (score + rng.normal(size=n) > 0.7).astype(int).to_numpy()
    if kind == "network":
        model = lw.MLPBaselineClassifier(random_state=0, n_steps=500).fit(frame, y)
    else:
        data = frame.assign(sex=pd.Categorical(frame["sex"]), race=pd.Categorical(frame["race"]))
        model, frame = _boosted("xgboost").fit(data, y), data
    metric = lw.AttributeSubspace(["sex", "race"]).fit(frame).metric_
    return model, frame, y, metric


def measure(name, model, X, y, metric, people):
    clock = time.process_time()
    found = lw.audit(model, X.iloc[:people], y[:people], metric=metric, eps=0.1)
    spent = time.process_time() - clock
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"| {name} | {people} | {spent:.2f} | {found.gap:.4f} | {found.pure_gap:.4f} | {peak:.2f} | {found.search} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--columns", type=int, action="append", default=[])
    parser.add_argument("--kind", choices=["network", "xgboost"], default="xgboost", help="of planted tables")
    parser.add_argument("--people", type=int, default=9045)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| model | people | CPU s | gap at 0.1 | at 0 | peak GB | searches |")
    for name in asked.model:
        measure(name, *adult(name), asked.people)
    for columns in asked.columns:
        measure(f"{asked.kind}, {columns} columns", *planted(columns, asked.kind), asked.people)


if __name__ == "__main__":
    main()
