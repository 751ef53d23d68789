"""What a process of its own costs: `likewise audit` of all of Adult with XGBoost, with and without --trust.

    OMP_NUM_THREADS=1 python benchmarks/isolated_models.py [--repeat 5] [--search candidates] [--only table]

Both audits are fresh processes and take turns. CPU counts every process of the command. What they find must be
the same to the last digit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OPTIONS = [
    "--target",
    "target",
    "--sensitive",
    "sex",
    "--sensitive",
    "race",
    "--favourable",
    ">50K",
    "-o",
    "-",
]


def make(folder: Path) -> dict[str, Path]:
    import numpy as np
    import pandas as pd
    import xgboost

    from likewise.data import TabularDomain
    from likewise.datasets import load_adult
    from likewise.datasets.tabular import CATEGORIES

    data = load_adult()
    frame = pd.concat([data.frame_train, data.frame_test], ignore_index=True)
    y = np.concatenate([data.y_train, data.y_test])
    frame.assign(target=np.array(data.target_names)[y]).to_csv(folder / "people.csv", index=False)
    raw = xgboost.XGBClassifier(n_estimators=100, max_depth=6, enable_categorical=True, n_jobs=1)
    raw.fit(frame.astype(dict.fromkeys(CATEGORIES, "category")), y).save_model(folder / "table.ubj")
    encoded = xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1)
    encoded.fit(TabularDomain.from_frame(frame).encode_array(frame), y).save_model(folder / "encoded.ubj")
    return {"the table, with categories": folder / "table.ubj", "encoded numbers": folder / "encoded.ubj"}


def run(model: Path, *more: str) -> tuple[float, float, bytes]:
    """CPU seconds, seconds and what was printed."""
    words = [
        sys.executable,
        "-m",
        "likewise",
        "audit",
        str(model),
        str(model.parent / "people.csv"),
        *OPTIONS,
        *more,
    ]
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(words, capture_output=True, check=False)
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{model.name} {' '.join(more)}: {cpu:.1f} CPU s, {seconds:.1f} s", file=sys.stderr, flush=True)
    return cpu, seconds, done.stdout


def _numbers(printed: bytes) -> str:
    """What was found, without how long each stage took."""
    document = json.loads(printed)
    del document["computed"]
    return json.dumps(document)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--search", default="candidates")
    parser.add_argument("--only", help="the first word of what the model takes")
    chosen = parser.parse_args()
    print(
        "| model takes | | CPU s (median) | CPU s (range) | s (median) | CPU against --trust | time against --trust |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for name, model in make(Path(place)).items():
            if chosen.only is not None and chosen.only not in name:
                continue
            found: dict[str, list[tuple[float, float, bytes]]] = {"--trust": [], "a process of its own": []}
            for turn in range(chosen.repeat):
                order = list(found)[:: 1 if turn % 2 else -1]
                for way in order:
                    found[way].append(
                        run(
                            model,
                            "--set",
                            f"search={chosen.search}",
                            *(["--trust", "process"] if way == "--trust" else []),
                        )
                    )
            if len({_numbers(printed) for runs in found.values() for *_, printed in runs}) != 1:
                raise RuntimeError("the audits differ")
            base = [statistics.median(part) for part in list(zip(*found["--trust"], strict=True))[:2]]
            for way, runs in found.items():
                cpu, seconds = (list(part) for part in list(zip(*runs, strict=True))[:2])
                medians = statistics.median(cpu), statistics.median(seconds)
                print(
                    f"| {name} | {way} | {medians[0]:.1f} | {min(cpu):.1f}–{max(cpu):.1f} | {medians[1]:.1f} "
                    f"| {medians[0] / base[0]:.2f} × | {medians[1] / base[1]:.2f} × |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
