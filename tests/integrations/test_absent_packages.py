"""An integration whose package is absent says what to install; the others work."""

import importlib
import sys

import pytest

from likewise import integrations
from likewise.core.errors import MissingExtraError


@pytest.mark.parametrize(
    ("module", "package", "said"),
    [
        (
            "skorch_net",
            "skorch",
            "FairNeuralNetClassifier needs 'skorch', which is not installed. Run: pip install skorch",
        ),
        (
            "lightning_module",
            "lightning",
            "FairLightningModule needs 'lightning', which is not installed. Run: pip install lightning",
        ),
    ],
)
def test_an_absent_package_is_named_with_what_to_install(monkeypatch, module, package, said):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"likewise.integrations.{module}", raising=False)
    with pytest.raises(MissingExtraError) as raised:
        importlib.import_module(f"likewise.integrations.{module}")
    assert str(raised.value) == said


def test_without_mlflow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'likewise\[mlflow\]'"):
        integrations.log_audit(None)


@pytest.mark.parametrize("name", integrations.__all__)
def test_every_name_is_documented(name):
    assert getattr(integrations, name).__doc__
