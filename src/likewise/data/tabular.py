"""The domain of a table of people: which rows can exist, their encoding, and the way back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from likewise.core.checks import FloatArray, check_matrix, python_scalar, to_numpy
from likewise.core.errors import FormatError, InputError
from likewise.core.files import Fields, ListOf, Maybe, OneOf, Whole, check_form, is_scalar
from likewise.core.frames import check_columns, check_no_missing, is_frame, mark_encoded, to_same_library
from likewise.data.column import Column, apply_plans, check_choices, encoded_names
from likewise.data.curve import Curve
from likewise.data.domain import Domain
from likewise.data.encoded_set import EncodedSet, as_rows
from likewise.data.encoding import Encoding
from likewise.data.inference import describe_columns
from likewise.data.rows import Violation, find_violations, find_violations_encoded, own_columns, read_table

# What the description of a fitted domain must look like before it is read.


# Libraries in which narwhals makes tables; lazy ones are not among them.
LIBRARIES = ("pandas", "polars", "pyarrow", "numpy", "modin", "cudf")
_DTYPE = Fields(
    {"name": str},
    {
        "levels": Maybe(ListOf(object)),
        "ordered": bool,
        "storage": Maybe(str),
        "nullable": bool,
        "inner": object,
    },
    more=True,
)
_CURVE = Fields(
    {
        "name": str,
        "middle": float,
        "unit": Maybe(float),
        "at": ListOf(float),
        "to": ListOf(float),
        "below": float,
        "above": float,
    }
)
_COLUMN = Fields(
    {
        "name": str,
        "kind": OneOf(("continuous", "integer", "categorical")),
        "dtype": _DTYPE,
        "immutable": bool,
        "start": Whole(0, 2**31),
        "stop": Whole(1, 2**31),
    },
    {
        "categories": ListOf(object),
        "lower": Maybe(float),
        "upper": Maybe(float),
        "mean": float,
        "scale": float,
        "decimals": Maybe(Whole(-400, 400)),
        "curve": Maybe(_CURVE),
    },
    more=True,
)
DESCRIPTION = Fields(
    {"parameters": dict, "library": OneOf(LIBRARIES), "names": ListOf(str), "columns": ListOf(_COLUMN)},
    more=True,
)


# A fitted domain as plain JSON and back: no pickle, and nothing of the rows it was fitted on.


FORMAT = "likewise.TabularDomain"
VERSION = 1
PARAMETERS = ("immutable", "ranges", "integers", "categories", "scales")


def read_description(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Column, ...]]:
    """Return parameters and columns of the fitted domain that `TabularDomain.to_dict` described."""
    owner = "TabularDomain.from_dict"
    if not isinstance(values, Mapping) or values.get("format") != FORMAT:
        raise FormatError(
            f"{owner}: this is not a description of a TabularDomain. Pass what to_dict() returned."
        )
    if values.get("version") != VERSION:
        raise FormatError(
            f"{owner}: the description has version {values.get('version')!r}, this package reads {VERSION}. "
            "Update the package, or fit the domain again."
        )
    try:
        check_form(values, DESCRIPTION, "it")
        columns = tuple(Column.from_dict(column) for column in values["columns"])
        if set(values["parameters"]) != set(PARAMETERS):
            raise ValueError(f"parameters are {sorted(values['parameters'])}")
        _check_consistent(columns, values["names"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(
            f"{owner}: the description is damaged ({type(error).__name__}: {error}). Fit the domain again."
        ) from error
    return values["parameters"], columns


def _check_consistent(columns: Sequence[Column], names: Sequence[str]) -> None:
    starts = [0, *(column.stop for column in columns)]
    if not columns or sorted(column.name for column in columns) != sorted(names):
        raise ValueError("names and columns do not fit together")
    if [column.start for column in columns] != starts[:-1]:
        raise ValueError("columns do not follow each other")
    for column in columns:
        width = len(column.categories) if column.kind == "categorical" and not column.is_binary else 1
        if not all(is_scalar(value) for value in column.categories):
            raise ValueError(f"column {column.name!r} has categories that are neither text nor numbers")
        if column.width != width:
            raise ValueError(f"column {column.name!r} has the wrong width")
        if not (column.scale > 0 and np.isfinite([column.mean, column.scale]).all()):
            raise ValueError(f"column {column.name!r} has the scale {column.scale!r}")
        if not column.lower <= column.upper:
            raise ValueError(f"column {column.name!r} has an empty range")
        if column.curve is not None and column.kind == "categorical":
            raise ValueError(f"column {column.name!r} has categories and the scale of a number")


def _plain(value: Any) -> Any:
    """Return a parameter as plain JSON; an infinite end of a range as None, which means the same."""
    value = python_scalar(value)
    if isinstance(value, Curve):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(_plain(item) for item in value)
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


class TabularDomain(TransformerMixin, BaseEstimator, Domain):
    """Which rows of a table can exist, learned from a frame and from what the user knows.

    A scikit-learn transformer: numbers are standardised, a categorical column with two categories becomes one
    0/1 column, with three or more one column per category. Numeric columns come first, then categorical ones,
    each in the order of the frame. Integers, floats and everything else (strings, booleans, categories) are
    told apart by dtype.

    Parameters
    ----------
    immutable : sequence of str, default=()
        Columns that a search may not change.
    ranges : dict of str to (low, high), optional
        Bounds in original units if they are not those of the data; None for an open end.
    integers : sequence of str, optional
        Float columns that hold whole numbers only. Integer dtypes need not be named.
    categories : dict of str to list, optional
        Categories that can exist besides those the frame shows. A numeric column named here becomes
        categorical; None stands for just what the frame shows.
    scales : dict of str to str, optional
        Scales of numbers where a difference of so many units does not mean the same everywhere, as with amounts that
        most people do not have and a few have much of: ``"signed log"``, ``sign(v) · log(1 + |v| / unit)`` with a unit of 1
        for whole numbers and else the power of ten below the small amounts; ``"rank"``, the share of people below;
        ``"value or not"``, 0 at the commonest value and 1 at the least amount beside it, then logarithms of the amount
        in standard deviations; ``"linear"``, the default. They come before the standardisation. The ``curve`` of another
        domain's column is taken as it is, so that both encode it alike.

    Attributes
    ----------
    columns_ : tuple of Column
        What is known of each column, in the order of the encoding: kind, range, categories, mean, scale,
        and its place (``column.slice``). ``column.unit`` is the length of one whole unit in the encoding.
    encoding_ : Encoding
        Columns ↔ numbers: how a table becomes encoded rows, and back.
    groups_ : dict of str to list of str
        For each original column the names of its encoded columns.
    n_features_in_ : int
        Number of original columns.
    feature_names_in_ : ndarray of str
        Names of the original columns. Only if the domain was fitted on a frame.

    Notes
    -----
    ``decode(encode(frame))`` gives the frame back, values and dtypes, in the frame's own library. Whole
    numbers, categories and decimals of up to about 14 digits come back exactly; other floats to within a
    rounding of the column's largest value.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [20, 40], "job": ["clerk", "nurse"], "sex": ["Male", "Female"]})
    >>> domain = TabularDomain.from_frame(people, ranges={"age": (18, 90)}, categories={"job": ["cook"]})
    >>> domain.encode(people)
       age  job_clerk  job_cook  job_nurse  sex_Male
    0 -1.0        1.0       0.0        0.0       1.0
    1  1.0        0.0       0.0        1.0       0.0
    >>> domain.decode([[0.234, 0.1, 0.6, 0.3, 0.8], [99.0, 1.0, 0.0, 0.0, 0.0]])
       age    job     sex
    0   32   cook    Male
    1   90  clerk  Female
    >>> for violation in domain.validate(pd.DataFrame({"age": [7], "job": ["king"], "sex": ["Male"]})):
    ...     print(violation)
    row 0, 'age' = 7: below 18
    row 0, 'job' = 'king': a category never seen
    """

    def __init__(
        self,
        immutable: Sequence[str] = (),
        ranges: Mapping[str, Any] | None = None,
        integers: Sequence[str] | None = None,
        categories: Mapping[str, Any] | None = None,
        scales: Mapping[str, Any] | None = None,
    ) -> None:
        self.immutable = immutable
        self.ranges = ranges
        self.integers = integers
        self.categories = categories
        self.scales = scales

    # ------------------------------------------------------------------------------------- making one

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        immutable: Sequence[str] = (),
        ranges: Mapping[str, Any] | None = None,
        integers: Sequence[str] | None = None,
        categories: Mapping[str, Any] | None = None,
        columns: Any = None,
        scales: Mapping[str, Any] | None = None,
    ) -> TabularDomain:
        """Learn the domain of a table: construct and `fit` in one.

        Parameters
        ----------
        frame : pandas, polars or arrow table of shape (n, p)
            The features, without the target.
        immutable, ranges, integers, categories, scales
            As in the class.
        columns : mapping or path, optional
            What each column is, in one place: name to ``"number"``, ``"integer"``, ``"category"`` or ``"left out"``,
            or to a mapping with ``kind``, ``range``, ``values``, ``immutable`` and ``scale``; or a TOML file of these, such
            as `likewise inspect` writes. Columns that are left out are not columns of the domain.

        Returns
        -------
        TabularDomain
            Fitted.

        Examples
        --------
        >>> TabularDomain.from_frame(pd.DataFrame({"age": [20, 40]}), immutable=["age"]).n_features
        1
        >>> people = pd.DataFrame({"id": [7, 8], "male": [0.0, 1.0]})
        >>> TabularDomain.from_frame(people, columns={"id": "left out", "male": "category"}).column("male").kind
        'categorical'
        >>> gains = pd.DataFrame({"gain": [0, 0, 114, 99999]})
        >>> TabularDomain.from_frame(gains, scales={"gain": "signed log"}).encode(gains).round(2)["gain"].tolist()
        [-0.86, -0.86, 0.14, 1.58]
        """
        given: dict[str, Any] = {
            "immutable": immutable,
            "ranges": ranges,
            "integers": integers,
            "categories": categories,
            "scales": scales,
        }
        if columns is not None:
            frame, given = apply_plans(frame, columns, given, owner="TabularDomain.from_frame")
        return cls(**given).fit(frame)

    def fit(self, X: Any, y: Any = None) -> TabularDomain:
        """Learn kinds, ranges, categories and the standardisation from a table.

        Parameters
        ----------
        X : data frame, or array-like of shape (n, p)
            Columns of an array are called ``x0``, ``x1``, …
        y : ignored
            There for the scikit-learn contract.

        Returns
        -------
        TabularDomain
            Itself.
        """
        owner = "TabularDomain.fit"
        frame, library, dtypes = read_table(self, X, owner=owner)
        if len(frame) == 0 or frame.shape[1] == 0:
            what = "rows" if len(frame) == 0 else "columns"
            raise InputError(f"{owner}: 'X' is empty: it has no {what}. Pass a table with people in it.")
        check_no_missing(frame, owner=owner, name="X")
        choices = check_choices(
            frame,
            immutable=self.immutable,
            ranges=self.ranges,
            integers=self.integers,
            categories=self.categories,
            scales=self.scales,
            owner="TabularDomain",
        )
        columns = describe_columns(frame, dtypes, choices, library=library, owner=owner)
        self._remember(columns, tuple(frame.columns), library)
        return self

    def _remember(self, columns: tuple[Column, ...], names: tuple[str, ...], library: str) -> None:
        self.columns_ = columns
        self.n_features_in_ = len(names)
        if library != "numpy":
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.encoding_ = Encoding(columns, names, library)
        self.groups_ = {c.name: list(self.encoding_.feature_names[c.slice]) for c in columns}
        self._set = EncodedSet(columns)

    # ---------------------------------------------------------------------------------- there and back

    def transform(self, X: Any) -> Any:
        """Encode rows in original units; the same as `encode`.

        Parameters
        ----------
        X : data frame, or array-like of shape (n, p)
            With the columns the domain was fitted on, in any order.

        Returns
        -------
        table or ndarray of shape (n, d), float64
            A frame gives a frame of its own library with named columns, an array gives an array;
            `set_output` chooses otherwise.
        """
        encoded = self.encode_array(X)
        if not is_frame(X):
            return encoded
        index = X.index if isinstance(X, pd.DataFrame) else None
        names = list(self.encoding_.feature_names)
        frame = pd.DataFrame(encoded, columns=names, index=index, copy=False)
        return mark_encoded(to_same_library(frame, X))

    def encode(self, frame: Any) -> Any:
        """Encode rows in original units.

        Parameters
        ----------
        frame : data frame, or array-like of shape (n, p)
            With the columns the domain was fitted on, in any order. Numbers out of range are encoded as they
            are (`validate` names them); a category never seen, a missing or an infinite value is an error.

        Returns
        -------
        table or ndarray of shape (n, d), float64
            A frame gives a frame of its own library with named columns; see `transform`.
        """
        return self.transform(frame)

    def encode_array(self, frame: Any) -> FloatArray:
        """Encode rows in original units as a plain float64 array of shape (n, d).

        Examples
        --------
        >>> people = pd.DataFrame({"age": [20, 40], "sex": ["Male", "Female"]})
        >>> TabularDomain.from_frame(people).encode_array(people)
        array([[-1.,  1.],
               [ 1.,  0.]])
        """
        check_is_fitted(self)
        owner = "TabularDomain.encode"
        return self.encoding_.encode(self._own_columns(frame, owner=owner), owner=owner)

    def decode(self, X: Any) -> Any:
        """Decode encoded rows to valid rows in original units.

        Parameters
        ----------
        X : array, tensor or data frame of shape (n, d)
            Encoded rows, valid or not: each value becomes the nearest that can exist.

        Returns
        -------
        table of shape (n, p)
            In the library, column order and dtypes the domain was fitted on. A pandas index is kept.
        """
        check_is_fitted(self)
        index = X.index if isinstance(X, pd.DataFrame) and self.encoding_.library == "pandas" else None
        return self.encoding_.decode(to_numpy(self._encoded_rows(X, owner="TabularDomain.decode")), index)

    def inverse_transform(self, X: Any) -> Any:
        """Decode encoded rows; the same as `decode`."""
        return self.decode(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names for the original columns if the domain was fitted on an array; otherwise they must be
            the frame's.

        Returns
        -------
        ndarray of str, shape (d,)
        """
        check_is_fitted(self)
        given = _check_feature_names_in(self, input_features)
        rename = dict(zip(self.encoding_.names, given, strict=True))
        return np.asarray(encoded_names(self.columns_, rename), dtype=object)

    # ------------------------------------------------------------------------------------- the set

    @property
    def n_features(self) -> int | None:
        """Number of encoded columns; None before `fit`."""
        return self.columns_[-1].stop if hasattr(self, "columns_") else None

    def project(self, X: Any, origin: Any = None) -> Any:
        """Project encoded rows onto the convex set: a box for numbers and binary columns × simplices.

        Parameters
        ----------
        X : array or tensor of shape (n, d)
            Encoded rows.
        origin : array or tensor of shape (n, d), optional
            Encoded rows that immutable columns are put back to.

        Returns
        -------
        array or tensor of shape (n, d)

        Examples
        --------
        >>> domain = TabularDomain.from_frame(pd.DataFrame({"age": [20.0, 40.0], "job": ["a", "b"]}))
        >>> domain.project(np.array([[5.0, 0.25], [0.0, -1.0]]))
        array([[1.  , 0.25],
               [0.  , 0.  ]])
        """
        if not hasattr(self, "_set"):  # check_is_fitted costs as much as a small projection
            check_is_fitted(self)
        X = as_rows(X, self.n_features, owner="TabularDomain.project")
        return self._set.project(X, origin)

    def nearest_valid(self, X: Any, origin: Any = None) -> Any:
        """Nearest encoded row that can exist: whole numbers whole, one category each, within bounds.

        Parameters
        ----------
        X : array or tensor of shape (n, d)
            Encoded rows.
        origin : array or tensor of shape (n, d), optional
            Encoded rows that immutable columns are put back to.

        Returns
        -------
        array or tensor of shape (n, d)
            The nearest in Euclidean distance of the encoding; every row passes `validate`.
        """
        check_is_fitted(self)
        X = self._encoded_rows(X, owner="TabularDomain.nearest_valid")
        return self._set.nearest_valid(X, origin)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the box around the set in encoded units: lower and upper, of shape (d,)."""
        check_is_fitted(self)
        return self._set.lower.copy(), self._set.upper.copy()

    def validate(self, frame: Any, origin: Any = None) -> tuple[Violation, ...]:
        """Name what is wrong with each row.

        Parameters
        ----------
        frame : data frame of shape (n, p), or array or tensor of shape (n, d)
            A frame holds rows in original units, an array encoded rows.
        origin : of the same kind, optional
            The rows they were made from: immutable columns must not differ.

        Returns
        -------
        tuple of Violation
            By row, then by column; empty if every row is valid.
        """
        check_is_fitted(self)
        owner = "TabularDomain.validate"
        given = {"frame": frame} | ({} if origin is None else {"origin": origin})
        if len({is_frame(rows) for rows in given.values()}) > 1:
            raise InputError(
                f"{owner}: 'frame' and 'origin' must both be frames (original units) or both be arrays "
                "(encoded). Use encode or decode on one of them."
            )
        if not is_frame(frame):
            pair = [
                to_numpy(as_rows(X, self.n_features, owner=owner, name=name)) for name, X in given.items()
            ]
            self._check_paired(pair, owner=owner)
            return find_violations_encoded(pair[0], self.columns_, pair[1] if len(pair) > 1 else None)
        frames = [self._own_columns(rows, owner=owner) for rows in given.values()]
        self._check_paired(frames, owner=owner)
        return find_violations(frames[0], [self.column(name) for name in self.encoding_.names], *frames[1:])

    def widened(self, frame: Any) -> TabularDomain:
        """Return the same encoding with ranges that reach as far as these people do.

        Parameters
        ----------
        frame : data frame of shape (n, p)
            People in original units; a category that the domain does not know is an error.

        Examples
        --------
        >>> domain = TabularDomain.from_frame(pd.DataFrame({"age": [20, 40]}))
        >>> domain.widened(pd.DataFrame({"age": [65]})).column("age").upper
        65.0
        """
        rows = self.encode_array(frame)
        numbers = [column for column in self.columns_ if column.kind != "categorical"]
        values = {c.name: c.number(rows[:, c.start]) for c in numbers}
        return self.reaching({name: (float(v.min()), float(v.max())) for name, v in values.items()})

    def reaching(self, ranges: Mapping[str, tuple[float, float]]) -> TabularDomain:
        """Return the same encoding with ranges of numbers that reach at least so far.

        Parameters
        ----------
        ranges : mapping of str to (low, high)
            In original units; columns that the domain does not know are left out.
        """
        numbers = {c.name for c in self.columns_ if c.kind != "categorical"} & set(ranges)
        return self._with(
            _reaching(column, *ranges[column.name]) if column.name in numbers else column
            for column in self.columns_
        )

    def with_immutable(self, names: Collection[str]) -> TabularDomain:
        """Return the same encoding in which these columns alone may not change.

        Parameters
        ----------
        names : collection of str
        """
        found = self._with(replace(column, immutable=column.name in names) for column in self.columns_)
        found.immutable = list(names)
        return found

    def _with(self, columns: Iterable[Column]) -> TabularDomain:
        other: TabularDomain = clone(self)
        other._remember(tuple(columns), self.encoding_.names, self.encoding_.library)
        return other

    # --------------------------------------------------------------------------------- description

    def column(self, name: str) -> Column:
        """Return what is known of one original column.

        Examples
        --------
        >>> TabularDomain.from_frame(pd.DataFrame({"age": [20, 40]})).column("age").kind
        'integer'
        """
        check_is_fitted(self)
        if name not in self.encoding_.by_name:
            empty = pd.DataFrame(columns=pd.Index(self.encoding_.names))
            check_columns(empty, [name], owner="TabularDomain", name="domain")
        return self.encoding_.by_name[name]

    def group(self, name: str) -> slice:
        """Columns of the encoding that an original column became.

        Examples
        --------
        >>> TabularDomain.from_frame(pd.DataFrame({"job": ["a", "b", "c"]})).group("job")
        slice(0, 3, None)
        """
        return self.column(name).slice

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted domain as plain JSON: it encodes identically after `from_dict`, without the data.

        Examples
        --------
        >>> import json
        >>> people = pd.DataFrame({"age": [20, 40]})
        >>> text = json.dumps(TabularDomain.from_frame(people).to_dict())
        >>> TabularDomain.from_dict(json.loads(text)).encode(people)
           age
        0 -1.0
        1  1.0
        """
        check_is_fitted(self)
        return {
            "format": FORMAT,
            "version": VERSION,
            "parameters": {name: _plain(value) for name, value in self.get_params(deep=False).items()},
            "library": self.encoding_.library,
            "names": list(self.encoding_.names),
            "columns": [column.to_dict() for column in self.columns_],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TabularDomain:
        """Build the fitted domain that `to_dict` described."""
        parameters, columns = read_description(values)
        domain = cls(**parameters)
        domain._remember(columns, tuple(values["names"]), str(values["library"]))
        return domain

    # ------------------------------------------------------------------------------------- insides

    def _encoded_rows(self, X: Any, *, owner: str) -> Any:
        rows = self.encoding_.read_encoded(X, owner=owner) if is_frame(X) else X
        return check_matrix(rows, owner=owner, n_features=self.n_features)

    def _own_columns(self, table: Any, *, owner: str) -> pd.DataFrame:
        named = self.encoding_.library != "numpy"
        return own_columns(self, table, self.encoding_.names, named=named, owner=owner)

    @staticmethod
    def _check_paired(pair: Iterable[Any], *, owner: str) -> None:
        lengths = [len(rows) for rows in pair]
        if len(set(lengths)) > 1:
            raise InputError(
                f"{owner}: 'frame' has {lengths[0]} rows, 'origin' has {lengths[1]}. "
                "Pass the row that each row was made from."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "columns_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _reaching(column: Column, low: float, high: float) -> Column:
    """The column with a range that holds both values, up to the rounding of the encoding."""
    if column.kind == "integer":
        low, high = float(np.rint(low)), float(np.rint(high))
    return replace(column, lower=min(column.lower, low), upper=max(column.upper, high))
