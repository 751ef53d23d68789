"""Must hold for every fair metric: the explicit quadratic form, a pseudo-metric, numpy and torch alike."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from likewise.core.subspace import Subspace
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis


@st.composite
def metrics(draw):
    """A metric of any kind, with the random generator that made it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 7))
    kind = draw(st.sampled_from(["euclidean", "subspace", "mahalanobis", "general", "union"]))
    if kind == "euclidean":
        return euclidean(d), rng
    if kind == "mahalanobis":
        root = rng.normal(size=(draw(st.integers(1, d)), d))
        return mahalanobis(root.T @ root), rng
    k = draw(st.integers(0, d))
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :k]
    if kind == "general":
        return FairMetric(rng.uniform(0.1, 3), basis, rng.uniform(-0.1, 5, size=k)), rng
    weight = draw(st.sampled_from([0.0, 1e-3, 0.5, 1.0]))
    metric = FairMetric.from_subspace(Subspace(basis), weight)
    if kind == "union":
        other = Subspace.from_directions(rng.normal(size=(draw(st.integers(0, 2)), d)))
        return metric | FairMetric.from_subspace(other, draw(st.sampled_from([0.0, 0.25]))), rng
    return metric, rng


@given(metrics())
@settings(max_examples=150, deadline=None)
def test_equals_the_explicit_quadratic_form(case):
    metric, rng = case
    a, b = (rng.normal(scale=3, size=(5, metric.n_features)) for _ in range(2))
    delta = a - b
    explicit = np.einsum("nd,de,ne->n", delta, metric.sigma(), delta)
    np.testing.assert_allclose(metric.squared_distance(a, b), explicit, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.diag(metric.pairwise(a, b)), explicit, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(metric.apply(delta), delta @ metric.sigma(), atol=1e-10)


@given(metrics())
@settings(max_examples=100, deadline=None)
def test_is_a_pseudo_metric(case):
    metric, rng = case
    a, b, c = (rng.normal(scale=3, size=(4, metric.n_features)) for _ in range(3))
    ab, bc, ac = (np.sqrt(metric.squared_distance(*pair)) for pair in ((a, b), (b, c), (a, c)))
    assert (ab >= 0).all()
    np.testing.assert_array_equal(ab, np.sqrt(metric.squared_distance(b, a)))
    assert (metric.squared_distance(a, a) == 0).all()
    assert (ac <= ab + bc + 1e-10).all()
    free = metric.null_space
    inside = a + rng.normal(scale=10, size=(4, free.dim)) @ free.basis.T
    assert (metric.squared_distance(a, inside) < 1e-24).all()


@given(metrics())
@settings(max_examples=100, deadline=None)
def test_solve_is_the_pseudo_inverse(case):
    metric, rng = case
    g = rng.normal(size=(3, metric.n_features))
    sigma = metric.sigma()
    np.testing.assert_allclose(metric.apply(metric.solve(metric.apply(g))), metric.apply(g), atol=1e-8)
    if np.linalg.cond(sigma) < 1e6 or metric.null_space.dim:
        free = metric.null_space
        assert np.abs(free.coordinates(metric.solve(g))).max(initial=0.0) < 1e-8
    eigenvalues = np.linalg.eigvalsh(sigma)
    positive = eigenvalues[eigenvalues > 1e-9]
    if positive.size and positive.min() > 1e-4:
        np.testing.assert_allclose(metric.solve(g), g @ np.linalg.pinv(sigma, rcond=1e-9), atol=1e-6)


@given(metrics(), st.sampled_from([torch.float64, torch.float32]))
@settings(max_examples=60, deadline=None)
def test_numpy_and_torch_agree(case, dtype):
    metric, rng = case
    a, b = (rng.normal(size=(4, metric.n_features)) for _ in range(2))
    ta, tb = (torch.tensor(x, dtype=dtype) for x in (a, b))
    tolerance = 1e-12 if dtype == torch.float64 else 2e-4
    for name in ("squared_distance", "pairwise"):
        expected, got = getattr(metric, name)(a, b), getattr(metric, name)(ta, tb)
        assert got.dtype == dtype
        np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance * 10)
        single = getattr(metric, name)(a.astype(np.float32), b.astype(np.float32))
        assert single.dtype == np.float32


@given(metrics())
@settings(max_examples=40, deadline=None)
def test_embedding_has_the_same_distances(case):
    metric, rng = case
    a, b = (rng.normal(size=(4, metric.n_features)) for _ in range(2))
    plain = ((metric.embed(a) - metric.embed(b)) ** 2).sum(1)
    np.testing.assert_allclose(plain, metric.squared_distance(a, b), rtol=1e-9, atol=1e-9)


@given(metrics())
@settings(max_examples=40, deadline=None)
def test_torch_gradient_is_twice_sigma_delta(case):
    metric, rng = case
    a = torch.tensor(rng.normal(size=(3, metric.n_features)), requires_grad=True)
    b = torch.tensor(rng.normal(size=(3, metric.n_features)))
    metric.squared_distance(a, b).sum().backward()
    torch.testing.assert_close(a.grad, 2 * metric.apply((a - b).detach()))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_close_pairs_keep_their_digits(dtype):
    """All pairs by one matrix product lose the digits of near twins; a twin at distance 1e-3 must stay there."""
    rng = np.random.default_rng(0)
    x = (100 + rng.normal(size=(50, 5))).astype(dtype)
    twins = x.copy()
    twins[:, 0] += dtype(2**-10)
    got = np.diag(euclidean().pairwise(x, twins))
    expected = euclidean().squared_distance(x, twins)
    np.testing.assert_allclose(got, expected, rtol=2e-2 if dtype == np.float32 else 1e-7)
    metric = FairMetric.from_subspace(Subspace(np.eye(5)[:, :1]))
    assert np.diag(metric.pairwise(x, twins)).max() < (1e-24 if dtype == np.float64 else 1e-9)
