"""The same Parquet audit in one process and on Dask workers: the same numbers, at what cost.

    OMP_NUM_THREADS=1 python benchmarks/scale.py [--rows 1000000 5000000] [--engines local dask1 dask2] [--pool 200]

People are Adult's, drawn with replacement, with age and hours per week moved a little, in files with row groups of
65,536. The model is a torch network (41-100-2), the metric the subspace of sex. Every run is a process of its own:
CPU is that of the process and of its workers, from before the workers start until after they end; memory is the
highest of the driver, above what it had just before. The numbers of every engine are compared with the first one's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FILES, GROUP = 8, 65_536


def generate(folder: Path, rows: int, seed: int = 0) -> None:
    """Write so many people as Parquet files, a row group in memory at a time."""
    from likewise.datasets import load_adult

    data = load_adult()
    rng = np.random.default_rng(seed)
    people = data.frame.assign(income=data.y)
    folder.mkdir(parents=True)
    for number, count in enumerate(np.diff(np.linspace(0, rows, FILES + 1).astype(int))):
        writer = None
        for start in range(0, int(count), GROUP):
            size = min(GROUP, int(count) - start)
            some = people.iloc[rng.integers(len(people), size=size)].reset_index(drop=True)
            some["age"] = (some["age"] + rng.integers(-3, 4, size)).clip(17, 90)
            some["hours-per-week"] = (some["hours-per-week"] + rng.integers(-4, 5, size)).clip(1, 99)
            table = pa.Table.from_pandas(some, preserve_index=False)
            writer = writer or pq.ParquetWriter(folder / f"people-{number}.parquet", table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def resident() -> float:
    """Memory of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak() -> float:
    """Highest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def cpu() -> float:
    """CPU seconds of this process and of the children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def run(engine_name: str, folder: Path, pool: int, out: Path) -> None:
    """One audit; its numbers and costs go to a file."""
    import torch

    import likewise as lw
    from likewise.auditing import DaskEngine
    from likewise.auditing.partitions.engine import LocalEngine

    torch.set_num_threads(1)
    data = lw.datasets.load_adult()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(41, 100), torch.nn.ReLU(), torch.nn.Linear(100, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = (torch.tensor(np.asarray(part)) for part in (data.X_train, data.y_train))
    for step in range(200):
        some = slice(step * 150 % 30_000, step * 150 % 30_000 + 500)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[some].float()), y[some]).backward()
        optimizer.step()
    metric = lw.AttributeSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_
    search = lw.auditing.CandidateSearch(edits=["sex"], pool_rows=pool)
    local = engine_name == "local"
    engine = LocalEngine() if local else DaskEngine(workers=int(engine_name.removeprefix("dask")))
    idle, spent, start = resident(), cpu(), time.monotonic()
    with engine:
        ready = time.monotonic()
        result = lw.audit(
            net,
            folder,
            "income",
            metric=metric,
            domain=data.domain,
            eps=0.05,
            search=search,
            engine=engine,
        )
        ended = time.monotonic()
    budgets = np.linspace(0.0, 1.0, 201)
    top = result.unfair_map.top(100)
    found: dict[str, Any] = {
        "cpu": cpu() - spent,
        "start": ready - start,
        "wall": ended - ready,
        "memory": peak() - idle,
        "idle": idle,
        "n": result.n,
        "numbers": [result.value, result.gap, result.pure_gap, result.lambda_, result.flipped],
        "curve": result.curve.gap(budgets).tolist(),
        "top": top["person"].tolist(),
        "harm": top["harm"].tolist(),
        "timing": result.timing,
    }
    out.write_text(json.dumps(found))


def compare(found: dict[str, dict[str, Any]]) -> None:
    """Print one table: agreement with the first engine, costs, and ratios."""
    first = next(iter(found.values()))
    print(
        "| engine | CPU s | × local | wall s | rows/s | driver MB above idle | largest difference | top 100 |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, one in found.items():
        apart = max(
            float(np.abs(np.subtract(one[key], first[key])).max()) for key in ("numbers", "curve", "harm")
        )
        same = "the same" if one["top"] == first["top"] else "DIFFER"
        print(
            f"| {name} | {one['cpu']:.1f} | {one['cpu'] / first['cpu']:.2f} | {one['wall']:.1f} | "
            f"{one['n'] / one['wall']:,.0f} | {one['memory']:.0f} | {apart:.1e} | {same} |"
        )
    if {"dask1", "dask2"} <= found.keys():
        print(
            f"\nTwo workers against one: {found['dask1']['wall'] / found['dask2']['wall']:.2f} × the throughput."
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--engines", nargs="+", default=["local", "dask1", "dask2"])
    parser.add_argument("--pool", type=int, default=200, help="people that everybody is compared with")
    parser.add_argument("--folder", type=Path, help="where the files are made, or are already")
    parser.add_argument("--one", nargs=3, metavar=("ENGINE", "FOLDER", "OUT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run(given.one[0], Path(given.one[1]), given.pool, Path(given.one[2]))
        return
    with tempfile.TemporaryDirectory() as temporary:
        home = given.folder or Path(temporary)
        for rows in given.rows:
            people = home / f"people-{rows}"
            if not people.exists():
                generate(people, rows)
            size = sum(path.stat().st_size for path in people.iterdir()) / 1e6
            print(f"\n{rows:,} people, {size:.0f} MB of Parquet, load {os.getloadavg()[0]:.1f}\n", flush=True)
            found = {}
            for engine in given.engines:
                out = Path(temporary) / "found.json"
                words = [
                    sys.executable,
                    __file__,
                    "--pool",
                    str(given.pool),
                    "--one",
                    engine,
                    str(people),
                    str(out),
                ]
                subprocess.run(words, check=True)
                found[engine] = json.loads(out.read_text())
                print(
                    f"{engine}: {pd.Series(found[engine]).drop(['curve', 'top', 'harm']).to_dict()}",
                    flush=True,
                )
            compare(found)


if __name__ == "__main__":
    main()
