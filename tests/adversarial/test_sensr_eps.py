"""The budget ε of SenSR in a torch loop of one's own: it decides what is learned, as Algorithm 2 of the paper says.

What broke: the default search had no full phase, so that losses were the same for every ε and λ stayed at 2.
"""

import warnings

import numpy as np
import pytest
import torch

import likewise as lw
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.training import ArrayBatches, Batch, TrainingWarning, mlp, train

BUDGETS = (0.001, 0.1, 10.0)


@pytest.fixture(scope="module")
def german():
    data = lw.datasets.load_german()
    metric = lw.ExpertSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_
    rows = Batch(torch.tensor(data.X_train.to_numpy("float32")), torch.tensor(data.y_train))
    return rows, metric.without_feature_map()


def own_loop(rows, objective, steps=9):
    """The loop of the README: losses, λ after each step, and the mean squared distance of each batch."""
    net = mlp(rows.x.shape[1], (16,), 2, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    batches = ArrayBatches(rows, batch_size=64, generator=torch.Generator().manual_seed(0))
    state = objective.init(net)
    told = []
    for _ in range(steps):
        loss, state = objective.step(net, batches.next(), state)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told.append((float(loss.detach()), state.lambda_, state.last["squared_distance"]))
    return np.array(told).T


@pytest.fixture(scope="module")
def runs(german):
    rows, metric = german
    return {eps: own_loop(rows, lw.SenSR(metric, eps=eps)) for eps in BUDGETS}


def test_losses_and_lambda_differ_with_eps(runs):
    for one, two in ((0.001, 0.1), (0.1, 10.0), (0.001, 10.0)):
        # The first batch is searched at the same λ; from then on nothing is the same.
        assert runs[one][0, 0] == runs[two][0, 0]
        assert (np.abs(runs[one][0, 2:] - runs[two][0, 2:]) > 1e-6).all()
        assert (runs[one][1] > runs[two][1]).all()


def test_lambda_rises_for_a_small_budget_and_falls_for_a_large_one(runs):
    start = 2.0
    assert runs[0.001][1, -1] > start + 0.5
    assert (np.diff(runs[0.001][1]) > 0).all()
    assert runs[10.0][1, -1] == 0.0
    # At a lower price people are moved further.
    spent = [runs[eps][2, -5:].mean() for eps in BUDGETS]
    assert spent[0] < spent[1] < spent[2]


def test_lambda_moves_as_algorithm_2_says(runs):
    for eps in BUDGETS:
        _, lambdas, spent = runs[eps]
        expected = 2.0
        for told, moved in zip(lambdas, spent, strict=True):
            expected = max(0.0, expected - 1.0 * (eps - moved))
            assert told == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("search", ["fast", GradientSearch(subspace_steps=3, full_steps=0)])
def test_a_search_without_a_full_phase_says_that_eps_has_no_effect(german, search):
    rows, metric = german
    net = mlp(rows.x.shape[1], (), 2)
    objective = lw.SenSR(metric, eps=0.1, search=search)
    with pytest.warns(TrainingWarning, match=r"eps=0\.1 has no effect.*full_steps > 0") as told:
        objective.init(net)
    assert len(told) == 1
    with pytest.warns(TrainingWarning, match="eps=0.1 has no effect"):
        train(net, rows, objective, steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.SenSR(metric, eps=0.0, search=search).init(net)
        lw.SenSR(metric, eps=0.1).init(net)
