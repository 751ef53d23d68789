"""Limits of the mean of gains: Clopper and Pearson's where they apply, valid by enumeration, conservative elsewhere."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from likewise.auditing.inference.intervals import (
    dirichlet_mean_tails,
    mean_at_most_p_value,
    mean_lower_limit,
    mean_upper_limit,
)
from likewise.core.errors import InputError
from likewise.core.exact_sum import Moments


class TestDirichletMean:
    @pytest.mark.parametrize(
        ("n", "count", "q"),
        [
            (20, 0, 0.1),
            (20, 3, 0.01),
            (500, 25, 0.1),
            (10**9, 10**6, 0.0010002),
            (100, 99, 0.2),
            (20, 1, 1e-6),
        ],
    )
    def test_of_two_values_it_is_a_beta_distribution(self, n, count, q):
        """Small tails keep their digits: one of these is 1e-70."""
        found = dirichlet_mean_tails([0.0, 1.0], [n - count, count + 1.0], q)
        beta = stats.beta(count + 1, n - count)
        assert found == pytest.approx((beta.cdf(q), beta.sf(q)), rel=1e-6, abs=0.0)

    def test_against_random_weights(self):
        rng = np.random.default_rng(0)
        values, weights = [0.0, 0.3, 2.0, 27.0], [19.0, 3.5, 1.0, 1.0]
        means = rng.dirichlet(weights, size=200_000) @ values
        for q in np.quantile(means, [0.02, 0.3, 0.5, 0.9, 0.98]):
            below = dirichlet_mean_tails(values, weights, q)[0]
            assert below == pytest.approx((means <= q).mean(), abs=5 * np.sqrt(0.25 / 200_000))

    def test_outside_of_the_values(self):
        assert dirichlet_mean_tails([1.0, 2.0], [3.0, 4.0], 1.0) == (0.0, 1.0)
        assert dirichlet_mean_tails([1.0, 2.0], [3.0, 4.0], 2.0) == (1.0, 0.0)


def gains_of(counts, values):
    return Moments.of(np.repeat(values, counts))


@pytest.mark.parametrize(("harmed", "n"), [(0, 20), (1, 20), (3, 20), (20, 20), (25, 500)])
def test_of_two_values_they_are_clopper_and_pearsons(harmed, n):
    found = gains_of([n - harmed, harmed], [0.0, 3.0])
    expected = stats.binomtest(harmed, n).proportion_ci(0.95)
    assert mean_lower_limit(found, level=0.975) == pytest.approx(3.0 * expected.low, rel=1e-9)
    assert mean_upper_limit(found, 3.0, level=0.975) == pytest.approx(3.0 * expected.high, rel=1e-9)


@pytest.mark.parametrize("n", [20, 100, 10_000])
def test_none_seen_is_the_rule_of_three(n):
    none = Moments.of(np.zeros(n))
    assert mean_lower_limit(none, level=0.95) == 0.0
    assert mean_upper_limit(none, 5.0, level=0.95) == pytest.approx(5.0 * (1 - 0.05 ** (1 / n)))
    assert mean_upper_limit(none, 5.0, level=0.95) == pytest.approx(5.0 * 3.0 / n, rel=0.08)
    assert mean_upper_limit(none, None, level=0.95) == mean_upper_limit(none, np.inf, level=0.95) == np.inf


def test_many_people_give_students_interval():
    gains = np.random.default_rng(0).exponential(size=200_000) * 0.1
    low, high = stats.t.interval(0.95, len(gains) - 1, loc=gains.mean(), scale=stats.sem(gains))
    found = Moments.of(gains)
    half = (high - low) / 2
    assert mean_lower_limit(found, level=0.975) == pytest.approx(low, abs=0.03 * half)
    assert mean_upper_limit(found, 3.0, level=0.975) == pytest.approx(high, abs=0.06 * half)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.2, 0.5, 0.9, 1.0]), min_size=2, max_size=25))
def test_never_inside_gaffkes_limits_of_all_numbers(values):
    """The sums stand for the sample that makes the tail largest, to a hair: a bound of the bound, not the bound."""
    found, weights = Moments.of(values), [1.0] * len(values)
    low = mean_lower_limit(found, level=0.975)
    high = mean_upper_limit(found, 2.0, level=0.975)
    assert low <= found.mean <= high
    assert dirichlet_mean_tails([*values, 0.0], [*weights, 1.0], low)[0] <= 0.025 * 1.03 or low == 0.0
    assert dirichlet_mean_tails([*values, 2.0], [*weights, 1.0], high)[1] <= 0.025 * 1.03


@pytest.mark.parametrize("middle", [0.05, 0.3, 0.7])
def test_valid_by_enumeration_over_three_values(middle):
    """Every sample of 7 from {0, middle, 1} with its probability, for every mixture on a grid: both ends hold."""
    n, values, level = 7, np.array([0.0, middle, 1.0]), 0.95
    counts = [(n - b - c, b, c) for b, c in itertools.product(range(n + 1), repeat=2) if b + c <= n]
    limits = [
        (mean_lower_limit(found, level=level), mean_upper_limit(found, 1.0, level=level))
        for found in (gains_of(count, values) for count in counts)
    ]
    low, high = np.array(limits).T
    for b, c in itertools.product(np.linspace(0.0, 1.0, 21), repeat=2):
        if b + c > 1.0 + 1e-12:
            continue
        share = np.array([max(0.0, 1.0 - b - c), b, c])
        probability, mean = stats.multinomial.pmf(counts, n, share / share.sum()), share @ values
        assert probability[low <= mean + 1e-9].sum() >= level - 1e-9
        assert probability[high >= mean - 1e-9].sum() >= level - 1e-9


def test_the_p_value_turns_the_lower_limit_round():
    gains = np.random.default_rng(1).exponential(size=50) * (np.arange(50) < 6)
    found = Moments.of(gains)
    for level in (0.6, 0.95, 0.999):
        low = mean_lower_limit(found, level=level)
        assert mean_at_most_p_value(found, low) == pytest.approx(1.0 - level, rel=1e-9)
    assert mean_at_most_p_value(found, 100.0) == 1.0
    assert mean_at_most_p_value(found, -0.1) == 0.0
    assert mean_at_most_p_value(Moments.of(np.zeros(5)), 0.0) == 1.0


def test_bad_input_is_named():
    with pytest.raises(InputError, match="never negative"):
        mean_lower_limit(Moments.of([-0.1, 0.2]), level=0.95)
    with pytest.raises(InputError, match=r"0\.2 exceeds the 'ceiling' of 0\.1"):
        mean_upper_limit(Moments.of([0.0, 0.2]), 0.1, level=0.95)
    with pytest.raises(InputError, match="no numbers"):
        mean_at_most_p_value(Moments(), 0.1)
    with pytest.raises(InputError, match="'level'"):
        mean_lower_limit(Moments.of([0.1]), level=1.0)
