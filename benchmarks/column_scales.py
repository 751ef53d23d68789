"""Adult with capital-gain and capital-loss on each scale: SenSR's defaults, and the audit of one boosted model.

Usage: python benchmarks/column_scales.py [--people 1000] [--scales linear 'signed log' rank 'value or not']

One split, one seed. The boosted model reads the table itself and is the same in every row; what changes is the metric, and
with it who is comparable. "Of them with another gain" are the listed worst cases that differ from their person in
capital-gain, and the median change of those in dollars.
"""

import argparse
import time

import numpy as np
from xgboost import XGBClassifier

import likewise as lw

SENSITIVE = ["sex", "race"]
AMOUNTS = ["capital-gain", "capital-loss"]


def split(frame, y, seed=0, share=0.2):
    """Training and test people."""
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = np.sort(order[: round(share * len(y))]), np.sort(order[round(share * len(y)) :])
    return [(frame.iloc[at].reset_index(drop=True), y[at]) for at in (train, test)]


def audited(model, people, y, metric, domain):
    """The audit at ε = .1, and how the listed worst cases differ in capital-gain."""
    begin = time.process_time()
    result = lw.audit(model, people, y, metric=metric, domain=domain, eps=0.1, random_state=0)
    seconds = time.process_time() - begin
    frame = result.unfair_map.frame
    change = (frame["twin capital-gain"] - frame["capital-gain"]).abs().to_numpy(dtype=float)
    moved = change > 0
    gain = f"{moved.mean():.1%}, {np.median(change[moved]) if moved.any() else 0:,.0f}"
    return result, gain, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--scales", nargs="+", default=["linear", "signed log", "rank", "value or not"])
    args = parser.parse_args()
    data = lw.datasets.load_adult()
    (X, y), (X_test, y_test) = split(data.frame, np.asarray(data.y))
    table = {name: X[name].astype("category") for name in X.columns if X[name].dtype.kind not in "iuf"}
    trees = XGBClassifier(
        n_estimators=100, max_depth=6, n_jobs=1, random_state=0, enable_categorical=True
    ).fit(X.assign(**table), y)
    some = slice(0, args.people)
    people, labels = X_test[some], y_test[some]
    as_trees = people.assign(**{name: people[name].astype(column.dtype) for name, column in table.items()})
    print(
        "| scale | SenSR B-Acc | flips | pure gap | gap at .1 | fit, CPU-s | XGBoost pure gap | gap at .1 | "
        "of them with another gain, dollars | audit, CPU-s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for scale in args.scales:
        domain = lw.TabularDomain.from_frame(data.frame, scales=dict.fromkeys(AMOUNTS, scale))
        metric = lw.AttributeSubspace(SENSITIVE, domain=domain).fit(X).metric_
        begin = time.process_time()
        model = lw.SenSRClassifier(metric, domain=domain, random_state=0).fit(X, y)
        fit = time.process_time() - begin
        answers = model.predict(X_test)
        accuracy = np.mean([(answers[y_test == c] == c).mean() for c in np.unique(y)])
        own, _, _ = audited(model, people, labels, metric, domain)
        found, gain, seconds = audited(trees, as_trees, labels, metric, domain)
        print(
            f"| {scale} | {accuracy:.3f} | {own.sensitive.changed:.1%} | {own.pure_gap:.4f} | {own.gap:.3f} | {fit:.0f} | "
            f"{found.pure_gap:.4f} | {found.bracket('gap')} | {gain} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
