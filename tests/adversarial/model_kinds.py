"""Kinds of models, small and fitted in milliseconds: name → what builds one, and how it is asked by itself.

A kind lives on one of three tables: `words` (text categories), `numbers` (everything coded as numbers) or `encoded`
(standardised numbers and one-hot columns, as a domain encodes them).
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from likewise.training import FairBoostingClassifier

from .brute_force import Answers

BOTH = ("cross_entropy", "zero_one")


@dataclass(frozen=True)
class Fitted:
    """A model as `likewise` gets it, and what it answers when it is asked without `likewise`."""

    model: Any
    ask: Callable[[Any], Answers]


@dataclass(frozen=True)
class Kind:
    name: str
    table: str
    build: Callable[[Any, np.ndarray, int], Any]
    losses: tuple[str, ...] = BOTH
    classes: int = 2
    labels: str = "numbers"

    @property
    def slow(self):
        """Whether a proof takes long enough to be given small tables only."""
        return self.name.startswith(("torch", "onnx")) or "mlp" in self.name


KINDS: dict[str, Kind] = {}


def kind(name, table, *, losses=BOTH, classes=2, labels="numbers"):
    def keep(build):
        KINDS[name] = Kind(name, table, build, losses, classes, labels)
        return build

    return keep


def as_fitted(built):
    """What a builder returned, with the usual way to ask where it gave none."""
    if isinstance(built, Fitted):
        return built

    def ask(rows):
        p = np.asarray(built.predict_proba(rows)) if hasattr(built, "predict_proba") else None
        if p is not None:
            # No class is likelier than another where all are given 0.
            p = np.where(p.any(axis=1, keepdims=True), p, 1 / p.shape[1])
        decisions = np.asarray(built.predict(rows)).ravel()
        return Answers(p, decisions, tuple(np.asarray(built.classes_).tolist()))

    return Fitted(built, ask)


def probabilities_only(answer, classes=(0, 1)):
    """Ask for probabilities; the decision is the likelier class, the first of equals."""

    def ask(rows):
        p = np.asarray(answer(rows))
        if p.ndim == 1 or p.shape[1] == 1:
            p = np.column_stack([1 - p.ravel(), p.ravel()])
        return Answers(p, np.asarray(classes)[p.argmax(axis=1)], tuple(classes))

    return ask


def words_of(X):
    return [name for name in X if X[name].dtype.kind not in "iuf"]


def numbers_of(X):
    return [name for name in X if X[name].dtype.kind in "iuf"]


def pipe(X, last, words=None, numbers="passthrough", **choices):
    return make_pipeline(
        make_column_transformer((words or OneHotEncoder(), words_of(X)), remainder=numbers, **choices), last
    )


def tree(seed, **choices):
    return DecisionTreeClassifier(**{"max_depth": 3, "random_state": seed, **choices})


def forest(seed, **choices):
    return RandomForestClassifier(**{"n_estimators": 4, "max_depth": 3, "random_state": seed, **choices})


def xgb(seed, **choices):
    from xgboost import XGBClassifier

    return XGBClassifier(
        **{
            "n_estimators": 4,
            "max_depth": 3,
            "n_jobs": 1,
            "random_state": seed,
            "learning_rate": 0.5,
            **choices,
        }
    )


def lgb(seed, **choices):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        **{
            "n_estimators": 4,
            "max_depth": 3,
            "num_leaves": 6,
            "n_jobs": 1,
            "verbose": -1,
            "min_child_samples": 5,
            "random_state": seed,
            "learning_rate": 0.5,
            **choices,
        }
    )


def cat(seed, **choices):
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        **{
            "iterations": 4,
            "depth": 3,
            "thread_count": 1,
            "verbose": 0,
            "random_seed": seed,
            "learning_rate": 0.5,
            "allow_writing_files": False,
            **choices,
        }
    )


# -- scikit-learn's trees ------------------------------------------------------------------------------------------

PLAIN_TREES = {
    "tree": tree,
    "extra-tree": lambda s: ExtraTreeClassifier(max_depth=3, random_state=s),
    "tree-deep": lambda s: tree(s, max_depth=None, min_samples_leaf=3),
    "tree-entropy-weighted": lambda s: tree(s, criterion="entropy", class_weight={0: 1, 1: 3}),
    "forest": forest,
    "extra-trees": lambda s: ExtraTreesClassifier(4, max_depth=3, random_state=s),
    "hist": lambda s: HistGradientBoostingClassifier(
        max_iter=4, max_depth=3, learning_rate=0.5, random_state=s, min_samples_leaf=5
    ),
    "hist-early": lambda s: HistGradientBoostingClassifier(
        max_iter=12, max_depth=3, early_stopping=True, n_iter_no_change=2, random_state=s
    ),
    "boosting": lambda s: GradientBoostingClassifier(
        n_estimators=4, max_depth=2, learning_rate=0.5, random_state=s
    ),
    "boosting-early": lambda s: GradientBoostingClassifier(
        n_estimators=12, max_depth=2, n_iter_no_change=1, random_state=s
    ),
    "boosting-exponential": lambda s: GradientBoostingClassifier(
        n_estimators=4, max_depth=2, loss="exponential", random_state=s
    ),
    "boosting-init-zero": lambda s: GradientBoostingClassifier(
        n_estimators=4, max_depth=2, init="zero", random_state=s
    ),
    "boosting-init-logistic": lambda s: GradientBoostingClassifier(
        n_estimators=4, max_depth=2, init=GaussianNB(), random_state=s
    ),
    "ada": lambda s: AdaBoostClassifier(tree(s, max_depth=2), n_estimators=4, random_state=s),
    "bagging": lambda s: BaggingClassifier(tree(s), n_estimators=4, random_state=s),
    "bagging-half": lambda s: BaggingClassifier(tree(s), n_estimators=4, max_features=0.5, random_state=s),
    "bagging-drawn-columns": lambda s: BaggingClassifier(
        tree(s), n_estimators=4, bootstrap_features=True, random_state=s
    ),
    "voting-soft-weights": lambda s: VotingClassifier(
        [("a", tree(s)), ("b", forest(s))], voting="soft", weights=[1, 3]
    ),
    "voting-hard": lambda s: VotingClassifier(
        [("a", tree(s)), ("b", forest(s)), ("c", tree(s, max_depth=1))]
    ),
    "voting-dropped": lambda s: VotingClassifier(
        [("a", tree(s)), ("b", forest(s))], voting="soft"
    ).set_params(b="drop"),
    "stacking": lambda s: StackingClassifier([("a", tree(s)), ("b", forest(s))], LogisticRegression(), cv=2),
    "stacking-passthrough": lambda s: StackingClassifier([("a", tree(s))], tree(s), cv=2, passthrough=True),
    "one-vs-rest": lambda s: OneVsRestClassifier(tree(s)),
    "calibrated-sigmoid": lambda s: CalibratedClassifierCV(tree(s), cv=2),
    "calibrated-isotonic": lambda s: CalibratedClassifierCV(
        forest(s), method="isotonic", cv=2, ensemble=False
    ),
    "threshold-fixed": lambda s: FixedThresholdClassifier(forest(s), threshold=0.3),
    "threshold-tuned": lambda s: TunedThresholdClassifierCV(tree(s), cv=2, random_state=s),
    "search-grid": lambda s: GridSearchCV(tree(s), {"max_depth": [2, 3]}, cv=2),
}
for _name, _make in PLAIN_TREES.items():
    _losses = ("zero_one",) if _name == "voting-hard" else BOTH

    @kind(f"numbers/{_name}", "numbers", losses=_losses)
    def _(X, y, seed, make=_make):
        return make(seed).fit(X, y)


for _name in ("tree", "forest", "hist", "boosting", "extra-trees"):

    @kind(f"encoded/{_name}", "encoded")
    def _(X, y, seed, make=PLAIN_TREES[_name]):
        return make(seed).fit(X.to_numpy(), y)

    @kind(f"words/{_name}-one-hot", "words", labels="words")
    def _(X, y, seed, make=PLAIN_TREES[_name]):
        return pipe(X, make(seed), OneHotEncoder(sparse_output=False)).fit(X, y)


@kind("numbers/hist-codes-as-categories", "numbers")
def _(X, y, seed):
    # The domain calls the column a number; the model takes its values as categories.
    columns = [j for j, name in enumerate(X) if X[name].dtype.kind in "iu"]
    return HistGradientBoostingClassifier(
        max_iter=4, max_depth=3, categorical_features=columns, random_state=seed, min_samples_leaf=3
    ).fit(X.to_numpy(np.float64), y)


@kind("numbers/hist-sex-category-frame", "numbers")
def _(X, y, seed):
    return HistGradientBoostingClassifier(
        max_iter=4, max_depth=3, categorical_features=["sex"], random_state=seed
    ).fit(X, y)


@kind("numbers/hist-trained-with-gaps", "numbers")
def _(X, y, seed):
    holes = X.astype(float).mask(np.random.default_rng(seed).random(X.shape) < 0.1)
    return HistGradientBoostingClassifier(max_iter=4, max_depth=3, random_state=seed, min_samples_leaf=3).fit(
        holes, y
    )


@kind("numbers/tree-trained-with-gaps", "numbers")
def _(X, y, seed):
    holes = X.astype(float).mask(np.random.default_rng(seed).random(X.shape) < 0.1)
    return tree(seed).fit(holes, y)


@kind("numbers/hist-dtype-categories", "numbers")
def _(X, y, seed):
    return make_pipeline(
        FunctionTransformer(_as_category),
        HistGradientBoostingClassifier(max_iter=4, max_depth=3, random_state=seed),
    ).fit(X, y)


def _as_category(X):
    return X.assign(sex=pd.Categorical(X["sex"], categories=[0, 1]))


for _name, _make in {
    "tree": tree,
    "forest": forest,
    "hist": PLAIN_TREES["hist"],
    "boosting": PLAIN_TREES["boosting"],
    "logistic": lambda s: make_pipeline(StandardScaler(), LogisticRegression()),
    "multinomial": lambda s: make_pipeline(StandardScaler(), LogisticRegression(C=3)),
    "ovr-logistic": lambda s: make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
    "ovr-tree": lambda s: OneVsRestClassifier(tree(s)),
    "ovo-tree": lambda s: OneVsOneClassifier(tree(s)),
    "codes": lambda s: OutputCodeClassifier(tree(s), random_state=s),
    "linear-svc": lambda s: make_pipeline(StandardScaler(), LinearSVC()),
    "xgb": xgb,
    "xgb-parallel-trees": lambda s: xgb(s, num_parallel_tree=2, n_estimators=2),
    "lgb": lgb,
    "lgb-ova": lambda s: lgb(s, objective="multiclassova"),
    "cat": cat,
    "mlp": lambda s: make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=60, random_state=s)),
    "ada": PLAIN_TREES["ada"],
    "bagging-half": PLAIN_TREES["bagging-half"],
}.items():

    @kind(
        f"three/{_name}",
        "numbers",
        classes=3,
        losses=("zero_one",) if _name in ("ovo-tree", "codes", "linear-svc") else BOTH,
    )
    def _(X, y, seed, make=_make):
        return make(seed).fit(X, y)


# -- encoders and scalers before a tree ---------------------------------------------------------------------------

for _name, _words in {
    "one-hot-sparse": OneHotEncoder(),
    "one-hot-drop-first": OneHotEncoder(drop="first"),
    "one-hot-drop-binary": OneHotEncoder(drop="if_binary", sparse_output=False),
    "one-hot-ignore": OneHotEncoder(handle_unknown="ignore"),
    "one-hot-infrequent": OneHotEncoder(
        min_frequency=60, handle_unknown="infrequent_if_exist", sparse_output=False
    ),
    "one-hot-max": OneHotEncoder(max_categories=2, sparse_output=False),
    "ordinal": OrdinalEncoder(),
    "ordinal-infrequent": OrdinalEncoder(min_frequency=60),
    "target": TargetEncoder(cv=2, random_state=0),
}.items():

    @kind(f"words/{_name}-tree", "words")
    def _(X, y, seed, words=_words):
        return pipe(X, forest(seed), words).fit(X, y)

    if not _name.startswith(("target",)):

        @kind(f"words/{_name}-xgb", "words")
        def _(X, y, seed, words=_words):
            return pipe(X, xgb(seed), words).fit(X, y)


for _name, _numbers in {
    "standard": StandardScaler(),
    "standard-no-mean": StandardScaler(with_mean=False),
    "robust": RobustScaler(),
    "min-max": MinMaxScaler(),
    "min-max-clip": MinMaxScaler((-1, 1), clip=True),
    "max-abs": MaxAbsScaler(),
    "quantile": QuantileTransformer(n_quantiles=10),
    "power": PowerTransformer(),
    "bins": KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
    "bins-one-hot": KBinsDiscretizer(3, strategy="uniform"),
    "binarizer": Binarizer(threshold=3.0),
    "normalizer": Normalizer(),
    "polynomial": PolynomialFeatures(2),
    "spline": SplineTransformer(n_knots=3, degree=1),
    "function": FunctionTransformer(np.abs),
    "imputer": SimpleImputer(),
    "imputer-three": SimpleImputer(missing_values=3, add_indicator=True),
    "imputer-three-constant": SimpleImputer(missing_values=3, strategy="constant", fill_value=-7),
    "drop": "drop",
}.items():

    @kind(f"words/{_name}-forest", "words")
    def _(X, y, seed, numbers=_numbers):
        return pipe(X, forest(seed), OneHotEncoder(sparse_output=False), numbers).fit(X, y)

    if _name in ("standard", "robust", "imputer-three", "min-max", "polynomial", "bins"):

        @kind(f"words/{_name}-logistic", "words")
        def _(X, y, seed, numbers=_numbers):
            return pipe(
                X,
                make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=200)),
                None,
                numbers,
            ).fit(X, y)

        @kind(f"words/{_name}-xgb-sparse", "words")
        def _(X, y, seed, numbers=_numbers):
            return pipe(X, xgb(seed), OneHotEncoder(), numbers, sparse_threshold=1.0).fit(X, y)


@kind("words/transformer-weights", "words")
def _(X, y, seed):
    columns = ColumnTransformer(
        [
            ("words", OneHotEncoder(sparse_output=False), words_of(X)),
            ("numbers", StandardScaler(), numbers_of(X)),
        ],
        transformer_weights={"numbers": 3.0, "words": 0.5},
    )
    return make_pipeline(columns, forest(seed)).fit(X, y)


@kind("words/transformer-weights-mlp", "words")
def _(X, y, seed):
    columns = ColumnTransformer(
        [
            ("words", OneHotEncoder(sparse_output=False), words_of(X)),
            ("numbers", StandardScaler(), numbers_of(X)),
        ],
        transformer_weights={"numbers": 3.0},
    )
    return make_pipeline(columns, MLPClassifier((5,), max_iter=60, random_state=seed)).fit(X, y)


@kind("words/selector", "words")
def _(X, y, seed):
    columns = make_column_transformer(
        (
            OneHotEncoder(sparse_output=False),
            make_column_selector(dtype_include=["object", "string", "category"]),
        ),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(columns, tree(seed)).fit(X, y)


@kind("words/nested", "words")
def _(X, y, seed):
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), MinMaxScaler())
    return make_pipeline(
        make_pipeline(make_column_transformer((OneHotEncoder(), words_of(X)), (numbers, numbers_of(X)))),
        make_pipeline("passthrough", forest(seed)),
    ).fit(X, y)


@kind("words/column-twice", "words")
def _(X, y, seed):
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), words_of(X)),
        (StandardScaler(), numbers_of(X)),
        (MinMaxScaler(), numbers_of(X)[:1]),
    )
    return make_pipeline(columns, forest(seed)).fit(X, y)


@kind("words/union", "words")
def _(X, y, seed):
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), words_of(X)), remainder="passthrough"
    )
    return make_pipeline(
        columns, FeatureUnion([("a", "passthrough"), ("b", StandardScaler())]), forest(seed)
    ).fit(X, y)


@kind("words/pandas-output", "words")
def _(X, y, seed):
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), words_of(X)), remainder=StandardScaler()
    )
    return make_pipeline(columns, forest(seed)).set_output(transform="pandas").fit(X, y)


@kind("words/infrequent-hist-from-dtype", "words")
def _(X, y, seed):
    return pipe(
        X,
        HistGradientBoostingClassifier(max_iter=4, categorical_features=[0], random_state=seed),
        OrdinalEncoder(),
    ).fit(X, y)


@kind("words/calibrated-pipeline", "words")
def _(X, y, seed):
    return CalibratedClassifierCV(pipe(X, forest(seed)), cv=2).fit(X, y)


@kind("words/threshold-around-pipeline", "words")
def _(X, y, seed):
    return FixedThresholdClassifier(pipe(X, tree(seed)), threshold=0.7).fit(X, y)


@kind("words/threshold-inside-pipeline", "words")
def _(X, y, seed):
    return pipe(X, FixedThresholdClassifier(tree(seed), threshold=0.7)).fit(X, y)


@kind("words/search-around-pipeline", "words", labels="words")
def _(X, y, seed):
    return GridSearchCV(pipe(X, tree(seed)), {"decisiontreeclassifier__max_depth": [2, 3]}, cv=2).fit(X, y)


@kind("words/search-inside-pipeline", "words")
def _(X, y, seed):
    return pipe(X, GridSearchCV(xgb(seed), {"max_depth": [2, 3]}, cv=2)).fit(X, y)


# -- linear models and networks of scikit-learn -----------------------------------------------------------------

for _name, _make in {
    "logistic": lambda s: LogisticRegression(max_iter=300),
    "logistic-liblinear": lambda s: LogisticRegression(solver="liblinear", intercept_scaling=5.0),
    "logistic-sharp": lambda s: LogisticRegression(C=1e6, max_iter=300),
    "logistic-no-intercept": lambda s: LogisticRegression(fit_intercept=False),
    "logistic-cv": lambda s: LogisticRegressionCV(Cs=2, cv=2),
    "sgd-log": lambda s: SGDClassifier(loss="log_loss", random_state=s),
    "sgd-huber": lambda s: SGDClassifier(loss="modified_huber", random_state=s),
    "lda": lambda s: LinearDiscriminantAnalysis(),
    "mlp": lambda s: MLPClassifier((6,), max_iter=60, random_state=s),
    "mlp-two": lambda s: MLPClassifier((5, 4), max_iter=60, random_state=s, alpha=0),
    "mlp-tanh": lambda s: MLPClassifier((5,), activation="tanh", max_iter=60, random_state=s),
    "mlp-logistic": lambda s: MLPClassifier((5,), activation="logistic", max_iter=60, random_state=s),
    "mlp-identity": lambda s: MLPClassifier((5,), activation="identity", max_iter=60, random_state=s),
    "svc": lambda s: SVC(random_state=s),
    "linear-svc": lambda s: LinearSVC(random_state=s),
    "ridge": lambda s: RidgeClassifier(),
    "perceptron": lambda s: Perceptron(random_state=s),
    "neighbours": lambda s: KNeighborsClassifier(5),
    "bayes": lambda s: GaussianNB(),
    "bagging-logistic": lambda s: BaggingClassifier(LogisticRegression(), n_estimators=2, random_state=s),
    "calibrated-logistic": lambda s: CalibratedClassifierCV(LogisticRegression(), cv=2),
    "calibrated-svc": lambda s: CalibratedClassifierCV(LinearSVC(), cv=2),
    "voting-logistic": lambda s: VotingClassifier(
        [("a", LogisticRegression()), ("b", LogisticRegression(C=0.01))], voting="soft"
    ),
    "threshold-logistic": lambda s: FixedThresholdClassifier(LogisticRegression(), threshold=0.3),
    "threshold-mlp": lambda s: FixedThresholdClassifier(
        MLPClassifier((5,), max_iter=60, random_state=s), threshold=0.3
    ),
    "threshold-decision": lambda s: FixedThresholdClassifier(
        LogisticRegression(), threshold=1.0, response_method="decision_function"
    ),
    "ovr-logistic": lambda s: OneVsRestClassifier(LogisticRegression()),
}.items():
    _losses = ("zero_one",) if _name in ("svc", "linear-svc", "ridge", "perceptron") else BOTH

    @kind(f"encoded/{_name}", "encoded", losses=_losses)
    def _(X, y, seed, make=_make):
        return make(seed).fit(X.to_numpy(), y)

    if _name in ("logistic", "logistic-sharp", "mlp", "linear-svc", "threshold-logistic", "lda"):

        @kind(f"words/{_name}", "words", losses=_losses, labels="words")
        def _(X, y, seed, make=_make):
            return pipe(X, make(seed), None, StandardScaler()).fit(X, y)

        @kind(f"numbers/{_name}", "numbers", losses=_losses)
        def _(X, y, seed, make=_make):
            return make_pipeline(StandardScaler(), make(seed)).fit(X, y)


@kind("numbers/logistic-raw", "numbers")
def _(X, y, seed):
    return LogisticRegression(solver="liblinear").fit(X, y)


# -- subclasses ---------------------------------------------------------------------------------------------------


class TimidLogistic(LogisticRegression):
    """Answers towards one half."""

    def predict_proba(self, X):
        return 0.5 + 0.2 * (super().predict_proba(X) - 0.5)


class SternLogistic(LogisticRegression):
    """Says 1 from .8 on."""

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.8).astype(int)]


class ShiftedLogistic(LogisticRegression):
    """Another decision function, from which the rest follows."""

    def decision_function(self, X):
        return super().decision_function(X) + 2.0


class SquaredForest(RandomForestClassifier):
    def predict_proba(self, X):
        p = super().predict_proba(X) ** 3
        return p / p.sum(axis=1, keepdims=True)


class ContraryForest(RandomForestClassifier):
    def predict(self, X):
        return self.classes_[super().predict_proba(X).argmin(axis=1)]


class ContraryTree(DecisionTreeClassifier):
    def predict_proba(self, X, check_input=True):
        return super().predict_proba(X, check_input)[:, ::-1]


class ShiftedScaler(StandardScaler):
    def transform(self, X, copy=None):
        return super().transform(X, copy) + 1.0


class ContraryMLP(MLPClassifier):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


class SquaredHist(HistGradientBoostingClassifier):
    def predict_proba(self, X):
        p = super().predict_proba(X) ** 3
        return p / p.sum(axis=1, keepdims=True)


for _name, _make in {
    "timid-logistic": lambda s: TimidLogistic(),
    "stern-logistic": lambda s: SternLogistic(),
    "shifted-logistic": lambda s: ShiftedLogistic(),
    "contrary-mlp": lambda s: ContraryMLP((5,), max_iter=60, random_state=s),
}.items():

    @kind(f"subclass/{_name}", "encoded")
    def _(X, y, seed, make=_make):
        return make(seed).fit(X.to_numpy(), y)

    @kind(f"subclass/{_name}-pipeline", "words")
    def _(X, y, seed, make=_make):
        return pipe(X, make(seed), None, StandardScaler()).fit(X, y)


for _name, _make in {
    "squared-forest": lambda s: SquaredForest(4, max_depth=3, random_state=s),
    "contrary-forest": lambda s: ContraryForest(4, max_depth=3, random_state=s),
    "contrary-tree": lambda s: ContraryTree(max_depth=3, random_state=s),
    "squared-hist": lambda s: SquaredHist(max_iter=4, max_depth=3, random_state=s),
    "forest-of-changed-method": lambda s: forest(s),
}.items():

    @kind(f"subclass/{_name}", "numbers")
    def _(X, y, seed, make=_make, name=_name):
        model = make(seed).fit(X, y)
        if name == "forest-of-changed-method":
            usual = model.predict_proba
            model.predict_proba = lambda rows: 0.5 + 0.5 * (usual(rows) - 0.5)
        return model

    @kind(f"subclass/{_name}-pipeline", "words")
    def _(X, y, seed, make=_make):
        return pipe(X, make(seed)).fit(X, y)


@kind("subclass/shifted-scaler", "words")
def _(X, y, seed):
    usual = pipe(X, forest(seed), OneHotEncoder(sparse_output=False), ShiftedScaler())
    return usual.fit(X, y)


@kind("subclass/xgb", "numbers")
def _(X, y, seed):
    from xgboost import XGBClassifier

    class Timid(XGBClassifier):
        def predict_proba(self, X, **more):
            return 0.5 + 0.2 * (super().predict_proba(X, **more) - 0.5)

    return Timid(n_estimators=4, max_depth=3, n_jobs=1).fit(X, y)


@kind("subclass/xgb-predict", "words")
def _(X, y, seed):
    from xgboost import XGBClassifier

    class Stern(XGBClassifier):
        def predict(self, X, **more):
            return (self.predict_proba(X)[:, 1] > 0.7).astype(int)

    return pipe(X, Stern(n_estimators=4, max_depth=3, n_jobs=1)).fit(X, y)


@kind("subclass/lgb", "numbers")
def _(X, y, seed):
    from lightgbm import LGBMClassifier

    class Timid(LGBMClassifier):
        def predict_proba(self, X, **more):
            return 0.5 + 0.2 * (super().predict_proba(X, **more) - 0.5)

    return Timid(n_estimators=4, max_depth=3, n_jobs=1, verbose=-1).fit(X, y)


@kind("subclass/cat", "numbers")
def _(X, y, seed):
    from catboost import CatBoostClassifier

    class Timid(CatBoostClassifier):
        def predict_proba(self, X, **more):
            return 0.5 + 0.2 * (super().predict_proba(X, **more) - 0.5)

    return Timid(iterations=4, depth=3, thread_count=1, verbose=0, allow_writing_files=False).fit(X, y)


# -- XGBoost --------------------------------------------------------------------------------------------------------

for _name, _choices in {
    "plain": {},
    "exact": {"tree_method": "exact"},
    "deep": {"max_depth": 6, "n_estimators": 8, "learning_rate": 1.0, "reg_lambda": 0.0},
    "saturated": {"n_estimators": 30, "learning_rate": 1.0, "reg_lambda": 0.0, "min_child_weight": 0.0},
    "missing-zero": {"missing": 0},
    "missing-three": {"missing": 3.0},
    "dart": {"booster": "dart", "rate_drop": 0.4},
    "linear": {"booster": "gblinear"},
    "base-score": {"base_score": 0.9},
    "loss-guide": {"grow_policy": "lossguide", "max_leaves": 5},
    "forest": {"num_parallel_tree": 3, "n_estimators": 2},
    "few-bins": {"max_bin": 4},
    "monotone": {"monotone_constraints": "(1)"},
    "logitraw": {"objective": "binary:logitraw"},
    "hinge": {"objective": "binary:hinge"},
    "scaled": {"scale_pos_weight": 4.0},
}.items():

    @kind(f"xgb/{_name}", "numbers", losses=("zero_one",) if _name in ("hinge", "logitraw") else BOTH)
    def _(X, y, seed, choices=_choices):
        return xgb(seed, **choices).fit(X, y)

    if _name in ("plain", "missing-zero", "dart", "saturated", "deep"):

        @kind(f"xgb/{_name}-words-sparse", "words")
        def _(X, y, seed, choices=_choices):
            return pipe(X, xgb(seed, **choices)).fit(X, y)

        @kind(f"xgb/{_name}-encoded", "encoded")
        def _(X, y, seed, choices=_choices):
            return xgb(seed, **choices).fit(X.to_numpy(), y)


def _early(X, y, seed, **choices):
    model = xgb(seed, n_estimators=20, early_stopping_rounds=2, **choices)
    half = len(X) // 2
    return model.fit(X[:half], y[:half], eval_set=[(X[half:], y[half:])], verbose=False)


@kind("xgb/early", "numbers")
def _(X, y, seed):
    return _early(X, y, seed)


@kind("xgb/early-dart", "numbers")
def _(X, y, seed):
    return _early(X, y, seed, booster="dart", rate_drop=0.4)


@kind("xgb/early-callback", "numbers")
def _(X, y, seed):
    from xgboost.callback import EarlyStopping

    model = xgb(seed, n_estimators=20, callbacks=[EarlyStopping(rounds=2, save_best=False)])
    return model.fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], verbose=False)


@kind("xgb/early-callback-best", "numbers")
def _(X, y, seed):
    from xgboost.callback import EarlyStopping

    model = xgb(seed, n_estimators=20, callbacks=[EarlyStopping(rounds=2, save_best=True)])
    return model.fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], verbose=False)


@kind("xgb/early-file", "numbers")
def _(X, y, seed):
    from xgboost import XGBClassifier

    import likewise as lw

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        _early(X, y, seed).save_model(path)
        again = XGBClassifier()
        again.load_model(path)
        return Fitted(lw.load_model(path, trust=True), as_fitted(again).ask)


@kind("xgb/file-ubj", "numbers")
def _(X, y, seed):
    from xgboost import XGBClassifier

    import likewise as lw

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ubj"
        xgb(seed).fit(X, y).save_model(path)
        again = XGBClassifier()
        again.load_model(path)
        return Fitted(lw.load_model(path, trust=True), as_fitted(again).ask)


@kind("xgb/booster", "numbers")
def _(X, y, seed):
    import xgboost

    model = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "eta": 0.5}, xgboost.DMatrix(X, y), 4
    )
    return Fitted(model, probabilities_only(lambda rows: model.predict(xgboost.DMatrix(rows))))


@kind("xgb/booster-early", "numbers")
def _(X, y, seed):
    import xgboost

    model = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "eta": 0.5},
        xgboost.DMatrix(X[:100], y[:100]),
        20,
        evals=[(xgboost.DMatrix(X[100:], y[100:]), "e")],
        early_stopping_rounds=2,
        verbose_eval=False,
    )
    return Fitted(model, probabilities_only(lambda rows: model.predict(xgboost.DMatrix(rows))))


@kind("xgb/booster-sliced", "numbers")
def _(X, y, seed):
    import xgboost

    model = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "eta": 0.5}, xgboost.DMatrix(X, y), 6
    )[1:4]
    return Fitted(model, probabilities_only(lambda rows: model.predict(xgboost.DMatrix(rows))))


@kind("xgb/booster-softprob", "numbers", classes=3)
def _(X, y, seed):
    import xgboost

    model = xgboost.train(
        {"objective": "multi:softprob", "num_class": 3, "max_depth": 3, "nthread": 1},
        xgboost.DMatrix(X, y),
        3,
    )
    return Fitted(model, probabilities_only(lambda rows: model.predict(xgboost.DMatrix(rows)), (0, 1, 2)))


@kind("xgb/categories", "words")
def _(X, y, seed):
    levels = {name: sorted(set(X[name])) for name in words_of(X)}

    def typed(rows):
        return rows.assign(**{name: pd.Categorical(rows[name], categories=levels[name]) for name in levels})

    return make_pipeline(
        FunctionTransformer(typed), xgb(seed, enable_categorical=True, max_cat_to_onehot=1)
    ).fit(X, y)


@kind("xgb/categories-frame", "categories")
def _(X, y, seed):
    return xgb(seed, enable_categorical=True, max_cat_to_onehot=1).fit(X, y)


@kind("xgb/multi-output-trees", "numbers", classes=3)
def _(X, y, seed):
    return xgb(seed, multi_strategy="multi_output_tree").fit(X, y)


@kind("xgb/random-forest", "numbers")
def _(X, y, seed):
    from xgboost import XGBRFClassifier

    return XGBRFClassifier(n_estimators=4, max_depth=3, n_jobs=1, random_state=seed).fit(X, y)


@kind("xgb/continued", "numbers")
def _(X, y, seed):
    first = xgb(seed).fit(X, y)
    return xgb(seed + 1).fit(X, y, xgb_model=first.get_booster())


@kind("xgb/scaled-twice", "numbers")
def _(X, y, seed):
    return make_pipeline(StandardScaler(), RobustScaler(), xgb(seed)).fit(X, y)


# -- LightGBM -------------------------------------------------------------------------------------------------------

for _name, _choices in {
    "plain": {},
    "linear-tree": {"linear_tree": True},
    "zero-as-missing": {"zero_as_missing": True},
    "no-missing": {"use_missing": False},
    "goss": {"data_sample_strategy": "goss"},
    "dart": {"boosting_type": "dart", "drop_rate": 0.5},
    "forest": {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
    "cross-entropy": {"objective": "cross_entropy"},
    "sigmoid": {"sigmoid": 2.5},
    "unbalanced": {"is_unbalance": True},
    "from-average": {"boost_from_average": False},
    "saturated": {"n_estimators": 30, "learning_rate": 1.0, "min_child_samples": 1, "min_child_weight": 0.0},
    "extra": {"extra_trees": True},
}.items():

    @kind(f"lgb/{_name}", "numbers")
    def _(X, y, seed, choices=_choices):
        return lgb(seed, **choices).fit(X, y)

    if _name in ("plain", "linear-tree", "zero-as-missing"):

        @kind(f"lgb/{_name}-words", "words")
        def _(X, y, seed, choices=_choices):
            return pipe(X, lgb(seed, **choices)).fit(X, y)

        @kind(f"lgb/{_name}-encoded", "encoded")
        def _(X, y, seed, choices=_choices):
            return lgb(seed, **choices).fit(X.to_numpy(), y)


@kind("lgb/codes-as-categories", "numbers")
def _(X, y, seed):
    columns = [name for name in X if X[name].dtype.kind in "iu"]
    return lgb(seed, min_data_per_group=1, cat_smooth=0.0, cat_l2=0.0, max_cat_to_onehot=1).fit(
        X, y, categorical_feature=columns
    )


@kind("lgb/categories-frame", "categories")
def _(X, y, seed):
    return lgb(seed, min_data_per_group=1, cat_smooth=0.0, max_cat_to_onehot=1).fit(X, y)


@kind("lgb/trained-with-gaps", "numbers")
def _(X, y, seed):
    holes = X.astype(float).mask(np.random.default_rng(seed).random(X.shape) < 0.15)
    return lgb(seed).fit(holes, y)


@kind("lgb/zero-as-missing-with-gaps", "numbers")
def _(X, y, seed):
    holes = X.astype(float).mask(np.random.default_rng(seed).random(X.shape) < 0.15)
    return lgb(seed, zero_as_missing=True).fit(holes, y)


@kind("lgb/early", "numbers")
def _(X, y, seed):
    import lightgbm

    return lgb(seed, n_estimators=20).fit(
        X[:100], y[:100], eval_set=[(X[100:], y[100:])], callbacks=[lightgbm.early_stopping(2, verbose=False)]
    )


def _lgb_native(X, y, **choices):
    import lightgbm

    return lightgbm.train(
        {
            "objective": "binary",
            "num_leaves": 6,
            "num_threads": 1,
            "verbose": -1,
            "min_data_in_leaf": 5,
            "learning_rate": 0.5,
        },
        lightgbm.Dataset(X, y, free_raw_data=False),
        4,
        **choices,
    )


@kind("lgb/booster", "numbers")
def _(X, y, seed):
    model = _lgb_native(X, y)
    return Fitted(model, probabilities_only(model.predict))


@kind("lgb/booster-early", "numbers")
def _(X, y, seed):
    import lightgbm

    model = lightgbm.train(
        {
            "objective": "binary",
            "num_leaves": 6,
            "num_threads": 1,
            "verbose": -1,
            "min_data_in_leaf": 5,
            "learning_rate": 0.5,
        },
        (data := lightgbm.Dataset(X[:100], y[:100])),
        20,
        valid_sets=[lightgbm.Dataset(X[100:], y[100:], reference=data)],
        callbacks=[lightgbm.early_stopping(2, verbose=False)],
    )
    return Fitted(model, probabilities_only(model.predict))


@kind("lgb/file", "numbers")
def _(X, y, seed):
    import lightgbm

    import likewise as lw

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.txt"
        _lgb_native(X, y).save_model(path)
        again = lightgbm.Booster(model_file=path)
        return Fitted(lw.load_model(path, trust=True), probabilities_only(again.predict))


@kind("lgb/early-file", "numbers")
def _(X, y, seed):
    import lightgbm

    import likewise as lw

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.txt"
        lgb(seed, n_estimators=20).fit(
            X[:100],
            y[:100],
            eval_set=[(X[100:], y[100:])],
            callbacks=[lightgbm.early_stopping(2, verbose=False)],
        ).booster_.save_model(path)
        again = lightgbm.Booster(model_file=path)
        return Fitted(lw.load_model(path, trust=True), probabilities_only(again.predict))


# -- CatBoost -------------------------------------------------------------------------------------------------------

for _name, _choices in {
    "plain": {},
    "lossguide": {"grow_policy": "Lossguide", "max_leaves": 5},
    "depthwise": {"grow_policy": "Depthwise"},
    "min-max": {"nan_mode": "Max"},
    "cross-entropy": {"loss_function": "CrossEntropy"},
    "few-borders": {"border_count": 4},
}.items():

    @kind(f"cat/{_name}", "numbers")
    def _(X, y, seed, choices=_choices):
        if "loss_function" not in choices:
            return cat(seed, **choices).fit(X, y)
        model = cat(seed, **choices).fit(X, y.astype(float))
        return Fitted(model, probabilities_only(lambda rows: model.predict_proba(rows)[:, 1]))


@kind("cat/encoded", "encoded")
def _(X, y, seed):
    return cat(seed).fit(X.to_numpy(), y)


@kind("cat/threshold", "numbers")
def _(X, y, seed):
    model = cat(seed).fit(X, y)
    model.set_probability_threshold(0.3)
    return model


@kind("cat/scale-and-bias", "numbers")
def _(X, y, seed):
    model = cat(seed).fit(X, y)
    model.set_scale_and_bias(2.0, 0.5)
    return model


@kind("cat/shrunk", "numbers")
def _(X, y, seed):
    model = cat(seed, iterations=6).fit(X, y)
    model.shrink(3)
    return model


@kind("cat/categories-one-hot", "words")
def _(X, y, seed):
    return cat(seed, one_hot_max_size=10, cat_features=words_of(X)).fit(X, y)


@kind("cat/categories-counters", "words")
def _(X, y, seed):
    return cat(seed, one_hot_max_size=1, cat_features=words_of(X)).fit(X, y)


@kind("cat/early", "numbers")
def _(X, y, seed):
    return cat(seed, iterations=20, early_stopping_rounds=2).fit(
        X[:100], y[:100], eval_set=(X[100:], y[100:])
    )


@kind("cat/file", "numbers")
def _(X, y, seed):
    from catboost import CatBoostClassifier

    import likewise as lw

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.cbm")
        cat(seed).fit(X, y).save_model(path)
        return Fitted(lw.load_model(path, trust=True), as_fitted(CatBoostClassifier().load_model(path)).ask)


@kind("cat/pipeline", "words")
def _(X, y, seed):
    return pipe(X, cat(seed), OneHotEncoder(sparse_output=False)).fit(X, y)


# -- fair boosting: trees that see some of the columns, and some of the values as one --------------------------------


def fair_trees(X, y, seed, **choices):
    return FairBoostingClassifier(n_estimators=6, max_depth=3, random_state=seed, **choices).fit(X, y)


@kind("fair/plain", "words")
def _(X, y, seed):
    return fair_trees(X, y, seed)


@kind("fair/blind", "words")
def _(X, y, seed):
    return fair_trees(X, y, seed, sensitive_features=["sex"])


@kind("fair/numbers-blind", "numbers")
def _(X, y, seed):
    return fair_trees(X, y, seed, sensitive_features=["sex"], group_penalty=1.0)


@kind("fair/values-made-one", "words")
def _(X, y, seed):
    column = "job" if "job" in X else "race" if "race" in X else "sex"
    return fair_trees(X, y, seed, edits={column: sorted(X[column].unique())[:2]})


@kind("fair/three", "words", classes=3, labels="words")
def _(X, y, seed):
    return fair_trees(X, y, seed)


# -- torch -----------------------------------------------------------------------------------------------------------


def _net(
    width,
    classes,
    seed,
    *,
    hidden=5,
    end=None,
    batch_norm=False,
    dropout=False,
    activation=None,
    double=False,
):
    import torch
    from torch import nn

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = [nn.Linear(width, hidden)]
        if batch_norm:
            layers.append(nn.BatchNorm1d(hidden))
        layers.append(activation or nn.ReLU())
        if dropout:
            layers.append(nn.Dropout(0.3))
        layers += [nn.Linear(hidden, 4), nn.ReLU(), nn.Linear(4, classes)]
        if end is not None:
            layers.append(end)
        net = nn.Sequential(*layers)
    return net.double() if double else net


def _taught(net, X, y, *, outputs="logits", steps=40, sharp=1.0):
    """Train it a little; `outputs` says what comes out of it."""
    import torch
    from torch.nn import functional as F

    dtype = next(net.parameters()).dtype
    x, t = torch.as_tensor(X.to_numpy(), dtype=dtype), torch.as_tensor(y)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for _ in range(steps):
            out = net(x)
            if outputs == "logits" and out.shape[1] > 1:
                loss = F.cross_entropy(out, t)
            elif outputs == "logits":
                loss = F.binary_cross_entropy_with_logits(out[:, 0], t.to(dtype))
            elif outputs == "sigmoid":
                loss = F.binary_cross_entropy(out[:, 0], t.to(dtype))
            else:
                loss = F.nll_loss(out.clamp_min(1e-9).log() if outputs == "softmax" else out, t)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if sharp != 1:
        with torch.no_grad():
            last = [layer for layer in net.modules() if isinstance(layer, torch.nn.Linear)][-1]
            last.weight *= sharp
            last.bias *= sharp
    return net.eval().requires_grad_(True)


def _torch_fitted(net, outputs):
    import torch

    dtype = next(net.parameters()).dtype

    def answer(rows):
        with torch.no_grad():
            out = net(torch.as_tensor(np.asarray(rows), dtype=dtype))
            if outputs == "logits" and out.shape[1] > 1:
                return out.double().softmax(-1).numpy()
            if outputs == "logits":
                f = out.double()[:, 0]
                return torch.stack([torch.sigmoid(-f), torch.sigmoid(f)], 1).numpy()
            if outputs == "log-softmax":
                return out.double().exp().numpy()
            return out.double().numpy()

    classes = (0, 1, 2) if outputs != "sigmoid" and list(net.parameters())[-1].shape[0] == 3 else (0, 1)
    return Fitted(net, probabilities_only(answer, classes))


def _torch_kinds():
    from torch import nn

    return {
        "logits": (2, "logits", {}, {}),
        "logits-double": (2, "logits", {"double": True}, {}),
        "logits-sharp": (2, "logits", {}, {"sharp": 40.0}),
        "one-logit": (1, "logits", {}, {}),
        "sigmoid": (1, "sigmoid", {"end": nn.Sigmoid}, {}),
        "sigmoid-sharp": (1, "sigmoid", {"end": nn.Sigmoid}, {"sharp": 40.0}),
        "softmax": (2, "softmax", {"end": lambda: nn.Softmax(-1)}, {}),
        "softmax-sharp": (2, "softmax", {"end": lambda: nn.Softmax(-1)}, {"sharp": 40.0}),
        "log-softmax": (2, "log-softmax", {"end": lambda: nn.LogSoftmax(-1)}, {}),
        "batch-norm": (2, "logits", {"batch_norm": True}, {}),
        "dropout": (2, "logits", {"dropout": True}, {}),
        "leaky": (2, "logits", {"activation": nn.LeakyReLU}, {}),
        "elu": (2, "logits", {"activation": nn.ELU}, {}),
        "relu6": (2, "logits", {"activation": nn.ReLU6}, {}),
        "hardtanh": (2, "logits", {"activation": nn.Hardtanh}, {}),
        "gelu": (2, "logits", {"activation": nn.GELU}, {}),
        "three": (3, "logits", {}, {}),
        "three-softmax-double": (3, "softmax", {"double": True, "end": lambda: nn.Softmax(-1)}, {}),
    }


def _add_torch_kinds():
    for name in (
        "logits",
        "logits-double",
        "logits-sharp",
        "one-logit",
        "sigmoid",
        "sigmoid-sharp",
        "softmax",
        "softmax-sharp",
        "log-softmax",
        "batch-norm",
        "dropout",
        "leaky",
        "elu",
        "relu6",
        "hardtanh",
        "gelu",
        "three",
        "three-softmax-double",
    ):

        @kind(f"torch/{name}", "encoded", classes=3 if name.startswith("three") else 2)
        def _(X, y, seed, name=name):
            width, outputs, choices, taught = _torch_kinds()[name]
            choices = {
                key: value() if key in ("end", "activation") else value for key, value in choices.items()
            }
            net = _net(X.shape[1], width, seed, **choices)
            return _torch_fitted(_taught(net, X, y, outputs=outputs, **taught), outputs)


_add_torch_kinds()


@kind("torch/linear", "encoded")
def _(X, y, seed):
    from torch import nn

    return _torch_fitted(_taught(nn.Sequential(nn.Linear(X.shape[1], 2)), X, y), "logits")


@kind("torch/forward-hook", "encoded")
def _(X, y, seed):
    net = _taught(_net(X.shape[1], 2, seed), X, y)
    net[0].register_forward_hook(lambda layer, given, out: out * 2 - 1)
    return _torch_fitted(net, "logits")


@kind("torch/forward-pre-hook", "encoded")
def _(X, y, seed):
    net = _taught(_net(X.shape[1], 2, seed), X, y)
    net.register_forward_pre_hook(lambda layer, given: (given[0] * 0.5 + 1,))
    return _torch_fitted(net, "logits")


@kind("torch/subclass-of-sequential", "encoded")
def _(X, y, seed):
    from torch import nn

    class Doubled(nn.Sequential):
        def forward(self, x):
            return 2 * super().forward(x) - x[:, :2]

    return _torch_fitted(_taught(Doubled(*_net(X.shape[1], 2, seed)), X, y), "logits")


@kind("torch/subclass-of-linear", "encoded")
def _(X, y, seed):
    from torch import nn

    class Shifted(nn.Linear):
        def forward(self, x):
            return super().forward(x).abs()

    net = _net(X.shape[1], 2, seed)
    layer = Shifted(X.shape[1], 5)
    layer.load_state_dict(net[0].state_dict())
    net[0] = layer
    return _torch_fitted(_taught(net, X, y), "logits")


@kind("torch/weight-norm", "encoded")
def _(X, y, seed):
    from torch.nn.utils.parametrizations import weight_norm

    net = _net(X.shape[1], 2, seed)
    weight_norm(net[0])
    return _torch_fitted(_taught(net, X, y), "logits")


@kind("torch/module-of-own", "encoded")
def _(X, y, seed):
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.one, self.two, self.out = nn.Linear(width, 5), nn.Linear(5, 5), nn.Linear(5, 2)

        def forward(self, x):
            h = self.one(x).relu()
            return self.out(h + self.two(h).relu())

    return _torch_fitted(_taught(Residual(X.shape[1]), X, y), "logits")


# -- ONNX ------------------------------------------------------------------------------------------------------------


def _onnx_answer(data, *, logits=False):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options)
    name, kind_ = session.get_inputs()[0].name, session.get_inputs()[0].type
    dtype = np.float64 if "double" in kind_ else np.float32

    def answer(rows):
        p = np.asarray(session.run(None, {name: np.asarray(rows, dtype=dtype)})[-1], dtype=np.float64)
        if logits:
            p = np.exp(p - p.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
        return p

    return answer


def _onnx_net(width, classes, seed, X, y, *, softmax=False):
    """Written node by node: exporting a torch module takes seconds."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    net = _taught(_net(width, classes, seed), X, y)
    weights, nodes, last = [], [], "x"
    for j, layer in enumerate(net):
        if hasattr(layer, "weight"):
            weights += [
                numpy_helper.from_array(layer.weight.detach().numpy().copy(), f"w{j}"),
                numpy_helper.from_array(layer.bias.detach().numpy().copy(), f"b{j}"),
            ]
            nodes.append(helper.make_node("Gemm", [last, f"w{j}", f"b{j}"], [f"h{j}"], transB=1))
        else:
            nodes.append(helper.make_node("Relu", [last], [f"h{j}"]))
        last = f"h{j}"
    if softmax:
        nodes.append(helper.make_node("Softmax", [last], ["p"], axis=1))
        last = "p"
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, width])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [None, classes])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString()


for _softmax in (False, True):

    @kind(f"onnx/net-{'softmax' if _softmax else 'logits'}", "encoded")
    def _(X, y, seed, softmax=_softmax):
        data = _onnx_net(X.shape[1], 2, seed, X, y, softmax=softmax)
        return Fitted(data, probabilities_only(_onnx_answer(data, logits=not softmax)))


for _name, _make in {
    "forest": forest,
    "boosting": PLAIN_TREES["boosting"],
    "logistic": lambda s: LogisticRegression(),
    "mlp": lambda s: MLPClassifier((5,), max_iter=60, random_state=s),
}.items():

    @kind(f"onnx/{_name}", "encoded")
    def _(X, y, seed, make=_make):
        from skl2onnx import to_onnx

        model = make(seed).fit(X.to_numpy(np.float32), y)
        data = to_onnx(model, X.to_numpy(np.float32)[:1], options={"zipmap": False}).SerializeToString()
        return Fitted(data, probabilities_only(_onnx_answer(data)))


# -- functions ---------------------------------------------------------------------------------------------------------


@kind("function/probability", "numbers")
def _(X, y, seed):
    model = forest(seed).fit(X, y)

    def score(rows):
        return model.predict_proba(rows)[:, 1]

    return Fitted(score, probabilities_only(score))
