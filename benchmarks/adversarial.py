"""Try to refute what audits and proofs claim: random tables, every kind of model, against rows asked one by one.

    OMP_NUM_THREADS=1 python benchmarks/adversarial.py --cases 3000 --out adversarial.jsonl
    OMP_NUM_THREADS=1 python benchmarks/adversarial.py --cases 3000 --out adversarial.jsonl --only xgb/
    OMP_NUM_THREADS=1 python benchmarks/adversarial.py --show 579

Case i is always the same: its number settles the kind, the table, the loss and ε. Every case is one line of the file; a run
that was stopped goes on where it was, `--first` starts elsewhere, and what is printed is of all lines in the file. Besides
the tests' tables these have up to two floats and more people. LISTED, ESTIMATE: rows do not attain what is said of them;
BOUND: rows exist that exceed it; ZERO: another number than the finitely many rows at no distance have; CROSSED: the audit
contradicts itself; LOSS: the model's own mean loss is another; VERIFY: a share, or an example, is wrong.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.adversarial.cases import KINDS, Outcome, make_subject, run_case

from likewise.auditing.verification import asked_shares

# The share that `verify` estimates from random rows is not looked at here (`interval_coverage.py verify` does).
asked_shares._ASKED = 2_000

EPS = (0.1, 0.01, 0.0)
HOW = (
    {"search": "exact"},
    {"search": ["candidates", "exact"]},
    {"search": "exact"},
    {"search": "auto", "budget_seconds": 0.5},
)


def case(number):
    """Kind, seed, loss and ε of a case: all kinds in turn, and with every turn another table, loss and ε."""
    turn, place = divmod(number, len(KINDS))
    kind = list(KINDS.values())[place]
    choices = list(product(kind.losses, EPS))
    return kind.name, 10_000 + number, *choices[(turn + place) % len(choices)]


def run(number, people):
    name, seed, loss, eps = case(number)
    how = HOW[number % len(HOW)]
    started = time.process_time()
    try:
        out = dataclasses.asdict(run_case(name, seed, loss, eps, people=people, how=how))
    except Exception as error:
        # The model itself could not be built or asked: the harness's own fault, or the library's.
        out = dataclasses.asdict(Outcome(name, seed, loss, eps))
        out["unbuilt"] = f"{type(error).__name__}: {error}"
    return {"case": number, **out, "how": how, "seconds": round(time.process_time() - started, 2)}


def show(lines):
    by_kind = defaultdict(list)
    for line in lines:
        by_kind[line["kind"]].append(line)
    print(
        "| kind | cases | bounds given | verified | cases with violations | violations by code | exceptions |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, group in sorted(by_kind.items()):
        codes = Counter(text.split(":")[0] for line in group for text in line["violations"])
        print(
            f"| {name} | {len(group)} | {sum(line['bound'] for line in group)} "
            f"| {sum(line['verified'] for line in group)} | {sum(bool(line['violations']) for line in group)} "
            f"| {', '.join(f'{code} {n}' for code, n in sorted(codes.items()))} | {sum(len(line['errors']) for line in group)} |"
        )
    print("\nviolations by what is special about the table:")
    for (code, notes), n in sorted(
        Counter(
            (text.split(":")[0], ", ".join(line["notes"])) for line in lines for text in line["violations"]
        ).items()
    ):
        print(f"{n:5d}  {code}: {notes}")
    print("\nexceptions:")
    for text, n in Counter(text[:160] for line in lines for text in line["errors"]).most_common():
        print(f"{n:5d}  {text}")
    print("\nrefused:")
    for text, n in Counter(text[:160] for line in lines for text in line["refused"]).most_common(40):
        print(f"{n:5d}  {text}")
    print("\nnot built:")
    for text, n in Counter(
        f"{line['kind']}: {line['unbuilt'][:120]}" for line in lines if "unbuilt" in line
    ).most_common():
        print(f"{n:5d}  {text}")
    refuted = sum(bool(line["violations"]) for line in lines)
    print(
        f"\n{len(lines)} cases, {sum(line['bound'] for line in lines)} with a bound, {refuted} with a claim refuted, "
        f"{sum(bool(line['errors']) for line in lines)} with an exception, {sum(line['seconds'] for line in lines):.0f} CPU s"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("adversarial.jsonl"))
    parser.add_argument("--show", type=int, metavar="CASE")
    asked = parser.parse_args()
    if asked.show is not None:
        name, seed, *_ = case(asked.show)
        print(make_subject(name, seed, asked.people).table)
        print(json.dumps(run(asked.show, asked.people), indent=1))
        return
    done = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out.exists() else []
    known = {line["case"] for line in done}
    with asked.out.open("a") as file:
        for number in range(asked.first, asked.first + asked.cases):
            if number in known or asked.only not in case(number)[0]:
                continue
            line = run(number, asked.people)
            done.append(line)
            file.write(json.dumps(line) + "\n")
            file.flush()
    show(done)


if __name__ == "__main__":
    main()
