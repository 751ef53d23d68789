"""Rules for λ against the dual; CoCL and adversarial debiasing against their formulas and for what they are for."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from likewise.auditing.dual import finite_dual
from likewise.core.errors import InputError
from likewise.training import ERM, AdversarialDebiasing, Batch, CoCL, mlp, train
from likewise.training.penalised import adam_update, class_covariance_norm
from likewise.training.robust import authors_rule, dual_rule, paper_rule

positive = st.floats(1e-6, 1e3)


@given(lam=positive, eps=positive, m=positive, alpha=positive)
def test_paper_rule_is_line_4_of_algorithm_2(lam, eps, m, alpha):
    assert paper_rule(lam, eps, m, alpha) == max(0.0, lam - alpha * (eps - m))


@given(lam=positive, eps=positive, m=positive)
def test_authors_rule_moves_the_right_way_and_has_a_floor(lam, eps, m):
    moved = authors_rule(lam, eps, m)
    assert moved == max(1e-5, lam + max(m, eps) / min(m, eps) * (m - eps))


@pytest.mark.parametrize(
    ("lam", "eps", "m", "expected"), [(1.0, 0.0, 0.0, 1.0), (1.0, 0.0, 0.5, 1.5), (1.0, 0.5, 0.0, 1e-5)]
)
def test_authors_rule_where_the_ratio_is_infinite(lam, eps, m, expected):
    assert authors_rule(lam, eps, m) == expected


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), eps=st.floats(0.01, 2.0))
def test_dual_rule_goes_to_the_minimiser_of_the_dual(seed, eps):
    rng = np.random.default_rng(seed)
    base, d2, gain = rng.random(20), rng.random(20) + 0.01, rng.random(20)
    lam = dual_rule(3.0, eps, base, d2, base + gain, smoothing=1.0)
    rows = np.arange(20)
    found = finite_dual.Frontier.from_points(
        base_loss=base, row=rows, squared_distance=d2, loss=base + gain, candidate=rows
    )
    best = lam * eps + found.conjugate(lam).mean()
    for other in np.linspace(0, 2 * gain.max() / d2.min(), 200):
        assert best <= other * eps + found.conjugate(other).mean() + 1e-12
    assert dual_rule(3.0, eps, base, d2, base + gain, smoothing=0.5) == pytest.approx((3.0 + lam) / 2)


# ---- CoCL ----------------------------------------------------------------------------------------------


def test_covariance_norm_is_that_of_numpy():
    rng = np.random.default_rng(0)
    p, z, y = rng.random(50), rng.normal(size=(50, 4)), rng.integers(0, 3, 50)
    norms = []
    for c in range(3):
        own = y == c
        covariance = [np.cov(p[own], z[own, j], bias=True)[0, 1] for j in range(4)]
        norms.append(np.linalg.norm(covariance))
    found = class_covariance_norm(torch.as_tensor(p), torch.as_tensor(z), torch.as_tensor(y))
    assert float(found) == pytest.approx(np.mean(norms), rel=1e-9)


def test_a_constant_prediction_has_a_finite_slope():
    p = torch.full((6,), 0.5, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(
        class_covariance_norm(p, torch.rand(6, 2).double(), torch.tensor([0, 1] * 3)), p
    )
    assert torch.isfinite(slope).all()


@pytest.fixture(scope="module")
def leaning():
    """A label that leans on a protected attribute, and a column that tells it."""
    rng = np.random.default_rng(0)
    n = 1500
    s = rng.integers(0, 2, n)
    merit = rng.normal(size=n)
    X = np.stack([merit, 1.5 * s + 0.3 * rng.normal(size=n), rng.normal(size=n)], axis=1).astype(np.float32)
    y = (merit + 2.5 * (s - 0.5) + 0.5 * rng.normal(size=n) > 0).astype(int)
    return X, y, s


def group_gap(net, X, y, s):
    """Largest difference of mean predicted probability between groups within a class."""
    with torch.no_grad():
        p = net(torch.as_tensor(X)).softmax(1)[:, 1].numpy()
    return max(abs(p[(y == c) & (s == 0)].mean() - p[(y == c) & (s == 1)].mean()) for c in (0, 1))


def test_cocl_and_the_adversary_bring_the_gap_down_and_keep_merit(leaning):
    X, y, s = leaning
    proxy = np.stack([s, 1 - s], axis=1).astype(np.float32)
    data = Batch.from_arrays(X, y, sensitive_features=s, proxy=proxy)
    gaps = {}
    for name, objective in {
        "erm": ERM(),
        "cocl": CoCL(strength=20.0),
        "adversarial": AdversarialDebiasing(strength=1.0, adversary_lr=0.02),
    }.items():
        net = mlp(3, (), 2)
        train(net, data, objective, steps=500, lr=0.01, batch_size=500, warn=False)
        gaps[name] = group_gap(net, X, y, s)
        decided = net(torch.as_tensor(X)).argmax(1).numpy()
        assert (decided == y).mean() > 0.7
    assert gaps["erm"] > 0.25
    assert gaps["cocl"] < 0.3 * gaps["erm"]
    assert gaps["adversarial"] < 0.3 * gaps["erm"]


# ---- adversarial debiasing -----------------------------------------------------------------------------


def test_the_update_is_equation_1_of_zhang_et_al(leaning):
    X, y, s = leaning
    data = Batch.from_arrays(X[:64], y[:64], sensitive_features=np.stack([s, 1 - s], axis=1)[:64])
    net = mlp(3, (4,), 2)
    objective = AdversarialDebiasing(n_values=(2, 2), strength=0.7)
    loss, state = objective.step(net, data, objective.init(net))
    loss.backward()
    parameters = list(net.parameters())
    scores = net(data.x)
    own = torch.autograd.grad(nn.functional.cross_entropy(scores, data.y), parameters, retain_graph=True)
    weights = objective._complete(objective.init(net).tensors, scores)
    felt = torch.autograd.grad(objective._adversary_loss(weights, scores, data), parameters)
    for p, g, a in zip(parameters, own, felt, strict=True):
        expected = g - (g * a).sum() / a.square().sum() * a - 0.7 * a
        torch.testing.assert_close(p.grad, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(loss.detach(), nn.functional.cross_entropy(scores, data.y).detach())
    assert state.last["adversary_loss"] == pytest.approx(
        float(objective._adversary_loss(weights, scores, data).detach())
    )


def test_the_adversary_learns(leaning):
    X, y, s = leaning
    data = Batch.from_arrays(X, y, sensitive_features=s)
    net = mlp(3, (), 2)
    frozen = AdversarialDebiasing(strength=0.0, project=False, adversary_lr=0.05)
    result = train(net, data, frozen, steps=200, lr=1e-3, batch_size=500, warn=False)
    losses = result.history["adversary_loss"]
    assert losses[-20:].mean() < losses[:5].mean() - 0.01
    # With no strength and no projection it is plain training.
    plain = mlp(3, (), 2)
    train(plain, data, ERM(), steps=200, lr=1e-3, batch_size=500, warn=False)
    torch.testing.assert_close(net[0].weight, plain[0].weight, rtol=1e-4, atol=1e-5)


def test_adam_update_is_torchs_adam():
    w = nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = torch.optim.Adam([w], lr=0.1)
    tensors = {"w.a": torch.tensor([1.0, -2.0])}
    for step in range(1, 6):
        gradient = torch.tensor([0.3, -1.0]) * step
        w.grad = gradient.clone()
        optimizer.step()
        tensors = adam_update(tensors, {"w.a": gradient}, 0.1, step)
        torch.testing.assert_close(tensors["w.a"], w.detach())


@pytest.mark.parametrize(
    ("objective", "beside", "message"),
    [
        (CoCL(), {}, "'proxy' must be a matrix"),
        (AdversarialDebiasing(), {}, "'sensitive_features' must be"),
        (AdversarialDebiasing(n_values=(2, 2)), {"sensitive_features": [0, 1, 0]}, r"\(n, 2\) matrix"),
        (AdversarialDebiasing(), {"sensitive_features": [0, 2, 0]}, "indices up to"),
        (AdversarialDebiasing(), {"sensitive_features": [0, -1, 0]}, "indices"),
    ],
)
def test_missing_or_wrong_attributes_are_refused_before_training(objective, beside, message):
    data = Batch.from_arrays(np.eye(3), [0, 1, 1], **beside)
    with pytest.raises(InputError, match=message):
        train(mlp(3), data, objective, steps=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdversarialDebiasing(n_values=(1,)), "'n_values' must be"),
        (lambda: AdversarialDebiasing(strength=-1), "'strength' must be"),
        (lambda: AdversarialDebiasing(adversary_lr=0), "'adversary_lr' must be"),
        (lambda: CoCL(strength=float("nan")), "'strength' must be"),
    ],
)
def test_bad_choices_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
