import numpy as np
import pytest
import torch

from likewise.data.encoded_set import _sorting_network, project_simplex, project_simplex_columns


@pytest.mark.parametrize("k", [1, 2, 3, 7, 14, 32, 33, 60])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_three_ways_agree(k, dtype):
    X = np.random.default_rng(k).normal(size=(40, 2, k)).astype(dtype)
    by_sort = project_simplex(X)
    columns = np.ascontiguousarray(np.moveaxis(X, 0, -1))
    project_simplex_columns(columns)
    tolerance = 20 * k * np.finfo(dtype).eps
    assert by_sort.dtype == columns.dtype == dtype
    np.testing.assert_allclose(np.moveaxis(columns, -1, 0), by_sort, atol=tolerance)
    np.testing.assert_allclose(project_simplex(torch.from_numpy(X)).numpy(), by_sort, atol=tolerance)
    np.testing.assert_allclose(by_sort.sum(axis=-1), 1.0, atol=tolerance)
    assert by_sort.min() >= 0


@pytest.mark.parametrize("k", range(1, 13))
def test_network_sorts(k):
    # By the 0-1 principle a network that sorts every vector of zeros and ones sorts everything.
    bits = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    for i, j in _sorting_network(k):
        bits[:, i], bits[:, j] = np.maximum(bits[:, i], bits[:, j]), np.minimum(bits[:, i], bits[:, j])
    assert (np.diff(bits, axis=1) <= 0).all()


def test_vertices_stay_exactly():
    for X in (np.eye(5), torch.eye(5)):
        assert (project_simplex(X) == X).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_never_made_sound(bad):
    X = np.array([[0.2, bad, 0.1], [0.2, 0.3, 0.5]])
    columns = X.T.copy()
    with np.errstate(invalid="ignore"):
        project_simplex_columns(columns)
        results = project_simplex(X), project_simplex(torch.from_numpy(X)).numpy(), columns.T
    for result in results:
        assert np.isnan(result[0]).any()
        np.testing.assert_allclose(result[1], X[1])


def test_gradient_flows_through_torch():
    X = torch.tensor([[0.9, 0.4, -3.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(project_simplex, X)
