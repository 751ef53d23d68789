"""Model, fair metric and domain in one coordinate system: the domain's encoding.

Each of the three may bring an encoder of its own. Two encodings of the same columns differ by an affine map, so a
metric moves exactly between them (Σ′ = AᵀΣA), and a model of numbers is the same model behind that map. What cannot
be brought together is refused. A frame is encoded or not by what it is declared to be, never by its column names; a
model without an encoder and a metric without a feature map get what the user passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from likewise.auditing.dual.frontier import Floats
from likewise.core.checks import IntArray, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import declared_encoded, is_frame, same_words, to_pandas
from likewise.core.messages import Message
from likewise.data.encoding import (
    AffineMap,
    Encoding,
    EncodingMismatchError,
    ScaleMismatchError,
    decode_columns,
)
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.constructors import reexpress
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models import DifferentiableModel, Model
from likewise.models.model import are_made_up

# When does a move cost nothing: squared fair distances with the rounding taken out.


def priced_distance(
    metric: Any,
    first: Floats,
    second: Floats,
    *,
    resolution: float = 2.3e-16,
    alone: bool = True,
    exact: bool = False,
) -> Floats:
    """Squared fair distance of paired rows, exactly 0 where it is rounding."""
    delta = first - second
    distance = np.maximum(_squared_norm(metric, delta) if alone else metric.squared_norm(delta), 0.0)
    largest = max(metric.scale, float((metric.scale + metric.values).max(initial=0.0)))
    noise = 0.0 if exact else (4 * resolution) ** 2 * (_lengths(first) + _lengths(second))
    free = distance <= largest * (COSTS_NOTHING * _lengths(delta) + noise)
    if exact:
        touched = np.zeros(delta.shape[1], dtype=bool)
        if metric.n_features is not None:
            basis = np.asarray(to_numpy(metric.null_space.basis), dtype=np.float64)
            touched = np.abs(basis).max(axis=1, initial=0.0) > COSTS_NOTHING
        moved = (delta[:, ~touched] != 0).any(axis=1)
        # The square of a rounding may be less than any number there is.
        distance = np.where(moved, np.maximum(distance, np.finfo(np.float64).tiny), distance)
        free &= ~moved
    return np.where(free, 0.0, distance)


def _lengths(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _squared_norm(metric: Any, delta: Floats) -> Floats:
    """δᵀΣδ, each row by itself."""
    Q = metric.basis if metric.n_features else np.zeros((delta.shape[1], 0))
    inside = np.einsum("ij,jk->ik", delta, Q)
    total = (inside**2 * (metric.scale + metric.values)).sum(axis=1)
    if metric.scale == 0:
        return np.asarray(total)
    outside = delta - np.einsum("ik,jk->ij", inside, Q) if Q.shape[1] else delta
    return np.asarray(total + metric.scale * np.einsum("ij,ij->i", outside, outside))


# Which kind of table people come in: its columns in order, each in its own dtype, for rows that a search
# makes.


@dataclass(frozen=True, eq=False)
class TableKind:
    """Columns and dtypes of a raw table."""

    dtypes: Mapping[str, Any]
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, encoding: Encoding) -> TableKind:
        """Read the kind of a table."""
        known = encoding.by_name
        return cls(
            {
                str(name): _dtype(frame[name].dtype, known[str(name)])
                for name in frame.columns
                if str(name) in known
            },
            tuple(str(name) for name in frame.columns if str(name) not in known),
        )

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


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Everything about an audit but the people; make one with `Coordinates.build`."""

    model: Model
    metric: FairMetric
    domain: Any
    encoding: Encoding | None
    raw: bool
    takes: Takes
    free: tuple[str, ...]
    own: AffineMap | None
    said: tuple[str, ...] = ()
    kind: TableKind | None = None

    @classmethod
    def build(
        cls, X: Any, *, model: Model, metric: FairMetric, domain: Any, encoded: bool | None = None
    ) -> Coordinates:
        """Bring the three together for tables like `X`."""
        raw = is_frame(X) and not (declared_encoded(X) if encoded is None else encoded)
        encoding = _encoding_of(X, domain, metric)
        table = _Table.of(X, encoding, raw=raw)
        measured, said = _metric_in(metric, encoding, table)
        takes, own = _model_in(model, encoding, table)
        free = _free_columns(metric, _metric_encoding(metric, encoding, table))
        kind = TableKind.of(to_pandas(X, owner="audit", name="X"), encoding) if raw and encoding else None
        return cls(model, measured, domain, encoding, raw, takes, free, own, said, kind)

    # ---- tables of people, as each of the three takes them ----------------------------------------------

    def encoded(self, table: Any) -> Floats:
        """Return rows of a table as the domain sees them, float64 (n, d)."""
        if self.encoding is None:
            return np.asarray(to_numpy(table), dtype=np.float64)
        if self.raw:
            return np.asarray(self.encoding.encode(table, owner="audit"), dtype=np.float64)
        return np.asarray(self.encoding.read_encoded(table, owner="audit"), dtype=np.float64)

    def given(self, x: Floats) -> Any:
        """Return encoded rows as the kind of table that people come in."""
        if self.encoding is None or not self.raw:
            return x
        decoded = to_pandas(self.encoding.decode(x), owner="audit")
        return decoded if self.kind is None else self.kind.like(decoded)

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

    def encoded_for_model(self, x: Floats) -> Any:
        """Return encoded rows as the model takes them, without the way through a table where there is a shorter one."""
        if self.encoding is None:
            return x
        if self.takes == "own":
            return self._own_rows(x)
        if self.takes == "encoded":
            return self._named(x)
        return self.for_model(self.given(x))

    def why_no_made_up_rows(self) -> str | None:
        """Why the model cannot be asked about rows that only the encoding knows; None where it can."""
        unknown = self.kind.unknown if self.kind is not None and self.takes == "table" else ()
        names = self.model.feature_names
        if self.kind is None or not unknown or (names is not None and set(names) <= set(self.kind.dtypes)):
            return None
        return Message("why_not.unknown_column", column=repr(unknown[0]))

    def _named(self, x: Floats) -> Any:
        assert self.encoding is not None
        if self.model.takes_frame or self.model.feature_names is not None:
            return pd.DataFrame(x, columns=list(self.encoding.feature_names))
        return x

    def features(self, table: Any, encoded: Floats) -> tuple[Floats, float]:
        """Return φ of rows, float64 (n, d), and the resolution of the numbers φ is made of."""
        if self.metric.feature_map is None:
            return encoded, float(np.finfo(np.float64).eps)
        phi = to_numpy(self.metric.features(table))
        return phi.astype(np.float64), float(np.finfo(phi.dtype).eps)

    def canonical(self, x: Floats) -> Floats:
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

    def possible(self, encoded: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each encoded row is one that can exist."""
        away = np.abs(encoded - to_numpy(self.domain.nearest_valid(encoded)))
        return np.asarray((away <= 1e-6 * (1.0 + np.abs(encoded))).all(axis=1))

    def check_possible(self, encoded: Floats, first: int = 0) -> None:
        """Raise an error that names column, value and row where somebody cannot exist by the domain's own rules."""
        outside = np.flatnonzero(~self.possible(encoded))
        if not len(outside):
            return
        row = int(outside[0])
        known = tabular(self.domain)
        if known is not None:
            found = known.validate(encoded[row : row + 1])[0]
            what = f"column {found.column!r} = {found.value!r} ({found.reason})"
        else:
            inside = to_numpy(self.domain.nearest_valid(encoded[row : row + 1]))[0]
            at = int(np.abs(encoded[row] - inside).argmax())
            names = None if self.encoding is None else self.encoding.feature_names
            name = f"column {names[at]!r}" if names is not None else f"column {at}"
            what = f"{name} = {encoded[row, at]:.6g} (nearest possible {inside[at]:.6g})"
        raise InputError(
            f"audit: {len(outside):,} of {len(encoded):,} audited people cannot exist in the domain, first row "
            f"{first + row}: {what}. Make the domain of all people, TabularDomain.from_frame(X) or ranges={{…}}, or "
            "say encoded=True or encoded=False if the rows were taken in the wrong units."
        )

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

    def free_columns(self) -> tuple[str, ...]:
        """Names of the columns whose every change costs nothing, and that may change."""
        fixed = self.fixed_names()
        return tuple(name for name in self.free if name not in fixed)

    # ---- gradients -------------------------------------------------------------------------------------

    def why_no_gradient(self) -> str | None:
        """Why gradients cannot be followed here; None where they can."""
        if not isinstance(self.model, DifferentiableModel):
            return Message("why_not.no_gradient")
        if self.own is None:
            if tabular(self.model.encoder) is not None:
                return Message("why_not.other_scale")
            if self.takes == "numbers":
                return Message("why_not.not_linear_numbers")
            return Message("why_not.takes_table")
        if self.metric.feature_map is not None:
            return Message("why_not.no_derivative")
        return None

    def gradient_oracle(self) -> Any:
        """Return loss and gradient of encoded rows; ask `why_no_gradient` first."""
        assert isinstance(self.model, DifferentiableModel)
        oracle = self.model.gradient_oracle()
        if self.own is None or self.own.is_identity:
            return oracle
        return oracle.after(self.own.matrix, self.own.offset)

    def linear_form(self) -> tuple[Floats, Floats] | None:
        """Return (coef (C, d), intercept (C,)) of the scores of encoded rows where they are linear, else None."""
        form = self.model.linear_form() if self.why_no_gradient() is None else None
        if form is None or self.own is None:
            return None
        coef, intercept = form
        return coef @ self.own.matrix, intercept + coef @ self.own.offset

    def losses_encoded(self, x: Floats, labels: Any) -> Floats:
        """Return the model's loss of encoded rows under labels, (n,)."""
        return np.asarray(self.model.losses(self.encoded_for_model(x), labels), dtype=np.float64)

    def _own_rows(self, encoded: Floats) -> Floats:
        return encoded if self.own is None else np.asarray(self.own(encoded), dtype=np.float64)


@dataclass(frozen=True)
class _Table:
    """What is known of the tables that people come in."""

    columns: tuple[str, ...]
    numeric: frozenset[str]
    raw: bool

    @classmethod
    def of(cls, X: Any, encoding: Encoding | None, *, raw: bool) -> _Table:
        if not raw:
            return cls(() if encoding is None else encoding.names, frozenset(), raw=False)
        frame = to_pandas(X, owner="audit", name="X")
        numeric = frozenset(name for name in frame.columns if frame[name].dtype.kind in "biuf")
        return cls(tuple(frame.columns), numeric, raw=True)

    @property
    def is_numeric(self) -> bool:
        return self.raw and len(self.numeric) == len(self.columns)


def _encoding_of(X: Any, domain: Any, metric: FairMetric) -> Encoding | None:
    known = tabular(domain) or tabular(metric.feature_map)
    if known is not None:
        found: Encoding = known.encoding_
        return found
    if not is_frame(X):
        return None
    frame = to_pandas(X, owner="audit", name="X")
    text = [name for name in frame.columns if frame[name].dtype.kind not in "biuf"]
    if text:
        raise InputError(
            f"audit: column {text[0]!r} is text, and the domain given is one of plain numbers. "
            "Pass domain=TabularDomain.from_frame(X)."
        )
    return Encoding.plain(list(frame.columns))


def _metric_encoding(metric: FairMetric, encoding: Encoding | None, table: _Table) -> Encoding | None:
    """Return the encoding that the metric measures; None where a feature map of its own hides it."""
    known = tabular(metric.feature_map)
    if known is not None:
        found: Encoding = known.encoding_
        return found
    if encoding is None or metric.feature_map is not None:
        return None
    if table.is_numeric and metric.n_features in (None, len(table.columns)):
        # What has no feature map measures the rows that are passed, here the table's own numbers.
        return Encoding.plain(list(metric.feature_names or table.columns))
    return encoding


def _free_columns(metric: FairMetric, encoding: Encoding | None) -> tuple[str, ...]:
    if encoding is None or metric.n_features not in (None, encoding.n_features):
        return ()
    plain, names = metric.without_feature_map(), []
    for column in encoding.columns:
        # From the first category to every other; a number, or one indicator of two, by one unit.
        moves = np.zeros((max(column.width - 1, 1), encoding.n_features))
        moves[:, column.start] = 1.0
        moves[np.arange(column.width - 1), column.start + 1 + np.arange(column.width - 1)] = -1.0
        if not priced_distance(plain, np.zeros_like(moves), moves).any():
            names.append(column.name)
    return tuple(names)


def _metric_in(
    metric: FairMetric, encoding: Encoding | None, table: _Table
) -> tuple[FairMetric, tuple[str, ...]]:
    """Return the metric of encoded rows."""
    if encoding is None:
        return (metric.without_feature_map() if tabular(metric.feature_map) else metric), ()
    own = _metric_encoding(metric, encoding, table)
    if own is None:
        return metric, ("The metric's own feature map reads the table.",)
    if own is not encoding:
        return _recoded(metric, own, encoding)
    if metric.n_features not in (None, encoding.n_features):
        raise InputError(
            f"audit: the metric is of {metric.n_features} columns, the encoded rows have {encoding.n_features}. "
            "Learn it on the same table, so that it knows how to encode it: AttributeSubspace([…]).fit(frame)."
        )
    return metric.without_feature_map(), ()


def _recoded(metric: FairMetric, own: Encoding, encoding: Encoding) -> tuple[FairMetric, tuple[str, ...]]:
    if own.agrees(encoding):
        return metric.without_feature_map(), ()
    unknown = [c for c in encoding.columns if c.name not in own.by_name and not c.immutable]
    if unknown:
        raise InputError(
            f"audit: the metric does not know column {unknown[0].name!r}, so any change of it would cost nothing. "
            "Learn the metric on a table that has it, or call the column immutable in the domain."
        )
    try:
        change = own.map_from(encoding)
    except ScaleMismatchError as error:
        raise InputError(
            f"audit: the metric cannot be re-expressed in the domain's encoding: {error}, and no linear map leads from one "
            "to the other. Use one domain for both: AttributeSubspace([…], domain=domain).fit(frame), or "
            "domain=metric.feature_map."
        ) from error
    except EncodingMismatchError as error:
        raise InputError(
            f"audit: the metric and the domain encode the table differently, and not by an affine map: {error}. "
            "Learn the metric on the table that is audited, or pass domain=metric.feature_map."
        ) from error
    return reexpress(metric, change.matrix), (Message("assumption.re_expressed"),)


def _model_in(model: Model, encoding: Encoding | None, table: _Table) -> tuple[Takes, AffineMap | None]:
    """Say what the model takes, and how its numbers follow from encoded rows."""
    if encoding is None:
        return "encoded", _identity(model.n_features or 0)
    same = _identity(encoding.n_features)
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
    of_table = names is not None and all(any(same_words(n, c) for c in table.columns) for n in names)
    of_encoding = names is not None and all(n in encoding.feature_names for n in names)
    if model.takes_frame:
        if table.raw:
            return ("encoded" if of_encoding and not of_table else "table"), None
        return ("table" if of_table and not of_encoding else "encoded"), None
    if not table.raw:
        return "encoded", same if model.n_features in (None, encoding.n_features) else None
    if names is not None and of_table and all(any(same_words(n, c) for c in table.numeric) for n in names):
        own = [next(c for c in table.columns if same_words(n, c)) for n in names]
        return "numbers", _plain_map(own, encoding)
    if names is None and table.is_numeric and model.n_features in (None, len(table.columns)):
        return "numbers", _plain_map(list(table.columns), encoding)
    if model.n_features not in (None, encoding.n_features):
        raise InputError(
            f"audit: the model takes {model.n_features} numbers per person; the table has {len(table.columns)} "
            f"columns, which are {encoding.n_features} numbers when encoded. Pass the rows as the model takes them, "
            "or a model that takes the table itself, such as a pipeline with its encoder."
        )
    return "encoded", same


def _identity(width: int) -> AffineMap:
    return AffineMap(np.eye(width), np.zeros(width))


def _plain_map(names: list[str], encoding: Encoding) -> AffineMap | None:
    try:
        return Encoding.plain(names).map_from(encoding)
    except EncodingMismatchError:
        return None
