import numpy as np
import pandas as pd
import pytest
import torch

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.fair_metrics import ComparableSubspace, comparable_groups as groups


def explicit(X, labels, k):
    """Algorithm 3 as it is written: stack the centred groups, take the top right singular vectors."""
    parts = [X[labels == g] - X[labels == g].mean(0) for g in np.unique(labels)]
    _, singular, rows = np.linalg.svd(np.concatenate(parts), full_matrices=False)
    return Subspace(rows[:k].T), singular


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    labels = rng.integers(40, size=300)
    X = rng.normal(size=(40, 8))[labels] * 20 + rng.normal(size=(300, 8)) * [5, 4, 3, 2, 1, 1, 1, 1]
    return X @ np.linalg.qr(rng.normal(size=(8, 8)))[0], labels


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_equals_the_svd_of_the_stacked_groups(data, solver):
    X, labels = data
    learner = ComparableSubspace(n_components=3, solver=solver, random_state=0).fit(X, groups=labels)
    expected, singular = explicit(X, labels, 3)
    assert learner.subspace_.principal_angles(expected)[0] < 1e-6
    np.testing.assert_allclose(learner.singular_values_, singular[:3], rtol=1e-8)
    np.testing.assert_allclose(
        learner.explained_variance_ratio_, singular[:3] ** 2 / (singular**2).sum(), rtol=1e-8
    )
    assert learner.metric_.null_space.dim == 3


def test_groups_in_every_form(data):
    X, labels = data
    expected = ComparableSubspace(n_components=2).fit(X, groups=labels).subspace_
    names = np.array([f"g{i}" for i in range(40)], dtype=object)[labels]
    lists = [np.flatnonzero(labels == g) for g in np.unique(labels) if (labels == g).sum() > 1]
    order = np.argsort(labels, kind="stable")
    forms = [names, names.tolist(), pd.Series(labels, index=range(1000, 1300)), torch.tensor(labels)]
    forms += [lists, [part.tolist() for part in lists], labels[:, None]]
    for form in forms:
        found = ComparableSubspace(n_components=2).fit(X, groups=form).subspace_
        assert found.principal_angles(expected)[0] < 1e-6
    for found in (
        ComparableSubspace(n_components=2).fit(X, labels).subspace_,
        ComparableSubspace(n_components=2).fit(X[order], groups=labels[order]).subspace_,
        ComparableSubspace(n_components=2).fit(torch.tensor(X), groups=labels).subspace_,
    ):
        assert found.principal_angles(expected)[0] < 1e-6


def test_rows_without_a_group_and_groups_of_one_label_add_nothing(data):
    X, labels = data
    alone = np.concatenate([labels.astype(object), [None, np.nan, "only one"]])
    more = np.concatenate([X, np.full((3, 8), 1e6) * np.arange(3)[:, None]])
    found = ComparableSubspace(n_components=2).fit(more, groups=alone).subspace_
    assert found.principal_angles(explicit(X, labels, 2)[0])[0] < 1e-6


def test_pairs_as_an_array_and_a_row_in_several_groups():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [0.0, 9.0]])
    learner = ComparableSubspace(n_components=1).fit(X, groups=np.array([[0, 1], [1, 2]]))
    np.testing.assert_allclose(np.abs(learner.subspace_.basis[:, 0]), [1, 0], atol=1e-12)
    assert learner.singular_values_[0] ** 2 == pytest.approx(0.5 + 2.0)


def test_chunks_do_not_change_the_answer(data, monkeypatch):
    """Groups that are cut by the border of a chunk, or larger than one, count as a whole."""
    X, labels = data
    coarse = labels // 20
    expected = [explicit(X, kind, 2) for kind in (labels, coarse)]
    for rows in (1, 3, 7, 50):
        monkeypatch.setattr(groups, "_CHUNK_BYTES", rows * 8 * 8)
        for kind, (subspace, singular) in zip((labels, coarse), expected, strict=True):
            learner = ComparableSubspace(n_components=2).fit(X, groups=kind)
            assert learner.subspace_.principal_angles(subspace)[0] < 1e-6
            np.testing.assert_allclose(learner.singular_values_, singular[:2], rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_far_away_mean_costs_no_digits(data, dtype):
    X, labels = data
    moved = (X + 1e4).astype(dtype)
    expected = explicit(moved.astype(float), labels, 3)[0]
    found = ComparableSubspace(n_components=3).fit(moved, groups=labels).subspace_
    assert found.principal_angles(expected)[0] < (1e-4 if dtype == np.float32 else 1e-6)


class TestStreaming:
    @pytest.mark.parametrize("size", [1, 17, 300])
    def test_equals_the_fit_of_everything_at_once(self, data, size):
        X, labels = data
        learner = ComparableSubspace(n_components=3)
        for begin in range(0, 300, size):
            learner.partial_fit(X[begin : begin + size], groups=labels[begin : begin + size])
        expected, singular = explicit(X, labels, 3)
        assert learner.subspace_.principal_angles(expected)[0] < 1e-6
        np.testing.assert_allclose(learner.singular_values_, singular[:3], rtol=1e-9)

    def test_whole_groups_keep_nothing(self, data):
        X, labels = data
        learner = ComparableSubspace(n_components=2)
        for group in range(0, 40, 10):
            rows = (labels >= group) & (labels < group + 10)
            learner.partial_fit(X[rows], groups=labels[rows] - group, whole_groups=True)
        assert learner.subspace_.principal_angles(explicit(X, labels, 2)[0])[0] < 1e-6
        assert len(learner.scatter_._means) == 0

    def test_index_lists_are_new_groups_each_time(self, data):
        X, labels = data
        learner = ComparableSubspace(n_components=2)
        for group in range(0, 40, 10):
            rows = np.flatnonzero((labels >= group) & (labels < group + 10))
            lists = [np.flatnonzero(labels[rows] == g) for g in range(group, group + 10)]
            learner.partial_fit(X[rows], groups=[part for part in lists if len(part) > 1])
        assert learner.subspace_.principal_angles(explicit(X, labels, 2)[0])[0] < 1e-6

    def test_no_metric_before_there_are_directions(self):
        learner = ComparableSubspace(n_components=2).partial_fit([[0.0, 1.0, 0.0]], groups=["a"])
        assert not hasattr(learner, "metric_")
        learner.partial_fit([[1.0, 1.0, 0.0]], groups=["a"])
        assert not hasattr(learner, "metric_")
        learner.partial_fit([[1.0, 5.0, 0.0]], groups=["a"])
        assert learner.metric_.subspace.dim == 2

    def test_fit_starts_again_and_width_is_kept(self, data):
        X, labels = data
        learner = ComparableSubspace(n_components=1).partial_fit(X * [9, 1, 1, 1, 1, 1, 1, 1], groups=labels)
        with pytest.raises(ValueError, match="features"):
            learner.partial_fit(X[:, :3], groups=labels)
        learner.fit(X, groups=labels)
        assert learner.subspace_.principal_angles(explicit(X, labels, 1)[0])[0] < 1e-6

    def test_raw_frames_share_one_encoder(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"age": rng.normal(size=60), "job": rng.choice(["a", "b", "c"], size=60)})
        from likewise.data import TabularDomain

        domain = TabularDomain.from_frame(frame)
        labels = np.repeat(np.arange(20), 3)
        whole = ComparableSubspace(n_components=1, domain=domain).fit(frame, groups=labels)
        parts = ComparableSubspace(n_components=1, domain=domain)
        parts.partial_fit(frame[:31], groups=labels[:31]).partial_fit(frame[31:], groups=labels[31:])
        assert parts.subspace_.principal_angles(whole.subspace_)[0] < 1e-6
        assert parts.metric_.feature_map is domain


class TestNumberOfComponents:
    def test_share_of_variance(self, data):
        X, labels = data
        singular = explicit(X, labels, 1)[1]
        shares = np.cumsum(singular**2) / (singular**2).sum()
        for k in range(1, 7):
            share = float(shares[k - 1]) - 1e-6
            assert ComparableSubspace(n_components=share).fit(X, groups=labels).n_components_ == k

    def test_parallel_analysis_of_noise_finds_one_at_most(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 6)) * [3, 1, 1, 0.2, 1, 1]
        learner = ComparableSubspace(random_state=0).fit(X, groups=np.arange(400) // 4)
        assert learner.n_components_ == 1

    def test_parallel_analysis_with_fewer_rows_than_columns(self):
        rng = np.random.default_rng(0)
        X = 5 * rng.normal(size=(20, 2)) @ rng.normal(size=(2, 60)) + rng.normal(size=(20, 60))
        learner = ComparableSubspace(random_state=0).fit(X, groups=np.zeros(20))
        assert learner.n_components_ == 2

    def test_same_seed_same_bytes(self, data):
        X, labels = data
        for solver in ("gram", "randomized"):
            twice = [
                ComparableSubspace(2, solver=solver, random_state=3).fit(X, groups=labels).subspace_.basis
                for _ in range(2)
            ]
            assert twice[0].tobytes() == twice[1].tobytes()


@pytest.mark.parametrize(
    ("parameters", "given", "message"),
    [
        ({}, None, "no groups were given"),
        ({}, [0, 1, 2, 3, 4, 5], "one row only"),
        ({}, [[0, 1], [2]], "group 1 has 1 row"),
        ({}, [[0, 1], [2, 6]], "group 1 names row 6"),
        ({}, [[0.5, 1.0], [2.0, 3.0]], "lists of row numbers"),
        ({}, [0, 0], "2 labels, X has 6 rows"),
        ({}, [0, 0, np.inf, 1, 1, 1], "infinity"),
        ({"n_components": 3}, [0, 0, 1, 1, 2, 2], "at most 2"),
        ({"n_components": 3}, [0, 0, 1, 1, None, None], "at most 2"),
        ({"n_components": 0}, [0, 0, 1, 1, 2, 2], "'n_components'"),
        ({"n_components": 1.5}, [0, 0, 1, 1, 2, 2], "'n_components'"),
        ({"n_components": "most"}, [0, 0, 1, 1, 2, 2], "'n_components'"),
        ({"n_components": True}, [0, 0, 1, 1, 2, 2], "'n_components'"),
        ({"solver": "lapack"}, [0, 0, 1, 1, 2, 2], "'solver'"),
        ({"solver": "randomized"}, [0, 0, 1, 1, 2, 2], "with solver='randomized'"),
        ({}, pd.DataFrame({"a": [0] * 6, "b": [1] * 6}), "one column of labels"),
    ],
)
def test_bad_input(parameters, given, message):
    X = np.random.default_rng(0).normal(size=(6, 3))
    X[:, 2] = 0.0
    with pytest.raises(InputError, match=message):
        ComparableSubspace(**parameters).fit(X, groups=given)


def test_groups_whose_rows_are_equal():
    with pytest.raises(InputError, match="rows of every group are equal"):
        ComparableSubspace().fit(np.ones((4, 2)), groups=[0, 0, 1, 1])
