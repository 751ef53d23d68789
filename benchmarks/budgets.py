"""Audits of pipelines with a time limit: none may raise, and each keeps to its time.

    OMP_NUM_THREADS=1 python benchmarks/budgets.py --audits 200
    OMP_NUM_THREADS=1 python benchmarks/budgets.py --adult

Random audits: Adult or German credit, the default one-hot encoder in front of XGBoost, LightGBM, a forest, logistic regression
or a bag of trees on half of the columns, 50 to 3,000 people, ε of 0, .01 or .1, a learned metric or sex alone, and 1 (70%),
5 (20%) or 20 (10%) seconds. `--adult` brackets V(.1) and V(.01) of XGBoost with 100 trees of depth 6 for 2,000 people of Adult in 20 seconds. Wall
times, so the machine should be quiet; the first audit, which compiles, is not counted.
"""

import argparse
import time
from collections import Counter

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import likewise as lw
from likewise.datasets import load_adult, load_german

MODELS = {
    "xgboost": lambda: XGBClassifier(n_estimators=100, max_depth=6),
    "lightgbm": lambda: LGBMClassifier(verbose=-1),
    "forest": lambda: RandomForestClassifier(30, max_depth=8, random_state=0),
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "bagging": lambda: BaggingClassifier(
        DecisionTreeClassifier(max_depth=6), 20, max_features=0.5, random_state=0
    ),
}


def fitted(name, X, y):
    words = make_column_selector(dtype_exclude="number")
    numbers = make_column_selector(dtype_include="number")
    steps = (OneHotEncoder(handle_unknown="ignore"), words)
    encoder = make_column_transformer(steps, remainder="passthrough")
    if name == "logistic":
        encoder = make_column_transformer(steps, (StandardScaler(), numbers))
    return make_pipeline(encoder, MODELS[name]()).fit(X, y)


def tables():
    found = {}
    for name, data in (("adult", load_adult()), ("german", load_german())):
        order = np.random.default_rng(0).permutation(len(data.frame))
        half = min(len(order) // 2, 20_000)
        found[name] = data.frame, np.asarray(data.y), order[:half], order[half:]
    return found


def metric_of(kind, X):
    sensitive = [name for name in ("sex", "race") if name in X]
    return (lw.AttributeSubspace if kind == "learned" else lw.ExpertSubspace)(sensitive).fit(X).metric_


def random_audits(count):
    known, models = tables(), {}
    rng = np.random.default_rng(0)
    raised, late, over = Counter(), 0, []
    for number in range(-1, count):
        name, kind = str(rng.choice(["adult", "german"])), str(rng.choice(list(MODELS)))
        X, y, train, test = known[name]
        if (name, kind) not in models:
            models[name, kind] = fitted(kind, X.iloc[train], y[train])
        people = rng.permutation(test)[: int(rng.choice([50, 300, 1000, 3000]))]
        metric = metric_of(rng.choice(["learned", "sex"]), X.iloc[train])
        eps, seconds = float(rng.choice([0.0, 0.01, 0.1])), float(rng.choice([1, 5, 20], p=[0.7, 0.2, 0.1]))
        clock, cpu = time.perf_counter(), time.process_time()
        try:
            lw.audit(
                models[name, kind],
                X.iloc[people],
                y[people],
                metric=metric,
                domain=lw.TabularDomain.from_frame(X),
                eps=eps,
                budget_seconds=seconds,
                random_state=number + 1,
            )
        except Exception as error:
            raised[f"{name} {kind}: {type(error).__name__}: {error}"[:160]] += 1
        took, spent = time.perf_counter() - clock, time.process_time() - cpu
        if number < 0:
            continue
        over.append(took / seconds)
        if took > 1.2 * seconds:
            late += 1
            print(
                f"late: {name} {kind}, {len(people)} people, ε = {eps:g}: {took:.1f} s ({spent:.1f} CPU) of {seconds:g}"
            )
    print(f"{count} audits, {sum(raised.values())} raised, {late} took more than 1.2 times their time")
    print("time taken of time given, quantiles .5, .9, 1:", np.quantile(over, [0.5, 0.9, 1.0]).round(2))
    for words, times in raised.items():
        print(times, words)


def adult():
    X, y, train, test = tables()["adult"]
    model = fitted("xgboost", X.iloc[train], y[train])
    for kind in ("learned", "sex"):
        metric = metric_of(kind, X.iloc[train])
        for eps in (0.1, 0.01):
            for people, seconds in ((50, 2), (2000, 20)):
                at = test[:people]
                clock, cpu = time.perf_counter(), time.process_time()
                result = lw.audit(
                    model,
                    X.iloc[at],
                    y[at],
                    metric=metric,
                    domain=lw.TabularDomain.from_frame(X),
                    eps=eps,
                    budget_seconds=seconds,
                )
                took, spent = time.perf_counter() - clock, time.process_time() - cpu
            found = result.bracket("value")
            print(
                f"{kind} metric, V({eps:g}): {found}, upper / lower {found.upper / found.lower:.2f}, "
                f"{took:.1f} s ({spent:.1f} CPU)",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--adult", action="store_true")
    chosen = parser.parse_args()
    adult() if chosen.adult else random_audits(chosen.audits)
