"""The default search against every row of a small domain, where columns matter together alone and worst cases are far."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import likewise as lw

from .brute_force import worst_mean


def setting(n, ranges, seed=0):
    rng = np.random.default_rng(seed)
    every = pd.DataFrame(list(product(*(range(size) for size in ranges), (0, 1))), columns=["a", "b", "sex"])
    domain = lw.TabularDomain.from_frame(every, categories={"sex": None})
    near = {"a": rng.integers(0, 3, n), "b": rng.integers(0, 2, n), "sex": rng.integers(0, 2, n)}
    return every, domain, lw.ExpertSubspace(["sex"], domain=domain).fit(every).metric_, pd.DataFrame(near)


def both_matter(frame):
    """Only two columns together change the answer, much; sex changes it a little."""
    corner = (frame["a"] >= 5) & (frame["b"] >= 2)
    return np.where(corner, 1e-6, 0.9 - 0.01 * frame["sex"])


@pytest.mark.parametrize("eps", [0.001, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("read", [True, False])
def test_a_small_domain_is_compared_with_as_a_whole(read, eps):
    every, domain, metric, X = setting(5, (6, 5))
    answer = model = both_matter
    if read:
        model = DecisionTreeClassifier(random_state=0).fit(every, (both_matter(every) > 0.5).astype(int))
        answer = lambda frame: model.predict_proba(frame)[:, 1]  # noqa: E731
    x, rows = (domain.encode(frame).to_numpy() for frame in (X, every))
    d = np.stack([metric.squared_norm(rows - own) for own in x])
    d = np.where(d < 1e-9, 0.0, d)
    loss = np.tile(-np.log(np.maximum(answer(every), 1e-12)), (len(X), 1))
    other = ((answer(every) > 0.5)[None] != (answer(X) > 0.5)[:, None]).astype(float)
    found = lw.audit(model, X, np.ones(len(X), int), metric=metric, domain=domain, eps=eps)
    assert found.value == pytest.approx(worst_mean(loss, d, eps), rel=1e-6)
    assert found.bracket("changed", eps=eps).lower == pytest.approx(worst_mean(other, d, eps), rel=1e-6)


@pytest.mark.parametrize("read", [True, False])
def test_a_small_budget_finds_what_the_curve_of_a_large_one_shows(read):
    every, domain, metric, X = setting(4, (300, 200))
    if read:
        some = every.sample(20_000, random_state=0)
        model = DecisionTreeClassifier(max_depth=1).fit(some, (some["a"] < 230).astype(int))
    else:
        model = lambda frame: np.where(frame["a"] >= 230, 0.5, 0.9)  # noqa: E731
    choices = {"metric": metric, "domain": domain}
    gap = {
        eps: lw.audit(model, X, np.ones(len(X), int), eps=eps, **choices) for eps in (0.001, 0.01, 0.1, 1.0)
    }
    for eps in (0.001, 0.01, 0.1):
        assert gap[1.0].curve.gap(eps) > 0
        assert gap[eps].gap >= 0.99 * gap[1.0].curve.gap(eps)
