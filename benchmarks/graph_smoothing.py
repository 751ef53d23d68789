"""GraphSmoothing of many rows: CPU and the peak memory of the process.

OMP_NUM_THREADS=1 python benchmarks/graph_smoothing.py                      # 1,000,000 rows × 20 columns
OMP_NUM_THREADS=1 python benchmarks/graph_smoothing.py --rows 100000
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from likewise.core.subspace import Subspace
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.neighbours import NearestPlaces
from likewise.mitigation import GraphSmoothing


def people(n, d, seed=0):
    """Rows around a thousand centres, the last column a group of two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, d))[rng.integers(1000, size=n)]
    X += 0.5 * rng.normal(size=(n, d))
    X[:, -1] = rng.integers(2, size=n)
    return X


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--neighbours", type=int, default=10)
    options = parser.parse_args()
    X = people(options.rows, options.columns)
    weights = np.linspace(1.0, -1.0, options.columns)
    metric = FairMetric.from_subspace(Subspace.from_directions([np.eye(options.columns)[-1]]))
    model = GraphSmoothing(
        lambda rows: 1 / (1 + np.exp(-rows @ weights)), metric=metric, n_neighbors=options.neighbours
    )
    begin = time.process_time()
    model.fit(X)
    fitted = time.process_time() - begin
    begin = time.process_time()
    model.predict_proba(people(10_000, options.columns, seed=1))
    asked = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    some = np.random.default_rng(2).choice(len(X), size=200, replace=False)
    places = np.asarray(metric.embed(X))
    near, _ = model._nearest.query(places[some], options.neighbours + 1)
    true, _ = NearestPlaces(places, exact=True).query(places[some], options.neighbours + 1)
    shared = np.mean([len(set(a) & set(b)) - 1 for a, b in zip(near.tolist(), true.tolist(), strict=True)])
    print(
        "| rows | columns | neighbours | fit, CPU s | 10,000 new rows, CPU s | peak memory, GB | true neighbours |"
    )
    print(
        f"| {options.rows:,} | {options.columns} | {options.neighbours} | {fitted:.1f} | {asked:.1f} | {peak:.2f} "
        f"| {shared / options.neighbours:.3f} |"
    )


if __name__ == "__main__":
    main()
