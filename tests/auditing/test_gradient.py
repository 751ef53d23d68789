"""The gradient search: rows by themselves, best points kept, honest about what is not finite."""

import numpy as np
import pytest
import torch

from likewise.auditing.search.gradient.ascent import RowStatus, SearchResult
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.errors import InputError, ModelError
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, DataRangeDomain, TabularDomain, Unbounded
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis
from likewise.models import AutogradOracle, make_oracle

D, N = 7, 300


def network(dtype=torch.float64, seed=0, scale=2.0):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(D, 30), torch.nn.ReLU(), torch.nn.Linear(30, 2)).to(dtype)
    with torch.no_grad():
        net[2].weight.mul_(scale)
    return net


def data(n=N, dtype=torch.float64, seed=1):
    rng = np.random.default_rng(seed)
    return torch.as_tensor(rng.normal(size=(n, D))).to(dtype), torch.as_tensor(rng.integers(0, 2, size=n))


def subspace(seed=2):
    return Subspace.from_directions(np.random.default_rng(seed).normal(size=(2, D)))


def settings():
    """Metric and domain of every kind of space the search has."""
    x, _ = data()
    free, cheap = FairMetric.from_subspace(subspace()), FairMetric.from_subspace(subspace(), weight=0.05)
    root = np.random.default_rng(5).normal(size=(D, D - 1))
    box = BoxDomain(x.numpy().min(0), x.numpy().max(0), immutable=(3,))
    return {
        "whitened": (cheap, Unbounded()),
        "euclidean": (euclidean(D), Unbounded()),
        "any width": (euclidean(), Unbounded()),
        "box": (cheap, box),
        "free in a box": (free, box),
        "free axes in a box": (FairMetric.from_subspace(Subspace.from_directions(np.eye(D)[:2])), box),
        "data range": (free, DataRangeDomain.from_data(x.numpy(), subspace())),
        "low rank": (mahalanobis(root @ root.T), box),
    }


SETTINGS = settings()
pytestmark = pytest.mark.filterwarnings("error")


def run(search, x, y, name="whitened", lam=1.0, net=None, **more):
    metric, domain = SETTINGS[name]
    oracle = make_oracle(network(x.dtype) if net is None else net)
    return search.run(oracle, x, y, metric=metric, domain=domain, lam=lam, **more)


def own_loss(x, y, net=None):
    return make_oracle(network(x.dtype) if net is None else net).loss(x, y)


@pytest.mark.parametrize("lam", [0.0, 0.3, 3.0, np.inf])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("method", ["fixed_point", "adam"])
def test_result_is_what_it_says_and_never_worse_than_the_row(name, method, lam):
    if lam == 0.0 and isinstance(SETTINGS[name][1], Unbounded):
        pytest.skip("nothing stops the search")
    x, y = data()
    metric, domain = SETTINGS[name]
    search = GradientSearch(method=method, full_steps=20, full_step_size=0.1, restarts=1)
    found = run(search, x, y, name, lam)
    assert found.finite.all()
    torch.testing.assert_close(found.loss, own_loss(found.x, y), rtol=0, atol=1e-12)
    torch.testing.assert_close(
        found.squared_distance, metric.squared_distance(found.x, x), rtol=1e-9, atol=1e-9
    )
    assert (found.objective(lam) >= own_loss(x, y)).all()
    assert domain.contains(found.x, x, tol=1e-9).all()
    if "box" in name:
        assert torch.equal(found.x[:, 3], x[:, 3])
    if np.isinf(lam):
        assert float(found.squared_distance.max()) < 1e-10
        if "free" in name or name == "data range":
            assert float((found.loss - own_loss(x, y)).mean()) > 0.05
        elif name != "low rank":
            assert torch.equal(found.x, x)
    else:
        assert float((found.objective(lam) - own_loss(x, y)).mean()) > 0.001


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("method", ["fixed_point", "adam"])
def test_a_row_does_not_care_who_travels_with_it(name, method):
    x, y = data(2000)
    search = GradientSearch(method=method, full_step_size=0.1, restarts=1, full_steps=15)
    whole = run(search, x, y, name)
    order = torch.as_tensor(np.random.default_rng(0).permutation(500))
    shuffled = run(search, x[order], y[order], name)
    torch.testing.assert_close(shuffled.x, whole.x[order], rtol=0, atol=1e-5)
    some = run(search, x[:20], y[:20], name)
    torch.testing.assert_close(some.x, whole.x[:20], rtol=0, atol=1e-5)
    for i in range(3):
        alone = run(search, x[i : i + 1], y[i : i + 1], name)
        torch.testing.assert_close(alone.x, whole.x[i : i + 1], rtol=0, atol=1e-5)
        assert torch.equal(alone.status, whole.status[i : i + 1])
    blocks = run(GradientSearch(**{**search.__dict__, "batch_size": 37}), x[:150], y[:150], name)
    torch.testing.assert_close(blocks.x, whole.x[:150], rtol=0, atol=1e-5)


def test_threads_and_seeds_do_not_change_the_result():
    x, y = data()
    search = GradientSearch(restarts=3)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            results.append(run(search, x, y, generator=torch.Generator().manual_seed(7)))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0].x, results[2].x)
    assert torch.equal(results[0].loss, results[2].loss)
    torch.testing.assert_close(results[0].x, results[1].x, rtol=0, atol=1e-5)
    other = run(search, x, y, generator=torch.Generator().manual_seed(8))
    assert not torch.equal(results[0].x, other.x)


def test_the_global_generator_is_left_alone():
    x, y = data(20)
    net = network()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    run(GradientSearch(restarts=2), x, y, net=net)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["whitened", "box", "free in a box"])
@pytest.mark.parametrize("method", ["fixed_point", "adam"])
def test_more_steps_and_restarts_never_lower_the_value(name, method):
    x, y = data()
    last = own_loss(x, y)
    for steps in (0, 1, 2, 4, 8, 16, 32):
        value = run(GradientSearch(full_steps=steps, method=method), x, y, name).objective(1.0)
        if steps > 0:
            assert (value >= last - 1e-9).all()
            last = value
    for restarts in (0, 1, 3):
        more = GradientSearch(full_steps=32, method=method, restarts=restarts)
        value = run(more, x, y, name).objective(1.0)
        assert (value >= last - 1e-9).all()
        last = value
    phase = own_loss(x, y)
    for steps in (1, 2, 5, 10):
        only = GradientSearch(subspace_steps=steps, full_steps=0, method=method)
        value = run(only, x, y, "data range").objective(1.0)
        assert (value >= phase - 1e-9).all()
        phase = value


@pytest.mark.parametrize("name", SETTINGS)
def test_both_precisions_agree(name):
    x, y = data()
    net = network()
    exact = run(GradientSearch(), x, y, name, net=net)
    single = run(GradientSearch(), x.float(), y, name, net=network(torch.float32))
    assert single.x.dtype == single.loss.dtype == single.squared_distance.dtype == torch.float32
    assert exact.status.dtype == torch.int8
    near = (single.objective(1.0) - exact.objective(1.0)).abs()
    # Rounding may turn a row at a kink to another maximum; never many of them, and none on average.
    assert float((near < 1e-3).double().mean()) > 0.95
    assert float(single.objective(1.0).mean()) == pytest.approx(float(exact.objective(1.0).mean()), rel=3e-3)


def test_fast_path_and_autograd_find_the_same():
    x, y = data(120)
    for name in SETTINGS:
        metric, domain = SETTINGS[name]
        choices = {"metric": metric, "domain": domain, "lam": 1.0}
        fast = GradientSearch().run(make_oracle(network()), x, y, **choices)
        slow = GradientSearch().run(AutogradOracle(network()), x, y, **choices)
        same = (fast.objective(1.0) - slow.objective(1.0)).abs() < 1e-6
        assert float(same.double().mean()) > 0.97


def test_warm_start_is_used_and_never_hurts():
    x, y = data()
    best = run(GradientSearch(restarts=6), x, y)
    plain = run(GradientSearch(full_steps=2, probes=0), x, y)
    for probes in (0, 2):
        warm = run(GradientSearch(full_steps=2, probes=probes), x, y, start=best.x)
        assert (warm.objective(1.0) >= best.objective(1.0) - 1e-9).all()
    assert float(best.objective(1.0).mean()) > float(plain.objective(1.0).mean())
    useless = run(GradientSearch(full_steps=2, probes=0), x, y, start=x + 100.0)
    assert (useless.objective(1.0) >= own_loss(x, y)).all()


def test_rows_outside_the_domain_are_kept_or_brought_in():
    x, y = data(50)
    domain = BoxDomain(np.full(D, -0.5), np.full(D, 0.5))
    found = GradientSearch().run(make_oracle(network()), x, y, metric=euclidean(D), domain=domain, lam=0.1)
    moved = (found.x != x).any(1)
    assert domain.contains(found.x[moved], tol=1e-9).all()
    assert (found.objective(0.1) >= own_loss(x, y)).all()


def test_table_domain_flips_free_columns():
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 70, size=80),
            "job": rng.choice(["a", "b", "c"], size=80),
            "sex": rng.choice(["F", "M"], size=80),
        }
    )
    domain = TabularDomain.from_frame(frame, immutable=["age"])
    x = torch.as_tensor(domain.encode_array(frame))
    sex = list(domain.groups_).index("sex")
    position = domain.columns_[sex].start
    metric = FairMetric.from_subspace(Subspace.from_directions(np.eye(x.shape[1])[[position]]))
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
    ).double()
    y = torch.as_tensor(rng.integers(0, 2, size=80))
    oracle = make_oracle(net)
    found = GradientSearch().run(oracle, x, y, metric=metric, domain=domain, lam=torch.inf)
    both = []
    for value in (0.0, 1.0):
        twin = x.clone()
        twin[:, position] = value
        both.append(oracle.loss(twin, y))
    assert (found.loss >= torch.stack(both).amax(0) - 1e-9).all()
    assert domain.contains(found.x, x).all()
    assert torch.equal(found.x[:, 0], x[:, 0])


# ---- what is not finite -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("lam", [1.0, np.inf])
def test_a_model_with_nan_weights_is_reported_in_every_row(name, lam):
    x, y = data(30)
    net = network()
    with torch.no_grad():
        net[0].weight[0, 0] = float("nan")
    for method in ("fixed_point", "adam"):
        found = run(GradientSearch(method=method), x, y, name, lam, net=net)
        assert found.counts() == {"CONVERGED": 0, "MAX_STEPS": 0, "NON_FINITE": 30}
        assert not found.finite.any()
        assert torch.equal(found.x, x)


class Cliff(torch.nn.Module):
    """Sound near the data, NaN beyond x₀ = 2."""

    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        return self.inner(x) + 0 * torch.sqrt(2 - x[:, :1])


def test_rows_that_walk_into_nan_are_reported_and_keep_their_best_finite_point():
    x, y = data(200)
    x = x.clamp(max=1.5)
    found = run(GradientSearch(), x, y, "whitened", 0.01, net=Cliff())
    lost = ~found.finite
    assert int(lost.sum()) > 0
    assert torch.isfinite(found.loss).all()
    assert torch.isfinite(found.x).all()
    assert (found.objective(0.01) >= own_loss(x, y, Cliff())).all()


@pytest.mark.parametrize("method", ["fixed_point", "adam"])
def test_a_diverging_step_size_is_reported(method):
    x, y = data(50, torch.float32)
    search = GradientSearch(method=method, subspace_step_size=1e36, full_step_size=1e36, full_steps=5)
    metric = FairMetric.from_subspace(subspace())
    found = search.run(make_oracle(network(torch.float32)), x, y, metric=metric, domain=Unbounded(), lam=1e-3)
    assert not found.finite.all()
    assert int((found.status == RowStatus.CONVERGED).sum()) == 0


def test_wrong_shapes_raise():
    class Wrong(torch.nn.Module):
        def forward(self, x):
            return x.sum(1)[:, None, None]

    x, y = data(5)
    with pytest.raises(ModelError, match="returned shape"):
        run(GradientSearch(), x, y, net=Wrong().double())


# ---- input ---------------------------------------------------------------------------------------------


def test_bad_choices_and_input_are_named():
    x, y = data(5)
    for name, value in (
        ("full_steps", -1),
        ("subspace_steps", 2.0),
        ("restarts", True),
        ("damping", 0),
        ("tol", float("nan")),
        ("method", "sgd"),
        ("batch_size", 0),
    ):
        with pytest.raises(InputError, match=name):
            GradientSearch(**{name: value})
    with pytest.raises(InputError, match="'lam' must be"):
        run(GradientSearch(), x, y, lam=-1.0)
    with pytest.raises(InputError, match="'lam' must be"):
        run(GradientSearch(), x, y, lam=torch.ones(3))
    with pytest.raises(InputError, match="'lam' must be"):
        run(GradientSearch(), x, y, lam=float("nan"))
    with pytest.raises(InputError, match="'y' must be"):
        run(GradientSearch(), x, y[:3])
    with pytest.raises(InputError, match="'start' must be"):
        run(GradientSearch(), x, y, start=x[:2])
    with pytest.raises(InputError, match="tensors"):
        run(GradientSearch(), x.numpy(), y, net=network())
    with pytest.raises(InputError, match="columns"):
        GradientSearch().run(
            make_oracle(network()), x, y, metric=euclidean(D + 1), domain=Unbounded(), lam=1.0
        )
    mapped = FairMetric(1.0, np.zeros((D, 0)), np.zeros(0), feature_map=np.tanh)
    with pytest.raises(InputError, match="feature map"):
        GradientSearch().run(make_oracle(network()), x, y, metric=mapped, domain=Unbounded(), lam=1.0)


def test_counts_and_objective_of_a_result():
    result = SearchResult(
        torch.zeros(3, 1),
        torch.tensor([1.0, 2.0, 3.0]),
        torch.tensor([0.5, 0.0, 1.0]),
        torch.tensor([0, 1, 2], dtype=torch.int8),
        torch.zeros(3, dtype=torch.int32),
    )
    assert result.counts() == {"CONVERGED": 1, "MAX_STEPS": 1, "NON_FINITE": 1}
    assert result.objective(2.0).tolist() == [0.0, 2.0, 1.0]
    assert result.objective(torch.inf).tolist() == [1.0, 2.0, 3.0]
    assert result.finite.tolist() == [True, True, False]


def test_regression_with_squared_loss():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(D, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    x, _ = data()
    y = torch.as_tensor(np.random.default_rng(0).normal(size=N))
    oracle = make_oracle(net, "squared")
    found = GradientSearch(restarts=1).run(oracle, x, y, metric=euclidean(D), domain=Unbounded(), lam=1.0)
    assert (found.objective(1.0) >= oracle.loss(x, y)).all()
    assert float(found.objective(1.0).mean()) > float(oracle.loss(x, y).mean()) + 0.01
