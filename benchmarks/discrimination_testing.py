"""Networks of the discrimination-testing literature: what is proved, sampled and found of decisions that flip.

    python benchmarks/discrimination_testing.py FOLDER [--fairify FOLDER] [--seconds 60] [--keep cells.json] [--only "adult age"]

FOLDER holds networks.npz: the three networks that ADF and EIDIG search for individual discriminatory instances (rows
whose decision changes with the protected column alone). With --fairify the 25 networks of Fairify as well. For each
network and protected column: the share of all inputs that is proved to keep its decision, the share that flips by asking
about random rows (exact 95% interval), and a guided generator, which starts from the at most 20 pairs that the proof showed and
from random rows: the share of the different rows it makes that flip, and how many of those it finds per CPU-second. One process, one thread with OMP_NUM_THREADS=1, CPU seconds.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from fairify import PROTECTED as FAIRIFY, network as fairify_network

from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.verification.asked_shares import SensitiveValues, sample_rows, settled, uniform_rows
from likewise.auditing.verification.verify import verify_family
from likewise.core.files import atomic_path
from likewise.data.column import Column, Dtype
from likewise.models.layers import Layers
from likewise.models.losses import ZeroOne

# Codes of the columns, both ends included. Adult: the authors' code lists. German and bank: the least and largest code
# that EIDIG's preprocessing gives German credit (Statlog, numeric) and bank-full (unknown words filled, numbers binned).
RANGES = {
    "adult": [(1, 4), (0, 6), (1, 16), (0, 6), (0, 13), (0, 5), (0, 4), (0, 1), (1, 3), (1, 3), (1, 4), (0, 40)],
    "german": [
        (1, 4), (1, 4), (0, 4), (1, 4), (1, 5), (1, 5), (1, 4), (1, 4), (1, 4), (1, 4), (1, 3), (1, 4), (1, 2), (1, 2),
        (1, 2), *[(0, 1)] * 9,
    ],
    "bank": [
        (1, 4), (0, 10), (0, 2), (0, 2), (0, 1), (1, 4), (0, 1), (0, 1), (0, 1), (1, 3), (1, 4), (1, 4), (1, 4), (1, 4),
        (1, 4), (0, 2),
    ],
}  # fmt: skip
COLUMNS = {"adult": {"age": 0, "race": 6, "gender": 7}, "german": {"gender": 6, "age": 9}, "bank": {"age": 0}}
# Share of generated rows that flip (%), and flips found per second, by the authors' own logs: ADF, EIDIG-5.
PUBLISHED = {
    "adult age": ((76, 11.2), (78, 19.9)),
    "adult race": ((33, 5.7), (46, 9.1)),
    "adult gender": ((38, 4.8), (41, 9.5)),
    "german gender": ((40, 3.1), (44, 5.1)),
    "german age": ((81, 9.3), (84, 12.6)),
    "bank age": ((77, 9.7), (79, 13.9)),
}
GENERATED, FIRST, BATCH = 200_000, 2_000, 4_000
# How sharply parents and steps are preferred whose children flip; steps of a child, at most, before random rows are tried.
POWER, FURTHEST = 12, 4
HEAD = (
    "| network, column | proved the same | proved to flip | CPU s | sampled flips (95%) | generated rows that flip | "
    "found per CPU-s | ADF | EIDIG-5 |"
)


def networks(folder, fairify):
    """Name, protected column, the network as a family, and its own decisions in single precision."""
    arrays = np.load(Path(folder) / "networks.npz")
    for name, ranges in RANGES.items():
        layers = range(sum(key.startswith(f"{name}/W") for key in arrays))
        weights = [arrays[f"{name}/W{k}"].T for k in layers]
        biases = [arrays[f"{name}/b{k}"] for k in layers]
        columns = tuple(
            Column(f"x{i}", "integer", Dtype("int64"), lower=low, upper=high, start=i, stop=i + 1)
            for i, (low, high) in enumerate(ranges)
        )
        exact = Layers(
            tuple(w.astype(np.float64) for w in weights),
            tuple(b.astype(np.float64) for b in biases),
            roundoff=2.0**-24,
        )
        family = NetworkFamily(exact, TableLayout(columns), ZeroOne())
        for attribute, column in COLUMNS[name].items():
            yield f"{name} {attribute}", column, family, single_precision(weights, biases)
    if fairify is None:
        return
    for name in json.loads((Path(fairify) / "networks.json").read_text()):
        family = fairify_network(fairify, name)
        for attribute, column in FAIRIFY[name[:2]].items():
            yield f"{name} {attribute}", column, family, family.decisions


def single_precision(weights, biases):
    """Decisions of rows as the network gives them, in float32."""

    def decide(rows):
        x = rows.astype(np.float32)
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            x = np.maximum(x @ w.T + b, np.float32(0))
        return (x @ weights[-1].T + biases[-1])[:, 0] > 0

    return decide


def generate(layout, values, decide, rng, shown):
    """Make different rows that flip: those that the proof showed and random ones, then small changes of those that flipped.

    Returns how many different rows were made, and how many of them flip. Rows that differ in the protected column alone
    are one. Parents and steps are drawn by how many of their children have flipped.
    """
    apart = [i for i in range(layout.n_columns) if i not in set(values.columns.tolist())]
    low = np.array([layout.columns[i].lower for i in apart])
    high = np.array([layout.columns[i].upper for i in apart])
    known, flipped, reach, size = set(), 0, 1, len(values.asked)
    count = min(GENERATED, 4 * GENERATED // size)
    pool, good, tried = np.zeros((0, layout.n_columns)), np.zeros(0), np.zeros(0)
    steps = [(k, by) for k in range(len(apart)) for by in (-1, 1)]
    worked, made = np.ones(len(steps)), np.full(len(steps), 2.0)
    while len(known) < count:
        if len(known) < FIRST or not len(pool) or reach > FURTHEST:
            rows, parent, step = np.concatenate([shown, uniform_rows(layout, rng, FIRST)]), None, None
        else:
            chance = (good / tried) ** POWER
            parent = rng.choice(len(pool), size=BATCH, p=chance / chance.sum())
            ease = (worked / made) ** POWER
            step = rng.choice(len(steps), size=BATCH, p=ease / ease.sum())
            rows = pool[parent].copy()
            for moved in (step, *(rng.permutation(step) for _ in range(reach - 1))):
                for s in np.unique(moved):
                    k, by = steps[s]
                    rows[moved == s, apart[k]] += by
        fits = ((rows[:, apart] >= low) & (rows[:, apart] <= high)).all(axis=1)
        keys = [row.tobytes() for row in rows[:, apart].astype(np.int32)]
        fresh = []
        for i in np.flatnonzero(fits):
            if len(known) < count and keys[i] not in known:
                known.add(keys[i])
                fresh.append(i)
        fresh = np.array(fresh, dtype=np.int64)
        # Where nearly all neighbours are known, the next children are a step further away.
        reach = reach + 1 if len(fresh) < 0.05 * len(rows) else max(1, reach - 1)
        labels = np.asarray(decide(values.rows(rows[fresh])), dtype=np.int64)
        _, flips = settled(labels.reshape(len(fresh), size), np.ones(size, dtype=bool))
        flipped += int(flips.sum())
        if parent is not None:
            np.add.at(tried, parent[fresh], 1.0)
            np.add.at(good, parent[fresh], flips.astype(float))
            # A parent whose children are known or impossible has nothing more to give.
            stale = np.setdiff1d(np.arange(len(parent)), fresh)
            np.add.at(tried, parent[stale], 0.5)
            np.add.at(made, step[fresh], 1.0)
            np.add.at(worked, step[fresh], flips.astype(float))
        # A child is expected to do as its parent: two of its parent's trials are its own to begin with.
        start = np.full(len(fresh), 0.5) if parent is None else (good / tried)[parent[fresh]]
        pool = np.concatenate([pool, rows[fresh[flips]]])
        good = np.concatenate([good, 2.0 * start[flips]])
        tried = np.concatenate([tried, np.full(int(flips.sum()), 2.0)])
    return len(known), flipped


def cell(family, column, decide, seconds):
    """What is known of one cell, as plain numbers."""
    names, layout = [f"x{column}"], family.layout
    values = SensitiveValues.of(layout, names)
    found = verify_family(family, names, decide=decide, budget_seconds=seconds, max_regions=10**9)
    sampled = sample_rows(layout, values, decide)
    clock = time.process_time()
    shown = found.examples.reindex(columns=[column.name for column in layout.columns]).to_numpy(np.float64)
    made, flipped = generate(layout, values, decide, np.random.default_rng(0), shown[::2])
    return {
        "proved": found.proved,
        "flips": found.flips,
        "seconds": found.seconds,
        "sampled": list(sampled),
        "generated": flipped / made,
        "per second": flipped / (time.process_time() - clock),
    }


def line(key, found):
    """One row of the table."""
    share, low, high, _ = found["sampled"]
    known = PUBLISHED.get(key)
    theirs = ["", ""] if known is None else [f"{part}%, {per:g} /s" for part, per in known]
    return (
        f"| {key} | {found['proved']:.2%} | {found['flips']:.2%} | {found['seconds']:.0f} | "
        f"{share:.2%} ({low:.2%} to {high:.2%}) | {found['generated']:.1%} | {found['per second']:,.0f} | "
        + " | ".join(theirs)
        + " |"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--fairify")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", action="append")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    kept = json.loads(asked.keep.read_text()) if asked.keep is not None and asked.keep.exists() else {}
    print(HEAD + "\n" + "|---" * 9 + "|")
    ahead = cells = 0
    for key, column, family, decide in networks(asked.folder, asked.fairify):
        if asked.only and key not in asked.only:
            continue
        whole = f"{key} {asked.seconds:g}"
        if whole not in kept:
            kept[whole] = cell(family, column, decide, asked.seconds)
            if asked.keep is not None:
                with atomic_path(asked.keep) as path:
                    path.write_text(json.dumps(kept, indent=1))
        print(line(key, kept[whole]), flush=True)
        if key in PUBLISHED:
            cells += 1
            ahead += all(
                kept[whole]["generated"] > share / 100 and kept[whole]["per second"] > per
                for share, per in PUBLISHED[key]
            )
    if cells:
        print(f"\nAhead of both in {ahead} of {cells} cells, in the share of generated rows and per second.")


if __name__ == "__main__":
    main()
