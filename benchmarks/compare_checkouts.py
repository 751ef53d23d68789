"""Is this checkout slower than another one? The same work in one process of each, in turns; ratio of CPU seconds.

OMP_NUM_THREADS=1 python benchmarks/compare_checkouts.py OTHER/.venv/bin/python .venv/bin/python --rounds 7

The first program is the one before. Every process trains the same models from fixed seeds, and runs each piece of work
once before it is measured. What the pieces return is compared too: equal figures, or the difference is printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np


def pieces():
    """What is measured: name → function that returns a figure."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from xgboost import XGBClassifier

    import likewise as lw

    data = lw.datasets.load_adult()
    train, test, y, y_test = data.frame_train, data.frame_test, data.y_train, data.y_test
    words = [name for name in train if train[name].dtype.kind not in "iuf"]
    numbers = [name for name in train if name not in words]
    boosted = make_pipeline(
        make_column_transformer((OneHotEncoder(), words), remainder="passthrough"),
        XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, random_state=0),
    ).fit(train, y)
    linear = make_pipeline(
        make_column_transformer((OneHotEncoder(sparse_output=False), words), (StandardScaler(), numbers)),
        LogisticRegression(max_iter=500),
    ).fit(train, y)
    network = lw.MLPBaselineClassifier(random_state=0, n_steps=500).fit(train, y)
    metric = lw.AttributeSubspace(["sex", "race"]).fit(train).metric_
    alone = lw.ExpertSubspace(["sex", "race"]).fit(train).metric_
    folder = Path(tempfile.mkdtemp())

    def audit(model, people, **more):
        found = lw.audit(
            model, test[:people], y_test[:people], domain=data.domain, **{"eps": 0.1, "metric": metric} | more
        )
        bound = found.worst_case.certificate.bound
        return [found.gap, None if bound is None else bound.value]

    def first(model):
        found = lw.audit(model, test, y_test, sensitive_features=["sex", "race"])
        return [found.changed.value if hasattr(found.changed, "value") else str(found.changed)]

    def page():
        shown.save(folder / "audit.html", overwrite=True)
        return [len((folder / "audit.html").read_bytes()) // 10_000]

    def fit():
        model = lw.SenSRClassifier(metric, random_state=0, n_steps=200, eps=1e-3).fit(train[:4000], y[:4000])
        return [float(np.mean(model.predict_proba(test[:500])))]

    shown = lw.audit(boosted, test, y_test, sensitive_features=["sex", "race"])
    return {
        "default audit, boosted trees, 9,045 people": lambda: first(boosted),
        "default audit, logistic regression": lambda: first(linear),
        "gap at .1, boosted trees, 500 people": lambda: audit(boosted, 500),
        "gap at .1, network, 500 people": lambda: audit(network, 500),
        "candidates, boosted trees, 2,000 people": lambda: audit(boosted, 2000, search="candidates"),
        "proof at .01, boosted trees, 10 people": lambda: audit(
            boosted, 10, search="exact", eps=0.01, metric=alone
        ),
        "proof at .01, logistic regression, 100 people": lambda: audit(
            linear, 100, search="exact", eps=0.01, metric=alone
        ),
        "SenSR, 200 steps": fit,
        "page": page,
    }


def serve():
    """Run the pieces that are asked for on standard input, one name per line."""
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr
    known = pieces()
    print(json.dumps(list(known)), file=out, flush=True)
    for line in sys.stdin:
        begin = time.process_time()
        found = known[line.rstrip("\n")]()
        print(json.dumps([time.process_time() - begin, found]), file=out, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    words = [__file__, "--serve"]
    both = [
        subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for program in options.pythons
    ]
    names, _ = (json.loads(one.stdout.readline()) for one in both)

    def ask(one, name):
        one.stdin.write(name + "\n")
        one.stdin.flush()
        return json.loads(one.stdout.readline())

    print("| work | CPU s before | now | now : before, median (quartiles) | figures |\n|---|---|---|---|---|")
    for name in names:
        figures = [ask(one, name)[1] for one in both]
        turns = np.array([[ask(one, name)[0] for one in both] for _ in range(options.rounds)])
        low, middle, high = np.quantile(turns[:, 1] / turns[:, 0], [0.25, 0.5, 0.75])
        before, now = np.median(turns, axis=0)
        same = "equal" if figures[0] == figures[1] else f"{figures[0]} → {figures[1]}"
        print(
            f"| {name} | {before:.3f} | {now:.3f} | {middle:.3f} ({low:.3f} to {high:.3f}) | {same} |",
            flush=True,
        )
    for one in both:
        one.stdin.close()
        one.wait()


if __name__ == "__main__":
    main()
