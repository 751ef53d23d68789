"""Rows on one side of a plane, against the enumeration of every row of a region."""

import importlib.util
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from likewise.auditing.bounds.regions import Regions, TableLayout
from likewise.auditing.verification.shares_by_lines import share_above
from likewise.data import BoxDomain
from likewise.data.column import Column, Dtype

_spec = importlib.util.spec_from_file_location(
    "random_ensembles", Path(__file__).with_name("random_ensembles.py")
)
made = importlib.util.module_from_spec(_spec)
sys.modules["random_ensembles"] = made
_spec.loader.exec_module(made)


def integers(*tops):
    return TableLayout(
        tuple(
            Column(f"x{i}", "integer", Dtype("int64"), lower=0, upper=top, start=i, stop=i + 1)
            for i, top in enumerate(tops)
        )
    )


@pytest.mark.parametrize("seed", range(30))
def test_never_more_than_the_rows_there_are_and_hardly_less(seed):
    rng = np.random.default_rng(seed)
    layout = TableLayout(made.random_columns(rng))
    rows = made.every_row(layout.columns)
    whole = Regions(
        rows.min(axis=0)[None], rows.max(axis=0)[None], np.ones((1, layout.n_categories), dtype=np.uint8)
    )
    apart = np.array([0])
    encoded = layout.encode(rows)
    for _ in range(20):
        slope = rng.normal(size=(1, layout.width))
        offset = -np.quantile(encoded @ slope[0], rng.random(), keepdims=True)
        # A row counts where it is above 0 for every value of the column that is left aside.
        value = encoded @ slope[0] + offset[0]
        others = [tuple(row) for row in np.delete(rows, 0, axis=1)]
        least = {}
        for key, one in zip(others, value, strict=True):
            least[key] = min(least.get(key, np.inf), one)
        values = np.array(list(least.values()))
        found = share_above(layout, whole, apart, slope, offset)[0]
        assert found <= (values > 0).mean() + 1e-12
        # What is lost lies within the rounding to the grid.
        spread = np.ptp(values)
        assert found >= (values > 0.05 * spread).mean() - 1e-9


def test_wide_numbers_are_counted_to_the_row():
    layout = integers(20_000)
    whole = Regions(np.array([[0.0]]), np.array([[20_000.0]]), np.zeros((1, 0), dtype=np.uint8))
    none = np.zeros(0, dtype=np.int64)
    for cut in (0.5, 77.5, 19_999.5):
        found = share_above(layout, whole, none, np.array([[1.0]]), np.array([-cut]))[0]
        assert found == pytest.approx((20_000 - np.floor(cut)) / 20_001, abs=1e-9)
        assert found <= (20_000 - np.floor(cut)) / 20_001


def test_sums_of_columns_match_the_enumeration():
    layout = integers(9, 12, 15, 30)
    rows = np.array(list(product(range(10), range(13), range(16), range(31))), dtype=float)
    whole = Regions(np.zeros((1, 4)), np.array([[9.0, 12.0, 15.0, 30.0]]), np.zeros((1, 0), dtype=np.uint8))
    none = np.zeros(0, dtype=np.int64)
    slope = np.array([0.7, -1.3, 0.21, 0.5])
    value = rows @ slope
    for share in (0.01, 0.3, 0.5, 0.9, 0.999):
        cut = np.quantile(value, 1 - share)
        truth = (value - cut > 0).mean()
        found = share_above(layout, whole, none, slope[None], np.array([-cut]))[0]
        assert truth - 0.02 <= found <= truth


def test_continuous_numbers_have_their_volume():
    layout = TableLayout.of(BoxDomain([0.0, 0.0], [1.0, 1.0]))
    whole = Regions(np.zeros((1, 2)), np.ones((1, 2)), np.zeros((1, 0), dtype=np.uint8))
    none = np.zeros(0, dtype=np.int64)
    # x + y > 1/2 is all but a triangle of area 1/8.
    found = share_above(layout, whole, none, np.ones((1, 2)), np.array([-0.5]))[0]
    assert 0.87 <= found <= 0.875


def test_nothing_and_everything():
    layout = integers(3, 3)
    whole = Regions(np.zeros((1, 2)), np.full((1, 2), 3.0), np.zeros((1, 0), dtype=np.uint8))
    none = np.zeros(0, dtype=np.int64)
    assert share_above(layout, whole, none, np.ones((1, 2)), np.array([0.5]))[0] == 1.0
    assert share_above(layout, whole, none, np.ones((1, 2)), np.array([-6.0]))[0] == 0.0
    # Exactly 0 is not above 0.
    assert share_above(layout, whole, none, np.zeros((1, 2)), np.array([0.0]))[0] == 0.0
