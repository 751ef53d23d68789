"""Fairify's 25 networks: which share of all inputs is proved to keep its decision whatever race, sex or age is.

    python benchmarks/fairify.py FOLDER --seconds 60 [--only AC-1 --only GC-4]

FOLDER holds networks.json and networks.npz (weights and input ranges of the networks of Biswas and Rajan, Fairify,
ICSE 2023). Prints one line per cell, then a table. CPU seconds, one process, one thread with OMP_NUM_THREADS=1.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from likewise.auditing.bounds.networks.network_family import NetworkFamily
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.bounds.verifying.verification import verify_family
from likewise.domains.column import Column
from likewise.domains.dtypes import Dtype
from likewise.models.losses import ZeroOne
from likewise.models.relu_network import ReluNetwork

PROTECTED = {"AC": {"race": 7, "sex": 8}, "BM": {"age": 15}, "GC": {"sex": 19, "age": 11}}


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
    return NetworkFamily(ReluNetwork(weights, biases), TableLayout(columns), ZeroOne())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", action="append")
    asked = parser.parse_args()
    names = asked.only or list(json.loads((Path(asked.folder) / "networks.json").read_text()))
    lines = []
    for name in names:
        family = network(asked.folder, name)
        for attribute, column in PROTECTED[name[:2]].items():
            found = verify_family(family, [f"x{column}"], seconds=asked.seconds, max_regions=10**9)
            line = (
                f"| {name} | {attribute} | {found.proved:.2%} | {found.flips:.2%} | {found.undecided:.2%} | "
                f"{'yes' if found.examples else 'no'} | {found.regions:,} | {found.seconds:.1f} |"
            )
            lines.append((line, bool(found.examples)))
            print(line, flush=True)
    print(f"{sum(shown for _, shown in lines)} of {len(lines)} cells with a flip shown")


if __name__ == "__main__":
    main()
