"""Write src/likewise/datasets/data/names_race.npz.xz from the four tables of names, places and race.

    python benchmarks/compact_names.py FOLDER

FOLDER holds the parquet files whose sources NOTICE names. Areas are kept as hundredths of a person: the share of an area in a
group and the shares of the groups in an area both follow from them.
"""

from __future__ import annotations

import io
import lzma
import sys
from itertools import accumulate
from pathlib import Path

import numpy as np
import pandas as pd

GROUPS = ["white", "black", "hispanic", "asian", "native", "multiple"]
TARGET = Path(__file__).parents[1] / "src/likewise/datasets/data/names_race.npz.xz"
OTHERS = {"ALL OTHER NAMES", "ALL OTHER FIRST NAMES"}


def front_coded(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Length of what each name shares with the one before, and the rest of it."""
    pairs = zip(names, ["", *names[:-1]], strict=True)
    shared = [sum(accumulate((a == b for a, b in zip(*pair, strict=False)), min)) for pair in pairs]
    rest = "\n".join(name[kept:] for name, kept in zip(names, shared, strict=True))
    return np.array(shared, dtype=np.uint8), np.frombuffer(rest.encode("ascii"), dtype=np.uint8)


def planes(values: np.ndarray) -> np.ndarray:
    """Bytes of the same weight side by side: they are alike."""
    return values.T.copy().view(np.uint8).reshape(values.shape[1], len(values), -1).transpose(0, 2, 1).copy()


def named(table: pd.DataFrame, key: str) -> tuple[pd.DataFrame, pd.Series]:
    """Sort by name; what is said of all other names comes apart."""
    other = table[key].isin(OTHERS)
    return table[~other].sort_values(key, ignore_index=True), table[other].iloc[0]


def main(folder: Path) -> None:
    surnames, others = named(pd.read_parquet(folder / "race_given_surname.parquet"), "surname")
    first, other_first = named(pd.read_parquet(folder / "first_name_given_race.parquet"), "first_name")
    areas = pd.read_parquet(folder / "zcta_given_race.parquet").sort_values("zcta", ignore_index=True)
    shares = areas.merge(pd.read_parquet(folder / "race_given_zcta.parquet"), on="zcta", suffixes=("", "_in"))
    given = areas[GROUPS].to_numpy(float)
    # Nobody is counted in less than one person: the least share of a group is one person of it.
    totals = 1.0 / np.where(given > 0, given, np.inf).min(axis=0)
    people = given * totals
    inside = shares[[f"{group}_in" for group in GROUPS]].to_numpy(float)
    assert np.abs(people / people.sum(1, keepdims=True) * 1e4 - inside).max() < 2.1, "totals are wrong"
    hundredths = np.rint(people * 100).astype(np.int32)
    values = surnames[GROUPS].to_numpy(np.uint16)
    shared, rest = front_coded(surnames["surname"].tolist())
    shared_first, rest_first = front_coded(first["first_name"].tolist())
    held = io.BytesIO()
    np.savez(
        held,
        surname_shared=shared,
        surname_rest=rest,
        # The first column follows from the sum, which is near 10,000.
        surname_sum=(values.sum(1, dtype=int) - 10_000).astype(np.int8),
        surname_race=values[:, 1:].T.copy(),
        surname_others=others[GROUPS].to_numpy(np.uint16),
        first_shared=shared_first,
        first_rest=rest_first,
        first_given_race=first[GROUPS].to_numpy(np.float32).T.copy(),
        first_others=other_first[GROUPS].to_numpy(np.float32),
        area=np.diff(areas["zcta"].astype(int).to_numpy(), prepend=0).astype(np.uint16),
        area_people=planes(hundredths),
    )
    TARGET.write_bytes(lzma.compress(held.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
