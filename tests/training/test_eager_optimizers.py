"""The optimisers that have a name: torch's numbers to the bit, without its compiler."""

import copy
import pickle
import sys

import pytest
import torch

from likewise.training import mlp, train
from likewise.training.setup import make_optimizer

NAMED = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


def rows():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 3, generator=generator)
    return X, (X[:, 0] > 0).long()


@pytest.mark.parametrize("name", NAMED)
def test_they_give_the_bits_of_torch(name):
    def theirs(parameters, lr):
        return NAMED[name](parameters, lr=lr, fused=True)

    nets = [mlp(3, (8,), 2, generator=torch.Generator().manual_seed(0)) for _ in range(2)]
    results = [
        train(net, rows(), steps=20, batch_size=10, lr=0.02, optimizer=optimizer, random_state=0)
        for net, optimizer in zip(nets, (name, theirs), strict=True)
    ]
    for one, other in zip(*(net.parameters() for net in nets), strict=True):
        assert torch.equal(one, other)
    one, other = (result.optimizer.state_dict() for result in results)
    assert one["param_groups"] == other["param_groups"]
    for key, moments in one["state"].items():
        assert all(
            torch.equal(torch.as_tensor(m), other["state"][key][n])
            for n, m in moments.items()
            if m is not None
        )


@pytest.mark.parametrize("name", NAMED)
def test_they_train_and_go_on_without_the_compiler(name, monkeypatch):
    # An import of it raises here, whoever loaded it before.
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
    made = type(make_optimizer(mlp(3, (), 2), name, 0.1))
    for method in ("add_param_group", "load_state_dict", "state_dict", "zero_grad"):
        assert not hasattr(getattr(made, method), "__wrapped__")
    net = mlp(3, (8,), 2)
    result = train(net, rows(), steps=3, batch_size=10, lr=0.02, optimizer=name)
    again = pickle.loads(pickle.dumps(result.optimizer))
    assert type(again) is type(copy.deepcopy(result.optimizer)) is made
    again.load_state_dict(result.optimizer.state_dict())
    assert result.status == "finished"
