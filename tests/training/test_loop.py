"""The loop: learning, early stopping, ends of all kinds, and that nothing outside it is changed."""

import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from likewise.core.errors import InputError
from likewise.core.randomness import torch_generator
from likewise.training import ERM, Batch, TrainingWarning, mlp, train


def problem(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    return X, (X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def weights(net):
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", torch.optim.RMSprop])
def test_it_learns(optimizer):
    X, y = problem()
    net = mlp(3, (8,), 2)
    result = train(net, (X, y), steps=200, batch_size=50, lr=0.02, optimizer=optimizer)
    predicted = net(torch.as_tensor(X)).argmax(1).numpy()
    assert result.status == "finished"
    assert (predicted == y).mean() > 0.85
    assert len(result.history) == 200
    assert result.history.frame().columns.tolist() == ["step", "loss", "lambda_"]


def test_same_seed_same_bytes_and_global_state_is_left_alone():
    X, y = problem()

    def once(seed):
        net = nn.Sequential(mlp(3, (8,), 8), nn.Dropout(0.5), mlp(8, (), 2))
        train(net, (X, y), steps=30, batch_size=50, random_state=seed)
        return weights(net)

    torch.manual_seed(1)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first = once(0)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    torch.manual_seed(2)
    assert torch.equal(once(0), first)
    assert not torch.equal(once(1), first)


def test_threads_are_set_inside_and_put_back_also_after_an_error():
    X, y = problem()
    torch.set_num_threads(2)
    try:
        seen = []
        train(mlp(3), (X, y), steps=1, threads=1, callback=lambda *_: seen.append(torch.get_num_threads()))
        assert seen == [1]
        assert torch.get_num_threads() == 2

        def fail(*_):
            raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            train(mlp(3), (X, y), steps=1, callback=fail)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_modules_leave_in_the_mode_they_came_in():
    X, y = problem()
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()
    net[0].train()
    train(net, (X, y), steps=2, validation=(X, y), validate_every=1)
    assert [part.training for part in net] == [True, False, False]


def test_best_weights_by_the_validation_loss_are_kept_and_training_stops_early():
    X, y = problem(60)
    Xv, yv = problem(400, seed=1)
    net = mlp(3, (64,), 2)
    seen = {}
    validation = Batch.from_arrays(Xv, yv)

    def note(step, loss, state):
        if step % 5 == 0:
            seen[step] = (ERM().robust_loss(net, validation, state), weights(net))

    result = train(
        net, (X, y), steps=3000, batch_size=60, lr=0.05, validation=validation, validate_every=5, patience=4,
        callback=note,
    )  # fmt: skip
    best = min(seen, key=lambda step: seen[step][0])
    assert result.status == "stopped_early"
    assert result.steps == best + 20 < 3000
    assert result.best_step == best
    assert result.best_validation == seen[best][0]
    assert torch.equal(weights(net), seen[best][1])
    column = result.history["validation"]
    np.testing.assert_array_equal(column[4::5], [seen[s][0] for s in sorted(seen)])
    assert np.isnan(column[:4]).all()


@pytest.fixture
def ctrl_c():
    """Hear SIGINT as a terminal does: a job that a shell put in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_the_best_so_far():
    X, y = problem()
    net = mlp(3, (8,), 2)
    kept = {}

    def interrupt(step, loss, state):
        kept[step] = weights(net)
        if step == 7:
            os.kill(os.getpid(), signal.SIGINT)

    result = train(net, (X, y), steps=1000, callback=interrupt)
    assert result.status == "interrupted"
    assert "interrupted" in result.reason
    # The weights before the last whole update or after it, depending on when the signal arrives.
    assert any(torch.equal(weights(net), kept[step]) for step in (6, 7))

    best = train(net, (X, y), steps=1000, validation=(X, y), validate_every=1, callback=interrupt)
    assert best.status == "interrupted"
    assert best.best_validation == np.nanmin(best.history["validation"])


@dataclass(frozen=True)
class Exploding(ERM):
    """Its loss is not finite from step 5 on (or only its gradient is)."""

    gradient_only: bool = False

    def step(self, net, batch, state):
        loss, state = super().step(net, batch, state)
        if state.step < 5:
            return loss, state
        zero = sum((p * 0).sum() for p in net.parameters())
        return loss + (zero.abs().sqrt() if self.gradient_only else zero / 0), state


@pytest.mark.parametrize("gradient_only", [False, True])
def test_a_loss_that_is_not_finite_stops_with_the_last_good_weights(gradient_only):
    X, y = problem()
    net, kept = mlp(3, (4,), 2), {}
    result = train(
        net, (X, y), Exploding(gradient_only=gradient_only), steps=50, lr=0.1,
        callback=lambda step, loss, state: kept.setdefault(step, weights(net)),
    )  # fmt: skip
    assert result.status == "diverged"
    assert "step 5" in result.reason
    assert result.steps == 4
    # After four updates; the loss of the last of them was never seen to be finite, that of the third was.
    assert torch.equal(weights(net), kept[3])
    assert torch.isfinite(weights(net)).all()


def test_a_data_loader_trains_like_arrays():
    X, y = problem()
    loader = DataLoader(TensorDataset(torch.as_tensor(X), torch.as_tensor(y)), batch_size=40, shuffle=True)
    net = mlp(3, (8,), 2)
    result = train(net, loader, steps=300, lr=0.02)
    assert (net(torch.as_tensor(X)).argmax(1).numpy() == y).mean() > 0.85
    assert result.status == "finished"


def test_weights_of_rows_weigh_the_loss():
    X = torch.ones(4, 1)
    y = torch.tensor([0, 1, 1, 1])
    even = Batch(X, y, weight=torch.tensor([3.0, 1.0, 1.0, 1.0]))
    net = mlp(1, (), 2)
    train(net, even, steps=600, lr=0.05, sampling="uniform")
    torch.testing.assert_close(net(X[:1]).softmax(1)[0, 0].item(), 0.5, atol=0.01, rtol=0)


def test_going_on_with_state_and_optimizer_is_the_same_as_going_through():
    X, y = problem()
    batch = Batch.from_arrays(X, y)
    through, halves = mlp(3), mlp(3)
    train(through, batch, steps=10, batch_size=200, sampling="uniform")
    first = train(halves, batch, steps=5, batch_size=200, sampling="uniform")
    train(
        halves,
        batch,
        steps=5,
        batch_size=200,
        sampling="uniform",
        optimizer=first.optimizer,
        state=first.state,
    )
    # All rows are in every batch, in another order: the same up to rounding.
    torch.testing.assert_close(weights(halves), weights(through), atol=1e-6, rtol=1e-5)


def test_a_flat_loss_is_reported():
    X, _ = problem()
    y = np.arange(len(X)) % 2
    with pytest.warns(TrainingWarning, match="the loss did not fall"):
        result = train(mlp(3), (np.zeros_like(X), y), steps=100)
    assert [finding.code for finding in result.findings] == ["loss_flat"]
    assert train(mlp(3), (np.zeros_like(X), y), steps=100, warn=False).findings == result.findings


def test_the_progress_bar_goes_to_standard_error(capsys):
    X, y = problem()
    train(mlp(3), (X, y), steps=3, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "'steps' must be a whole number >= 1"),
        ({"patience": 0}, "'patience' must be"),
        ({"lr": -1}, "'lr' must be a finite number > 0"),
        ({"optimizer": "lion"}, "'optimizer' must be one of"),
        ({"sampling": "odd"}, "'sampling' must be one of"),
        ({"threads": 0}, "'threads' must be"),
        ({"resume": True}, "'resume' must be False if there is no checkpoint"),
        ({"data": (np.zeros((3, 3)), [1, 1, 1])}, "one class only"),
        ({"data": (np.full((2, 3), np.nan), [0, 1])}, "not finite"),
        ({"data": (np.zeros((2, 3)), [0, 1, 1])}, "lengths differ"),
        ({"data": (np.zeros((3, 3)), [0, 1, 2])}, "2 outputs, but 'data' has class 2"),
        ({"data": (np.zeros((2, 3)), [-1, 1])}, "start at 0"),
        ({"data": (np.zeros((2, 4)), [0, 1])}, "cannot be applied to rows of 4 columns"),
        ({"data": (np.zeros((2, 3)), [0.0, 1.0])}, "class indices"),
        ({"data": 3}, "'data' must be a Batch"),
        ({"validation": (np.full((1, 3), np.inf), [1])}, "not finite"),
    ],
)
def test_bad_input_is_refused_before_training_starts(change, message):
    net = mlp(3, (4,), 2, generator=torch_generator(0))
    before = weights(net)
    data = change.pop("data", problem())
    with pytest.raises(InputError, match=message):
        train(net, data, **{"steps": 3, **change})
    assert torch.equal(weights(net), before)


def test_a_module_without_parameters_is_refused():
    with pytest.raises(InputError, match="no parameter"):
        train(nn.Flatten(), (np.zeros((2, 2)), [0, 1]), steps=1)
