"""Model, metric and domain in one coordinate system: who gets a table raw, who encoded, and who is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import likewise as lw
from likewise.auditing.dual.finite_dual import dual_curve
from likewise.auditing.search.candidates import CandidateSearch
from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, TabularDomain
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
    found = CandidateSearch(edits=["sex"]).run(model, X, y, metric=metric, domain=domain)
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
    found = CandidateSearch(edits=["sex"]).run(
        model, frame, labels, metric=euclidean(2), domain=BoxDomain.from_data(frame)
    )
    twins = found.candidates.take(np.arange(40, 80))
    assert twins.dtypes.equals(frame.dtypes)
    assert (twins["sex"].to_numpy() == 1 - frame["sex"].to_numpy()[found.candidates.source[40:80]]).all()


# ---- tables of nothing but numbers, where names say nothing -----------------------------------------------


@pytest.fixture(scope="module")
def numbers():
    """People whose sex is coded 1 and 2, and an XGBoost that refuses every man and no woman."""
    from xgboost import XGBClassifier

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "SEX": rng.integers(1, 3, 600),
            "AGE": rng.integers(18, 80, 600),
            "LIMIT": np.round(rng.lognormal(10, 1, 600)),
        }
    )
    y = (frame["SEX"] == 2).to_numpy().astype(int)
    model = XGBClassifier(n_estimators=20, max_depth=2, learning_rate=0.5).fit(frame, y)
    metric = lw.AttributeSubspace(["SEX"]).fit(frame).metric_
    return frame, y, model, metric


def flipped_gap(model, frame, y):
    """The truth by brute force: everybody as a man and as a woman."""
    adapter = as_model(model)
    own = adapter.losses(frame, y)
    other = adapter.losses(frame.assign(SEX=3 - frame["SEX"]), y)
    return float(np.maximum(other - own, 0).mean())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("domain", [False, True])
def test_a_blatantly_sexist_model_on_a_table_of_numbers_is_found(numbers, library, domain):
    """Broke once: a raw frame whose names equal the encoded ones was taken as encoded; gap 0.000, "nobody"."""
    frame, y, model, metric = numbers
    table = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pa.Table.from_pandas(frame)}[
        library
    ]
    given = TabularDomain.from_frame(frame) if domain else None
    result = lw.audit(model, table, y, metric=metric, domain=given, eps=0.0, delta=0.1)
    assert result.base_loss == pytest.approx(float(as_model(model).losses(frame, y).mean()), rel=1e-9)
    assert result.sensitive.columns == ("SEX",)
    assert result.sensitive.changed == 1.0
    assert result.sensitive.gap == pytest.approx(flipped_gap(model, frame, y), rel=1e-9)
    assert result.pure_gap >= result.sensitive.gap - 1e-12
    assert result.flipped == 1.0
    assert result.verdict() == "unfair (shown)"


@pytest.mark.parametrize("kind", ["declared frame", "array", "said", "polars, said"])
def test_encoded_rows_of_numbers_are_declared_and_give_the_same_audit(numbers, kind):
    frame, y, _, _ = numbers
    domain = TabularDomain.from_frame(frame)
    encoded = domain.encode(frame)
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=20, max_depth=2, learning_rate=0.5).fit(encoded, y)
    metric = lw.ExpertSubspace(["SEX"], domain=domain).fit(frame).metric_
    X = {
        "declared frame": encoded,
        "array": encoded.to_numpy(),
        "said": pd.DataFrame(encoded.to_numpy(), columns=list(encoded.columns)),
        "polars, said": pl.from_pandas(encoded),
    }[kind]
    said = True if "said" in kind else None
    result = lw.audit(model, X, y, metric=metric, domain=domain, eps=0.0, encoded=said)
    assert result.sensitive.changed == 1.0
    assert result.pure_gap > 2
    wrong = pd.DataFrame(encoded.to_numpy(), columns=list(encoded.columns))
    with pytest.raises(
        InputError, match=r"cannot exist in the domain, first row 0: column 'SEX' = .*encoded=True"
    ):
        lw.audit(model, wrong, y, metric=metric, domain=domain, eps=0.0)


def test_what_the_metric_was_told_is_sensitive_is_what_twins_exchange(numbers):
    """Broke once: only categorical columns were exchanged; .004 where 4.17 was true."""
    frame, y, model, metric = numbers
    by_metric = lw.audit(model, frame, y, metric=metric, eps=0.0)
    by_hand = lw.audit(model, frame, y, metric=metric, edits=["SEX"], eps=0.0)
    assert by_metric.pure_gap == by_hand.pure_gap
    assert by_metric.sensitive.gap == by_hand.sensitive.gap
    age = lw.AttributeSubspace(["AGE"], kind="continuous").fit(frame).metric_
    assert lw.audit(model, frame, y, metric=age, eps=0.0).sensitive.columns == ("AGE",)


def test_a_model_of_the_tables_own_numbers_gets_them_whatever_the_domain(numbers):
    """Broke once: with domain=TabularDomain.from_frame(d) an XGBoost of raw numbers was fed standardised rows."""
    frame, y, model, metric = numbers
    truth = float(as_model(model).losses(frame, y).mean())
    for domain in (None, TabularDomain.from_frame(frame), BoxDomain.from_data(frame)):
        found = lw.audit(model, frame, y, metric=metric, domain=domain, eps=0.1)
        assert found.base_loss == pytest.approx(truth, rel=1e-9)


def test_audited_people_outside_the_domain_are_an_error_that_names_column_value_and_row(numbers):
    frame, y, model, metric = numbers
    young = TabularDomain.from_frame(frame, ranges={"AGE": (18, 60)})
    row = int((frame["AGE"] > 60).to_numpy().argmax())
    age = frame["AGE"].iloc[row]
    with pytest.raises(InputError, match=rf"first row {row}: column 'AGE' = {age}(\.0)? \(above 60\)"):
        lw.audit(model, frame, y, metric=metric, domain=young)


def test_people_outside_the_metrics_training_range_get_twins_too(numbers):
    """Broke once: four of 249 people were outside the range the metric was learned on, and got no twin."""
    frame, y, model, _ = numbers
    young = frame[frame["AGE"] < 50]
    metric = lw.AttributeSubspace(["SEX"], domain=TabularDomain()).fit(young).metric_
    result = lw.audit(model, frame, y, metric=metric, eps=0.0)
    assert (result.pure_map.harm > 0).all()
    assert any("widened" in said for said in result.assumptions)


# ---- several encodings of one table ----------------------------------------------------------------------


def test_readmes_ten_lines_follow_the_gradient():
    """Broke once: the model's encoder is not the data's domain, so the gradient search was off, and nobody said so."""
    data = lw.datasets.load_german()
    metric = lw.AttributeSubspace(["sex"]).fit(data.frame_train).metric_
    model = lw.MLPBaselineClassifier(random_state=0, n_steps=50).fit(data.frame_train, data.y_train)
    given = {"metric": metric, "eps": 0.1}
    people, y = data.frame_test[:100], data.y_test[:100]
    result = lw.audit(model, people, y, domain=data.domain, **given)
    # What every move does is read off the network, if that is compiled; else the gradient is followed.
    assert result.search in ("domain", "candidates, gradient")
    followed = lw.audit(model, people[:40], y[:40], domain=data.domain, search="gradient", **given)
    assert followed.search == "candidates, gradient"
    tree = lw.audit(lambda frame: (frame["age"] > 40).to_numpy() * 1.0, people, y, **given)
    assert any("gradient search was left out" in line for line in tree.left_out)


@given(seed=st.integers(0, 2**32 - 1), rotate=st.booleans())
@settings(max_examples=12, deadline=None)
def test_metrics_of_two_encodings_of_the_same_columns_give_one_audit(seed, rotate):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "pay": rng.normal(rng.normal() * 10, np.exp(rng.normal()), 30),
            "age": rng.integers(18, 70, 30),
            "job": rng.choice(["a", "b", "c"], 30),
            "sex": rng.choice(["F", "M"], 30),
        }
    )
    other = frame.sample(frac=2.0, replace=True, random_state=int(rng.integers(1 << 30)))
    other = pd.concat([frame, other.assign(pay=other["pay"] * np.exp(rng.normal() * 2))])
    mine, theirs = (
        TabularDomain.from_frame(frame),
        TabularDomain.from_frame(other[["sex", "job", "age", "pay"]]),
    )
    d = mine.n_features
    directions = rng.normal(size=(2, d)) if rotate else np.eye(d)[[0, d - 1]]
    metric = FairMetric.from_subspace(Subspace.from_directions(directions), 0.0, feature_map=theirs)
    weights = rng.normal(size=d)
    y = rng.integers(2, size=30)
    model = as_model(lambda X: 1 / (1 + np.exp(-(X @ weights))))
    # The common encoding: everything by hand, in the metric's own coordinates.
    x, z = mine.encode_array(frame), theirs.encode_array(frame)
    choice = [CandidateSearch(edits=())]
    result = lw.audit(model, x, y, metric=metric, domain=mine, eps=0.3, search=choice)
    loss = model.loss_table(x)
    d2 = ((z[:, None] - z[None]) @ metric.sigma() * (z[:, None] - z[None])).sum(-1)
    expected = brute_dual(loss[:, y].T, d2, 0.3)
    assert result.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    people, twins = result.unfair_map.people, result.unfair_map.twins
    spent = metric.squared_distance(people, twins)
    np.testing.assert_allclose(result.unfair_map.outcomes["squared_distance"], spent, rtol=1e-7, atol=1e-9)
    assert float(np.mean(spent)) <= 0.3 + 1e-9


def brute_dual(loss, d2, eps):
    """min over λ of λε + mean_i max_j loss_ij − λ d²_ij, at the kinks of the convex function."""
    from scipy.optimize import minimize_scalar

    def value(lam):
        return lam * eps + (loss - lam * d2).max(axis=1).mean()

    found = minimize_scalar(
        value, bounds=(0, 1e4), method="bounded", options={"xatol": 1e-12, "maxiter": 2000}
    )
    kinks = [0.0, found.x]
    for lam in (found.x,):
        # The optimum is a kink: refine by the lines that meet there.
        for _ in range(50):
            j = (loss - lam * d2).argmax(axis=1)
            rows = np.arange(len(j))
            slope = eps - d2[rows, j].mean()
            step = 1e-9 * (1 + lam) * (-1 if slope > 0 else 1)
            kinks.append(max(lam + step, 0.0))
            lam = kinks[-1]
    return min(value(lam) for lam in kinks)


def test_a_metric_from_a_table_of_ten_times_the_spread_makes_no_false_certificate():
    """Broke once: the bound on the gap was .103 while listed rows attained .305 within ε."""
    data = lw.datasets.load_german()
    wide = data.frame_train.copy()
    for name in ("amount", "duration", "age"):
        if name in wide:
            wide[name] = wide[name] * 10
    metric = lw.ExpertSubspace(["sex"], domain=TabularDomain()).fit(wide).metric_
    model = LogisticRegression(max_iter=500).fit(data.X_train.to_numpy(), data.y_train)
    result = lw.audit(model, data.X_test[:30], data.y_test[:30], metric=metric, domain=data.domain, eps=0.1)
    spent = metric.squared_distance(result.unfair_map.people, result.unfair_map.twins)
    assert result.transport == pytest.approx(0.1)
    assert float(spent.mean()) <= 0.1 + 1e-9
    assert result.certificate.bound is not None
    assert result.certificate.bound.gap >= result.gap - 1e-9


def test_what_a_metric_of_the_young_says_of_everybody_is_kept_to():
    """Broke once: a mean d² of .0998 was reported at ε = .1 where the metric itself says .289."""
    data = lw.datasets.load_german()
    # Everybody's categories, the numbers of the young: another mean and another scale in every column.
    words = {
        name: sorted(data.frame[name].unique())
        for name in data.frame
        if data.frame[name].dtype.kind not in "biuf"
    }
    young = data.frame_train[data.frame_train["age"] < 30]
    metric = lw.AttributeSubspace(["sex"], domain=TabularDomain(categories=words)).fit(young).metric_
    model = LogisticRegression(max_iter=500).fit(data.X_train.to_numpy(), data.y_train)
    result = lw.audit(
        model, data.X_test, data.y_test, metric=metric, domain=data.domain, eps=0.1, search="candidates"
    )
    spent = metric.squared_distance(result.unfair_map.people, result.unfair_map.twins)
    np.testing.assert_allclose(result.unfair_map.outcomes["squared_distance"], spent, rtol=1e-9, atol=1e-9)
    assert float(spent.mean()) <= 0.1 + 1e-9
    assert result.verdict(0.3) == result.certificate.verdict(0.3)


def test_what_cannot_be_brought_together_is_refused(people, labels):
    domain = TabularDomain.from_frame(people)
    model = as_model(LogisticRegression().fit(domain.encode_array(people), labels))
    few = people[people["sex"] == "F"].assign(
        sex=["F", "X"] * (int((people["sex"] == "F").sum()) // 2)
        + ["F"] * (int((people["sex"] == "F").sum()) % 2)
    )
    strange = lw.ExpertSubspace(["sex"], domain=TabularDomain()).fit(few).metric_
    with pytest.raises(InputError, match=r"not by an affine map: column 'sex' has the category"):
        lw.audit(model, people, labels, metric=strange, domain=domain)
    narrow = lw.ExpertSubspace(["sex"], domain=TabularDomain(), weight=0.5).fit(people[["sex"]]).metric_
    with pytest.raises(InputError, match="does not know column 'age'"):
        lw.audit(model, people, labels, metric=narrow, domain=domain)


def test_a_basis_in_single_precision_leaves_its_directions_free():
    """Broke once: two tolerances for "costs nothing"; a float32 basis gave a pure gap of 0 where float64 gave .482."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        Q, _ = np.linalg.qr(rng.normal(size=(8, 2)))
        X, w = rng.normal(size=(30, 8)), rng.normal(size=8)
        pool = X + rng.normal(size=(30, 2)) @ Q.T
        y = (X @ w > 0).astype(int)
        model = as_model(lambda Z, w=w: 1 / (1 + np.exp(-(Z @ w))))
        gaps = []
        for basis in (Q, np.linalg.qr(Q.astype(np.float32))[0].astype(np.float64)):
            metric = FairMetric(1.0, basis, np.full(2, -1.0))
            found = CandidateSearch().run(model, X, y, metric=metric, pool=pool)
            gaps.append(dual_curve(found.frontier).gap(0.0))
        assert gaps[0] == pytest.approx(gaps[1], rel=1e-3)
        assert gaps[1] > 0


# ---- what is counted -------------------------------------------------------------------------------------


def test_the_share_of_changed_decisions_equals_brute_force_over_all_twins(people, labels):
    """Broke once: only the twin with the worst loss was looked at; 5.7% printed where 11.0% was true."""
    rng = np.random.default_rng(5)
    big = pd.concat([people] * 5, ignore_index=True).assign(race=rng.choice(["a", "b", "c"], 200))
    y = np.concatenate([labels] * 5)
    score = lambda f: 1 / (1 + np.exp(-(f["age"] - 45 + 9 * (f["sex"] == "M") - 7 * (f["race"] == "c")) / 4))  # noqa: E731
    metric = lw.ExpertSubspace(["sex", "race"]).fit(big).metric_
    result = lw.audit(score, big, y, metric=metric, eps=0.0)
    variants = [big.assign(sex=s, race=r) for s in ("F", "M") for r in ("a", "b", "c")]
    decided = np.stack([np.asarray(score(v) > 0.5) for v in variants])
    truth = float((decided != np.asarray(score(big) > 0.5)).any(axis=0).mean())
    assert result.flipped == truth
    assert result.sensitive.changed == truth
    low, high = result.sensitive.changed_interval
    assert low < truth < high


def test_a_regression_decides_nothing():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"skill": rng.normal(size=30), "sex": rng.choice(["F", "M"], 30)})
    pay = frame["skill"] + (frame["sex"] == "M")
    model = as_model(lambda f: (f["skill"] + (f["sex"] == "M")).to_numpy(), loss="squared", takes_frame=True)
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    result = lw.audit(model, frame, pay, metric=metric, eps=0.0)
    assert result.flipped is None
    assert result.sensitive.changed is None
    assert result.sensitive.gap == pytest.approx(1.0)
    assert "The model predicts numbers." in str(result)


def test_none_seen_leaves_room_for_as_much_as_anything_may_cost():
    """A model that is right about all twenty may be very wrong about a twin that none of them has."""
    frame = pd.DataFrame({"skill": np.linspace(-3, 3, 20), "sex": ["F", "M"] * 10})
    y = (frame["skill"] > 0).to_numpy().astype(int)
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    result = lw.audit(lambda f: 1 / (1 + np.exp(-3 * f["skill"])), frame, y, metric=metric, eps=0.0)
    worst = -np.log(1e-12)
    none_of_twenty = 1 - 0.025 ** (1 / 20)
    assert result.sensitive.gap == 0.0
    for low, high in (
        result.sensitive.gap_interval,
        result.test.interval,
        (result.interval.low, result.interval.high),
    ):
        assert low == 0.0
        assert high == pytest.approx(none_of_twenty * worst, rel=1e-6)
