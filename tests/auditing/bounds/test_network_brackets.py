"""Estimate ≤ brute force ≤ Bound on random small ReLU networks, equality where the engine says closed."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from likewise.auditing.bounds.branch_and_bound import maximise
from likewise.auditing.bounds.family import RegionBudget
from likewise.auditing.bounds.linear_bounds import hidden_bounds, output_lines
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import Regions, TableLayout, encoded_box
from likewise.core.errors import InputError
from likewise.data.column import Column, Dtype
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models.layers import Layers, read_relu_network
from likewise.models.losses import CrossEntropy, Hinge, Squared, ZeroOne

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
    return Layers(weights, tuple(rng.normal(size=len(w)) for w in weights))


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
                there &= cost <= COSTS_NOTHING * largest * (delta**2).sum(axis=1)
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

    with pytest.raises(InputError, match="not ReLUs"):
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


@pytest.mark.parametrize("seed", range(12))
def test_compiled_bounds_hold_what_the_plain_ones_hold(seed, monkeypatch):
    from likewise.auditing.bounds import linear_bounds

    rng = np.random.default_rng(seed)
    layout = TableLayout(made.random_columns(rng))
    sizes = [layout.width, 9, 7, 5, 1]
    weights = tuple(rng.normal(size=(b, a)) for a, b in pairwise(sizes))
    net = Layers(weights, tuple(rng.normal(size=len(w)) for w in weights))
    rows = made.every_row(layout.columns)
    whole = Regions(
        rows.min(axis=0)[None], rows.max(axis=0)[None], np.ones((1, layout.n_categories), dtype=np.uint8)
    )
    lower, upper = encoded_box(layout, whole)
    state = np.stack([np.full((1, 21), -np.inf), np.full((1, 21), np.inf)], axis=1)
    found = []
    for choice in (True, False):
        monkeypatch.setattr(linear_bounds, "is_compiled", lambda choice=choice: choice)
        found.append(hidden_bounds(net, lower, upper, layout.blocks, state))
    values, entering = layout.encode(rows), []
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        entering.append(values @ weight.T + bias)
        values = np.maximum(entering[-1], 0.0)
    truth = np.concatenate(entering, axis=1)
    for hidden in found:
        assert (hidden.bounds[0, 0] <= truth.min(axis=0)).all()
        assert (truth.max(axis=0) <= hidden.bounds[0, 1]).all()
    one, other = (h.bounds for h in found)
    unsure = (one[:, 0] < 0) & (one[:, 1] > 0)
    # Units that intervals show to be on are not bounded by lines, which may leave those after them a little wider.
    assert (one[:, 0][unsure] <= other[:, 0][unsure] + 1e-9).all()
    assert (one[:, 1][unsure] >= other[:, 1][unsure] - 1e-9).all()
    assert np.isclose(one[:, :, unsure[0]], other[:, :, unsure[0]], rtol=1e-9).mean() > 0.9


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_bound_lies_below_what_the_model_itself_computes(seed, single):
    """Large weights that cancel: without the stated slack rounding would break lines of regions of one row."""
    import torch

    rng = np.random.default_rng(seed)
    modules = []
    for a, b in pairwise([3, 30, 30, 1]):
        layer = torch.nn.Linear(a, b, dtype=torch.float32 if single else torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(rng.normal(size=(b, a)) * 10.0 ** rng.integers(0, 4)))
            layer.bias.copy_(torch.from_numpy(rng.normal(size=b) * 100.0))
        modules += [layer, torch.nn.ReLU()]
    module = torch.nn.Sequential(*modules[:-1])
    net = read_relu_network(module)
    columns = tuple(
        Column(f"x{i}", "continuous", Dtype("float64"), lower=-9, upper=9, start=i, stop=i + 1)
        for i in range(3)
    )
    family = NetworkFamily(net, TableLayout(columns), ZeroOne())
    X = rng.uniform(-9, 9, (300, 3))
    with torch.no_grad():
        own = module(torch.tensor(X, dtype=torch.float32 if single else torch.float64)).double().numpy()[:, 0]
    half = rng.choice([0.0, 1e-9, 0.1, 3.0], 300)[:, None]
    regions = Regions(np.maximum(X - half, -9), np.minimum(X + half, 9), np.zeros((300, 0), dtype=np.uint8))
    found = family.decide_by_lines(regions, np.zeros((300, family.n_units), dtype=bool))
    # Class 0 is certain where an upper line of f is below 0, class 1 where one of −f is.
    for y, value in enumerate((own, -own)):
        line = (found.slope[:, y, 0] * X).sum(axis=1) + found.offset[:, y, 0]
        assert (value <= line).all()
    assert not ((found.label == 1) & (own < 0)).any()
    assert not ((found.label == 0) & (own > 0)).any()


def test_an_exact_audit_of_a_network_of_raw_numbers_is_about_that_network():
    """Bounded in the domain's standardised units, the bound would lie below what the model attains."""
    import pandas as pd
    from sklearn.neural_network import MLPClassifier

    import likewise as lw

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(20, 60, 60), "hours": rng.integers(10, 60, 60)})
    y = (people.age + people.hours > 70).astype(int).to_numpy()
    net = MLPClassifier((6,), max_iter=3000, tol=1e-3, random_state=0).fit(people, y)
    domain = lw.TabularDomain.from_frame(people)
    metric = lw.ExpertSubspace(["hours"], domain=domain).fit(people).metric_
    result = lw.audit(net, people, y, metric=metric, domain=domain, eps=0.01, search="exact", random_state=0)
    assert result.certificate.bound is not None
    assert result.certificate.estimate.value <= result.certificate.bound.value + 1e-9
    # Twins of the same age at every hour that exists are within reach of a budget that is large enough.
    wide = lw.audit(net, people, y, metric=metric, domain=domain, eps=100.0, search="exact", random_state=0)
    ages, hours = (np.arange(people[name].min(), people[name].max() + 1) for name in ("age", "hours"))
    every = pd.DataFrame([(a, h) for a in ages for h in hours], columns=["age", "hours"])
    losses = (-np.log(np.maximum(net.predict_proba(every), 1e-12))).max(axis=0)
    assert np.mean(losses[y]) <= wide.certificate.bound.value + 1e-9
    assert wide.certificate.estimate.value == pytest.approx(np.mean(losses[y]), rel=1e-3)
