"""The evaluation against independent implementations: fairlearn, scikit-learn, scipy and brute force."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score

import likewise.counterfactuals as cf
import likewise.evaluation as ev


def random_predictions(seed, n=400, n_classes=3, n_groups=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    group = rng.integers(n_groups, size=n)
    right = rng.random(n) < 0.6 + 0.2 * group / n_groups
    return y, np.where(right, y, rng.integers(n_classes, size=n)), group


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_group_gaps_agree_with_fairlearn(n_classes, n_groups):
    from fairlearn.metrics import MetricFrame, true_positive_rate

    y, predicted, group = random_predictions(0, n_classes=n_classes, n_groups=n_groups)
    ours = ev.group_gaps(y, predicted, group)
    difference = []
    for label in range(n_classes):
        theirs = MetricFrame(
            metrics=true_positive_rate,
            y_true=(y == label).astype(int),
            y_pred=(predicted == label).astype(int),
            sensitive_features=group,
        )
        np.testing.assert_allclose(ours.tpr[label], theirs.by_group.to_numpy(dtype=float), atol=1e-12)
        difference.append(theirs.difference(method="between_groups"))
    np.testing.assert_allclose(ours.per_class.abs(), difference, atol=1e-12)
    assert ours.max == pytest.approx(max(difference), abs=1e-12)
    if n_groups == 2:
        assert ours.rms == pytest.approx(np.sqrt(np.mean(np.square(difference))), abs=1e-12)
    else:
        pairs = [ours.tpr.loc[a] - ours.tpr.loc[b] for a, b in itertools.combinations(range(n_groups), 2)]
        assert ours.rms == pytest.approx(max(np.sqrt((pair**2).mean()) for pair in pairs), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=60))
def test_accuracies_agree_with_scikit_learn(rows):
    y, predicted = (np.array(column) for column in zip(*rows, strict=True))
    assert ev.accuracy(y, predicted) == pytest.approx(accuracy_score(y, predicted), abs=1e-12)
    if len(set(y)) > 1 and set(predicted) <= set(y):
        assert ev.balanced_accuracy(y, predicted) == pytest.approx(
            balanced_accuracy_score(y, predicted), abs=1e-12
        )


def test_balanced_accuracy_of_text_labels_agrees_with_scikit_learn():
    y, predicted, _ = random_predictions(1)
    names = np.array(["low", "mid", "high"])
    assert ev.balanced_accuracy(names[y], pd.Series(names[predicted])) == pytest.approx(
        balanced_accuracy_score(y, predicted), abs=1e-12
    )


def hashed_decision(row: dict, seed: int) -> int:
    """A decision that depends on all columns of one row in no simple way."""
    text = repr(sorted(row.items())) + str(seed)
    return sum(ord(c) * (i + 1) for i, c in enumerate(text)) % 3 // 2


def model_of(seed):
    def predict(table):
        return np.array([hashed_decision(row, seed) for row in table.to_dict("records")])

    return predict


people = st.lists(
    st.fixed_dictionaries(
        {
            "sex": st.sampled_from(["F", "M"]),
            "race": st.sampled_from(["a", "b", "c"]),
            "relationship": st.sampled_from(["Husband", "Wife", "Single"]),
            "age": st.integers(18, 21),
        }
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(people, st.integers(0, 1000), st.integers(1, 5))
def test_consistency_equals_brute_force_over_all_twins(rows, seed, chunk_size):
    frame = pd.DataFrame(rows)
    values = {"sex": ["F", "M"], "race": ["a", "b", "c"]}
    study = cf.correspondence_study(model_of(seed), frame, values, allow_new=True, chunk_size=chunk_size)
    flipped = []
    for row in rows:
        decisions = {
            hashed_decision(row | {"sex": sex, "race": race}, seed)
            for sex in values["sex"]
            for race in values["race"]
        }
        flipped.append(len(decisions) > 1)
    assert study.flipped.tolist() == flipped
    assert study.consistency == pytest.approx(1 - np.mean(flipped))
    assert study.decisions.shape == (len(rows), 6)


@settings(max_examples=60, deadline=None)
@given(people, st.integers(0, 1000), st.booleans())
def test_joint_edits_equal_brute_force(rows, seed, only):
    frame = pd.DataFrame(rows)
    couple = [{"relationship": "Husband", "sex": "M"}, {"relationship": "Wife", "sex": "F"}]
    chosen = [row for row in rows if not only or any(row | twin == row for twin in couple)]
    call = functools.partial(
        cf.correspondence_study, model_of(seed), frame, couple, allow_new=True, only=only
    )
    if not chosen:
        with pytest.raises(ValueError, match="nobody has one of the edited combinations"):
            call()
        return
    expected = [len({hashed_decision(row | twin, seed) for twin in couple}) > 1 for row in chosen]
    study = call()
    assert study.flipped.tolist() == expected
    assert [rows[i] for i in study.positions] == chosen


def test_the_papers_two_instances_equal_brute_force():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["Female", "Male"], 60),
            "race": rng.choice(["Non-White", "White"], 60),
            "relationship": rng.choice(["Husband", "Wife", "Own-child"], 60),
            "age": rng.integers(18, 70, 60),
        }
    )
    rows = frame.to_dict("records")
    spouse = [
        len({hashed_decision(row | {"relationship": r}, 7) for r in ("Husband", "Wife")}) == 1 for row in rows
    ]
    both = [
        len(
            {
                hashed_decision(row | {"sex": s, "race": r}, 7)
                for s in ("Female", "Male")
                for r in ("Non-White", "White")
            }
        )
        == 1
        for row in rows
    ]
    assert 0 < np.mean(spouse) < 1
    assert cf.spouse_consistency(model_of(7), frame).consistency == np.mean(spouse)
    assert cf.gender_race_consistency(model_of(7), frame).consistency == np.mean(both)


def test_signed_gap_intervals_agree_with_resampling_people_where_groups_are_large():
    y, predicted, group = random_predictions(6, n=3000, n_classes=2)
    keep = group != np.unique(group)[-1] if len(np.unique(group)) > 2 else slice(None)
    people = y[keep], predicted[keep], group[keep]
    measure = {m.name: m for m in ev.group_gaps(*people).measures()}["Gap group, class 1"]
    ends = scipy.stats.bootstrap(
        people,
        lambda *a: ev.group_gaps(*a).per_class[1],
        n_resamples=300,
        paired=True,
        vectorized=False,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    np.testing.assert_allclose((measure.low, measure.high), tuple(ends), atol=0.02)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (3, 17), (8670, 9045), (1, 1)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_exact_interval_agrees_with_scipy(k, n, confidence):
    theirs = scipy.stats.binomtest(k, n).proportion_ci(confidence, method="exact")
    ours = ev.proportion_interval(k, n, confidence=confidence)
    np.testing.assert_allclose(tuple(ours), (theirs.low, theirs.high), atol=1e-9)


def test_balanced_accuracy_intervals_cover_the_truth_about_as_often_as_they_say():
    # Balanced accuracy with known rates .9 and .7: the truth is .8. 400 trials have a standard error of .011.
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        y = (rng.random(300) < 0.3).astype(int)
        predicted = np.where(rng.random(300) < np.where(y == 1, 0.7, 0.9), y, 1 - y)
        covered += 0.8 in ev.balanced_accuracy_interval(y, predicted)
    assert 0.93 <= covered / 400 <= 0.99
