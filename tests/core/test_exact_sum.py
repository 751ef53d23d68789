"""Sums without rounding: equal to fractions, the same in every order and from every split."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from likewise.core import exact_sum
from likewise.core.errors import InputError
from likewise.core.exact_sum import ExactSum

floats = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20)


@settings(deadline=None)
@given(floats)
def test_equal_to_fractions(values):
    exact = sum(map(Fraction, values), Fraction(0))
    assert ExactSum.of(values).fraction == exact
    assert ExactSum.of_squares(values).fraction == sum((Fraction(v) ** 2 for v in values), Fraction(0))


@settings(deadline=None)
@given(floats, floats, floats)
def test_adding_is_associative_and_commutative_and_equals_one_pass(a, b, c):
    one, two, three = map(ExactSum.of, (a, b, c))
    assert one + (two + three) == (three + one) + two == ExactSum.of(a + b + c)
    assert ExactSum.of(a) + ExactSum() == ExactSum.of(a)


def test_where_floats_forget():
    values = np.array([1e100, 1.0, -1e100, 5e-324])
    assert float(ExactSum.of(values[:3])) == 1.0
    assert ExactSum.of(values).fraction == 1 + Fraction(5e-324)
    assert ExactSum.of_squares([1e200, 1.0]).fraction == Fraction(1e200) ** 2 + 1  # beyond the largest float


def test_more_terms_than_a_chunk(monkeypatch):
    values = np.random.default_rng(0).normal(size=1000)
    whole = ExactSum.of(values), ExactSum.of_squares(values)
    monkeypatch.setattr(exact_sum, "_CHUNK", 7)
    assert (ExactSum.of(values), ExactSum.of_squares(values)) == whole


def test_what_is_not_finite_is_named():
    with pytest.raises(InputError, match="position 1 is inf"):
        ExactSum.of([0.0, np.inf])
