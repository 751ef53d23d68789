"""Who gets a table raw and who gets it encoded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from likewise.auditing.problem.coordinates import Views
from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.support.finite_dual import dual_curve
from likewise.domains import BoxDomain, TabularDomain
from likewise.fair_metrics import FairMetric, euclidean
from likewise.models import as_model

EPS = np.array([0.0, 0.1, 1.0, np.inf])


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 70, 40), "sex": rng.choice(["F", "M"], 40)})


@pytest.fixture(scope="module")
def labels(people):
    return (people["age"] + 20 * (people["sex"] == "M") + np.arange(40) % 7 > 50).to_numpy().astype(int)


def curve(model, X, y, metric, domain):
    found = CandidateSearch(sensitive=["sex"]).run(model, X, y, metric=metric, domain=domain)
    return dual_curve(found.frontier).value(EPS)


def test_every_way_to_hand_over_the_same_people_gives_the_same_audit(people, labels):
    domain = TabularDomain.from_frame(people)
    encoded = domain.encode(people)
    raw_model = as_model(make_pipeline(TabularDomain(), LogisticRegression()).fit(people, labels))
    named_model = as_model(LogisticRegression().fit(encoded, labels))
    array_model = as_model(LogisticRegression().fit(encoded.to_numpy(), labels))
    mapped = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), feature_map=domain)
    expected = curve(array_model, encoded.to_numpy(), labels, euclidean(2), domain)
    assert expected[-1] > expected[0]
    for model in (raw_model, named_model, array_model):
        for X in (people, encoded, encoded.to_numpy()):
            for metric in (euclidean(2), mapped):
                np.testing.assert_allclose(curve(model, X, labels, metric, domain), expected, atol=1e-9)
    # The metric's map knows the columns where no domain is given.
    np.testing.assert_allclose(curve(raw_model, people, labels, mapped, None), expected, atol=1e-9)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries(people, labels, library):
    table = pl.from_pandas(people) if library == "polars" else pa.Table.from_pandas(people)
    domain = TabularDomain.from_frame(people)
    model = as_model(LogisticRegression().fit(domain.encode_array(people), labels))
    np.testing.assert_allclose(
        curve(model, table, labels, euclidean(2), domain),
        curve(model, people, labels, euclidean(2), domain),
        atol=1e-12,
    )


def test_a_numeric_frame_needs_no_tabular_domain(labels):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"pay": rng.normal(size=40), "sex": rng.integers(2, size=40)})
    model = as_model(LogisticRegression().fit(frame, labels))
    found = CandidateSearch(sensitive=["sex"]).run(
        model, frame, labels, metric=euclidean(2), domain=BoxDomain.from_data(frame)
    )
    twins = found.candidates.take(np.arange(40, 80))
    assert twins.dtypes.equals(frame.dtypes)
    assert (twins["sex"].to_numpy() == 1 - frame["sex"].to_numpy()[found.candidates.source[40:80]]).all()


def test_names_that_are_the_same_raw_and_encoded_are_read_by_the_metrics_map():
    frame = pd.DataFrame({"age": [20, 40], "pay": [1.0, 2.0]})
    domain = TabularDomain.from_frame(frame)
    mapped = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), feature_map=domain)
    assert Views.of(frame, model=None, metric=mapped, domain=domain).raw
    assert not Views.of(domain.encode(frame), model=None, metric=euclidean(2), domain=domain).raw
