"""The parts of a boosting round against references: finite differences, the auditor's own dual, a linear program."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from likewise.auditing.dual.finite_dual import Frontier, steps_of
from likewise.training.boosting.growers import TreeGrower
from likewise.training.boosting.rounds import (
    BoostingPeople,
    GroupCells,
    NeighbourSupport,
    RobustGoal,
    boost,
    soft_gap,
    worst_case,
)


def cells_and_scores(n=60, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    groups = [rng.integers(2, size=n), rng.integers(-1, 3, size=n)]
    labels = rng.integers(n_classes, size=n)
    weight = rng.uniform(0.5, 2.0, size=n)
    return groups, labels, weight, rng.normal(size=(n, n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_penalty_has_the_gradient_of_finite_differences(n_classes):
    groups, labels, weight, scores = cells_and_scores(n_classes=n_classes)
    cells = GroupCells.of(groups, labels, weight, min_people=1)
    _, gradient, _ = soft_gap(scores, cells)
    step = 1e-6
    for i, c in np.ndindex(*scores.shape):
        up, down = scores.copy(), scores.copy()
        up[i, c] += step
        down[i, c] -= step
        slope = (soft_gap(up, cells)[0] - soft_gap(down, cells)[0]) / (2 * step)
        assert gradient[i, c] == pytest.approx(slope, abs=1e-8)


def test_for_two_groups_and_classes_it_is_the_squared_difference_of_mean_soft_decisions():
    _, labels, weight, scores = cells_and_scores()
    group = np.random.default_rng(5).integers(2, size=60)
    soft = 1 / (1 + np.exp(-3 * (scores[:, 1] - scores[:, 0])))
    expected = 0.0
    for label in (0, 1):
        means = [
            np.average(
                soft[(labels == label) & (group == g)], weights=weight[(labels == label) & (group == g)]
            )
            for g in (0, 1)
        ]
        expected += (means[0] - means[1]) ** 2
    assert soft_gap(scores, GroupCells.of([group], labels, weight, min_people=1))[0] == pytest.approx(
        expected
    )


def test_the_curvature_is_nowhere_below_the_gauss_newton_part():
    groups, labels, weight, scores = cells_and_scores(n=40)
    cells = GroupCells.of(groups, labels, weight, min_people=1)
    curvature = soft_gap(scores, cells)[2][:, 1]
    soft = 1 / (1 + np.exp(-3 * (scores[:, 1] - scores[:, 0])))
    slope = 3 * soft * (1 - soft)
    # m_c = A s_c, s_1 = 1 − s_0: the residuals of both columns move alike.
    jacobian = cells.centre.toarray() @ cells.average.toarray() * slope
    exact = 2 * 2 * jacobian.T @ jacobian
    assert np.linalg.eigvalsh(np.diag(curvature) - exact).min() > -1e-12


def test_small_cells_are_left_out():
    groups, labels = [np.array([0] * 30 + [1] * 30 + [2] * 3)], np.zeros(63, dtype=int)
    assert GroupCells.of(groups, labels, np.ones(63)).average.shape[0] == 2
    none = GroupCells.of([np.zeros(63, dtype=int)], labels, np.ones(63))
    value, gradient, curvature = soft_gap(np.ones((63, 2)), none)
    assert value == 0.0
    assert not gradient.any()
    assert not curvature.any()


def problem(seed, m=12, k=5, n_classes=2):
    rng = np.random.default_rng(seed)
    support = NeighbourSupport.of(rng.normal(size=(m, 2)), k)
    losses = rng.exponential(size=(m, n_classes))
    mass = rng.uniform(size=(m, n_classes)) * (rng.random((m, n_classes)) < 0.7)
    mass[0, 0] = 1.0
    return losses, mass, support


def by_frontier(losses, mass, support, eps):
    """The least of λε + mean ℓᶜ_λ, which is linear between the λ at which somebody changes: one row per node and label."""
    nodes, labels = np.nonzero(mass)
    reach = support.index[nodes]
    width = reach.shape[1] - 1
    frontier = Frontier.from_points(
        base_loss=losses[nodes, labels],
        row=np.repeat(np.arange(len(nodes)), width),
        squared_distance=support.squared_distance[nodes][:, 1:].ravel(),
        loss=losses[reach[:, 1:], labels[:, None]].ravel(),
        candidate=reach[:, 1:].ravel(),
    )
    slopes = steps_of(frontier).slope
    prices = [0.0, *slopes[np.isfinite(slopes)]]
    return min(
        price * eps + np.average(frontier.conjugate(price), weights=mass[nodes, labels]) for price in prices
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), eps=st.floats(0.0, 3.0), start=st.floats(1e-6, 1e6))
def test_the_worst_case_is_that_of_the_auditors_dual(seed, eps, start):
    losses, mass, support = problem(seed)
    worst = worst_case(losses, mass, support, eps, start=start)
    expected = by_frontier(losses, mass, support, eps)
    assert worst.value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert worst.mass.sum(axis=0) == pytest.approx(mass.sum(axis=0))
    assert (worst.mass >= -1e-15).all()
    assert (worst.mass * losses).sum() / mass.sum() == pytest.approx(worst.value, rel=1e-9)


def test_the_worst_case_is_that_of_a_linear_program():
    losses, mass, support = problem(3, m=6, k=3)
    share = mass / mass.sum()
    gain, cost, rows = [], [], []
    for node, label in zip(*np.nonzero(mass), strict=True):
        for goal, distance in zip(support.index[node], support.squared_distance[node], strict=True):
            gain.append(losses[goal, label])
            cost.append(distance)
            rows.append((node, label))
    people = sorted(set(rows))
    equal = np.array([[row == person for row in rows] for person in people], dtype=float)
    for eps in (0.05, 0.3, 5.0):
        best = linprog(-np.array(gain), A_ub=[cost], b_ub=[eps], A_eq=equal, b_eq=[share[p] for p in people])
        assert worst_case(losses, mass, support, eps).value == pytest.approx(-best.fun, rel=1e-8)


def test_at_no_budget_only_free_moves_are_made():
    places = np.array([[0.0], [0.0], [1.0]])
    support = NeighbourSupport.of(places, 2)
    losses = np.array([[0.0], [2.0], [9.0]])
    worst = worst_case(losses, np.ones((3, 1)), support, 0.0)
    assert worst.mass.ravel().tolist() == [0.0, 2.0, 1.0]
    assert worst.value == pytest.approx(13 / 3)


def test_one_node_has_nowhere_to_go():
    support = NeighbourSupport.of(np.zeros((1, 2)), 5)
    assert worst_case(np.array([[0.7]]), np.array([[2.0]]), support, 1.0).value == pytest.approx(0.7)


class OneNumberPerNode(TreeGrower):
    """A grower without trees: every node takes its own Newton step, so that the loop has an exact answer."""

    def __init__(self, n, rate=0.3):
        super().__init__(2)
        self.f, self.rate, self.grown = np.zeros(n), rate, 0

    def scores(self):
        return np.column_stack([np.zeros(len(self.f)), self.f])

    held_out_scores = scores

    def grow(self, gradient, hessian):
        self.f = self.f - self.rate * gradient[:, 1] / hessian[:, 1]
        self.grown += 1

    def ensemble(self, rounds):
        return rounds


def test_without_worst_case_and_penalty_the_rounds_find_the_log_odds():
    node = np.repeat([0, 1], 100)
    labels = np.array([1] * 80 + [0] * 20 + [1] * 30 + [0] * 70)
    people = BoostingPeople(node, labels, np.ones(200), 2, 2)
    grower = OneNumberPerNode(2)
    run = boost(grower, people, RobustGoal(), rounds=60)
    np.testing.assert_allclose(grower.f, np.log([4.0, 3 / 7]), atol=1e-6)
    assert run.rounds == 60
    assert (np.diff(run.train) <= 1e-12).all()


def test_with_a_budget_for_everything_both_places_get_one_answer():
    node = np.repeat([0, 1], 100)
    labels = np.array([1] * 80 + [0] * 20 + [1] * 30 + [0] * 70)
    support = NeighbourSupport.of(np.array([[0.0], [1.0]]), 1)
    people = BoostingPeople(node, labels, np.ones(200), 2, 2, support=support)
    grower = OneNumberPerNode(2, rate=0.05)
    run = boost(grower, people, RobustGoal(eps=1.0), rounds=600)
    # min over f of the worst of two places is attained where both are the same: the log-odds of everybody.
    # Steps of a fixed size circle around it; without the worst case the two are 2.2 apart.
    np.testing.assert_allclose(grower.f, np.log(110 / 90), atol=0.1)
    least = -(110 * np.log(0.55) + 90 * np.log(0.45)) / 200
    assert least - 1e-9 <= run.train[-1] <= least + 0.05


def test_the_penalty_brings_the_places_of_two_groups_together():
    node = np.repeat([0, 1], 100)
    labels = np.array([1] * 80 + [0] * 20 + [1] * 30 + [0] * 70)
    apart = {}
    for strength in (0.0, 30.0):
        cells = GroupCells.of([node], labels, np.ones(200)).at(node, 2)
        people = BoostingPeople(node, labels, np.ones(200), 2, 2, cells=cells)
        grower = OneNumberPerNode(2, rate=0.1)
        boost(grower, people, RobustGoal(penalty=strength), rounds=400)
        apart[strength] = abs(grower.f[0] - grower.f[1])
    assert apart[30.0] < 0.1 * apart[0.0]


def test_patience_ends_the_rounds():
    node, labels = np.arange(4) % 2, np.array([0, 1, 1, 0])
    people = BoostingPeople(node, labels, np.ones(4), 2, 2)
    # On those held out every step away from even odds is a loss.
    grower = OneNumberPerNode(2)
    other = BoostingPeople(np.array([0, 1]), np.array([1, 0]), np.ones(2), 2, 2)
    wrong = BoostingPeople(np.array([0, 1]), np.array([0, 1]), np.ones(2), 2, 2)
    run = boost(grower, wrong, RobustGoal(), rounds=50, held_out=other, patience=3)
    assert grower.grown == 3
    assert run.rounds == 1
    assert len(run.train) == 3
    assert len(boost(OneNumberPerNode(2), people, RobustGoal(), rounds=5).train) == 5
