"""Twins that carry consequences: what they find on Adult and German, how sure, how dear.

python benchmarks/twins.py shares        # the three questions on Adult and German, beside relfair's figures
python benchmarks/twins.py coverage      # 200 planted worlds: is the known effect within its interval?
python benchmarks/twins.py error         # planted worlds: error of twins against known counterfactuals, by n
python benchmarks/twins.py scale         # 45,222 people, 10 columns downstream: CPU and memory
python benchmarks/twins.py consensus     # TwinConsensus over consequence twins under the same study
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import likewise as lw
from likewise.counterfactuals import (
    Boosting,
    Consequences,
    ConsequenceTwins,
    Edit,
    MatchedTwins,
    correspondence_study,
    twin_study,
)

# The arrows and the rule of relfair 0.1.0's experiments/adult/config.py, and German's.
ADULT = {
    "sex": ["relationship", "marital-status", "occupation", "hours-per-week"],
    "age": ["marital-status", "occupation", "hours-per-week"],
}
SPOUSES = {
    "map": [
        {"when": {"sex": "Female"}, "column": "relationship", "values": {"Husband": "Wife"}},
        {"when": {"sex": "Male"}, "column": "relationship", "values": {"Wife": "Husband"}},
    ],
    "implies": [
        {"if": {"relationship": "Husband"}, "then": {"sex": "Male"}},
        {"if": {"relationship": "Wife"}, "then": {"sex": "Female"}},
    ],
}
GERMAN = {
    "sex": ["personal_status", "credit_amount", "duration"],
    "age": ["employment", "savings"],
}
EVERYTHING = [
    "age", "race", "education-num", "workclass", "marital-status", "occupation", "relationship", "hours-per-week",
    "capital-gain", "capital-loss",
]  # fmt: skip


def boosted(people: pd.DataFrame, y: np.ndarray) -> object:
    """relfair's classifier: 200 rounds of HistGradientBoosting on ordinal codes."""
    coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer(
        (coder, make_column_selector(dtype_exclude="number")), remainder="passthrough", sparse_threshold=0
    )
    trees = HistGradientBoostingClassifier(max_iter=200, random_state=0, early_stopping=False)
    return make_pipeline(columns, trees).fit(people, y)


def shares(refits: int) -> None:
    for name in ("adult", "german"):
        data = lw.datasets.load_adult() if name == "adult" else lw.datasets.load_german()
        train, test, y_train, _ = train_test_split(
            data.frame, data.y, test_size=0.2, random_state=42, stratify=data.y if name == "adult" else None
        )
        model = boosted(train, y_train)
        asked = [("everybody", np.ones(len(test), dtype=bool))]
        if name == "adult":
            asked.append(("husbands", (test["relationship"] == "Husband").to_numpy()))
        else:
            asked.append(("men", (test["sex"] == "male").to_numpy()))
        rules = SPOUSES if name == "adult" else "learned"
        graph = ADULT if name == "adult" else GERMAN
        for who, some in asked:
            for label, consequences in (
                ("rules only", Consequences(rules=rules)),
                ("rules and graph", Consequences(rules=rules, graph=graph)),
            ):
                print(
                    f"\n## {name}, {who} ({int(some.sum())} of the held-out people), consequences: {label}",
                    flush=True,
                )
                study = twin_study(
                    model, test[some], "sex", consequences=consequences, reference=train,
                    refits=refits if label == "rules and graph" else 0,
                )  # fmt: skip
                print(study, flush=True)
                check_rules(consequences, train, test[some])
        pairs = twin_study(model, test, "sex", questions=["matched"], reference=train,
                           matched=MatchedTwins("sex", replace=False))  # fmt: skip
        print(f"\n## {name}, everybody, matched without replacement\n{pairs}", flush=True)


def check_rules(consequences: Consequences, train: pd.DataFrame, people: pd.DataFrame) -> None:
    maker = consequences.maker(Edit("sex")).fit(train)
    made = maker.make(people)
    domain = lw.TabularDomain.from_frame(pd.concat([train, people]))
    rows = pd.concat([t[u] for t, u in zip(made.tables, made.compared, strict=True)])
    print(
        f"{len(rows):,} twins compared: {int(maker.rules_.broken(rows).sum())} break a rule, "
        f"{len(domain.validate(rows))} cells outside the domain; "
        f"{ {why: int(mask.sum()) for why, mask in made.why_not.items()} } flagged"
    )


def planted(n: int, seed: int, linear: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People with known counterfactuals: a number and a category follow from sex, pay from all."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, n), rng.normal(40, 10, n)
    u_school, u_job, u_pay = rng.normal(size=n), rng.uniform(size=n), rng.normal(size=n)

    def world(s: np.ndarray) -> pd.DataFrame:
        if linear:
            school = 12 + 0.05 * age + 1.0 * s + u_school
            pay = 0.8 * school + 0.02 * age + 1.0 * s
        else:
            school = 12 + 2 * np.tanh((age - 40) / 10) + 1.0 * s + (0.6 + 0.3 * s) * u_school
            pay = 2 * np.sin(school / 2) + (1 + 0.1 * s) * school
        # A category whose shares differ by sex: nested cells of one latent number, so that least change is known.
        office = np.where(s == 1, 0.3, 0.5)
        job = np.where(u_job < office, "office", "field")
        pay = pay + 0.7 * (job == "office") + u_pay
        return pd.DataFrame(
            {"sex": np.where(s == 1, "M", "F"), "age": age, "school": school, "job": job, "pay": pay}
        )

    return world(sex), world(1 - sex)


PLANTED = {"sex": ["school", "job", "pay"], "age": ["school", "pay"], "school": ["pay"], "job": ["pay"]}


def lends(table: pd.DataFrame) -> np.ndarray:
    """A decision that looks at all columns but sex."""
    return (table["pay"] + 0.3 * table["school"] > 17.0).to_numpy().astype(int)


def coverage(runs: int, n: int, refits: int) -> None:
    for linear in (True, False):
        # The truth, on a million people.
        people, others = planted(1_000_000, 10**6, linear)
        male = (people["sex"] == "M").to_numpy()
        truth = float(np.mean((lends(people) - lends(others)) * np.where(male, 1, -1)))
        inside, width, centre = 0, [], []
        start = time.process_time()
        for run in range(runs):
            drawn, _ = planted(n, run, linear)
            study = twin_study(lends, drawn, "sex", questions=["consequences"],
                               consequences=Consequences(graph=PLANTED, boosting=Boosting(n_iter=20)), refits=refits, random_state=run)  # fmt: skip
            effect = study["consequences"].effects[0]
            inside += effect.low <= truth <= effect.high
            width.append(effect.high - effect.low)
            centre.append(effect.value)
            if run % 20 == 19:
                print(f"  run {run + 1}: {inside} inside, {time.process_time() - start:.0f} s", flush=True)
        kind = "linear" if linear else "non-linear"
        print(f"{kind}: effect {truth:.4f}, mean estimate {np.mean(centre):.4f}, sd {np.std(centre):.4f}, mean width "
              f"{np.mean(width):.4f}, inside {inside} of {runs} ({inside / runs:.1%})", flush=True)  # fmt: skip


def error(seeds: int) -> None:
    for linear in (True, False):
        for n in (250, 1_000, 4_000, 16_000):
            found = []
            for seed in range(seeds):
                people, others = planted(n, seed, linear)
                made = ConsequenceTwins("sex", graph=PLANTED).fit(people).make(people)
                male = (people["sex"] == "M").to_numpy()
                twins = {
                    c: np.where(male, made.tables[0][c], made.tables[1][c]) for c in ("school", "job", "pay")
                }
                found.append([
                    np.sqrt(np.mean((twins["school"] - others["school"]) ** 2)),
                    np.sqrt(np.mean((twins["pay"] - others["pay"]) ** 2)),
                    np.mean(twins["job"] != people["job"]) - np.mean(others["job"] != people["job"]),
                ])  # fmt: skip
            school, pay, job = np.mean(found, axis=0)
            print(f"{'linear' if linear else 'non-linear'} n = {n:6d}: root mean squared error school {school:.3f}, "
                  f"pay {pay:.3f}; share of changed jobs less the true one {job:+.3f}", flush=True)  # fmt: skip


def scale() -> None:
    people = lw.datasets.load_adult().frame
    graph = {
        "sex": EVERYTHING,
        "age": EVERYTHING[2:],
        "race": EVERYTHING[2:],
        "education-num": EVERYTHING[3:],
        "marital-status": ["relationship", "hours-per-week", "occupation"],
        "occupation": ["hours-per-week", "capital-gain", "capital-loss"],
    }
    start = time.process_time()
    maker = ConsequenceTwins("sex", graph=graph, rules="learned").fit(people)
    learned = time.process_time()
    made = maker.make(people)
    done = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(people):,} people, {len(maker.moved_)} columns downstream: learn {learned - start:.1f} + make "
          f"{done - learned:.1f} = {done - start:.1f} CPU-s, peak {memory:.2f} GiB; "
          f"{int(made.compared.sum()):,} twins")  # fmt: skip


def consensus() -> None:
    for name, graph, rules in (("adult", ADULT, SPOUSES), ("german", GERMAN, "learned")):
        data = lw.datasets.load_adult() if name == "adult" else lw.datasets.load_german()
        train, test, y_train, y_test = train_test_split(data.frame, data.y, test_size=0.2, random_state=42)
        model = boosted(train, y_train)
        maker = ConsequenceTwins("sex", graph=graph, rules=rules).fit(train)
        fair = lw.TwinConsensus(model, edits=maker).fit(train)
        trees = lw.FairBoostingClassifier("sex", edits=maker, random_state=0).fit(train, y_train)
        for label, one in (("as it is", model), ("TwinConsensus", fair), ("FairBoosting", trees)):
            study = correspondence_study(one, test, maker)
            accuracy = float(np.mean(one.predict(test) == y_test))
            print(
                f"{name}, {label}: consistency {study.consistency:.4f}, accuracy {accuracy:.4f}", flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["shares", "coverage", "error", "scale", "consensus"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--n", type=int, default=800)
    parser.add_argument("--refits", type=int, default=20)
    given = parser.parse_args()
    if given.what == "shares":
        shares(given.refits)
    elif given.what == "coverage":
        coverage(given.runs, given.n, given.refits)
    elif given.what == "error":
        error(5)
    elif given.what == "scale":
        scale()
    else:
        consensus()


if __name__ == "__main__":
    main()
