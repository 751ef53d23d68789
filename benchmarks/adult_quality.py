"""Quality on Adult: the estimators and the presets of SenSR on given splits, beside the paper's means.

OMP_NUM_THREADS=1 python benchmarks/adult_quality.py --splits 0 1
OMP_NUM_THREADS=1 python benchmarks/adult_quality.py --splits 0 1 --only paper-adult      # a quarter of an hour of CPU
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from likewise.datasets import load_adult
from likewise.evaluation import evaluate
from likewise.experiments import AdultStudy
from likewise.training import (
    AdversarialDebiasingClassifier,
    CoCLClassifier,
    MLPBaselineClassifier,
    ProjectClassifier,
    SenSeIClassifier,
    SenSRClassifier,
    TrainingWarning,
    WassersteinRobustClassifier,
)
from likewise.training.estimators.parameters import preset_parameters

MEASURES = ("balanced accuracy", "S-Con", "GR-Con", "Gap_RMS sex", "Gap_RMS race")


def contenders(seed):
    subspace = preset_parameters("paper-adult")["metric"]
    return {
        "baseline": MLPBaselineClassifier(random_state=seed),
        "project": ProjectClassifier(subspace, random_state=seed),
        "adversarial": AdversarialDebiasingClassifier(["sex", "race"], random_state=seed),
        "cocl": CoCLClassifier(["sex", "race"], random_state=seed),
        "wasserstein": WassersteinRobustClassifier(random_state=seed),
        "sensei": SenSeIClassifier(subspace, random_state=seed),
        "sensr": SenSRClassifier(subspace, random_state=seed),
        "adult-best": SenSRClassifier.preset("adult-best", random_state=seed),
        "adult-best-untold": SenSRClassifier.preset("adult-best-untold", random_state=seed),
        "paper-adult": SenSRClassifier.preset("paper-adult", random_state=seed),
    }


def measure(model, data):
    """CPU seconds of fit, and the measures on the test people."""
    begin = time.process_time()
    model.fit(data.X_train, data.y_train)
    seconds = time.process_time() - begin
    values = evaluate(model, data.X_test, data.y_test).values
    return [seconds, *(values[name] for name in MEASURES)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1])
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(contenders(0)),
        help="names of contenders; default: all but paper-adult",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoints", help="folder: a run that was killed goes on when started again")
    options = parser.parse_args()
    warnings.simplefilter("ignore", TrainingWarning)
    chosen = options.only or [name for name in contenders(0) if name != "paper-adult"]
    data = load_adult()
    print(
        "| | split | CPU s | B-Acc | S-Con | GR-Con | Gap_G RMS | Gap_R RMS |\n|---|---|---|---|---|---|---|---|"
    )
    paper = AdultStudy().published
    for name in dict.fromkeys(method for method, _ in paper):
        told = [f"{paper[name, m].mean:.3f}" if (name, m) in paper else "" for m in MEASURES]
        print(f"| paper: {name} | mean of 10 | | " + " | ".join(told) + " |")
    for name in chosen:
        rows = []
        for split in options.splits:
            model = contenders(options.seed)[name]
            if options.checkpoints:
                path = f"{options.checkpoints}/{name}-{split}-{options.seed}.safetensors"
                model.set_params(training__checkpoint=path, training__resume=True)
            rows.append(measure(model, data.with_split(split)))
            show(name, split, rows[-1])
        if len(rows) > 1:
            show(f"**{name}**", "mean", np.mean(rows, axis=0))


def show(name, split, row):
    print(
        f"| {name} | {split} | {row[0]:.1f} | " + " | ".join(f"{v:.4f}" for v in row[1:]) + " |", flush=True
    )


if __name__ == "__main__":
    main()
