"""Descriptions of a frame's columns: kind, range, categories, standardisation, place in the encoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, python_scalar
from likewise.core.errors import InputError
from likewise.data.column import Choices, Column, Dtype, Kind
from likewise.data.curve import learn_curve
from likewise.data.encoding import build_table, category_codes, check_numbers, factorized

# A standardised float64 leads back to the exact whole number (or short decimal) up to here: encoding and
# decoding round four times, each by at most 2⁻⁵³ of twice the largest value.
LARGEST_EXACT = 2.0**48
# The same on a logarithm or by rank, where a rounding of the encoding is the larger the further out a number lies.
LARGEST_EXACT_CURVED = 2.0**40


def describe_columns(
    frame: pd.DataFrame, dtypes: Mapping[str, Dtype], choices: Choices, *, library: str, owner: str
) -> tuple[Column, ...]:
    """Describe every column, numeric ones first, then categorical ones, each in the frame's order."""
    kinds = {name: _kind(frame[name], choices, owner=owner) for name in frame.columns}
    ordered = sorted(frame.columns, key=lambda name: kinds[name] == "categorical")
    columns, start = [], 0
    for name in ordered:
        if kinds[name] == "categorical":
            column = _categorical(frame[name], dtypes[name], choices, library=library, owner=owner)
            width = 1 if column.is_binary else len(column.categories)
        else:
            column = _numeric(frame[name], dtypes[name], kinds[name], choices, owner=owner)
            width = 1
        columns.append(replace(column, immutable=name in choices.immutable, start=start, stop=start + width))
        start += width
    return tuple(columns)


def _kind(series: pd.Series[Any], choices: Choices, *, owner: str) -> Kind:
    name, dtype = str(series.name), series.dtype
    if name in choices.categories:
        return "categorical"
    sparse = isinstance(dtype, pd.SparseDtype)
    if dtype.kind in "mMcV" or sparse or (dtype.kind == "f" and getattr(dtype, "itemsize", 8) > 8):
        remedy = "frame[c].sparse.to_dense()" if sparse else "a number such as an age in days, or a string"
        raise InputError(
            f"{owner}: column {name!r} has dtype {dtype}, which is neither a number nor a category. "
            f"Convert it to {remedy}, or drop it."
        )
    if isinstance(dtype, pd.CategoricalDtype) or dtype.kind not in "iuf":
        named = {"integers": choices.integers, "ranges": choices.ranges, "scales": choices.scales}
        if parameter := next((parameter for parameter, names in named.items() if name in names), None):
            raise InputError(
                f"{owner}: column {name!r} is named in {parameter!r}, but its dtype {dtype} is categorical. "
                f"Convert it to numbers first, or take it out of {parameter!r}."
            )
        return "categorical"
    return "integer" if dtype.kind in "iu" or name in choices.integers else "continuous"


# ---------------------------------------------------------------------------------------------- numbers


def _numeric(series: pd.Series[Any], dtype: Dtype, kind: Kind, choices: Choices, *, owner: str) -> Column:
    values = check_numbers(series, owner=owner)
    name = str(series.name)
    curve = learn_curve(choices.scales.get(name, "linear"), values, whole=kind == "integer")
    largest = LARGEST_EXACT if curve is None else LARGEST_EXACT_CURVED
    if kind == "integer":
        _check_whole(values, name, largest, owner=owner)
    low, high = float(values.min()), float(values.max())
    if low == high:
        mean, scale = low, 1.0
    elif curve is not None and curve.name == "value or not":
        # Like an indicator it is 0 or 1 away from the commonest value, whatever the share of that.
        mean, scale = 0.0, 1.0
    else:
        mean, scale = _mean_and_scale(values if curve is None else curve(values))
    lower, upper = choices.ranges.get(name, (low, high))
    lower, upper = _representable(lower, upper, series.dtype, name, kind=kind, largest=largest, owner=owner)
    decimals = _decimals(values, largest) if kind == "continuous" else None
    column = Column(
        name=name,
        kind=kind,
        dtype=dtype,
        lower=lower,
        upper=upper,
        mean=mean,
        scale=scale,
        decimals=decimals,
        curve=curve,
    )
    with np.errstate(over="ignore"):
        ends = column.place([low, high])
    if not np.isfinite([mean, scale, *ends]).all():
        raise InputError(
            f"{owner}: column {name!r} runs from {low:g} to {high:g}, too far to standardise. Rescale it."
        )
    _check_distinguishable(column, values, owner=owner)
    return column


def _check_distinguishable(column: Column, values: FloatArray, *, owner: str) -> None:
    """Raise if neighbouring whole numbers of the range would be one number on the column's scale."""
    if column.curve is None or column.kind != "integer":
        return
    ends = [end for end in (column.lower, column.upper - 1.0) if np.isfinite(end)]
    # Where the curve is flattest: at an end, or between two values of the table.
    probes = np.concatenate([ends, np.floor(column.curve.at) if column.curve.unit is None else [], values])
    probes = np.unique(probes[(probes >= column.lower) & (probes < column.upper)])
    steps = column.place(probes + 1.0) - column.place(probes)
    sizes = np.abs(column.place(probes)) + abs(column.mean) / column.scale
    if (steps < 64.0 * np.finfo(float).eps * (1.0 + sizes)).any():
        raise InputError(
            f"{owner}: the scale {column.curve.name!r} of column {column.name!r} would blur its whole numbers: its range "
            f"{column.lower:g} to {column.upper:g} is too wide. Narrow it in 'ranges', or leave the scale linear."
        )


def _check_whole(values: FloatArray, name: str, largest: float, *, owner: str) -> None:
    broken = values != np.rint(values)
    if broken.any():
        row = int(broken.argmax())
        raise InputError(
            f"{owner}: column {name!r} is named in 'integers', but holds {values[row]:g} at row {row}. "
            "Take it out of 'integers' or round it first."
        )
    if np.abs(values).max() > largest:
        row = int(np.abs(values).argmax())
        raise InputError(
            f"{owner}: column {name!r} holds whole numbers beyond ±2**{np.log2(largest):.0f}, such as {values[row]:.0f} at row "
            f"{row}, that standardising would blur. Drop it if it is an identifier, subtract an offset, "
            f"or make it categorical: categories={{{name!r}: None}}."
        )


def _mean_and_scale(values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation (ddof=0) that neither overflow nor underflow."""
    largest = float(np.abs(values).max())
    # A power of two divides without rounding.
    unit = 1.0 if 1e-100 < largest < 1e100 else 2.0 ** float(np.floor(np.log2(largest)))
    mean, scale = float((values / unit).mean()) * unit, float((values / unit).std()) * unit
    return mean, scale if scale > 0 else 1.0


def _decimals(values: FloatArray, exact: float = LARGEST_EXACT) -> int | None:
    """Decimals to which a decoded value within rounding of them was most likely written.

    The fewest that write every value exactly; if there are none, as many as leave the rounding of
    the encoding a thousand times smaller than their grid, so that other values are hardly ever touched.
    """
    largest = float(np.abs(values).max())
    for decimals in range(16):
        if largest * 10.0**decimals >= exact:
            break
        # A few values refute most candidates before all of them are looked at.
        if all(np.array_equal(np.round(part, decimals), part) for part in (values[:256], values)):
            return decimals
    if exact < LARGEST_EXACT:
        return None
    coarse = int(np.floor(-np.log10(16_000 * np.finfo(float).eps) - np.log10(largest)))
    return coarse if coarse <= 22 else None


def _representable(
    lower: float, upper: float, dtype: Any, name: str, *, kind: Kind, largest: float, owner: str
) -> tuple[float, float]:
    """Bounds moved inward to values that the column's dtype can hold, so that a decoded row keeps them."""
    wanted = (lower, upper)
    if kind == "integer":
        lower, upper = float(np.ceil(lower)), float(np.floor(upper))
    if dtype.kind in "iu":
        info = np.iinfo(f"{dtype.kind}{_itemsize(dtype)}")
        least, most = max(float(info.min), -largest), min(float(info.max), largest)
        if (np.isfinite(lower) and lower < least) or (np.isfinite(upper) and upper > most):
            raise InputError(
                f"{owner}: 'ranges' gives {name!r} the range {wanted}, but its dtype {dtype} holds "
                f"{least:.0f} to {most:.0f}. Narrow the range or widen the dtype."
            )
        lower, upper = max(lower, least), min(upper, most)
    elif _itemsize(dtype) < 8:
        narrow = np.dtype(f"f{_itemsize(dtype)}").type
        with np.errstate(over="ignore"):
            inward = narrow(lower), narrow(upper)
        lower = float(inward[0] if inward[0] >= lower else np.nextafter(inward[0], narrow(np.inf)))
        upper = float(inward[1] if inward[1] <= upper else np.nextafter(inward[1], narrow(-np.inf)))
    if lower > upper:
        raise InputError(
            f"{owner}: 'ranges' gives {name!r} the range {wanted}, in which no value of the column can lie. "
            "Widen it."
        )
    return lower, upper


def _itemsize(dtype: Any) -> int:
    """Bytes of one value, for numpy, nullable and arrow dtypes alike."""
    numpy_dtype = getattr(dtype, "numpy_dtype", dtype)
    return int(numpy_dtype.itemsize)


# ------------------------------------------------------------------------------------------- categories


def _categorical(
    series: pd.Series[Any], dtype: Dtype, choices: Choices, *, library: str, owner: str
) -> Column:
    name = str(series.name)
    declared = _declared(series, owner=owner)
    given = [python_scalar(value) for value in choices.categories.get(name, ())]
    values = list(dict.fromkeys([*declared, *given]))
    for value in values:
        usable = isinstance(value, (str, bool, int)) or (isinstance(value, float) and np.isfinite(value))
        if not usable:
            raise InputError(
                f"{owner}: column {name!r} has the category {value!r} of type {type(value).__name__}. "
                f"Categories are strings, numbers or booleans: convert it with frame[{name!r}].astype(str)."
            )
    categories = tuple(sorted(values, key=_sort_key))
    if dtype.levels is not None or dtype.name == "dictionary":
        # The dtype itself lists its categories; what the user declares besides is appended to them.
        levels = dict.fromkeys([*(dtype.levels or declared), *categories])
        dtype = replace(dtype, levels=tuple(levels))
    column = Column(name=name, kind="categorical", dtype=dtype, categories=categories)
    _check_storable(column, library, owner=owner)
    return column


def _declared(series: pd.Series[Any], *, owner: str) -> list[Any]:
    """Categories that the dtype declares (all of them can exist), or else those that occur."""
    if series.dtype.kind == "b":
        return [False, True]
    return [python_scalar(value) for value in factorized(series, owner=owner)[1]]


def _sort_key(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _check_storable(column: Column, library: str, *, owner: str) -> None:
    """Check that the dtype can hold every category, which a category declared by the user may break."""
    codes = np.arange(len(column.categories))
    try:
        table = build_table([column], {column.name: codes}, library)
        back = (
            pd.DataFrame(table) if library == "numpy" else nw.from_native(table, eager_only=True).to_pandas()
        )
        storable = bool((category_codes(back.iloc[:, 0], column.categories) == codes).all())
    except (TypeError, ValueError, OverflowError):
        storable = False
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("polars", "pyarrow"):
            raise
        storable = False
    if not storable:
        raise InputError(
            f"{owner}: a column {column.name!r} of dtype {column.dtype} cannot hold all of its categories "
            f"{list(column.categories)!r}. Check the values in 'categories', or convert the column first."
        )
