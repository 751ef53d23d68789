"""Moments of parts: to the bit those of the whole, in every order."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from likewise.core.exact_sum import Moments


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12), st.sampled_from([1.0, 0.05]))
def test_any_split_in_any_order_gives_the_same_bits(random, parts, share):
    rng = np.random.default_rng(random.randrange(2**32))
    values = rng.lognormal(0.0, 5.0, size=60) * (rng.random(60) < share)
    pieces = np.split(rng.permutation(values), np.sort(rng.integers(0, 61, size=parts - 1)))
    random.shuffle(pieces)
    total = Moments()
    for piece in pieces:
        total = Moments.of(piece).merge(total) if random.random() < 0.5 else total.merge(Moments.of(piece))
    whole = Moments.of(values)
    assert total == whole
    assert (total.mean, total.std, total.absolute) == (whole.mean, whole.std, whole.absolute)


def test_equal_to_numpy():
    values = np.random.default_rng(0).normal(5.0, 0.1, 1000)
    found = Moments.of(values)
    assert found.std == pytest.approx(values.std(ddof=1), rel=1e-12)
    assert found.mean == pytest.approx(values.mean(), rel=1e-14)
    signed = Moments.of([-3.0, 0.0, 1.0])
    assert (signed.positives, signed.smallest, signed.largest) == (1, -3.0, 1.0)
    assert signed.absolute == pytest.approx(4 / 3)


def test_a_small_spread_about_a_large_mean_is_not_lost():
    values = 1e8 + np.array([0.0, 1e-6, 2e-6])
    assert Moments.of(values).std == pytest.approx(np.std(values - 1e8, ddof=1), rel=1e-12)


def test_of_nobody_and_of_one():
    assert (Moments().n, Moments().mean, Moments().absolute) == (0, 0.0, 0.0)
    assert Moments.of([]) == Moments() == Moments().merge(Moments())
    assert math.isnan(Moments.of([2.0]).std)
