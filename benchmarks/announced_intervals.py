"""What `improve` announces: does it hold on people never seen, for the model that was chosen and for each of the others?

OMP_NUM_THREADS=1 python benchmarks/announced_intervals.py --tables FOLDER --only german compas --seeds 0 1 2 --out runs.jsonl

OMP_NUM_THREADS=1 python benchmarks/announced_intervals.py --synthetic 60 --out synthetic.jsonl

The second draws tables of 300 to 3,000 people, sizes around those at which learners change included, and compares a cheap
field (logistic regression and small trees, plain and blind). Every line of the results file is one search: the counts of each candidate in each fold, and of each candidate, trained on all
folds, on the people put aside. The table is computed from these counts alone, so a change of the intervals costs no
training. FOLDER is that of benchmarks/defaults.py. A run that was stopped goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from defaults import FILES, TABLES, there

from likewise.improving.candidates import BoostingCandidate, LogisticCandidate, trained_candidates
from likewise.improving.choosing import selection_optimism
from likewise.improving.figures import Tally, expected_figures, fold_figures, seen_figures
from likewise.improving.improvement import Rule, Unseen
from likewise.improving.people import split_data, tally_model
from likewise.training import BoostingConfig

# Whole tables: the training people, four fifths of these, and four fifths of those are on either side of 400 and 2,000.
SIZES = (300, 400, 490, 510, 560, 620, 640, 900, 1500, 2450, 2550, 3000)
SMALL = {"n_estimators": 60, "training": BoostingConfig(patience=10)}


def synthetic(seed):
    """Draw people whose label depends on skills, on sex by a random amount, and on a column that carries sex."""
    random = np.random.default_rng(seed)
    n = SIZES[seed % len(SIZES)]
    sex = random.choice(["F", "M"], n)
    skills = random.normal(size=(n, 4))
    proxy = 0.7 * (sex == "M") + random.normal(size=n)
    job = random.choice(["x", "y", "z"], n)
    effects = random.normal(size=4) * 0.7
    score = skills @ effects + random.uniform(0, 1) * (sex == "M") + 0.4 * proxy + 0.5 * (job == "x")
    score = score + 0.5 * skills[:, 0] * skills[:, 1] + random.logistic(size=n) * random.uniform(0.3, 1)
    frame = pd.DataFrame(skills.round(3), columns=["a", "b", "c", "d"]).assign(
        sex=sex, proxy=proxy.round(3), job=job
    )
    return frame, np.where(score > np.quantile(score, random.uniform(0.4, 0.6)), "yes", "no"), ["sex"]


def cheap_candidates(data):
    """Return a field that takes a second or two per training."""
    return (
        BoostingCandidate("trees", "", blind=False, choices=SMALL | {"max_depth": 4}),
        BoostingCandidate("blind trees", "", choices=SMALL | {"max_depth": 4}),
        BoostingCandidate("blind trees, penalty", "", choices=SMALL | {"max_depth": 2, "group_penalty": 1.5}),
        LogisticCandidate("logistic", "", blind=False),
        LogisticCandidate("blind logistic", "", blind=True),
    )


def search(name, seed, folder):
    """One search, and how each candidate would have done on the people put aside."""
    X, y, sensitive = synthetic(seed) if name == "synthetic" else TABLES[name](folder)
    data = split_data(X, y, sensitive_features=sensitive, seed=seed)
    field = cheap_candidates(data) if name == "synthetic" else trained_candidates(data)
    found = {}
    for candidate in field:
        folds = [
            tally_model(candidate.fit(data, data.kept(fold), seed=seed), data, own, seed=seed).plain()
            for fold, own in enumerate(data.folds)
        ]
        model = candidate.fit(data, data.final, seed=seed)
        found[candidate.name] = {
            "folds": folds,
            "unseen": tally_model(model, data, data.test, seed=seed).plain(),
        }
    return {
        "table": name,
        "seed": seed,
        "people": len(y),
        "audited": data.n_audited,
        "searched": data.n_searched,
        "candidates": found,
    }


def judged(run):
    """One line for each candidate of a search: which figures came out outside, and how wide what was announced is."""
    folds = {
        name: [Tally.from_plain(part) for part in own["folds"]] for name, own in run["candidates"].items()
    }
    chosen = Rule().choose(fold_figures(folds))
    shift = selection_optimism(folds, Rule())
    for name, parts in folds.items():
        unseen = Tally.from_plain(run["candidates"][name]["unseen"])
        announced = expected_figures(
            parts,
            n_people=unseen.n_people,
            n_audited=run["audited"],
            n_searched=run["searched"],
            selection_optimism=shift if name == chosen else None,
            seed=run["seed"],
        )
        seen = seen_figures(unseen)
        surprises = Unseen(name, seen, announced).surprises
        for said, came in zip(announced, seen, strict=True):
            yield {
                "table": run["table"],
                "seed": run["seed"],
                "candidate": name,
                "chosen": name == chosen,
                "figure": said.name,
                "low": said.low,
                "high": said.high,
                "value": came.value,
                "expected": said.value,
                "outside": said.name in surprises,
            }


def show(runs):
    """By table: in how many searches everything announced held, and the widths."""
    rows = pd.DataFrame([row for run in runs for row in judged(run)])
    rows["width"] = rows["high"] - rows["low"]
    print(
        "| table | searches | chosen: all inside | every candidate: all inside | figures outside | widths |"
    )
    print("|---|---|---|---|---|---|")
    for name, own in rows.groupby("table", sort=False):
        models = own.groupby(["seed", "candidate"])[["outside", "chosen"]].max()
        chosen = ~models.loc[models["chosen"], "outside"]
        widths = own[own["chosen"]].groupby("figure", sort=False)["width"].mean()
        print(
            f"| {name} | {own['seed'].nunique()} | {chosen.sum()} of {len(chosen)} | {(~models['outside']).sum()} of "
            f"{len(models)} | {own['outside'].mean():.1%} | "
            + ", ".join(f"{figure} {width:.3f}" for figure, width in widths.items())
            + " |"
        )
    missed = rows[rows["outside"] & rows["chosen"]]
    for row in missed.itertuples():
        print(
            f"{row.table} {row.seed}, {row.candidate}: {row.figure} {row.value:.3f}, announced [{row.low:.3f}, {row.high:.3f}]"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, help="folder with the tables that are not bundled")
    parser.add_argument("--only", nargs="+", choices=list(TABLES), default=["german", "compas", "adult"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--synthetic", type=int, metavar="N", help="N searches on drawn tables instead")
    parser.add_argument("--out", type=Path, required=True, help="results, one JSON line per search")
    options = parser.parse_args()
    chosen = [name for name in options.only if name not in FILES or there(options.tables, FILES[name])]
    if options.synthetic:
        chosen, options.seeds = ["synthetic"], range(options.synthetic)
    runs = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(run["table"], run["seed"]) for run in runs}
    for name in chosen:
        for seed in options.seeds:
            if (name, seed) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                runs.append(search(name, seed, options.tables))
            with options.out.open("a") as stream:
                stream.write(json.dumps(runs[-1]) + "\n")
    show([run for run in runs if run["table"] in chosen and run["seed"] in options.seeds])


if __name__ == "__main__":
    main()
