from __future__ import annotations

import numpy as np
import pytest

import likewise.evaluation as ev
from likewise.core.errors import InputError


def test_same_seed_same_interval_and_another_seed_another():
    x = np.random.default_rng(0).normal(size=50)
    a, b, c = (ev.bootstrap_interval(np.mean, x, random_state=seed) for seed in (1, 1, 2))
    assert a == b
    assert a != c


def test_batches_do_not_change_the_result(monkeypatch):
    x = np.random.default_rng(0).normal(size=50)
    whole = ev.bootstrap_interval(np.mean, x, n_resamples=101)
    monkeypatch.setattr("likewise.core.intervals._BATCH_CELLS", 150)
    assert ev.bootstrap_interval(np.mean, x, n_resamples=101) == whole


def test_plain_and_vectorised_statistics_agree():
    x = np.random.default_rng(0).normal(size=40)
    plain = ev.bootstrap_interval(lambda a: a.mean(), x, n_resamples=200)
    assert tuple(plain) == pytest.approx(tuple(ev.bootstrap_interval(np.mean, x, n_resamples=200)))


def test_a_statistic_of_rows_gets_whole_rows():
    X = np.random.default_rng(0).normal(size=(40, 3))
    interval = ev.bootstrap_interval(lambda rows: np.linalg.norm(rows.mean(axis=0)), X, n_resamples=100)
    assert interval.low < interval.high


def test_wider_confidence_gives_a_wider_interval():
    x = np.random.default_rng(0).normal(size=40)
    narrow, wide = (ev.bootstrap_interval(np.mean, x, confidence=c) for c in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_one_observation_has_an_unknown_interval_not_a_narrow_one(method):
    assert np.isnan(list(ev.bootstrap_interval(np.mean, [3.0], method=method))).all()
    (interval,) = ev.bootstrap_counts(lambda c: c[:, 0], [1, 0], method=method)
    assert np.isnan(list(interval)).all()


def test_a_statistic_undefined_in_many_resamples_has_an_unknown_interval():
    # One person of class 1 among many: absent from more than a third of the resamples.
    y = np.array([0] * 99 + [1])
    interval = ev.balanced_accuracy_interval(y, y, method="percentile")
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)
    # The exact limits of the classes know that one person says little.
    assert ev.balanced_accuracy_interval(y, y).low < 0.6


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_a_constant_statistic_has_a_point_interval(method):
    assert tuple(ev.bootstrap_interval(np.mean, np.ones(20), method=method)) == (1.0, 1.0)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_proportion_by_bootstrap_is_near_the_exact_one(method):
    exact = ev.proportion_interval(700, 1000)
    np.testing.assert_allclose(
        tuple(ev.proportion_interval(700, 1000, method=method, n_resamples=20_000)), tuple(exact), atol=0.003
    )


def test_exact_interval_has_width_where_everyone_agrees():
    assert ev.proportion_interval(1000, 1000).low < 1
    assert tuple(ev.proportion_interval(1000, 1000, method="percentile")) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ev.bootstrap_interval(np.mean), "no arrays"),
        (lambda: ev.bootstrap_interval(np.mean, []), "no observations"),
        (lambda: ev.bootstrap_interval(lambda a, b: 0.0, [1, 2], [1]), "lengths differ"),
        (lambda: ev.bootstrap_interval(np.mean, [1, 2], method="magic"), "'method' must be one of"),
        (lambda: ev.bootstrap_interval(np.mean, [1, 2], confidence=1.0), "'confidence' must be"),
        (lambda: ev.bootstrap_interval(np.mean, [1, 2], n_resamples=0), "'n_resamples' must be"),
        (lambda: ev.bootstrap_counts(lambda c: c[:, 0], [0.5, 1]), "'counts' must be"),
        (lambda: ev.bootstrap_counts(lambda c: c[:, 0], [0, 0]), "'counts' must be"),
        (lambda: ev.proportion_interval(3, 2), "'successes' must be"),
        (lambda: ev.proportion_interval(0, 0), "'n' must be"),
        (lambda: ev.proportion_interval(1, 2, method="wald"), "'exact', 'percentile', 'basic', 'bca'"),
        (lambda: ev.proportion_interval(1, 2, confidence=95), "'confidence' must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
