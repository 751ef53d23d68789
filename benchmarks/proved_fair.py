"""Adult: a network trained with SenSR and a boosted model with a consensus over twins, proved fair at ε = 0.

Usage: python benchmarks/proved_fair.py [--people 9045] [--delta 0.01] [--pages FOLDER]

All combinations of sex and race of everybody are asked about, so the gap at no distance is known and not estimated,
whatever the model is. Prints one row per model; with --pages the audit page of each is written, whose verdict says it.
"""

import argparse
from pathlib import Path

from xgboost import XGBClassifier

import likewise as lw

SENSITIVE = ["sex", "race"]


def models(data, metric):
    """The plain and the fair one of each kind."""
    X, y = data.X_train, data.y_train
    trees = XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, random_state=0).fit(X, y)
    # Both columns have two values in this table, so each is one indicator.
    values = {f"{name}_{data.domain.column(name).categories[1]}": [0.0, 1.0] for name in SENSITIVE}
    yield "XGBoost 100 × 6", trees
    yield "the same, consensus over twins", lw.TwinConsensus(trees, sensitive_features=values)
    yield "network 41-100-2", lw.MLPBaselineClassifier(random_state=0).fit(X, y)
    yield "the same, SenSR", lw.SenSRClassifier(metric, random_state=0).fit(X, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=9045)
    parser.add_argument("--delta", type=float, default=0.01)
    parser.add_argument("--pages", type=Path)
    args = parser.parse_args()
    data = lw.datasets.load_adult()
    metric = lw.ExpertSubspace(SENSITIVE).fit(data.X_train).metric_
    people, y = data.X_test.iloc[: args.people], data.y_test[: args.people]
    print("| model | gap at ε = 0 | decided differently | verdict | enumeration, CPU-s | candidates, CPU-s |")
    print("|---|---|---|---|---|---|")
    for name, model in models(data, metric):
        result = lw.audit(model, people, y, metric=metric, domain=data.domain, eps=0.0, delta=args.delta)
        spent = " | ".join(f"{result.timing[search]:.2f}" for search in ("enumeration", "candidates"))
        gap, changed = result.bracket("gap"), result.bracket("changed")
        print(
            f"| {name} | {gap.lower:.4f} to {gap.upper:.4f} | {changed} | {result.verdict()} | {spent} |",
            flush=True,
        )
        if args.pages is not None:
            args.pages.mkdir(parents=True, exist_ok=True)
            lw.write_html(result, args.pages / f"{name.replace(' ', '-')}.html", overwrite=True)


if __name__ == "__main__":
    main()
