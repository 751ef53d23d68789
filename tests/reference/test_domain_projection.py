"""Projections against a general-purpose solver, and nearest valid rows against enumeration."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from likewise.core.subspace import Subspace
from likewise.data import DataRangeDomain, TabularDomain
from likewise.data.encoded_set import project_simplex


def nearest_by_solver(x, *, bounds, constraints):
    start = np.clip(x, [b[0] for b in bounds], [b[1] for b in bounds])
    return minimize(
        lambda z: ((z - x) ** 2).sum(),
        start,
        jac=lambda z: 2 * (z - x),
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_simplex_projection_is_the_euclidean_one(k):
    sums_to_one = {"type": "eq", "fun": lambda z: z.sum() - 1, "jac": np.ones_like}
    for x in np.random.default_rng(k).normal(size=(8, k)):
        expected = nearest_by_solver(x, bounds=[(0, 1)] * k, constraints=[sums_to_one])
        np.testing.assert_allclose(project_simplex(x), expected, atol=1e-6)


@pytest.fixture(scope="module")
def people():
    return pd.DataFrame(
        {
            "job": ["a", "b", "c", "a"],
            "age": [20, 22, 24, 21],
            "sex": ["f", "m", "m", "f"],
            "town": ["x", "y", "z", "x"],
            "pay": [1.5, 2.5, 0.5, 1.0],
        }
    )


def test_tabular_projection_is_the_euclidean_one(people):
    domain = TabularDomain.from_frame(people)
    lower, upper = domain.bounds()
    groups = [domain.group("job"), domain.group("town")]
    constraints = [{"type": "eq", "fun": lambda z, g=g: z[g].sum() - 1} for g in groups]
    X = np.random.default_rng(0).normal(size=(12, domain.n_features)) * 2
    projected = domain.project(X)
    for x, result in zip(X, projected, strict=True):
        expected = nearest_by_solver(x, bounds=list(zip(lower, upper, strict=True)), constraints=constraints)
        np.testing.assert_allclose(result, expected, atol=1e-5)


def test_data_range_projection_is_the_euclidean_one():
    rng = np.random.default_rng(1)
    data = rng.normal(size=(30, 3))
    subspace = Subspace.from_directions(rng.normal(size=(2, 3)))
    domain = DataRangeDomain.from_data(data, subspace)
    within = [
        {"type": "ineq", "fun": lambda z: domain.upper - z @ subspace.basis},
        {"type": "ineq", "fun": lambda z: z @ subspace.basis - domain.lower},
    ]
    for x in 10 * rng.normal(size=(8, 3)):
        expected = nearest_by_solver(x, bounds=[(-100, 100)] * 3, constraints=within)
        np.testing.assert_allclose(domain.project(x[None])[0], expected, atol=1e-5)


def test_nearest_valid_row_is_the_nearest_of_all_valid_rows(people):
    frame = people.drop(columns="pay")
    domain = TabularDomain.from_frame(frame, ranges={"age": (19, 26)})
    every = [[*values] for values in product(["a", "b", "c"], range(19, 27), ["f", "m"], ["x", "y", "z"])]
    rows = domain.encode_array(pd.DataFrame(every, columns=frame.columns))
    X = np.random.default_rng(2).normal(size=(200, domain.n_features)) * 1.5
    squared = ((X[:, None, :] - rows[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(domain.nearest_valid(X), rows[squared.argmin(axis=1)], atol=1e-12)
