"""ComparableSubspace beside TruncatedSVD and inFairness on 1,000,000 × 300 float32 rows, and all pairs of rows.

    python benchmarks/fair_metrics.py [--rows N] [--columns D] [--groups G] [--components K] [--repeats R]

Every run has a process of its own, so that its peak memory is its own; the contenders take turns. CPU seconds
are those of `time.process_time` around the one call, without making or reading the data. The matrix that
TruncatedSVD gets is centred for it beforehand and not timed; ComparableSubspace gets the rows in random order
and does its own centring, and inFairness gets one tensor per group and does its own, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def make_data(folder: Path, rows: int, columns: int, groups: int, rank: int = 10) -> None:
    """A factor model: sensitive factors, a mean per group, noise; float32, rows in random order."""
    rng = np.random.default_rng(0)
    labels = rng.integers(groups, size=rows)
    means = 3 * rng.standard_normal((groups, columns), dtype=np.float32)
    factors = rng.standard_normal((rank, columns), dtype=np.float32)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (rows, columns))
    for begin in range(0, rows, 50_000):
        part = slice(begin, min(begin + 50_000, rows))
        size = part.stop - begin
        X[part] = means[labels[part]] + rng.standard_normal((size, rank), dtype=np.float32) @ factors
        X[part] += rng.standard_normal((size, columns), dtype=np.float32)
    X.flush()
    np.save(folder / "labels.npy", labels)


def centre_in_place(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    for begin, end in itertools.pairwise(starts):
        rows = order[begin:end]
        X[rows] -= X[rows].mean(0)
    return X


def run_likewise(folder: Path, components: int) -> tuple[float, np.ndarray]:
    from likewise.fair_metrics import ComparableSubspace

    X, labels = np.load(folder / "X.npy"), np.load(folder / "labels.npy")
    learner = ComparableSubspace(n_components=components)
    start = time.process_time()
    learner.fit(X, groups=labels)
    return time.process_time() - start, learner.subspace_.basis


def run_truncated_svd(folder: Path, components: int) -> tuple[float, np.ndarray]:
    from sklearn.decomposition import TruncatedSVD

    X = centre_in_place(np.load(folder / "X.npy"), np.load(folder / "labels.npy"))
    svd = TruncatedSVD(n_components=components, random_state=0)
    start = time.process_time()
    svd.fit(X)
    return time.process_time() - start, svd.components_.T


def run_infairness(folder: Path, components: int) -> tuple[float, np.ndarray]:
    import torch
    from inFairness.distances import SVDSensitiveSubspaceDistance

    X, labels = torch.from_numpy(np.load(folder / "X.npy")), np.load(folder / "labels.npy")
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    parts = list(torch.split(X[torch.from_numpy(order)], sizes[sizes > 0].tolist()))
    del X
    distance = SVDSensitiveSubspaceDistance()
    start = time.process_time()
    distance.fit(parts, n_components=components)
    seconds = time.process_time() - start
    values, vectors = np.linalg.eigh(np.asarray(distance.sigma.double().cpu()))
    return seconds, vectors[:, np.argsort(values)[:components]]


RUNS = {
    "ComparableSubspace.fit": run_likewise,
    "TruncatedSVD.fit (centred before)": run_truncated_svd,
    "inFairness SVDSensitiveSubspaceDistance.fit": run_infairness,
}


def child(name: str, folder: Path, components: int) -> None:
    seconds, basis = RUNS[name](folder, components)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    np.save(folder / "basis.npy", basis)
    print(json.dumps({"seconds": seconds, "peak_gb": peak}))


def measure(name: str, folder: Path, components: int) -> dict[str, float]:
    command = [
        sys.executable,
        __file__,
        "--child",
        name,
        "--folder",
        str(folder),
        "--components",
        str(components),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.strip().splitlines()[-1])
    result["basis"] = np.linalg.qr(np.load(folder / "basis.npy").astype(float))[0]
    return result


def angle(a: np.ndarray, b: np.ndarray) -> float:
    """Largest principal angle, from its sine."""
    return float(np.arcsin(min(1.0, np.linalg.norm(b - a @ (a.T @ b), 2))))


def comparable(options: argparse.Namespace) -> None:
    names = list(RUNS)
    if importlib.util.find_spec("inFairness") is None:
        print("inFairness is not installed here: its row is left out (pip install 'likewise[bench]').\n")
        names.pop()
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_data(folder, options.rows, options.columns, options.groups)
        for _ in range(options.repeats):
            for name in names:
                results[name].append(measure(name, folder, options.components))
    ours = [run["seconds"] for run in results[names[0]]]
    print(
        f"{options.rows:,} × {options.columns} float32 rows, {options.groups:,} groups, {options.components} "
        f"directions; median of {options.repeats} interleaved runs"
    )
    print("| | CPU s | ComparableSubspace takes | peak memory of the process | largest angle to ours |")
    print("|---|---|---|---|---|")
    for name in names:
        seconds = [run["seconds"] for run in results[name]]
        ratio = statistics.median(a / b for a, b in zip(ours, seconds, strict=True))
        peak = max(run["peak_gb"] for run in results[name])
        off = angle(results[names[0]][0]["basis"], results[name][0]["basis"])
        print(
            f"| {name} | {statistics.median(seconds):.2f} | {ratio:.2f} × | {peak:.2f} GB | {off:.1e} rad |"
        )


def all_pairs(rows: int = 20_000, columns: int = 41) -> None:
    import tracemalloc

    from sklearn.metrics.pairwise import euclidean_distances

    from likewise.core.subspace import Subspace
    from likewise.fair_metrics import FairMetric

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    metric = FairMetric.from_subspace(Subspace(np.linalg.qr(rng.normal(size=(columns, 3)))[0]))
    times: dict[str, list[float]] = {"ours": [], "sklearn": []}
    for _ in range(3):
        start = time.process_time()
        for _rows, _block in metric.blocks(X):
            pass
        times["ours"].append(time.process_time() - start)
        reduced = metric.embed(X)
        start = time.process_time()
        for begin in range(0, rows, 100):
            euclidean_distances(reduced[begin : begin + 100], reduced, squared=True)
        times["sklearn"].append(time.process_time() - start)
    tracemalloc.start()
    for _rows, _block in metric.blocks(X):
        pass
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    ratio = statistics.median(a / b for a, b in zip(times["ours"], times["sklearn"], strict=True))
    print(f"\nAll pairs of {rows:,} × {rows:,} rows with {columns} columns, float64, in blocks")
    print("| | CPU s | extra memory |")
    print("|---|---|---|")
    print(f"| FairMetric.blocks | {statistics.median(times['ours']):.2f} | {peak:.0f} MB |")
    print(
        f"| scikit-learn euclidean_distances of the reduced rows | {statistics.median(times['sklearn']):.2f} | |"
    )
    print(f"\nFairMetric.blocks takes {ratio:.2f} × the CPU of scikit-learn.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.folder, options.components)
        return
    comparable(options)
    all_pairs()


if __name__ == "__main__":
    main()
