import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import TabularDomain
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis


def sub(*rows):
    return Subspace.from_directions(np.array(rows, dtype=float))


@pytest.fixture
def people():
    return pd.DataFrame(
        {
            "age": [20, 40, 60, 40],
            "job": ["clerk", "cook", "nurse", "cook"],
            "sex": ["Female", "Male", "Male", "Female"],
        }
    )


def test_the_forms_of_sigma():
    metric = FairMetric.from_subspace(sub([1, 0, 0]), weight=0.25)
    np.testing.assert_allclose(metric.sigma(), np.diag([0.25, 1, 1]))
    assert metric.weight == 0.25
    assert metric.subspace.dim == 1
    assert metric.null_space.dim == 0
    assert FairMetric.from_subspace(sub([1, 0, 0])).null_space.dim == 1
    assert euclidean(3).weight is None
    assert euclidean(3).subspace is None
    assert euclidean().n_features is None


def test_mahalanobis_of_a_projector_has_the_subspace_back():
    inside = sub([1, 1, 0])
    metric = mahalanobis(np.eye(3) - inside.basis @ inside.basis.T)
    assert metric.weight is None
    assert metric.subspace.principal_angles(inside)[0] < 1e-7
    np.testing.assert_allclose(
        metric.squared_distance([[3.0, 1.0, 2.0]], [[0.0, 0.0, 0.0]]),
        FairMetric.from_subspace(inside).squared_distance([[3.0, 1.0, 2.0]], [[0.0, 0.0, 0.0]]),
    )
    assert mahalanobis(np.eye(2)).subspace is None


def test_metric_of_no_cost_at_all():
    metric = mahalanobis(np.zeros((2, 2)))
    assert metric.null_space.dim == 2
    np.testing.assert_array_equal(metric.pairwise([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2)))
    np.testing.assert_array_equal(metric.solve(np.ones((1, 2))), np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        ([[1.0, 0.0]], "square"),
        ([[1.0, 2.0], [0.0, 1.0]], "symmetric"),
        ([[1.0, 0.0], [0.0, -1.0]], "positive semi-definite, got a matrix with eigenvalue -1"),
        ([[np.nan, 0.0], [0.0, 1.0]], "not finite"),
    ],
)
def test_mahalanobis_refuses_what_is_no_metric(sigma, message):
    with pytest.raises(InputError, match=message):
        mahalanobis(sigma)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, np.zeros((2, 0)), np.zeros(0)), "'scale'"),
        ((1.0, np.eye(2), np.zeros(1)), "one number per column"),
        ((1.0, np.eye(2), np.array([0.0, -2.0])), "positive semi-definite"),
        ((1.0, np.ones((2, 2)), np.zeros(2)), "orthonormal"),
        ((1.0, np.eye(2), np.zeros(2), None, ("a",)), "one name per column"),
    ],
)
def test_constructor_refuses(arguments, message):
    with pytest.raises(InputError, match=message):
        FairMetric(*arguments)


def test_input_of_the_wrong_shape_is_refused():
    metric = euclidean(2)
    with pytest.raises(InputError, match="has 3 columns, expected 2"):
        metric.pairwise(np.zeros((4, 3)))
    with pytest.raises(InputError, match="use pairwise for all pairs"):
        metric.squared_distance(np.zeros((4, 2)), np.zeros((1, 2)))
    with pytest.raises(InputError, match="not finite"):
        metric.features([[np.nan, 1.0]])
    with pytest.raises(InputError, match="with the same columns"):
        euclidean().pairwise(np.zeros((4, 2)), np.zeros((4, 3)))
    with pytest.raises(InputError, match="'weight'"):
        FairMetric.from_subspace(sub([1, 0]), weight=2)


def test_blocks_are_the_rows_of_pairwise_whatever_their_size():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(17, 4)), rng.normal(size=(5, 4))
    metric = FairMetric.from_subspace(sub(rng.normal(size=4)), weight=0.1)
    whole = metric.pairwise(a, b)
    for max_bytes in (1, 5 * 8 * 3, 10**6):
        blocks = list(metric.blocks(a, b, max_bytes=max_bytes))
        assert [s for rows, _ in blocks for s in range(17)[rows]] == list(range(17))
        np.testing.assert_allclose(np.concatenate([block for _, block in blocks]), whole, atol=1e-12)
    assert max(block.nbytes for _, block in metric.blocks(a, b, max_bytes=120)) <= 120


def test_frozen_copied_and_pickled():
    metric = FairMetric.from_subspace(sub([1, 0, 0]))
    with pytest.raises(FrozenInstanceError):
        metric.scale = 2.0
    metric.squared_norm(torch.zeros(1, 3))
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        np.testing.assert_array_equal(twin.sigma(), metric.sigma())
    given = np.eye(3)[:, :1]
    kept = FairMetric(1.0, given, np.array([-1.0]))
    given[:] = 7.0
    np.testing.assert_array_equal(kept.basis[:, 0], [1, 0, 0])


def test_a_metric_serves_several_dtypes_and_widths():
    metric = FairMetric.from_subspace(sub([1, 0, 0]))
    rows = np.array([[1.0, 2.0, 3.0]])
    for kind in (rows, rows.astype(np.float32), torch.tensor(rows), torch.tensor(rows).float()):
        got = metric.squared_norm(kind)
        assert got.dtype == kind.dtype
        assert float(got[0]) == 13.0
    plain = euclidean()
    assert float(plain.squared_norm(np.ones((1, 2)))[0]) == 2.0
    assert float(plain.squared_norm(np.ones((1, 5)))[0]) == 5.0
    np.testing.assert_array_equal(plain.apply(np.ones((1, 5))), np.ones((1, 5)))


def test_the_device_of_a_tensor_is_kept():
    metric = FairMetric.from_subspace(sub([1, 0, 0]), weight=0.5)
    elsewhere = torch.zeros(2, 3, device="meta")
    for name in ("squared_norm", "apply", "solve"):
        assert getattr(metric, name)(elsewhere).device.type == "meta"
    assert metric.squared_norm(torch.zeros(2, 3)).device.type == "cpu"


class TestFeatureMaps:
    def test_tabular_domain_takes_raw_frames_encoded_frames_and_arrays(self, people):
        domain = TabularDomain.from_frame(people)
        names = domain.get_feature_names_out()
        metric = FairMetric.from_subspace(sub(np.eye(5)[4]), feature_map=domain)
        assert metric.feature_names == tuple(names)
        encoded = domain.encode(people)
        expected = metric.without_feature_map().pairwise(domain.encode_array(people))
        for given in (people, people[["sex", "job", "age"]], encoded, encoded.to_numpy()):
            np.testing.assert_allclose(metric.pairwise(given), expected)
        # Row 1 and row 3 differ in sex alone.
        assert expected[1, 3] < 1e-20

    def test_width_of_the_domain_must_fit(self, people):
        with pytest.raises(InputError, match="gives 5 columns, the metric has 2"):
            FairMetric.from_subspace(sub([1, 0]), feature_map=TabularDomain.from_frame(people))

    def test_scikit_learn_transformer(self, people):
        rng = np.random.default_rng(0)
        X = rng.normal(3, 5, size=(20, 3))
        scaler = StandardScaler().fit(X)
        metric = FairMetric.from_subspace(sub([1, 0, 0]), feature_map=scaler)
        expected = metric.without_feature_map().pairwise(scaler.transform(X))
        np.testing.assert_allclose(metric.pairwise(X), expected)
        got = metric.pairwise(torch.tensor(X))
        assert isinstance(got, torch.Tensor)
        np.testing.assert_allclose(got.numpy(), expected)
        with pytest.raises(InputError, match="no gradient can flow"):
            metric.pairwise(torch.tensor(X, requires_grad=True))
        encoder = OneHotEncoder().fit(people[["job"]])
        sparse = FairMetric(1.0, np.zeros((3, 0)), np.zeros(0), encoder)
        assert sparse.squared_distance(people[["job"]][:1], people[["job"]][1:2]) == pytest.approx([2.0])

    def test_callable(self):
        metric = FairMetric(1.0, np.zeros((1, 0)), np.zeros(0), lambda X: X[:, :1] ** 2)
        assert metric.squared_distance(np.array([[3.0, 9.0]]), np.array([[1.0, 0.0]])) == pytest.approx(
            [64.0]
        )

    def test_torch_module_is_left_as_it_came(self):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
        module[2].eval()
        modes = [part.training for part in module.modules()]
        metric = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), module)
        x = torch.randn(5, 3, requires_grad=True)
        first = metric.pairwise(x)
        np.testing.assert_allclose(metric.pairwise(x).detach(), first.detach())
        metric.squared_distance(x, torch.zeros(5, 3)).sum().backward()
        assert x.grad.abs().sum() > 0
        assert [part.training for part in module.modules()] == modes
        got = metric.pairwise(x.detach().numpy())
        assert isinstance(got, np.ndarray)
        np.testing.assert_allclose(got, first.detach().numpy(), atol=1e-5)

    def test_anything_else_is_refused(self):
        with pytest.raises(InputError, match="'feature_map'"):
            FairMetric(1.0, np.zeros((1, 0)), np.zeros(0), 3).features([[1.0]])


class TestUnion:
    def test_free_in_either_is_free_in_both(self):
        a, b = FairMetric.from_subspace(sub([1, 0, 0])), FairMetric.from_subspace(sub([1, 1, 0]))
        both = a | b
        assert both.subspace.dim == 2
        assert both.weight == 0.0
        np.testing.assert_allclose(both.sigma(), np.diag([0, 0, 1]), atol=1e-12)

    def test_collinear_directions_add_nothing(self):
        a = FairMetric.from_subspace(sub([1, 0, 0]))
        assert (a | a).subspace.dim == 1
        assert (a | FairMetric.from_subspace(sub([1, 1e-12, 0]))).subspace.dim == 1

    def test_shared_directions_get_the_lower_weight(self):
        a = FairMetric.from_subspace(sub([1, 0, 0], [0, 1, 0]), weight=0.5)
        b = FairMetric.from_subspace(sub([1, 0, 0]), weight=0.1)
        for both in (a | b, b | a):
            np.testing.assert_allclose(both.sigma(), np.diag([0.1, 0.5, 1]), atol=1e-12)
            assert both.weight is None

    def test_euclidean_is_neutral(self):
        a = FairMetric.from_subspace(sub([1, 0, 0]), weight=0.2)
        for both in (a | euclidean(), euclidean(3) | a):
            np.testing.assert_allclose(both.sigma(), a.sigma(), atol=1e-12)

    def test_general_matrices_have_the_harmonic_mean(self):
        a, b = mahalanobis(np.diag([1.0, 4.0, 0.0])), mahalanobis(np.diag([3.0, 4.0, 2.0]))
        np.testing.assert_allclose((a | b).sigma(), np.diag([1.5, 4.0, 0.0]), atol=1e-9)
        projector = FairMetric.from_subspace(sub([1, 0, 0]))
        mixed = mahalanobis(np.diag([1.0, 0.0, 1.0])) | projector
        np.testing.assert_allclose(mixed.sigma(), np.diag([0, 0, 1]), atol=1e-9)
        assert mixed.null_space.dim == 2

    def test_what_does_not_belong_together_is_refused(self, people):
        domain = TabularDomain.from_frame(people)
        a = FairMetric.from_subspace(sub(np.eye(5)[0]), feature_map=domain)
        with pytest.raises(InputError, match="5 and 2 columns"):
            _ = a | euclidean(2)
        with pytest.raises(InputError, match="different feature maps"):
            _ = a | FairMetric.from_subspace(sub(np.eye(5)[1]), feature_map=np.abs)
        with pytest.raises(TypeError):
            _ = a | 3

    def test_the_same_domain_learned_twice_is_one(self, people):
        a = FairMetric.from_subspace(sub(np.eye(5)[0]), feature_map=TabularDomain.from_frame(people))
        b = FairMetric.from_subspace(sub(np.eye(5)[4]), feature_map=TabularDomain.from_frame(people))
        assert (a | b).feature_map is a.feature_map
        encoded = replace(b, feature_map=None)
        assert (encoded | a).feature_map is a.feature_map


class TestBudget:
    def test_in_original_units(self, people):
        domain = TabularDomain.from_frame(people)
        metric = FairMetric.from_subspace(sub(np.eye(5)[4]), feature_map=domain)
        years = 10 / people["age"].std(ddof=0)
        assert metric.budget(age=10) == pytest.approx(years**2)
        assert metric.budget({"age": -10}) == pytest.approx(years**2)
        assert metric.budget(job="cook − nurse") == pytest.approx(2.0)
        assert metric.budget(sex="Male - Female") == pytest.approx(0.0)
        assert metric.budget(age=10, job="cook - nurse") == pytest.approx(years**2 + 2.0)
        moved = people.assign(age=people["age"] + 10)
        np.testing.assert_allclose(metric.squared_distance(people, moved), metric.budget(age=10))

    def test_on_encoded_columns_units_are_those_of_the_columns(self):
        metric = FairMetric(2.0, np.zeros((3, 0)), np.zeros(0), feature_names=("age", "job_a", "job_b"))
        assert metric.budget(age=3) == pytest.approx(18.0)
        assert metric.budget(job="a - b") == pytest.approx(4.0)

    @pytest.mark.parametrize(
        ("units", "message"),
        [
            ({}, "no column was named"),
            ({"agee": 1}, "no column 'agee' \\(did you mean 'age'"),
            ({"age": "ten"}, "written as 'column: a − b'"),
            ({"age": None}, "a number of units"),
            ({"age": np.inf}, "finite"),
            ({"job": 1}, "written as text"),
            ({"sex": 1}, "written as text"),
            ({"job": "cook - king"}, "no category 'king'. Its categories: clerk, cook, nurse"),
            ({"age": "a - b"}, "it is a number"),
        ],
    )
    def test_refuses(self, people, units, message):
        metric = FairMetric.from_subspace(sub(np.eye(5)[4]), feature_map=TabularDomain.from_frame(people))
        with pytest.raises(InputError, match=message):
            metric.budget(units)

    def test_needs_names(self):
        with pytest.raises(InputError, match="does not know the names"):
            euclidean(2).budget(age=1)


def test_repr_says_what_it_is(people):
    domain = TabularDomain.from_frame(people)
    metric = FairMetric.from_subspace(sub(np.eye(5)[4]), feature_map=domain)
    assert repr(metric) == "FairMetric(n_features=5, subspace of 1, weight=0, feature_map=TabularDomain)"
    assert repr(euclidean()) == "FairMetric(n_features=any, scale=1, rank of the rest=0)"


def test_told_columns_are_kept_by_union_pickle_replace_and_without_the_map():
    sex = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0, 0]]), sensitive_features=["sex"])
    race = FairMetric.from_subspace(
        Subspace.from_directions([[0, 1.0, 0]]), sensitive_features=("race", "sex")
    )
    assert (sex | race).sensitive_features == ("sex", "race")
    assert (sex | mahalanobis(np.eye(3))).sensitive_features == ("sex",)
    assert (sex | euclidean()).sensitive_features == (euclidean() | sex).sensitive_features == ("sex",)
    assert pickle.loads(pickle.dumps(sex)).sensitive_features == ("sex",)
    mapped = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), np.abs, None, ("sex",))
    assert mapped.without_feature_map().sensitive_features == ("sex",)
    with pytest.raises(
        InputError, match="'sensitive_features' must be a sequence of column names, got 'sex'"
    ):
        FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), sensitive_features="sex")


def test_a_metric_pickled_by_an_earlier_version_was_told_nothing():
    metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0]]))
    del metric.__dict__["sensitive_features"]
    assert pickle.loads(pickle.dumps(metric)).sensitive_features == ()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_moves_along_a_basis_stored_in_float32_cost_nothing(scale):
    rng = np.random.default_rng(0)
    for d, k in ((3, 1), (40, 5), (300, 20)):
        basis = np.linalg.qr(rng.normal(size=(d, k)))[0]
        stored = FairMetric.from_subspace(Subspace(basis.astype(np.float32)))
        moves = scale * rng.normal(size=(50, k)) @ basis.T
        assert stored.costs_nothing(moves).all()
        beside = moves + 1e-5 * np.linalg.norm(moves, axis=1, keepdims=True) * rng.normal(
            size=(50, d)
        ) / np.sqrt(d)
        assert not stored.costs_nothing(beside).any()
        assert mahalanobis(stored.sigma() * scale).costs_nothing(moves).all()
