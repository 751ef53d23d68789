"""The exact audit of linear models against brute force that shares no code with it."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize, minimize_scalar
from scipy.special import logsumexp

from likewise.auditing.bounds.linear.model import LinearModel
from likewise.auditing.bounds.linear.search import exact_dual
from likewise.auditing.bounds.linear.supremum import exact_supremum
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, DataRangeDomain
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis


def random_metric(rng, d, kind):
    if kind == "euclidean":
        return euclidean(d)
    if kind == "mahalanobis":
        root = rng.normal(size=(d, d))
        return mahalanobis(root @ root.T / d)
    if kind == "low rank":
        root = rng.normal(size=(d, d - 1))
        return mahalanobis(root @ root.T / d)
    subspace = Subspace.from_directions(rng.normal(size=(max(d - 2, 1), d)))
    return FairMetric.from_subspace(subspace, weight=kind)


def dense_dual(margin, kappa, eps, near):
    """λ by scipy, the inner supremum by a dense grid of moves and golden sections."""

    def value(log_lam):
        lam = np.exp(log_lam)
        grid = np.linspace(0.0, kappa / (2 * lam), 1201)
        table = np.logaddexp(0.0, grid - margin[:, None]) - lam * grid**2 / kappa
        best = table.argmax(1)
        low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, len(grid) - 1)]
        for _ in range(42):
            a, b = low + 0.381966 * (high - low), low + 0.618034 * (high - low)
            fa, fb = (np.logaddexp(0.0, t - margin) - lam * t**2 / kappa for t in (a, b))
            low, high = np.where(fa > fb, low, a), np.where(fa > fb, b, high)
        t = (low + high) / 2
        inner = np.maximum(np.logaddexp(0.0, t - margin) - lam * t**2 / kappa, table.max(1))
        return lam * eps + inner.mean()

    window = (np.log(near) - 2.0, np.log(near) + 2.0)
    return minimize_scalar(value, bounds=window, method="bounded", options={"xatol": 1e-9}).fun


@pytest.mark.parametrize("seed", range(20))
def test_logistic_regression_without_a_box_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 7)), 9
    metric = random_metric(rng, d, ["euclidean", "mahalanobis", 0.01, 0.3][seed % 4])
    w, b = rng.normal(size=d) * 10 ** rng.uniform(-0.5, 0.7), rng.normal()
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, size=n)
    margin = (2 * y - 1) * (X @ w + b)
    kappa = float(w @ np.linalg.pinv(metric.sigma()) @ w)
    for eps in (1e-4, 1e-2, 0.1, 1.0, 10.0):
        found = exact_dual(LinearModel(w, b), X, y, metric=metric, eps=eps, tol=1e-10)
        assert found.exact
        assert found.lower <= found.value
        expected = dense_dual(margin, kappa, eps, found.lam)
        assert found.value == pytest.approx(expected, rel=1e-8, abs=1e-8)


def brute_force_in_box(model, x, label, metric, lam, lower, upper):
    """Dense grid, then a local solver from the best points."""
    points = 121 if len(x) == 2 else 31
    axes = [np.linspace(low, high, points) for low, high in zip(lower, upper, strict=True)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    sigma = metric.sigma()

    def objective(z):
        z = np.atleast_2d(z)
        return model.losses(z, np.full(len(z), label)) - lam * np.einsum("nd,de,ne->n", z - x, sigma, z - x)

    values = objective(grid)
    if model.loss == "zero_one":
        return values.max()
    best = values.max()
    for start in grid[np.argsort(-values)[:4]]:
        bounds = list(zip(lower, upper, strict=True))
        found = minimize(
            lambda z: -objective(z)[0], start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15}
        )
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("loss", ["cross_entropy", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["euclidean", "mahalanobis", "low rank", 0.0, 0.1])
def test_supremum_in_a_box_equals_brute_force(loss, n_classes, kind):
    rng = np.random.default_rng([n_classes, len(str(kind))])
    for d in (2, 3):
        metric = random_metric(rng, d, kind)
        model = LinearModel(2 * rng.normal(size=(n_classes, d)), rng.normal(size=n_classes), loss=loss)
        lower, upper = -1 - rng.random(d), 1 + rng.random(d)
        X, y = rng.uniform(lower, upper, size=(2, d)), rng.integers(0, n_classes, size=2)
        for lam in (0.0, 0.05, 1.0):
            found = exact_supremum(model, X, y, metric=metric, lam=lam, domain=BoxDomain(lower, upper))
            assert found.exact.all()
            assert (found.value >= found.attained - 1e-12).all()
            for i in range(2):
                expected = brute_force_in_box(model, X[i], y[i], metric, lam, lower, upper)
                assert found.value[i] >= expected - 1e-9
                assert found.value[i] == pytest.approx(expected, abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("kind", ["euclidean", "low rank", 0.0, 0.1])
def test_least_cost_of_another_decision_equals_a_solver(kind):
    rng = np.random.default_rng(3)
    d = 5
    metric = random_metric(rng, d, kind)
    model = LinearModel(rng.normal(size=d), 0.2, loss="zero_one")
    lower, upper = -np.ones(d), np.ones(d)
    X = rng.uniform(lower, upper, size=(12, d))
    y = (X @ model.coef[1] + 0.2 > 0).astype(int)
    sigma, lam = metric.sigma(), 0.2
    found = exact_supremum(model, X, y, metric=metric, lam=lam, domain=BoxDomain(lower, upper))
    assert found.exact.all()
    assert (model.losses(found.x, y) == found.loss).all()
    for i in range(len(X)):
        gain = (1 - 2 * y[i]) * model.coef[1]
        need = -(gain @ X[i] + (1 - 2 * y[i]) * 0.2)
        solver = minimize(
            lambda z, x: (z - x) @ sigma @ (z - x),
            X[i],
            args=(X[i],),
            jac=lambda z, x: 2 * sigma @ (z - x),
            bounds=list(zip(lower, upper, strict=True)),
            constraints={
                "type": "ineq",
                "fun": lambda z, g, x, m: g @ (z - x) - m,
                "args": (gain, X[i], need),
            },
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        )
        reachable = gain @ (np.sign(gain) - X[i]) >= need
        if reachable:
            assert gain @ (solver.x - X[i]) >= need - 1e-8
        expected = max(0.0, 1 - lam * solver.fun) if reachable else 0.0
        assert found.value[i] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("lam", [0.02, 0.2, 5.0])
def test_softmax_without_a_box_equals_a_dense_simplex(lam):
    rng = np.random.default_rng(7)
    d, n_classes = 4, 3
    metric = random_metric(rng, d, 0.2)
    model = LinearModel(rng.normal(size=(n_classes, d)), rng.normal(size=n_classes))
    X, y = rng.normal(size=(5, d)), rng.integers(0, n_classes, size=5)
    found = exact_supremum(model, X, y, metric=metric, lam=lam)
    assert found.exact.all()
    steps = np.linspace(0, 1, 401)
    first, second = (axis.ravel() for axis in np.meshgrid(steps, steps))
    simplex = np.stack([first, second, 1 - first - second], axis=1)[first + second <= 1]
    inverse = np.linalg.pinv(metric.sigma())
    for i in range(len(X)):
        rows = model.coef - model.coef[y[i]]
        start = rows @ X[i] + model.intercept - model.intercept[y[i]]

        def value(x, i=i, rows=rows, start=start):
            return logsumexp(start + rows @ (x - X[i])) - lam * (x - X[i]) @ metric.sigma() @ (x - X[i])

        moves = simplex @ rows @ inverse / (2 * lam)
        costs = np.einsum("nd,de,ne->n", moves, metric.sigma(), moves)
        reached = logsumexp(start + moves @ rows.T, axis=1) - lam * costs
        best = reached.max()
        for at in np.argsort(-reached)[:3]:
            local = minimize(lambda x: -value(x), X[i] + moves[at], method="BFGS", options={"gtol": 1e-9})
            best = max(best, -local.fun)
        assert found.value[i] == pytest.approx(best, abs=1e-6, rel=1e-6)
        assert found.value[i] >= best - 1e-9


def test_zero_one_value_is_the_fractional_knapsack():
    rng = np.random.default_rng(5)
    X, w = rng.normal(size=(40, 3)), rng.normal(size=3)
    y = rng.integers(0, 2, size=40)
    model = LinearModel(w, 0.1, loss="zero_one")
    margin = (2 * y - 1) * (X @ w + 0.1)
    costs = np.where(margin > 0, margin**2 / (w @ w), 0.0)
    for eps in (0.01, 0.1, 0.5, 100.0):
        # max Σ share_i / n subject to Σ share_i cost_i / n ≤ ε, as a linear programme.
        lp = linprog(-1.0 * (margin > 0) / 40, A_ub=[costs / 40], b_ub=[eps], bounds=(0, 1))
        found = exact_dual(model, X, y, metric=euclidean(), eps=eps)
        assert found.value == pytest.approx((margin <= 0).mean() - lp.fun, abs=1e-8)
        assert found.lower == pytest.approx(found.value, abs=1e-7)


def test_moves_that_cost_nothing_equal_a_linear_programme():
    rng = np.random.default_rng(2)
    d = 6
    subspace = Subspace.from_directions(rng.normal(size=(3, d)))
    metric = FairMetric.from_subspace(subspace)
    box = BoxDomain(-np.ones(d), np.ones(d))
    X = rng.uniform(-1, 1, size=(25, d))
    X[:5, 0] = 1.0  # on the border of the box
    y = rng.integers(0, 2, size=25)
    w = rng.normal(size=d)
    found = exact_dual(LinearModel(w, 0.0), X, y, metric=metric, domain=box, eps=0.0)
    expected = []
    for x, label in zip(X, y, strict=True):
        sign = 2 * label - 1
        lp = linprog(
            sign * subspace.basis.T @ w,
            A_ub=np.vstack([subspace.basis, -subspace.basis]),
            b_ub=np.concatenate([1 - x, 1 + x]),
            bounds=(None, None),
        )
        expected.append(np.logaddexp(0.0, -(sign * w @ x + lp.fun)))
    assert found.exact
    assert found.value == pytest.approx(np.mean(expected), abs=1e-7)
    assert found.lower == pytest.approx(np.mean(expected), abs=1e-6)


def test_data_range_has_a_closed_form_when_the_subspace_is_free():
    rng = np.random.default_rng(4)
    d = 5
    subspace = Subspace.from_directions(rng.normal(size=(2, d)))
    metric = FairMetric.from_subspace(subspace)
    X, y, w = rng.normal(size=(15, d)), rng.integers(0, 2, size=15), rng.normal(size=d)
    domain = DataRangeDomain.from_data(X, subspace)
    sign = 2 * y - 1
    along = subspace.basis.T @ w
    inside = X @ subspace.basis
    ends = np.where(
        sign[:, None] * along > 0, np.asarray(domain.lower) - inside, np.asarray(domain.upper) - inside
    )
    margin = sign * (X @ w + ends @ along)  # as low as the free moves bring it
    outside = w - subspace.basis @ along
    found = exact_supremum(LinearModel(w, 0.0), X, y, metric=metric, lam=0.3, domain=domain)
    kappa = outside @ outside
    moves = np.linspace(0, kappa / 0.6, 200_001)
    expected = [(np.logaddexp(0.0, moves - m) - 0.3 * moves**2 / kappa).max() for m in margin]
    assert found.exact.all()
    np.testing.assert_allclose(found.value, expected, rtol=1e-7)
