"""Estimators in audits: their own encoding, gradients where the encodings agree."""

import numpy as np
import pandas as pd
import pytest
import torch

from likewise.auditing.auditor import audit
from likewise.auditing.problem import AuditProblem
from likewise.data import TabularDomain
from likewise.fair_metrics import ExpertSubspace
from likewise.training import MLPBaselineClassifier, SenSRClassifier, TrainingConfig

CHOICES = {"n_steps": 150, "batch_size": 100, "lr": 0.02, "hidden_layer_sizes": (8,), "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 300
    people = pd.DataFrame(
        {
            "skill": rng.normal(50, 10, n),
            "job": rng.choice(["a", "b", "c"], n),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    y = (people["skill"] + 10 * (people["sex"] == "M") + rng.normal(0, 3, n) > 55).to_numpy()
    return people[:200], y[:200], people[200:], y[200:]


def build(model, X, y, **choices):
    return AuditProblem.build(
        model, X, y, **{"metric": ExpertSubspace(["sex"]), "domain": None, "loss": "cross_entropy", **choices}
    )


def test_raw_tables_are_audited_with_the_models_encoding_and_gradients(data):
    X, y, new, labels = data
    model = MLPBaselineClassifier(**CHOICES).fit(X, y)
    problem = build(model, new, labels)
    assert problem.coordinates.why_no_gradient() is None
    # The metric was learned on the audited rows, but in the encoding of the model.
    assert problem.coordinates.encoding.agrees(model.encoder_.encoding_)
    np.testing.assert_array_equal(problem.X, model.encoder_.encode_array(new))
    result = audit(model, new, labels, metric=ExpertSubspace(["sex"]), eps=0.01)
    assert result.search.split(", ")[-1] in ("domain", "gradient")
    assert result.pure_gap > 0.1


def test_the_network_behind_another_encoding_is_the_same_network(data):
    X, y, new, labels = data
    model = MLPBaselineClassifier(**CHOICES).fit(X, y)
    other = TabularDomain.from_frame(new)
    p = model.predict_proba(new)
    own = -np.log(p[np.arange(100), labels.astype(int)])
    wide = TabularDomain.from_frame(X, immutable=["job"]).widened(new)
    for domain in (other, wide):
        problem = build(model, new, labels, domain=domain)
        assert problem.coordinates.why_no_gradient() is None
        np.testing.assert_allclose(problem.base_loss, own, atol=1e-5)
        oracle = problem.coordinates.gradient_oracle()
        x = torch.tensor(problem.X, dtype=oracle.dtype)
        loss, gradient = oracle(x, torch.tensor(problem.target))
        np.testing.assert_allclose(loss, own, atol=1e-4)
        step = torch.zeros_like(x)
        step[:, 0] = 1e-3
        rise = (oracle.loss(x + step, torch.tensor(problem.target)) - loss) / 1e-3
        np.testing.assert_allclose(rise, gradient[:, 0], atol=2e-2)
        asked = {"metric": ExpertSubspace(["sex"]), "domain": domain, "eps": 0.01}
        found = audit(model, new, labels, search=["candidates", "gradient"], **asked)
        assert found.search.endswith("gradient")


def test_encoded_rows_are_audited_as_they_are(data):
    X, y, new, labels = data
    domain = TabularDomain.from_frame(X)
    model = MLPBaselineClassifier(**CHOICES).fit(domain.encode(X), y)
    problem = build(model, domain.encode(new), labels, domain=domain.widened(new))
    assert problem.coordinates.why_no_gradient() is None


def test_sensr_is_fairer_by_the_audit(data):
    X, y, new, labels = data
    gaps = [
        audit(model.fit(X, y), new, labels, metric=ExpertSubspace(["sex"]), eps=0.0).pure_gap
        for model in (
            MLPBaselineClassifier(**CHOICES),
            SenSRClassifier(
                ExpertSubspace(["sex"]), blind_to=None, training=TrainingConfig(baseline=False), **CHOICES
            ),
        )
    ]
    assert gaps[1] < 0.3 * gaps[0]
