"""Is what `improve` chooses dominated by something simpler? Twelve tables and splits, eight simple ways beside it.

OMP_NUM_THREADS=1 python benchmarks/choices.py --tables FOLDER --out choices.jsonl

Each cell is a table and a seed. Everybody gets the same training people; of the test people each is asked for balanced
accuracy, the share of decisions that change with the sensitive columns, the gap at ε = .1 as `likewise.audit` reports it
(`--audited` people), and the largest Gap_RMS. A choice is dominated if another is no worse in any of the four (balanced
accuracy within .005) and clearly better in one: by more than two standard errors of the paired difference, and .01. FOLDER is
that of benchmarks/defaults.py. Each line of the results file is one model in one cell; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from defaults import FILES, TABLES, split, there
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likewise as lw
from likewise.evaluation.groups import gap_summaries
from likewise.training import SenSeIClassifier, SenSRClassifier

# Of larger tables, so that a search takes a minute or two.
MOST = 1500


def planted(seed, n, wide, *, share=0.5, carries=1.0, twist=0.0):
    """People of whom `wide` columns say something, a third of these about sex too; `twist`: how much is no sum of columns."""
    random = np.random.default_rng(seed)
    sex = random.random(n) < 0.5
    skills = random.normal(size=(n, wide))
    skills[:, : wide // 3] += carries * sex[:, None]
    weights = random.normal(size=wide) / np.sqrt(wide)
    score = skills @ weights + twist * skills[:, 0] * skills[:, -1] + 0.5 * sex
    score = score + random.logistic(size=n) * 0.5
    frame = pd.DataFrame(skills.round(3), columns=[f"s{i}" for i in range(wide)])
    frame["sex"] = np.where(sex, "M", "F")
    return frame, (score > np.quantile(score, 1 - share)).astype(int), ["sex"]


def school(seed, n=400):
    """Few pupils, whose last mark nearly settles the next; fifteen columns of habits that hardly matter."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.integers(1, 6, (n, 15)), columns=[f"habit{i}" for i in range(15)])
    sex, ability = random.choice(["F", "M"], n), random.normal(size=n)
    frame["mark1"] = np.clip(np.rint(11 + 3.5 * ability + 1.5 * random.normal(size=n)), 0, 20)
    frame["mark2"] = np.clip(np.rint(11 + 3.5 * ability + random.normal(size=n)), 0, 20)
    frame["sex"], frame["job"] = sex, random.choice(["home", "health", "other", "services", "teacher"], n)
    mark = 11 + 3.5 * ability + 0.5 * (sex == "M") + random.normal(size=n) + 0.2 * frame["habit0"]
    return frame, (mark > 11).to_numpy().astype(int), ["sex"]


def heavy(seed, n=1500):
    """Amounts with a heavy tail and many zeros, thirty trades, two sensitive columns, one class of a tenth."""
    random = np.random.default_rng(seed)
    sex, race = random.choice(["F", "M"], n), random.choice(["A", "B", "C"], n, p=[0.6, 0.3, 0.1])
    trade = random.integers(30, size=n)
    amount = np.where(random.random(n) < 0.6, 0.0, np.exp(6 + 2 * random.normal(size=n))).round()
    age, hours = random.integers(18, 80, n), np.clip(np.rint(random.normal(38, 9, n)), 5, 80)
    effects = random.normal(size=30)
    score = np.log1p(amount) / 4 + effects[trade] * 0.7 - ((age - 45) / 15.0) ** 2 + 0.03 * hours
    score = score + 0.6 * (sex == "M") + 0.5 * (race == "A") + random.logistic(size=n) * 0.6
    frame = pd.DataFrame({"amount": amount, "age": age, "hours": hours, "sex": sex, "race": race})
    frame["trade"] = [f"t{one}" for one in trade]
    return frame, (score > np.quantile(score, 0.9)).astype(int), ["sex", "race"]


MADE = {
    "wide sums": lambda seed: planted(seed, 800, 60),
    "wide, twisted": lambda seed: planted(seed, 1200, 90, carries=0.5, twist=0.8),
    "proxies": lambda seed: planted(seed, 700, 9, carries=2.0),
    "school": school,
    "heavy": heavy,
}
CELLS = (
    ("german", 0), ("german", 1), ("compas", 0), ("compas", 1), ("law", 0), ("adult", 0), ("wide sums", 0),
    ("wide, twisted", 0), ("proxies", 0), ("school", 0), ("school", 1), ("heavy", 0),
)  # fmt: skip


def table(name, seed, folder):
    """Training and test people, and the sensitive columns."""
    X, y, sensitive = MADE[name](seed) if name in MADE else TABLES[name](folder)
    some = np.sort(np.random.default_rng([seed, 1]).permutation(len(y))[:MOST])
    return *split(X.iloc[some].reset_index(drop=True), np.asarray(y)[some], seed, 0.3), sensitive


def blind(last, X, sensitive):
    """A pipeline that drops the sensitive columns."""
    words, numbers = (
        make_column_selector(dtype_exclude="number"),
        make_column_selector(dtype_include="number"),
    )
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words(X.drop(columns=sensitive))),
        (StandardScaler(), numbers(X.drop(columns=sensitive))),
    )
    return make_pipeline(encoder, last)


def logistic(X, y, sensitive, metric, domain, seed):
    return blind(LogisticRegression(max_iter=3000), X, sensitive).fit(X, y)


def balanced_logistic(X, y, sensitive, metric, domain, seed):
    return blind(LogisticRegression(max_iter=3000, class_weight="balanced"), X, sensitive).fit(X, y)


def boosted(depth):
    def fit(X, y, sensitive, metric, domain, seed):
        from xgboost import XGBClassifier

        trees = XGBClassifier(n_estimators=100, max_depth=depth, n_jobs=1, random_state=seed)
        return blind(trees, X, sensitive).fit(X, y)

    return fit


def gradient_reduction(X, y, sensitive, metric, domain, seed):
    """fairlearn's ExponentiatedGradient for equalised odds of the first sensitive column, over a logistic regression."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    encoder = blind(LogisticRegression(), X, sensitive)[:-1].fit(X)
    reduced = ExponentiatedGradient(LogisticRegression(max_iter=1000), EqualizedOdds(), max_iter=20)
    reduced.fit(encoder.transform(X), y, sensitive_features=X[sensitive[0]])
    return lw.models.as_model(
        lambda people: reduced._pmf_predict(encoder.transform(people)), takes_frame=True
    )


def network(kind):
    def fit(X, y, sensitive, metric, domain, seed):
        return kind(metric, domain=domain, random_state=seed).fit(X, y)

    return fit


def chosen(X, y, sensitive, metric, domain, seed):
    found = lw.improve(X, y, sensitive_features=sensitive, random_state=seed)
    print(found, flush=True)
    return found.model


OTHERS = {
    "improve": chosen,
    "logistic": logistic,
    "logistic, balanced": balanced_logistic,
    "XGBoost, depth 2": boosted(2),
    "XGBoost, depth 4": boosted(4),
    "XGBoost, depth 6": boosted(6),
    "ExponentiatedGradient": gradient_reduction,
    "SenSR": network(SenSRClassifier),
    "SenSeI": network(SenSeIClassifier),
}


def measure(name, seed, other, folder, audited):
    """One model in one cell: its figures, and what each test person adds to them."""
    X, y, X_test, y_test, sensitive = table(name, seed, folder)
    domain = lw.TabularDomain.from_frame(pd.concat([X, X_test], ignore_index=True))
    metric = lw.AttributeSubspace(sensitive, domain=domain).fit(X).metric_
    begin = time.process_time()
    model = OTHERS[other](X, y, sensitive, metric, domain, seed)
    seconds = time.process_time() - begin
    some = np.random.default_rng(seed).permutation(len(y_test))[:audited]
    people, labels = X_test.iloc[some].reset_index(drop=True), y_test[some]
    result = lw.audit(model, people, labels, metric=metric, domain=domain, eps=0.1)
    decided = np.asarray(
        lw.models.as_model(model).predict(X_test) if hasattr(model, "losses") else model.predict(X_test)
    )
    right = decided == y_test
    gaps = [0.0]
    for column in sensitive:
        groups, classes = np.unique(X_test[column]), np.unique(y_test)
        counts = [[int(((X_test[column] == g) & (y_test == c)).sum()) for c in classes] for g in groups]
        large = [g for g, count in zip(groups, counts, strict=True) if min(count) >= 15]
        rates = [[right[(X_test[column] == g) & (y_test == c)].mean() for c in classes] for g in large]
        if len(large) > 1:
            gaps.append(float(gap_summaries(np.array([rates]))[0, 0]))
    return {
        "cell": [name, seed],
        "model": other,
        "cpu": seconds,
        "accuracy": float(np.mean([right[y_test == c].mean() for c in np.unique(y_test)])),
        "changed": float(result.sensitive.changed),
        "gap": float(result.gap),
        "group_gap": max(gaps),
        "right": "".join(map(str, right.astype(int))),
        "labels": "".join(map(str, np.searchsorted(np.unique(y_test), y_test))),
        "interval": [float(result.worst_case.interval.low), float(result.worst_case.interval.high)],
    }


UNFAIR = ("changed", "gap", "group_gap")


def dominates(one, other):
    """Whether the first is no worse in anything, and clearly better in something."""
    if one["accuracy"] < other["accuracy"] - 0.005 or any(one[k] > other[k] + 1e-9 for k in UNFAIR):
        return False
    labels = np.array(list(one["labels"]))
    better = [np.array(list(m["right"]), dtype=int) for m in (one, other)]
    error = np.sqrt(
        sum(
            np.var(better[0][labels == c] - better[1][labels == c]) / (labels == c).sum()
            for c in np.unique(labels)
        )
    ) / len(np.unique(labels))
    return one["accuracy"] > other["accuracy"] + max(0.01, 2 * error) or any(
        one[k] < other[k] - 0.01 for k in UNFAIR
    )


def show(rows):
    """By cell the choice, and what dominates it."""
    print("| table, seed | B-Acc | changed | gap at .1 | group gap | CPU s | dominated by |")
    print("|---|---|---|---|---|---|---|")
    for cell in dict.fromkeys(tuple(row["cell"]) for row in rows):
        own = {row["model"]: row for row in rows if tuple(row["cell"]) == cell}
        if "improve" not in own:
            continue
        mine = own["improve"]
        above = [name for name, row in own.items() if name != "improve" and dominates(row, mine)]
        below = sum(dominates(mine, row) for row in own.values())
        print(
            f"| {cell[0]}, {cell[1]} | {mine['accuracy']:.3f} | {mine['changed']:.3f} | {mine['gap']:.3f} | "
            f"{mine['group_gap']:.3f} | {mine['cpu']:.0f} | {', '.join(above) or f'nothing; dominates {below} of {len(own) - 1}'} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, help="folder with the tables that are not bundled")
    parser.add_argument("--only", nargs="+", help="names of tables")
    parser.add_argument("--models", nargs="+", choices=list(OTHERS), default=list(OTHERS))
    parser.add_argument("--audited", type=int, default=200, help="test people to audit")
    parser.add_argument("--out", type=Path, required=True, help="results, one JSON line per model and cell")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(*row["cell"], row["model"]) for row in rows}
    for name, seed in CELLS:
        if (name in FILES and not there(options.tables, FILES[name])) or (
            options.only and name not in options.only
        ):
            continue
        for other in options.models:
            if (name, seed, other) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(measure(name, seed, other, options.tables, options.audited))
            with options.out.open("a") as stream:
                stream.write(json.dumps(rows[-1]) + "\n")
    show(rows)


if __name__ == "__main__":
    main()
