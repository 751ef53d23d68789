from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import likewise.evaluation as ev
from likewise.core.errors import InputError


def test_any_kind_of_array_will_do():
    import polars as pl
    import torch

    y, p = [0, 1, 1, 0], [0, 1, 0, 0]
    for kind in (list, np.array, pd.Series, pl.Series, torch.tensor):
        assert ev.accuracy(kind(y), kind(p)) == 0.75
        assert ev.balanced_accuracy(kind(y), kind(p)) == 0.75


def test_a_predicted_label_that_is_no_class_is_a_mistake():
    assert ev.balanced_accuracy([0, 0, 1, 1], [0, 2, 1, 1]) == 0.75


def test_bools_and_whole_floats_are_labels():
    assert ev.accuracy([0, 1], [False, True]) == 1.0
    assert ev.accuracy([0, 1], [0.0, 1.0]) == 1.0


def test_intervals_hold_their_values():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=500)
    p = np.where(rng.random(500) < 0.8, y, 1 - y)
    assert ev.accuracy(y, p) in ev.accuracy_interval(y, p)
    assert ev.balanced_accuracy(y, p) in ev.balanced_accuracy_interval(y, p)


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([1, 1], [1, 0], "one class only"),
        ([0, 1], [1], "lengths differ: y_true has 2 rows, y_pred has 1"),
        ([0, 1, None], [1, 0, 1], "1 missing label"),
        ([0, 1, pd.NA], [1, 0, 1], "1 missing label"),
        ([0.0, np.nan], [1, 0], "missing label"),
        ([0, 1], ["0", "1"], "'y_true' holds numbers and 'y_pred' holds text"),
        ([0, 1], [0.2, 0.7], "scores, not labels"),
        ([0, 1], [[0.2, 0.8], [0.7, 0.3]], "one label per row"),
        ([], [], "empty"),
        (
            pd.Series([0, "a"], dtype=object),
            [0, 1],
            "'y_true' must be labels of one type, got a mix of int and str",
        ),
    ],
)
def test_bad_input(y, p, message):
    with pytest.raises(InputError, match=message):
        ev.balanced_accuracy(y, p)
