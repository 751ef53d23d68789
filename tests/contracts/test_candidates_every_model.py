"""One audit of 1,000 of Adult's test people for every kind of model, raw tables and encoded rows alike."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from likewise.auditing.dual.finite_dual import dual_curve, solve_dual
from likewise.auditing.search.candidates import CandidateSearch
from likewise.datasets import load_adult
from likewise.fair_metrics import AttributeSubspace
from likewise.models import as_model

PEOPLE = 1_000
SEARCH = CandidateSearch(edits=("sex", "race"))


@cache
def adult() -> tuple[Any, Any]:
    data = load_adult()
    data = replace(data, train_index=data.train_index[:5_000], test_index=data.test_index[:PEOPLE])
    return data, AttributeSubspace(attributes=["sex", "race"]).fit(data.X_train).metric_


@cache
def network() -> torch.nn.Module:
    data, _ = adult()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(41, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    X = torch.tensor(data.X_train.to_numpy(), dtype=torch.float32)
    y = torch.tensor(data.y_train)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(60):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(X), y).backward()
        optimiser.step()
    return net.eval()


def _logistic_pipeline() -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    data, _ = adult()
    numeric = list(data.frame.select_dtypes("number").columns)
    text = [column for column in data.frame.columns if column not in numeric]
    steps = make_column_transformer((StandardScaler(), numeric), (OneHotEncoder(), text))
    return make_pipeline(steps, LogisticRegression(max_iter=300)).fit(data.frame_train, data.y_train)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    data, _ = adult()
    return HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(data.X_train, data.y_train)


def _xgboost() -> Any:
    import xgboost

    data, _ = adult()
    return xgboost.XGBClassifier(n_estimators=40, n_jobs=1, random_state=0).fit(data.X_train, data.y_train)


def _lightgbm() -> Any:
    import lightgbm

    data, _ = adult()
    model = lightgbm.LGBMClassifier(n_estimators=40, n_jobs=1, random_state=0, verbose=-1)
    return model.fit(data.X_train.to_numpy(), data.y_train)


def _callable() -> Any:
    weight = network()[0].weight.detach().double().numpy()[0]
    return lambda X: 1 / (1 + np.exp(-np.tanh(X @ weight)))


def _onnx() -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network(),
            (torch.zeros(3, 41),),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("rows")},),
            verbose=False,
        )
    kept = io.BytesIO()
    program.save(kept)
    return kept.getvalue()


MODELS = {
    "torch": network,
    "logistic pipeline": _logistic_pipeline,
    "hist gradient boosting": _boosting,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "callable": _callable,
    "onnx": _onnx,
}


@cache
def audited(kind: str) -> tuple[Any, Any]:
    data, metric = adult()
    model = as_model(MODELS[kind]())
    # The pipeline takes people as they are written down; the metric's map is then the domain's encoding.
    X = data.frame_test if model.takes_frame and kind == "logistic pipeline" else data.X_test
    found = SEARCH.run(model, X, data.y_test, metric=metric, domain=data.domain)
    return model, found


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_is_audited(kind):
    data, metric = adult()
    model, found = audited(kind)
    curve = dual_curve(found.frontier)
    assert found.frontier.n_rows == PEOPLE
    assert 0 < curve.gap(0.0) < curve.gap(0.1) < curve.gap(np.inf)
    assert (np.diff(curve.slopes) < 0).all()
    worst = solve_dual(found.frontier, 0.1)
    twins = found.twins(worst.corner)
    raw = kind == "logistic pipeline"
    people = twins if raw else data.domain.decode(twins)
    assert data.domain.validate(people) == ()
    phi = data.domain.encode_array(people) if raw else twins
    d2 = metric.squared_distance(data.X_test.to_numpy(), np.asarray(phi))
    np.testing.assert_allclose(d2, found.frontier.squared_distance[worst.corner], atol=1e-9)
    assert d2.mean() <= 0.1 + 1e-9
    np.testing.assert_allclose(
        model.losses(twins, data.y_test), found.frontier.loss[worst.corner], rtol=1e-5, atol=1e-5
    )
    themselves = found.candidates.take(np.arange(PEOPLE))
    np.testing.assert_array_equal(themselves, data.frame_test if raw else data.X_test)
    assert model.losses(themselves, data.y_test).mean() == pytest.approx(curve.base_loss, rel=1e-6)


def test_the_onnx_export_is_audited_as_the_network_is():
    (_, ours), (_, exported) = audited("torch"), audited("onnx")
    eps = np.array([0.0, 1e-3, 0.01, 0.1, 1.0, np.inf])
    np.testing.assert_allclose(
        dual_curve(exported.frontier).value(eps), dual_curve(ours.frontier).value(eps), atol=1e-4
    )


def test_raw_people_and_encoded_rows_give_the_same_audit():
    data, metric = adult()
    network_model, encoded = audited("torch")
    raw = SEARCH.run(network_model, data.frame_test, data.y_test, metric=metric, domain=data.domain)
    np.testing.assert_array_equal(raw.candidates.source, encoded.candidates.source)
    eps = np.array([0.0, 0.01, 0.1, np.inf])
    np.testing.assert_allclose(
        dual_curve(raw.frontier).value(eps), dual_curve(encoded.frontier).value(eps), atol=1e-6
    )


def test_parts_of_the_test_set_give_the_same_rows_as_the_whole():
    data, metric = adult()
    model, whole = audited("torch")
    for part in (slice(0, 1), slice(100, 120), slice(400, 800)):
        mine = CandidateSearch(edits=("sex", "race")).run(
            model, data.X_test[part], data.y_test[part], metric=metric, domain=data.domain, pool=data.X_test
        )
        for lam in (0.0, 0.1, 1.0, 1e6):
            gap = whole.frontier.take(part).conjugate(lam) - mine.frontier.conjugate(lam)
            assert np.abs(gap).max() < 1e-5
        free = solve_dual(mine.frontier, 0.0)
        again = solve_dual(whole.frontier.take(part), 0.0)
        assert free.value == pytest.approx(again.value, abs=1e-5)


@pytest.mark.parametrize("kind", ["logistic pipeline", "hist gradient boosting"])
def test_some_people_against_brute_force_over_every_candidate(kind):
    data, metric = adult()
    model, found = audited(kind)
    everyone, people = (
        np.arange(len(found.candidates)),
        np.random.default_rng(0).choice(PEOPLE, 25, replace=False),
    )
    rows = found.candidates.take(everyone)
    table = model.loss_table(rows)
    phi = data.domain.encode_array(rows) if kind == "logistic pipeline" else rows
    frontier = found.frontier.take(people)
    d2 = np.stack([metric.squared_norm(phi - phi[person]) for person in people])
    d2[d2 < 1e-13] = 0.0
    for lam in (0.0, 0.01, 0.3, 5.0, 1e5):
        best = (table[:, data.y_test[people]].T - lam * d2).max(axis=1)
        np.testing.assert_allclose(frontier.conjugate(lam), best, atol=1e-9)
