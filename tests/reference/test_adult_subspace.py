"""The paper's Adult subspace span[w_g, e_g, e_r] against an independent Newton solve of its formula."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from likewise.core.subspace import Subspace
from likewise.datasets import load_adult
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace

GAMMA = 0.1


@pytest.fixture(scope="module")
def adult():
    return load_adult(split=0)


def hyperplane(X, g, *, norm, intercept):
    """argmin over w of mean(−g wᵀx + log(1 + exp(wᵀx))) + γ‖w‖₂ (or its square), by trust-region Newton."""
    if intercept:
        X = np.column_stack([X, np.ones(len(X))])
    n, d = X.shape
    counted = np.ones(d)
    counted[-1] = 0.0 if intercept else 1.0

    def value(w):
        scores = X @ w
        size = np.sum(counted * w**2)
        return np.mean(np.logaddexp(0, scores) - g * scores) + GAMMA * (np.sqrt(size) if norm else size)

    def gradient(w):
        size = np.sqrt(np.sum(counted * w**2))
        return X.T @ (expit(X @ w) - g) / n + GAMMA * counted * w * (1 / size if norm else 2)

    def hessian(w):
        p = expit(X @ w)
        plain = (X * (p * (1 - p))[:, None]).T @ X / n
        if not norm:
            return plain + 2 * GAMMA * np.diag(counted)
        size = np.sqrt(np.sum(counted * w**2))
        unit = counted * w / size
        return plain + GAMMA / size * (np.diag(counted) - np.outer(unit, unit))

    start = -0.1 * gradient(np.full(d, 1e-6))
    found = minimize(value, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-10})
    assert np.abs(gradient(found.x)).max() < 1e-8
    return found.x[:-1] if intercept else found.x


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["squared", "norm"])
def test_gender_hyperplane_and_coordinates_are_the_papers(adult, penalty, intercept):
    X = adult.X_train
    learner = AttributeSubspace("sex", regularization=GAMMA, penalty=penalty, fit_intercept=intercept)
    metric = learner.fit(X).metric_ | ExpertSubspace(["race"]).fit(X).metric_

    values = X.to_numpy().copy()
    g, r = X.columns.get_loc("sex_Male"), X.columns.get_loc("race_White")
    gender = values[:, g].copy()
    values[:, g] = 0.0
    w = hyperplane(values, gender, norm=penalty == "norm", intercept=intercept)
    assert w[g] == pytest.approx(0.0, abs=1e-9)

    expected = Subspace.from_directions(np.stack([w, np.eye(41)[g], np.eye(41)[r]]))
    assert metric.subspace.dim == expected.dim == 3
    assert float(metric.subspace.principal_angles(expected)[0]) < 1e-3
    # The three do not agree by chance: the hyperplane is no coordinate.
    assert np.linalg.norm(w[[g, r]]) < 0.5 * np.linalg.norm(w)


def test_raw_frames_and_encoded_frames_give_the_same_metric(adult):
    raw = AttributeSubspace(["sex", "race"], domain=adult.domain).fit(adult.frame_train).metric_
    encoded = AttributeSubspace(["sex", "race"]).fit(adult.X_train).metric_
    assert raw.feature_map is adult.domain
    assert encoded.feature_map is None
    assert float(raw.subspace.principal_angles(encoded.subspace)[0]) < 1e-6
    people, others = adult.frame_test[:50], adult.frame_test[50:100]
    np.testing.assert_allclose(
        raw.squared_distance(people, others),
        encoded.squared_distance(adult.X_test[:50], adult.X_test[50:100]),
        rtol=1e-6,
    )
    assert raw.budget(sex="Male - Female") == pytest.approx(0.0, abs=1e-20)
    assert 0 < raw.budget(age=5) <= (5 / adult.domain.column("age").scale) ** 2
