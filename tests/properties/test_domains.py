"""Domains of generated tables."""

import json

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from pandas.testing import assert_frame_equal

from likewise.data import TabularDomain

NAMES = st.text("abcdef_# é", min_size=1, max_size=4)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def integer_columns(n):
    dtypes = st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint32", "Int8", "Int64"])

    def values(dtype):
        low, high = max(np.iinfo(dtype.lower()).min, -(2**48)), min(np.iinfo(dtype.lower()).max, 2**48)
        return st.lists(st.integers(low, high), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype=dtype)
        )

    return dtypes.flatmap(values)


def decimal_columns(n):
    """Floats as people write them: up to 12 significant digits."""
    whole = st.lists(st.integers(-(10**12), 10**12), min_size=n, max_size=n)
    return st.builds(lambda v, d: pd.Series(np.array(v) / 10.0**d), whole, st.integers(0, 8))


def narrow_columns(n):
    values = st.floats(-1000, 1000, width=32).filter(lambda v: v == 0 or abs(v) > 1e-2)
    return st.lists(values, min_size=n, max_size=n).map(lambda v: pd.Series(v, dtype="float32"))


def category_columns(n):
    words = st.lists(st.text(max_size=4), min_size=n, max_size=n)
    return st.one_of(
        words.map(lambda v: pd.Series(v, dtype="str")),
        words.map(lambda v: pd.Series(v, dtype=object)),
        words.map(lambda v: pd.Series(v, dtype="category")),
        words.map(lambda v: pd.Series(v, dtype="string")),
        st.lists(st.booleans(), min_size=n, max_size=n).map(pd.Series),
        st.lists(st.booleans(), min_size=n, max_size=n).map(lambda v: pd.Series(v, dtype="boolean")),
        st.lists(st.integers(-3, 3), min_size=n, max_size=n).map(lambda v: pd.Series(v, dtype="category")),
        st.lists(st.one_of(st.integers(2, 4), st.text("12", max_size=1)), min_size=n, max_size=n).map(
            lambda v: pd.Series(v, dtype=object)
        ),
    )


@st.composite
def tables(draw):
    n = draw(st.integers(1, 8))
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    column = st.one_of(integer_columns(n), decimal_columns(n), narrow_columns(n), category_columns(n))
    return pd.DataFrame({name: draw(column) for name in names})


@st.composite
def fitted_with_rows(draw):
    frame = draw(tables())
    immutable = draw(st.lists(st.sampled_from(list(frame.columns)), unique=True))
    domain = TabularDomain.from_frame(frame, immutable=immutable)
    n = draw(st.integers(1, 6))
    X = draw(arrays(float, (n, domain.n_features), elements=st.floats(-5, 5)))
    origin = domain.encode_array(frame)[draw(arrays(int, n, elements=st.integers(0, len(frame) - 1)))]
    return domain, X, origin


@QUICK
@given(tables())
def test_decode_undoes_encode(frame):
    domain = TabularDomain.from_frame(frame)
    encoded = domain.encode(frame)
    assert encoded.columns.is_unique
    assert np.isfinite(encoded.to_numpy()).all()
    assert_frame_equal(domain.decode(encoded), frame, check_exact=True)
    assert domain.validate(frame) == ()
    assert domain.validate(encoded.to_numpy()) == ()


@QUICK
@given(tables())
def test_a_description_is_the_domain(frame):
    domain = TabularDomain.from_frame(frame)
    again = TabularDomain.from_dict(json.loads(json.dumps(domain.to_dict(), allow_nan=False)))
    assert again.columns_ == domain.columns_
    assert_frame_equal(again.encode(frame), domain.encode(frame), check_exact=True)
    assert_frame_equal(again.decode(domain.encode(frame)), frame, check_exact=True)


@QUICK
@given(st.lists(st.floats(-1e150, 1e150).filter(lambda v: v == 0 or abs(v) > 1e-150), min_size=1, max_size=8))
def test_any_floats_come_back_to_within_rounding(values):
    frame = pd.DataFrame({"x": values})
    domain = TabularDomain.from_frame(frame)
    decoded = domain.decode(domain.encode(frame))["x"].to_numpy()
    np.testing.assert_allclose(decoded, values, rtol=0, atol=8 * np.finfo(float).eps * np.abs(values).max())


@QUICK
@given(fitted_with_rows())
def test_nearest_valid_rows_are_valid(case):
    domain, X, origin = case
    for anchor in (None, origin):
        valid = domain.nearest_valid(X, anchor)
        assert domain.validate(valid, anchor) == ()
        assert domain.contains(valid, anchor).all()
        frame = domain.decode(valid)
        assert domain.validate(frame, None if anchor is None else domain.decode(anchor)) == ()
    assert_frame_equal(domain.decode(domain.nearest_valid(X)), domain.decode(X))


@QUICK
@given(fitted_with_rows())
def test_projection_lands_in_the_set_stays_and_is_nearest(case):
    domain, X, origin = case
    for anchor in (None, origin):
        projected = domain.project(X, anchor)
        assert domain.contains(projected, anchor).all()
        np.testing.assert_allclose(domain.project(projected, anchor), projected, atol=1e-12)
    # A projection is characterised by (x − Px)·(z − Px) ≤ 0 for every z of the set.
    projected = domain.project(X)
    for member in (origin, domain.nearest_valid(X), 0.5 * (origin + projected)):
        assert ((X - projected) * (member - projected)).sum(axis=1).max() <= 1e-9
