"""Checks of numeric input whose messages name the column and the row."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from likewise.core.errors import InputError, bad_parameter, no_rows
from likewise.core.frames import check_no_missing, is_frame, to_pandas

if TYPE_CHECKING:
    import torch

# One piece of maths on numpy arrays and torch tensors alike, without importing torch before it is used.


FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.floating[Any]]]
IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.integer[Any]]]
BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Array: TypeAlias = "FloatArray | torch.Tensor"


def is_tensor(x: object) -> bool:
    """Whether `x` is a torch tensor (False when torch was never imported: then nothing can be one)."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_torch_module(thing: object) -> bool:
    """Whether something is a torch module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


def namespace(x: object) -> ModuleType:
    """Return the module whose functions work on `x`: `torch` for a tensor, else `numpy`."""
    return sys.modules["torch"] if is_tensor(x) else np


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """Return `x` as a numpy array; a tensor is detached and brought to the CPU, bfloat16 becomes float32."""
    if is_tensor(x):
        x = x.detach().cpu()
        # numpy has no bfloat16; float32 holds each of its values.
        return np.asarray((x.float() if x.dtype == sys.modules["torch"].bfloat16 else x).numpy())
    return np.asarray(x)


def python_scalar(value: Any) -> Any:
    """Return a numpy scalar as Python's own, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def attribute_columns(values: Any, *, owner: str) -> pd.DataFrame:
    """Return what was passed as `sensitive_features` as a table, one column per attribute."""
    if is_frame(values):
        return to_pandas(values, owner=owner, name="sensitive_features").reset_index(drop=True)
    if isinstance(values, pd.Series):
        return values.to_frame(0 if values.name is None else values.name).reset_index(drop=True)
    if isinstance(values, Mapping):
        return pd.DataFrame({name: np.asarray(column) for name, column in values.items()})
    array = to_numpy(values) if is_tensor(values) else np.asarray(values)
    if array.dtype.kind == "c":
        raise bad_parameter(owner, "y", "real", "complex values", "Complex data not supported.")
    if array.ndim not in (1, 2):
        raise bad_parameter(owner, "sensitive_features", "one column per attribute", f"shape {array.shape}")
    return pd.DataFrame(array if array.ndim == 2 else array[:, None])


def take_rows(values: Any, rows: Any) -> Any:
    """Return some rows of whatever holds one entry per row: an array, a Series, a frame, a dict of columns, or None."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: take_rows(column, rows) for name, column in values.items()}
    if is_frame(values):
        values = to_pandas(values, owner="fit", name="sensitive_features")
    if isinstance(values, (pd.DataFrame, pd.Series)):
        return values.iloc[rows].reset_index(drop=True)
    return (to_numpy(values) if is_tensor(values) else np.asarray(values))[rows]


def by_type(value: object) -> tuple[str, str]:
    """Order values of any types: by type, and then by text."""
    return str(type(value)), str(value)


def sorted_values(values: Iterable[Any]) -> list[Any]:
    """Return values in order; those of several types, which have no order of their own, by type and text."""
    found = list(values)
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=by_type)


def like(values: Any, reference: Any) -> Any:
    """Return `values` as the kind of array `reference` is: same library, floating dtype and device."""
    if is_tensor(reference):
        torch = sys.modules["torch"]
        dtype = reference.dtype if reference.dtype.is_floating_point else torch.get_default_dtype()
        if is_tensor(values):
            return values.to(dtype=dtype, device=reference.device)
        array = np.asarray(values)
        # torch warns of memory that may not be written to, which is what pandas hands out.
        array = array if array.flags.writeable else array.copy()
        return torch.as_tensor(array, dtype=dtype, device=reference.device)
    dtype = getattr(reference, "dtype", np.dtype(float))
    dtype = dtype if np.issubdtype(dtype, np.floating) else np.dtype(float)
    return to_numpy(values).astype(dtype, copy=False)


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a data frame; None for an array or a tensor."""
    return list(to_pandas(X, owner="column_names").columns) if is_frame(X) else None


def check_matrix(
    X: Any, *, owner: str, name: str = "X", n_features: int | None = None, missing: bool = False
) -> Any:
    """Return X as a two-dimensional floating array or tensor with at least one row; finite but for NaN if `missing`."""
    names: list[str] | None = None
    if is_frame(X):
        frame = to_pandas(X, owner=owner, name=name)
        names = list(frame.columns)
        text = [str(c) for c in names if frame[c].dtype.kind not in "biuf"]
        if text:
            raise InputError(
                f"{owner}: {name!r} has columns that are not numeric: {', '.join(text[:8])}. "
                "Encode them first, for example with TabularDomain.from_frame(frame).encode(frame)."
            )
        if not missing:
            check_no_missing(frame, owner=owner, name=name)
        X = frame.to_numpy(dtype=float, na_value=np.nan) if missing else frame.to_numpy()
    if not is_tensor(X):
        try:
            X = np.asarray(X)
            X = X if X.dtype.kind == "f" else X.astype(float)
        except (TypeError, ValueError) as error:
            raise bad_parameter(
                owner, name, "a numeric matrix", str(error), "Encode categories first."
            ) from error
    X = like(X, X)
    if X.ndim != 2:
        raise bad_parameter(
            owner,
            name,
            "two-dimensional (rows × columns)",
            f"an array of shape {tuple(X.shape)}",
            "Reshape one row with X.reshape(1, -1).",
        )
    if X.shape[0] == 0:
        raise no_rows(owner, name)
    if n_features is not None and X.shape[1] != n_features:
        raise InputError(
            f"{owner}: {name!r} has {X.shape[1]} columns, expected {n_features}. "
            "Pass the columns that the other objects were made on, in the same order."
        )
    # A finite sum says that all values are finite, in a fifth of the time of asking each.
    finite_sum = is_tensor(X) and bool(X.sum().isfinite())
    if not finite_sum and not bool(namespace(X).isfinite(X).all()):
        wrong = np.isinf(to_numpy(X)) if missing else ~np.isfinite(to_numpy(X))
        bad = np.argwhere(wrong)
        if not len(bad):
            return X
        row, column = bad[0]
        where = f"column {names[column]!r}" if names else f"column {column}"
        raise InputError(
            f"{owner}: {name!r} has {len(bad)} value(s) that are not finite, first at row {row}, {where}. "
            "Drop or impute them."
        )
    return X


def check_labels(
    y: Any, *, owner: str, name: str = "y", min_classes: int = 2, gaps: bool = False
) -> np.ndarray[Any, Any]:
    """Return y as a one-dimensional array with at least `min_classes` classes, and without missing values unless `gaps`."""
    labels = to_numpy(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        got = repr(y) if isinstance(y, str) else f"shape {labels.shape}"
        remedy = f"Pass the column itself, X[{y!r}]." if isinstance(y, str) else ""
        raise bad_parameter(owner, name, "one label per row", got, remedy)
    missing = np.asarray(pd.isna(labels), dtype=bool)
    if missing.any() and not gaps:
        raise InputError(
            f"{owner}: {name!r} has {int(missing.sum())} missing label(s), first at row {int(missing.argmax())}. "
            "Drop those rows."
        )
    if len(labels) == 0:
        raise InputError(f"{owner}: {name!r} is empty. Pass at least one label.")
    try:
        classes = np.unique(labels[~missing])
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels[~missing]})
        raise bad_parameter(
            owner,
            name,
            "labels of one type",
            f"a mix of {' and '.join(kinds)}",
            "Convert them first, for example with y.astype(str).",
        ) from error
    if 0 < len(classes) < min_classes:
        raise InputError(
            f"{owner}: {name!r} has one class only ({classes[0]}). "
            "Two or more are needed; check how the target was cut."
        )
    return labels


def check_same_length(owner: str, **arrays: Any) -> int:
    """Check that everything has the same number of rows, and return it."""
    lengths = {key: len(value) for key, value in arrays.items() if value is not None}
    if len(set(lengths.values())) > 1:
        parts = [f"{key} has {n}" for key, n in lengths.items()]
        parts[0] += " rows"
        raise InputError(f"{owner}: lengths differ: {', '.join(parts)}. Pass one entry per row in each.")
    return next(iter(lengths.values()))


def check_number(
    value: Any,
    *,
    owner: str,
    name: str,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return a finite number within bounds, or raise an error that names them; neither a truth value nor a text is one."""
    words = []
    if low > -np.inf:
        words.append(f"{'>' if open_low else '>='} {low:g}")
    if high < np.inf:
        words.append(f"{'<' if open_high else '<='} {high:g}")
    allowed = "a finite number" + (" " + " and ".join(words) if words else "")
    if isinstance(value, (bool, np.bool_, str)):
        raise bad_parameter(owner, name, allowed, value)
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise bad_parameter(owner, name, allowed, value) from error
    low_ok = number > low if open_low else number >= low
    high_ok = number < high if open_high else number <= high
    if not (np.isfinite(number) and low_ok and high_ok):
        raise bad_parameter(owner, name, allowed, value)
    return number


def check_share(value: Any, *, owner: str, name: str) -> float:
    """Return a number between 0 and 1, the ends excluded, or raise an error that says so."""
    return check_number(value, owner=owner, name=name, low=0, high=1, open_low=True, open_high=True)


def check_choice(value: Any, choices: Iterable[Any], *, owner: str, name: str, besides: str = "") -> None:
    """Raise an error that lists the choices unless the value is one of them."""
    known = list(choices)
    if not (value is None or isinstance(value, Hashable)) or value not in known:
        allowed = f"one of {', '.join(map(repr, known))}" + (f", or {besides}" if besides else "")
        raise bad_parameter(owner, name, allowed, repr(value))


def is_whole(value: object) -> bool:
    """Whether a value is a whole number of Python or numpy; True and 2.0 are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_integer(
    value: Any, *, owner: str, name: str, low: int | None = None, besides: str = "", remedy: str = ""
) -> int:
    """Return a whole number that is at least `low`, or raise an error that says so; True and 2.0 are not whole numbers."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (low is not None and number < low):
        allowed = (
            "a whole number" + ("" if low is None else f" >= {low}") + (f", or {besides}" if besides else "")
        )
        raise bad_parameter(owner, name, allowed, value, remedy)
    return number


# Parameters that mean the same in every verb.


def check_parameters(verb: Callable[..., Any], given: Mapping[str, Any], *, owner: str = "") -> None:
    """Check what a verb was given for the parameters below; None is right where it is the default."""
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in _PARAMETERS and not (given[name] is None and parameter.default is None):
            _PARAMETERS[name](given[name], owner=owner or verb.__name__, name=name)


def _check(allowed: str, right: Callable[[Any], bool]) -> Callable[..., None]:
    def check(value: Any, *, owner: str, name: str) -> None:
        if not right(value):
            shown = (
                repr(value)
                if isinstance(value, (str, int, float, tuple, list))
                else f"a {type(value).__name__}"
            )
            raise bad_parameter(owner, name, allowed, shown)

    return check


def _check_budget(value: Any, **names: Any) -> None:
    if not isinstance(value, Mapping):  # in units of the table, which the metric turns into a number
        check_number(value, low=0, **names)


def _check_people(value: Any, *, owner: str, name: str) -> None:
    if hasattr(value, "__len__") and not isinstance(value, (str, PurePath)) and not len(value):
        raise InputError(f"{owner}: {name!r} has no rows. Pass a table with people in it.")


_PARAMETERS: Mapping[str, Callable[..., Any]] = {
    "X": _check_people,
    "eps": _check_budget,
    **dict.fromkeys(("delta", "tau", "tolerance"), partial(check_number, low=0)),
    "limit": partial(check_number, low=0, high=1),
    **dict.fromkeys(("confidence", "test_share"), check_share),
    "budget_seconds": partial(check_number, low=0, open_low=True),
    **dict.fromkeys(("random_state", "alternatives", "n_jobs"), partial(check_integer, low=0)),
    **dict.fromkeys(("max_regions", "sample"), partial(check_integer, low=1)),
    "missing": partial(check_choice, choices=("auto", "keep", "drop", "category", "impute")),
    "encoded": _check("True, False or None", lambda value: isinstance(value, (bool, np.bool_))),
    "domain": _check(
        "a domain, such as TabularDomain.from_frame(X)", lambda value: hasattr(value, "nearest_valid")
    ),
    "search": _check(
        "'auto', another search, or a list of one or more",
        lambda value: not hasattr(value, "__len__") or len(value) > 0,
    ),
    "progress": _check("True, False or a function", lambda value: isinstance(value, bool) or callable(value)),
}
