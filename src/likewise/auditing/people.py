"""The people of an audit and the model that decides about them: a table, a domain and a model in one encoding.

This is all that the first question needs: does a decision change when only the sensitive columns do. A fair metric comes
on top of it (`problem`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd

from likewise.auditing.editable_rows import EditableRows, editable_rows
from likewise.core.checks import BoolArray, FloatArray, IntArray, check_matrix, check_number, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import is_frame, plain_name, to_pandas
from likewise.core.messages import Message
from likewise.counterfactuals.edits import Edit, EditParts, edited_columns, one_hot_together
from likewise.data.encoding import (
    AffineMap,
    Encoding,
    EncodingMismatchError,
    ScaleMismatchError,
    decode_columns,
)
from likewise.data.missing_values import MissingCells
from likewise.models import DifferentiableModel, Model
from likewise.models.matching import MissingCellsModel
from likewise.models.model import are_made_up

if TYPE_CHECKING:
    from likewise.auditing.results.sensitive import SensitiveValues


@dataclass(frozen=True, eq=False)
class TableKind:
    """Which kind of table people come in: encoded rows, or a raw table with its columns."""

    columns: tuple[str, ...] = ()
    raw: bool = False
    numeric: frozenset[str] = frozenset()
    # Of the columns that the encoding knows, for rows that a search makes.
    dtypes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any, encoding: Encoding | None, *, raw: bool) -> TableKind:
        """Read the kind of a table."""
        if not raw or encoding is None:
            return cls(() if encoding is None else encoding.names)
        frame, known = to_pandas(X, owner="audit", name="X"), encoding.by_name
        numeric = frozenset(name for name in frame.columns if frame[name].dtype.kind in "biuf")
        dtypes = {name: _dtype(frame[name].dtype, known[name]) for name in frame.columns if name in known}
        return cls(tuple(frame.columns), True, numeric, dtypes)

    @property
    def is_numeric(self) -> bool:
        """Whether it is a raw table of numbers alone."""
        return self.raw and len(self.numeric) == len(self.columns)

    def like(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return decoded rows as a table of this kind."""
        wanted = {
            name: dtype
            for name, dtype in self.dtypes.items()
            if dtype is not None and name in frame.columns and frame[name].dtype != dtype
        }
        ordered = [name for name in self.dtypes if name in frame.columns]
        others = [name for name in frame.columns if name not in self.dtypes]
        return frame[[*ordered, *others]].astype(wanted)


def _dtype(dtype: Any, column: Any) -> Any:
    """The dtype that rows of a column can be written in without loss; None to leave them as they are."""
    if isinstance(dtype, pd.CategoricalDtype):
        if dtype.categories is None or not column.categories:
            return None
        # Codes of known categories stay what they are.
        more = [value for value in column.categories if value not in dtype.categories]
        if not more:
            return dtype
        return pd.CategoricalDtype([*dtype.categories, *more], ordered=dtype.ordered)
    if column.kind == "integer":
        return dtype if dtype.kind in "iuf" else None
    if column.kind == "continuous":
        return dtype if dtype == "float64" else None
    # Words are words, whatever pandas stores them as.
    return dtype if dtype.kind == "O" and all(isinstance(value, str) for value in column.categories) else None


Takes = Literal["table", "numbers", "encoded", "own"]


def tabular(domain: Any) -> Any:
    """Return the domain if it is a fitted `TabularDomain` (it knows columns by name), else None."""
    return domain if hasattr(domain, "encoding_") and hasattr(domain, "encode_array") else None


@dataclass(frozen=True, eq=False, kw_only=True)
class TableCoordinates:
    """A model and a domain for tables of one kind: how rows are encoded, and how the model takes them."""

    model: Model
    domain: Any
    encoding: Encoding | None
    kind: TableKind
    takes: Takes
    own: AffineMap | None

    @classmethod
    def of_table(cls, frame: pd.DataFrame, *, model: Model, domain: Any) -> TableCoordinates:
        """Bring a model and a domain together for raw tables like `frame`."""
        encoding: Encoding = domain.encoding_
        kind = TableKind.of(frame, encoding, raw=True)
        takes, own = model_in(model, encoding, kind)
        return cls(model=model, domain=domain, encoding=encoding, kind=kind, takes=takes, own=own)

    @property
    def raw(self) -> bool:
        """Whether people come in a raw table."""
        return self.kind.raw

    # ---- tables of people, as domain and model take them ------------------------------------------------

    def encoded(self, table: Any) -> FloatArray:
        """Return rows of a table as the domain sees them, float64 (n, d)."""
        if self.encoding is None:
            return np.asarray(to_numpy(table), dtype=np.float64)
        if self.raw:
            return np.asarray(self.encoding.encode(table, owner="audit"), dtype=np.float64)
        return np.asarray(self.encoding.read_encoded(table, owner="audit"), dtype=np.float64)

    def given(self, x: FloatArray) -> Any:
        """Return encoded rows as the kind of table that people come in."""
        if self.encoding is None or not self.raw:
            return x
        return self.kind.like(to_pandas(self.encoding.decode(x), owner="audit"))

    def original(self, table: Any) -> pd.DataFrame:
        """Return rows in original units for people to read, whatever kind of table they are."""
        if self.raw:
            return to_pandas(table, owner="audit").reset_index(drop=True)
        if self.encoding is not None:
            decoded = self.encoding.decode(self.encoding.read_encoded(table, owner="audit"))
            return to_pandas(decoded, owner="audit").reset_index(drop=True)
        matrix = to_numpy(table)
        return pd.DataFrame(matrix, columns=[f"x{j}" for j in range(matrix.shape[1])])

    def for_model(self, table: Any) -> Any:
        """Return rows as the model takes them."""
        if self.encoding is None or (self.raw and self.takes == "table"):
            return table
        if self.takes == "own":
            # A raw table goes to the model's own encoder; encoded rows take the map between the encodings.
            return table if self.raw else self._own_rows(self.encoded(table))
        if self.raw and self.takes == "numbers":
            wanted = self.model.feature_names
            return table if wanted is not None and not are_made_up(wanted) else table.to_numpy(dtype=float)
        if self.takes in ("table", "numbers"):
            return self.original(table)
        return self._named(self.encoded(table))

    def encoded_for_model(self, x: FloatArray) -> Any:
        """Return encoded rows as the model takes them, without the way through a table where there is a shorter one."""
        if self.encoding is None:
            return x
        if self.takes == "own":
            return self._own_rows(x)
        if self.takes == "encoded":
            return self._named(x)
        return self.for_model(self.given(x))

    def why_no_made_up_rows(self) -> str | None:
        """Why the model cannot be asked about rows that only the encoding knows; None if it can."""
        kind, names = self.kind, self.model.feature_names
        unknown = [name for name in kind.columns if name not in kind.dtypes]
        known = names is not None and set(names) <= set(kind.dtypes)
        if not (self.raw and self.takes == "table" and unknown) or known:
            return None
        return Message("why_not.unknown_column", column=repr(unknown[0]))

    def _named(self, x: FloatArray) -> Any:
        assert self.encoding is not None
        if self.model.takes_frame or self.model.feature_names is not None:
            return pd.DataFrame(x, columns=list(self.encoding.feature_names))
        return x

    def canonical(self, x: FloatArray) -> FloatArray:
        """Return encoded rows as they come back from original units, so that what is listed is what was asked about.

        A number changes by a rounding on its way through the encoding, and may then lie on the other side of a model's
        threshold.
        """
        columns = () if self.encoding is None else self.encoding.columns
        found = np.array(x, dtype=np.float64)
        for column in (known for known in columns if known.kind == "continuous"):
            for _ in range(3):
                values = decode_columns(found, [column])[column.name]
                again = column.place(column.stored(values))
                settled = bool((again == found[:, column.start]).all())
                found[:, column.start] = again
                if settled:
                    break
        return found

    # ---- the domain ------------------------------------------------------------------------------------

    def possible(self, encoded: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each encoded row is one that can exist."""
        away = np.abs(encoded - to_numpy(self.domain.nearest_valid(encoded)))
        return np.asarray((away <= 1e-6 * (1.0 + np.abs(encoded))).all(axis=1))

    def fixed_names(self) -> tuple[str, ...]:
        """Names of the columns that the domain says may not change."""
        known = tabular(self.domain)
        return () if known is None else tuple(c.name for c in known.columns_ if c.immutable)

    def fixed_positions(self) -> IntArray:
        """Positions, in the encoding, of what may not change."""
        known = tabular(self.domain)
        if known is None:
            return np.array(sorted(getattr(self.domain, "immutable", ())), dtype=np.int64)
        parts = [np.arange(c.start, c.stop) for c in known.columns_ if c.immutable]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)

    # ---- gradients -------------------------------------------------------------------------------------

    def why_no_gradient(self) -> str | None:
        """Why gradients cannot be followed here; None if they can."""
        if not isinstance(self.model, DifferentiableModel):
            return Message("why_not.no_gradient")
        if self.own is None:
            if tabular(self.model.encoder) is not None:
                return Message("why_not.other_scale")
            if self.takes == "numbers":
                return Message("why_not.not_linear_numbers")
            return Message("why_not.takes_table")
        return None

    def gradient_oracle(self) -> Any:
        """Return loss and gradient of encoded rows; ask `why_no_gradient` first."""
        assert isinstance(self.model, DifferentiableModel)
        oracle = self.model.gradient_oracle()
        if self.own is None or self.own.is_identity:
            return oracle
        return oracle.after(self.own.matrix, self.own.offset)

    def linear_form(self) -> tuple[FloatArray, FloatArray] | None:
        """Return (coef (C, d), intercept (C,)) of the scores of encoded rows where they are linear, else None."""
        form = self.model.linear_form() if self.why_no_gradient() is None else None
        if form is None or self.own is None:
            return None
        coef, intercept = form
        return coef @ self.own.matrix, intercept + coef @ self.own.offset

    def losses_encoded(self, x: FloatArray, labels: Any) -> FloatArray:
        """Return the model's loss of encoded rows under labels, (n,)."""
        return np.asarray(self.model.losses(self.encoded_for_model(x), labels), dtype=np.float64)

    def _own_rows(self, encoded: FloatArray) -> FloatArray:
        return encoded if self.own is None else np.asarray(self.own(encoded), dtype=np.float64)


def model_in(model: Model, encoding: Encoding | None, table: TableKind) -> tuple[Takes, AffineMap | None]:
    """Say what the model takes, and how its numbers follow from encoded rows."""
    if encoding is None:
        return "encoded", _identity(model.n_features or 0)
    carried = tabular(model.encoder)
    if carried is not None:
        try:
            return "own", carried.encoding_.map_from(encoding)
        except ScaleMismatchError:
            # No map between the two; the model's own encoder reads tables all the same.
            return "table", None
        except EncodingMismatchError as error:
            raise InputError(
                f"audit: the model was trained on another kind of table than the domain describes: {error}. "
                "Make the domain of the table the model was trained on, or train the model on this one."
            ) from error
    names = model.feature_names if model.feature_names and not are_made_up(model.feature_names) else None
    columns = {plain_name(name): name for name in reversed(table.columns)}
    of_table = names is not None and all(plain_name(name) in columns for name in names)
    of_encoding = names is not None and all(n in encoding.feature_names for n in names)
    if model.takes_frame:
        if table.raw:
            return ("encoded" if of_encoding and not of_table else "table"), None
        return ("table" if of_table and not of_encoding else "encoded"), None
    if not table.raw:
        fits = model.n_features in (None, encoding.n_features)
        return "encoded", _identity(encoding.n_features) if fits else None
    numeric = set(map(plain_name, table.numeric))
    if names is not None and of_table and all(plain_name(name) in numeric for name in names):
        return "numbers", _plain_map([columns[plain_name(name)] for name in names], encoding)
    if names is None and table.is_numeric and model.n_features in (None, len(table.columns)):
        return "numbers", _plain_map(list(table.columns), encoding)
    if model.n_features not in (None, encoding.n_features):
        raise InputError(
            f"audit: the model takes {model.n_features} numbers per person; the table has {len(table.columns)} "
            f"columns, which are {encoding.n_features} numbers when encoded. Pass the rows as the model takes them, "
            "or a model that takes the table itself, such as a pipeline with its encoder."
        )
    return "encoded", _identity(encoding.n_features)


def _identity(width: int) -> AffineMap:
    return AffineMap(np.eye(width), np.zeros(width))


def _plain_map(names: list[str], encoding: Encoding) -> AffineMap | None:
    try:
        return Encoding.plain(names).map_from(encoding)
    except EncodingMismatchError:
        return None


# People whose answers are asked for twice.
ASKED_TWICE = 64


def answers_repeat(model: Model, rows: Callable[[slice], Any], known: FloatArray | None = None) -> bool:
    """Whether a model gives rows the same answers twice, up to rounding, in another order and beside fewer rows.

    `known` are those it gave. One that ranks its rows, or compares them with their mean, answers differently about a few.
    """
    # A decision may hang on rounding.
    model = model.graded()
    asked = rows(slice(None))
    first = model.outputs(asked) if known is None else known
    ends = [0, *(size for size in (1, 4, 16) if size < len(first)), len(first)]
    parts = (
        model.outputs(rows(slice(end - 1, begin - 1 if begin else None, -1)))[::-1]
        for begin, end in pairwise(ends)
    )
    second = np.concatenate(list(parts))
    allowed = max(1e-6, 64.0 * model.roundoff) * (1.0 + np.abs(first).max())
    apart = np.abs(first - second).max()
    if apart > allowed and isinstance(asked, np.ndarray):
        # Sums of large numbers that cancel round by more: by what numbers one rounding larger change for most people (few are
        # at a threshold). A model that draws its answers would change by that too, so the same call has to give the same twice.
        once, again, nudged = map(model.outputs, (asked, asked, asked * (1.0 + 2.0 * model.roundoff)))
        allowed = 16.0 * np.median(np.abs(nudged - once)) if np.array_equal(once, again) else allowed
    return bool(apart <= allowed)


@dataclass(frozen=True, eq=False)
class AuditedPeople:
    """Some people, their labels and the columns that are exchanged.

    Parameters
    ----------
    coordinates : TableCoordinates
    rows : DataFrame or array
        The people as they came: a raw table, or encoded rows.
    y : array or None
        Their labels; None if there are none.
    edits : EditParts
        What counterparts exchange.
    first : int
        Number of the first of them in the whole table, of `total` people.
    absent : DataFrame or None
        Which sensitive cells were missing in the table and were filled for the model, a column each.
    labelled : bool
        Whether `y` are labels; else they are the model's own decisions.
    """

    coordinates: TableCoordinates
    rows: Any
    y: np.ndarray[Any, Any] | None
    edits: EditParts = ()
    assumptions: tuple[str, ...] = ()
    first: int = 0
    total: int | None = None
    values: SensitiveValues | None = None
    tolerance: float | None = None
    absent: pd.DataFrame | None = None
    labelled: bool = True

    def exchanging(self, edits: EditParts) -> Self:
        """Return the same people with what counterparts exchange; 0/1 columns of one attribute change together."""
        rows = self.editable()
        alone = [part.column for part in edits if isinstance(part, Edit)]
        fields = map(rows.field, dict.fromkeys([*alone, *rows.two_valued()]))
        exchanged = one_hot_together(
            edits, {one.name: (one.values, one.codes) for one in fields}, owner="audit"
        )
        grouped = [part for part in exchanged if all(part is not one for one in edits)]
        together = edited_columns(tuple(grouped))
        if not together:
            return self.with_known(edits=exchanged)
        note = Message("assumption.one_hot", columns=together)
        return self.with_known(edits=exchanged, assumptions=(*self.assumptions, note))

    def with_known(self, **changes: Any) -> Self:
        """Return the same people with other choices, without computing what is known already again."""
        found = replace(self, **changes)
        known = ("X", "repeats", "_own", "base_loss", "decisions", "_editable")
        found.__dict__.update({name: self.__dict__[name] for name in known if name in self.__dict__})
        return found

    def of(self, X: Any, y: Any, *, first: int = 0, absent: Any = None) -> Self:
        """Return the same questions about other people."""
        rows = rows_of(X, self.coordinates)
        return replace(self, rows=rows, y=None if y is None else np.asarray(y), first=first, absent=absent)

    @property
    def sensitive_edits(self) -> EditParts:
        """What counterparts exchange of the columns that were called sensitive."""
        return self.edits

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self.rows) if self.y is None else len(self.y)

    @cached_property
    def X(self) -> FloatArray:  # noqa: N802 (the field's name for rows)
        """The people as encoded rows, float64 (n, d)."""
        return self.coordinates.encoded(self.rows)

    @cached_property
    def target(self) -> np.ndarray[Any, Any]:
        """Labels as class indices, or numbers for a regression; without labels the model's own decisions."""
        place = self.coordinates
        if self.y is None:
            return self.decided
        if place.model.known_classes is None and self.decides:
            # A bare function shows how many classes it knows when it is first asked.
            place.model.outputs(place.for_model(self._some(np.arange(1))))
        return place.model.targets(self.y)

    @cached_property
    def labels(self) -> np.ndarray[Any, Any]:
        """Labels as the model calls its classes."""
        target, classes = self.target, self.coordinates.model.classes_
        return target if classes is None else np.asarray(classes[target])

    def ask(self, table: Any) -> tuple[FloatArray, np.ndarray[Any, Any]]:
        """Return the model's outputs about rows, and its decisions: positions of classes, or numbers of a regression."""
        outputs = self.outputs_of(table)
        if not self.decides:
            return outputs, outputs[:, 0]
        if self.coordinates.model.decides_by_outputs:
            return outputs, np.argmax(outputs, axis=1)
        return outputs, self.decisions_of(table)

    def outputs_of(self, table: Any) -> FloatArray:
        """Return the model's outputs about rows alone."""
        place = self.coordinates
        return np.asarray(place.model.outputs(place.for_model(table)), dtype=np.float64)

    def decisions_of(self, table: Any) -> np.ndarray[Any, Any]:
        """Return the model's decisions about rows alone, as positions of classes."""
        place = self.coordinates
        return place.model.targets(place.model.predict(place.for_model(table)))

    @cached_property
    def _own(self) -> tuple[FloatArray, np.ndarray[Any, Any], float]:
        clock = time.time()
        outputs, decided = self.ask(self.rows)
        return outputs, decided, time.time() - clock

    @property
    def seconds_to_ask(self) -> float:
        """How long the model takes to answer about everybody once."""
        return self._own[2]

    @property
    def outputs(self) -> FloatArray:
        """What the model says about each person, as `Model.outputs`."""
        return self._own[0]

    @property
    def decided(self) -> np.ndarray[Any, Any]:
        """The model's decision about each person: the position of a class, or a number."""
        return self._own[1]

    @cached_property
    def base_loss(self) -> FloatArray:
        """Loss of each person where they stand."""
        return np.asarray(self.coordinates.model.losses_of(self.outputs, self.labels), dtype=np.float64)

    @cached_property
    def decisions(self) -> np.ndarray[Any, Any]:
        """The model's decision about each person."""
        classes = self.coordinates.model.classes_
        return self.decided if classes is None else np.asarray(classes[self.decided])

    @cached_property
    def repeats(self) -> bool:
        """Whether the model gives the same answers when it is asked about the same people twice."""
        place, some = self.coordinates, np.arange(min(self.n, ASKED_TWICE))
        known = self.outputs[some] if place.model.graded() is place.model else None
        return answers_repeat(place.model, lambda at: place.for_model(self._some(some[at])), known)

    @property
    def decides(self) -> bool:
        """Whether the model decides at all: a regression predicts numbers, of which no two are the same decision."""
        return not self.coordinates.model.loss.regression

    @property
    def counts_changes(self) -> bool:
        """Whether people who fare differently can be counted: the model decides, or a tolerance was given."""
        return self.decides or self.tolerance is not None

    @property
    def missing(self) -> MissingCells | None:
        """Which columns have missing cells that the table fills and marks and the model is shown as missing."""
        model = self.coordinates.model
        return model.missing if isinstance(model, MissingCellsModel) else None

    def editable(self, rows: Any = None, *, fill_missing: bool = False) -> EditableRows:
        """Return the people, or other rows of the same kind, as a table whose columns can be rewritten.

        A cell that is missing stays missing, whatever is written there, unless `fill_missing`.
        """
        place, missing = self.coordinates, self.missing
        if rows is None and not (missing and fill_missing):
            return self._editable
        marks = dict(zip(missing.columns, missing.marks, strict=True)) if missing and fill_missing else None
        given = self.rows if rows is None else rows
        return editable_rows(given, place.encoding, raw=place.raw, marks=marks)

    @cached_property
    def _editable(self) -> EditableRows:
        place = self.coordinates
        return editable_rows(self.rows, place.encoding, raw=place.raw)

    def decided_otherwise(
        self, decided: Any, person: IntArray, shown: Callable[[IntArray], Any], loss: FloatArray | None = None
    ) -> BoolArray:
        """Whether rows, as the model takes them (`shown` makes some), are decided otherwise than the people they belong to.

        If two decisions differ, both are asked about again, alike; not if the `loss` is clearly another one.
        """
        place, found = self.coordinates, np.asarray(decided != self.decisions[person])
        doubt = np.flatnonzero(found)
        if loss is not None and place.model.loss.wants != "decisions":
            base = self.base_loss[person[doubt]]
            doubt = doubt[np.abs(loss[doubt] - base) <= APART * (1.0 + base)]
        if len(doubt):
            own = place.for_model(self._some(person[doubt]))
            found[doubt] = differ_alike(place.model.predict, shown(doubt), own)
        return found

    def _some(self, person: IntArray) -> Any:
        return self.rows.iloc[person] if is_frame(self.rows) else self.rows[person]


# More than any rounding makes of an answer, or of a loss.
APART = 1e-2


def differ_alike(decide: Callable[[Any], Any], first: Any, second: Any) -> BoolArray:
    """Whether rows are decided differently from others, each at the same place of batches of the same size.

    The last bits of an answer depend on how many rows are asked about at once: a difference by that alone does not count.
    """
    return np.asarray(decide(first) != decide(second)) if len(first) else np.zeros(0, dtype=bool)


def check_tolerance(problem: AuditedPeople) -> None:
    if problem.tolerance is None:
        return
    if problem.decides:
        raise bad_parameter(
            "audit",
            "tolerance",
            allowed="None for a model that decides",
            got=problem.tolerance,
            remedy="It is for models that predict numbers.",
        )
    check_number(problem.tolerance, owner="audit", name="tolerance", low=0)


def rows_of(X: Any, coordinates: TableCoordinates) -> Any:
    """Return people as a raw pandas frame, or as a float64 array of encoded rows."""
    if coordinates.raw:
        return to_pandas(X, owner="audit", name="X").reset_index(drop=True)
    if coordinates.encoding is not None and is_frame(X):
        return coordinates.encoding.read_encoded(X, owner="audit")
    return np.asarray(to_numpy(check_matrix(X, owner="audit")), dtype=np.float64)
