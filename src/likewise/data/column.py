"""What a domain knows about one column of a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from likewise.core.checks import FloatArray, check_number, python_scalar
from likewise.core.errors import FormatError, InputError, bad_parameter, did_you_mean
from likewise.core.files import read_toml
from likewise.core.frames import check_columns, to_pandas
from likewise.core.text import distinct_names
from likewise.data.curve import SCALES, Curve, ScaleName

# What a column is stored as, in words that survive JSON and lead back to the very same dtype.


Scalar = str | bool | int | float


@dataclass(frozen=True)
class Dtype:
    """Description of the dtype of one column in its own library."""

    name: str
    levels: tuple[Scalar, ...] | None = None
    ordered: bool = False
    inner: Dtype | None = None
    storage: str | None = None
    nullable: bool = True

    def __str__(self) -> str:
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain JSON, defaults left out."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        if self.inner is not None:
            said["inner"] = self.inner.to_dict()
        return said | ({} if self.levels is None else {"levels": list(self.levels)})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Dtype:
        """Read what `to_dict` wrote."""
        said = {f.name: values[f.name] for f in fields(cls) if f.name in values}
        if said.get("levels") is not None:
            said["levels"] = tuple(said["levels"])
        if said.get("inner") is not None:
            said["inner"] = cls.from_dict(said["inner"])
        return cls(**said)


def library_of(table: Any) -> str:
    """Name of the library that a table comes from."""
    return str(nw.from_native(table, eager_only=True).implementation.value)


def describe_schema(table: Any) -> dict[str, Dtype]:
    """Describe every column of a pandas, polars or arrow table; of another library by pandas' names."""
    library = library_of(table)
    if library == "polars":
        return {name: _describe_polars(dtype) for name, dtype in table.schema.items()}
    if library == "pyarrow":
        return {field.name: _describe_arrow(field.type, field.nullable) for field in table.schema}
    frame = table if library == "pandas" else nw.from_native(table, eager_only=True).to_pandas()
    return {str(name): _describe_pandas(dtype) for name, dtype in frame.dtypes.items()}


def _describe_pandas(dtype: Any) -> Dtype:
    if isinstance(dtype, pd.CategoricalDtype):
        levels = tuple(python_scalar(value) for value in dtype.categories)
        inner = _describe_pandas(dtype.categories.dtype)
        return Dtype("category", levels=levels, ordered=bool(dtype.ordered), inner=inner)
    if isinstance(dtype, pd.StringDtype):
        # Two string dtypes differ only in what a missing value is: NaN ("str") or NA ("string").
        return Dtype("string" if dtype.na_value is pd.NA else "str", storage=dtype.storage)
    if isinstance(dtype, pd.ArrowDtype):
        return Dtype("arrow", inner=_describe_arrow(dtype.pyarrow_dtype))
    return Dtype(str(dtype))


def _describe_polars(dtype: Any) -> Dtype:
    name = type(dtype).__name__
    if name == "Enum":
        return Dtype("Enum", levels=tuple(dtype.categories.to_list()), ordered=True)
    return Dtype(name)


def _describe_arrow(dtype: Any, nullable: bool = True) -> Dtype:
    if pa.types.is_dictionary(dtype):
        inner = _describe_arrow(dtype.value_type)
        index = str(dtype.index_type)
        return Dtype("dictionary", ordered=dtype.ordered, inner=inner, storage=index, nullable=nullable)
    return Dtype(str(dtype), nullable=nullable)


def pandas_dtype(dtype: Dtype) -> Any:
    """Return the pandas dtype that a description stands for."""
    if dtype.name == "category":
        inner = dtype.inner or Dtype("object")
        categories = pd.Index(list(dtype.levels or ()), dtype=pandas_dtype(inner))
        return pd.CategoricalDtype(categories, ordered=dtype.ordered)
    if dtype.name in ("str", "string") and dtype.storage is not None:
        missing: Any = np.nan if dtype.name == "str" else pd.NA
        return pd.StringDtype(dtype.storage, na_value=missing)
    if dtype.name == "arrow" and dtype.inner is not None:
        return pd.ArrowDtype(arrow_type(dtype.inner))
    try:
        return pd.api.types.pandas_dtype(dtype.name)
    except TypeError as error:
        raise FormatError(f"TabularDomain: no pandas dtype is called {dtype.name!r}.") from error


def arrow_type(dtype: Dtype) -> Any:
    """Return the arrow type that a description stands for."""
    if dtype.name == "dictionary" and dtype.inner is not None:
        index = pa.type_for_alias(dtype.storage or "int32")
        return pa.dictionary(index, arrow_type(dtype.inner), ordered=dtype.ordered)
    try:
        return pa.type_for_alias(dtype.name)
    except ValueError as error:
        raise FormatError(f"TabularDomain: no arrow type is called {dtype.name!r}.") from error


def polars_dtype(dtype: Dtype, polars: Any) -> Any:
    """Return the polars dtype that a description stands for; `polars` is the imported module."""
    if dtype.name == "Enum":
        return polars.Enum(list(dtype.levels or ()))
    try:
        return getattr(polars, dtype.name)()
    except AttributeError as error:
        raise FormatError(f"TabularDomain: no polars dtype is called {dtype.name!r}.") from error


Kind = Literal["continuous", "integer", "categorical"]


# Floating dtypes that hold less than double precision, as pandas, polars and arrow call them.
_NARROW: dict[str, Any] = {
    "float16": np.float16,
    "halffloat": np.float16,
    "float32": np.float32,
    "Float32": np.float32,
    "float": np.float32,
}


@dataclass(frozen=True)
class Column:
    """One column of the original table and its place in the encoding.

    Parameters
    ----------
    name : str
        Name in the original table.
    kind : {"continuous", "integer", "categorical"}
        What its values are.
    dtype : Dtype
        How the table stored it.
    lower, upper : float
        Least and greatest value that can exist, in original units. Of a categorical column: 0 and 1, the
        bounds of its indicator columns.
    categories : tuple
        Its categories in sorted order; empty for a numeric column.
    mean, scale : float
        The encoding of a number v is (curve(v) − mean) / scale; 0 and 1 for a categorical column.
    immutable : bool
        Whether a search may not change it.
    start, stop : int
        Its columns in the encoding are ``start`` to ``stop − 1``.
    decimals : int, optional
        `decode` rounds a value to so many decimals if it is within the rounding of the encoding of them:
        it undoes that rounding and leaves every other value alone.
    curve : Curve, optional
        The scale of a number if that is not linear.

    Examples
    --------
    >>> age = Column("age", "integer", Dtype("int64"), lower=17, upper=90, mean=40.0, scale=10.0)
    >>> age.unit, age.width
    (0.1, 1)
    """

    name: str
    kind: Kind
    dtype: Dtype
    lower: float = 0.0
    upper: float = 1.0
    categories: tuple[Scalar, ...] = ()
    mean: float = 0.0
    scale: float = 1.0
    immutable: bool = False
    start: int = 0
    stop: int = 1
    decimals: int | None = None
    curve: Curve | None = None

    @property
    def width(self) -> int:
        """Number of encoded columns: one, or one per category if there are three or more."""
        return self.stop - self.start

    @property
    def slice(self) -> slice:
        """Its columns in the encoding."""
        return slice(self.start, self.stop)

    @property
    def is_binary(self) -> bool:
        """Whether it is categorical with two categories, and so one 0/1 column."""
        return len(self.categories) == 2

    @property
    def unit(self) -> float | None:
        """Length of one whole unit in the encoding; None unless integer, and where it is not the same everywhere."""
        return 1.0 / self.scale if self.kind == "integer" and self.curve is None else None

    def place(self, values: Any) -> FloatArray:
        """Encode numbers in original units.

        Examples
        --------
        >>> gain = Column("gain", "integer", Dtype("int64"), scale=2.0, curve=Curve("signed log", unit=1.0))
        >>> gain.place([0.0, np.expm1(4.0)]).tolist()
        [0.0, 2.0]
        """
        found = np.asarray(values, dtype=np.float64) if self.curve is None else self.curve(values)
        return np.asarray((found - self.mean) / self.scale)

    def number(self, places: Any) -> FloatArray:
        """Return encoded numbers in original units, whole or not, within the range or not."""
        found = np.asarray(places, dtype=np.float64) * self.scale + self.mean
        return found if self.curve is None else self.curve.inverse(found)

    def stored(self, values: Any) -> FloatArray:
        """Return numbers in original units as the column's dtype holds them."""
        kept = self.dtype if self.dtype.name != "arrow" or self.dtype.inner is None else self.dtype.inner
        narrow = _NARROW.get(kept.name)
        found = np.asarray(values, dtype=np.float64)
        return found if narrow is None else found.astype(narrow).astype(np.float64)

    def whole_number(self, places: Any) -> FloatArray:
        """Return the whole numbers, in original units, that are encoded nearest to these places.

        Examples
        --------
        >>> gain = Column("gain", "integer", Dtype("int64"), curve=Curve("signed log", unit=1.0))
        >>> gain.whole_number(gain.place([0.45, 7.0])).tolist()
        [1.0, 7.0]
        """
        values = self.number(places)
        if self.curve is None:
            return np.rint(values)
        below, above = np.floor(values), np.floor(values) + 1.0
        places = np.asarray(places, dtype=np.float64)
        return np.where(places - self.place(below) <= self.place(above) - places, below, above)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain JSON; an infinite bound is written as null."""
        out: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype.to_dict(),
            "immutable": self.immutable,
            "start": self.start,
            "stop": self.stop,
        }
        if self.kind == "categorical":
            return out | {"categories": list(self.categories)}
        ends = {"lower": self.lower, "upper": self.upper}
        bounds = {side: value if np.isfinite(value) else None for side, value in ends.items()}
        numbers = {"mean": self.mean, "scale": self.scale, "decimals": self.decimals}
        return out | bounds | numbers | ({} if self.curve is None else {"curve": self.curve.to_dict()})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Column:
        """Read what `to_dict` wrote."""
        fields = {**values, "dtype": Dtype.from_dict(values["dtype"])}
        if values["kind"] == "categorical":
            return cls(**fields | {"categories": tuple(values["categories"])})
        lower, upper = values["lower"], values["upper"]
        fields["lower"] = -np.inf if lower is None else lower
        fields["upper"] = np.inf if upper is None else upper
        if values.get("curve") is not None:
            fields["curve"] = Curve.from_dict(values["curve"])
        return cls(**fields)


def encoded_names(columns: Sequence[Column], rename: Mapping[str, str] | None = None) -> list[str]:
    """Names of the encoded columns: ``age``; ``sex_Male`` for two categories; ``job_Sales``, … for more."""
    names: list[str] = []
    for column in columns:
        name = (rename or {}).get(column.name, column.name)
        if column.kind != "categorical":
            names.append(name)
        else:
            shown = column.categories[1:] if column.is_binary else column.categories
            names += [f"{name}_{category}" for category in shown]
    return distinct_names(names, "{}#{}")


# What the user says about columns beyond what the data shows, checked against the frame.


@dataclass(frozen=True)
class Choices:
    """The user's word on columns, every name known to exist."""

    immutable: frozenset[str]
    integers: frozenset[str]
    ranges: dict[str, tuple[float, float]]
    categories: dict[str, tuple[Any, ...]]
    scales: dict[str, ScaleName | Curve]


def check_choices(
    frame: pd.DataFrame,
    *,
    immutable: Iterable[str] | None,
    ranges: Mapping[str, Any] | None,
    integers: Iterable[str] | None,
    categories: Mapping[str, Any] | None,
    scales: Mapping[str, Any] | None = None,
    owner: str,
) -> Choices:
    """Check the parameters of a `TabularDomain` against the frame it is fitted on."""
    names = {
        "immutable": _names(immutable, frame, owner=owner, parameter="immutable"),
        "integers": _names(integers, frame, owner=owner, parameter="integers"),
    }
    for parameter, mapping in (("ranges", ranges), ("categories", categories), ("scales", scales)):
        if mapping is not None and not isinstance(mapping, Mapping):
            raise bad_parameter(owner, parameter, "a dict from column names", mapping, "Or leave it out.")
        check_columns(frame, mapping or {}, owner=f"{owner}, {parameter!r}")
    both = sorted(set(categories or {}) & (names["integers"] | set(ranges or {}) | set(scales or {})))
    if both:
        raise InputError(
            f"{owner}: column {both[0]!r} is named in 'categories' and also in 'integers', 'ranges' or 'scales'. "
            "A column is either numeric or categorical: name it in one of them."
        )
    return Choices(
        immutable=names["immutable"],
        integers=names["integers"],
        ranges={name: _range(name, pair, owner=owner) for name, pair in (ranges or {}).items()},
        categories={name: _listed(name, given, owner=owner) for name, given in (categories or {}).items()},
        scales={
            name: check_scale(said, f"scales[{name!r}]", owner=owner) for name, said in (scales or {}).items()
        },
    )


def check_scale(said: Any, parameter: str, *, owner: str) -> ScaleName | Curve:
    """Return the name of a scale, or the curve of one as it is, or raise an error that names the known ones."""
    if isinstance(said, Curve):
        return said
    if isinstance(said, str) and said in SCALES:
        return next(scale for scale in SCALES if scale == said)
    close = [scale for scale in SCALES if isinstance(said, str) and said.lower() in scale] if said else []
    raise bad_parameter(
        owner,
        parameter,
        f"one of {', '.join(map(repr, SCALES))}",
        repr(said),
        f"Did you mean {close[0]!r}?" if close else "",
    )


def _names(given: Iterable[str] | None, frame: pd.DataFrame, *, owner: str, parameter: str) -> frozenset[str]:
    if given is None:
        return frozenset()
    if isinstance(given, str) or not isinstance(given, Iterable):
        remedy = f"Pass [{given!r}]." if isinstance(given, str) else ""
        raise bad_parameter(owner, parameter, "a list of column names", repr(given), remedy)
    names = list(given)
    check_columns(frame, names, owner=f"{owner}, {parameter!r}")
    return frozenset(names)


def _range(name: str, pair: Any, *, owner: str) -> tuple[float, float]:
    try:
        low, high = pair
    except (TypeError, ValueError) as error:
        raise bad_parameter(
            owner,
            f"ranges[{name!r}]",
            "a pair (lowest, highest)",
            pair,
            "Use None for an open end: (0, None).",
        ) from error
    ends = []
    for end, open_end in ((low, -np.inf), (high, np.inf)):
        is_open = end is None or end == open_end
        ends.append(open_end if is_open else check_number(end, owner=owner, name=f"ranges[{name!r}]"))
    if ends[0] > ends[1]:
        raise bad_parameter(owner, f"ranges[{name!r}]", "a pair (lowest, highest)", pair)
    return ends[0], ends[1]


def _listed(name: str, given: Any, *, owner: str) -> tuple[Any, ...]:
    if given is None:
        return ()
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise bad_parameter(
            owner, f"categories[{name!r}]", "a list of categories, or None for those the frame shows", given
        )
    return tuple(given)


# What the user says each column is, in a few words: a mapping, or a TOML file that `likewise inspect`
# writes.


PlanKind = Literal["number", "integer", "category", "left out", "target"]
# Kinds that are not features.
APART = ("left out", "target")
_SCALARS = (str, bool, int, float)


@dataclass(frozen=True)
class ColumnPlan:
    """How one column is to be read."""

    kind: PlanKind
    range: tuple[float | None, float | None] | None = None
    values: tuple[Any, ...] | None = None
    immutable: bool = False
    scale: ScaleName | Curve | None = None
    # Values that stand for a missing cell.
    empty: tuple[Any, ...] = ()
    # What a person can do about it, and at what cost: fields of `explaining.moves.Action`.
    action: Mapping[str, Any] | None = None


def read_plans(columns: Any, *, owner: str) -> dict[str, ColumnPlan]:
    """Read what the user says of columns."""
    source = f"{owner}: columns"
    if isinstance(columns, (str, os.PathLike)):
        path = Path(columns)
        source = f"{owner}: {path.name}"
        columns = read_toml(path, owner=owner, remedy="`likewise inspect TABLE` writes one.")
    if not isinstance(columns, Mapping):
        raise bad_parameter(owner, "columns", "a dict from column names, or the path of a TOML file", columns)
    return {str(name): _plan(said, f"{source}[{name!r}]") for name, said in columns.items()}


def _plan(said: Any, where: str) -> ColumnPlan:
    if isinstance(said, ColumnPlan):
        return said
    fields = {"kind": said} if isinstance(said, str) else said
    if not isinstance(fields, Mapping) or "kind" not in fields:
        raise InputError(f'{where} must say its kind: kind = "number", "integer", "category" or "left out".')
    acted = ("actionable", "direction", "step", "cost")
    known = ("kind", "range", "values", "immutable", "scale", "empty", *acted)
    for key in fields:
        if key not in known:
            hint = did_you_mean(key, known)
            raise InputError(f"{where} has an unknown key {str(key)!r}{hint}. Known: {', '.join(known)}.")
    kind: Any = fields["kind"]
    values, immutable = fields.get("values"), fields.get("immutable", False)
    if kind not in get_args(PlanKind):
        raise InputError(f"{where}: kind must be one of {', '.join(get_args(PlanKind))}, got {kind!r}.")
    if not isinstance(immutable, bool):
        raise InputError(f"{where}: immutable must be true or false, got {immutable!r}.")
    for key in ("values", "empty"):
        listed = fields.get(key, ())
        if not isinstance(listed, (list, tuple)) or not all(isinstance(v, _SCALARS) for v in listed):
            raise InputError(f"{where}: {key} must be a list of words or numbers, got {listed!r}.")
    if (values is not None and kind != "category") or (
        fields.get("range") is not None and kind == "category"
    ):
        raise InputError(f"{where}: 'values' are for categories, 'range' is for numbers and integers.")
    scale = fields.get("scale")
    if scale is not None:
        scale = check_scale(scale, "scale", owner=where)
        if kind not in ("number", "integer"):
            raise InputError(f"{where}: 'scale' is for numbers and integers, and this is {_article(kind)}.")
    values = None if values is None else tuple(values)
    extent = _range_of_fields(fields.get("range"), where)
    action = {key: fields[key] for key in acted if key in fields} or None
    return ColumnPlan(kind, extent, values, immutable, scale, tuple(fields.get("empty", ())), action)


def _range_of_fields(pair: Any, where: str) -> tuple[float | None, float | None] | None:
    if pair is None:
        return None
    # TOML knows no null: an open end is an infinite one.
    usable = isinstance(pair, (list, tuple)) and len(pair) == 2
    if not usable or not all(end is None or (isinstance(end, (int, float)) and end == end) for end in pair):
        raise InputError(
            f"{where}: range must be [lowest, highest], with -inf or inf for an open end, got {pair!r}."
        )
    return pair[0], pair[1]


def apply_plans(
    frame: Any, columns: Any, given: Mapping[str, Any], *, owner: str
) -> tuple[Any, dict[str, Any]]:
    """Return the features of a table and the parameters of a `TabularDomain` that columns were planned with."""
    plans = read_plans(columns, owner=owner)
    table = to_pandas(frame, owner=owner)
    check_columns(
        table, [name for name, plan in plans.items() if plan.kind not in APART], owner=f"{owner}, 'columns'"
    )
    apart = [name for name, plan in plans.items() if plan.kind in APART and name in table.columns]
    used = {name: plan for name, plan in plans.items() if plan.kind not in APART}
    for name, plan in used.items():
        if plan.kind != "category" and table[name].dtype.kind not in "iuf":
            raise InputError(
                f"{owner}: 'columns' says that {name!r} is {_article(plan.kind)}, but its dtype {table[name].dtype} "
                "holds no numbers. Convert it first, or call it a category."
            )
    floats = [name for name in used if table[name].dtype.kind == "f"]
    parameters = {
        "immutable": [*given["immutable"], *(n for n, p in used.items() if p.immutable)],
        "integers": [*(given["integers"] or ()), *(n for n in floats if used[n].kind == "integer")],
        "ranges": {n: p.range for n, p in used.items() if p.range is not None} | dict(given["ranges"] or {}),
        "categories": {n: p.values for n, p in used.items() if p.kind == "category"}
        | dict(given["categories"] or {}),
        "scales": {n: p.scale for n, p in used.items() if p.scale is not None}
        | dict(given.get("scales") or {}),
    }
    rest = nw.from_native(frame, eager_only=True).drop(apart).to_native() if apart else frame
    return rest, {name: value or None if name != "immutable" else value for name, value in parameters.items()}


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
