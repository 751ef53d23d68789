"""Tables as people have them, each with a trouble of its own; the same seed writes the same bytes."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

# COMPAS and law school as published, where somebody keeps them beside the repository.
PUBLISHED = Path(
    os.environ.get("LIKEWISE_TABLES", Path(__file__).parents[2].parent / "shared" / "data" / "tables")
)


def people(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "height": rng.normal(1.7, 0.1, n).round(2),
            "SEX": rng.integers(1, 3, n),
            "male": rng.integers(0, 2, n).astype(float),
            "MARRIAGE": rng.integers(0, 4, n),
            "priors_count": rng.poisson(1.0, n),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
        }
    )
    score = (frame["age"] - 45) / 12 + frame["male"] + rng.normal(size=n)
    return frame.assign(paid=np.where(score > 0.5, "yes", "no"))


def comma(path: Path) -> None:
    people().to_csv(path, sep=";", decimal=",", index=False)


def doubled(path: Path) -> None:
    frame = people()
    pd.concat([frame, frame[["age", "job"]]], axis=1).to_csv(path, index=False)


def ids_and_dates(path: Path) -> None:
    frame = people()
    days = pd.date_range("2020-01-01", periods=len(frame), freq="D")
    words = [
        f"on day {at} the {job} said that all was well and went home" for at, job in enumerate(frame["job"])
    ]
    frame.assign(
        id=np.arange(5000, 5000 + len(frame)),
        key=[f"k{7919 * at % 1009:04d}-{at}" for at in range(len(frame))],
        dob=days.strftime("%d/%m/%Y"),
        seen=days.astype(str),
        remark=words,
        account=10**17 + np.arange(len(frame)) * 12345,
    ).to_csv(path, index=False)


def codes(path: Path) -> None:
    people().to_csv(path, index=False)


def gaps_everywhere(path: Path) -> None:
    rng, frame = np.random.default_rng(1), people()
    for name in frame.columns.drop("paid"):
        frame[name] = frame[name].astype(object).where(rng.random(len(frame)) > 0.2)
    frame.assign(nothing=np.nan).to_csv(path, index=False)


def many_categories(path: Path) -> None:
    frame = pd.concat([people(1000)] * 60, ignore_index=True)
    frame["street"] = [f"street {at % 50_000}" for at in range(len(frame))]
    frame.to_csv(path, index=False)


def one_row(path: Path) -> None:
    people(1).to_csv(path, index=False)


def no_rows(path: Path) -> None:
    people().head(0).to_csv(path, index=False)


def many_columns(path: Path) -> None:
    numbers = np.random.default_rng(2).normal(size=(60, 10_000)).round(3)
    wide = pd.DataFrame(numbers, columns=[f"a column with a long name, {at}" for at in range(10_000)])
    pd.concat([people(60), wide], axis=1).to_csv(path, index=False)


def old_mac(path: Path) -> None:
    path.write_bytes(people().to_csv(index=False).encode().replace(b"\n", b"\r"))


def latin(path: Path) -> None:
    frame = people()
    frame["job"] = frame["job"].replace({"cook": "Köchin"})
    path.write_bytes(frame.to_csv(index=False).encode("latin-1"))


def zipped(path: Path) -> None:
    path.write_bytes(gzip.compress(people().to_csv(index=False, sep="\t").encode()))


def huge_numbers(path: Path) -> None:
    frame = people()
    frame["money"] = np.where(frame["age"] > 60, 1e300, 12.5)
    frame["debt"] = np.where(frame["age"] > 60, 1e39, 3.25)
    frame.to_csv(path, index=False)


def without_header(path: Path) -> None:
    people().to_csv(path, index=False, header=False)


TROUBLES: dict[str, Callable[[Path], None]] = {
    "comma": comma,
    "doubled": doubled,
    "ids_and_dates": ids_and_dates,
    "codes": codes,
    "gaps_everywhere": gaps_everywhere,
    "many_categories": many_categories,
    "one_row": one_row,
    "no_rows": no_rows,
    "many_columns": many_columns,
    "old_mac": old_mac,
    "latin": latin,
    "zipped": zipped,
    "huge_numbers": huge_numbers,
    "without_header": without_header,
}
