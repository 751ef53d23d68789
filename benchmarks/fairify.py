"""Fairify's 25 networks: which share of all inputs is proved to keep its decision whatever race, sex or age is.

    python benchmarks/fairify.py FOLDER [--seconds 60] [--keep cells.json] [--only AC-1 --only GC-4]

FOLDER holds networks.json, networks.npz (weights and input ranges of the networks of Biswas and Rajan, Fairify, ICSE
2023) and Fairify's published_table_v.csv. Prints the table. With --keep every cell that is done is written to a file, and
a run that was stopped goes on where it was. CPU seconds, one process, one thread with OMP_NUM_THREADS=1.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np

from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.verification.verify import verify_family
from likewise.core.files import atomic_path
from likewise.data.column import Column, Dtype
from likewise.models.layers import Layers
from likewise.models.losses import ZeroOne

PROTECTED = {"AC": {"race": 7, "sex": 8}, "BM": {"age": 15}, "GC": {"sex": 19, "age": 11}}
# Share proved by FairQuant's own program in 60 s of wall time, in percent.
FAIRQUANT = {
    ("AC-1", "sex"): 90.7,
    ("AC-3", "sex"): 16.9,
    ("AC-5", "sex"): 2.4,
    ("AC-7", "sex"): 13.0,
    ("AC-9", "sex"): 91.1,
    ("AC-11", "sex"): 52.3,
    ("AC-12", "sex"): 70.8,
    ("BM-1", "age"): 94.8,
    ("BM-4", "age"): 28.1,
    ("BM-6", "age"): 97.1,
    ("BM-8", "age"): 63.8,
    ("GC-1", "age"): 32.7,
    ("GC-2", "age"): 32.4,
    ("GC-4", "age"): 99.65,
    ("GC-5", "age"): 99.80,
}
HEAD = "| network | column | proved | flips | undecided | flip shown | regions | CPU s | Fairify, 30 min | FairQuant, 60 s |"


def network(folder, name):
    """A network and its inputs: whole numbers within their ranges."""
    about = json.loads((Path(folder) / "networks.json").read_text())[name]
    arrays = np.load(Path(folder) / "networks.npz")
    layers = range(len(about["sizes"]) - 1)
    weights = tuple(arrays[f"{name}/W{k}"].T.astype(np.float64) for k in layers)
    biases = tuple(arrays[f"{name}/b{k}"].astype(np.float64) for k in layers)
    columns = tuple(
        Column(f"x{i}", "integer", Dtype("int64"), lower=low, upper=high, start=i, stop=i + 1)
        for i, (low, high) in enumerate(zip(about["low"], about["high"], strict=True))
    )
    return NetworkFamily(Layers(weights, biases), TableLayout(columns), ZeroOne())


def published(folder):
    """Fairify's coverage of its partitions, in percent."""
    with (Path(folder) / "published_table_v.csv").open() as file:
        return {(row["model"], row["PA"].lower()): row["Cov"] for row in csv.DictReader(file)}


def cell(family, column, seconds):
    """What is known of one cell, as plain numbers."""
    found = verify_family(family, [f"x{column}"], budget_seconds=seconds, max_regions=10**9)
    return {
        "proved": found.proved,
        "flips": found.flips,
        "undecided": found.undecided,
        "shown": found.pairs > 0,
        "regions": found.regions,
        "seconds": found.seconds,
    }


def line(name, attribute, found, coverage):
    """One row of the table."""
    known = FAIRQUANT.get((name, attribute))
    return (
        f"| {name} | {attribute} | {found['proved']:.2%} | {found['flips']:.2%} | {found['undecided']:.2%} | "
        f"{'yes' if found['shown'] else 'no'} | {found['regions']:,} | {found['seconds']:.0f} | "
        f"{coverage[name.replace('-', ''), attribute]}% | {'' if known is None else f'{known}%'} |"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", action="append")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    names = asked.only or list(json.loads((Path(asked.folder) / "networks.json").read_text()))
    kept = json.loads(asked.keep.read_text()) if asked.keep is not None and asked.keep.exists() else {}
    coverage, cells = published(asked.folder), []
    print(HEAD + "\n" + "|---" * 10 + "|")
    for name in names:
        family = network(asked.folder, name)
        for attribute, column in PROTECTED[name[:2]].items():
            key = f"{name} {attribute} {asked.seconds:g}"
            if key not in kept:
                kept[key] = cell(family, column, asked.seconds)
                if asked.keep is not None:
                    with atomic_path(asked.keep) as path:
                        path.write_text(json.dumps(kept, indent=1))
            cells.append((name, attribute, kept[key]))
            print(line(*cells[-1], coverage), flush=True)
    listed = [(found["proved"], FAIRQUANT[n, a]) for n, a, found in cells if (n, a) in FAIRQUANT]
    print(f"\n{sum(found['shown'] for *_, found in cells)} of {len(cells)} cells with a flip shown;")
    print(
        f"{sum(ours >= theirs / 100 for ours, theirs in listed)} of {len(listed)} at least FairQuant's share."
    )


if __name__ == "__main__":
    main()
