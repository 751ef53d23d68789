"""Old names work for one release, and say what the new ones are."""

import inspect
import re
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from likewise.core.errors import InputError
from likewise.core.renaming import renamed_parameters
from likewise.datasets import load_german
from likewise.fair_metrics import euclidean
from likewise.training import Batch, SenSR, wasserstein_robust
from likewise.training.batch import as_batch
from likewise.training.history import History
from likewise.training.objective import State


@renamed_parameters(old="new")
@dataclass(frozen=True)
class Choice:
    new: int = 1


@renamed_parameters(old="new")
def double(new=1):
    return 2 * new


@pytest.mark.parametrize("target", [Choice, double])
def test_the_signature_has_the_new_name_alone(target):
    assert list(inspect.signature(target).parameters) == ["new"]
    assert target(new=3) == target(3)
    message = re.escape(f"{target.__name__}(old=...) is now called {target.__name__}(new=...)")
    with pytest.warns(DeprecationWarning, match=message) as caught:
        assert target(old=3) == target(new=3)
    assert caught[0].filename == __file__
    with pytest.raises(InputError, match="'old' is 'new' by its old name"):
        target(old=3, new=3)
    with pytest.raises(TypeError, match="other"):
        target(other=3)


def test_old_names_of_lambda():
    with pytest.warns(DeprecationWarning, match=r"SenSR\(lambda_init=...\)"):
        assert SenSR(euclidean(2), lam=3.0).lambda_init == 3.0
    with pytest.warns(DeprecationWarning, match=r"wasserstein_robust\(lambda_init=...\)"):
        assert wasserstein_robust(2, lam=3.0).lambda_init == 3.0
    with pytest.warns(DeprecationWarning, match=r"State.lambda_"):
        assert State(lambda_=0.5).lam == 0.5
    with pytest.warns(DeprecationWarning, match="history"):
        assert History({"lambda_": np.ones(1)})["lam"] == 1.0


def test_a_state_written_by_an_earlier_version_is_read():
    tensors, numbers = State(step=2, lambda_=0.5).to_tensors()
    assert State.from_tensors(tensors, numbers.replace('"lambda_"', '"lam"')).lambda_ == 0.5


def test_old_names_of_sensitive_features():
    x, y, codes = torch.zeros(2, 1), torch.tensor([0, 1]), torch.tensor([[0], [1]])
    with pytest.warns(DeprecationWarning, match=r"Batch\(sensitive_features=...\)"):
        batch = Batch(x, y, sensitive=codes)
    with pytest.warns(DeprecationWarning, match=r"Batch.from_arrays\(sensitive_features=...\)"):
        Batch.from_arrays(x, y, sensitive=codes)
    with pytest.warns(DeprecationWarning, match=r"Batch\(sensitive_features=...\)"):
        as_batch({"x": x, "y": y, "sensitive": codes})
    with pytest.warns(DeprecationWarning, match=r"Batch.sensitive_features"):
        assert batch.sensitive is batch.sensitive_features
    with pytest.warns(DeprecationWarning, match=r"TabularData.sensitive_features"):
        assert load_german().sensitive == ("sex", "age")
