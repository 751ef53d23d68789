"""Bounds of rates beside a linear program over the whole joint distribution, written apart from them."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from likewise.proxies.rates import Events, masses, rate_bounds


def extreme(joint, p, weight, numerator, denominator=None, sign=1.0):
    """Largest (sign 1) or least (−1) ratio of two linear functions of all joint distributions of level, state and group.

    joint: chances of the states at each level, (z, s); p: chances of the groups, (z, k); numerator, denominator: (s, k)
    weights of state and group. A linear-fractional program, by Charnes and Cooper: scaled so that the denominator is 1.
    """
    z, s, k = len(joint), joint.shape[1], p.shape[1]
    cells = list(itertools.product(range(z), range(s), range(k)))
    above = np.array([numerator[state, group] for _, state, group in cells])
    below = (
        np.zeros(len(cells)) if denominator is None else np.array([denominator[i, g] for _, i, g in cells])
    )
    rows, right = [], []
    for level in range(z):
        for state in range(s):
            rows.append(
                [float(c[0] == level and c[1] == state) for c in cells]
                + [-weight[level] * joint[level, state]]
            )
            right.append(0.0)
        for group in range(k):
            rows.append(
                [float(c[0] == level and c[2] == group) for c in cells] + [-weight[level] * p[level, group]]
            )
            right.append(0.0)
    rows.append([*below, 0.0] if denominator is not None else [0.0] * len(cells) + [1.0])
    right.append(1.0)
    found = linprog(-sign * np.append(above, 0.0), A_eq=rows, b_eq=right, bounds=(0, None), method="highs")
    return -sign * found.fun


def world(seed, groups, states):
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.ones(4))
    return rng.dirichlet(np.ones(states), 4), rng.dirichlet(np.full(groups, 0.6), 4), weight


def closed(joint, p, weight, a):
    """Ends of the rate of a group: happened is state 0, counted otherwise 1, not counted 2."""
    q, o = joint[:, 0], joint[:, 1]
    most, least_other = (weight @ part for part in masses(q, o, p[:, a], q, o))
    most_other, least = (weight @ part for part in masses(o, q, p[:, a], o, q))
    return least / (least + most_other), most / (most + least_other)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("states", [2, 3])
def test_the_ends_of_a_rate_are_those_of_the_linear_program(seed, groups, states):
    joint, p, weight = world(seed, groups, states)
    for a in range(groups):
        happened, counted = np.zeros((states, groups)), np.zeros((states, groups))
        happened[0, a] = counted[0, a] = counted[1, a] = 1.0
        low, high = closed(joint, p, weight, a)
        assert low == pytest.approx(extreme(joint, p, weight, happened, counted, -1.0), abs=1e-8)
        assert high == pytest.approx(extreme(joint, p, weight, happened, counted, 1.0), abs=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_two_groups_reach_opposite_ends_at_once(seed):
    joint, p, weight = world(seed, 3, 2)
    size = weight @ p
    ends = [closed(joint, p, weight, a) for a in range(3)]
    for a, b in itertools.permutations(range(3), 2):
        gap, ratio, base = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3))
        gap[0, a], gap[0, b] = 1 / size[a], -1 / size[b]
        assert ends[a][1] - ends[b][0] == pytest.approx(extreme(joint, p, weight, gap), abs=1e-8)
        ratio[0, a], base[0, b] = 1 / size[a], 1 / size[b]
        if ends[b][0] > 1e-9:
            assert ends[a][1] / ends[b][0] == pytest.approx(extreme(joint, p, weight, ratio, base), rel=1e-7)
        assert ends[a][0] / ends[b][1] == pytest.approx(
            extreme(joint, p, weight, ratio, base, -1.0), abs=1e-8
        )


@pytest.mark.parametrize("seed", range(4))
def test_two_groups_reach_opposite_ends_of_error_rates_at_once(seed):
    """One distribution has the largest rate of a and the least of b if not everybody is counted: masses are linear."""
    joint, p, weight = world(seed, 3, 3)
    q, o = joint[:, 0], joint[:, 1]
    for a, b in itertools.permutations(range(3), 2):
        goal = np.zeros((3, 3))
        goal[0, a], goal[1, a], goal[0, b], goal[1, b] = 1.0, -1.0, -1.0, 1.0
        most, least_other = masses(q, o, p[:, a], q, o)
        most_other, least = masses(o, q, p[:, b], o, q)
        mine = weight @ (most - least_other - least + most_other)
        assert mine == pytest.approx(extreme(joint, p, weight, goal), abs=1e-8)


@pytest.mark.parametrize("states", [2, 3])
def test_bounds_of_many_people_are_those_of_their_distribution(states):
    joint, p, weight = world(11, 3, states)
    counts = np.rint((weight + 0.25) * 20_000).astype(int)
    state = np.concatenate(
        [
            np.repeat(np.arange(states), np.diff(np.rint(np.r_[0, joint[z].cumsum()] * n).astype(int)))
            for z, n in enumerate(counts)
        ]
    )
    level = np.repeat(np.arange(4), counts)
    ends = rate_bounds(Events((state == 0) * 1.0, (state < 2) * 1.0), p[level], confidence=0.95)
    for a in range(3):
        low, high = closed(joint, p, counts / counts.sum(), a)
        assert ends.low[a] == pytest.approx(low, abs=2e-3)
        assert ends.high[a] == pytest.approx(high, abs=2e-3)
        assert ends.outer_low[a] <= ends.low[a] < ends.high[a] < ends.outer_high[a]


def test_people_of_unlike_names_do_not_pretend_to_a_point():
    """Everybody has a p of their own: bounds that took each person as a level would be the weighted estimate itself."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 1000)
    ends = rate_bounds(
        Events(rng.integers(0, 2, 1000) * 1.0, np.ones(1000)), np.c_[p, 1 - p], confidence=0.95
    )
    assert (ends.high - ends.low > 0.6).all()


def test_groups_that_are_known_leave_nothing_open_but_sampling_error():
    group, happened = np.arange(400) % 2, (np.arange(400) % 5 == 0) * 1.0
    ends = rate_bounds(Events(happened, np.ones(400)), np.eye(2)[group], confidence=0.95)
    np.testing.assert_allclose(ends.low, [0.2, 0.2], atol=1e-12)
    np.testing.assert_allclose(ends.high, [0.2, 0.2], atol=1e-12)
    assert 0.1 < ends.outer_low[0] < 0.2 < ends.outer_high[0] < 0.3


def test_a_group_that_nobody_may_be_of_has_any_rate():
    p = np.c_[np.zeros(60), np.ones(60)]
    ends = rate_bounds(Events(np.arange(60) % 2.0, np.ones(60)), p, confidence=0.95)
    assert (ends.low[0], ends.high[0]) == (0.0, 1.0)


def test_bounds_contain_what_happened_to_people_whose_groups_are_as_the_probabilities_say():
    rng = np.random.default_rng(0)
    sizes, inside = np.array([400, 20, 20, 50, 100, 400]), np.array([70, 3, 2, 8, 26, 0])
    p = np.repeat(inside / sizes, sizes)
    for near in range(20):
        decided = np.clip(
            np.array([333, 3, 2, 35, 18, 164]) + rng.integers(-near, near + 1, 6) // 10, 0, sizes
        )
        # Decisions go to those of the group first: its rate is the largest that can be.
        group, happened = (
            np.concatenate([np.arange(n) < few for n, few in zip(sizes, part, strict=True)])
            for part in (inside, decided)
        )
        order = rng.permutation(len(p))
        events = Events(happened[order] * 1.0, np.ones(len(p)))
        ends = rate_bounds(events, np.column_stack([p, 1 - p])[order], confidence=0.95)
        assert happened[group].mean() <= ends.high[0] + 1e-9
        assert happened[~group].mean() >= ends.low[1] - 1e-9
