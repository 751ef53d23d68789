"""Comparable real people: the nearest by brute force, assignments against the optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.counterfactuals import MatchedTwins, matched as module
from likewise.counterfactuals.matched import assign


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"sex": rng.choice(["F", "M"], 80), "a": rng.normal(size=80), "b": rng.normal(size=80)}
    )


@pytest.mark.parametrize("k", [1, 3])
def test_comparators_are_the_nearest_people_of_the_other_group(people, k):
    metric = lw.ExpertSubspace(["sex"])
    maker = MatchedTwins("sex", metric=metric, k=k).fit(people)
    made = maker.make(people)
    distance = maker.metric_.pairwise(people)
    other = people["sex"].to_numpy()[:, None] != people["sex"].to_numpy()
    distance = np.where(other, distance, np.inf)
    for i in range(len(people)):
        best = np.sort(distance[i])[:k]
        found = [v for v in range(len(made.tables)) if not made.own[v, i]]
        assert len(found) == k
        np.testing.assert_allclose(
            sorted(maker.distance_[v, i] ** 2 for v in found), best, rtol=1e-6, atol=1e-9
        )
        for v in found:
            assert made.tables[v]["sex"][i] != people["sex"][i]


def test_without_replacement_nobody_is_taken_twice_and_who_is_left_over_is_said(people):
    made = (maker := MatchedTwins("sex", replace=False).fit(people)).make(people)
    for row in maker.matched_:
        taken = row[row >= 0]
        assert len(set(taken)) == len(taken)
    fewer, more = sorted(people["sex"].value_counts())
    ((why, mask),) = made.why_not.items()
    assert str(why) == "no comparable person is left"
    assert int(mask.sum()) == more - fewer


def test_small_assignments_are_optimal_and_large_ones_take_everybody(monkeypatch):
    rng = np.random.default_rng(1)
    rows, others = rng.normal(size=(4, 2)), rng.normal(size=(6, 2))
    index, squared = assign(rows, others)
    cost = ((rows[:, None] - others) ** 2).sum(axis=2)
    best = min(sum(cost[i, p[i]] for i in range(4)) for p in itertools.permutations(range(6), 4))
    assert squared.sum() == pytest.approx(best)
    monkeypatch.setattr(module, "_EXACT", 0)
    many, few = rng.normal(size=(90, 2)), rng.normal(size=(60, 2))
    index, squared = assign(many, few)
    assert sorted(index[index >= 0]) == list(range(60))
    nearest = ((many[:, None] - few) ** 2).sum(axis=2)
    assert squared[index >= 0].min() == pytest.approx(nearest.min())


def test_nobody_beyond_the_largest_distance_is_comparable(people):
    maker = MatchedTwins("sex", max_distance=0.2).fit(people)
    made = maker.make(people)
    far = (maker.distance_ > 0.2) & ~made.own
    assert far.any()
    assert (made.usable == ~far).all()


def test_bad_choices_say_why(people):
    with pytest.raises(lw.InputError, match="fewer than k = 70"):
        MatchedTwins("sex", k=70).fit(people)
    with pytest.raises(lw.InputError, match="Call fit"):
        MatchedTwins("sex").make(people)
