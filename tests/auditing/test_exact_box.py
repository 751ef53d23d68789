"""The best move in a box: against a generic solver, and the honesty of its certificate."""

import numpy as np
import pytest
from scipy.optimize import minimize

from likewise.auditing.bounds.linear.model import BoxResponse, CostForm
from likewise.core.subspace import Subspace
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis


def metrics(rng, d):
    full, low = rng.normal(size=(d, d)), rng.normal(size=(d, d - 1))
    directions = Subspace.from_directions(rng.normal(size=(2, d)))
    return {
        "euclidean": euclidean(d),
        "free": FairMetric.from_subspace(directions),
        "cheap": FairMetric.from_subspace(directions, weight=0.05),
        "full": mahalanobis(full @ full.T),
        "low rank": mahalanobis(low @ low.T),
        "mixed": FairMetric(1.0, directions.basis, np.array([-0.7, 2.0])),
    }


@pytest.mark.parametrize("kind", ["euclidean", "free", "cheap", "full", "low rank", "mixed"])
def test_equals_a_generic_solver_and_certifies_itself(kind):
    rng = np.random.default_rng(1)
    for d in (3, 9):
        metric = metrics(rng, d)[kind]
        form = CostForm.from_metric(metric.scale, metric.basis, metric.values)
        sigma = metric.sigma()
        np.testing.assert_allclose(form.matrix, sigma, atol=1e-10)
        lower, upper = -rng.exponential(size=(25, d)), rng.exponential(size=(25, d))
        lower[:5, 0] = upper[:5, 1] = 0.0
        gain = rng.normal(size=(25, d)) * 10 ** rng.uniform(-1, 1.5, size=(25, 1))
        for lam in (1e-3, 1.0, 1e3):
            bound, delta = BoxResponse(form, lower, upper)(np.arange(25), gain, lam)
            assert (delta >= lower).all()
            assert (delta <= upper).all()
            value = (gain * delta).sum(1) - lam * metric.squared_norm(delta)
            assert (bound >= value - 1e-12 * (1 + abs(value))).all()
            assert (bound - value <= 1e-8 * (1 + abs(value))).all()
        bound, _ = BoxResponse(form, lower, upper)(np.arange(25), gain, 1.0)
        for i in range(4):
            found = minimize(
                lambda x, g, s: x @ s @ x - g @ x,
                np.zeros(d),
                args=(gain[i], sigma),
                jac=lambda x, g, s: 2 * s @ x - g,
                bounds=list(zip(lower[i], upper[i], strict=True)),
                method="L-BFGS-B",
                options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 10_000},
            )
            assert -found.fun <= bound[i] + 1e-10
            assert -found.fun == pytest.approx(bound[i], rel=1e-6)


def test_the_certificate_holds_at_a_point_that_is_not_the_best():
    """Bound minus objective is a valid gap at any point, not only where the solver stops."""
    rng = np.random.default_rng(2)
    d, lam = 5, 0.4
    metric = metrics(rng, d)["cheap"]
    form = CostForm.from_metric(metric.scale, metric.basis, metric.values)
    lower, upper = -np.ones((50, d)), np.ones((50, d))
    upper[:, 2] = np.inf
    box = BoxResponse(form, lower, upper)
    gain = rng.normal(size=(50, d))
    best, _ = box(np.arange(50), gain, lam)
    for _ in range(20):
        point = rng.uniform(-1, 1, size=(50, d))
        value = (gain * point).sum(1) - lam * metric.squared_norm(point)
        slope = gain - 2 * lam * metric.apply(point)
        gap = box._gap(slope, point, lam, lower, upper)
        assert (value + gap >= best - 1e-9).all()


def test_escapes_only_along_open_and_free_directions():
    form = CostForm.from_metric(1.0, np.eye(3)[:, :1], np.array([-1.0]))
    lower, upper = -np.ones((1, 3)), np.ones((1, 3))
    upper[0, :2] = np.inf
    box = BoxResponse(form, lower, upper)
    assert box.escapes(np.array([1.0, 0.0, 0.0]))
    assert not box.escapes(np.array([-1.0, 0.0, 0.0]))  # closed on that side
    assert not box.escapes(np.array([0.0, 1.0, 0.0]))  # open, but it costs
    assert box.escapes(np.array([0.0, 1.0, 0.0]), free_only=False)
    assert not box.escapes(np.array([0.0, 0.0, 1.0]), free_only=False)
