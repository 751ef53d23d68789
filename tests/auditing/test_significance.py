"""Tests of losses and flips: formulas, edges, errors. Calibration is in tests/reference."""

import numpy as np
import pytest
from scipy import stats

from likewise.auditing.inference.significance import (
    direction_test,
    flip_share_test,
    gap_test,
    loss_ratio_test,
)
from likewise.core.errors import InputError


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_gap_equals_a_paired_t_test(rng):
    before, after = rng.exponential(size=40), rng.exponential(size=40) + 0.3
    found = gap_test(before, after, threshold=0.1, resolution=0.0)
    expected = stats.ttest_1samp(after - before, 0.1, alternative="greater")
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    two_sided = stats.ttest_1samp(after - before, 0.0).confidence_interval(0.95)
    assert found.interval == pytest.approx((two_sided.low, two_sided.high))
    assert found.n == 40


def test_mean_ratio_is_the_mean_of_ratios(rng):
    before, after = rng.exponential(size=30) + 0.1, rng.exponential(size=30) + 0.5
    found = loss_ratio_test(before, after, threshold=1.5, resolution=0.0)
    expected = stats.ttest_1samp(after / before, 1.5, alternative="greater")
    assert found.estimate == pytest.approx((after / before).mean())
    assert found.p_value == pytest.approx(expected.pvalue)


def test_ratio_of_means_by_the_delta_method(rng):
    before = rng.exponential(size=4000)
    after = 1.4 * before + rng.exponential(size=4000) * 0.2
    found = loss_ratio_test(before, after, statistic="ratio_of_means", threshold=1.0)
    assert found.estimate == pytest.approx(after.mean() / before.mean())
    picks = rng.integers(0, 4000, size=(600, 4000))
    spread = np.std(after[picks].mean(1) / before[picks].mean(1))
    half = (found.interval[1] - found.interval[0]) / 2
    assert half == pytest.approx(1.96 * spread, rel=0.15)


@pytest.mark.parametrize("statistic", ["mean_ratio", "ratio_of_means"])
def test_an_exactly_invariant_model_has_p_value_one(statistic):
    losses = np.array([0.0, 0.3, 1e-12, 5.0])
    found = loss_ratio_test(losses, losses, threshold=1.0, statistic=statistic)
    assert found.p_value == 1.0
    assert found.interval == pytest.approx((1.0, 1.0))
    assert not found.rejected
    same = gap_test(losses, losses)
    assert (same.p_value, same.statistic) == (1.0, 0.0)


def test_rounding_is_no_evidence(rng):
    """A search that keeps the best of many iterates never goes down, so its rounding is all upwards."""
    before = rng.exponential(size=500).astype(np.float32)
    after = before * (1 + rng.uniform(0, 2e-7, size=500).astype(np.float32))
    assert not gap_test(before, after).rejected
    assert not loss_ratio_test(before, after, threshold=1.0).rejected
    assert gap_test(before, after, resolution=0.0).rejected  # it would be taken for evidence without


def test_ten_equal_gains_are_no_certainty():
    """Each of ten gains 1; if half of all people gained nothing, that happens with a probability of 0.5¹⁰."""
    before = np.full(10, 1.0)
    assert gap_test(before, before + 1.0, threshold=0.5, resolution=0.0).p_value == pytest.approx(0.5**10)
    assert gap_test(before, before + 1.0, threshold=1.5).p_value == 1.0
    assert loss_ratio_test(before, before + 1.0, threshold=1.5).p_value == 0.0


class TestRareGains:
    """Gains that are never negative: Gaffke's p-value and limits instead of Student's."""

    def test_of_two_values_it_is_the_exact_binomial_test(self):
        for harmed, n, size, share in [(1, 20, 0.3, 0.01), (3, 20, 2.0, 0.05), (25, 500, 0.7, 0.04)]:
            after = np.where(np.arange(n) < harmed, size, 0.0)
            found = gap_test(np.zeros(n), after, threshold=share * size, ceiling=size)
            exact = stats.binomtest(harmed, n, share, alternative="greater")
            assert found.p_value == pytest.approx(exact.pvalue, rel=1e-9)
            both = stats.binomtest(harmed, n).proportion_ci(0.95)
            assert found.interval == pytest.approx((size * both.low, size * both.high), rel=1e-8)
            assert found.about == "population"

    def test_none_seen_is_not_none(self):
        found = gap_test(np.ones(60), np.ones(60), threshold=0.01, ceiling=2.0)
        assert found.p_value == 1.0
        assert found.interval == pytest.approx((0.0, 2.0 * (1 - 0.025 ** (1 / 60))))

    def test_without_a_ceiling_the_upper_end_is_open(self):
        found = gap_test(np.ones(60), np.ones(60))
        assert found.interval == (0.0, np.inf)
        assert "to infinity" in str(found)

    def test_losses_that_fall_are_left_to_student(self, rng):
        before, after = rng.exponential(size=40), rng.exponential(size=40)
        assert gap_test(before, after).method == "Student's t"
        assert gap_test(before, np.maximum(before, after)).method != "Student's t"

    def test_the_p_value_is_the_level_at_which_the_lower_end_is_the_threshold(self, rng):
        gains = rng.exponential(size=80) * (rng.random(80) < 0.2)
        low = gap_test(np.zeros(80), gains, ceiling=9.0, confidence=0.9).interval[0]
        assert gap_test(np.zeros(80), gains, threshold=low).p_value == pytest.approx(0.05, abs=1e-9)
        alone = gap_test(np.zeros(80), gains, confidence=0.9).interval[0]
        assert gap_test(np.zeros(80), gains, threshold=alone).p_value == pytest.approx(0.1, abs=1e-9)


def test_skewness_correction_moves_both_ends_towards_the_long_tail(rng):
    before = np.ones(60)
    after = np.exp(rng.normal(size=60))
    plain = loss_ratio_test(before, after)
    corrected = loss_ratio_test(before, after, skewness_corrected=True)
    assert corrected.interval[0] > plain.interval[0]
    assert corrected.interval[1] > plain.interval[1]
    assert "Hall" in corrected.method


def test_corrected_interval_and_p_value_agree(rng):
    before, after = np.ones(80), np.exp(rng.normal(size=80))
    first = loss_ratio_test(before, after, skewness_corrected=True, confidence=0.9, resolution=0.0)
    at_the_end = loss_ratio_test(
        before, after, threshold=first.interval[0], skewness_corrected=True, resolution=0.0
    )
    assert at_the_end.p_value == pytest.approx(0.05, abs=1e-9)


class TestFlips:
    def test_share_equals_scipy(self):
        for flips, n, threshold in [(0, 20, 0.1), (7, 50, 0.05), (50, 50, 0.9), (3, 1000, 0.003)]:
            found = flip_share_test(flips, n, threshold=threshold)
            expected = stats.binomtest(flips, n, threshold, alternative="greater")
            assert found.p_value == pytest.approx(expected.pvalue)
            interval = stats.binomtest(flips, n).proportion_ci(0.95)
            assert found.interval == pytest.approx((interval.low, interval.high))

    def test_any_flip_refutes_none_at_all(self):
        assert flip_share_test(1, 10**6).rejected
        assert not flip_share_test(0, 10**6).rejected

    def test_direction_equals_scipy(self):
        for harmed, favoured in [(0, 5), (5, 5), (12, 2), (1, 0), (40, 22)]:
            n = harmed + favoured
            assert direction_test(harmed, favoured).p_value == pytest.approx(
                stats.binomtest(harmed, n, 0.5).pvalue
            )
            assert direction_test(harmed, favoured, two_sided=False).p_value == pytest.approx(
                stats.binomtest(harmed, n, 0.5, alternative="greater").pvalue
            )

    def test_no_flips_say_nothing(self):
        found = direction_test(0, 0)
        assert (found.p_value, found.interval, found.n) == (1.0, (0.0, 1.0), 0)

    def test_bad_input_is_named(self):
        with pytest.raises(InputError, match="'flips' must be at most n"):
            flip_share_test(5, 4)
        with pytest.raises(InputError, match="whole number"):
            flip_share_test(1.5, 4)
        with pytest.raises(InputError, match="'harmed'"):
            direction_test(-1, 4)


def test_bad_losses_are_named():
    with pytest.raises(InputError, match="diverged"):
        gap_test([0.1, 0.2], [0.1, np.nan])
    with pytest.raises(InputError, match="ratio is infinite"):
        loss_ratio_test([0.0, 1.0], [0.5, 1.0])
    with pytest.raises(InputError, match="lengths differ"):
        gap_test([0.1, 0.2], [0.1])
    with pytest.raises(InputError, match="at least two"):
        gap_test([0.2], [0.1])  # a loss that fell: its mean is tested by its variance
    with pytest.raises(InputError, match="every loss before is 0"):
        loss_ratio_test([0.0, 0.0], [0.0, 0.0], statistic="ratio_of_means")
    with pytest.raises(InputError, match="'statistic'"):
        loss_ratio_test([1.0, 2.0], [1.0, 2.0], statistic="median")
    with pytest.raises(InputError, match="'confidence'"):
        gap_test([1.0, 2.0], [1.0, 2.0], confidence=95)
