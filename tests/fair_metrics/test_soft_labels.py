"""AttributeSubspace of an attribute that is known by probability."""

import numpy as np
import pandas as pd
import pytest

import likewise as lw


def people(n=4000, groups=2, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(groups, 0.3), n)
    group = (rng.uniform(size=(n, 1)) > p.cumsum(1)).sum(1)
    X = rng.normal(size=(n, 5))
    X[:, 0] += group == 0
    X[:, 1] -= 0.5 * (group == 0)
    return X, p, group


def same(soft, hard):
    one, other = soft.subspace_.basis, hard.subspace_.basis
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-5)


def test_certain_probabilities_give_the_subspace_of_the_labels():
    for groups in (2, 3):
        X, _, group = people(800, groups)
        soft = lw.AttributeSubspace(kind="probabilities").fit(X, sensitive_features=np.eye(groups)[group])
        hard = lw.AttributeSubspace().fit(X, group)
        same(soft, hard)
        balanced = {"class_weight": "balanced"}
        soft = lw.AttributeSubspace(kind="probabilities", **balanced).fit(X, np.eye(groups)[group])
        hard = lw.AttributeSubspace(**balanced).fit(X, group)
        same(soft, hard)


def test_probabilities_give_the_direction_that_the_hidden_labels_give():
    X, p, group = people()
    given = lw.group_probabilities(pd.DataFrame(p, columns=["a", "b"]))
    soft = lw.AttributeSubspace(kind="probabilities").fit(X, sensitive_features=given)
    hard = lw.AttributeSubspace().fit(X, group)
    assert abs(float(soft.subspace_.basis[:, 0] @ hard.subspace_.basis[:, 0])) > 0.98
    assert soft.kinds_ == {"a, b": "probabilities"}


def test_people_without_probabilities_are_left_out():
    X, p, _ = people(500)
    p[100:] = np.nan
    soft = lw.AttributeSubspace(kind="probabilities").fit(X, sensitive_features=p)
    part = lw.AttributeSubspace(kind="probabilities").fit(X[:100], sensitive_features=p[:100])
    np.testing.assert_allclose(
        soft.directions_["0, 1"] / np.linalg.norm(soft.directions_["0, 1"]),
        part.directions_["0, 1"] / np.linalg.norm(part.directions_["0, 1"]),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("attributes", "given", "words"),
    [
        (None, None, "one column per group"),
        ("sex", np.full((4, 2), 0.5), "leave out"),
        (None, np.full((4, 1), 1.0), "two or more columns"),
        (None, np.full((4, 2), 0.6), "sum to 1"),
        (None, np.array([["x", "y"]] * 4), "two or more columns"),
    ],
)
def test_what_cannot_be_used_is_said(attributes, given, words):
    with pytest.raises(lw.InputError, match=words):
        lw.AttributeSubspace(attributes, kind="probabilities").fit(np.zeros((4, 2)), sensitive_features=given)
