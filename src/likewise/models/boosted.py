"""XGBoost, LightGBM and CatBoost models, native and scikit-learn wrappers, with their own missing values and categories."""

from __future__ import annotations

import json
import re
import sys
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise.core.errors import InputError, listed, require
from likewise.core.frames import with_columns
from likewise.core.text import option
from likewise.models.losses import Loss, LossLike, as_loss
from likewise.models.model import OutputKind, is_one_of, named
from likewise.models.sklearn_model import EstimatorModel

# Text columns as the categories that a boosted model learned: a CSV has words where the model knows
# categories.


Categories = dict[str, list[Any]]


def as_categories(frame: Any, categories: Mapping[str, list[Any]], *, owner: str) -> Any:
    """Return a frame whose text columns are categorical wherever the model learned categories."""
    if not isinstance(frame, pd.DataFrame):
        return frame
    changed = {}
    for name, known in categories.items():
        if name not in frame.columns or isinstance(frame[name].dtype, pd.CategoricalDtype):
            continue
        column = frame[name]
        new = column[~column.isin(known) & column.notna()]
        if len(new):
            shown = listed([repr(one) for one in known])
            raise InputError(
                f"{owner}: column {name!r} has the value {new.iloc[0]!r}, which the model never saw. "
                f"Its categories: {shown}. Where it means that the value is missing, leave the cell empty. "
                f"{option('empty', str(new.iloc[0]))} does so."
            )
        changed[name] = pd.Categorical(column, categories=pd.Index(known, dtype=_dtype(known)))
    return with_columns(frame, changed) if changed else frame


def xgboost_categories(booster: Any) -> Categories:
    """Return the categories of an XGBoost booster by column; none if the version did not store them."""
    if not any(kind == "c" for kind in booster.feature_types or []) or not hasattr(booster, "get_categories"):
        return {}
    try:
        found = booster.get_categories(export_to_arrow=True).to_arrow()
    except (TypeError, ValueError, AttributeError):
        return {}
    return {str(name): values.to_pylist() for name, values in found if values is not None}


def lightgbm_categories(booster: Any, header: str) -> Categories:
    """Return the categories of a LightGBM booster by column."""
    lists = [list(part) for part in booster.pandas_categorical or []]
    found = re.search(r"^feature_infos=(.*)$", header, flags=re.MULTILINE)
    infos = found.group(1).split() if found else []
    names = [
        name
        for name, info in zip(booster.feature_name(), infos, strict=False)
        if not info.startswith("[") and info != "none"
    ]
    return dict(zip(names, lists, strict=True)) if len(names) == len(lists) else {}


def _dtype(known: list[Any]) -> Any:
    return object if any(isinstance(value, str) for value in known) else np.asarray(known).dtype


# What the adapters below are made for, by library and exact type: a subclass may answer in its own way.
_TYPES = {
    "xgboost": (
        "Booster", "XGBClassifier", "XGBModel", "XGBRFClassifier", "XGBRFRegressor", "XGBRanker", "XGBRegressor",
    ),
    "lightgbm": ("Booster", "LGBMClassifier", "LGBMModel", "LGBMRanker", "LGBMRegressor"),
    "catboost": ("CatBoost", "CatBoostClassifier", "CatBoostRanker", "CatBoostRegressor"),
}  # fmt: skip


class _Facts(NamedTuple):
    """What a library says of a fitted model; its own classes are None if it has none."""

    kind: OutputKind
    classes: Any
    n_classes: int
    wants_table: bool
    names: Any
    n_features: int


class _BoostedModel(EstimatorModel):
    """What the adapters of the three libraries share: a subclass fills `_facts`, `_answer` and `_prepared`."""

    _library: str
    _label: str

    def __init__(
        self,
        model: Any,
        *,
        loss: LossLike = "cross_entropy",
        classes: Any = None,
        takes_frame: bool | None = None,
    ) -> None:
        library = require(self._library, extra="boosting", why=f"Auditing {self._label} model")
        objective = as_loss(loss)
        facts = self._facts(model, objective, library)
        if facts.classes is None and classes is None and facts.kind != "values":
            classes = np.arange(facts.n_classes)
        # For the 0–1 loss of a model that decides itself, its decisions are returned as one-hot rows.
        decided = facts.classes is not None and objective.wants == "decisions"
        super().__init__(
            model,
            own_classes=facts.classes,
            classes=classes,
            loss=objective,
            kind="probabilities" if decided else facts.kind,
            takes_frame=facts.wants_table if takes_frame is None else takes_frame,
            feature_names=facts.names,
            n_features=facts.n_features,
            missing=True,
        )

    @abstractmethod
    def _facts(self, model: Any, loss: Loss, library: Any) -> _Facts:
        """Return what the library says of the model."""

    def _prepared(self, rows: Any) -> Any:
        return rows

    def _decide(self, rows: Any) -> Any:
        return self.estimator.predict(self._prepared(rows))


class XGBoostModel(_BoostedModel):
    """An XGBoost `Booster`, `XGBClassifier` or `XGBRegressor`.

    Parameters
    ----------
    model : xgboost.Booster or wrapper
        Trained with a logistic, softmax or hinge objective, or for regression.
    loss : str, Loss or callable, default="cross_entropy"
    classes : array-like, optional
        Labels in the order of the outputs; the wrapper's own, or 0, 1, … by default.
    takes_frame : bool, optional
        Whether it wants the table; by default when it was trained with categorical columns.

    Notes
    -----
    Cross-entropy goes by the model's own probabilities, which XGBoost computes in single precision: one that rounds to 1
    leaves 0 for the other class. Hinge and a user's own loss get margins. The decisions of a wrapper, and its 0–1 loss, are those of its
    own `predict`; a `Booster` decides nothing, so the class with the largest margin is its decision.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> from xgboost import XGBClassifier
    >>> model = XGBoostModel(XGBClassifier(n_estimators=3, min_child_weight=0).fit(X, y))
    >>> model.predict(X).tolist(), model.output_kind
    ([0, 0, 1, 1], 'probabilities')
    """

    _library, _label = "xgboost", "an XGBoost"

    def _facts(self, model: Any, loss: Loss, library: Any) -> _Facts:
        native = isinstance(model, library.Booster)
        self._booster = booster = model if native else _fitted(model, model.get_booster)
        learner = json.loads(booster.save_config())["learner"]
        custom = callable(getattr(model, "objective", None))
        name = "custom" if custom else str(learner["objective"]["name"])
        if name == "multi:softmax" or (name == "binary:logitraw" and native):
            kind: OutputKind = "scores"
        else:
            kind = _kind("XGBoost", name, loss)
            # A user's own loss gets margins.
            kind = kind if kind == "values" or loss.wants == "probabilities" else "scores"
        self._categories = xgboost_categories(booster)
        n_classes = max(2, int(learner["learner_model_param"]["num_class"]))
        own = _own_classes(model, kind, native=native)
        names, width = booster.feature_names, int(booster.num_features())
        return _Facts(kind, own, n_classes, _has_categories(booster), names, width)

    def _answer(self, rows: Any) -> Any:
        if self.decides and self.loss.wants == "decisions":
            return self._decisions(rows)
        margin, rows = self.output_kind == "scores", self._prepared(rows)
        if self.estimator is not self._booster:
            if self.gives_probabilities and self.decides:
                return self.estimator.predict_proba(rows)
            return self.estimator.predict(rows, output_margin=margin)
        matrix = sys.modules["xgboost"].DMatrix(rows, enable_categorical=True)
        return self._booster.predict(matrix, output_margin=margin)

    def _prepared(self, rows: Any) -> Any:
        return named(as_categories(rows, self._categories, owner="XGBoostModel"), self.feature_names)


class LightGBMModel(_BoostedModel):
    """A LightGBM `Booster`, `LGBMClassifier` or `LGBMRegressor`.

    Parameters
    ----------
    model : lightgbm.Booster or wrapper
        Trained with a binary, cross-entropy or multiclass objective, or for regression.
    loss, classes, takes_frame
        As for `XGBoostModel`.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> from lightgbm import LGBMClassifier
    >>> trees = LGBMClassifier(n_estimators=3, min_child_samples=1, min_data_in_bin=1, verbose=-1).fit(X, y)
    >>> LightGBMModel(trees).predict(X).tolist()
    [0, 0, 1, 1]
    """

    _library, _label = "lightgbm", "a LightGBM"

    def _facts(self, model: Any, loss: Loss, library: Any) -> _Facts:
        native = isinstance(model, library.Booster)
        self._booster = booster = model if native else _fitted(model, lambda: model.booster_)
        header = booster.model_to_string(num_iteration=1)
        found = re.search(r"^objective=(\S+)", header, flags=re.MULTILINE)
        kind = _kind("LightGBM", found.group(1) if found else "custom", loss)
        has_categories = any(len(part) > 0 for part in booster.pandas_categorical or [])
        self._categories = lightgbm_categories(booster, header) if has_categories else {}
        n_classes = max(2, int(booster.num_model_per_iteration()))
        own = _own_classes(model, kind, native=native)
        names, width = booster.feature_name(), int(booster.num_feature())
        return _Facts(kind, own, n_classes, has_categories, names, width)

    def _answer(self, rows: Any) -> Any:
        if self.decides and self.loss.wants == "decisions":
            return self._decisions(rows)
        rows, raw = self._prepared(rows), self.output_kind == "scores"
        if self.estimator is self._booster or not self.gives_probabilities:
            return self.estimator.predict(rows, raw_score=raw)
        return self.estimator.predict_proba(rows)

    def _prepared(self, rows: Any) -> Any:
        rows = as_categories(rows, self._categories, owner="LightGBMModel")
        return rows if self.estimator is self._booster else named(rows, self.feature_names)


class CatBoostModel(_BoostedModel):
    """A `CatBoost`, `CatBoostClassifier` or `CatBoostRegressor`.

    Parameters
    ----------
    model : catboost.CatBoost or a subclass
        Trained with Logloss, CrossEntropy or MultiClass, or for regression.
    loss, classes, takes_frame
        As for `XGBoostModel`.

    Notes
    -----
    Decisions, and the 0–1 loss, are CatBoost's own classes, which respect a probability threshold.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> from catboost import CatBoostClassifier
    >>> trees = CatBoostClassifier(iterations=3, verbose=False, allow_writing_files=False).fit(X, y)
    >>> CatBoostModel(trees).predict(X).tolist()
    [0, 0, 1, 1]
    """

    _library, _label = "catboost", "a CatBoost"

    def _facts(self, model: Any, loss: Loss, library: Any) -> _Facts:
        if not model.is_fitted():
            raise _not_fitted(model)
        kind = _kind("CatBoost", catboost_objective(model), loss)
        own = None if kind == "values" else np.asarray(model.classes_)
        own = np.arange(2) if own is not None and not len(own) else own
        raw_columns = [*model.get_cat_feature_indices(), *model.get_text_feature_indices()]
        return _Facts(kind, own, 2, bool(raw_columns), model.feature_names_, len(model.feature_names_))

    def _answer(self, rows: Any) -> Any:
        if self.output_kind == "values":
            return self.estimator.predict(rows)
        if self.loss.wants == "decisions":
            return self._decisions(rows)
        kind = "RawFormulaVal" if self.output_kind == "scores" else "Probability"
        return self.estimator.predict(rows, prediction_type=kind)

    def _decide(self, rows: Any) -> Any:
        return self.estimator.predict(rows, prediction_type="Class")


ADAPTERS = {model._library: model for model in (XGBoostModel, LightGBMModel, CatBoostModel)}


def catboost_objective(model: Any) -> str:
    """Return the loss function a CatBoost model was trained with, also of a sum of models.

    `sum_models` keeps no parameters. Its description has the loss function if the summed models share one.
    """
    keys = model.get_metadata()
    if "params" in keys:
        return str(model.get_all_params()["loss_function"])
    if "loss_function" in keys:
        return str(json.loads(keys["loss_function"])["type"])
    return "Logloss" if type(model).__name__ == "CatBoostClassifier" else "unknown"


# What the objectives of a library are, by name: those of numbers, those of probabilities, and those of scores that are
# no probabilities.
_OBJECTIVES = {
    # The `predict_proba` of a wrapper returns the margin f of binary:logitraw as (1 − f, f).
    "XGBoost": (
        r"(reg|count):(?!logistic$).*",
        ("binary:logistic", "reg:logistic", "multi:softprob"),
        ("binary:hinge", "binary:logitraw"),
    ),
    "LightGBM": (
        r"(regression|huber|fair|poisson|quantile|mape|gamma|tweedie).*",
        ("binary", "cross_entropy", "multiclass"),
        ("multiclassova",),
    ),
    "CatBoost": (
        r"(RMSE|MAE|Quantile|Huber|LogCosh|Lq|Expectile|Poisson|Tweedie|MAPE)(:.*)?",
        ("Logloss", "CrossEntropy", "MultiClass"),
        ("MultiClassOneVsAll",),
    ),
}


def _kind(library: str, name: str, loss: Loss) -> OutputKind:
    """What a model with a known objective is asked for under a loss."""
    numbers, logistic, no_probabilities = _OBJECTIVES[library]
    # A regressor of shares predicts numbers too, if it is asked for them.
    if re.fullmatch(numbers, name) or (loss.regression and name == "reg:logistic"):
        return "values"
    if name in no_probabilities:
        if loss.wants == "probabilities":
            raise InputError(
                f"as_model: a {library} model with objective {name!r} gives no probabilities that sum to 1. "
                "Use loss='hinge' or 'zero_one', or train with a logistic or softmax objective."
            )
        return "scores"
    if name in logistic:
        return "scores" if loss.wants == "scores" else "probabilities"
    raise InputError(
        f"as_model: cannot tell what a {library} model with objective {name!r} returns. "
        "Pass a function that returns probabilities instead."
    )


def _own_classes(model: Any, kind: OutputKind, *, native: bool) -> Any:
    own = None if native or kind == "values" else getattr(model, "classes_", None)
    return None if own is None else np.asarray(own)


def _not_fitted(model: Any) -> InputError:
    return InputError(f"as_model: {type(model).__name__} is not fitted. Call fit(X, y) first.")


def _fitted(model: Any, get: Any) -> Any:
    try:
        return get()
    except Exception as error:
        raise _not_fitted(model) from error


def is_exactly(model: Any, library: str) -> bool:
    """Whether a model is of one of a library's own types: a subclass may answer in its own way."""
    # If the library cannot be imported, its adapter says so.
    return sys.modules.get(library) is None or is_one_of(model, {library: _TYPES[library]})


def has_raw_columns(model: Any) -> bool | None:
    """Whether a fitted wrapper of one of the libraries, or of a subclass, was trained with categories or text."""
    try:
        if hasattr(model, "get_booster"):
            return _has_categories(model.get_booster())
        if hasattr(model, "booster_"):
            return any(len(part) > 0 for part in model.booster_.pandas_categorical or [])
        return bool(model.get_cat_feature_indices()) or bool(model.get_text_feature_indices())
    except Exception:  # not fitted, or not a wrapper: the adapter that is asked next says so
        return None


def _has_categories(booster: Any) -> bool:
    return any(kind == "c" for kind in booster.feature_types or [])
