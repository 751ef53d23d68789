"""Groups that are known by probability only: what estimates, bounds and the proxy test are worth where the truth is known.

    python benchmarks/proxies.py disparity [RUNS [PEOPLE [SEED]]]
    python benchmarks/proxies.py known [RUNS [PEOPLE [SEED]]]
    python benchmarks/proxies.py intervals [RUNS [SEED [OUT.csv]]]
    python benchmarks/proxies.py voters FILE.csv
    python benchmarks/proxies.py adult [SPLITS]
    python benchmarks/proxies.py worlds [RUNS]
    python benchmarks/proxies.py columns [RUNS [PEOPLE]]
    python benchmarks/proxies.py tables compas-scores-two-years.csv

`disparity` draws names and places of people of known race from the bundled tables, plants a disparity with and without the
assumption of the corrected estimate, and counts how often the truth is held; `known` does so for the estimate from people whose
group is known alone, rare outcomes included. `intervals` counts it for every interval of a group
of 2 to 50 people who are counted, rare outcomes and equal rates included. `voters` takes a table with the columns
last_name, zip, race and turnout, such as pseudo_vf of the R package birdie (5,000 people). The tables in
results/proxies.md were written by these.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

import likewise as lw
from likewise.datasets.names_race import RACES, names_race, sex_given_first_name
from likewise.proxies.rates import Events, IndependentNames, Rates, known_rates, rate_bounds, weighted_rates

GROUPS = np.array(["white", "black", "hispanic", "other"], dtype=object)
REGIONS = {"North Carolina": (27000, 29000), "New York": (10000, 15000), "Texas": (75000, 80000)}
WORLDS = ("no gap", "group", "group and place", "names too", "worst case")


class Region:
    """People of a region: race and area as counted there, surname given race as in the nation."""

    def __init__(self, name: str, bearers: np.ndarray, rng: np.random.Generator) -> None:
        tables = names_race()
        codes = tables.area_given_race.values.astype(int).to_numpy()
        here = np.flatnonzero((codes >= REGIONS[name][0]) & (codes < REGIONS[name][1]))
        self.joint = tables.area_given_race.chances[here] * tables.race
        self.joint /= self.joint.sum()
        self.given = bearers / bearers.sum(0)
        _, p, area, _ = self.draw(200_000, rng)
        self.rates = {world: (p * outcome(world, p, area)).sum(0) / p.sum(0) for world in WORLDS}

    def draw(self, n: int, rng: np.random.Generator):
        """Group, P(group | surname, area), shares of the groups in the area, and race."""
        cell = rng.choice(self.joint.size, n, p=self.joint.ravel())
        area, race = cell // len(RACES), cell % len(RACES)
        surname = np.empty(n, dtype=int)
        for r in range(len(RACES)):
            mine = np.flatnonzero(race == r)
            surname[mine] = rng.choice(len(self.given), len(mine), p=self.given[:, r])
        p, shares = self.given[surname] * self.joint[area], self.joint[area]
        return np.minimum(race, 3), _four(p), _four(shares), race


def _four(p: np.ndarray) -> np.ndarray:
    p = p / p.sum(1, keepdims=True)
    return np.column_stack([p[:, :3], p[:, 3:].sum(1)])


def outcome(world: str, p: np.ndarray, area: np.ndarray) -> np.ndarray:
    """P(favourable | group, surname, area), (n, 4)."""
    rates = np.full(4, 0.6) if world == "no gap" else np.array([0.6, 0.45, 0.5, 0.6])
    chance = np.tile(rates, (len(p), 1))
    if world == "group and place":
        chance = 1 / (1 + np.exp(-(np.log(rates / (1 - rates)) - 1.5 * (area[:, [1]] - 0.15))))
    if world == "names too":
        # Black people with names that few white people have are treated worse still.
        chance[:, 1] -= 0.25 * (p[:, 1] - 0.5)
        chance[:, 0] += 0.2 * p[:, 1]
    if world == "worst case":
        # As far apart as probabilities and outcomes allow: every refusal falls on black people first, none on white.
        q = np.where(p[:, 1] > 0.3, 0.4, 0.7)
        black = np.maximum(0.0, p[:, 1] + q - 1) / np.maximum(p[:, 1], 1e-12)
        white = np.minimum(q, p[:, 0]) / np.maximum(p[:, 0], 1e-12)
        left = (q - black * p[:, 1] - white * p[:, 0]) / np.maximum(p[:, 2] + p[:, 3], 1e-12)
        chance = np.column_stack([white, black, left, left])
    return np.clip(chance, 0.0, 1.0)


def _regions(rng: np.random.Generator) -> list[Region]:
    tables = names_race()
    # How many bear each surname is not in the tables: Zipf's law, then so that all surnames have the races of the nation.
    size = 1.0 / (1.0 + rng.permutation(len(tables.race_given_surname.values)))
    bearers = size[:, None] * tables.race_given_surname.chances
    for _ in range(20):
        bearers *= tables.race / (bearers.sum(0) / bearers.sum())
        bearers *= (size / np.maximum(bearers.sum(1), 1e-300))[:, None]
    return [Region(name, bearers, rng) for name in REGIONS]


def disparity(runs: int = 400, n: int = 2000, seed: int = 2026) -> None:
    rng = np.random.default_rng(seed)
    regions = _regions(rng)
    held: dict[str, dict[str, list[float]]] = {world: defaultdict(list) for world in WORLDS}
    for run in range(runs):
        region = regions[run % len(regions)]
        group, p, area, _ = region.draw(n, rng)
        given = replace(lw.group_probabilities(pd.DataFrame(p, columns=list(GROUPS))), area=area)
        known = np.full(n, None, object)
        sample = rng.choice(n, n // 10, replace=False)
        known[sample] = GROUPS[group[sample]]
        draws = rng.uniform(size=n)
        for world in WORLDS:
            truth, seen = float(region.rates[world][1] - region.rates[world][0]), held[world]
            decided = (draws < outcome(world, p, area)[np.arange(n), group]).astype(int)
            found = lw.disparity_bounds(decided, given, reference="white", known=known)
            gap = found.figure("black", "difference")
            seen["true gap"].append(truth)
            for name in ("weighted", "corrected", "known"):
                one = getattr(gap, name)
                seen[f"{name}: bias"].append(one.value - truth)
                seen[f"{name}: interval holds"].append(one.low <= truth <= one.high)
                seen[f"{name}: width"].append(one.high - one.low)
            seen["bounds hold"].append(gap.low <= truth <= gap.high)
            seen["bounds with sampling error hold"].append(gap.outer_low <= truth <= gap.outer_high)
            seen["bounds: width"].append(gap.high - gap.low)
            seen["bounds with sampling error: width"].append(gap.outer_high - gap.outer_low)
            seen["failure of the assumption said"].append(
                any("does not hold" in one for one in found.findings)
            )
            seen["misfit of the probabilities said"].append(
                any("do not fit" in one for one in found.findings)
            )
        if (run + 1) % 50 == 0 or run + 1 == runs:
            means = {w: {name: np.mean(values) for name, values in held[w].items()} for w in WORLDS}
            print(
                f"{run + 1} runs of {n:,} people in {len(regions)} regions, gap black minus white, a tenth known"
            )
            print(pd.DataFrame(means).round(4).to_string(), flush=True)


def known(runs: int = 1000, n: int = 2000, seed: int = 1) -> None:
    """Coverage of the rates from known people, of black people and compared with white people; rare outcomes as well."""
    rng = np.random.default_rng(seed)
    regions = _regions(rng)
    held = defaultdict(list)
    for run in range(runs):
        region = regions[run % len(regions)]
        group, p, area, _ = region.draw(n, rng)
        rows, draws = rng.permutation(n), rng.uniform(size=n)
        for world, part, number in product(WORLDS, (1.0, 0.05), (100, 200, 600)):
            rates = part * region.rates[world][[1, 0]]
            happened = draws < part * outcome(world, p, area)[np.arange(n), group]
            told = rows[:number]
            found = known_rates(Events(happened * 1.0, np.ones(n)), p, group[told], told)
            if np.isfinite(found.values[:2]).all():
                held[world, part, number].append(_estimated(found, tuple(rates), (1, 0)))
    for (world, part, number), seen in held.items():
        if len(seen) >= runs / 4:
            holds, width = np.moveaxis(np.array(seen, float), -1, 0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                means = [
                    f"{a:.3f} ({b:.3f})"
                    for a, b in zip(np.nanmean(holds, axis=0), width.mean(0), strict=True)
                ]
            kind = "rare" if part < 1 else "common"
            print(f"{world}, {kind}, {number} known, {len(seen)} runs:", *means, flush=True)


# How the chance of the small group is distributed, given its share: told by most names, by some, and hardly by any.
TOLD = {
    "well": lambda share: (0.3 * share, 0.3 * (1 - share)),
    "partly": lambda share: (0.4, 0.4 * (1 / share - 1)),
    "hardly": lambda share: (2.0, 2.0 * (1 / share - 1)),
}
# Rates of the small group and of the others.
PAIRS = [(0.5, 0.5), (0.03, 0.03), (0.001, 0.001), (0.2, 0.6), (0.95, 0.5), (0.03, 0.003)]


SIZES = (2, 4, 6, 10, 20, 50)
KINDS = ("rate", "rate of the others", "difference", "ratio")


def intervals(runs: int = 400, seed: int = 0, out: str = "") -> None:
    """Coverage and width of every interval; 300 people, half of whom are counted, as in a true positive rate."""
    rng = np.random.default_rng(seed)
    n, rows = 300, []
    for told, pair, size in product(TOLD, PAIRS, SIZES):
        shape = TOLD[told](2 * size / n)
        people = rng.beta(*shape, 200_000)
        chance = people * pair[0] + (1 - people) * pair[1]
        by_name = people @ chance / people.sum(), (1 - people) @ chance / (1 - people).sum()
        held = defaultdict(list)
        for _ in range(runs):
            p = rng.beta(*shape, n)
            counted = (rng.uniform(size=n) < 0.5) * 1.0
            both = np.column_stack([p, 1 - p])
            # The outcome depends on the group alone, as the corrected rates assume, or on the name alone, as the weighted.
            for by, rates in (("group", pair), ("name", by_name)):
                first = (rng.uniform(size=n) < p) * 1.0 if by == "group" else p
                happened = rng.uniform(size=n) < first * pair[0] + (1 - first) * pair[1]
                events = Events(happened * counted, counted)
                if by == "group":
                    held["bounds"].append(_bounds(events, both, rates))
                    held["corrected"].append(_estimated(IndependentNames(events, both, None).rates(), rates))
                else:
                    held["weighted"].append(_estimated(weighted_rates(events, both), rates))
        for name, seen in held.items():
            holds, width = np.moveaxis(np.array(seen, float), -1, 0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                means = np.nanmean(holds, axis=0), np.nanmean(width, axis=0)
            given = np.isfinite(holds).sum(axis=0)
            rows += [(told, pair, size, name, *row) for row in zip(KINDS, given, *means, strict=True)]
    found = pd.DataFrame(
        rows, columns=["told", "rates", "counted", "interval", "of", "given", "holds", "width"]
    )
    if out:
        found.to_csv(out, index=False)
    shown = found[found["given"] >= runs / 4].groupby(["interval", "of", "counted"])
    print(
        shown.agg(least=("holds", "min"), mean=("holds", "mean"), width=("width", "mean"))
        .round(3)
        .to_string()
    )


def _estimated(
    found: Rates, rates: tuple[float, float], groups: tuple[int, int] = (0, 1)
) -> list[tuple[float, float]]:
    measures = (
        *(found.rate(group, 0.95) for group in groups),
        found.difference(*groups, 0.95),
        found.ratio(*groups, 0.95),
    )
    return _held([(one.low, one.high) for one in measures], rates)


def _bounds(events: Events, p: np.ndarray, rates: tuple[float, float]) -> list[tuple[float, float]]:
    ends = rate_bounds(events, p, confidence=0.975)
    (low, low_), (high, high_) = ends.outer_low, ends.outer_high
    ratio = low / high_, high / low_ if low_ > 0 else np.inf
    return _held([(low, high), (low_, high_), (low - high_, high - low_), ratio], rates)


def _held(limits: list[tuple[float, float]], rates: tuple[float, float]) -> list[tuple[float, float]]:
    """Whether each interval holds the truth, NaN if there is none, and its width."""
    truths = (*rates, rates[0] - rates[1], rates[0] / rates[1])
    return [
        (np.nan if np.isnan(low) else low - 1e-9 <= truth <= high + 1e-9, high - low)
        for truth, (low, high) in zip(truths, limits, strict=True)
    ]


def voters(path: str) -> None:
    table = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=["nan"])
    race = table["race"].replace({"hisp": "hispanic", "aian": "native", "other": "multiple"})
    given = lw.group_probabilities(table, "bisg:last_name,zip")
    print(given)
    true = (table["turnout"] == "yes").groupby(race).mean()
    print("true gap black − white:", round(float(true["black"] - true["white"]), 4))
    rng = np.random.default_rng(0)
    known = race.where(pd.Series(rng.uniform(size=len(race)) < 0.1), None)
    for one, labels in ((given, None), (given, known), (given.calibrated(known), known)):
        found = lw.disparity_bounds(table["turnout"], one, favourable="yes", known=labels)
        shown = found.table.query("kind == 'difference' and group in ('black', 'hispanic')")
        print(one.how, *found.findings, sep="\n  ")
        print(shown.drop(columns=["measure", "four_fifths"]).round(3).to_string())


def adult(splits: int = 3) -> None:
    """SenSR for a sex that nobody recorded: its column is taken out, first names are drawn by it from the census."""
    names = sex_given_first_name()
    for split in range(splits):
        data = lw.datasets.load_adult(split)
        frame, sex = data.frame.drop(columns="sex"), data.frame["sex"].to_numpy()
        rng = np.random.default_rng(split)
        drawn = np.empty(len(frame), dtype=object)
        for column, word in enumerate(("Female", "Male")):
            mine = np.flatnonzero(sex == word)
            share = names.chances[:, column] / names.chances[:, column].sum()
            drawn[mine] = names.values.to_numpy()[rng.choice(len(names.values), len(mine), p=share)]
        given = lw.group_probabilities(pd.DataFrame({"first": drawn}), "sex:first").table
        train, test = data.train_index, data.test_index
        X, y = frame.iloc[train], data.y[train]
        learners = {
            "told": lw.AttributeSubspace().fit(X, sensitive_features=sex[train]),
            "by names": lw.AttributeSubspace(kind="probabilities").fit(
                X, sensitive_features=given.iloc[train]
            ),
        }
        models = {"baseline": lw.MLPBaselineClassifier(random_state=0).fit(X, y)}
        for name, learner in learners.items():
            models[name] = lw.SenSRClassifier(learner.metric_, random_state=0).fit(X, y)
        swapped = frame.iloc[test].copy()
        swapped["relationship"] = swapped["relationship"].replace({"Husband": "Wife", "Wife": "Husband"})
        for name, model in models.items():
            decided = model.predict(frame.iloc[test])
            gap = lw.group_gaps(data.y[test], decided, sex[test]).rms
            same = float(np.mean(decided == model.predict(swapped)))
            right = lw.evaluation.balanced_accuracy(data.y[test], decided)
            print(
                f"split {split} {name}: B-Acc {right:.3f}, spouse consistency {same:.3f}, Gap RMS {gap:.3f}",
                flush=True,
            )


def planted(seed: int, n: int = 2000, differ: float = 0.8, men: float = 0.5):
    """A table, its sex and a model that reads two of five columns that differ by it and one that does not."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[1 - men, men])
    shift = differ * (sex == "m")
    X = pd.DataFrame({name: rng.normal(size=n) for name in ("both", "carries", "moves", "nothing")})
    X["both"] += shift
    X["carries"] += shift
    X["town"] = np.where(
        rng.uniform(size=n) < 0.3 + shift / 2, "a", np.where(rng.uniform(size=n) < 0.5, "b", "c")
    )
    return X, sex, lambda X: (X["both"] + X["moves"] + 0.8 * (X["town"] == "a") > 0.8).astype(int)


PLANTED = {"both": "proxy", "carries": "carries", "moves": "used", "nothing": "neither", "town": "proxy"}


def worlds(runs: int = 100) -> None:
    right = 0
    for seed in range(runs):
        X, sex, model = planted(seed)
        found = {one.name: one.verdict for one in lw.proxy_test(model, X, sex, pairs=0).columns}
        right += found == PLANTED
        if found != PLANTED:
            print(seed, found)
    print(f"all five columns named right in {right} of {runs} worlds of 2,000 people")


def columns(runs: int = 400, n: int = 300) -> None:
    """How often intervals of the proxy test hold the mean over samples of this size, and, of what columns move, the population's.

    A column is needed for labels of which a tenth is dealt out by chance, in the last world alone.
    """
    for differ, men, names in (
        *((differ, men, ("carries", "moves")) for men, differ in product((0.5, 0.15), (0.0, 0.2, 0.8))),
        (0.2, 0.5, ("needed",)),
    ):
        needed = "needed" in names
        asked = {
            "columns": ["both", "nothing"] if needed else ["both", "town", "moves", "nothing"],
            "pairs": 0,
        }
        everybody, sex, model = planted(runs, 50_000, differ, men)
        whole = lw.proxy_test(model, everybody, sex, **asked)
        seen = defaultdict(list)
        for seed in range(runs):
            X, sex, model = planted(seed, n, differ, men)
            rng = np.random.default_rng(seed)
            y = np.where(rng.uniform(size=n) < 0.1, rng.integers(0, 2, n), model(X)) if needed else None
            for one in lw.proxy_test(model, X, sex, y=y, **asked).columns:
                for name in names:
                    found = getattr(one, name)
                    seen[one.name, name].append((found.value, found.low, found.high))
        moved = {one.name: one.moves.value * (differ > 0) for one in whole.columns}
        for (column, name), values in seen.items():
            value, low, high = np.array(values).T
            truths = {"the mean": value.mean()}
            if name == "moves":
                truths["the population's"] = moved[column]
            held = [
                f"holds {what} {np.mean((low <= true) & (true <= high)):.3f} ({true:.3f})"
                for what, true in truths.items()
            ]
            width = f"width {np.mean(high - low):.3f}"
            print(f"differ {differ}, {men:.0%} men: {column} {name}", *held, width, sep=", ", flush=True)


def tables(adult: str, compas: str) -> None:
    """Adult with sex hidden and COMPAS with race hidden, as boosted trees that never saw the attribute decide."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    data = lw.datasets.load_adult()
    frame = data.frame.drop(columns=["sex", "race"])
    people = pd.read_csv(compas)
    people = people[people["race"].isin(["African-American", "Caucasian", "Hispanic"])].reset_index(drop=True)
    used = [
        "age",
        "juv_fel_count",
        "juv_misd_count",
        "juv_other_count",
        "priors_count",
        "c_charge_degree",
        "sex",
    ]
    cases = {
        adult: (frame, data.frame["sex"].to_numpy(), data.y),
        "COMPAS, race hidden": (people[used], people["race"].to_numpy(), people["two_year_recid"].to_numpy()),
    }
    for name, (X, attribute, y) in cases.items():
        words = make_column_selector(dtype_exclude="number")
        encode = make_column_transformer(
            (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), words),
            remainder="passthrough",
        )
        model = make_pipeline(encode, HistGradientBoostingClassifier(random_state=0)).fit(X, y)
        begun = time.process_time()
        found = lw.proxy_test(model, X, attribute, y=y)
        spent = time.process_time() - begun
        print(f"{name}: {len(X):,} people, {spent:.0f} CPU-s", found, sep="\n", flush=True)


if __name__ == "__main__":
    word, rest = sys.argv[1], sys.argv[2:]
    {
        "adult": lambda: adult(*map(int, rest)),
        "columns": lambda: columns(*map(int, rest)),
        "intervals": lambda: intervals(
            *(convert(one) for convert, one in zip((int, int, str), rest, strict=False))
        ),
        "known": lambda: known(*map(int, rest)),
        "disparity": lambda: disparity(*map(int, rest)),
        "voters": lambda: voters(rest[0]),
        "worlds": lambda: worlds(*map(int, rest)),
        "tables": lambda: tables("Adult, sex hidden", rest[0]),
    }[word]()
