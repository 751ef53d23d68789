"""On a table small enough to list every possible person, the audit of valid rows must equal brute force."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

import likewise as lw
from likewise.auditing.dual.finite_dual import Frontier, dual_curve
from likewise.auditing.search.gradient.search import refine


def everybody():
    rows = itertools.product(["a", "b", "c", "d"], ["F", "M"], range(5), ["x", "y", "z"])
    return pd.DataFrame(rows, columns=["job", "sex", "years", "town"])


def network(d, seed):
    generator = torch.Generator().manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(d, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)).double()
    for parameter in net.parameters():
        parameter.data = 1.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return net


@pytest.fixture(scope="module", params=range(4))
def setting(request):
    world = everybody()
    domain = lw.TabularDomain.from_frame(world)
    rng = np.random.default_rng(request.param)
    people = world.iloc[rng.integers(len(world), size=40)].reset_index(drop=True)
    y = rng.integers(2, size=40)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(world).metric_
    net = network(domain.n_features, request.param)
    model = lw.models.as_model(net)
    encoded, possible = domain.encode_array(people), domain.encode_array(world)
    losses = model.loss_table(possible)[:, y].T  # person × possible row
    distance = np.stack([metric.without_feature_map().squared_norm(possible - row) for row in encoded])
    distance[distance < 1e-12] = 0.0
    return world, domain, people, y, metric, net, model, encoded, losses, distance


@pytest.mark.parametrize("lam", [0.05, 0.3, 1.0, 5.0, np.inf])
def test_refined_rows_reach_the_brute_force_optimum(setting, lam):
    _, domain, _, y, metric, _, model, encoded, losses, distance = setting
    paid = np.where(distance > 0, np.inf, 0.0) if np.isinf(lam) else lam * distance
    best = (losses - paid).max(axis=1)
    start = encoded + np.random.default_rng(0).normal(size=encoded.shape)
    found = refine(
        start, encoded, y, losses=model.losses, metric=metric.without_feature_map(), domain=domain, lam=lam
    )
    assert domain.validate(found) == ()
    spent = metric.without_feature_map().squared_norm(found - encoded)
    spent = np.where(spent < 1e-12, 0.0, spent)
    reached = model.losses(found, y) - (0.0 if np.isinf(lam) else lam * spent)
    if np.isinf(lam):
        assert (spent == 0).all()
    np.testing.assert_allclose(reached, best, atol=1e-8)


@pytest.mark.parametrize("eps", [0.0, 0.05, 0.5])
def test_the_audit_equals_brute_force_over_all_possible_people(setting, eps):
    _, domain, people, y, metric, net, model, encoded, losses, distance = setting
    n, m = losses.shape
    everything = Frontier.from_points(
        base_loss=model.losses(encoded, y),
        row=np.repeat(np.arange(n), m),
        squared_distance=distance.ravel(),
        loss=losses.ravel(),
        candidate=np.tile(np.arange(m), n),
    )
    curve = dual_curve(everything)
    found = lw.audit(net, people, y, metric=metric, domain=domain, eps=eps)
    assert found.status == "converged"
    assert found.value <= curve.value(eps) + 1e-9
    assert found.value == pytest.approx(curve.value(eps), rel=2e-3)
    assert found.pure_gap == pytest.approx(curve.gap(0.0), abs=1e-9)
    assert domain.validate(found.unfair_map.twins) == ()


def test_refinement_without_a_list_never_falls_below_the_person_and_mostly_finds_the_worst(
    setting, monkeypatch
):
    _, domain, _, y, metric, _, model, encoded, losses, distance = setting
    monkeypatch.setattr("likewise.auditing.search.gradient.search._MAX_LISTED", 0)
    found = refine(
        encoded, encoded, y, losses=model.losses, metric=metric.without_feature_map(), domain=domain, lam=0.3
    )
    reached = model.losses(found, y) - 0.3 * metric.without_feature_map().squared_norm(found - encoded)
    best = (losses - 0.3 * distance).max(axis=1)
    assert domain.validate(found) == ()
    assert (reached >= model.losses(encoded, y) - 1e-12).all()
    assert (reached <= best + 1e-9).all()
    assert (reached >= best - 1e-8).mean() >= 0.8
