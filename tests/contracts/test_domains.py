"""Every domain through one suite: what a search relies on, whatever the set."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, DataRangeDomain, TabularDomain, Unbounded

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, 300),
        "job": RNG.choice(list("abcdefg"), 300),
        "pay": RNG.normal(30.0, 5.0, 300),
        "town": RNG.choice(list("uvwxyz"), 300),
        "sex": RNG.choice(["Female", "Male"], 300),
        "kin": RNG.choice(list("ABCDEFG"), 300),
    }
)
TABLE = TabularDomain.from_frame(FRAME, immutable=["sex", "kin"])
WIDTH = TABLE.n_features
DATA = TABLE.encode_array(FRAME)
DOMAINS = {
    "unbounded": Unbounded(),
    "box": BoxDomain.from_data(DATA, immutable=[0, 3]),
    "data range": DataRangeDomain.from_data(DATA, Subspace.from_directions(RNG.normal(size=(3, WIDTH)))),
    "table": TABLE,
}


@pytest.fixture(params=DOMAINS, ids=lambda name: name.replace(" ", "_"))
def domain(request):
    return DOMAINS[request.param]


# Fewer rows and more rows than the size at which the table changes its way of working.
@pytest.fixture(params=[7, 900])
def rows(request):
    rng = np.random.default_rng(request.param)
    origin = DATA[rng.integers(len(DATA), size=request.param)]
    return origin + rng.normal(size=origin.shape), origin


@pytest.mark.parametrize("with_origin", [False, True])
def test_projection_lands_in_the_set_and_stays(domain, rows, with_origin):
    X, origin = rows[0], rows[1] if with_origin else None
    before = X.copy()
    projected = domain.project(X, origin)
    np.testing.assert_array_equal(X, before)
    assert projected.shape == X.shape
    assert domain.contains(projected, origin).all()
    np.testing.assert_allclose(domain.project(projected, origin), projected, atol=1e-12)
    lower, upper = domain.bounds()
    assert (projected >= lower - 1e-12).all()
    assert (projected <= upper + 1e-12).all()


def test_members_are_their_own_projection(domain):
    np.testing.assert_allclose(domain.project(DATA), DATA, atol=1e-12)
    assert domain.contains(DATA).all()


def test_projection_never_moves_two_rows_apart(domain, rows):
    X = rows[0]
    before = np.linalg.norm(X[1:] - X[:-1], axis=1)
    projected = domain.project(X)
    assert (np.linalg.norm(projected[1:] - projected[:-1], axis=1) <= before + 1e-9).all()


def test_a_row_does_not_depend_on_who_travels_with_it(domain, rows):
    X, origin = rows
    together = domain.project(X, origin)
    for size in (1, 3, 500):
        parts = [
            domain.project(X[i : i + size], origin[i : i + size]) for i in range(0, min(len(X), 600), size)
        ]
        np.testing.assert_allclose(np.concatenate(parts), together[: sum(map(len, parts))], atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("with_gradient", [False, True])
def test_tensors_give_what_arrays_give(domain, rows, dtype, with_gradient):
    X, origin = rows
    tensor = torch.tensor(X, dtype=dtype, requires_grad=with_gradient)
    for method in ("project", "nearest_valid"):
        result = getattr(domain, method)(tensor, torch.tensor(origin, dtype=dtype))
        assert isinstance(result, torch.Tensor)
        assert result.dtype == dtype
        if with_gradient and method == "project":
            result.sum().backward()
            assert torch.isfinite(tensor.grad).all()
        expected = getattr(domain, method)(tensor.detach().numpy(), origin)
        tolerance = 1e-12 if dtype == torch.float64 else 1e-5
        np.testing.assert_allclose(result.detach().numpy(), expected, atol=tolerance)


def test_float32_stays_float32(domain, rows):
    assert domain.project(rows[0].astype(np.float32)).dtype == np.float32
    assert domain.nearest_valid(rows[0].astype(np.float32)).dtype == np.float32


def test_a_tensor_is_not_written_to(domain, rows):
    tensor = torch.tensor(rows[0])
    before = tensor.clone()
    domain.project(tensor, torch.tensor(rows[1]))
    domain.nearest_valid(tensor, torch.tensor(rows[1]))
    assert torch.equal(tensor, before)


def test_what_is_not_a_number_stays_so(domain, rows):
    X = rows[0].copy()
    X[2] = np.nan
    for result in (domain.project(X), domain.project(torch.tensor(X)).numpy()):
        assert np.isnan(result[2]).any()
        assert np.isfinite(np.delete(result, 2, axis=0)).all()
    assert not domain.contains(X)[2]


def test_domains_copy_and_travel_to_workers(domain, rows):
    domain.project(torch.tensor(rows[0]))  # fills what it keeps for tensors
    for twin in (copy.deepcopy(domain), pickle.loads(pickle.dumps(domain))):
        np.testing.assert_array_equal(twin.project(rows[0]), domain.project(rows[0]))
