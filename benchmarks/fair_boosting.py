"""Fair boosting and twin consensus beside plain XGBoost, on the test people of seeded splits.

OMP_NUM_THREADS=1 python benchmarks/fair_boosting.py                                  # Adult, ten splits
OMP_NUM_THREADS=1 python benchmarks/fair_boosting.py --table german --splits 0 1 2 3 4
OMP_NUM_THREADS=1 python benchmarks/fair_boosting.py --table compas --folder PATH     # compas-scores-two-years.csv there
OMP_NUM_THREADS=1 python benchmarks/fair_boosting.py --table law_school --folder PATH # law_school.csv there

OMP_NUM_THREADS=1 python benchmarks/fair_boosting.py --choose --splits 0 1 2          # penalties on training people

--choose shows what penalties and depths do to training people: it holds a quarter of a split's training people out, fits
on the others and measures on those held out. Gaps at ε are those of the candidate audit (twins and people of the test
part), under the metric `AttributeSubspace` of the sensitive columns learned on the training people.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from likewise.auditing.dual.finite_dual import dual_curve
from likewise.auditing.search.candidates import CandidateSearch
from likewise.counterfactuals import Edit, correspondence_study
from likewise.data import TabularDomain
from likewise.datasets import load_adult, load_german
from likewise.datasets.bundled import split_indices
from likewise.evaluation import group_gaps
from likewise.fair_metrics import AttributeSubspace
from likewise.mitigation import TwinConsensus
from likewise.models import as_model
from likewise.training import FairBoostingClassifier

PENALTIES, DEPTHS = (1.0, 1.25, 1.5), (6, 4)
SPOUSE = Edit("relationship", ("Husband", "Wife"))
COMPAS = (
    "sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class People:
    frame: pd.DataFrame
    y: np.ndarray
    sensitive: tuple[str, ...]
    edits: Edit | None = None


def load(table, folder):
    if table in ("adult", "german"):
        data = load_adult() if table == "adult" else load_german()
        # German's other sensitive column is the age, whose twins are too many.
        sensitive = ("sex", "race") if table == "adult" else ("sex",)
        return People(data.frame, data.y, sensitive, SPOUSE if table == "adult" else None)
    if table == "compas":
        frame = pd.read_csv(Path(folder) / "compas-scores-two-years.csv")
        return People(frame[list(COMPAS)], frame["two_year_recid"].to_numpy(), ("race", "sex"))
    frame = pd.read_csv(Path(folder) / "law_school.csv")
    y = frame.pop("pass_bar").to_numpy().astype(int)
    return People(frame, y, ("race", "male"))


class PlainXGBoost:
    """XGBoost with categories as pandas has them and balanced classes; sensitive columns and all."""

    def __init__(self, frame):
        self.levels = {
            c: sorted(frame[c].dropna().unique()) for c in frame.columns if frame[c].dtype.kind not in "biuf"
        }

    def prepare(self, frame):
        return frame.assign(**{c: pd.Categorical(frame[c], categories=v) for c, v in self.levels.items()})

    def fit(self, frame, y):
        import xgboost

        self.model = xgboost.XGBClassifier(
            n_estimators=200, learning_rate=0.1, max_depth=4, enable_categorical=True, n_jobs=1
        )
        self.model.fit(self.prepare(frame), y, sample_weight=len(y) / (2 * np.bincount(y))[y])
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, frame):
        return self.model.predict_proba(self.prepare(frame)).astype(float)

    def predict(self, frame):
        return self.predict_proba(frame).argmax(axis=1)


class Contenders:
    """What is compared."""

    def __init__(self, people, seed):
        self.people, self.seed = people, seed

    def fair(self, **choices):
        return FairBoostingClassifier(
            list(self.people.sensitive), edits=self.people.edits, random_state=self.seed, **choices
        )

    def xgboost(self, frame, y):
        return PlainXGBoost(self.people.frame).fit(frame, y)

    def consensus(self, frame, y):
        inner = self.xgboost(frame, y)
        model = as_model(inner.predict_proba, takes_frame=True, classes=[0, 1])
        return TwinConsensus(
            model, sensitive_features=list(self.people.sensitive), edits=self.people.edits
        ).fit(self.people.frame)

    def defaults(self, frame, y):
        return self.fair().fit(frame, y)

    def lightgbm(self, frame, y):
        return self.fair(library="lightgbm").fit(frame, y)

    def robust(self, frame, y):
        return self.fair(eps=0.1).fit(frame, y)

    def penalty(self, frame, y):
        return self.fair(group_penalty=1.25, max_depth=6).fit(frame, y)

    def more_penalty(self, frame, y):
        return self.fair(group_penalty=1.5, max_depth=6).fit(frame, y)


ROWS = {
    "XGBoost": "xgboost",
    "XGBoost, TwinConsensus": "consensus",
    "FairBoosting, defaults": "defaults",
    "FairBoosting, LightGBM": "lightgbm",
    "FairBoosting, eps=0.1": "robust",
    "FairBoosting, group_penalty=1.25, max_depth=6": "penalty",
    "FairBoosting, group_penalty=1.5, max_depth=6": "more_penalty",
}


def measures(model, people, test, y, metric):
    decided = model.predict(test)
    found = {"B-Acc": balanced_accuracy_score(y, decided)}
    if people.edits is not None:
        found["S-Con"] = correspondence_study(model, test, people.edits).consistency
    found["twins alike"] = correspondence_study(model, test, dict.fromkeys(people.sensitive)).consistency
    for attribute in people.sensitive:
        known = test[attribute].map(test[attribute].value_counts()) >= 100
        if len(test.loc[known, attribute].unique()) > 1:
            gaps = group_gaps(y[known], decided[known], test.loc[known, attribute])
            found |= {f"Gap RMS {attribute}": gaps.rms, f"max {attribute}": gaps.max}
    wrapped = model if hasattr(model, "__likewise_model__") else model.predict_proba
    wrapped = as_model(wrapped, **({} if wrapped is model else {"takes_frame": True, "classes": [0, 1]}))
    search = CandidateSearch(edits=people.sensitive)
    curve = dual_curve(search.run(wrapped, test, y, metric=metric).frontier)
    return found | {"gap ε=0": curve.gap(0.0), "gap ε=.1": curve.gap(0.1)}


def choose(people, splits):
    """Penalties and depths on people held out of the training people of some splits."""
    print("| depth | penalty | CPU s | B-Acc |", " | ".join(f"Gap RMS {a}" for a in people.sensitive), "|")
    for depth in DEPTHS:
        for penalty in PENALTIES:
            rows = []
            for split in splits:
                train, _ = split_indices(len(people.y), split, test_share=0.2, owner="benchmark")
                kept, held, y, y_held = train_test_split(
                    people.frame.iloc[train],
                    people.y[train],
                    test_size=0.25,
                    random_state=split,
                    stratify=people.y[train],
                )
                begin = time.process_time()
                model = Contenders(people, split).fair(group_penalty=penalty, max_depth=depth).fit(kept, y)
                seconds = time.process_time() - begin
                decided = model.predict(held)
                gaps = [group_gaps(y_held, decided, held[a]).rms for a in people.sensitive]
                rows.append([seconds, balanced_accuracy_score(y_held, decided), *gaps])
            figures = " | ".join(f"{value:.4f}" for value in np.mean(rows, axis=0))
            print(f"| {depth} | {penalty:g} | {figures} |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", choices=["adult", "german", "compas", "law_school"], default="adult")
    parser.add_argument("--folder", default=".", help="where the CSV files of compas and law_school are")
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--choose", action="store_true", help="try penalties and depths on training people")
    options = parser.parse_args()
    people = load(options.table, options.folder)
    if options.choose:
        choose(people, options.splits)
        return
    rows = {name: [] for name in options.only}
    for split in options.splits:
        train, test = split_indices(len(people.y), split, test_share=0.2, owner="benchmark")
        frame, y = people.frame.iloc[train].reset_index(drop=True), people.y[train]
        held, y_held = people.frame.iloc[test].reset_index(drop=True), people.y[test]
        learner = AttributeSubspace(list(people.sensitive), domain=TabularDomain.from_frame(people.frame))
        metric = learner.fit(frame).metric_
        for name in options.only:
            begin = time.process_time()
            model = getattr(Contenders(people, split), ROWS[name])(frame, y)
            seconds = time.process_time() - begin
            found = {"CPU s": seconds} | measures(model, people, held, y_held, metric)
            rows[name].append(found)
            text = " | ".join(f"{key} {value:.3f}" for key, value in found.items())
            print(f"split {split}: {name}: {text}", flush=True)
    titles = list(next(iter(rows.values()))[0])
    print(f"\n| mean of {len(options.splits)} splits | {' | '.join(titles)} |\n|{'---|' * (len(titles) + 1)}")
    for name, found in rows.items():
        means = [np.mean([row[key] for row in found]) for key in titles]
        figures = " | ".join(
            f"{m:.1f}" if key == "CPU s" else f"{m:.3f}" for key, m in zip(titles, means, strict=True)
        )
        print(f"| {name} | {figures} |")


if __name__ == "__main__":
    main()
