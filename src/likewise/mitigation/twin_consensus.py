"""Mend any fitted model without training: answer with the consensus over a person's twins."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.base import BaseEstimator, is_regressor

from likewise.core.checks import FloatArray, check_choice, check_matrix
from likewise.core.errors import InputError, no_rows
from likewise.core.frames import is_frame, is_raw, to_pandas
from likewise.core.parameters import parameters_from_fields
from likewise.counterfactuals.edited_rows import (
    TwinFactor,
    TwinMaker,
    canonical_rows,
    different_twins,
    maker_of,
    n_twins,
    orbit_representatives,
    ready_maker,
    spelled_out_factors,
    twin_factors,
)
from likewise.counterfactuals.edits import Edits
from likewise.models.convert import as_model
from likewise.models.losses import LossLike
from likewise.models.matching import answers_frames, frame_question
from likewise.models.model import Model
from likewise.models.model_files import LoadedModel
from likewise.models.stored import Arrays, load_beside, remade, save_beside

# The base of a smoothed model and of a consensus.


def is_regression(model: Any) -> bool:
    """Whether a fitted model predicts numbers."""
    if isinstance(model, Model):
        return model.loss.regression
    try:
        return bool(is_regressor(model))
    except (AttributeError, TypeError):  # not a scikit-learn estimator
        return False


def usual_loss(model: Any) -> LossLike:
    """Return the loss under which a fitted model is asked for what it predicts."""
    return "squared" if is_regression(model) else "cross_entropy"


class MendedModel(BaseEstimator):
    """A fitted model whose answers a subclass changes, with the methods of an estimator."""

    model: Any

    @abstractmethod
    def __likewise_model__(self, *, loss: LossLike | None = None, classes: Any = None) -> Model:
        """Return the mended model as a `likewise.models.Model`, for `as_model` and audits."""

    @abstractmethod
    def _inner(self, *, loss: LossLike | None = None, classes: Any = None) -> Model:
        """Return the model that is mended."""

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the decision about each row, (n,): a label, or the number of a regression."""
        return self.__likewise_model__().predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities (n, C)."""
        return self.__likewise_model__().predict_proba(X)

    @property
    def classes_(self) -> np.ndarray[Any, Any]:
        """Class labels of the model, in the order of `predict_proba`."""
        found = self._inner().known_classes
        if found is None:
            name = type(self).__name__
            raise AttributeError(f"{name}: the model does not know its classes before it is asked.")
        return found

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Self:
        """Read what `save` wrote; nothing in the files is executed. `trusted` is as in `load_model`."""
        found: Self = load_beside(path, trusted=trusted, cls=cls)
        return found

    def __sklearn_clone__(self) -> Self:
        # A clone of the model would not be fitted, and fitting it is not what this class does.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if is_regression(self.model) else "classifier"
        return tags


# Aggregates of the answers about a person's twins: the mean, the mean of margins, the median, the worst.


How: TypeAlias = Literal["mean", "margin", "median", "worst"]

# Lower probabilities count as this one, so that a single twin cannot dominate the mean of logarithms.
_FLOOR = 1e-12


def consensus(outputs: FloatArray, how: How, *, probabilities: bool, favourable: int = -1) -> FloatArray:
    """Return one row of outputs per person."""
    if how == "worst":
        merit = outputs[..., favourable]
        if not probabilities and outputs.shape[2] > 1:
            others = np.delete(outputs, favourable, axis=2)
            merit = merit - others.max(axis=2)
        worst = merit.argmin(axis=0)
        return np.asarray(outputs[worst, np.arange(outputs.shape[1])])
    if how == "median":
        middle = np.median(outputs, axis=0)
        return np.asarray(middle / middle.sum(axis=1, keepdims=True)) if probabilities else middle
    if how == "margin" and probabilities:
        return np.asarray(softmax(np.log(np.maximum(outputs, _FLOOR)).mean(axis=0), axis=1))
    return np.asarray(outputs.mean(axis=0))


# Another model, asked about all twins of a person: what `as_model` makes of a `TwinConsensus`.


# Rows of one question to the inner model.
_AT_ONCE = 2**17


class ConsensusModel(Model):
    """The consensus over a person's twins."""

    batch_rows = 65536

    def __init__(
        self,
        inner: Model,
        factors: Sequence[TwinFactor],
        how: How,
        *,
        favourable: Any = None,
        maker: TwinMaker | None = None,
    ) -> None:
        own: dict[str, Any] = {}
        if inner.output_kind == "scores" and inner.loss.wants == "probabilities" and how != "margin":
            own["kind"] = "probabilities"
        if inner.encoder is not None:
            # Twins are made of a table: a model that encodes tables itself is asked with tables.
            columns = tuple(column.name for column in inner.encoder.columns_)
            own |= {"takes_frame": True, "feature_names": columns, "n_features": len(columns)}
        super().__init__(**inner._like() | own, missing=True)
        self.inner, self.factors, self.how, self.favourable = inner, tuple(factors), how, favourable
        self.maker = maker

    @property
    def constant_columns(self) -> frozenset[str]:
        """Columns that it sets itself, whatever a person has there: no answer can depend on them."""
        return frozenset(str(c) for factor in self.factors if factor.everybody for c in factor.columns)

    def _rows(self, X: Any) -> Any:
        # Frames stay frames: the factors' columns have names, and the inner model picks and checks its own.
        if is_frame(X):
            frame = to_pandas(X, owner="TwinConsensus", name="X")
            if not len(frame):
                raise no_rows("TwinConsensus")
            return frame
        return super()._rows(X)

    def _answer(self, rows: Any) -> FloatArray:
        frame = as_named_frame(rows, self.feature_names)
        if self.maker is None:
            canonical = canonical_rows(frame, self.factors, owner="TwinConsensus")
            same = [c for factor in self.factors if factor.everybody for c in factor.columns]
            first, place = _distinct(canonical.drop(columns=same))
            people = frame.iloc[first]
        else:
            canonical = orbit_representatives(self.maker, frame.reset_index(drop=True))
            first, place = _distinct(canonical)
            people = canonical.iloc[first]
        plain = not isinstance(rows, pd.DataFrame)
        outputs = self._asked(people, plain)
        if self._classes is None:
            self._classes = self.inner.known_classes
        probabilities = self.output_kind == "probabilities"
        agreed = consensus(outputs, self.how, probabilities=probabilities, favourable=self._favourable())
        return np.asarray(agreed[place])

    def _asked(self, people: pd.DataFrame, plain: bool) -> FloatArray:
        """What the inner model says about all twins, (T, n, C); about each that is another row it is asked once."""
        ask = (
            self.inner.predict_proba
            if self.output_kind == "probabilities" and self.inner.output_kind == "scores"
            else self.inner.outputs
        )
        if self.maker is not None:
            made = self.maker.make(people).tables
            return np.stack([ask(table.to_numpy() if plain else table) for table in made])
        twins = list(different_twins(people, self.factors, owner="TwinConsensus"))
        answers: list[FloatArray] = []
        for tables in _together([table for _, table in twins]):
            asked = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
            found = ask(asked.to_numpy() if plain else asked)
            answers += np.split(found, np.cumsum([len(table) for table in tables])[:-1])
        outputs = np.empty((len(twins), *answers[0].shape))
        everybody = np.arange(len(people))
        for number, (source, _) in enumerate(twins):
            outputs[number, source == number] = answers[number]
            known = source != number
            outputs[number, known] = outputs[source[known], everybody[known]]
        return outputs

    def _favourable(self) -> int:
        if self.favourable is None or self._classes is None:
            return -1
        found = np.flatnonzero(self._classes == self.favourable)
        if not len(found):
            raise InputError(
                f"TwinConsensus: 'favourable' must be one of the classes {self._classes.tolist()}, "
                f"got {self.favourable!r}."
            )
        return int(found[0])


def as_named_frame(rows: Any, names: Sequence[str] | None) -> pd.DataFrame:
    """Return an array as a frame whose columns are the given names, or positions: "0", "1", …."""
    if isinstance(rows, pd.DataFrame):
        return rows
    columns = [str(i) for i in range(rows.shape[1])] if names is None else list(names)
    return pd.DataFrame(rows, columns=columns, copy=False)


def _together(tables: Sequence[pd.DataFrame]) -> Iterator[list[pd.DataFrame]]:
    """Tables that make one question: asking costs some time whatever is asked, and rows some memory."""
    group: list[pd.DataFrame] = []
    for table in tables:
        rows = sum(map(len, group))
        # Columns of other types, as of a category that only one of them has, would become another type together.
        if group and (rows + len(table) > _AT_ONCE or not table.dtypes.equals(group[0].dtypes)):
            yield group
            group = []
        group.append(table)
    yield group


def _distinct(rows: pd.DataFrame) -> tuple[Any, Any]:
    """Positions of the different rows, and which of them each row is: twins in one table are asked about once.

    A model may round a row's answer by where it stands in the table; one answer for all twins cannot differ.
    """
    place, first = np.zeros(len(rows), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for column in rows.columns:
        codes = pd.factorize(rows[column], use_na_sentinel=False)[0]
        _, first, place = np.unique(
            place * (int(codes.max(initial=0)) + 1) + codes, return_index=True, return_inverse=True
        )
    return first, place


@parameters_from_fields
class TwinConsensus(MendedModel):
    """A fitted model that answers for all twins of a person alike.

    The twins of a person are all combinations of the values of the sensitive columns and of the edits. Whoever of
    them is asked about, the model sees the same rows in the same order, and their answers become one. No named
    column can change a decision any more, whatever the model is: consistency of a correspondence study of these
    columns is 1, and nothing is left for an audit to find at no distance that only these edits make.

    Parameters
    ----------
    model : object
        A fitted model: anything `likewise.models.as_model` takes.
    sensitive_features : str, sequence of str or mapping, optional
        Columns whose value shall make no difference. `fit` looks up their values, or a mapping lists them:
        ``{"sex": ["Female", "Male"]}``. Positions as text ("0") for a model of plain arrays; an attribute that is
        not a column is looked for as 0/1 columns (``sex_Male``).
    edits : mapping, Edit or sequence, optional
        Further values that shall make no difference, as in `correspondence_study`, such as
        ``Edit("relationship", ("Husband", "Wife"))``. They concern people who have one of these values. An `Edit`
        with consequences, or another `TwinMaker`, stands alone: the twins are those it makes, learned from the people
        of `fit` unless it is fitted, and every person, their twins and the twins' twins get one answer.
    how : {"mean", "margin", "median", "worst"}, default="mean"
        Mean of the probabilities; of their logarithms (for boosted trees, of the margins); median; or the answer
        to the twin who fares worst.
    favourable : object, optional
        The class that is good to get, for "worst"; the last of the classes by default.
    takes_frame : bool, optional
        Whether the model wants the table and not an array; found out if possible, as in `as_model`. A function
        gets the table if `fit` saw one with columns that are not numbers.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Of the model.
    factors_ : tuple of TwinFactor
        Who is whose twin.
    n_twins_ : int
        How many times the model is asked about each person.
    maker_ : TwinMaker or None
        What makes the twins, if not factors.

    Notes
    -----
    A prediction costs as many of the model's as a person has twins. If all values are listed, `fit` is not
    needed. Fitting and cloning leave the model as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.counterfactuals import correspondence_study
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 3, "pay": [1, 2, 3, 4, 5, 6]})
    >>> biased = lambda t: 1 / (1 + np.exp(-(t["pay"] + 2 * (t["sex"] == "M") - 4)))
    >>> fair = TwinConsensus(biased, sensitive_features="sex").fit(people)
    >>> fair.predict(people).tolist()
    [0, 0, 0, 1, 1, 1]
    >>> correspondence_study(fair, people, {"sex": ["F", "M"]}).consistency
    1.0
    """

    model: Any = field(kw_only=False)
    sensitive_features: Any = None
    edits: Edits | TwinMaker | None = None
    how: How = "mean"
    favourable: Any = None
    takes_frame: bool | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Look up the values of the sensitive columns; the model is not touched.

        Parameters
        ----------
        X : frame or array of shape (n, p)
            People with all values that can occur.
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        frame = to_pandas(X, owner="TwinConsensus", name="X") if is_frame(X) else None
        if frame is None:
            frame = as_named_frame(check_matrix(X, owner="TwinConsensus"), self._inner().feature_names)
        loaded = LoadedModel(self.model, "import path")
        function = frame_question(loaded) is self.model
        self._raw = is_frame(X) and (is_raw(frame) or not function) and answers_frames(loaded, frame.head(5))
        self.__dict__.pop("_adapter", None)
        self.maker_ = ready_maker(self.edits, frame, owner="TwinConsensus")
        if self.maker_ is not None:
            self.factors_: tuple[TwinFactor, ...] = ()
            return self
        self.factors_ = twin_factors(self.sensitive_features, self.edits, frame, owner="TwinConsensus")
        return self

    @property
    def n_twins_(self) -> int:
        """How many times the model is asked about each person."""
        maker = self._maker()
        return n_twins(self._factors()) if maker is None else maker.n_variants

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model in its own format and, beside it, what makes the consensus; see `load_model`.

        Parameters
        ----------
        path : path-like
            Of the model's file; ``<path>.likewise.json`` comes beside it. Move both together.

        Notes
        -----
        For models of XGBoost, LightGBM, CatBoost and ONNX, the package's own, and scikit-learn's (as skops). Twins with
        consequences are written if they follow rules alone; what is learned along a graph is not.
        """
        labels, maker = self._inner().known_classes, self._maker()
        learned: dict[str, Any] = {"maker_": maker, "factors_": self._factors() if maker is None else ()}
        if labels is not None:
            learned["labels_"] = labels
        skip = ("model",) if maker is None else ("model", "edits")
        save_beside(self, path, "twin_consensus", self.model, learned, skip=skip, whole=True)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the consensus as one model of the inner model's library, for places where this package is not.

        Parameters
        ----------
        path : path-like
            ``.onnx`` for a model of ONNX with one input of numbers and ``how="mean"``: the graph once for each twin.
            ``.json`` or ``.ubj`` for XGBoost's trees and ``how="margin"``: the trees of all twins, summed.
        """
        from likewise.mitigation.consensus_files import export_consensus

        if maker_of(self.edits, owner="TwinConsensus") is not None:
            raise InputError(
                "TwinConsensus: cannot export a consensus over twins with consequences as a model of another library, "
                "which has no rules. Where they follow rules alone, save(path) writes it."
            )
        export_consensus(self, path)

    @classmethod
    def _reopened(cls, about: dict[str, Any], arrays: Arrays, model: Any) -> Self:
        made: Self = remade(cls, about, arrays, model=model)
        if made.maker_ is not None:
            made.edits = made.maker_
        made._check()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_adapter"}

    def __likewise_model__(self, *, loss: LossLike | None = None, classes: Any = None) -> Model:
        """Return the consensus as a `likewise.models.Model`, for `as_model` and audits."""
        self._check()
        maker = self._maker()
        return ConsensusModel(
            self._inner(loss=loss, classes=classes),
            self._factors() if maker is None else (),
            self.how,
            favourable=self.favourable,
            maker=maker,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "factors_") or self._spelled_out() is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _inner(self, *, loss: LossLike | None = None, classes: Any = None) -> Model:
        chosen = usual_loss(self.model) if loss is None else loss
        frame = self.takes_frame
        if frame is None and self.__dict__.get("_raw", False):
            frame = True
        labels = self.__dict__.get("labels_") if classes is None else classes
        usual = loss is None and classes is None
        # An adapter may cost more than a prediction (a file to open), so it is made once for each model.
        known: tuple[Any, Model] | None = self.__dict__.get("_adapter")
        if usual and known is not None and known[0] is self.model:
            return known[1]
        made = as_model(self.model, loss=chosen, classes=labels, takes_frame=frame)
        if usual:
            self._adapter = (self.model, made)
        return made

    def _maker(self) -> TwinMaker | None:
        found: TwinMaker | None = self.__dict__.get("maker_")
        if found is None:
            given = maker_of(self.edits, owner="TwinConsensus")
            found = given if given is not None and given.fitted else None
        return found

    def _factors(self) -> tuple[TwinFactor, ...]:
        found = getattr(self, "factors_", None)
        found = self._spelled_out() if found is None else found
        if found is None:
            raise InputError(
                "TwinConsensus: the values of the sensitive columns are not known yet. Call fit(X) with a table of "
                'people, or list them: sensitive_features={"sex": ["Female", "Male"]}.'
            )
        return found

    def _spelled_out(self) -> tuple[TwinFactor, ...] | None:
        maker = maker_of(self.edits, owner="TwinConsensus")
        if maker is not None:
            return () if maker.fitted else None
        return spelled_out_factors(self.sensitive_features, self.edits, owner="TwinConsensus")

    def _check(self) -> None:
        if self.sensitive_features is None and self.edits is None:
            raise InputError(
                "TwinConsensus: nothing says who is whose twin. Pass sensitive_features=['sex'] or edits=..."
            )
        if self.sensitive_features is not None and maker_of(self.edits, owner="TwinConsensus") is not None:
            raise InputError(
                "TwinConsensus: twins with consequences stand alone. Leave sensitive_features out; the edit names the "
                "attribute."
            )
        check_choice(self.how, get_args(How), owner="TwinConsensus", name="how")
        if self.how == "margin" and is_regression(self.model):
            raise InputError(
                "TwinConsensus: how='margin' needs classes, and the model is a regression. Use how='mean'."
            )
