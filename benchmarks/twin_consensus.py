"""TwinConsensus over every kind of model on Adult: does it treat twins alike, and what does that cost?

OMP_NUM_THREADS=1 python benchmarks/twin_consensus.py --splits 0 1 2

Twins: both genders, both races, husband and wife (8). Consistency is that of the correspondence study of all of them, on
the test people of a split; B-Acc of the model and of its consensus on the same people; the cost is the ratio of CPU seconds
of `predict_proba`, each the shortest of some runs that alternate.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from likewise.counterfactuals import Edit, correspondence_study
from likewise.datasets import load_adult
from likewise.mitigation import TwinConsensus
from likewise.models import as_model

SENSITIVE = ("sex", "race")
SPOUSES = ("Husband", "Wife")
RUNS = 3


def levels(frame):
    return {c: sorted(frame[c].unique()) for c in frame.columns if frame[c].dtype.kind not in "biuf"}


class Tables:
    """The table as each kind of model takes it."""

    def __init__(self, frame):
        self.known = levels(frame)

    def raw(self, frame):
        return frame

    def categories(self, frame):
        return frame.assign(**{c: pd.Categorical(frame[c], categories=v) for c, v in self.known.items()})

    def codes(self, frame):
        return frame.assign(
            **{c: frame[c].map({v: float(i) for i, v in enumerate(vs)}) for c, vs in self.known.items()}
        ).astype(np.float32)

    def spouse(self, kind):
        if kind != "codes":
            return SPOUSES
        return tuple(float(self.known["relationship"].index(value)) for value in SPOUSES)


def weights(y):
    return len(y) / (2 * np.bincount(y))[y]


def xgboost(frame, y):
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=200, learning_rate=0.1, max_depth=4, enable_categorical=True, n_jobs=1)
    return model.fit(frame, y, sample_weight=weights(y))


def lightgbm(frame, y):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1, class_weight="balanced").fit(frame, y)


def hist(frame, y):
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", class_weight="balanced")
    return model.fit(frame, y)


def pipeline(frame, y):
    text = list(levels(frame))
    steps = make_column_transformer((OneHotEncoder(), text), remainder=StandardScaler())
    return make_pipeline(steps, LogisticRegression(max_iter=2000, class_weight="balanced")).fit(frame, y)


def onnx_boosting(frame, y):
    return onnx(GradientBoostingClassifier(max_depth=4, subsample=0.5, random_state=0), frame, y)


def onnx_forest(frame, y):
    return onnx(RandomForestClassifier(50, max_depth=12, random_state=0), frame, y)


def onnx(model, frame, y):
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType

    model.fit(frame.to_numpy(), y, sample_weight=weights(y))
    graph = skl2onnx.convert_sklearn(
        model, initial_types=[("X", FloatTensorType([None, frame.shape[1]]))], options={"zipmap": False}
    )
    return graph.SerializeToString()


def function(frame, y):
    return pipeline(frame, y).predict_proba


KINDS = {
    "XGBoost": (xgboost, "categories"),
    "LightGBM": (lightgbm, "categories"),
    "HistGradientBoosting": (hist, "categories"),
    "pipeline (one-hot, logistic)": (pipeline, "raw"),
    "ONNX (gradient boosting)": (onnx_boosting, "codes"),
    "ONNX (random forest)": (onnx_forest, "codes"),
    "function": (function, "raw"),
}


def cpu(ask):
    begin = time.process_time()
    ask()
    return time.process_time() - begin


def measured(name, data):
    train, kind = KINDS[name]
    tables = Tables(data.frame)
    shape = getattr(tables, kind)
    rows, y = shape(data.frame_train.reset_index(drop=True)), data.y_train
    test, y_test = shape(data.frame_test.reset_index(drop=True)), data.y_test
    model = train(rows, y)
    edits = Edit("relationship", tables.spouse(kind))
    fair = TwinConsensus(model, sensitive_features=list(SENSITIVE), edits=edits).fit(rows)
    plain = as_model(model, **({"takes_frame": True, "classes": [0, 1]} if name == "function" else {}))
    study = correspondence_study(fair, test, [Edit(c) for c in SENSITIVE] + [edits])
    ask = test.to_numpy() if kind == "codes" else test
    ours = theirs = np.inf
    for _ in range(RUNS):
        theirs = min(theirs, cpu(lambda: plain.predict_proba(ask)))
        ours = min(ours, cpu(lambda: fair.predict_proba(test)))
    own = balanced_accuracy_score(y_test, plain.predict(ask))
    return [
        study.consistency,
        own,
        balanced_accuracy_score(y_test, fair.predict(test)),
        ours / theirs,
        fair.n_twins_,
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    print(
        "| model | consistency | B-Acc of the model | of its consensus | times its CPU | twins |\n|---|---|---|---|---|---|"
    )
    data = load_adult()
    for name in options.only:
        rows = np.array([measured(name, data.with_split(split)) for split in options.splits])
        same = "1" if (rows[:, 0] == 1).all() else f"{rows[:, 0].mean():.4f}"
        own, fair = rows[:, 1].mean(), rows[:, 2].mean()
        print(
            f"| {name} | {same} | {own:.4f} | {fair:.4f} | {rows[:, 3].mean():.1f} | {rows[0, 4]:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
