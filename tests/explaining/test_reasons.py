"""Shapley values equal those of the definition, over all subsets of columns."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import likewise as lw
from likewise.explaining.reasons import contributions, of_score
from likewise.explaining.situation import ExplanationRequest, situate

COLUMNS = 12


def by_definition(score, own, others):
    """The Shapley value of every column, from the worth of all subsets."""
    n = len(own)
    worth = {}
    for size in range(n + 1):
        for subset in combinations(range(n), size):
            rows = others.copy()
            rows[:, list(subset)] = own[list(subset)]
            worth[subset] = rows
    keys = list(worth)
    values = score(np.concatenate([worth[key] for key in keys])).reshape(len(keys), len(others)).mean(axis=1)
    value = dict(zip(keys, values, strict=True))
    found = np.zeros(n)
    for subset in keys:
        for p in set(range(n)) - set(subset):
            weight = factorial(len(subset)) * factorial(n - len(subset) - 1) / factorial(n)
            found[p] += weight * (value[tuple(sorted((*subset, p)))] - value[subset])
    return found


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {f"x{i}": rng.integers(0, 6, n) for i in range(COLUMNS - 1)} | {"sex": rng.integers(0, 2, n)}
    )
    y = (table.sum(axis=1) + 3 * table["x0"] * (table["x1"] > 2) + rng.normal(0, 3, n) > 38).astype(int)
    return table, y


MODELS = {
    "forest": RandomForestClassifier(5, max_depth=5, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=10, random_state=0),
    "linear": LogisticRegression(max_iter=1000),
    "network": MLPClassifier((5,), solver="lbfgs", max_iter=50, random_state=0),
}


@pytest.mark.filterwarnings("ignore:lbfgs failed")
@pytest.mark.parametrize("kind", MODELS)
def test_equal_to_the_definition_on_twelve_columns(kind):
    table, y = people()
    situation = situate(MODELS[kind].fit(table, y), table, ["sex"], ExplanationRequest(1))
    own, others = situation.people[0], situation.people[5:9]
    found = contributions(situation, own, others)
    family = situation.family[0]
    assert found.exact
    if found.method == "enumerated":
        score = situation.scores
    else:

        def score(rows):
            outputs = family.outputs(rows)[0]
            if kind == "forest":
                return outputs[:, 1]
            return outputs[:, 0] if outputs.shape[1] == 1 else outputs[:, 1] - outputs[:, 0]

    np.testing.assert_allclose(found.values, by_definition(score, own, others), atol=1e-9)
    mean = score(others).mean()
    assert found.values.sum() + mean == pytest.approx(score(own[None, :])[0], abs=1e-9)
    assert found.base == pytest.approx(mean, abs=1e-9)


def test_sampled_values_lie_within_their_errors():
    weights = np.linspace(-1, 1, 20)

    def score(rows):
        return rows @ weights + rows[:, 0] * rows[:, 1]

    rng = np.random.default_rng(1)
    own, others = rng.normal(size=20), rng.normal(size=(8, 20))
    found = of_score(score, own, others, most_rows=40_000)
    assert not found.exact
    exact = (own - others.mean(axis=0)) * weights
    # Of x₀x₁ each of the two gets half of what it changes alone and together.
    cross = np.array([own[0] * own[1] - o[0] * o[1] for o in others])
    alone = np.array([[own[0] * o[1] - o[0] * o[1], o[0] * own[1] - o[0] * o[1]] for o in others])
    exact[0] += ((alone[:, 0] + cross - alone[:, 1]) / 2).mean()
    exact[1] += ((alone[:, 1] + cross - alone[:, 0]) / 2).mean()
    assert (np.abs(found.values - exact) <= 5 * found.errors + 1e-9).all()


def test_reasons_do_not_depend_on_the_order_of_rows():
    table, y = people()
    model = MODELS["forest"].fit(table, y)
    one = lw.explain(model, table, 7, sensitive_features=["sex"], favourable=1, alternatives=0)
    mixed = table.sample(frac=1.0, random_state=3)
    other = lw.explain(model, mixed, 7, sensitive_features=["sex"], favourable=1, alternatives=0)
    assert [(r.column, round(r.contribution, 9)) for r in one.reasons] == [
        (r.column, round(r.contribution, 9)) for r in other.reasons
    ]
    assert (one.least, one.decision) == (other.least, other.decision)
