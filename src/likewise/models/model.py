"""The contract of a model: classes, predictions and one loss per row, each checked before use."""

from __future__ import annotations

import copy
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import softmax

from likewise.core.checks import (
    FloatArray,
    check_choice,
    check_labels,
    check_matrix,
    check_same_length,
    is_tensor,
    to_numpy,
)
from likewise.core.errors import InputError, LikewiseError, ModelError, bad_parameter, listed, no_rows
from likewise.core.frames import check_columns, is_frame, plain_name, to_pandas
from likewise.core.text import truncated
from likewise.models.losses import Loss, LossLike, as_loss

if TYPE_CHECKING:
    from likewise.data.one_hot import OneHotColumns
    from likewise.models.oracle import Oracle

# Names that a library makes up when it was trained on an array: f0, Column_3, x1, 7.
_MADE_UP = re.compile(r"(f|x|Column_|column_|feature_)?\d+")


def are_made_up(names: Sequence[str]) -> bool:
    """Whether a library made these names up because it was trained on an array: they stand for positions."""
    return all(_MADE_UP.fullmatch(str(name)) for name in names)


def select_columns(frame: pd.DataFrame, names: Sequence[str] | None, *, owner: str) -> pd.DataFrame:
    """Return the columns a model was fitted on, by name and in its order; more columns are left out.

    Names that a library made up because it saw an array stand for positions; a library that writes
    ``hours_per_week`` for ``hours per week`` is understood.
    """
    if names is None or list(frame.columns) == list(names):
        return frame
    if all(name in frame.columns for name in names):
        return frame[list(names)]
    if are_made_up(names) and len(names) == frame.shape[1]:
        return frame
    written = {plain_name(column): column for column in frame.columns}
    if len(written) == frame.shape[1] and all(plain_name(name) in written for name in names):
        return frame[[written[plain_name(name)] for name in names]]
    check_columns(frame, names, owner=owner, name="X")
    return frame


def numeric_matrix(
    X: Any, *, owner: str, n_features: int | None = None, missing: bool = False
) -> np.ndarray[Any, np.dtype[np.floating[Any]]]:
    """Return X as a C-ordered floating array of shape (n, d) in which only NaN may be not finite, and only if `missing`."""
    X = to_numpy(X) if is_tensor(X) else X
    return np.ascontiguousarray(check_matrix(X, owner=owner, n_features=n_features, missing=missing))


def libraries_of(thing: Any) -> set[str]:
    """Return the libraries that something's class and its bases are of."""
    return {kind.__module__.split(".")[0] for kind in type(thing).__mro__}


def has_other_methods(thing: Any) -> bool:
    """Whether something has methods of its own in place of its class's: it may answer in its own way, as a subclass may."""
    return any(callable(getattr(type(thing), name, None)) for name in getattr(thing, "__dict__", ()))


def is_one_of(thing: Any, types: Mapping[str, Sequence[str]]) -> bool:
    """Whether something is of exactly one of these types; a subclass may answer in its own way."""
    name = type(thing).__name__
    return not has_other_methods(thing) and any(
        name in names and getattr(sys.modules.get(module), name, None) is type(thing)
        for module, names in types.items()
    )


def named(rows: Any, names: Sequence[str] | None) -> Any:
    """Return an array as a frame when the model knows its columns by name; a frame as it is."""
    if names is None or isinstance(rows, pd.DataFrame):
        return rows
    return pd.DataFrame(rows, columns=list(names))


def table_or_matrix(
    X: Any,
    *,
    owner: str,
    takes_frame: bool,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    missing: bool,
) -> Any:
    """Return X as the model wants it: a pandas frame of its own columns, or a numeric array (n, d)."""
    if takes_frame:
        if not is_frame(X):
            raise bad_parameter(
                owner,
                "X",
                "a table with named columns (pandas, polars or arrow), since the model was made on one",
                f"{type(X).__name__}",
                "Pass the frame, or takes_frame=False if the model takes an array.",
            )
        frame = select_columns(to_pandas(X, owner=owner, name="X"), feature_names, owner=owner)
        if len(frame) == 0:
            raise no_rows(owner)
        return frame
    if is_frame(X):
        X = select_columns(to_pandas(X, owner=owner, name="X"), feature_names, owner=owner)
        text = [str(column) for column in X.columns if X[column].dtype.kind not in "biuf"]
        if text:
            raise InputError(
                f"{owner}: 'X' has columns that are not numeric: {', '.join(text[:8])}. "
                "Encode them first (TabularDomain.from_frame(frame).encode(frame)), "
                "or pass takes_frame=True to as_model if the model takes the table itself."
            )
    return numeric_matrix(X, owner=owner, n_features=n_features, missing=missing)


def two_classes(scores: FloatArray) -> FloatArray:
    """Return class scores (n, C): one decision value f per row stands for the scores (−f/2, f/2) of two classes."""
    return np.hstack([-scores / 2, scores / 2]) if scores.shape[1] == 1 else scores


OutputKind: TypeAlias = Literal["probabilities", "scores", "values"]

# A probability may be off by the rounding of float32, and no more.
_PROBABILITY_SLACK = 1e-3


class Model(ABC):
    """Any trained model behind one small contract.

    The base class cuts the rows into batches, checks what the model answers (shape, finite, probabilities that
    are some) and turns it into losses; an adapter fills in `_answer`.

    Parameters
    ----------
    loss : Loss
        What a prediction costs.
    kind : {"probabilities", "scores", "values"}
        What `_answer` returns. One number per row stands for two classes: the probability of the second class,
        or the decision value f, which becomes the scores (−f/2, f/2).
    classes : array-like, optional
        Labels in the order of the outputs. When unknown they are 0, 1, …, as many as the first answer has.
    takes_frame : bool
        Whether the model wants the raw table and not a numeric array.
    feature_names : sequence of str, optional
        The columns it was fitted on; a table is brought into this order.
    n_features : int, optional
        How many columns an array must have.
    missing : bool, default=False
        Whether the model takes missing values itself.

    Attributes
    ----------
    classes_ : ndarray of shape (C,) or None
        Class labels; None for regression.
    loss : Loss
    takes_frame : bool
    output_kind : str
        What `outputs` returns.
    encoder : TabularDomain or None
        What the model itself encodes raw tables with; such a model takes raw tables and encoded rows alike.
    batch_rows : int
        Rows per call of the model, which bounds the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.models.losses import CrossEntropy
    >>> class Coin(Model):
    ...     def _answer(self, rows):
    ...         return np.full(len(rows), 0.5)
    >>> coin = Coin(loss=CrossEntropy(), kind="probabilities", classes=["no", "yes"])
    >>> coin.outputs(np.zeros((2, 1))).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    encoder: Any = None
    batch_rows: int = 16384
    # Unit roundoff of the arithmetic that answers.
    roundoff: float = 2.0**-53
    # What was taken for logits because nobody said what it is, in words; empty if that is known.
    _guessed: str = ""

    def __init__(
        self,
        *,
        loss: Loss,
        kind: OutputKind,
        classes: Any = None,
        takes_frame: bool = False,
        feature_names: Sequence[str] | None = None,
        n_features: int | None = None,
        missing: bool = False,
    ) -> None:
        if loss.regression != (kind == "values"):
            raise _loss_does_not_fit(loss, kind)
        self.loss = loss
        self.output_kind: OutputKind = kind
        self.takes_frame = takes_frame
        self.feature_names = None if feature_names is None else tuple(map(str, feature_names))
        self.n_features = n_features
        self._missing = missing
        self._classes = None if classes is None or loss.regression else _checked_classes(classes)

    @abstractmethod
    def _answer(self, rows: Any) -> Any:
        """Ask the model about one batch (a frame or an array, as it takes them): (n,) or (n, C)."""

    @property
    def classes_(self) -> np.ndarray[Any, Any] | None:
        """Class labels in the order of the outputs; None for regression."""
        if self.loss.regression:
            return None
        if self._classes is None:
            raise ModelError(
                f"{type(self).__name__}: the number of classes is not known before the first prediction. "
                "Pass classes=[...] to as_model, in the order of the model's outputs."
            )
        return self._classes

    @property
    def adapter(self) -> str:
        """What is between the contract and the model: the name of this class, or of the one where the model runs."""
        return type(self).__name__

    @property
    def known_classes(self) -> np.ndarray[Any, Any] | None:
        """Class labels if there are any and they are known already, else None."""
        return self._classes

    def _like(self) -> dict[str, Any]:
        """The choices of a model that takes the same rows under the same loss."""
        return {
            "loss": self.loss,
            "kind": self.output_kind,
            "classes": self.known_classes,
            "takes_frame": self.takes_frame,
            "feature_names": self.feature_names,
            "n_features": self.n_features,
        }

    @property
    def gives_probabilities(self) -> bool:
        """Whether `outputs` are class probabilities (else scores, or values for regression)."""
        return self.output_kind == "probabilities"

    def with_classes(self, classes: Any) -> Self:
        """Return the same model with other names for its classes.

        Parameters
        ----------
        classes : array-like
            As many labels as the model has classes, in the order of its outputs: ``["no", "yes"]`` for 0, 1.
        """
        labels = _checked_classes(classes)
        if self._classes is not None and len(self._classes) != len(labels):
            raise bad_parameter(
                type(self).__name__, "classes", f"{len(self._classes)} labels", labels.tolist()
            )
        renamed = copy.copy(self)
        renamed._classes = labels
        return renamed

    def with_loss(self, loss: LossLike) -> Self:
        """Return the same model under another loss of the same kind of target.

        Parameters
        ----------
        loss : str or Loss
        """
        chosen = as_loss(loss, owner=type(self).__name__)
        if chosen.regression != self.loss.regression:
            raise _loss_does_not_fit(chosen, self.output_kind)
        changed = copy.copy(self)
        changed.loss = chosen
        return changed

    def graded(self) -> Self:
        """Return the model as it answers most finely: probabilities or scores, if it would give decisions alone."""
        for loss in ("cross_entropy", "hinge"):
            if self.loss.wants != "decisions":
                break
            try:
                return self.with_loss(loss)
            except LikewiseError:
                continue
        return self

    def outputs(self, X: Any) -> FloatArray:
        """Return what the model says about each row.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows as the model takes them.

        Returns
        -------
        ndarray of shape (n, C), float64
            Probabilities or scores (see `output_kind`); (n, 1) values for regression.

        Raises
        ------
        ModelError
            When the model raises, answers in a wrong shape, or says something that is not finite.
        """
        outputs: FloatArray = self._batched(
            self._rows(X), lambda batch, start: self._canonical(self._ask(batch, start), len(batch), start)
        )
        if self._guessed and self.output_kind == "scores":
            self._check_guess(outputs)
        return outputs

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the decision for each row, (n,): a label of `classes_`, or a number for regression."""
        outputs = self.outputs(X)
        if self.classes_ is None:
            return outputs[:, 0]
        return np.asarray(self.classes_[np.argmax(outputs, axis=1)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities (n, C): the model's own, or the softmax of its logits."""
        if self.loss.wants in ("scores", "decisions") or self.output_kind == "values":
            raise InputError(
                f"{type(self).__name__}: has no probabilities under loss={self.loss.name!r}. "
                "Use as_model(model, loss='cross_entropy')."
            )
        outputs = self.outputs(X)
        if self.gives_probabilities:
            return outputs
        return np.asarray(softmax(outputs, axis=1))

    def loss_table(self, X: Any) -> FloatArray:
        """Return the loss of each row under every class label, (n, C) float64."""
        return self._finite(
            self.loss.table(self.outputs(X), probabilities=self.gives_probabilities), "the loss table"
        )

    def losses(self, X: Any, y: Any) -> FloatArray:
        """Return the loss of each row at its own label, (n,) float64.

        Parameters
        ----------
        X : table or array of shape (n, d)
        y : array-like of shape (n,)
            Labels from `classes_`; numbers for regression.
        """
        y = to_numpy(y)
        check_same_length(f"{type(self).__name__}.losses", X=X, y=y)
        return self.losses_of(self.outputs(X), y)

    def losses_of(self, outputs: FloatArray, y: Any) -> FloatArray:
        """Return the loss of each row at its own label from what `outputs` returned, (n,) float64."""
        values = self.loss.losses(outputs, self.targets(y), probabilities=self.gives_probabilities)
        return self._finite(values, "the loss")

    @property
    def decides_by_outputs(self) -> bool:
        """Whether the decision is the class with the highest output, so that `outputs` tells it too."""
        return not self.loss.regression

    def targets(self, y: Any) -> np.ndarray[Any, Any]:
        """Return labels as class indices (n,) int64, or the float64 numbers of a regression.

        Before the first prediction of a model whose classes are unknown, labels must be 0, 1, ….
        """
        owner = f"{type(self).__name__}"
        labels = check_labels(y, owner=owner, min_classes=1)
        if self.loss.regression:
            return _numbers(labels, owner)
        if self._classes is None:
            whole = labels.dtype.kind in "biu" or (labels.dtype.kind == "f" and bool((labels % 1 == 0).all()))
            if not whole or labels.min() < 0:
                raise InputError(
                    f"{owner}: 'y' has labels other than 0, 1, … and the model does not say its classes. "
                    "Pass classes=[...] to as_model, in the order of the model's outputs."
                )
            return labels.astype(np.int64)
        return _class_indices(labels, self._classes, owner)

    def linear_form(self) -> tuple[FloatArray, FloatArray] | None:
        """Return (coef (C, d), intercept (C,)) when outputs are an exact linear function of X, else None.

        For cross-entropy the probabilities are then the softmax of ``X @ coef.T + intercept``. A regression
        has C = 1.
        """
        return None

    def _rows(self, X: Any) -> Any:
        return table_or_matrix(
            X,
            owner=self.adapter,
            takes_frame=self.takes_frame,
            feature_names=self.feature_names,
            n_features=self.n_features,
            missing=self._missing,
        )

    def _batched(self, rows: Any, question: Callable[[Any, int], Any]) -> Any:
        """Ask a question about each batch of rows (and the number of its first), and put the answers together."""
        starts = range(0, len(rows), self.batch_rows)
        parts = [question(rows[start : start + self.batch_rows], start) for start in starts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _ask(
        self, batch: Any, start: int, question: Callable[[Any], Any] | None = None
    ) -> np.ndarray[Any, Any]:
        try:
            frame = isinstance(batch, pd.DataFrame)
            if frame and not (batch.index.is_unique and batch.index.is_monotonic_increasing):
                # Rows that were chosen and repeated get names by which an answer can be put in their order.
                batch = batch.set_axis(pd.RangeIndex(len(batch)))
            answer = (question or self._answer)(batch)
            if frame and isinstance(answer, pd.Series) and _reordered(answer.index, batch.index):
                answer = answer.loc[batch.index]
            return to_numpy(answer)
        except LikewiseError:
            raise
        except Exception as error:
            first_line = str(error).strip().partition("\n")[0]
            wide = "" if is_frame(batch) or batch.ndim != 2 else f" of {batch.shape[1]} numbers"
            raise ModelError(
                f"{type(self).__name__}: the model raised {type(error).__name__} on rows "
                f"{start} to {start + len(batch) - 1}{wide}: {first_line}{_types_words(batch)}"
            ) from error

    def _canonical(self, answer: np.ndarray[Any, Any], n: int, start: int) -> FloatArray:
        """Bring one batch of answers to (n, C) float64, or say what is wrong with it."""
        owner = type(self).__name__
        if answer.ndim == 1:
            answer = answer[:, None]
        if answer.ndim != 2 or len(answer) != n:
            shape = answer.shape if answer.ndim != 2 or answer.shape[1] != 1 else (len(answer),)
            raise ModelError(
                f"{owner}: the model returned shape {shape} for {n} rows, expected one row each."
            )
        if answer.dtype.kind == "c":
            raise ModelError(f"{owner}: the model returned complex numbers, expected real ones.")
        try:
            answer = answer.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{owner}: the model returned values such as {_no_number(answer)[:60]}, expected "
                "numbers. Return probabilities (a column for each of several classes), decisions as 0 and 1, such as "
                "(answer == 'yes').astype(int), or predicted numbers."
            ) from error
        finite = np.isfinite(answer)
        if not finite.all():
            bad = np.flatnonzero(~finite.all(axis=1))
            raise ModelError(
                f"{owner}: the model's output is not finite for {len(bad)} of {n} rows, "
                f"first at row {start + bad[0]}: {answer[bad[0]].tolist()}. Nothing can be said about such a model."
            )
        if self.output_kind == "values":
            if answer.shape[1] != 1:
                raise ModelError(f"{owner}: a regression needs one value per row, got {answer.shape[1]}.")
            return answer
        if self.output_kind == "probabilities":
            return self._fix_classes(_checked_probabilities(answer, owner, start))
        return self._fix_classes(two_classes(answer))

    def _fix_classes(self, outputs: FloatArray) -> FloatArray:
        """Check the number of classes, or learn it from the first answer."""
        if self._classes is None:
            self._classes = np.arange(outputs.shape[1])
        if outputs.shape[1] != len(self._classes):
            raise ModelError(
                f"{type(self).__name__}: the model returned {outputs.shape[1]} columns for "
                f"{len(self._classes)} classes {_shown(self._classes)}."
            )
        return outputs

    def _check_guess(self, outputs: FloatArray) -> None:
        """Raise if outputs that were taken for logits because nobody said what they are look like probabilities."""
        inside = bool(((outputs >= 0) & (outputs <= 1)).all())
        # To float precision; logits do that by no chance.
        if inside and bool((np.abs(outputs.sum(axis=1) - 1) < 1e-5).all()):
            raise ModelError(
                f"{self.adapter}: {self._guessed} look like probabilities (they sum to 1 in every row), and logits were "
                "expected. Pass output='probabilities' to as_model, or output='logits' if they are logits."
            )

    def _finite(self, values: FloatArray, what: str) -> FloatArray:
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))[0])
            raise ModelError(
                f"{type(self).__name__}: {what} ({self.loss.name}) is not finite at row {row}: {values[row]}."
            )
        return values


class DifferentiableModel(Model):
    """A model whose loss can be differentiated by its input.

    Examples
    --------
    >>> import torch
    >>> import likewise as lw
    >>> net = torch.nn.Linear(1, 2)
    >>> isinstance(lw.as_model(net), DifferentiableModel), isinstance(lw.as_model(lambda rows: 0.5), DifferentiableModel)
    (True, False)
    """

    @abstractmethod
    def gradient_oracle(self) -> Oracle:
        """Return an `Oracle` for loss and input gradient on encoded rows, in the model's own precision."""


def _reordered(found: pd.Index[Any], own: pd.Index[Any]) -> bool:
    """Whether an answer names the rows it was asked about in another order."""
    return (
        len(found) == len(own) and not found.equals(own) and found.is_unique and bool(found.isin(own).all())
    )


def _no_number(answer: np.ndarray[Any, Any]) -> str:
    """The first answer that cannot be a number."""
    return repr(next((one for one in answer.ravel().tolist() if not isinstance(one, (int, float))), None))


def _types_words(batch: Any) -> str:
    """Say of which types the columns of a table are, since a model of words raises anything about numbers."""
    if not is_frame(batch) or not hasattr(batch, "dtypes"):
        return ""
    shown = truncated([f"{name} {kind}" for name, kind in batch.dtypes.items()], most=8)
    return f". The model was handed the columns {shown}; pass them as it was trained with, in the same types and words."


def check_output(output: object) -> None:
    """Raise unless `output` is one of the words that say what a model returns."""
    check_choice(output, ("auto", "probabilities", "logits"), owner="as_model", name="output")


def _loss_does_not_fit(loss: Loss, kind: OutputKind) -> InputError:
    words = ("regression loss for a regressor", "'squared', or CustomLoss(function, regression=True)")
    if kind != "values":
        words = ("classification loss for a classifier", "'cross_entropy', 'hinge' or 'zero_one'")
    return bad_parameter("as_model", "loss", f"a {words[0]}", loss.name, f"Pass loss={words[1]}.")


def _checked_classes(classes: Any) -> np.ndarray[Any, Any]:
    labels = to_numpy(classes)
    if labels.ndim != 1 or len(labels) < 2 or len(pd.unique(labels)) != len(labels):
        raise bad_parameter(
            "as_model", "classes", "two or more different labels, in the order of the outputs", classes
        )
    return labels


def _checked_probabilities(answer: FloatArray, owner: str, start: int) -> FloatArray:
    if answer.shape[1] == 1:
        answer = np.hstack([1.0 - answer, answer])
    wrong = (answer < -_PROBABILITY_SLACK).any(axis=1) | (answer > 1 + _PROBABILITY_SLACK).any(axis=1)
    wrong |= np.abs(answer.sum(axis=1) - 1) > _PROBABILITY_SLACK
    if wrong.any():
        row = int(wrong.argmax())
        raise ModelError(
            f"{owner}: the model's outputs are not probabilities at row {start + row}: {answer[row].tolist()}. "
            "If they are logits, pass output='logits' to as_model; if they are predicted numbers, loss='squared'."
        )
    return np.clip(answer, 0.0, 1.0)


def _class_indices(
    labels: np.ndarray[Any, Any], classes: np.ndarray[Any, Any], owner: str
) -> np.ndarray[Any, Any]:
    if labels.dtype.kind == "b" and classes.dtype.kind in "iuf":
        labels = labels.astype(np.int64)
    index = pd.Index(classes.tolist()).get_indexer(pd.Index(labels.tolist()))
    if (index < 0).any():
        row = int((index < 0).argmax())
        raise InputError(
            f"{owner}: 'y' has a label that the model does not know: {labels.tolist()[row]!r} "
            f"(first at row {row}). Its classes: {_shown(classes)}. Map the labels to these, or say what the model's "
            "outputs stand for: as_model(model, classes=[...])."
        )
    return np.asarray(index, dtype=np.int64)


def _numbers(labels: np.ndarray[Any, Any], owner: str) -> FloatArray:
    try:
        numbers = labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise bad_parameter(owner, "y", "numbers, for a regression", str(error)) from error
    if not np.isfinite(numbers).all():
        row = int((~np.isfinite(numbers)).argmax())
        raise InputError(f"{owner}: 'y' is not finite at row {row}. Drop that row.")
    return numbers


def label_array(labels: list[Any]) -> np.ndarray[Any, Any]:
    """Return labels as an array that keeps each one's type."""
    if len({type(label) for label in labels}) == 1:
        return np.array(labels)
    mixed = np.empty(len(labels), dtype=object)
    mixed[:] = labels
    return mixed


def _shown(classes: np.ndarray[Any, Any]) -> str:
    return f"[{listed([repr(label) for label in classes.tolist()], 10)}]"


class WrappedModel(Model):
    """Another model, asked about rows that are made of a table's."""

    def __init__(self, inner: Model, columns: Sequence[str] | None = None) -> None:
        own = {"takes_frame": True, "feature_names": columns, "n_features": None}
        super().__init__(**inner._like() | own)
        self.inner = inner

    def with_loss(self, loss: LossLike) -> Self:
        """Return the same, around the inner model under another loss."""
        changed = super().with_loss(loss)
        changed.inner = self.inner.with_loss(loss)
        changed.output_kind = changed.inner.output_kind
        return changed

    @abstractmethod
    def _for_inner(self, rows: Any) -> Any:
        """Return rows as the inner model takes them."""

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the inner model's own decisions, under the names of this model's classes."""
        own = self.inner.predict(self._for_inner(self._rows(X)))
        if self._classes is None:
            self._classes = self.inner.known_classes
        return own if self._classes is None else np.asarray(self._classes[self.inner.targets(own)])

    @property
    def decides_by_outputs(self) -> bool:
        """Whether the inner model does so."""
        return self.inner.decides_by_outputs

    def _answer(self, rows: Any) -> Any:
        return self.inner.outputs(self._for_inner(rows))


class TableModel(WrappedModel):
    """A model of plain numbers, shown the columns of a raw table as they are.

    An audit encodes a table for a model of numbers; a model that was trained on the table's own numbers must not
    get them standardised.
    """

    def _for_inner(self, rows: Any) -> np.ndarray[Any, Any]:
        return np.asarray(rows.to_numpy(dtype=np.float64))


class OneHotModel(WrappedModel):
    """A model fitted on one-hot columns, shown the columns of a raw table that their names stand for."""

    def __init__(self, inner: Model, encoding: OneHotColumns) -> None:
        super().__init__(inner, encoding.columns)
        self.encoding = encoding

    def _for_inner(self, rows: Any) -> pd.DataFrame:
        return self.encoding.encode(rows)
