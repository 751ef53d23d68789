"""Our objectives in skorch's and Lightning's loops: two epochs, and the steps are those of the objective itself."""

import doctest
import logging
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import likewise as lw
from likewise.core.errors import InputError
from likewise.integrations import StatefulLoss


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, 4)).astype("float32")
    X[:, 3] = rng.choice([0.0, 1.0], size=64)
    y = (X[:, 0] + 2 * X[:, 3] > 1).astype("int64")
    return X, y, lw.ExpertSubspace([3]).fit(X).metric_


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def own_loop(objective, X, y, *, batch, epochs, lr):
    """The loop as `Objective` documents it, rows in order."""
    net = network()
    state = objective.init(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(epochs):
        for start in range(0, len(X), batch):
            part = slice(start, start + batch)
            loss, state = objective.step(net, (torch.as_tensor(X[part]), torch.as_tensor(y[part])), state)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return net, state


OBJECTIVES = {
    "SenSR": lambda metric: lw.SenSR(metric, eps=0.01),
    "SenSeI": lambda metric: lw.SenSeI(metric, rho=2.0),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_skorch_takes_the_steps_of_the_objective(rows, name):
    pytest.importorskip("skorch")
    from likewise.integrations import FairNeuralNetClassifier

    X, y, metric = rows
    objective = OBJECTIVES[name](metric)
    net = FairNeuralNetClassifier(
        network(), objective, max_epochs=2, batch_size=16, lr=0.1, optimizer=torch.optim.SGD, train_split=None,
        iterator_train__shuffle=False, verbose=0,
    ).fit(X, y)  # fmt: skip
    expected, state = own_loop(objective, X, y, batch=16, epochs=2, lr=0.1)
    for found, wanted in zip(net.module_.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(found, wanted)
    assert net.fair_loss_.state.step == state.step == 8
    assert net.fair_loss_.state.lambda_ == pytest.approx(state.lambda_)
    assert net.predict_proba(X).sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    # A second fit begins anew, as scikit-learn's estimators do.
    assert net.fit(X, y).fair_loss_.state.step == 8


@pytest.mark.parametrize("name", OBJECTIVES)
def test_lightning_takes_the_steps_of_the_objective_and_keeps_them_in_a_checkpoint(rows, name, tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")
    from likewise.integrations import FairLightningModule

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    X, y, metric = rows
    objective = OBJECTIVES[name](metric)
    module = FairLightningModule(network(), objective, lambda parameters: torch.optim.SGD(parameters, lr=0.1))
    loader = DataLoader(TensorDataset(torch.as_tensor(X), torch.as_tensor(y)), batch_size=16)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's advice about workers
        trainer.fit(module, loader)
    expected, state = own_loop(objective, X, y, batch=16, epochs=2, lr=0.1)
    for found, wanted in zip(module.net.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(found, wanted)
    assert module.fair_loss.state.step == state.step == 8
    assert float(trainer.logged_metrics["fair/lambda"]) == pytest.approx(state.lambda_)
    checkpoint = {}
    module.on_save_checkpoint(checkpoint)
    torch.save(checkpoint, tmp_path / "state.pt")
    again = FairLightningModule(network(), objective)
    again.on_load_checkpoint(torch.load(tmp_path / "state.pt", weights_only=True))
    assert (again.fair_loss.state.step, again.fair_loss.state.lambda_) == (8, module.fair_loss.state.lambda_)


def test_the_example_of_the_lightning_module_runs():
    pytest.importorskip("lightning.pytorch")
    from likewise.integrations import lightning_module

    found = doctest.testmod(lightning_module)
    assert found.attempted
    assert not found.failed


def test_only_objectives_are_taken():
    with pytest.raises(InputError, match="'objective' must be an Objective"):
        StatefulLoss(nn.CrossEntropyLoss())
