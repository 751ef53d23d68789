"""Boosted trees that do not look at sensitive columns and are trained on their own worst cases."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from likewise.core.checks import FloatArray, check_choice, check_integer, check_number, check_share, take_rows
from likewise.core.errors import FormatError, InputError, no_rows
from likewise.core.frames import with_columns
from likewise.core.parameters import parameters_from_fields
from likewise.core.randomness import RandomState, numpy_generator
from likewise.counterfactuals.edited_rows import TwinFactor, TwinMaker, ready_maker, twin_factors
from likewise.counterfactuals.edits import Edits
from likewise.data.missing_values import find_missing
from likewise.data.target import stratified_split
from likewise.mitigation.project import table_or_array
from likewise.models.losses import LossLike, as_loss
from likewise.models.model import Model
from likewise.models.stored import Arrays, load_beside, remade, save_beside
from likewise.models.tree_ensemble import TreeEnsemble, read_trees
from likewise.training.boosting.columns import (
    TreeColumns,
    fitted_metric,
    group_codes,
    monotone_directions,
    nodes_of,
    sensitive_columns,
)
from likewise.training.boosting.growers import (
    BoostingConfig,
    Library,
    TreeChoices,
    ensemble_scores,
    make_grower,
)
from likewise.training.boosting.rounds import BoostingPeople, GroupCells, NeighbourSupport, RobustGoal, boost
from likewise.training.estimators.parameters import WithConfig
from likewise.training.estimators.rows import read_labels
from likewise.training.results import TrainingWarning

# A fitted `FairBoostingClassifier` as a `Model`: what audits ask.


class BoostingModel(Model):
    """The trees of a fitted estimator; what `likewise.models.as_model` makes of one."""

    batch_rows = 65536

    def __init__(self, estimator: Any, *, loss: LossLike = "cross_entropy", classes: Any = None) -> None:
        names = getattr(estimator, "feature_names_in_", None)
        super().__init__(
            loss=as_loss(loss),
            kind="scores",
            classes=estimator.classes_ if classes is None else classes,
            takes_frame=names is not None,
            feature_names=names,
            n_features=estimator.n_features_in_,
            missing=True,
        )
        self.estimator = estimator

    @property
    def constant_columns(self) -> frozenset[str]:
        """Columns that no tree sees and that no other column is merged by: no answer can depend on them."""
        seen = self.estimator.columns_
        if seen.maker is not None or self.feature_names is None:
            return frozenset()
        merged = {column for factor in seen.factors if not factor.everybody for column in factor.columns}
        return frozenset(self.feature_names) - set(seen.names) - merged

    def read_trees(self) -> TreeEnsemble:
        """Return the trees over the table's own columns, for `likewise.models.tree_ensemble.read_trees`."""
        seen = self.estimator.columns_
        if seen.maker is not None:
            raise InputError(
                "read_trees: these trees see people after consequences were added, which are not read."
            )
        own = (
            [str(i) for i in range(self.n_features or 0)]
            if self.feature_names is None
            else self.feature_names
        )
        trees, place = read_trees(self.estimator.booster_), np.array([own.index(name) for name in seen.names])
        # A column that no tree sees has no codes.
        codes: dict[int, tuple[Any, ...]] = {i: () for i in range(len(own)) if i not in place}
        codes |= {int(place[i]): values for i, values in enumerate(seen.categories) if values is not None}
        placed = replace(
            trees,
            feature=place[trees.feature],
            n_features=len(own),
            feature_names=self.feature_names,
            categories=codes,
        )
        for factor in seen.factors:
            placed = _told_apart(placed, factor, own)
        return placed

    def _answer(self, rows: Any) -> FloatArray:
        scores: FloatArray = self.estimator._scores(rows)
        return scores


def _told_apart(trees: TreeEnsemble, factor: TwinFactor, names: Sequence[str]) -> TreeEnsemble:
    """Trees that were grown on values made one, as trees of these values: each gets a code, and goes where the first goes."""
    column = names.index(factor.columns[0])
    known = trees.categories.get(column)
    if factor.everybody or len(factor.columns) > 1 or known is None:
        raise InputError("read_trees: of values made one, only those of one column of categories are read.")
    first, *others = (setting[factor.columns[0]] for setting in factor.settings)
    new = len(known) + np.arange(len(others))
    nodes = np.flatnonzero(trees.last > trees.first)
    parts = [trees.codes[trees.first[node] : trees.last[node]] for node in nodes]
    for i, node in enumerate(nodes):
        if trees.feature[node] == column and first in known and known.index(first) in parts[i]:
            parts[i] = np.append(parts[i], new)
    begin, end = trees.first.copy(), trees.last.copy()
    end[nodes] = np.cumsum([len(part) for part in parts], dtype=np.int64)
    begin[nodes] = end[nodes] - [len(part) for part in parts]
    categories = {**trees.categories, column: (*known, *others)}
    return replace(
        trees, codes=np.concatenate([*parts, new[:0]]), first=begin, last=end, categories=categories
    )


# From so many people on, some are held out to say when to stop.
_ENOUGH = 400
_HELD_OUT = 0.15
# What a file keeps of what `fit` learned, besides the trees.
_LEARNED = ("classes_", "columns_", "feature_names_in_", "n_features_in_", "n_iter_")


@parameters_from_fields
class FairBoostingClassifier(WithConfig, ClassifierMixin, BaseEstimator):
    """Boosted trees (XGBoost or LightGBM) that treat comparable people alike.

    - A column named in `sensitive_features`, or that the metric was told is sensitive, never changes a decision: no
      tree sees it. Values that `edits` name (husband or wife) are made one before any tree sees them. Both hold
      exactly, by construction.
    - With ``eps > 0`` each round is grown on the worst case of the trees so far: people moved to comparable people,
      within a mean squared fair distance of eps, solved exactly on the support of everybody's nearest neighbours.
    - With ``group_penalty > 0`` the groups' rates of decisions are drawn together, class by class.
    - Rounds end when people held out fare best by the same goal.

    Parameters
    ----------
    sensitive_features : str, int or sequence of them, optional
        Columns that shall not decide; positions for arrays. An attribute that is not a column is looked for as 0/1
        columns (``sex_Male``). In `predict` they may be absent.
    edits : mapping, Edit or sequence, optional
        Further values that shall make no difference, as in `correspondence_study`, such as
        ``Edit("relationship", ("Husband", "Wife"))``. An `Edit` with consequences, or another `TwinMaker`, stands
        alone: before any tree sees people, everybody becomes the row that they and all their twins end in.
    metric : FairMetric, learner or list of them, optional
        Who is comparable, for ``eps > 0``; by default `AttributeSubspace` of the sensitive features, learned here.
    eps : float >= 0, default=0.0
        Budget of the worst case that is trained on: the ε of an audit.
    group_penalty : float >= 0, default=0.0
        What the squared differences of the groups' mean soft decisions count for. Groups are the values of the
        sensitive features. On Adult 1 brings the sexes' gap from .16 to .06, and 4 to .015.
    library : {"xgboost", "lightgbm"}, default="xgboost"
    n_estimators : int, default=400
        Rounds at most.
    learning_rate : float, default=0.1
    max_depth : int, default=4
    monotone_constraints : mapping or sequence, optional
        Column to -1 or 1, or one direction per column.
    class_weight : "balanced", dict or None, default="balanced"
        As in scikit-learn; balanced, so that the rarer class counts as much.
    validation : "auto", float in (0, 1) or None, default="auto"
        Share of people held out; "auto" is 0.15 from 400 people on, and none below.
    training : BoostingConfig, optional
        How trees are grown: regularisation, subsampling, neighbours, patience, threads.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    booster_ : xgboost.Booster or lightgbm.Booster
        The trees; they take the numbers of ``columns_``.
    columns_ : TreeColumns
        How a table becomes numbers.
    n_iter_ : int
        Rounds kept.
    history_ : dict of arrays
        "train" and "held_out": the goal's value before each round; "lambda": λ*.
    metric_ : FairMetric
        If ``eps > 0``.
    n_features_in_, feature_names_in_

    References
    ----------
    A. Vargo, F. Zhang, M. Yurochkin, Y. Sun: Individually Fair Gradient Boosting. ICLR 2021 (arXiv:2103.16785).

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 100, "job": list("abcd") * 50, "age": range(200)})
    >>> y = (people["age"] + 40 * (people["sex"] == "M") > 120).astype(int)
    >>> clf = FairBoostingClassifier("sex", n_estimators=20, random_state=0).fit(people, y)
    >>> bool((clf.predict_proba(people) == clf.predict_proba(people.assign(sex="F"))).all())
    True
    """

    config_class = BoostingConfig

    sensitive_features: Any = field(default=None, kw_only=False)
    edits: Edits | TwinMaker | None = None
    metric: Any = None
    eps: float = 0.0
    group_penalty: float = 0.0
    library: Library = "xgboost"
    n_estimators: int = 400
    learning_rate: float = 0.1
    max_depth: int = 4
    monotone_constraints: Any = None
    class_weight: Any = "balanced"
    validation: float | Literal["auto"] | None = "auto"
    training: BoostingConfig | None = None
    random_state: RandomState = None

    # ---- fit ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : frame or array of shape (n, p)
            Raw: numbers, text and categories, with missing values if there are some.
        y : array-like of shape (n,)
            Class labels, two or more.
        sample_weight : array-like of shape (n,), optional
        sensitive_features : array, Series, frame or dict, optional
            Attributes of each row that are not columns of X: groups for the penalty, and what a metric is learned
            from.

        Returns
        -------
        self
        """
        owner = type(self).__name__
        self._check(owner)
        rows = self._first_rows(X, y, sample_weight, sensitive_features, owner)
        random = numpy_generator(self.random_state)
        seed = int(random.integers(2**31))
        sensitive = sensitive_columns(self.sensitive_features, rows.frame, owner=owner)
        given = self._learn_metric(rows, list(sensitive), owner)
        told = getattr(getattr(self, "metric_", None), "sensitive_features", ())
        more = [name for name in told if name in rows.frame.columns and name not in sensitive]
        sensitive |= sensitive_columns(more, rows.frame, owner=owner)
        maker = ready_maker(self.edits, rows.frame, owner=owner)
        factors: tuple[TwinFactor, ...] = ()
        if self.edits is not None and maker is None:
            factors = twin_factors(None, self.edits, rows.frame, owner=owner)
        left_out = [column for columns in sensitive.values() for column in columns]
        both = sorted({c for factor in factors for c in factor.columns} & set(left_out))
        if both:
            raise InputError(
                f"{owner}: column {both[0]!r} is sensitive and in 'edits'. Leave it out of 'edits': no tree sees it."
            )
        self.columns_ = TreeColumns.of(rows.frame, left_out, factors, owner=owner, maker=maker)
        matrix = self.columns_.matrix(rows.frame, owner=owner)
        places = None if given is None else np.asarray(self.metric_.embed(given), dtype=np.float64)
        groups = self._groups(rows, sensitive, owner)
        kept, held = self._split(rows.labels, random, owner)
        people, nodes = self._people(rows, matrix, places, groups, kept)
        watched, held_nodes = self._people(rows, matrix, places, groups, held) if len(held) else (None, None)
        grower = make_grower(
            self.library, nodes, held_nodes, len(self.classes_), self._choices(seed, owner), owner=owner
        )
        goal = RobustGoal(float(self.eps), float(self.group_penalty))
        run = boost(
            grower, people, goal, rounds=self.n_estimators, held_out=watched, patience=self._config.patience
        )
        self.booster_ = grower.ensemble(run.rounds)
        self.n_iter_ = run.rounds
        if run.interrupted:
            warnings.warn(
                f"{owner}: interrupted by the keyboard after {len(run.train)} rounds; the trees grown so far are kept.",
                TrainingWarning,
                stacklevel=2,
            )
        self.history_ = {"train": run.train, "held_out": run.held_out, "lambda": run.lambda_}
        return self

    def _first_rows(self, X: Any, y: Any, sample_weight: Any, beside: Any, owner: str) -> _Rows:
        given = table_or_array(X, owner)
        frame, given = self._frame(given, owner, reset=True)
        if len(frame) < 2:
            raise InputError(f"{owner}: found {len(frame)} sample(s); a minimum of 2 is required.")
        labels, codes = read_labels(y, frame.to_numpy(), owner=owner)
        weight = _check_sample_weight(sample_weight, frame, dtype=np.float64, ensure_non_negative=True)
        present = np.flatnonzero(weight > 0)
        if len(np.unique(codes[present])) < len(labels):
            raise InputError(f"{owner}: 'sample_weight' leaves no row of some class. Drop the class instead.")
        self.classes_ = labels
        if len(present) < len(frame):
            frame, codes, weight = frame.iloc[present], codes[present], weight[present]
            given = given.iloc[present] if isinstance(given, pd.DataFrame) else given[present]
            beside = take_rows(beside, present)
        balanced = weight * self._class_weight(codes, weight)[codes]
        # A weight of 2 is to the trees what two rows are.
        return _Rows(given, frame, codes, balanced * (weight.sum() / balanced.sum()), beside)

    def _class_weight(self, codes: Any, weight: FloatArray) -> FloatArray:
        if self.class_weight == "balanced":
            share = np.bincount(codes, weight)
            return np.asarray(share.sum() / (len(share) * share))
        named = None if self.class_weight is None else dict(self.class_weight)
        return np.asarray(compute_class_weight(named, classes=self.classes_, y=self.classes_[codes]))

    def _learn_metric(self, rows: _Rows, sensitive: list[str], owner: str) -> Any:
        """Fit `metric_` if one is needed, and return the rows it takes: those given, without holes; else None."""
        self.__dict__.pop("metric_", None)
        if self.eps == 0 and self.metric is None:
            return None
        given = rows.given
        if isinstance(given, pd.DataFrame):
            given = find_missing(given).filled(given)
        elif np.isnan(given).any():
            given = find_missing(rows.frame).filled(rows.frame).to_numpy()
        names: list[Any] = sensitive
        if not isinstance(given, pd.DataFrame):
            names = [int(name) for name in sensitive]
        self.metric_ = fitted_metric(self.metric, names, given, rows.beside, owner=owner)
        return given

    def _groups(self, rows: _Rows, sensitive: dict[str, tuple[str, ...]], owner: str) -> list[Any]:
        if self.group_penalty == 0:
            return []
        groups = group_codes(sensitive, rows.frame, rows.beside, owner=owner)
        if not groups:
            raise InputError(
                f"{owner}: group_penalty > 0, but there are no groups. Name sensitive_features, or pass "
                "fit(X, y, sensitive_features=...)."
            )
        return groups

    def _split(self, labels: Any, random: np.random.Generator, owner: str) -> tuple[Any, Any]:
        everybody = np.arange(len(labels))
        share = self.validation
        if share == "auto":
            share = _HELD_OUT if len(labels) >= _ENOUGH else None
        if share is None:
            return everybody, everybody[:0]
        share = check_share(share, owner=owner, name="validation")
        return stratified_split(labels, share, random)

    def _people(
        self, rows: _Rows, matrix: FloatArray, places: FloatArray | None, groups: list[Any], chosen: Any
    ) -> tuple[BoostingPeople, FloatArray]:
        own = None if places is None else places[chosen]
        first, node = nodes_of(matrix[chosen], own)
        labels, weight = rows.labels[chosen], rows.weight[chosen]
        cells = (
            GroupCells.of([g[chosen] for g in groups], labels, weight).at(node, len(first))
            if groups
            else None
        )
        people = BoostingPeople(
            node=node,
            labels=labels,
            weight=weight,
            n_nodes=len(first),
            n_classes=len(self.classes_),
            cells=cells,
            support=None if own is None else NeighbourSupport.of(own[first], self._config.n_neighbors),
        )
        return people, matrix[chosen[first]]

    def _choices(self, seed: int, owner: str) -> TreeChoices:
        names = [str(name) for name in getattr(self, "feature_names_in_", range(self.n_features_in_))]
        return TreeChoices(
            learning_rate=float(self.learning_rate),
            max_depth=int(self.max_depth),
            config=self._config,
            categorical=self.columns_.categorical,
            monotone=monotone_directions(self.monotone_constraints, self.columns_, names, owner=owner),
            seed=seed,
        )

    def _check(self, owner: str) -> None:
        for name in ("eps", "group_penalty"):
            check_number(getattr(self, name), owner=owner, name=name, low=0)
        check_number(self.learning_rate, owner=owner, name="learning_rate", low=0, open_low=True)
        for name in ("n_estimators", "max_depth"):
            check_integer(getattr(self, name), owner=owner, name=name, low=1)
        if isinstance(self.class_weight, str):
            given = self.class_weight
            check_choice(given, ("balanced",), owner=owner, name="class_weight", besides="a dict or None")

    # ---- predict --------------------------------------------------------------------------------------

    @property
    def _left_out(self) -> list[str]:
        """Columns by name that no tree sees."""
        seen = set(self.columns_.names)
        return [name for name in getattr(self, "feature_names_in_", ()) if name not in seen]

    def _frame(self, X: Any, owner: str, *, reset: bool) -> tuple[pd.DataFrame, Any]:
        """X as a frame with text names, and as it came; what scikit-learn remembers of the columns is kept."""
        if isinstance(X, pd.DataFrame):
            if not reset and self._left_out:
                absent = [name for name in self._left_out if name not in X.columns]
                if absent:
                    X = with_columns(X, dict.fromkeys(absent, np.nan))[list(self.feature_names_in_)]
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not len(X):
                raise no_rows(owner)
            return X, X
        array = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        if not reset and hasattr(self, "feature_names_in_"):
            names = list(self.feature_names_in_)
        else:
            names = [str(i) for i in range(array.shape[1])]
        return pd.DataFrame(array, columns=names), array

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        owner = type(self).__name__
        frame, _ = self._frame(table_or_array(X, owner), owner, reset=False)
        matrix = self.columns_.matrix(frame, owner=owner)
        return ensemble_scores(self.booster_, matrix, self.columns_.categorical, len(self.classes_))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores (n, C) before the softmax; for two classes the log-odds of the second, (n,)."""
        scores = self._scores(X)
        return np.asarray(scores[:, 1]) if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities (n, C) in the order of ``classes_``; with balanced classes, of such a world."""
        return np.asarray(softmax(self._scores(X), axis=1))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the likeliest class of each row, (n,)."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    # ---- as a model, as files ---------------------------------------------------------------------------

    def __likewise_model__(self, **choices: Any) -> Any:
        """Return the trees as a `likewise.models.Model`, for `as_model` and audits."""
        check_is_fitted(self)
        return BoostingModel(self, **choices)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trees in their library's own format and, beside it, ``<path>.likewise.json``; without pickle.

        Parameters
        ----------
        path : path-like
            Such as ``model.ubj`` or ``model.json`` (XGBoost), ``model.txt`` (LightGBM). Move both files together.

        Notes
        -----
        Twins with consequences are written if they follow rules alone; what is learned along a graph is not.
        """
        check_is_fitted(self)
        learned = {name: getattr(self, name) for name in _LEARNED if hasattr(self, name)}
        # A maker of twins is written with the columns.
        skip = () if self.columns_.maker is None else ("edits",)
        save_beside(self, path, "boosting", self.booster_, learned, skip=skip)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; nothing in the files is executed. It predicts the same."""
        found: Self = load_beside(path, cls=cls)
        return found

    @classmethod
    def _reopened(cls, about: dict[str, Any], arrays: Arrays, model: Any) -> Self:
        count = getattr(model, "num_features", None) or getattr(model, "num_feature", None)
        if count is None:
            raise FormatError("it describes trees of XGBoost or LightGBM, and the model has none")
        made: Self = remade(cls, about, arrays)
        made.booster_, columns = model, made.columns_
        if columns.maker is not None:
            made.edits = columns.maker
        if int(count()) != len(columns.names):
            raise FormatError(f"the model has trees of {count()} columns, and it names {len(columns.names)}")
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True, eq=False)
class _Rows:
    """X as it came and as a frame, class indices, weights, attributes beside X."""

    given: Any
    frame: pd.DataFrame
    labels: Any
    weight: FloatArray
    beside: Any
