"""Match a model file with a table: which columns it takes and in which form, and what its classes are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.core.errors import InputError, LikewiseError
from likewise.core.frames import check_columns, is_raw, same_words
from likewise.core.text import option, truncated
from likewise.data.missing_values import MissingCells
from likewise.data.one_hot import OneHotColumns, match_one_hot
from likewise.models.model import (
    Model,
    OneHotModel,
    TableModel,
    WrappedModel,
    are_made_up,
    label_array,
    libraries_of,
    select_columns,
)
from likewise.models.sklearn_model import by_place

if TYPE_CHECKING:
    from likewise.data.tabular import TabularDomain
    from likewise.models.model_files import LoadedModel

# Two classes that are only numbered, so that the target's words can be put in their place.
_TRUTH, _TWO_CLASSES = ("False", "True"), (["0", "1"], ["-1", "1"])

MakeDomain = Callable[[Sequence[str]], "TabularDomain"]
Widen = Callable[["TabularDomain"], "TabularDomain"]


@dataclass(frozen=True, eq=False)
class Matched:
    """A model that fits a table."""

    model: Model
    domain: TabularDomain
    columns: tuple[str, ...]
    note: str = ""
    encoding_assumed: bool = False

    def decide(self, table: Any) -> np.ndarray[Any, Any]:
        """Return the model's decisions about a raw table."""
        rows = table[list(self.columns)]
        return self.model.predict(rows if self.model.takes_frame else self.domain.encode_array(rows))


def model_columns(loaded: LoadedModel) -> tuple[tuple[str, ...] | None, int | None, Any]:
    """Return what a model says of the table it was made on."""
    model = loaded.model
    if model.encoder is not None:
        return tuple(column.name for column in model.encoder.columns_), None, model.encoder
    names = model.feature_names
    if names is None or are_made_up(names):
        return None, model.n_features, None
    return names, model.n_features, None


def match_model(
    loaded: LoadedModel,
    frame: pd.DataFrame,
    *,
    held: MissingCells | None = None,
    make_domain: MakeDomain,
    widen: Widen | None = None,
    immutable: Sequence[str] = (),
    needed: Sequence[str] = (),
    encoder: TabularDomain | None = None,
    takes: str = "auto",
    loss: str = "cross_entropy",
) -> Matched:
    """Find out how a model takes the rows of a table, in which the columns of `held` stand for ids, dates and texts."""
    function = frame_question(loaded) is loaded.native
    some = frame.head(5) if held is None else held.restored(frame.head(5))
    wanted = {"table": True, "encoded": False}.get(takes, answers_frames(loaded, some) or None)
    model = loaded.under(loss, None if takes != "auto" and not function else wanted)
    own = getattr(model, "encoder", None)
    if own is not None:
        return _with_own_encoder(model, own, frame, immutable, widen)
    one_hot = None if takes == "encoded" else _one_hot(model, frame)
    if one_hot is not None:
        used = {*one_hot.columns, *needed}
        columns = tuple(name for name in frame.columns if name in used)
        note = " ".join(filter(None, (one_hot.note(), _left_out(frame, columns))))
        return Matched(OneHotModel(model, one_hot), make_domain(columns), columns, note)
    columns = _used_columns(model, frame, needed)
    if model.takes_frame:
        return Matched(model, make_domain(columns), columns, _left_out(frame, columns))
    if takes == "table" or (takes == "auto" and _takes_plain_numbers(model, frame)):
        return _on_plain_numbers(model, frame, make_domain, needed)
    if encoder is not None and encoder.n_features == model.n_features:
        note = "the model file does not say how its inputs were encoded, so the table was encoded as the metric does."
        return replace(_with_own_encoder(model, encoder, frame, immutable, widen), note=note)
    return _encoded(model, frame, make_domain)


def frame_question(loaded: LoadedModel) -> Callable[[Any], Any] | None:
    """Return what to ask of a model in memory that may take a table and does not say its columns, else None.

    That is a function, or the `predict` of an estimator that keeps neither names nor, unless it is somebody's own class, a
    number of columns.
    """
    native = loaded.native
    if loaded.container != "import path" or isinstance(native, Model) or hasattr(native, "forward"):
        return None
    if not hasattr(native, "predict"):
        return native if callable(native) else None
    if libraries_of(native) & {"likewise", "xgboost", "lightgbm", "catboost", "onnxruntime", "torch"}:
        return None
    own = type(native).__module__.split(".")[0] != "sklearn"
    if hasattr(native, "feature_names_in_") or (hasattr(native, "n_features_in_") and not own):
        return None
    found: Callable[[Any], Any] = native.predict
    return found


def answers_frames(loaded: LoadedModel, some: pd.DataFrame) -> bool:
    """Whether a model that does not say its columns is shown the table: a function, or an estimator that answers about it."""
    ask = frame_question(loaded)
    if ask is None and is_raw(some):
        numbered = by_place(loaded.native, some)
        return numbered is not some and _answers(lambda table: loaded.native.predict(table), numbered)
    return ask is not None and (ask is loaded.native or _answers(ask, some))


@dataclass(frozen=True)
class OwnNames:
    """A function of a table, handed the columns under the names that its user has for them."""

    function: Callable[[Any], Any]
    names: Mapping[str, Any]

    def __call__(self, table: pd.DataFrame) -> Any:
        return self.function(table.rename(columns=self.names))


def with_own_names(model: Any, X: Any) -> Any:
    """Return a function wrapped so that it is asked under column names that are not text; any other model as it is."""
    names = {str(name): name for name in getattr(X, "columns", ()) if not isinstance(name, str)}
    function = callable(model) and not isinstance(model, type) and not hasattr(model, "predict")
    return OwnNames(model, names) if names and function and not hasattr(model, "forward") else model


def predicts_numbers(loaded: LoadedModel, frame: pd.DataFrame) -> bool:
    """Whether a function answers about people with one number each, and some are neither probabilities nor decisions."""
    ask = frame_question(loaded)
    if ask is None or ask is not loaded.native:
        return False
    try:
        answers = np.asarray(ask(frame), dtype=np.float64)
    except Exception:  # whatever a function raises about rows that it does not take
        return False
    return answers.ndim == 1 and bool(((answers < 0) | (answers > 1)).any())


def _answers(ask: Callable[[Any], Any], frame: pd.DataFrame) -> bool:
    """Whether a model answers about a table as it is."""
    try:
        return len(ask(frame)) == len(frame)
    except Exception:  # whatever an estimator raises about rows that it does not take
        return False


def _with_own_encoder(
    model: Any, own: TabularDomain, frame: pd.DataFrame, immutable: Sequence[str], widen: Widen | None
) -> Matched:
    names = tuple(column.name for column in own.columns_)
    check_columns(frame, names, owner="The model", name="table")
    unknown = [name for name in immutable if name not in names]
    if unknown:
        raise InputError(f"immutable: the model does not use column {unknown[0]!r}, so leave it out.")
    domain = own.with_immutable(immutable) if immutable else own
    # The people audited need not be those the model was trained on.
    domain = domain if widen is None else widen(domain)
    order = tuple(name for name in frame.columns if name in names)
    return Matched(model, domain, order, _left_out(frame, order))


def _one_hot(model: Model, frame: pd.DataFrame) -> OneHotColumns | None:
    names = model.feature_names
    if names is None or are_made_up(names) or all(name in frame.columns for name in names):
        return None
    found = match_one_hot(names, frame)
    if found is not None and not model.takes_frame:
        _check_numbers(found.copied, frame)
    return found


def _used_columns(model: Model, frame: pd.DataFrame, needed: Sequence[str]) -> tuple[str, ...]:
    """Columns that the model or the user names; all if the model knows no names."""
    if model.feature_names is None or not model.takes_frame:
        return tuple(frame.columns)
    used = set(select_columns(frame.head(1), model.feature_names, owner="The model").columns) | set(needed)
    return tuple(name for name in frame.columns if name in used)


def _takes_plain_numbers(model: Model, frame: pd.DataFrame) -> bool:
    """Whether a model of numbers was made on the table's own columns: by their names, or by their number."""
    names = model.feature_names
    if names is not None and not are_made_up(names):
        numbers = [column for column in frame.columns if frame[column].dtype.kind in "biuf"]
        return all(any(same_words(name, column) for column in numbers) for name in names)
    numeric = all(frame[column].dtype.kind in "biuf" for column in frame.columns)
    return numeric and model.n_features in (None, frame.shape[1])


def _on_plain_numbers(
    model: Model, frame: pd.DataFrame, make_domain: MakeDomain, needed: Sequence[str]
) -> Matched:
    names = model.feature_names if model.feature_names and not are_made_up(model.feature_names) else None
    used = list(select_columns(frame.head(1), names, owner="The model").columns)
    kept = set(used) | set(needed)
    columns = tuple(name for name in frame.columns if name in kept)
    _check_numbers(used, frame)
    return Matched(TableModel(model, used), make_domain(columns), columns, _left_out(frame, columns))


def _check_numbers(used: Iterable[str], frame: pd.DataFrame) -> None:
    text = [name for name in used if frame[name].dtype.kind not in "biuf"]
    if text:
        raise InputError(
            f"The model takes numbers, and column {text[0]!r} is text. Audit a model that takes the table itself, "
            f"such as a pipeline with its encoder, or pass {option('encoded')}."
        )


def _encoded(model: Model, frame: pd.DataFrame, make_domain: MakeDomain) -> Matched:
    columns = tuple(frame.columns)
    domain = make_domain(columns)
    width = domain.n_features
    if model.n_features is not None and model.n_features != width:
        raise InputError(
            f"The model takes {model.n_features} numbers per person; the table has {len(columns)} columns, which are "
            f"{width} numbers when encoded (standardised numbers, one column per category). "
            "Pass a function that encodes the table and asks the model, such as "
            "lambda table: model.predict_proba(encode(table))[:, 1] (on the command line package.module:function), or "
            "save the encoder with the model: a scikit-learn pipeline (skops, ONNX), or `likewise train`."
        )
    names = [str(name) for name in domain.get_feature_names_out()]
    own = model.feature_names
    same = own is None or (len(own) == len(names) and all(map(same_words, own, names)))
    if own is not None and not are_made_up(own) and not same:
        wrong = next((a for a, b in zip(own, names, strict=False) if not same_words(a, b)), own[-1])
        raise InputError(
            f"The model was made on columns that the table does not have, such as {wrong!r}. "
            f"Encoded, the table has: {', '.join(names[:12])}, …"
        )
    return Matched(model, domain, columns, encoding_assumed=True)


def name_classes(model: Model, values: Sequence[Any], favourable: Any = None) -> Model:
    """Return the model with its classes called as the target's values are."""
    own = model.known_classes
    classes = None if own is None else own.tolist()
    if classes is not None:
        written = {_written(value): value for value in values}
        if all(_written(value) in {_written(c) for c in classes} for value in values):
            if all(any(value == c and type(value) is type(c) for c in classes) for value in values):
                return model
            return model.with_classes(label_array([written.get(_written(c), c) for c in classes]))
    elif all(isinstance(value, (int, float)) and value in range(max(2, len(values))) for value in values):
        return model
    numbered = classes is None or [_written(c) for c in classes] in _TWO_CLASSES
    if numbered and favourable is not None and len(values) <= 2:
        others = [value for value in values if value != favourable]
        if isinstance(favourable, str):
            others = others or [f"not {favourable}"]
        if others:
            return model.with_classes(label_array([*others, favourable]))
    shown = ", ".join(repr(value) for value in values[:6])
    known = "not known" if classes is None else ", ".join(repr(c) for c in classes[:6])
    remedy = "Give the target the names that the model was trained with."
    if numbered and favourable is not None:
        few = "Pass people of both labels, or no labels."
        remedy = few if len(values) < 2 else "Number them as the model does, from 0."
    elif numbered:
        remedy = f"Say which value is class 1 ({option('favourable')})."
    raise InputError(f"The model's classes are {known}; the target has {shown}. {remedy}")


def _left_out(frame: pd.DataFrame, columns: Sequence[str]) -> str:
    rest = [name for name in frame.columns if name not in set(columns)]
    return f"the model does not use {truncated(rest, most=3)}; left out." if rest else ""


def _written(value: Any) -> str:
    if str(value) in _TRUTH:
        return str(_TRUTH.index(str(value)))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# A model that takes missing values, asked about tables in which gaps are filled and marked.


# People with gaps that a model is tried on.
_TRIED = 256


class MissingCellsModel(WrappedModel):
    """Another model, shown the gaps that a marked table stands for."""

    def __init__(self, inner: Model, missing: MissingCells) -> None:
        super().__init__(inner)
        self.missing = missing

    def _for_inner(self, rows: Any) -> Any:
        return self.missing.restored(rows)


def as_recorded(model: Model, frame: pd.DataFrame) -> pd.DataFrame:
    """Return people as the user's table has them: with gaps, ids, dates and texts that an audit has stand-ins for."""
    while isinstance(model, MissingCellsModel):
        if isinstance(model.missing, MissingCells):
            frame = model.missing.restored(frame)
        model = model.inner
    return frame


def why_not_missing(model: Model, frame: pd.DataFrame) -> str | None:
    """Return why a model does not take missing values; None if it does."""
    if not model.takes_frame:
        return "it takes encoded numbers, in which nothing can be missing"
    gaps = frame.isna()
    # People who together lack whatever anybody lacks.
    first = [int(gaps[name].to_numpy().argmax()) for name in frame.columns if gaps[name].any()]
    rows = sorted({*first, *np.flatnonzero(gaps.any(axis=1).to_numpy())[:_TRIED].tolist()})
    try:
        model.outputs(frame.iloc[rows].reset_index(drop=True))
    except LikewiseError as error:
        return str(error).splitlines()[0][:200]
    return None


def refuse_missing(frame: pd.DataFrame, why: str) -> InputError:
    """Return the error for a model that does not take missing values."""
    named = truncated([repr(name) for name in frame.columns if frame[name].isna().any()], most=5)
    return InputError(
        f"The table has missing values in {named}, and the model does not take them: {why.rstrip('.')}. Choose what "
        f"stands in for them: {option('missing', 'impute')}, {option('missing', 'category')} or {option('missing', 'drop')}."
    )
