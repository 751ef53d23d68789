"""Large tables: the first question against the model's own answers, and the worst case on one process and on workers.

    OMP_NUM_THREADS=1 python benchmarks/scale.py --first [--rows 1000 10000 100000 1000000]
    OMP_NUM_THREADS=1 python benchmarks/scale.py --csv [--rows 1000000]
    OMP_NUM_THREADS=1 python benchmarks/scale.py [--rows 1000000 5000000] [--engines local dask1 dask2] [--pool 200]

`--first`: does a decision change with sex alone? XGBoost (100 trees of depth 6) behind a function of the table, Parquet
files with and without missing cells, and for comparison the function's own answers about everybody as woman and as man.
CPU of one process, imports and model left out; memory is its peak, libraries included. `--csv`: the same question of a
text file with 40 columns, on the command line, with a scikit-learn pipeline.

Without either, the same Parquet audit in one process and on Dask workers: the same numbers, at what cost.

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


# The first question.


def few_people(folder: Path, rows: int, gaps: bool) -> None:
    """Write people of whom hardly two are the same but for sex."""
    generate(folder, rows)
    for path in sorted(folder.iterdir()):
        frame = pd.read_parquet(path)
        rng = np.random.default_rng(len(frame))
        frame["capital-gain"] += rng.integers(0, 100_000, len(frame))
        if gaps:
            for name in ("age", "hours-per-week", "workclass"):
                frame[name] = frame[name].mask(rng.random(len(frame)) < 0.05)
        frame.to_parquet(path, index=False, row_group_size=GROUP)


def boosted() -> Any:
    """XGBoost behind a function of the table, which takes missing cells."""
    import xgboost

    import likewise as lw

    data = lw.datasets.load_adult()
    frame = data.frame
    words = {c: sorted(frame[c].unique()) for c in frame if frame[c].dtype.kind not in "biuf"}

    def encode(table: pd.DataFrame) -> Any:
        cells = np.empty((len(table), frame.shape[1]))
        for at, name in enumerate(frame.columns):
            column = table[name]
            codes = pd.Categorical(column, categories=words[name]).codes if name in words else column
            cells[:, at] = codes
        return cells

    model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1).fit(encode(frame), data.y)
    return lambda table: model.predict_proba(encode(table))[:, 1]


def first(folder: Path, out: Path) -> None:
    """One audit in parts and the model's own answers; costs go to a file."""
    import likewise as lw

    model = boosted()
    some = pd.read_parquet(next(iter(folder.iterdir()))).head(300)
    lw.audit(model, some.drop(columns="income"), some["income"], sensitive_features=["sex"], favourable=1)
    start = time.process_time()
    result = lw.audit(model, folder, "income", sensitive_features=["sex"], favourable=1)
    spent = time.process_time() - start
    memory, answers, whole = peak(), 0.0, None
    if result.n <= 100_000:
        everybody = pd.read_parquet(folder)
        y = everybody.pop("income")
        start = time.process_time()
        again = lw.audit(model, everybody, y, sensitive_features=["sex"], favourable=1)
        whole = time.process_time() - start
        assert again.effects.equals(result.effects)
    for path in sorted(folder.iterdir()):
        people = pd.read_parquet(path)
        for sex in ("Female", "Male"):
            table = people.assign(sex=sex)
            start = time.process_time()
            model(table)
            answers += time.process_time() - start
    found = {"people": result.n, "changed": result.changed.count, "audit": spent, "answers": answers}
    out.write_text(json.dumps(found | {"memory": memory, "whole": whole, "timing": result.timing}))


def measure_first(home: Path, rows: list[int]) -> None:
    """The first question at several sizes, each in a process of its own."""
    print(
        "| people | missing cells | answers, CPU s | files in parts, CPU s | × | in memory, CPU s | × | peak MB | changed |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for gaps in (False, True):
        for count in rows:
            folder = home / f"first-{count}-{gaps}"
            if not folder.exists():
                few_people(folder, count, gaps)
            found = in_process("--first", str(folder), home)
            answers, whole = found["answers"], found["whole"]
            memory = "– | –" if whole is None else f"{whole:.2f} | {whole / answers:.1f}"
            print(
                f"| {count:,} | {'5 % of three columns' if gaps else 'none'} | {answers:.2f} | {found['audit']:.2f} | "
                f"{found['audit'] / answers:.1f} | {memory} | {found['memory']:.0f} | {found['changed']:,} |",
                flush=True,
            )


def measure_csv(home: Path, rows: int) -> None:
    """A text file with 40 columns on the command line: CPU and the highest memory of the process."""
    path, model = home / f"people-{rows}.csv", home / "model.skops"
    if not path.exists():
        write_csv(path, model, rows)
    words = [sys.executable, "-m", "likewise", "audit", str(model), str(path), "--target", "y"]
    words += ["--sensitive", "sex", "--favourable", "1", "--quiet", "-o", str(home / "audit.json"), "--force"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = path.stat().st_size / 1e6
    print(
        f"{rows:,} people × 40 columns, {size:.0f} MB of CSV: {spent:.0f} CPU-s, {after.ru_maxrss / 1e3:.0f} MB",
        flush=True,
    )


def write_csv(path: Path, model: Path, rows: int) -> None:
    """Write a wide table some rows at a time, and a pipeline that was fitted on the first of them."""
    import skops.io
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rng = np.random.default_rng(0)
    numbers, words = [f"n{k}" for k in range(25)], [f"w{k}" for k in range(13)]
    for start in range(0, rows, GROUP):
        size = min(GROUP, rows - start)
        frame = pd.DataFrame(rng.normal(50, 20, (size, 25)).round(2), columns=numbers)
        frame = frame.mask(rng.random(frame.shape) < 0.02)
        for name in words:
            frame[name] = rng.choice(["red", "green", "blue", "black", "white"], size)
        frame["sex"] = rng.choice(["f", "m"], size)
        odds = (frame["n0"].fillna(50) - 50) / 20 + 0.5 * (frame["sex"] == "m")
        frame["y"] = (odds + rng.normal(0, 0.5, size) > 0).astype(int)
        frame.to_csv(path, index=False, mode="w" if start == 0 else "a", header=start == 0)
        if start == 0:
            number = make_pipeline(SimpleImputer(), StandardScaler())
            encode = make_column_transformer((number, numbers), (OneHotEncoder(), [*words, "sex"]))
            fitted = make_pipeline(encode, LogisticRegression(max_iter=200)).fit(
                frame.drop(columns="y"), frame["y"]
            )
            skops.io.dump(fitted, model)


def in_process(what: str, folder: str, home: Path) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    out = home / "found.json"
    subprocess.run([sys.executable, __file__, what, "--one", "local", folder, str(out)], check=True)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


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
    parser.add_argument(
        "--first", action="store_true", help="the first question against the model's own answers"
    )
    parser.add_argument("--csv", action="store_true", help="a text file on the command line")
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--engines", nargs="+", default=["local", "dask1", "dask2"])
    parser.add_argument("--pool", type=int, default=200, help="people that everybody is compared with")
    parser.add_argument("--folder", type=Path, help="where the files are made, or are already")
    parser.add_argument("--one", nargs=3, metavar=("ENGINE", "FOLDER", "OUT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one and given.first:
        first(Path(given.one[1]), Path(given.one[2]))
        return
    if given.one:
        run(given.one[0], Path(given.one[1]), given.pool, Path(given.one[2]))
        return
    with tempfile.TemporaryDirectory() as temporary:
        home = given.folder or Path(temporary)
        home.mkdir(parents=True, exist_ok=True)
        if given.first or given.csv:
            if given.first:
                measure_first(home, given.rows or [1_000, 10_000, 100_000, 1_000_000])
            else:
                measure_csv(home, (given.rows or [1_000_000])[0])
            return
        for rows in given.rows or [1_000_000, 5_000_000]:
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
