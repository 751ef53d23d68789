"""Estimate ≤ brute force ≤ Bound on random small ReLU networks, equality where the engine says closed."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from likewise.auditing.bounds.brackets import RegionBudget
from likewise.auditing.bounds.branch_and_bound import maximise
from likewise.auditing.bounds.networks.linear_bounds import hidden_bounds, output_lines
from likewise.auditing.bounds.networks.network_family import NetworkFamily
from likewise.auditing.bounds.region_evaluation import FREE
from likewise.auditing.bounds.regions import Regions, encoded_box
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.core.errors import InputError
from likewise.models.losses import CrossEntropy, Hinge, Squared, ZeroOne
from likewise.models.relu_network import ReluNetwork, read_relu_network

_spec = importlib.util.spec_from_file_location(
    "random_ensembles", Path(__file__).with_name("random_ensembles.py")
)
made = importlib.util.module_from_spec(_spec)
sys.modules["random_ensembles"] = made
_spec.loader.exec_module(made)

TOL = 1e-6


def random_network(rng, n_inputs, n_outputs):
    sizes = [n_inputs, *rng.integers(2, 7, rng.integers(0, 4)), n_outputs]
    weights = tuple(rng.normal(size=(b, a)) * 1.2 for a, b in pairwise(sizes))
    return ReluNetwork(weights, tuple(rng.normal(size=len(w)) for w in weights))


def losses_by_formula(net, loss, encoded, target):
    outputs = net.outputs(encoded)
    if outputs.shape[1] == 1 and not loss.regression:
        outputs = np.hstack([-outputs / 2, outputs / 2])
    return loss.losses(outputs, np.full(len(encoded), target))


@pytest.mark.parametrize("seed", range(35))
def test_bracket_holds_the_brute_force_value(seed):
    rng = np.random.default_rng(seed)
    columns = made.random_columns(rng)
    layout = TableLayout(columns)
    loss, outputs = [
        (CrossEntropy(), 1),
        (CrossEntropy(), 2),
        (CrossEntropy(), 3),
        (Hinge(), 2),
        (ZeroOne(), 3),
        (Squared(), 1),
        (CrossEntropy(floor=0.2), 2),
    ][seed % 7]
    net = random_network(rng, layout.width, outputs)
    rows = made.every_row(columns)
    own = rows[rng.choice(len(rows), 2)]
    targets = rng.normal(size=2) if loss.regression else rng.integers(0, max(2, outputs), 2)
    metric = made.random_metric(rng, layout.width)
    family = NetworkFamily(net, layout, loss)
    encoded = layout.encode(rows)
    held = [i for i, column in enumerate(columns) if column.immutable]
    for lam in (0.0, 0.3, 3.0, np.inf):
        found = maximise(family, metric, layout.encode(own), targets, lam, tol=TOL)
        small = maximise(
            family, metric, layout.encode(own), targets, lam, tol=TOL, budget=RegionBudget(nodes=3)
        )
        for i, person in enumerate(own):
            losses = losses_by_formula(net, loss, encoded, targets[i])
            delta = encoded - layout.encode(person[None])
            cost = np.asarray(metric.squared_norm(delta))
            there = (rows[:, held] == person[held]).all(axis=1)
            if np.isinf(lam):
                largest = max(metric.scale, (metric.scale + metric.values).max(initial=0.0))
                there &= cost <= FREE * largest * (delta**2).sum(axis=1)
                truth = losses[there].max()
            else:
                truth = (losses - lam * cost)[there].max()
            for bracket in (found, small):
                assert bracket.lower[i] <= truth + 1e-9
                assert truth <= bracket.upper[i] + 1e-12
            assert found.closed[i]


@pytest.mark.parametrize("seed", range(20))
def test_lines_lie_above_the_network_everywhere_in_a_box(seed):
    rng = np.random.default_rng(1000 + seed)
    net = random_network(rng, 3, 2)
    centre, radius = rng.normal(size=(5, 3)), rng.uniform(0.0, 2.0, (5, 3))
    lower, upper = centre - radius, centre + radius
    none = np.zeros((0, 3), dtype=int)
    units = sum(len(w) for w in net.weights[:-1])
    known = np.stack([np.full((5, units), -np.inf), np.full((5, units), np.inf)], axis=1)
    hidden = hidden_bounds(net, lower, upper, none, known)
    head = rng.normal(size=(3, 2))
    lines = output_lines(net, head, hidden, lower, upper, none)
    for i in range(5):
        x = rng.uniform(lower[i], upper[i], (500, 3))
        x[:8] = np.where(rng.random((8, 3)) < 0.5, lower[i], upper[i])
        truth = net.outputs(x) @ head.T
        line = np.einsum("kd,nd->nk", lines.slope[i], x) + lines.offset[i]
        assert (truth <= line + 1e-9).all()
        assert (line <= lines.highest[i] + 1e-9).all()


def test_single_precision_networks_stay_within_the_stated_rounding():
    import torch

    torch_net = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.ReLU(), torch.nn.Linear(40, 2))
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in torch_net.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(size=tuple(parameter.shape))))
    net = read_relu_network(torch_net)
    X = rng.uniform(-3, 3, (2000, 6)).astype(np.float32)
    with torch.no_grad():
        own = torch_net(torch.from_numpy(X)).numpy().astype(np.float64)
    off = np.abs(own - net.outputs(X.astype(np.float64))).max()
    assert 0 < off < net.rounding(np.full(6, 3.0)) < 1e-2


def test_smooth_units_are_refused_by_name():
    import torch

    with pytest.raises(InputError, match="no ReLUs"):
        read_relu_network(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)))


def test_a_region_of_one_row_is_decided_as_the_row_is():
    rng = np.random.default_rng(3)
    columns = made.random_columns(rng)
    layout = TableLayout(columns)
    net = random_network(rng, layout.width, 2)
    family = NetworkFamily(net, layout, ZeroOne())
    rows = made.every_row(columns)
    allowed = np.zeros((len(rows), layout.n_categories), dtype=np.uint8)
    for i in np.flatnonzero(layout.is_category):
        allowed[np.arange(len(rows)), layout.offset[i] + rows[:, i].astype(int)] = 1
    points = Regions(rows.copy(), rows.copy(), allowed)
    assert np.allclose(*encoded_box(layout, points))
    label, _, _ = family.decide(points, family.state(len(rows)))
    assert (label == family.decisions(rows)).all()
