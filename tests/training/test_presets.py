"""Presets: what they promise by construction holds from the first steps on; the figures are in benchmarks/."""

import pytest

from likewise.core.errors import InputError
from likewise.counterfactuals import gender_race_consistency, spouse_consistency
from likewise.datasets import load_adult
from likewise.training import SenSRClassifier
from likewise.training.estimators.parameters import SENSR_PRESETS


@pytest.fixture(scope="module")
def adult():
    return load_adult()


@pytest.mark.parametrize("name", sorted(SENSR_PRESETS))
def test_a_preset_is_made_anew_each_time_and_takes_changes(name):
    first, second = (SenSRClassifier.preset(name, random_state=3) for _ in range(2))
    assert repr(first) == repr(second)
    assert first.random_state == 3
    assert SENSR_PRESETS[name].summary.endswith(".")
    assert SENSR_PRESETS[name].told.endswith(".")
    if first.metric is not None:
        assert first.metric is not second.metric


def test_an_unknown_preset_is_refused():
    with pytest.raises(InputError, match="'name' must be one of 'paper-adult'"):
        SenSRClassifier.preset("adult")


@pytest.mark.parametrize("name", ["adult-best", "adult-best-untold"])
def test_presets_for_adult(name, adult, tmp_path):
    rows = slice(2000)
    model = SenSRClassifier.preset(name, n_steps=15, random_state=0)
    model.fit(adult.X_train[rows], adult.y_train[rows])
    X = adult.X_test[:500]
    assert len(set(model.predict(X))) == 2
    # Sex and race are projected off, so they cannot change an answer; husband and wife only where it was told.
    assert gender_race_consistency(model, X).consistency == 1.0
    assert (spouse_consistency(model, X).consistency == 1.0) == (name == "adult-best")
    assert {"penalty", "lambda_"} <= set(model.history_.columns)
    model.save(tmp_path / "m.safetensors")
    loaded = SenSRClassifier.load(tmp_path / "m.safetensors")
    assert (loaded.predict_proba(X) == model.predict_proba(X)).all()
