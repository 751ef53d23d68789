"""SenSR: the fast path against autograd, Figure 1 of the paper, worst cases, λ, a user's own loop."""

import copy
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.errors import InputError
from likewise.core.randomness import torch_generator
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, DataRangeDomain
from likewise.datasets import load_adult, make_toy
from likewise.fair_metrics import ExpertSubspace, FairMetric, euclidean
from likewise.models import AutogradOracle, MLPOracle
from likewise.training import (
    ERM,
    SEARCHES,
    ArrayBatches,
    Batch,
    SenSeI,
    SenSR,
    TrainingWarning,
    mlp,
    sensr as sensr_module,
    train,
    wasserstein_robust,
)


@pytest.fixture(scope="module")
def adult():
    data = load_adult()
    rows = np.random.default_rng(0).permutation(len(data.y_train))[:4000]
    metric = ExpertSubspace(directions=["sex", "race"]).fit(data.X_train).metric_
    return np.asarray(data.X_train)[rows], data.y_train[rows], metric.without_feature_map()


@pytest.fixture(scope="module")
def toy():
    data = make_toy()
    subspace = Subspace.from_directions(data.sensitive_directions)
    return data, FairMetric.from_subspace(subspace)


# ---- must show 3: the fast path equals plain autograd --------------------------------------------------


@pytest.fixture
def searched(monkeypatch):
    """The worst cases of every step, as they are found."""
    found, real = [], SenSR._find

    def noted(self, oracle, rows, y, state):
        result = real(self, oracle, rows, y, state)
        found.append(result.x)
        return result

    monkeypatch.setattr(SenSR, "_find", noted)
    return found


def by_autograd(net):
    """Keep a network from the hand-written gradients: a hook may compute anything."""
    net.register_forward_hook(lambda module, given, answer: None)
    return net


def two_paths(adult, searched, search, dtype, *, steps, weight=0.0, together=False, **choices):
    """Train twins, one by hand-written gradients and one by autograd; yield what they found and their weights.

    `together` starts every step from the same weights, so that rounding is not amplified from step to step.
    """
    X, y, free = adult
    metric = FairMetric.from_subspace(free.subspace, weight=weight)
    source = ArrayBatches(
        Batch.from_arrays(X, y, dtype=dtype), 150, generator=torch.Generator().manual_seed(0)
    )
    nets = [mlp(41, (100,), 2, generator=torch_generator(0), dtype=dtype) for _ in range(2)]
    by_autograd(nets[1])
    objectives = [SenSR(metric, search=search, **choices) for _ in nets]
    optimizers = [torch.optim.Adam(net.parameters(), lr=1e-3) for net in nets]
    states = [objective.init(net) for objective, net in zip(objectives, nets, strict=True)]
    for _ in range(steps):
        batch = source.next()
        searched.clear()
        if together:
            nets[1].load_state_dict(nets[0].state_dict())
            optimizers[1].load_state_dict(copy.deepcopy(optimizers[0].state_dict()))
        for i in range(2):
            loss, states[i] = objectives[i].step(nets[i], batch, states[i])
            optimizers[i].zero_grad()
            loss.backward()
            optimizers[i].step()
        weights = [torch.cat([p.detach().reshape(-1) for p in net.parameters()]) for net in nets]
        yield tuple(searched), weights


@pytest.mark.parametrize(
    ("search", "choices"),
    [
        ("paper", {}),
        ("fast", {"eps": 0.0}),
        ("two_phase", {}),
        (GradientSearch(full_steps=6), {"weight": 0.01, "eps": 0.1, "lambda_rule": "dual"}),
    ],
    ids=["paper", "fast", "two_phase", "fixed_point"],
)
def test_fast_path_equals_autograd_for_twenty_steps(adult, searched, search, choices):
    steps = list(two_paths(adult, searched, search, torch.float64, steps=20, **choices))
    for (one, two), (w1, w2) in steps:
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(w1, w2, rtol=1e-4, atol=1e-4)
    # And the worst cases are worth comparing: people were moved.
    assert (steps[0][0][0] - steps[1][0][0]).abs().max() > 1e-2


@pytest.mark.parametrize("search", ["fast", GradientSearch(subspace_steps=5, full_steps=0)])
def test_fast_path_equals_autograd_in_single_precision(adult, searched, search):
    for (one, two), (w1, w2) in two_paths(
        adult, searched, search, torch.float32, steps=20, together=True, eps=0.0
    ):
        # A row on a kink of the ReLU may take another turn for one bit: not more than one in a hundred.
        same = ((one - two).abs() <= 1e-4 * (1 + two.abs())).all(dim=1)
        assert same.double().mean() > 0.99
        torch.testing.assert_close(w1, w2, rtol=1e-4, atol=1e-4)


def test_the_two_paths_are_two_paths(adult, monkeypatch):
    X, y, metric = adult
    made = []
    real = sensr_module.make_oracle
    monkeypatch.setattr(sensr_module, "make_oracle", lambda *a, **k: made.append(real(*a, **k)) or made[-1])
    for net in (mlp(41), by_autograd(mlp(41))):
        objective = SenSR(metric)
        objective.step(net, (torch.as_tensor(X[:5]).float(), torch.as_tensor(y[:5])), objective.init(net))
    assert [type(oracle) for oracle in made] == [MLPOracle, AutogradOracle]


# ---- must show 7: the toy of Figure 1 -----------------------------------------------------------------


def tilt(net, X):
    """Mean slope of the logit by the horizontal coordinate over that by the vertical one: |w1/w2| if linear."""
    x = torch.as_tensor(X, dtype=torch.float32).requires_grad_()
    scores = net(x)
    (slope,) = torch.autograd.grad((scores[:, 1] - scores[:, 0]).sum(), x)
    return float(slope[:, 0].abs().mean() / slope[:, 1].abs().mean())


@pytest.mark.parametrize("hidden", [(), (32,)], ids=["linear", "mlp"])
def test_figure_1_sensr_does_not_depend_on_the_sensitive_direction(toy, hidden):
    data, metric = toy
    domain = DataRangeDomain.from_data(data.X, metric.subspace)
    fair = SenSR(metric, eps=0.0, domain=domain, search=GradientSearch(subspace_steps=4, full_steps=0))
    settings = {"batch_size": 500, "sampling": "uniform"}
    plain, robust = mlp(2, hidden), mlp(2, hidden)
    train(plain, (data.X, data.y), ERM(), steps=200, lr=0.02, **settings)
    first = train(robust, (data.X, data.y), fair, steps=250, lr=0.02, **settings)
    train(robust, (data.X, data.y), fair, steps=100, lr=0.002, state=first.state, **settings)
    assert tilt(plain, data.X) > 0.2
    assert tilt(robust, data.X) < 0.02
    level = (data.X[:, 1] > 0).astype(int)
    decided = robust(torch.as_tensor(data.X, dtype=torch.float32)).argmax(1).numpy()
    assert (decided == level).mean() > 0.95


def test_figure_1_at_the_papers_unbounded_settings(toy):
    data, metric = toy
    net = mlp(2, ())
    train(net, (data.X, data.y), SenSR(metric), steps=300, batch_size=500, sampling="uniform", lr=0.03)
    assert tilt(net, data.X) < 0.02


# ---- what a step does ----------------------------------------------------------------------------------


def test_worst_cases_stay_in_the_domain_and_move_only_where_it_is_free(toy):
    data, metric = toy
    batch = Batch.from_arrays(data.X, data.y)
    net = mlp(2, (16,))
    box = BoxDomain.from_data(data.X)
    objective = SenSR(metric, eps=0.0, domain=box, search=GradientSearch(full_steps=0))
    found = objective.worst_case(net, batch, objective.init(net))
    assert box.contains(found.x).all()
    torch.testing.assert_close(found.x[:, 1], batch.x[:, 1])
    assert (found.x[:, 0] - batch.x[:, 0]).abs().max() > 0.1
    plain = ERM().row_loss.torch_losses(net(batch.x), batch.y)
    assert (found.loss >= plain - 1e-6).all()


def test_the_loss_is_that_of_the_worst_cases_and_its_gradient_holds_them_fixed(toy):
    data, metric = toy
    batch = Batch.from_arrays(data.X, data.y, weight=np.arange(len(data.y)) + 1.0)
    net = mlp(2, (16,))
    objective = SenSR(metric, search="paper")
    state = objective.init(net)
    found = objective.worst_case(net, batch, state)
    losses = nn.functional.cross_entropy(net(found.x), batch.y, reduction="none")
    expected = (losses * batch.weight).sum() / batch.weight.sum()
    loss, after = objective.step(net, batch, state)
    torch.testing.assert_close(loss, expected)
    wanted = torch.autograd.grad(expected, list(net.parameters()))
    for one, two in zip(torch.autograd.grad(loss, list(net.parameters())), wanted, strict=True):
        torch.testing.assert_close(one, two)
    assert after.last["squared_distance"] == pytest.approx(float(found.squared_distance.mean()))
    assert objective.robust_loss(net, Batch(batch.x, batch.y), state) == pytest.approx(
        2.0 * objective.eps + float((found.loss - 2.0 * found.squared_distance).mean()), rel=1e-5
    )


def test_the_papers_search_has_the_papers_numbers():
    paper = SEARCHES["paper"]
    assert (paper.method, paper.subspace_steps, paper.subspace_step_size) == ("adam", 50, 10.0)
    assert (paper.full_steps, paper.full_step_size) == (40, 1e-4)
    # The net cannot resist a single step, so every Adam step has its full size: 50 steps of 10.
    net = nn.Linear(2, 2)
    nn.init.constant_(net.bias, 0.0)
    net.weight.data.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]))
    objective = SenSR(metric, search="paper")
    found = objective.worst_case(net, (torch.zeros(1, 2), torch.tensor([0])), objective.init(net))
    assert found.x[0, 0] == pytest.approx(-500.0, rel=0.05)


@pytest.mark.parametrize(("rule", "binds"), [("paper", True), ("dual", True)])
def test_lambda_settles_where_the_budget_is_spent(toy, rule, binds):
    data, _ = toy
    objective = SenSR(
        euclidean(2),
        eps=0.05,
        lambda_rule=rule,
        lambda_step=5.0,
        search=GradientSearch(full_steps=8, probes=0),
    )
    result = train(mlp(2, ()), (data.X, data.y), objective, steps=150, lr=0.02, batch_size=500)
    spent = result.history["squared_distance"][-50:].mean()
    assert spent == pytest.approx(0.05, rel=0.25)
    assert result.findings == ()


def test_eps_zero_allows_free_moves_only(toy):
    data, metric = toy
    objective = SenSR(metric, eps=0.0, domain=BoxDomain.from_data(data.X), search=GradientSearch())
    result = train(mlp(2, ()), (data.X, data.y), objective, steps=20, lr=0.02)
    assert math.isinf(result.state.lambda_)
    np.testing.assert_allclose(result.history["squared_distance"], 0.0, atol=1e-10)
    assert "at_floor" not in result.state.counters


def test_warm_starts_help_and_belong_to_rows(toy):
    data, metric = toy
    batch = Batch.from_arrays(data.X, data.y)
    net = mlp(2, (16,), generator=torch_generator(3))
    weighted = FairMetric.from_subspace(metric.subspace, weight=0.05)
    few = GradientSearch(full_steps=2, probes=0)
    values = {}
    for warm in (False, True):
        objective = SenSR(weighted, lambda_rule="fixed", lambda_init=0.5, search=few, warm_start=warm)
        state = objective.init(net)
        for _ in range(4):
            # Every pass sees the rows in another order.
            order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(state.step))
            found = objective.worst_case(net, batch.take(order), state)
            _, state = objective.step(net, batch.take(order), state)
        values[warm] = float(found.objective(0.5).mean())
        assert (state.warm is not None) is warm
    assert values[True] > values[False] + 1e-4


# ---- what it says when something is off ----------------------------------------------------------------


def test_a_lambda_at_its_floor_is_reported(toy):
    data, metric = toy
    timid = GradientSearch(
        method="adam", subspace_steps=2, subspace_step_size=1.0, full_steps=2, full_step_size=1e-5
    )
    objective = SenSR(metric, eps=0.1, search=timid, lambda_rule="authors")
    with pytest.warns(TrainingWarning, match="so ε never bound"):
        result = train(mlp(2, ()), (data.X, data.y), objective, steps=60, lr=0.05)
    assert result.findings[0].code == "eps_never_binds"
    assert result.findings[0].share > 0.9


def test_a_search_that_fails_is_reported_and_training_goes_on_where_people_stand():
    class Cracked(nn.Module):
        """Not finite for rows that go far to the left."""

        def __init__(self):
            super().__init__()
            self.inner = mlp(2, ())

        def forward(self, x):
            return self.inner(x) + torch.log((x[:, :1] + 3).clamp(min=0)).clamp(max=0) * 0

    data = make_toy()
    metric = FairMetric.from_subspace(Subspace.from_directions(data.sensitive_directions))
    X = np.clip(data.X, -2.9, None)
    with pytest.warns(TrainingWarning) as caught:
        result = train(Cracked(), (X, data.y), SenSR(metric), steps=60, lr=0.02)
    assert "search_failed" in [finding.code for finding in result.findings]
    assert any("not finite for" in str(w.message) for w in caught)
    assert result.status == "finished"


def test_a_search_that_finds_nothing_is_reported(toy):
    data, metric = toy
    stuck = BoxDomain(np.full(2, -50.0), np.full(2, 50.0), immutable=(0, 1))
    with pytest.warns(TrainingWarning, match="found nothing worse"):
        train(
            mlp(2, ()),
            (data.X, data.y),
            SenSR(metric, domain=stuck, search=GradientSearch()),
            steps=60,
            lr=0.05,
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: SenSR(m, eps=-1), "'eps' must be a finite number >= 0, got -1"),
        (lambda m: SenSR(m, lambda_init=-1), "'lambda_init' must be"),
        (lambda m: SenSR(m, lambda_rule="newton"), "'lambda_rule' must be one of"),
        (lambda m: SenSR(m, search="slow"), "'search' must be one of"),
        (lambda m: SenSR(ExpertSubspace(directions=["a"])), "once it is fitted"),
        (lambda m: SenSR(FairMetric(1.0, m.basis, m.values, feature_map=lambda x: x)), "without_feature_map"),
        (lambda m: SenSR(m, loss="zero_one").row_loss, "no slope"),
        (lambda m: SenSeI(m, rho=-1), "'rho' must be"),
        (lambda m: SenSeI(m, outputs="odds"), "'outputs' must be"),
        (lambda m: train(mlp(3), (np.eye(3), [0, 1, 1]), SenSR(m), steps=1), "metric is of 2 columns, the rows have 3"),
        (
            lambda m: train(mlp(3), (np.eye(3), [0, 1, 1]), SenSR(euclidean(), domain=BoxDomain([0.0], [1.0])), steps=1),
            "domain is of 1 columns",
        ),
    ],
)  # fmt: skip
def test_bad_choices_are_refused(toy, make, message):
    with pytest.raises(InputError, match=message):
        make(toy[1])


# ---- the torch way -------------------------------------------------------------------------------------


class Mine(nn.Module):
    """A user's own module: a skip connection, layer norm and dropout."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(2, 16), nn.LayerNorm(16), nn.Linear(18, 2)

    def forward(self, x):
        h = nn.functional.dropout(torch.tanh(self.norm(self.first(x))), 0.1, self.training)
        return self.last(torch.cat([h, x], dim=1))


def test_ten_lines_of_a_users_own_loop(toy):
    data, metric = toy
    torch.manual_seed(0)
    X, y = torch.as_tensor(data.X, dtype=torch.float32), torch.as_tensor(data.y)
    domain = DataRangeDomain.from_data(data.X, metric.subspace)

    net = Mine()
    loader = DataLoader(TensorDataset(X, y), batch_size=250, shuffle=True)
    objective = SenSR(metric, eps=0.0, domain=domain, search=GradientSearch(subspace_steps=4, full_steps=0))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    state = objective.init(net)
    for _epoch in range(60):
        for batch in loader:
            loss, state = objective.step(net, batch, state)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    assert state.step == 120
    assert net.training
    net.eval()
    assert (net(X).argmax(1) == y).double().mean() > 0.85
    # Whoever is moved along the sensitive direction is decided as before.
    moved = X.clone()
    moved[:, 0] = moved[:, 0].flip(0)
    assert (net(moved).argmax(1) == net(X).argmax(1)).double().mean() > 0.97


def test_wasserstein_robust_is_sensr_with_the_euclidean_metric(toy):
    data, _ = toy
    robust = wasserstein_robust(2, eps=0.1)
    assert isinstance(robust, SenSR)
    batch = Batch.from_arrays(data.X, data.y)
    torch.testing.assert_close(
        robust.metric.squared_distance(batch.x[:3], batch.x[3:6]),
        (batch.x[:3] - batch.x[3:6]).square().sum(1),
    )
    net = mlp(2, ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = train(net, batch, robust, steps=100, lr=0.02)
    assert result.history["squared_distance"][-20:].mean() == pytest.approx(0.1, rel=0.3)


def sensei(toy, rho, outputs="probabilities"):
    data, metric = toy
    net = mlp(2, (16,))
    domain = DataRangeDomain.from_data(data.X, metric.subspace)
    search = GradientSearch(subspace_steps=4, full_steps=0)
    objective = SenSeI(metric, rho=rho, outputs=outputs, domain=domain, search=search)
    train(net, (data.X, data.y), objective, steps=120, lr=0.025, batch_size=250, warn=False)
    return net


def test_sensei_at_rho_0_is_plain_training(toy):
    assert tilt(sensei(toy, rho=0.0), toy[0].X) > 0.5


@pytest.mark.parametrize("outputs", ["probabilities", "logits"])
def test_sensei_makes_outputs_alike(toy, outputs):
    data, net = toy[0], sensei(toy, rho=20.0, outputs=outputs)
    assert tilt(net, data.X) < 0.1
    decided = net(torch.as_tensor(data.X, dtype=torch.float32)).argmax(1).numpy()
    assert (decided == data.y).mean() > 0.85


def test_sensei_fast_path_equals_autograd(toy):
    data, metric = toy
    batch = Batch.from_arrays(data.X, data.y, dtype=torch.float64)
    plain = mlp(2, (16,), dtype=torch.float64)
    for outputs in ("probabilities", "logits"):
        found = []
        for net in (plain, by_autograd(copy.deepcopy(plain))):
            objective = SenSeI(metric, outputs=outputs, search="paper")
            found.append(objective.worst_case(net, batch, objective.init(net)))
        torch.testing.assert_close(found[0].x, found[1].x, rtol=1e-4, atol=1e-4)
        assert (found[0].loss > 1e-3).double().mean() > 0.9
