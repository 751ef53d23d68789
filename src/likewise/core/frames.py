"""Tables of any library, converted to pandas for use and back to the caller's library by narwhals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals.stable.v1 as nw
import pandas as pd

from likewise.core.errors import InputError, bad_parameter, did_you_mean, listed
from likewise.core.text import printable

# What an encoded table says of itself: in the attrs of a pandas frame, in the metadata of an arrow table.
_ENCODED = "likewise_encoded"


def csv_text(frame: pd.DataFrame, *, index: str | None = None) -> str:
    r"""Return a table as CSV for spreadsheets: printable, and no cell or name is run as a formula.

    Examples
    --------
    >>> csv_text(pd.DataFrame({"=sum": ["=1+1", "fine"], "n": [-1, 2]}))
    "'=sum,n\n'=1+1,-1\nfine,2\n"
    """
    whole = frame if index is None else frame.rename_axis(index).reset_index()
    safe = whole.map(_as_text) if len(whole) else whole
    safe = safe.set_axis([_as_text(str(name)) for name in whole.columns], axis=1)
    return printable(str(safe.to_csv(index=False, lineterminator="\n")), keep="\n\t")


# Text that begins so is run as a formula by spreadsheets; an apostrophe in front makes it text. Those of other countries end
# a cell at a semicolon, whatever stands in quotes, and then at the end of a line.
_FORMULA = re.compile(r"(^|[;|\t\n])(?=[=+\-@\t\r＝＋－＠])")


def _as_text(value: Any) -> Any:
    return _FORMULA.sub(r"\1'", value) if isinstance(value, str) else value


def is_frame(table: object) -> bool:
    """Whether `table` is a data frame that narwhals knows (pandas, polars, arrow, modin, …)."""
    return bool(nw.dependencies.is_into_dataframe(table))


def is_raw(frame: pd.DataFrame) -> bool:
    """Whether a frame has columns that are not numbers, so that it must be encoded first."""
    return any(getattr(dtype, "kind", "O") not in "biuf" for dtype in frame.dtypes)


def has_numbers(column: pd.Series[Any]) -> bool:
    """Whether a column holds numbers; truth values are not numbers."""
    dtype = column.dtype
    return bool(pd.api.types.is_numeric_dtype(dtype)) and not pd.api.types.is_bool_dtype(dtype)


def same_words(one: object, other: object) -> bool:
    """Whether two names differ only in signs that some library cannot write: ``hours_per_week``, ``hours per week``."""
    return plain_name(one) == plain_name(other)


def plain_name(name: object) -> str:
    """Return a name as libraries write it that take letters, digits and underscores only."""
    return re.sub(r"\W", "_", str(name))


def with_columns(frame: pd.DataFrame, new: Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame with some columns replaced or added; `DataFrame.assign` cannot take a column named ``self``."""
    changed = frame.copy(deep=False)
    for name, values in new.items():
        changed[name] = values
    return changed


def to_pandas(table: Any, *, owner: str, name: str = "frame", needed: Iterable[str] = ()) -> pd.DataFrame:
    """Return any eager table as a pandas frame with unique column names, as text, the needed ones among them."""
    if not is_frame(table):
        raise bad_parameter(
            owner,
            name,
            "a pandas, polars or arrow table with named columns",
            type(table).__name__,
            "Wrap an array as pandas.DataFrame(array, columns=[...]).",
        )
    frame: pd.DataFrame = (
        table if isinstance(table, pd.DataFrame) else nw.from_native(table, eager_only=True).to_pandas()
    )
    if frame is not table and declared_encoded(table):
        mark_encoded(frame)
    if not all(isinstance(column, str) for column in frame.columns):
        frame = frame.set_axis(pd.Index([str(column) for column in frame.columns]), axis=1)
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()].unique().tolist()
        raise InputError(f"{owner}: {name!r} has columns of the same name: {twice}. Rename them.")
    check_columns(frame, needed, owner=owner, name=name)
    return frame


def to_same_library(frame: pd.DataFrame, original: Any) -> Any:
    """Return a pandas frame as the library of `original`."""
    if isinstance(original, pd.DataFrame):
        return frame
    backend = nw.from_native(original, eager_only=True).implementation
    plain = frame.reset_index(drop=True)
    if backend is nw.Implementation.POLARS:
        return nw.from_native(plain, eager_only=True).to_polars()
    if backend is nw.Implementation.PYARROW:
        return nw.from_native(plain, eager_only=True).to_arrow()
    columns = {column: plain[column].to_list() for column in plain.columns}
    return nw.from_dict(columns, backend=backend).to_native()


def check_columns(frame: pd.DataFrame, columns: Iterable[str], *, owner: str, name: str = "frame") -> None:
    """Raise an error that names every column of `columns` that `frame` lacks, with the nearest existing name."""
    unknown = [column for column in columns if column not in frame.columns]
    if not unknown:
        return
    shown = ", ".join(
        f"{column!r}{_one_hot(column, frame) or did_you_mean(column, frame.columns)}" for column in unknown
    )
    raise InputError(
        f"{owner}: {name!r} has no column {shown}. Its columns: {listed(list(frame.columns), 30)}."
    )


def _one_hot(column: str, frame: pd.DataFrame) -> str:
    """Name the columns that hold one column's values, such as those of get_dummies."""
    found = [one for one in map(str, frame.columns) if re.match(rf"{re.escape(str(column))}[_=:. -].", one)]
    return f" (its values have columns of their own: name all of {listed(found)})" if len(found) > 1 else ""


def check_no_missing(frame: pd.DataFrame, *, owner: str, name: str = "frame") -> None:
    """Raise an error that counts missing values by column and points at the first row with one."""
    missing = frame.isna()
    if not missing.to_numpy().any():
        return
    counts = missing.sum()
    counts = counts[counts > 0]
    parts = [
        f"{column!r} ({count} of {len(frame)} rows, first at row {int(missing[column].to_numpy().argmax())})"
        for column, count in counts.items()
    ]
    more = f" and {len(parts) - 5} more columns" if len(parts) > 5 else ""
    raise InputError(
        f"{owner}: {name!r} has missing values: {', '.join(parts[:5])}{more}. "
        "Drop those rows or impute them first."
    )


def mark_encoded(table: Any) -> Any:
    """Return a table that declares its rows to be encoded, if its library has a place to say so.

    Nobody can tell from the names of its columns: a table of numbers has the same ones before and after. polars has
    no such place; its encoded frames pass for raw ones unless ``encoded=True`` is said at their use.
    """
    if isinstance(table, pd.DataFrame):
        table.attrs[_ENCODED] = True
        return table
    if hasattr(table, "replace_schema_metadata"):
        return table.replace_schema_metadata({**(table.schema.metadata or {}), _ENCODED: "yes"})
    return table


def declared_encoded(table: Any) -> bool:
    """Whether a table declares that its rows are encoded (see `mark_encoded`)."""
    if isinstance(table, pd.DataFrame):
        return bool(table.attrs.get(_ENCODED, False))
    metadata = getattr(getattr(table, "schema", None), "metadata", None)
    return metadata is not None and _ENCODED.encode() in metadata
