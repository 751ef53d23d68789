"""The limit by betting covers as often as it says, whatever is drawn, with and without replacement."""

import numpy as np
import pytest

from likewise.auditing.inference.intervals import betting_upper_limit
from likewise.core.errors import InputError


def rare(rng, n):
    return 5.0 * (rng.random(n) < 0.02)


def even(rng, n):
    return rng.uniform(0.0, 5.0, n)


def two_sizes(rng, n):
    return np.where(rng.random(n) < 0.3, 0.2 * rng.random(n), 5.0 * (rng.random(n) < 0.01))


@pytest.mark.parametrize(("draw", "mean"), [(rare, 0.1), (even, 2.5), (two_sizes, 0.065)])
@pytest.mark.parametrize("n", [20, 200])
def test_covers_independent_draws(draw, mean, n):
    rng = np.random.default_rng(0)
    limits = [betting_upper_limit(draw(rng, n), 5.0, pilot=draw(rng, 30), level=0.9) for _ in range(250)]
    # 250 times 90%: with fewer than 208 the level would not hold (p < 0.0005).
    assert sum(limit >= mean for limit in limits) >= 208


def test_covers_a_sample_of_a_table_without_replacement():
    rng = np.random.default_rng(1)
    table = two_sizes(rng, 400)
    hits = 0
    for _ in range(250):
        order = rng.permutation(400)
        limit = betting_upper_limit(table[order[30:230]], 5.0, pilot=table[order[:30]], level=0.9)
        hits += limit >= table[order[30:]].mean()
    assert hits >= 208


def test_is_short_where_nothing_is_seen_and_where_much_is():
    zeros = betting_upper_limit(np.zeros(500), 10.0, pilot=np.zeros(40))
    assert 10.0 * (1 - 0.05 ** (1 / 500)) <= zeros < 10.0 * 3.3 / 500
    seen = np.random.default_rng(2).uniform(0, 1, 2000)
    assert seen.mean() < betting_upper_limit(seen[50:], 1.0, pilot=seen[:50]) < seen.mean() + 0.018


def test_never_leaves_the_range():
    assert betting_upper_limit([3.0, 3.0], 3.0, pilot=[0.0]) == 3.0
    assert betting_upper_limit([1.0], 3.0, pilot=[]) <= 3.0
    assert betting_upper_limit([0.0], 0.0, pilot=[0.0]) == 0.0


@pytest.mark.parametrize(
    ("values", "ceiling", "level", "match"),
    [
        ([], 1.0, 0.9, "'values' is empty"),
        ([2.0], 1.0, 0.9, "outside"),
        ([-0.1], 1.0, 0.9, "outside"),
        ([0.5], 1.0, 1.0, "level"),
    ],
)
def test_refuses(values, ceiling, level, match):
    with pytest.raises(InputError, match=match):
        betting_upper_limit(values, ceiling, pilot=[0.0], level=level)
