"""What may be passed as X and y, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from likewise.core.errors import InputError
from likewise.data import TabularDomain
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace
from likewise.training import MLPBaselineClassifier, SenSRClassifier, TrainingWarning

FEW = {"n_steps": 3, "batch_size": 32, "hidden_layer_sizes": (4,), "random_state": 0}


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "pay": rng.normal(3000, 800, 60),
            "age": rng.integers(18, 70, 60),
            "job": rng.choice(["clerk", "cook", "nurse"], 60),
            "sex": rng.choice(["F", "M"], 60),
        }
    )


@pytest.fixture
def y(people):
    return (people["pay"] > 3000).to_numpy()


def test_tensors_arrays_and_frames_give_the_same_model():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    models = [
        MLPBaselineClassifier(**FEW).fit(kind, y)
        for kind in (
            X,
            torch.tensor(X),
            pd.DataFrame(X, columns=list("abc")),
            pl.DataFrame(X, schema=list("abc")),
        )
    ]
    answers = [
        model.predict_proba(X if i < 2 else pd.DataFrame(X, columns=list("abc")))
        for i, model in enumerate(models)
    ]
    for answer in answers[1:]:
        assert answer.tobytes() == answers[0].tobytes()
    assert not hasattr(models[0], "feature_names_in_")
    assert list(models[3].feature_names_in_) == ["a", "b", "c"]


def test_polars_tables_are_encoded_like_pandas_ones(people, y):
    a = MLPBaselineClassifier(**FEW).fit(people, y)
    table = pl.from_pandas(people)
    b = MLPBaselineClassifier(**FEW).fit(table, y)
    assert b.predict_proba(table).tobytes() == a.predict_proba(people).tobytes()


def test_a_given_domain_encodes_and_is_not_refitted(people, y):
    domain = TabularDomain.from_frame(people, categories={"job": ["baker"]})
    model = MLPBaselineClassifier(domain=domain, **FEW).fit(people[:30], y[:30])
    assert model.encoder_ is domain
    assert model.module_[0].in_features == 7
    assert model.predict(people.assign(job="baker")).shape == (60,)


def test_an_unfitted_domain_is_fitted_on_the_training_rows(people, y):
    numbers = people[["pay", "age"]]
    domain = TabularDomain()
    model = MLPBaselineClassifier(domain=domain, **FEW).fit(numbers, y)
    assert not hasattr(domain, "columns_")
    np.testing.assert_allclose(model.encoder_.encode_array(numbers).std(axis=0), 1.0)
    array = MLPBaselineClassifier(domain=TabularDomain(), **FEW).fit(numbers.to_numpy(), y)
    np.testing.assert_allclose(array.predict_proba(numbers.to_numpy()), model.predict_proba(numbers))


def test_the_encoder_of_a_ready_metric_is_used(people, y):
    metric = AttributeSubspace(["sex"]).fit(people).metric_
    model = SenSRClassifier(metric, **FEW).fit(people[:40], y[:40])
    assert model.encoder_ is metric.feature_map


def test_a_domain_with_encoded_rows_encodes_nothing(people, y):
    domain = TabularDomain.from_frame(people)
    model = MLPBaselineClassifier(domain=domain, **FEW).fit(domain.encode(people), y)
    assert not hasattr(model, "encoder_")
    assert list(model.feature_names_in_) == list(domain.get_feature_names_out())


def test_columns_that_are_not_standardised_are_warned_about(people, y):
    with pytest.warns(TrainingWarning, match=r"not standardised \(pay; standard deviations up to"):
        MLPBaselineClassifier(**FEW).fit(people[["pay", "age"]], y)


@pytest.mark.parametrize(
    "labels", [["a", "b"], [0, 1], [1.0, 2.0], [False, True], ["no", "yes", "maybe"]], ids=str
)
def test_labels_of_any_kind_come_back(labels):
    rng = np.random.default_rng(0)
    codes = rng.integers(len(labels), size=90)
    X = np.eye(len(labels))[codes] * 4 + rng.normal(size=(90, len(labels)))
    y = np.array(labels)[codes]
    model = MLPBaselineClassifier(n_steps=60, lr=0.05, random_state=0).fit(X, y)
    answer = model.predict(X)
    assert answer.dtype == y.dtype
    assert (answer == y).mean() > 0.9
    column = model.fit(X, pd.Series(y, dtype=object)).predict(X)
    assert (column == y).mean() > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X.assign(job=None), y), "missing"),
        (
            lambda X, y: (X.assign(pay=np.where(X.index == 3, np.nan, X["pay"])), y),
            "'pay' .1 of 60 rows, first at row 3",
        ),
        (lambda X, y: (X, y[:5]), "lengths differ"),
        (lambda X, y: (X, None), "requires y"),
        (lambda X, y: (X, np.where(np.arange(60) == 2, np.nan, 1.0)), "missing label"),
        (lambda X, y: (X, np.linspace(0, 1, 60)), "Unknown label type"),
        (lambda X, y: (X[:0], y[:0]), "empty|no rows"),
    ],
)
def test_bad_rows(people, y, change, message):
    with pytest.raises(ValueError, match=message):
        MLPBaselineClassifier(**FEW).fit(*change(people, y))


def test_a_search_domain_passed_as_domain_is_explained(people, y):
    from likewise.data import Unbounded

    with pytest.raises(InputError, match="'domain' must be a TabularDomain"):
        SenSRClassifier(ExpertSubspace(["sex"]), domain=Unbounded(), **FEW).fit(people, y)


def test_one_refit_forgets_the_other(people, y):
    model = MLPBaselineClassifier(**FEW).fit(people, y)
    X = np.random.default_rng(0).normal(size=(20, 2))
    model.fit(X, np.arange(20) % 2)
    assert not hasattr(model, "encoder_")
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X).shape == (20,)
