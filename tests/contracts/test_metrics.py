"""One contract for every fair metric: given or learned, with or without a feature map, from any constructor."""

import dataclasses
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import TabularDomain
from likewise.fair_metrics import (
    AttributeSubspace,
    ComparableSubspace,
    ExpertSubspace,
    FairMetric,
    PairMetric,
    euclidean,
    mahalanobis,
)

D = 6
N = 60


def rows(n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(n, D))


def sigma():
    root = np.random.default_rng(9).normal(size=(4, D))
    return root.T @ root


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, size=n),
            "job": rng.choice(["clerk", "cook", "nurse"], size=n),
            "sex": rng.choice(["Female", "Male"], size=n),
            "hours": rng.normal(40, 5, size=n),
        }
    )


def judged():
    pairs = np.random.default_rng(1).integers(N, size=(200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return {"pairs": pairs, "comparable": np.abs(rows()[pairs[:, 0], 0] - rows()[pairs[:, 1], 0]) < 1}


def subspace(k=2):
    return Subspace.from_directions(np.random.default_rng(3).normal(size=(k, D)))


def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(D, 5), torch.nn.Tanh()).double()


def frame_metric():
    return AttributeSubspace("sex").fit(people()).metric_


# Metrics of plain rows of D columns.
ROWS = {
    "euclidean": lambda: euclidean(D),
    "euclidean of any width": euclidean,
    "subspace": lambda: FairMetric.from_subspace(subspace()),
    "subspace of everything": lambda: FairMetric.from_subspace(subspace(D)),
    "softened": lambda: FairMetric.from_subspace(subspace(), 0.1),
    "weight one": lambda: FairMetric.from_subspace(subspace(), 1.0),
    "scaled, with dearer directions": lambda: FairMetric(2.0, subspace().basis, np.array([-1.5, 4.0])),
    "mahalanobis": lambda: mahalanobis(sigma() + np.eye(D)),
    "mahalanobis of low rank": lambda: mahalanobis(sigma()),
    "union of subspaces": lambda: ROWS["subspace"]() | FairMetric.from_subspace(subspace(1), 0.2),
    "union with mahalanobis": lambda: ROWS["subspace"]() | mahalanobis(sigma()),
    "expert": lambda: ExpertSubspace([0, np.ones(D)]).fit(rows()).metric_,
    "attribute": lambda: AttributeSubspace().fit(rows(), rows()[:, 0] > 0).metric_,
    "attribute, softened": lambda: AttributeSubspace([1], weight=0.5).fit(rows()).metric_,
    "comparable": lambda: ComparableSubspace(2).fit(rows(), np.arange(N) // 3).metric_,
    "pairs": lambda: PairMetric().fit(rows(), **judged()).metric_,
    "scaler as the map": lambda: dataclasses.replace(
        ROWS["subspace"](), feature_map=StandardScaler().fit(rows())
    ),
    "function as the map": lambda: dataclasses.replace(ROWS["mahalanobis"](), feature_map=lambda X: 2.0 * X),
    "torch module as the map": lambda: dataclasses.replace(euclidean(5), feature_map=net()),
    "learned in a map": lambda: AttributeSubspace(feature_map=net()).fit(rows(), rows()[:, 0] > 0).metric_,
}

# Metrics that carry an encoder and take raw frames.
FRAMES = {
    "expert on a frame": lambda: ExpertSubspace(["sex", "job: cook − nurse"]).fit(people()).metric_,
    "attribute on a frame": frame_metric,
    "comparable on a frame": lambda: ComparableSubspace(1).fit(people(), np.arange(N) // 3).metric_,
    "pairs on a frame": lambda: PairMetric().fit(people(), **judged()).metric_,
    "union on a frame": lambda: frame_metric() | ExpertSubspace("age").fit(people()).metric_,
    "mahalanobis on a frame": lambda: mahalanobis(
        np.diag([1.0, 2.0, 0.0, 1.0, 1.0, 0.5]), feature_map=TabularDomain.from_frame(people())
    ),
}


@cache
def made(name):
    return (ROWS | FRAMES)[name]()


@pytest.fixture(params=[*ROWS, *FRAMES])
def metric(request):
    return made(request.param)


@pytest.fixture(params=ROWS)
def row_metric(request):
    return made(request.param)


@pytest.fixture(params=FRAMES)
def frame_metrics(request):
    return made(request.param)


def takes_frames(metric):
    return isinstance(metric.feature_map, TabularDomain)


def sample(metric, seed):
    """Ten inputs of the kind that the metric takes."""
    return people(10, seed) if takes_frames(metric) else rows(10, seed)


def width(metric):
    return metric.n_features or D


def differences(metric, n=8):
    return np.random.default_rng(5).normal(size=(n, width(metric)))


def explicit(metric):
    return metric.sigma() if metric.n_features else np.eye(D)


# ---- a pseudo-metric ----------------------------------------------------------------------------------


def test_is_the_quadratic_form_of_its_features(metric):
    a, b = sample(metric, 1), sample(metric, 2)
    delta = np.asarray(metric.features(a)) - np.asarray(metric.features(b))
    expected = np.einsum("nd,de,ne->n", delta, explicit(metric), delta)
    np.testing.assert_allclose(metric.squared_distance(a, b), expected, rtol=1e-10, atol=1e-10)


def test_symmetric_nonnegative_zero_to_itself_and_triangular(metric):
    a, b, c = (sample(metric, seed) for seed in (1, 2, 3))
    ab = metric.squared_distance(a, b)
    assert ab.shape == (10,)
    assert (ab >= 0).all()
    np.testing.assert_array_equal(ab, metric.squared_distance(b, a))
    assert (metric.squared_distance(a, a) == 0).all()
    sides = (np.sqrt(metric.squared_distance(*pair)) for pair in ((a, b), (b, c), (a, c)))
    one, other, direct = sides
    assert (direct <= one + other + 1e-10).all()


def test_sigma_is_positive_semi_definite_and_free_exactly_in_its_null_space(metric):
    eigenvalues = np.linalg.eigvalsh(explicit(metric))
    assert eigenvalues[0] > -1e-12
    free = metric.null_space
    if metric.n_features is not None:
        assert free.dim == int((eigenvalues < 1e-11 * max(eigenvalues[-1], metric.scale)).sum())
    if free.dim:
        inside = np.random.default_rng(0).normal(size=(5, free.dim)) @ free.basis.T
        assert metric.squared_norm(inside).max() < 1e-20
        assert np.abs(metric.apply(inside)).max() < 1e-10


def test_subspace_is_what_is_cheaper(metric):
    if metric.subspace is None:
        assert metric.null_space.dim == 0
        return
    inside = metric.squared_norm(metric.subspace.basis.T)
    top = np.linalg.eigvalsh(explicit(metric))[-1]
    assert inside.max() < max(metric.scale, top)
    assert metric.null_space.dim <= metric.subspace.dim


# ---- products -----------------------------------------------------------------------------------------


def test_apply_and_solve_are_sigma_and_its_pseudo_inverse(metric):
    delta = differences(metric)
    np.testing.assert_allclose(metric.apply(delta), delta @ explicit(metric), atol=1e-10)
    there_and_back = metric.apply(metric.solve(metric.apply(delta)))
    np.testing.assert_allclose(there_and_back, metric.apply(delta), atol=1e-8)  # Σ Σ⁺ Σ = Σ
    back_and_there = metric.solve(metric.apply(metric.solve(delta)))
    np.testing.assert_allclose(back_and_there, metric.solve(delta), rtol=1e-6, atol=1e-8)  # Σ⁺ Σ Σ⁺ = Σ⁺
    np.testing.assert_allclose(metric.squared_norm(delta), (delta * metric.apply(delta)).sum(1), atol=1e-10)


def test_embedded_rows_have_the_same_distances(metric):
    a, b = sample(metric, 1), sample(metric, 2)
    plain = ((metric.embed(a) - metric.embed(b)) ** 2).sum(1)
    np.testing.assert_allclose(plain, metric.squared_distance(a, b), rtol=1e-9, atol=1e-9)


# ---- all pairs ----------------------------------------------------------------------------------------


def test_all_pairs_are_the_paired_distances(metric):
    a, b = sample(metric, 1), sample(metric, 2)
    table = metric.pairwise(a, b)
    assert table.shape == (10, 10)
    np.testing.assert_allclose(np.diag(table), metric.squared_distance(a, b), rtol=1e-9, atol=1e-10)
    alone = metric.pairwise(a)
    np.testing.assert_allclose(alone, alone.T, atol=1e-10)
    assert np.abs(np.diag(alone)).max() < 1e-12


@pytest.mark.parametrize("max_bytes", [1, 200, 2**20])
def test_blocks_put_together_are_all_pairs(metric, max_bytes):
    a, b = sample(metric, 1), sample(metric, 2)
    parts = [(rows, np.array(block)) for rows, block in metric.blocks(a, b, max_bytes=max_bytes)]
    assert [rows.start for rows, _ in parts] == [0, *(rows.stop for rows, _ in parts[:-1])]
    np.testing.assert_allclose(
        np.concatenate([block for _, block in parts]), metric.pairwise(a, b), rtol=1e-12, atol=1e-12
    )


# ---- kinds of arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_numpy_and_torch_agree_in_both_precisions(metric, dtype):
    plain = metric.without_feature_map()
    a, b = differences(plain), np.flip(differences(plain), 0).copy()
    ta, tb = (torch.tensor(x, dtype=dtype) for x in (a, b))
    tolerance = 1e-10 if dtype == torch.float64 else 5e-4
    for name in ("squared_distance", "pairwise"):
        got = getattr(plain, name)(ta, tb)
        assert isinstance(got, torch.Tensor)
        assert got.dtype == dtype
        np.testing.assert_allclose(got.numpy(), getattr(plain, name)(a, b), rtol=tolerance, atol=tolerance)
        precision = np.float32 if dtype == torch.float32 else np.float64
        assert getattr(plain, name)(a.astype(precision), b.astype(precision)).dtype == precision
    for name in ("apply", "solve"):
        got = getattr(plain, name)(ta)
        assert got.dtype == dtype
        expected = getattr(plain, name)(a)
        np.testing.assert_allclose(
            got.numpy(), expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max())
        )


def test_gradient_flows_in_torch(metric):
    plain = metric.without_feature_map()
    a = torch.tensor(differences(plain), requires_grad=True)
    b = torch.zeros_like(a).detach()
    plain.squared_distance(a, b).sum().backward()
    torch.testing.assert_close(a.grad, 2 * plain.apply(a.detach()))


def test_tensors_go_through_every_map_of_rows(row_metric):
    kind = np.float32 if row_metric.feature_map is None else np.float64
    a, b = (rows(10, seed).astype(kind) for seed in (1, 2))
    got = row_metric.squared_distance(torch.tensor(a), torch.tensor(b))
    np.testing.assert_allclose(got.detach().numpy(), row_metric.squared_distance(a, b), rtol=1e-4, atol=1e-5)


def test_raw_encoded_and_foreign_frames_agree(frame_metrics):
    a, b = people(10, 1), people(10, 2)
    encoder = frame_metrics.feature_map
    expected = frame_metrics.squared_distance(a, b)
    for turn in (pl.from_pandas, encoder.encode, encoder.encode_array):
        np.testing.assert_allclose(frame_metrics.squared_distance(turn(a), turn(b)), expected, atol=1e-12)
    inner = frame_metrics.without_feature_map()
    encoded = [torch.tensor(np.asarray(encoder.encode_array(x))) for x in (a, b)]
    np.testing.assert_allclose(inner.squared_distance(*encoded).numpy(), expected, atol=1e-10)
    assert frame_metrics.feature_names == tuple(encoder.get_feature_names_out())


# ---- files and mistakes -------------------------------------------------------------------------------


def test_comes_back_from_a_file(metric, tmp_path):
    path = tmp_path / "metric.safetensors"
    writable = metric.feature_map is None or takes_frames(metric)
    if not writable:
        with pytest.raises(InputError, match="feature_map=False"):
            metric.save(path)
        assert not path.exists()
    metric.save(path, feature_map=writable)
    again = FairMetric.load(path)
    if not writable:
        again = dataclasses.replace(again, feature_map=metric.feature_map)
    a, b = sample(metric, 1), sample(metric, 2)
    np.testing.assert_array_equal(again.squared_distance(a, b), metric.squared_distance(a, b))
    assert (again.n_features, again.weight, again.feature_names) == (
        metric.n_features,
        metric.weight,
        metric.feature_names,
    )


def test_rows_that_are_not_finite_or_of_another_width_are_refused(metric):
    bad = differences(metric)
    plain = metric.without_feature_map()
    good = bad.copy()
    bad[3, 1] = np.nan
    with pytest.raises(InputError, match="row 3"):
        plain.squared_distance(bad, good)
    with pytest.raises(InputError, match="columns"):
        plain.squared_distance(good, good[:, :-1])
    with pytest.raises(InputError, match="rows"):
        plain.squared_distance(good, good[:-1])


def test_is_frozen_and_leaves_its_input_alone(metric):
    a, b = sample(metric, 1), sample(metric, 2)
    before = a.copy()
    metric.pairwise(a, b)
    metric.squared_distance(a, b)
    assert before.equals(a) if takes_frames(metric) else (before == a).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        metric.scale = 2.0
