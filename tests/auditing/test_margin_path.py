"""Two classes in a closed box: paths of margins against linear programmes, branch and bound, and each other."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from likewise.auditing.bounds.linear.margin import MarginSupremum, follow_margins
from likewise.auditing.bounds.linear.model import CostForm, LinearModel, Problem
from likewise.auditing.bounds.linear.search import exact_dual
from likewise.auditing.bounds.linear.supremum import exact_supremum, maximise_cross_entropy
from likewise.auditing.dual.finite_dual import Frontier, solve_dual
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, TabularDomain
from likewise.fair_metrics import FairMetric, euclidean

ALL_EPS = (0.0, 0.01, 0.1, 1.0)


def path_of(model, X, y, metric, box):
    problem = Problem.build(model, X, y, metric=metric, domain=box, owner="test")
    return problem, MarginSupremum(problem, np.arange(len(X)))


@pytest.mark.parametrize("seed", range(24))
def test_the_whole_path_is_certified(boxed_model, seed):
    _, known = path_of(*boxed_model(seed))
    path = known.path
    assert path.complete.all()
    assert (np.diff(path.theta, axis=0) <= 0).all()
    assert (np.diff(path.margin, axis=0) <= 1e-9).all()
    assert (path.slack <= 1e-9 * (1 + path.theta[:-1])).all()


@pytest.mark.parametrize("seed", range(1, 41, 4))
def test_moves_at_no_cost_solve_the_linear_programme(boxed_model, seed):
    """Oblique free subspaces: max gᵀQz with lower ≤ Qz ≤ upper."""
    model, X, y, metric, box = boxed_model(seed, n=8)
    problem, known = path_of(model, X, y, metric, box)
    most, delta = problem.response(np.arange(len(X)), known.gain, np.inf)
    Q = np.asarray(metric.null_space.basis)
    lower, upper = problem.box.lower, problem.box.upper
    for i, gain in enumerate(known.gain):
        right = np.concatenate([upper[i], -lower[i]])
        found = linprog(-gain @ Q, A_ub=np.vstack([Q, -Q]), b_ub=right, bounds=(None, None), method="highs")
        assert gain @ delta[i] == pytest.approx(-found.fun, abs=1e-7 * (1 - found.fun))
        assert most[i] == pytest.approx(-found.fun, abs=1e-7 * (1 - found.fun))
    assert (metric.squared_norm(delta) <= 1e-15 * (1 + (delta**2).sum(1))).all()
    assert (delta >= lower - 1e-8).all()
    assert (delta <= upper + 1e-8).all()


@pytest.mark.parametrize("seed", range(8))
def test_equals_branch_and_bound(boxed_model, seed):
    model, X, y, metric, box = boxed_model(seed, n=12)
    problem, known = path_of(model, X, y, metric, box)
    rows = np.arange(len(X))
    for lam in (1e-3, 0.05, 0.4, 3.0, 60.0):
        bound, delta = known.logistic(lam)
        other, _ = maximise_cross_entropy(problem, rows, lam, tol=1e-8, max_nodes=2000)
        np.testing.assert_allclose(bound, other, atol=1e-7, rtol=1e-7)
        reached = problem.losses(rows, delta) - lam * metric.squared_norm(delta)
        np.testing.assert_allclose(reached, bound, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("loss", ["hinge", "zero_one"])
@pytest.mark.parametrize("seed", range(4))
def test_other_losses_equal_the_solver_without_paths(boxed_model, loss, seed, monkeypatch):
    model, X, y, metric, box = boxed_model(seed, n=8, loss=loss)
    for lam in (0.0, 0.05, 1.0, 20.0, np.inf):
        along = exact_supremum(model, X, y, metric=metric, domain=box, lam=lam)
        with monkeypatch.context() as patch:
            patch.setattr(MarginSupremum, "serves", staticmethod(lambda problem: False))
            without = exact_supremum(model, X, y, metric=metric, domain=box, lam=lam)
        assert along.exact.all()
        np.testing.assert_allclose(along.value, without.value, atol=1e-7, rtol=1e-7)


def test_ties_bounds_and_columns_that_do_not_count():
    """Twin columns, people on their bounds, columns of no width and columns that the model ignores."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, size=(40, 8)).astype(float)
    X[:, 6] = 1.0
    y = rng.integers(0, 2, size=40)
    w = np.array([1.0, 1.0, 1.0, -2.0, -2.0, 0.0, 3.0, 0.0])
    box = BoxDomain.from_data(X, immutable=[2])
    directions = np.array(
        [[1.0, 1.0, 0, 0, 0, 0, 0, 0], [0, 0, 1.0, 1.0, 1.0, 1.0, 0, 0], [0, 0, 0, 0, 0, 1.0, 0, 1.0]]
    )
    for metric in (
        euclidean(8),
        FairMetric.from_subspace(Subspace.from_directions(directions)),
        FairMetric.from_subspace(Subspace.from_directions(directions), weight=0.1),
    ):
        problem, known = path_of(LinearModel(w, 0.3), X, y, metric, box)
        for lam in (0.02, 0.3, 5.0):
            bound, delta = known.logistic(lam)
            other, _ = maximise_cross_entropy(problem, np.arange(40), lam, tol=1e-8, max_nodes=2000)
            np.testing.assert_allclose(bound, other, atol=1e-7, rtol=1e-7)
            assert (delta[:, [2, 6]] == 0).all()
        assert exact_dual(LinearModel(w, 0.3), X, y, metric=metric, domain=box, eps=0.0).exact


def test_a_path_that_was_not_followed_to_its_end_claims_nothing(boxed_model, monkeypatch):
    model, X, y, metric, box = boxed_model(1, n=10)
    whole = exact_supremum(model, X, y, metric=metric, domain=box, lam=0.5, tol=1e-7)
    monkeypatch.setattr("likewise.auditing.bounds.linear.margin._most_vertices", lambda d, k: 2)
    _, known = path_of(model, X, y, metric, box)
    assert not known.complete.all()
    cut = exact_supremum(model, X, y, metric=metric, domain=box, lam=0.5, tol=1e-7)
    assert cut.exact.all()
    np.testing.assert_allclose(cut.value, whole.value, atol=1e-6)


def test_rows_do_not_depend_on_each_other(boxed_model):
    model, X, y, metric, box = boxed_model(3)
    together = exact_supremum(model, X, y, metric=metric, domain=box, lam=0.2)
    for i in (0, 7, 29):
        alone = exact_supremum(model, X[i : i + 1], y[i : i + 1], metric=metric, domain=box, lam=0.2)
        assert alone.value[0] == pytest.approx(together.value[i], rel=1e-12)


def test_one_coordinate_is_a_parabola_up_to_its_bound():
    form = CostForm(2.0, np.zeros((1, 0)), np.zeros(0))
    path = follow_margins(form, np.array([[3.0]]), np.array([[-1.0]]), np.array([[0.5]]))
    # c(t) = 2 (t/3)², so θ = 4t/9 until t = 1.5.
    assert path.margin[:, 0].tolist() == pytest.approx([1.5, 1.5, 0.0])
    assert path.theta[1:, 0].tolist() == pytest.approx([2 / 3, 0.0])
    assert path.cost[:, 0].tolist() == pytest.approx([0.5, 0.5, 0.0])


@pytest.mark.parametrize("seed", range(16))
def test_the_attaining_rows_are_a_support_with_the_exact_value(boxed_model, seed):
    """200 such models in benchmarks/search_quality.py."""
    model, X, y, metric, box = boxed_model(seed)
    for eps in ALL_EPS:
        dual = exact_dual(model, X, y, metric=metric, domain=box, eps=eps, tol=1e-6)
        assert dual.exact
        parts = dual.mixture
        row = np.concatenate([part.row for part in parts])
        x = np.concatenate([part.x for part in parts])
        squared = np.concatenate([part.squared_distance for part in parts])
        np.testing.assert_allclose(metric.squared_distance(X[row], x), squared, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            np.concatenate([part.loss for part in parts]), model.losses(x, y[row]), rtol=1e-9
        )
        frontier = Frontier.from_points(
            base_loss=model.losses(X, y),
            row=row,
            squared_distance=squared,
            loss=model.losses(x, y[row]),
            candidate=np.arange(len(row)),
        )
        assert solve_dual(frontier, eps).value == pytest.approx(dual.value, rel=1e-6)


def test_only_rows_of_the_domain_itself_attain():
    """A domain inside its box: people whose worst case is no row of the domain are left out."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"job": rng.choice(["a", "b", "c"], 60), "age": rng.integers(20, 60, 60)})
    domain = TabularDomain.from_frame(frame)
    X = np.asarray(domain.encode_array(frame), dtype=float)
    model = LinearModel(rng.normal(size=X.shape[1]), 0.0)
    dual = exact_dual(model, X, rng.integers(0, 2, 60), metric=euclidean(X.shape[1]), domain=domain, eps=0.5)
    for part in dual.mixture:
        assert np.asarray(domain.contains(part.x, origin=X[part.row])).all()
