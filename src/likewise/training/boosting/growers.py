"""Growing trees from given gradients, one round at a time: XGBoost and LightGBM behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from likewise.core.checks import FloatArray, check_choice, check_integer, check_number
from likewise.core.errors import require

Library: TypeAlias = Literal["xgboost", "lightgbm"]

_WHY = "Fair boosting"


@dataclass(frozen=True)
class BoostingConfig:
    """How trees are grown: what most users leave alone.

    Parameters
    ----------
    min_child_weight : float, default=1.0
    reg_lambda : float, default=1.0
    subsample, colsample : float in (0, 1], default=1.0
        Share of the rows, and of the columns, that each tree gets.
    max_bins : int, default=256
    n_neighbors : int, default=16
        Comparable people to whom each person may be moved in the worst case.
    patience : int or None, default=40
        Rounds without a better held-out goal before it stops.
    n_jobs : int, default=1

    Examples
    --------
    >>> from likewise.training import FairBoostingClassifier
    >>> FairBoostingClassifier("sex", training=BoostingConfig(colsample=0.5)).training.colsample
    0.5
    """

    min_child_weight: float = 1.0
    reg_lambda: float = 1.0
    subsample: float = 1.0
    colsample: float = 1.0
    max_bins: int = 256
    n_neighbors: int = 16
    patience: int | None = 40
    n_jobs: int = 1

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for name in ("min_child_weight", "reg_lambda"):
            check_number(getattr(self, name), owner=owner, name=name, low=0)
        for name in ("subsample", "colsample"):
            check_number(getattr(self, name), owner=owner, name=name, low=0, high=1, open_low=True)
        for name, least in (("n_neighbors", 1), ("max_bins", 2)):
            check_integer(getattr(self, name), owner=owner, name=name, low=least)
        if self.patience is not None:
            check_number(self.patience, owner=owner, name="patience", low=1)


@dataclass(frozen=True)
class TreeChoices:
    """How each tree is grown."""

    learning_rate: float
    max_depth: int
    config: BoostingConfig
    categorical: tuple[bool, ...]
    monotone: tuple[int, ...]
    seed: int


class TreeGrower(ABC):
    """An ensemble that grows on fixed rows; scores are (n, C), for two classes (0, f)."""

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = 1 if n_classes == 2 else n_classes

    @abstractmethod
    def scores(self) -> FloatArray:
        """Scores of the training rows, (n, C)."""

    @abstractmethod
    def held_out_scores(self) -> FloatArray:
        """Scores of the held-out rows, (q, C)."""

    @abstractmethod
    def grow(self, gradient: FloatArray, hessian: FloatArray) -> None:
        """Add one tree per output, from derivatives by the scores of shape (n, C)."""

    @abstractmethod
    def ensemble(self, rounds: int) -> Any:
        """Return the library's own booster with the trees of the first rounds."""

    def _outputs(self, derivative: FloatArray) -> Any:
        return derivative[:, 1] if self.n_outputs == 1 else derivative


def make_grower(
    library: Library,
    matrix: FloatArray,
    held_out: FloatArray | None,
    n_classes: int,
    choices: TreeChoices,
    *,
    owner: str,
) -> TreeGrower:
    """Return a grower without trees."""
    check_choice(library, get_args(Library), owner=owner, name="library")
    return (_XGBoost if library == "xgboost" else _LightGBM)(matrix, held_out, n_classes, choices)


def ensemble_scores(
    booster: Any, matrix: FloatArray, categorical: Sequence[bool], n_classes: int
) -> FloatArray:
    """Return the scores (n, C) of a finished ensemble."""
    if type(booster).__module__.split(".")[0] == "xgboost":
        xgboost = require("xgboost", extra="boosting", why=_WHY)
        raw = booster.predict(_dmatrix(xgboost, matrix, categorical, 1), output_margin=True)
    else:
        raw = booster.predict(matrix, raw_score=True)
    return _two_columns(raw, n_classes)


def _two_columns(raw: Any, n_classes: int) -> FloatArray:
    scores = np.asarray(raw, dtype=np.float64)
    columns = (
        scores.reshape(-1, n_classes)
        if n_classes > 2
        else np.stack([np.zeros(scores.size), scores.ravel()]).T
    )
    # Column by column in memory: sums over the few classes of many rows are several times as fast.
    return np.asfortranarray(columns)


def _dmatrix(xgboost: Any, matrix: FloatArray, categorical: Sequence[bool], n_jobs: int) -> Any:
    kinds = ["c" if codes else "q" for codes in categorical]
    return xgboost.DMatrix(matrix, feature_types=kinds, enable_categorical=True, nthread=n_jobs)


class _XGBoost(TreeGrower):
    def __init__(
        self, matrix: FloatArray, held_out: FloatArray | None, n_classes: int, choices: TreeChoices
    ) -> None:
        super().__init__(n_classes)
        xgboost = require("xgboost", extra="boosting", why=_WHY)
        self._n_classes = n_classes
        self._rows = _dmatrix(xgboost, matrix, choices.categorical, choices.config.n_jobs)
        self._held = None
        if held_out is not None:
            self._held = _dmatrix(xgboost, held_out, choices.categorical, choices.config.n_jobs)
        parameters: dict[str, Any] = {
            # The objective is never asked for gradients; it says what the margins of the saved model are.
            "objective": "binary:logistic" if n_classes == 2 else "multi:softprob",
            "base_score": 0.5,
            "tree_method": "hist",
            "learning_rate": choices.learning_rate,
            "max_depth": choices.max_depth,
            "min_child_weight": choices.config.min_child_weight,
            "reg_lambda": choices.config.reg_lambda,
            "subsample": choices.config.subsample,
            "colsample_bytree": choices.config.colsample,
            "max_bin": choices.config.max_bins,
            "nthread": choices.config.n_jobs,
            "seed": choices.seed,
        }
        if n_classes > 2:
            parameters["num_class"] = n_classes
        if any(choices.monotone):
            parameters["monotone_constraints"] = choices.monotone
        cached = [self._rows] if self._held is None else [self._rows, self._held]
        self._booster = xgboost.Booster(parameters, cached)
        self._round = 0

    def scores(self) -> FloatArray:
        return _two_columns(self._booster.predict(self._rows, output_margin=True), self._n_classes)

    def held_out_scores(self) -> FloatArray:
        return _two_columns(self._booster.predict(self._held, output_margin=True), self._n_classes)

    def grow(self, gradient: FloatArray, hessian: FloatArray) -> None:
        parts = [np.ascontiguousarray(self._outputs(d), dtype=np.float32) for d in (gradient, hessian)]
        self._booster.boost(self._rows, iteration=self._round, grad=parts[0], hess=parts[1])
        self._round += 1

    def ensemble(self, rounds: int) -> Any:
        return self._booster[:rounds] if rounds < self._round else self._booster


class _LightGBM(TreeGrower):
    def __init__(
        self, matrix: FloatArray, held_out: FloatArray | None, n_classes: int, choices: TreeChoices
    ) -> None:
        super().__init__(n_classes)
        self._lightgbm = require("lightgbm", extra="boosting", why=_WHY)
        self._n_classes = n_classes
        codes = [i for i, categorical in enumerate(choices.categorical) if categorical]
        parameters: dict[str, Any] = {
            "objective": "none",
            "num_class": self.n_outputs,
            "learning_rate": choices.learning_rate,
            "max_depth": choices.max_depth,
            "num_leaves": 2**choices.max_depth,
            "min_sum_hessian_in_leaf": choices.config.min_child_weight,
            "min_data_in_leaf": 1,
            "min_data_per_group": 1,
            "cat_smooth": 10.0,
            "lambda_l2": choices.config.reg_lambda,
            "bagging_fraction": choices.config.subsample,
            "bagging_freq": int(choices.config.subsample < 1),
            "feature_fraction": choices.config.colsample,
            "max_bin": choices.config.max_bins,
            "min_data_in_bin": 1,
            "feature_pre_filter": False,
            "boost_from_average": False,
            "num_threads": choices.config.n_jobs,
            "deterministic": True,
            "force_row_wise": True,
            "seed": choices.seed,
            "verbosity": -1,
        }
        if any(choices.monotone):
            parameters["monotone_constraints"] = list(choices.monotone)
        data = self._lightgbm.Dataset(
            matrix, params=parameters, categorical_feature=codes, free_raw_data=True
        )
        self._booster = self._lightgbm.Booster(parameters, data)
        self._n, self._held_n = len(matrix), 0
        if held_out is not None:
            self._held_n = len(held_out)
            self._booster.add_valid(data.create_valid(held_out, params=parameters), "held out")

    def scores(self) -> FloatArray:
        return self._inner(0, self._n)

    def held_out_scores(self) -> FloatArray:
        return self._inner(1, self._held_n)

    def _inner(self, number: int, n: int) -> FloatArray:
        """Scores that LightGBM keeps of its own data sets, brought up to date tree by tree."""
        seen: list[Any] = []

        def look(predicted: Any, data: Any) -> tuple[str, float, bool]:
            seen.append(np.array(predicted, dtype=np.float64))
            return "none", 0.0, False

        if number == 0:
            self._booster.eval_train(look)
        else:
            self._booster.eval_valid(look)
        raw = seen[0]
        if self.n_outputs > 1 and raw.ndim == 1:
            raw = raw.reshape(self.n_outputs, n).T
        return _two_columns(raw, self._n_classes)

    def grow(self, gradient: FloatArray, hessian: FloatArray) -> None:
        parts = [np.asarray(self._outputs(d), dtype=np.float32) for d in (gradient, hessian)]
        self._booster.update(fobj=lambda predicted, data: (parts[0], parts[1]))

    def ensemble(self, rounds: int) -> Any:
        text = (
            self._booster.model_to_string(num_iteration=rounds) if rounds else self._booster.model_to_string()
        )
        return self._lightgbm.Booster(model_str=text)
