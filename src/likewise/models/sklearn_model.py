"""Scikit-learn's classifiers, regressors and pipelines as models, and what all fitted estimators share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pandas as pd

from likewise.core.checks import to_numpy
from likewise.core.errors import InputError, ModelError, bad_parameter
from likewise.models.losses import Loss, LossLike, as_loss
from likewise.models.model import Model, OutputKind, named

# Estimators whose `predict` is the class of the highest probability, so that one question answers both.
_BY_PROBABILITY = frozenset(
    {
        "xgboost.XGBClassifier",
        "lightgbm.LGBMClassifier",
        "sklearn.RandomForestClassifier",
        "sklearn.ExtraTreesClassifier",
        "sklearn.DecisionTreeClassifier",
    }
)


class EstimatorModel(Model):
    """A model whose decisions are those of its estimator, which need not be the class of the largest output.

    Parameters
    ----------
    estimator : object
        What was fitted.
    own_classes : array or None
        The labels that its own decisions use, in the order of the outputs; None for a regression, and for a model that
        returns numbers only.
    classes : array-like, optional
        Other names for them.
    **choices
        As `Model` takes them.
    """

    batch_rows = 65536

    def __init__(
        self, estimator: Any, *, own_classes: np.ndarray[Any, Any] | None, classes: Any = None, **choices: Any
    ) -> None:
        self.estimator, self._own_classes = estimator, own_classes
        if own_classes is not None and len(own_classes) == 1:
            raise ModelError(
                f"as_model: {type(estimator).__name__} was fitted on labels of one class only ({own_classes[0]}), so every "
                "decision is that class. Pass an estimator that was fitted on two or more classes."
            )
        if classes is not None and own_classes is not None and len(classes) != len(own_classes):
            raise bad_parameter(
                "as_model",
                "classes",
                f"{len(own_classes)} labels, one for each of the estimator's classes",
                classes,
            )
        super().__init__(classes=own_classes if classes is None else classes, **choices)

    @property
    def decides(self) -> bool:
        """Whether the estimator decides itself."""
        return self._own_classes is not None

    @property
    def decides_by_outputs(self) -> bool:
        """Whether the estimator's decision is known to be the class of its highest probability."""
        if not self.decides:
            return True
        last = getattr(self.estimator, "steps", [(None, self.estimator)])[-1][1]
        named = f"{type(last).__module__.partition('.')[0]}.{type(last).__name__}"
        return self.gives_probabilities and named in _BY_PROBABILITY

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the estimator's own decisions, (n,)."""
        classes = self.classes_
        if classes is None or not self.decides:
            return super().predict(X)
        hot = self._batched(self._rows(X), lambda batch, start: self._ask(batch, start, self._decisions))
        return np.asarray(classes[hot.argmax(axis=1)])

    def with_loss(self, loss: LossLike) -> Self:
        """Return the same model under another loss, asked for what that loss needs; see `Model.with_loss`."""
        changed = super().with_loss(loss)
        choices: dict[str, Any] = {"takes_frame": self.takes_frame, "classes": self._classes}
        return type(self)(self.estimator, loss=changed.loss, **choices)

    @abstractmethod
    def _decide(self, rows: Any) -> Any:
        """Return the estimator's label of each row of a batch."""

    def _decisions(self, rows: Any) -> np.ndarray[Any, Any]:
        """Return what the estimator decides as one-hot rows, (n, C)."""
        assert self._own_classes is not None
        labels, owner = to_numpy(self._decide(rows)).ravel(), type(self).__name__
        if len(labels) != len(rows):
            raise ModelError(f"{owner}: predict returned {len(labels)} labels for {len(rows)} rows.")
        hot = labels[:, None] == self._own_classes[None, :]
        if not np.all(np.any(hot, axis=1)):
            unknown = labels[int(np.argmin(np.any(hot, axis=1)))]
            raise ModelError(
                f"{owner}: predict returned {unknown!r}, which is not among the model's classes "
                f"{self._own_classes[:10].tolist()}."
            )
        return np.asarray(hot, dtype=np.float64)


class SklearnModel(EstimatorModel):
    """A fitted scikit-learn estimator or pipeline, or anything that keeps to its conventions.

    Parameters
    ----------
    estimator : object
        With `predict_proba` (cross-entropy), `decision_function` (hinge), `predict` (0–1 loss, regression).
    loss : str, Loss or callable, default="cross_entropy"
    classes : array-like, optional
        Other names for the estimator's ``classes_``, in the same order.
    takes_frame : bool, optional
        Whether it wants the raw table. By default that is seen from what is inside (column transformers, encoders,
        categorical columns).

    Notes
    -----
    `predict` is the estimator's own decision, which for a classifier with a tuned threshold is not the class of the
    largest probability; the 0–1 loss goes by that decision too. A row to which every class is given the probability 0, as by
    one-vs-rest trees that all say no, has classes that are equally likely, as in `CalibratedClassifierCV`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "no", "yes", "yes"]
    >>> model = SklearnModel(LogisticRegression().fit(X, y))
    >>> model.classes_.tolist(), model.predict(X).tolist()
    (['no', 'yes'], ['no', 'no', 'yes', 'yes'])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        loss: LossLike = "cross_entropy",
        classes: Any = None,
        takes_frame: bool | None = None,
    ) -> None:
        objective = as_loss(loss)
        _check_fitted(estimator)
        kind, self._method = _question(estimator, objective)
        super().__init__(
            estimator,
            own_classes=None if kind == "values" else _single_output_classes(estimator),
            classes=classes,
            loss=objective,
            kind=kind,
            takes_frame=wants_table(estimator) if takes_frame is None else takes_frame,
            feature_names=getattr(estimator, "feature_names_in_", None),
            n_features=getattr(estimator, "n_features_in_", None),
            missing=True,
        )

    def with_loss(self, loss: LossLike) -> Self:
        """Return the same model under another loss, asked for what that loss needs; see `Model.with_loss`."""
        changed = Model.with_loss(self, loss)
        changed.output_kind, changed._method = _question(self.estimator, changed.loss)
        return changed

    def _answer(self, rows: Any) -> Any:
        if self._method == "decisions":
            return self._decisions(rows)
        answer = getattr(self.estimator, self._method)(
            by_place(self.estimator, named(rows, self.feature_names))
        )
        return _or_equal(answer) if self._method == "predict_proba" else answer

    def _decide(self, rows: Any) -> Any:
        return self.estimator.predict(by_place(self.estimator, named(rows, self.feature_names)))


def by_place(estimator: Any, rows: Any) -> Any:
    """Return a table with numbered columns if the estimator knows them by their places: their names were not text."""
    if not isinstance(rows, pd.DataFrame) or hasattr(estimator, "feature_names_in_"):
        return rows
    own = any(type(part).__module__.split(".")[0] != "sklearn" for part in _parts(estimator))
    if own or getattr(estimator, "n_features_in_", None) != rows.shape[1]:
        return rows
    return rows.set_axis(pd.RangeIndex(rows.shape[1]), axis=1)


def _or_equal(probabilities: Any) -> Any:
    """Equal probabilities in place of rows of zeros only."""
    p = to_numpy(probabilities)
    if p.ndim != 2 or p.shape[1] < 2 or p.any(axis=1).all():
        return probabilities
    return np.where(p.any(axis=1, keepdims=True), p, 1.0 / p.shape[1])


def wants_table(estimator: object) -> bool:
    """Whether an estimator has to be given the raw table: something inside reads columns by name or kind."""
    if not hasattr(estimator, "feature_names_in_") and hasattr(estimator, "n_features_in_"):
        return False
    return any(_reads_columns(part) for part in _parts(estimator))


def _reads_columns(part: object) -> bool:
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, TargetEncoder

    if isinstance(part, (ColumnTransformer, OneHotEncoder, OrdinalEncoder, TargetEncoder)):
        return True
    # A function of a table may name its columns.
    if isinstance(part, FunctionTransformer) and part.func is not None:
        return True
    # HistGradientBoosting that found categorical columns, and the package's own TabularDomain.
    categorical = getattr(part, "is_categorical_", None)
    return (categorical is not None and bool(np.any(categorical))) or hasattr(part, "encode_array")


def _parts(estimator: object, depth: int = 0) -> Iterator[object]:
    """Walk an estimator and what is fitted inside it (pipelines, searches, calibration, ensembles)."""
    yield estimator
    if depth > 4:
        return
    lists = ("steps", "estimators", "transformer_list")
    pairs = [pair for name in lists for pair in getattr(estimator, name, None) or []]
    inner: list[object] = [pair[1] for pair in pairs if isinstance(pair, tuple)]
    wrapped = ("best_estimator_", "estimator_", "estimator", "regressor_")
    for part in (*inner, *(getattr(estimator, name, None) for name in wrapped)):
        if part is not None and not isinstance(part, str):
            yield from _parts(part, depth + 1)


def _question(estimator: Any, loss: Loss) -> tuple[OutputKind, str]:
    """Return the kind of answer, and the method to ask for it."""
    if _is_regressor(estimator):
        return "values", "predict"
    if loss.regression:
        return "probabilities", "predict"
    if loss.wants == "decisions":
        return "probabilities", "decisions"
    kind = type(estimator).__name__
    has_proba, has_scores = (hasattr(estimator, name) for name in ("predict_proba", "decision_function"))
    if loss.wants == "scores" and not has_scores:
        raise InputError(
            f"as_model: loss={loss.name!r} needs class scores, and {kind} has no decision_function. "
            "Use loss='cross_entropy' or 'zero_one'."
        )
    if loss.wants == "scores" or (loss.wants != "probabilities" and has_scores and not has_proba):
        return "scores", "decision_function"
    if not has_proba:
        raise InputError(
            f"as_model: loss={loss.name!r} needs probabilities, and {kind} has no predict_proba. "
            "Wrap it in CalibratedClassifierCV, or use loss='hinge' or 'zero_one'."
        )
    return "probabilities", "predict_proba"


def _is_regressor(estimator: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(estimator))
    except (AttributeError, TypeError):
        return getattr(estimator, "_estimator_type", None) == "regressor"


def _check_fitted(estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise InputError(
            f"as_model: {type(estimator).__name__} is not fitted. Call fit(X, y) first."
        ) from error
    except (TypeError, AttributeError):
        # No scikit-learn estimator, only something that predicts like one.
        return


def _single_output_classes(estimator: Any) -> np.ndarray[Any, Any]:
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise InputError(
            f"as_model: {type(estimator).__name__} has no classes_. Name the labels that it decides "
            "between, such as model.classes_ = numpy.array(['no', 'yes']), or pass a function that returns probabilities."
        )
    if isinstance(classes, list) and any(
        np.ndim(part) == 1 and not isinstance(part, str) for part in classes
    ):
        raise InputError(
            f"as_model: {type(estimator).__name__} predicts several targets at once. "
            "Audit one target at a time, with a function that returns its probabilities."
        )
    return np.asarray(classes)
