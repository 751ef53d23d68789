import numpy as np
import pandas as pd
import pytest
import torch

from likewise.core.errors import InputError
from likewise.fair_metrics import PairMetric
from likewise.fair_metrics.pair_metric import pair_losses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
PAIRS = RNG.permutation(40).reshape(20, 2)
COMPARABLE = np.abs(X[PAIRS[:, 0], 1] - X[PAIRS[:, 1], 1]) < 1.0


def people():
    return pd.DataFrame(
        {
            "age": [30, 30, 50, 50, 30, 50, 40, 41],
            "sex": ["F", "M", "F", "M", "F", "F", "M", "F"],
            "job": ["a", "a", "b", "b", "b", "c", "c", "c"],
        }
    )


def fitted():
    return PairMetric().fit(X, pairs=PAIRS, comparable=COMPARABLE)


def test_all_ways_to_pass_pairs_agree():
    expected = fitted().sigma_
    first, second = X[PAIRS[:, 0]], X[PAIRS[:, 1]]
    names = ["a", "b", "c"]
    same = [
        PairMetric().fit_pairs(first, second, COMPARABLE),
        PairMetric().fit_pairs(second, first, COMPARABLE.astype(int)),
        PairMetric().fit(X, pairs=PAIRS - 40, comparable=list(COMPARABLE)),
        PairMetric().fit_pairs(torch.tensor(first), torch.tensor(second), torch.tensor(COMPARABLE)),
        PairMetric().fit_pairs(
            pd.DataFrame(first, columns=names), pd.DataFrame(second, columns=names), COMPARABLE
        ),
    ]
    for learner in same:
        np.testing.assert_allclose(learner.sigma_, expected, atol=1e-9)
    assert same[-1].metric_.feature_names == ("a", "b", "c")


def test_the_share_of_judges_counts_as_so_many_judgements():
    doubled = np.concatenate([PAIRS, PAIRS])
    split = np.concatenate([COMPARABLE, np.ones(20, dtype=bool)])
    shares = (COMPARABLE + 1.0) / 2
    one = PairMetric(tol=1e-10).fit(X, pairs=doubled, comparable=split)
    other = PairMetric(tol=1e-10).fit(X, pairs=PAIRS, comparable=shares)
    np.testing.assert_allclose(one.sigma_, other.sigma_, atol=1e-4)


def test_judgements_without_any_error_leave_the_metric_finite():
    """All comparable pairs differ in column 0 alone, so the likelihood grows with Σ for ever; the penalty stops it."""
    second = X.copy()
    second[:20, 0] += 5.0
    second[20:, 1:] += RNG.normal(size=(20, 2))
    learner = PairMetric().fit_pairs(X, second, np.arange(40) < 20)
    assert learner.sigma_.max() < 1e5
    assert learner.metric_.squared_distance(X[:20], second[:20]).max() < 1e-6
    assert learner.probability(X[20:], second[20:]).mean() < 0.1


def test_takes_raw_frames_and_names():
    frame = people()
    pairs, comparable = [(0, 1), (2, 3), (0, 2), (1, 5), (4, 6), (6, 7)], [1, 1, 0, 0, 0, 1]
    learner = PairMetric().fit(frame, pairs=pairs, comparable=comparable)
    metric = learner.metric_
    assert metric.feature_map is learner.encoder_
    assert (
        metric.squared_distance(frame[:1], frame[1:2])[0] < metric.squared_distance(frame[:1], frame[2:3])[0]
    )
    # Every pair keeps the sum of the three job columns: that direction is unseen, and must not be free.
    sums = np.array([name.startswith("job_") for name in metric.feature_names], dtype=float)
    assert metric.squared_norm(sums[None, :])[0] > 0.1 * metric.squared_norm(np.eye(5)).mean()


def test_a_column_that_never_differs_costs_the_mean_of_the_others():
    rows = np.column_stack([X, np.full(40, 7.0)])
    learner = PairMetric().fit(rows, pairs=PAIRS, comparable=COMPARABLE)
    np.testing.assert_allclose(learner.sigma_[:3, :3], fitted().sigma_, atol=1e-9)
    np.testing.assert_allclose(learner.sigma_[3], [0, 0, 0, np.trace(fitted().sigma_) / 3], atol=1e-9)


def test_groups_as_y_draw_the_same_pairs_for_the_same_seed():
    rows = np.random.default_rng(1).normal(size=(200, 3))
    groups = np.repeat(np.arange(40), 5)
    rows[:, 0] += groups
    learners = [PairMetric(max_pairs=2_000, random_state=seed).fit(rows, groups) for seed in (0, 0, 1)]
    assert learners[0].n_pairs_ == 2_000
    np.testing.assert_array_equal(learners[0].sigma_, learners[1].sigma_)
    assert (learners[0].sigma_ != learners[2].sigma_).any()
    # Groups are far apart in column 0 and alike in the others.
    everything = PairMetric().fit(rows, groups)
    for learner in (learners[0], everything):
        costs = np.diag(learner.sigma_)
        assert costs[0] > 3 * costs[1:].max()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"comparable": None}, "without judgements"),
        ({"pairs": None}, "without pairs"),
        ({"pairs": None, "comparable": None}, "no judgements"),
        ({"comparable": np.ones(20)}, "every pair was judged comparable"),
        ({"comparable": np.zeros(20)}, "every pair was judged not comparable"),
        ({"comparable": np.ones(3)}, r"one judgement per pair \(20\)"),
        ({"comparable": np.where(COMPARABLE, 1, -1)}, "comparable > 0"),
        ({"comparable": np.where(COMPARABLE, 1.0, np.nan)}, "nan at pair"),
        ({"comparable": ["yes"] * 20}, "True or False per pair"),
        ({"pairs": PAIRS + 10}, "X has 40 rows"),
        ({"pairs": PAIRS.astype(float)}, "fit_pairs"),
        ({"pairs": PAIRS[:, :1]}, r"shape \(m, 2\)"),
        ({"pairs": PAIRS[:0]}, "'pairs' is empty"),
        ({"pairs": np.repeat(PAIRS[:, :1], 2, axis=1)}, "equal rows were judged not comparable, first rows"),
    ],
)
def test_bad_pairs_say_what_to_do(change, message):
    with pytest.raises(InputError, match=message):
        PairMetric().fit(X, **{"pairs": PAIRS, "comparable": COMPARABLE, **change})


@pytest.mark.parametrize(
    "parameters", [{"regularization": -1}, {"max_pairs": 1}, {"max_iter": 0}, {"tol": 0}, {"max_iter": True}]
)
def test_bad_parameters_are_named(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        PairMetric(**parameters).fit(X, pairs=PAIRS, comparable=COMPARABLE)


@pytest.mark.parametrize(
    ("y", "message"),
    [(np.zeros(40), "one group only"), (np.arange(40), "every group has one row only")],
)
def test_groups_that_say_nothing_are_refused(y, message):
    with pytest.raises(InputError, match=message):
        PairMetric().fit(X, y)


def test_tables_that_do_not_match_are_refused():
    with pytest.raises(InputError, match="first has 20 rows, second has 19"):
        PairMetric().fit_pairs(X[:20], X[:19], COMPARABLE)
    with pytest.raises(InputError, match="same columns"):
        PairMetric().fit_pairs(X[:20], X[20:, :2], COMPARABLE)
    with pytest.raises(InputError, match="different columns"):
        PairMetric().fit_pairs(people(), people().rename(columns={"age": "years"}), [True] * 8)


def test_log_likelihood_is_that_of_the_fit_and_minus_infinity_for_the_impossible():
    learner = fitted()
    first, second = X[PAIRS[:, 0]], X[PAIRS[:, 1]]
    assert learner.log_likelihood(first, second, COMPARABLE) == pytest.approx(learner.log_likelihood_)
    assert learner.log_likelihood(first, first, COMPARABLE) == -np.inf


def test_stops_at_the_optimum_also_where_the_metric_must_grow_first():
    """Broke once: a metric that is only too small has slope below zero along itself, and passed for converged."""
    rows = np.array([[0.0, 0.0], [1.0, 0.1], [0.2, 1.0], [1.3, 1.2]])
    pairs, comparable = np.array([(0, 1), (2, 3), (0, 2), (1, 3)]), np.array([1.0, 1.0, 0.0, 0.0])
    metric = PairMetric(regularization=1e-3).fit(rows, pairs=pairs, comparable=comparable).metric_
    squared = metric.squared_distance(rows[pairs[:, 0]], rows[pairs[:, 1]])
    objective = [
        pair_losses(c * squared, comparable).mean() + 1e-3 * c * squared.mean() for c in (0.9, 1.0, 1.1)
    ]
    assert objective[1] == min(objective)
