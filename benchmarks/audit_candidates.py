"""Candidate audit of all of Adult: CPU seconds and peak memory of the whole process.

    OMP_NUM_THREADS=1 python benchmarks/audit_candidates.py [--repeat 3]

Every measurement is a fresh process. CPU is that of building all frontiers, the model's answers included, and of
the exact curve of V(eps); peak memory is of the process with everything it imported.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

CASES = {
    "rows": "45,222 people x 45,222 people",
    "edits": "the same x people, all edits of sex and race",
    "test": "9,045 test people x their rows, edits",
}


def measure(case: str, model_name: str) -> dict[str, float]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    from likewise.auditing.dual.finite_dual import dual_curve
    from likewise.auditing.search.candidates import CandidateSearch
    from likewise.datasets import load_adult
    from likewise.fair_metrics import AttributeSubspace
    from likewise.models import as_model

    data = load_adult()
    metric = AttributeSubspace(attributes=["sex", "race"]).fit(data.X_train).metric_
    estimators = {
        "logistic": LogisticRegression(max_iter=1000),
        "boosting": HistGradientBoostingClassifier(random_state=0),
    }
    model = as_model(estimators[model_name].fit(data.X_train, data.y_train))
    X, y = (data.X_test, data.y_test) if case == "test" else (data.X, data.y)
    search = CandidateSearch(edits=() if case == "rows" else ("sex", "race"))
    start = time.process_time()
    found = search.run(model, X, y, metric=metric, domain=data.domain)
    curve = dual_curve(found.frontier)
    seconds = time.process_time() - start
    return {
        "rows": len(y),
        "candidates": len(found.candidates),
        "places": found.places,
        "cpu_s": seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "gap_0": curve.gap(0.0),
        "gap_0.1": curve.gap(0.1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("CASE", "MODEL"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(*chosen.one)))
        return
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    results: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(chosen.repeat):
        for case in CASES:
            for model in ("logistic", "boosting"):
                command = [sys.executable, __file__, "--one", case, model]
                answer = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                results.setdefault((case, model), []).append(json.loads(answer.stdout.splitlines()[-1]))
    print(
        "| case | model | candidates | places | CPU s (median) | CPU s (range) | peak MB | gap at 0 / 0.1 |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (case, model), runs in results.items():
        cpu = [run["cpu_s"] for run in runs]
        last = runs[-1]
        print(
            f"| {CASES[case]} | {model} | {last['candidates']:,} | {last['places']:,} | {statistics.median(cpu):.1f} "
            f"| {min(cpu):.1f}–{max(cpu):.1f} | {max(run['peak_mb'] for run in runs):.0f} "
            f"| {last['gap_0']:.3f} / {last['gap_0.1']:.3f} |"
        )


if __name__ == "__main__":
    main()
