import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.datasets import load_adult
from likewise.fair_metrics import (
    AttributeSubspace,
    ComparableSubspace,
    ExpertSubspace,
    FairMetric,
    PairMetric,
    diagnose,
    diagnosis as probes,
    euclidean,
    mahalanobis,
)
from likewise.fair_metrics.diagnosis import probe


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """Ten rounds of boosting find what is there to be found in these small tables, in a tenth of the time."""
    monkeypatch.setattr(probes, "_ROUNDS", 10)


def linear_traces(n=2_000, d=5, seed=0):
    """An attribute that shifts the rows along one direction, and shows nowhere else."""
    rng = np.random.default_rng(seed)
    direction = np.linalg.qr(rng.normal(size=(d, 1)))[0][:, 0]
    sex = rng.integers(2, size=n)
    return rng.normal(size=(n, d)) + 3.0 * np.outer(sex, direction), sex, direction


def quick(metric, X, attribute, **options):
    return diagnose(metric, X, attribute, **{"folds": 3, "max_rows": 1_000, "n_resamples": 5, **options})


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n) < 0.5, "Female", "Male")
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, size=n),
            "height": rng.normal(170, 7, size=n) + 12 * (sex == "Male"),
            "sex": sex,
            "job": rng.choice(["clerk", "cook", "nurse"], size=n),
        }
    )


# ---- what it finds ------------------------------------------------------------------------------------


def test_projecting_off_a_planted_direction_leaves_nothing_for_either_probe():
    X, sex, direction = linear_traces()
    found = quick(FairMetric.from_subspace(Subspace.from_directions(direction)), X, sex)
    for scores in found.probes:
        assert scores.before.value > 0.95
        assert abs(scores.after.value - 0.5) < 0.05
    assert (found.score, found.kind, found.dim, found.n_rows) == ("AUC", "categorical", 1, 1_000)


def test_the_boosted_probe_finds_what_a_linear_one_cannot():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 4))
    sex = (X[:, 0] + 0.3 * rng.normal(size=2_000) > 0).astype(int)
    # A second trace without any linear part: women are near the middle of column 2, men far from it.
    X[:, 2] = np.where(sex == 1, np.sign(X[:, 2]) * (2.0 + np.abs(X[:, 2])), X[:, 2])
    found = quick(ExpertSubspace([0]).fit(X), X, sex)
    assert abs(found.linear.after.value - 0.5) < 0.06
    assert found.boosted.after.value > 0.95
    assert any("linear traces only" in note for note in found.notes)


def test_what_is_nothing_to_the_metric_does_not_give_the_attribute_away():
    """Broke once: tiny copies of a removed direction, in columns of rare categories, were read by both probes."""
    X, sex, direction = linear_traces(1_500)
    rare = np.zeros((1_500, 2))
    rare[0] = 1.0
    tilted = np.concatenate([direction, [1e-3, 1e-15]])
    found = quick(FairMetric.from_subspace(Subspace.from_directions(tilted)), np.column_stack([X, rare]), sex)
    for scores in found.probes:
        assert scores.before.value > 0.95
        assert abs(scores.after.value - 0.5) < 0.06


def test_more_than_two_categories_and_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 4))
    race = np.array(["a", "b", "c"])[(X[:, :3] + 0.5 * rng.normal(size=(1_000, 3))).argmax(1)]
    found = quick(ExpertSubspace([0, 1, 2]).fit(X), X, race)
    assert found.linear.before.value > 0.85
    assert abs(found.linear.after.value - 0.5) < 0.06
    income = 3.0 + 100 * X[:, 0] + 20 * rng.normal(size=1_000)
    found = quick(ExpertSubspace([0]).fit(X), X, income)
    assert (found.score, found.kind) == ("R²", "continuous")
    assert found.linear.before.value > 0.9
    assert found.linear.after.value < 0.05


def test_adult_gender_before_and_after():
    data = load_adult()
    learner = AttributeSubspace(["sex", "race"]).fit(data.frame_train)
    found = diagnose(
        learner, data.frame_test, "sex", learned_on=data.frame_train, max_rows=2_000, n_resamples=3
    )
    assert found.linear.before.low > found.linear.after.high
    assert found.linear.before.value > 0.9
    assert found.linear.after.value < 0.75
    assert found.variance_removed["sex"] == found.variance_removed["race"] == 1.0
    assert set(found.variance_removed) == set(data.frame.columns)
    assert 0 < found.total_variance_removed < 1
    # The attributes' own columns never move; the learned directions do a little.
    assert [measure.value < 1e-6 for measure in found.stability.angles] == [False, False, True, True]
    assert found.stability.largest.value < 0.5


def test_an_own_column_that_the_metric_leaves_is_told():
    frame = people()
    encoded = ExpertSubspace("age").fit(frame)
    found = quick(encoded, frame, "sex")
    assert found.linear.before.value < 0.95
    assert any("still depends on 'sex' itself: 100.0%" in note for note in found.notes)
    assert not any(
        "still depends on" in note for note in quick(ExpertSubspace("sex").fit(frame), frame, "sex").notes
    )


def test_without_a_subspace_nothing_changes():
    X, sex, _ = linear_traces(400)
    for metric in (euclidean(), euclidean(5), mahalanobis(np.eye(5))):
        found = quick(metric, X, sex)
        assert [s.before for s in found.probes] == [s.after for s in found.probes]
        assert (found.dim, found.total_variance_removed) == (0, 0.0)
        assert "no sensitive subspace" in found.notes[0]


def test_a_softened_metric_is_seen_as_if_its_weight_were_zero():
    X, sex, direction = linear_traces(600)
    subspace = Subspace.from_directions(direction)
    soft, hard = (quick(FairMetric.from_subspace(subspace, weight), X, sex) for weight in (0.3, 0.0))
    assert soft.probes == hard.probes
    assert "weight of 0.3" in soft.notes[0]


# ---- where the attribute comes from -------------------------------------------------------------------


def test_all_ways_to_name_an_attribute_agree():
    frame = people()
    learner = AttributeSubspace("sex").fit(frame)
    encoded = learner.encoder_.encode(frame)
    expected = quick(learner.metric_, frame, "sex")
    index = list(encoded.columns).index("sex_Male")
    tables = [
        (pl.from_pandas(frame), "sex"),
        (encoded, "sex"),
        (encoded.to_numpy(), "sex"),
        (torch.tensor(encoded.to_numpy()), index),
        (frame.drop(columns="sex").assign(sex=frame["sex"]), frame["sex"]),
    ]
    for X, attribute in tables:
        assert quick(learner.metric_, X, attribute).probes == expected.probes
    unnamed = quick(learner.metric_, frame, frame["sex"].to_numpy())
    assert unnamed.linear.before.value > 0.999  # its own column is not known to be one
    assert unnamed.attribute == "attribute"


def test_rows_that_do_not_know_the_attribute_are_left_out():
    frame = people()
    learner = AttributeSubspace("sex").fit(frame)
    holes = frame.copy()
    holes.loc[::3, "sex"] = None
    some = quick(learner.metric_, holes, "sex")
    assert some.n_rows == 200
    assert some.probes == quick(learner.metric_, frame[holes["sex"].notna()], "sex").probes
    values = frame["sex"].where(holes["sex"].notna())
    assert quick(learner.metric_, frame, values).probes == some.probes


def test_max_rows_keeps_the_shares_of_the_categories():
    X, sex, direction = linear_traces(1_000)
    rare = np.where(np.arange(1_000) < 20, 2, sex)
    metric = FairMetric.from_subspace(Subspace.from_directions(direction))
    assert quick(metric, X, rare, max_rows=100).n_rows in range(95, 110)
    assert quick(metric, X, rare, max_rows=None).n_rows == 1_000


# ---- stability ----------------------------------------------------------------------------------------


def test_more_rows_make_a_steadier_subspace():
    X, sex, _ = linear_traces(4_000)
    largest = []
    for n in (200, 4_000):
        learner = AttributeSubspace(regularization=1e-3).fit(X[:n], sex[:n])
        stability = quick(learner, X[:n], sex[:n], n_resamples=20).stability
        assert stability.largest.low <= stability.largest.value <= stability.largest.high
        assert (stability.n_resamples, stability.n_failed, stability.dims) == (20, 0, (1, 1))
        largest.append(stability.largest.value)
    # The error falls with the root of the number of rows: 4.5 times here.
    assert largest[1] < largest[0] / 2.5


def test_every_learner_is_resampled_by_what_it_learns_from():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 0] *= 5
    sex = (X[:, 0] > 0).astype(int)
    groups = np.repeat(np.arange(100), 2)
    pairs = rng.integers(200, size=(150, 2))
    comparable = np.abs(X[pairs[:, 0], 1] - X[pairs[:, 1], 1]) < 0.5
    lists = [[2 * i, 2 * i + 1] for i in range(100)]
    cases = [
        (ExpertSubspace([0]), {}),
        (AttributeSubspace(), {"y": sex}),
        (AttributeSubspace(), {"sensitive_features": {"sex": sex}}),
        (ComparableSubspace(n_components=1), {"y": groups}),
        (ComparableSubspace(n_components=1), {"groups": groups}),
        (ComparableSubspace(n_components=1), {"groups": lists}),
        (PairMetric(regularization=1e-4), {"pairs": pairs, "comparable": comparable}),
    ]
    for learner, params in cases:
        fitted = learner.fit(X, **params)
        if fitted.metric_.subspace is None:
            pytest.fail(f"{learner} has no subspace; the case shows nothing")
        found = quick(fitted, X, sex, fit_params=params)
        assert found.stability is not None, learner
        assert len(found.stability.angles) == fitted.metric_.subspace.dim
        if isinstance(learner, ExpertSubspace):
            assert found.stability.largest.value == 0.0
    labels = quick(cases[4][0].fit(X, groups=groups), X, sex, fit_params={"groups": groups})
    indices = quick(cases[5][0].fit(X, groups=lists), X, sex, fit_params={"groups": lists})
    assert labels.stability == indices.stability


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, sex: AttributeSubspace().fit(X, sex).metric_, "needs the learner"),
        (lambda X, sex: ComparableSubspace(1).fit(X, sex), "pass fit_params="),
    ],
)
def test_the_reason_for_no_stability_is_told(make, message):
    X, sex, _ = linear_traces(200)
    found = quick(make(X, sex), X, sex)
    assert found.stability is None
    assert message in found.notes[-1]


def test_resamples_that_cannot_be_learned_from_are_counted():
    X, sex, _ = linear_traces(60)
    rare = np.arange(60) < 1
    learner = AttributeSubspace().fit(X, rare)
    found = quick(learner, X, sex, fit_params={"y": rare}, n_resamples=20)
    assert 0 < found.stability.n_failed < 20
    assert found.stability.n_resamples + found.stability.n_failed == 20
    assert "more resamples could not be learned from" in str(found)


# ---- the result ---------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_diagnosis_and_nothing_is_changed():
    frame = people()
    learner = AttributeSubspace("sex").fit(frame)
    copy, basis = frame.copy(), learner.metric_.basis.copy()
    one, other = (quick(learner, frame, "sex", random_state=7, max_rows=200) for _ in range(2))
    assert one == other
    assert one != quick(learner, frame, "sex", random_state=8, max_rows=200)
    pd.testing.assert_frame_equal(frame, copy)
    np.testing.assert_array_equal(learner.metric_.basis, basis)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.dim = 3


def test_prints_as_small_tables():
    frame = people()
    text = str(quick(AttributeSubspace("sex").fit(frame), frame, "sex"))
    lines = text.splitlines()
    assert lines[0].split("  ")[0] == "AUC of predicting 'sex'"
    assert lines[1].startswith("linear probe")
    assert lines[2].startswith("boosted probe")
    assert lines[3] == "300 rows, 3 folds, 2 direction(s) projected off"
    assert any(line.split() == ["sex", "100.0%"] for line in lines)
    assert "5 bootstrap resamples" in text
    assert max(map(len, lines)) <= 110
    wide = np.random.default_rng(0).normal(size=(100, 40))
    assert "28 more columns" in str(quick(ExpertSubspace([0]).fit(wide), wide, wide[:, 1] > 0))


def test_the_interval_covers_what_a_larger_sample_shows():
    X, sex, _ = linear_traces(20_000)
    truth = probe("linear", X, sex, classes=True, folds=5, seed=0).value
    hits = [
        measure.low <= truth <= measure.high
        for i in range(20)
        for measure in [probe("linear", X[i::40], sex[i::40], classes=True, folds=5, seed=i)]
    ]
    assert sum(hits) >= 16


# ---- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("sexx", "no column 'sexx' .did you mean 'sex'"),
        (99, "there is no column 99"),
        (None, "'attribute' must be a column name"),
        (np.zeros((300, 2)), "one attribute, one value per row"),
        (["a", "b"], "lengths differ"),
        ([None] * 300, "missing in every row"),
        (["a"] * 300, "one category only"),
        (np.full(300, 2.5), "one value only|one category only"),
        (["a"] * 299 + ["b"], "fewer than the 3 folds"),
    ],
)
def test_bad_attributes_say_what_to_do(attribute, message):
    frame = people()
    with pytest.raises(InputError, match=message):
        quick(ExpertSubspace("sex").fit(frame).metric_, frame, attribute)


def test_a_column_that_nobody_knows_is_refused():
    frame = people()
    metric = ExpertSubspace("sex").fit(frame).metric_
    with pytest.raises(InputError, match="'sex' is missing in every row"):
        quick(metric, frame.assign(sex=None), "sex")
    with pytest.raises(InputError, match="one category only"):
        quick(metric, frame.assign(sex="Male"), "sex")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "'folds' must be a whole number >= 2"),
        ({"max_rows": 3}, "'max_rows'"),
        ({"n_resamples": -1}, "'n_resamples'"),
        ({"kind": "colour"}, "'kind' must be"),
        ({"kind": ["count"]}, "'kind' must be one kind"),
        ({"folds": 200}, "fewer than the 200 folds"),
    ],
)
def test_bad_options_are_named(options, message):
    X, sex, _ = linear_traces(100)
    with pytest.raises(InputError, match=message):
        quick(euclidean(), X, sex, **options)


def test_bad_metrics_are_named():
    X, sex, _ = linear_traces(100)
    with pytest.raises(
        InputError, match=r"a FairMetric or a fitted learner of one, got AttributeSubspace\. Call fit"
    ):
        quick(AttributeSubspace(), X, sex)
    with pytest.raises(InputError, match="got str"):
        quick("metric", X, sex)
    with pytest.raises(InputError, match="5 columns, expected 3"):
        quick(euclidean(3), X, sex)
    with pytest.raises(InputError, match="no columns besides the attribute"):
        quick(euclidean(1), X[:, :1], 0)
    with pytest.raises(InputError, match="too few for 5 folds"):
        diagnose(euclidean(), X[:8], X[:8, 0])
