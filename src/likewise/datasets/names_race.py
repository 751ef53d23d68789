"""Names, places and groups in the United States: what BISG and BIFSG are computed from."""

from __future__ import annotations

import functools
import io
import lzma
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray
from likewise.datasets.bundled import open_bundled

RACES = ("white", "black", "hispanic", "asian", "native", "multiple")
SEXES = ("female", "male")


class Chances(NamedTuple):
    """How likely the groups are made by each value: up to a factor per value, P(group | value) or P(value | group).

    `others` is what holds for the values that the table does not list, None if nothing is known of them.
    """

    values: pd.Index
    chances: FloatArray
    others: FloatArray | None


class NamesRace(NamedTuple):
    """The tables of one country."""

    race_given_surname: Chances
    first_given_race: Chances
    area_given_race: Chances
    race: FloatArray


@functools.cache
def names_race() -> NamesRace:
    """Return the bundled tables of race by surname, first name and ZIP code tabulation area (2010 and 2020 census).

    Examples
    --------
    >>> surnames = names_race().race_given_surname
    >>> dict(zip(RACES, surnames.chances[surnames.values.get_loc("GARCIA")].round(3).tolist()))
    {'white': 0.054, 'black': 0.004, 'hispanic': 0.92, 'asian': 0.014, 'native': 0.005, 'multiple': 0.003}
    """
    with open_bundled("names_race.npz.xz") as stream:
        held = np.load(io.BytesIO(lzma.decompress(stream.read())), allow_pickle=False)
    rest = held["surname_race"].T.astype(float)
    first = 1e4 + held["surname_sum"] - rest.sum(1)
    people = held["area_people"].transpose(0, 2, 1).copy().view(np.int32)[:, :, 0].T.astype(float)
    areas = pd.Index([f"{area:05d}" for area in np.cumsum(held["area"], dtype=int)])
    return NamesRace(
        Chances(
            _names(held["surname_shared"], held["surname_rest"]),
            np.column_stack([first, rest]) / 1e4,
            held["surname_others"] / 1e4,
        ),
        Chances(
            _names(held["first_shared"], held["first_rest"]),
            held["first_given_race"].T.astype(float) / 100.0,
            held["first_others"].astype(float) / 100.0,
        ),
        Chances(areas, people / people.sum(0), None),
        people.sum(0) / people.sum(),
    )


def _names(shared: np.ndarray[tuple[int], np.dtype[np.uint8]], rest: FloatArray) -> pd.Index:
    """Names of which each begins as the one before."""
    ends = rest.tobytes().decode("ascii").split("\n")
    coded = zip(shared.tolist(), ends, strict=True)
    return pd.Index(list(accumulate(coded, lambda before, one: before[: one[0]] + one[1], initial=""))[1:])


@functools.cache
def sex_given_first_name() -> Chances:
    """Return how common each first name is among women and among men (1990 census): P(name | sex).

    A name that the lists have for one sex only is not impossible for the other: it is given half of the least share that
    is listed, but at most 2% of the share of the sex that is listed.

    Examples
    --------
    >>> names = sex_given_first_name()
    >>> names.chances[names.values.get_loc("MARY")].round(5).tolist()
    [0.02629, 9e-05]
    """
    with open_bundled("census_first_names.csv") as stream:
        listed = pd.read_csv(stream, keep_default_na=False)
    wide = listed.pivot_table(index="name", columns="sex", values="percent")[list(SEXES)]
    share = wide.to_numpy() / 100.0
    unlisted = np.minimum(np.nanmin(share, axis=0) / 2, 0.02 * share[:, ::-1])
    return Chances(pd.Index(wide.index.str.upper()), np.where(np.isnan(share), unlisted, share), None)
