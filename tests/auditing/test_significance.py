"""The test of the gap: exact for two values, honest about what was not seen, deaf to rounding."""

import numpy as np
import pytest
from scipy import stats

from likewise.auditing.inference.intervals import gap_test
from likewise.core.errors import InputError
from likewise.core.exact_sum import Moments


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def added(before, after, *, threshold=0.0, confidence=0.95, ceiling=None):
    losses, gains = Moments.of(before), Moments.of(np.asarray(after) - before)
    return gap_test(losses, gains, threshold=threshold, confidence=confidence, ceiling=ceiling)


def test_an_exactly_invariant_model_has_p_value_one():
    losses = np.array([0.0, 0.3, 1e-12, 5.0])
    assert (added(losses, losses).p_value, added(losses, losses).statistic) == (1.0, 0.0)


def test_rounding_is_no_evidence(rng):
    """A search that keeps the best of many iterates never goes down, so its rounding is all upwards."""
    before = rng.exponential(size=500).astype(np.float32)
    after = before * (1 + rng.uniform(0, 2e-7, size=500).astype(np.float32))
    assert not added(before, after).rejected


def test_ten_equal_gains_are_no_certainty():
    """Each of ten gains 1; if half of all people gained nothing, that happens with a probability of 0.5¹⁰."""
    before = np.full(10, 1.0)
    assert added(before, before + 1.0, threshold=0.5).p_value == pytest.approx(0.5**10, rel=1e-4)
    assert added(before, before + 1.0, threshold=1.5).p_value == 1.0


class TestRareGains:
    """Gains that are never negative: Gaffke's p-value and limits instead of Student's."""

    def test_of_two_values_it_is_the_exact_binomial_test(self):
        for harmed, n, size, share in [(1, 20, 0.3, 0.01), (3, 20, 2.0, 0.05), (25, 500, 0.7, 0.04)]:
            after = np.where(np.arange(n) < harmed, size, 0.0)
            found = added(np.zeros(n), after, threshold=share * size, ceiling=size)
            exact = stats.binomtest(harmed, n, share, alternative="greater")
            assert found.p_value == pytest.approx(exact.pvalue, rel=1e-9)
            both = stats.binomtest(harmed, n).proportion_ci(0.95)
            assert found.interval == pytest.approx((size * both.low, size * both.high), rel=1e-8)
            assert found.about == "population"

    def test_none_seen_is_not_none(self):
        found = added(np.ones(60), np.ones(60), threshold=0.01, ceiling=2.0)
        assert found.p_value == 1.0
        assert found.interval == pytest.approx((0.0, 2.0 * (1 - 0.025 ** (1 / 60))))

    def test_without_a_ceiling_the_upper_end_is_open(self):
        found = added(np.ones(60), np.ones(60))
        assert found.interval == (0.0, np.inf)
        assert "to infinity" in str(found)

    def test_losses_that_fall_are_refused(self):
        with pytest.raises(InputError, match="never negative"):
            added(np.ones(3), np.array([1.0, 0.5, 2.0]))

    def test_the_p_value_is_the_level_at_which_the_lower_end_is_the_threshold(self, rng):
        gains = rng.exponential(size=80) * (rng.random(80) < 0.2)
        low = added(np.zeros(80), gains, ceiling=9.0, confidence=0.9).interval[0]
        assert added(np.zeros(80), gains, threshold=low).p_value == pytest.approx(0.05, abs=1e-9)
        alone = added(np.zeros(80), gains, confidence=0.9).interval[0]
        assert added(np.zeros(80), gains, threshold=alone).p_value == pytest.approx(0.1, abs=1e-9)
