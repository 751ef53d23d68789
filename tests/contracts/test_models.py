"""One suite over every model adapter: the same promises whatever library trained the model."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import nn

from likewise.core.errors import InputError, ModelError
from likewise.models import CustomLoss, DifferentiableModel, Model, as_model

N = 150
RNG = np.random.default_rng(0)
NAMES = ["age", "hours per week", "capital-gain", "score"]
# Values that float32 holds exactly, so that libraries of either precision see the same rows.
X = RNG.normal(size=(N, 4)).astype(np.float32).astype(np.float64)
X.flags.writeable = False
BINARY = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * RNG.normal(size=N) > 0, 1, 0)
THREE = np.digitize(X[:, 0] - X[:, 2] + 0.5 * RNG.normal(size=N), [-0.7, 0.7])
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * RNG.normal(size=N)
FRAME = pd.DataFrame(X, columns=NAMES)
RAW = FRAME.assign(job=np.where(X[:, 3] > 0.3, "clerk", "driver"), children=RNG.integers(0, 4, N))
CATEGORIES = RAW.assign(job=RAW["job"].astype("category"))


@dataclass(frozen=True)
class Case:
    """A trained model, the rows it takes, and its probabilities by the library's own road."""

    model: Any
    X: Any
    y: np.ndarray
    classes: list[Any]
    reference: Callable[[], np.ndarray]
    choices: dict[str, Any] = field(default_factory=dict)
    scores: Callable[[], np.ndarray] | None = None
    atol: float = 1e-6


def _train(module: nn.Module, y: np.ndarray) -> nn.Module:
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    x, target = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    for _ in range(30):
        out = module(x)
        out = torch.cat([-out / 2, out / 2], 1) if out.shape[1] == 1 else out
        loss = nn.functional.cross_entropy(out, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module


def _mlp(n_outputs: int, y: np.ndarray = BINARY) -> nn.Module:
    torch.manual_seed(0)
    return _train(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, n_outputs)), y)


class Gated(nn.Module):
    """No plain network: one layer gates another."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.value, self.gate = nn.Linear(4, n_outputs), nn.Linear(4, n_outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.value(x) * torch.sigmoid(self.gate(x))


def _torch_scores(module: nn.Module) -> np.ndarray:
    with torch.no_grad():
        return module.eval()(torch.tensor(X, dtype=torch.float32)).double().numpy()


def _softmax(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 1 or scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def _case_torch(module: nn.Module, y: np.ndarray, **choices: Any) -> Case:
    n_classes = len(np.unique(y))

    def scores() -> np.ndarray:
        found = _torch_scores(module)
        return found[:, 0] if found.shape[1] == 1 else found

    return Case(module, X, y, list(range(n_classes)), lambda: _softmax(scores()), choices, scores)


def _sklearn(estimator: Any, table: Any, y: np.ndarray) -> Case:
    fitted = estimator.fit(table, y)
    decision = getattr(fitted, "decision_function", None)
    scores = None if decision is None else lambda: decision(table)
    return Case(fitted, table, y, sorted(set(y.tolist())), lambda: fitted.predict_proba(table), scores=scores)


def _logistic(y: np.ndarray) -> Case:
    from sklearn.linear_model import LogisticRegression

    return _sklearn(LogisticRegression(), X, y)


def _logistic_frame() -> Case:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return _sklearn(
        make_pipeline(StandardScaler(), LogisticRegression()), FRAME, np.where(BINARY, "yes", "no")
    )


def _column_pipeline() -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer((StandardScaler(), [*NAMES, "children"]), (OneHotEncoder(), ["job"]))
    return make_pipeline(columns, LogisticRegression())


def _hist(table: Any = X) -> Case:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return _sklearn(HistGradientBoostingClassifier(max_iter=10), table, THREE)


def _forest() -> Case:
    from sklearn.ensemble import RandomForestClassifier

    return _sklearn(RandomForestClassifier(10, random_state=0), X, THREE)


def _sklearn_mlp(y: np.ndarray, activation: str) -> Case:
    from sklearn.neural_network import MLPClassifier

    return _sklearn(
        MLPClassifier((6,), activation=activation, solver="lbfgs", max_iter=2000, alpha=0.1, random_state=0),
        X,
        y,
    )


def _xgb_native(table: Any, y: np.ndarray) -> Case:
    import xgboost

    n_classes = len(np.unique(y))
    objective = {"objective": "binary:logistic"}
    if n_classes > 2:
        objective = {"objective": "multi:softprob", "num_class": n_classes}
    data = xgboost.DMatrix(table, label=y, enable_categorical=True)
    booster = xgboost.train({"max_depth": 3, "nthread": 1, **objective}, data, 8)
    return Case(
        booster, table, y, list(range(n_classes)), lambda: _two(booster.predict(data)), {},
        lambda: booster.predict(data, output_margin=True), 1e-5,
    )  # fmt: skip


def _xgb_wrapper() -> Case:
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(FRAME, BINARY)
    return Case(
        model, FRAME, BINARY, [0, 1], lambda: model.predict_proba(FRAME), {},
        lambda: model.predict(FRAME, output_margin=True), 1e-5,
    )  # fmt: skip


def _two(p: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


def _lgb_native(table: Any, y: np.ndarray) -> Case:
    import lightgbm

    n_classes = len(np.unique(y))
    objective = (
        {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}
    )
    params = {"verbose": -1, "num_threads": 1, "deterministic": True, **objective}
    booster = lightgbm.train(params, lightgbm.Dataset(table, y), 8)
    return Case(
        booster, table, y, list(range(n_classes)), lambda: _two(booster.predict(table)), {},
        lambda: booster.predict(table, raw_score=True),
    )  # fmt: skip


def _lgb_wrapper() -> Case:
    import lightgbm

    labels = np.array(["a", "b", "c"])[THREE]
    model = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1).fit(
        FRAME.set_axis([*"wxyz"], axis=1), labels
    )
    table = FRAME.set_axis([*"wxyz"], axis=1)
    return Case(
        model, table, labels, ["a", "b", "c"], lambda: model.predict_proba(table), {},
        lambda: model.booster_.predict(table, raw_score=True),
    )  # fmt: skip


def _catboost(table: Any, y: np.ndarray, **more: Any) -> Case:
    import catboost

    model = catboost.CatBoostClassifier(
        iterations=8, verbose=False, allow_writing_files=False, thread_count=1, **more
    )
    model.fit(table, y)
    return Case(
        model, table, y, sorted(set(y.tolist())), lambda: model.predict_proba(table), {},
        lambda: model.predict(table, prediction_type="RawFormulaVal"),
    )  # fmt: skip


@cache
def _onnx_of_torch() -> bytes:
    net = _mlp(2).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = torch.export.Dim("rows")
        program = torch.onnx.export(
            net, (torch.zeros(3, 4),), dynamo=True, dynamic_shapes=({0: rows},), verbose=False
        )
    kept = io.BytesIO()
    program.save(kept)
    return kept.getvalue()


def _onnx_torch() -> Case:
    module = _mlp(2)
    return Case(
        _onnx_of_torch(),
        X,
        BINARY,
        [0, 1],
        lambda: _softmax(_torch_scores(module)),
        {},
        lambda: _torch_scores(module),
    )


def _onnx_sklearn(zipmap: bool) -> Case:
    from skl2onnx import to_onnx

    labels = np.array(["x", "y", "z"])[THREE]
    estimator = _logistic(labels).model
    proto = to_onnx(estimator, X[:1].astype(np.float32), options=None if zipmap else {"zipmap": False})
    choices = {} if zipmap else {"classes": ["x", "y", "z"]}
    return Case(proto, X, labels, ["x", "y", "z"], lambda: estimator.predict_proba(X), choices, None, 1e-5)


def _onnx_columns() -> Case:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

    estimator = _column_pipeline().fit(RAW, BINARY)
    types = [(name, FloatTensorType([None, 1])) for name in NAMES]
    types += [("job", StringTensorType([None, 1])), ("children", Int64TensorType([None, 1]))]
    proto = to_onnx(estimator, initial_types=types)
    return Case(proto, RAW, BINARY, [0, 1], lambda: estimator.predict_proba(RAW), {}, None, 1e-5)


def _callable() -> Case:
    estimator = _logistic(THREE).model
    return Case(
        lambda rows: estimator.predict_proba(rows), X, THREE, [0, 1, 2], lambda: estimator.predict_proba(X)
    )


def _callable_frame() -> Case:
    estimator = _column_pipeline().fit(RAW, BINARY)
    return Case(estimator.predict_proba, RAW, BINARY, [0, 1], lambda: estimator.predict_proba(RAW))


def _fair_boosting(table: Any, y: np.ndarray, **choices: Any) -> Case:
    from likewise.training import FairBoostingClassifier

    pytest.importorskip(choices.get("library", "xgboost"))
    estimator = FairBoostingClassifier(n_estimators=10, random_state=0, **choices).fit(table, y)
    return Case(
        estimator,
        table,
        y,
        np.unique(y).tolist(),
        lambda: estimator.predict_proba(table),
        scores=lambda: estimator.decision_function(table),
    )


def _consensus(table: Any, estimator: Any, sensitive: list[str]) -> Case:
    from likewise.mitigation import TwinConsensus

    fair = TwinConsensus(estimator.fit(table, BINARY), sensitive_features=sensitive).fit(table)
    twins = [table.assign(**{sensitive[0]: value}) for value in sorted(set(table[sensitive[0]]))]
    return Case(
        fair,
        table,
        BINARY,
        [0, 1],
        lambda: np.mean([estimator.predict_proba(twin) for twin in twins], axis=0),
    )


CASES: dict[str, Callable[[], Case]] = {
    "torch mlp": lambda: _case_torch(_mlp(3, THREE), THREE),
    "torch mlp, binary": lambda: _case_torch(_mlp(2), BINARY),
    "torch, one logit": lambda: _case_torch(_mlp(1), BINARY),
    "torch, custom module": lambda: _case_torch(_train(Gated(3), THREE), THREE),
    "torch, custom one logit": lambda: _case_torch(_train(Gated(1), BINARY), BINARY, classes=[0, 1]),
    "logistic regression": lambda: _logistic(THREE),
    "logistic pipeline": _logistic_frame,
    "pipeline on a table": lambda: _sklearn(_column_pipeline(), RAW, np.where(BINARY, ">50K", "<=50K")),
    "hist gradient boosting": _hist,
    "hist gradient boosting, categories": lambda: _hist(CATEGORIES),
    "random forest": _forest,
    "sklearn mlp": lambda: _sklearn_mlp(BINARY, "tanh"),
    "sklearn mlp, 3 classes": lambda: _sklearn_mlp(THREE, "relu"),
    "xgboost": lambda: _xgb_native(X, BINARY),
    "xgboost, 3 classes": lambda: _xgb_native(FRAME, THREE),
    "xgboost, categories": lambda: _xgb_native(CATEGORIES, BINARY),
    "xgboost wrapper": _xgb_wrapper,
    "lightgbm": lambda: _lgb_native(X, BINARY),
    "lightgbm, categories": lambda: _lgb_native(CATEGORIES.set_axis([*"uvwxyz"], axis=1), THREE),
    "lightgbm wrapper": _lgb_wrapper,
    "catboost": lambda: _catboost(X, THREE),
    "catboost, categories": lambda: _catboost(RAW, BINARY, cat_features=["job"]),
    "onnx of torch": _onnx_torch,
    "onnx of sklearn": lambda: _onnx_sklearn(zipmap=False),
    "onnx of sklearn, zipmap": lambda: _onnx_sklearn(zipmap=True),
    "onnx, one input per column": _onnx_columns,
    "function": _callable,
    "bound method on a table": _callable_frame,
    "fair boosting": lambda: _fair_boosting(X, THREE, sensitive_features=[3]),
    "fair boosting on a table": lambda: _fair_boosting(
        RAW, np.where(BINARY, "yes", "no"), sensitive_features="job", library="lightgbm"
    ),
    "consensus on a table": lambda: _consensus(RAW, _column_pipeline(), ["job"]),
}
SCORED = [
    name for name in CASES
    if not any(word in name for word in ("forest", "sklearn mlp", "onnx of sklearn", "onnx, one", "function", "bound", "consensus"))
]  # fmt: skip


@cache
def case_of(name: str) -> Case:
    return CASES[name]()


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(request.param)


def wrap(case: Case, **choices: Any) -> Model:
    return as_model(case.model, **{**case.choices, **choices})


def take(table: Any, rows: Any) -> Any:
    return table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]


def index_of(case: Case) -> np.ndarray:
    return np.array([case.classes.index(label) for label in case.y.tolist()])


def test_classes_and_shapes(case):
    model = wrap(case)
    outputs = model.outputs(case.X)
    assert outputs.shape == (N, len(case.classes))
    assert outputs.dtype == np.float64
    assert np.asarray(model.classes_).tolist() == case.classes
    assert as_model(model) is model


def test_losses_are_those_of_the_librarys_own_probabilities(case):
    model = wrap(case)
    expected = -np.log(np.clip(case.reference(), 1e-12, 1))
    table = model.loss_table(case.X)
    np.testing.assert_allclose(table, expected, atol=case.atol * 10, rtol=case.atol * 100)
    np.testing.assert_allclose(model.predict_proba(case.X), case.reference(), atol=case.atol)
    np.testing.assert_array_equal(model.losses(case.X, case.y), table[np.arange(N), index_of(case)])
    assert table.max() <= model.loss.upper_bound


def test_predictions_are_the_largest_output(case):
    model = wrap(case)
    expected = np.asarray(case.classes, dtype=object)[model.outputs(case.X).argmax(axis=1)]
    assert model.predict(case.X).tolist() == expected.tolist()
    assert (model.predict(case.X) == case.y).mean() > 0.6


def test_zero_one(case):
    model = wrap(case, loss="zero_one")
    table = model.loss_table(case.X)
    assert set(np.unique(table)) == {0.0, 1.0}
    assert (table.sum(axis=1) == len(case.classes) - 1).all()
    assert model.losses(case.X, case.y).mean() == pytest.approx((model.predict(case.X) != case.y).mean())
    assert model.loss.upper_bound == 1.0


@pytest.mark.parametrize("name", SCORED)
def test_hinge_is_the_margin_of_the_librarys_own_scores(name):
    case = case_of(name)
    assert case.scores is not None, "give the case its scores, or name it among the exceptions of SCORED"
    scores, index = np.asarray(case.scores(), dtype=float), index_of(case)
    if scores.ndim == 1:
        expected = np.maximum(0, 1 - np.where(index == 1, 1, -1) * scores)
    else:
        own = scores[np.arange(N), index]
        rivals = np.where(np.arange(scores.shape[1]) == index[:, None], -np.inf, scores).max(axis=1)
        expected = np.maximum(0, 1 + rivals - own)
    model = wrap(case, loss="hinge")
    np.testing.assert_allclose(model.losses(case.X, case.y), expected, atol=1e-5)
    with pytest.raises(InputError, match="no probabilities"):
        model.predict_proba(case.X)


@pytest.mark.parametrize(
    "name", ["random forest", "sklearn mlp", "onnx of sklearn", "onnx of sklearn, zipmap"]
)
def test_hinge_without_scores_is_refused(name):
    with pytest.raises(InputError, match="scores"):
        wrap(case_of(name), loss="hinge")


def test_own_loss_gets_the_models_outputs(case):
    own = CustomLoss(lambda out, y: out.gather(1, y[:, None])[:, 0] ** 2 + y)
    model = wrap(case, loss=own)
    outputs = model.outputs(case.X)
    np.testing.assert_allclose(model.loss_table(case.X), outputs**2 + np.arange(outputs.shape[1]))


def test_a_row_does_not_depend_on_the_rows_beside_it(case):
    model = wrap(case)
    whole = model.outputs(case.X)
    for rows in (np.array([17]), np.array([90, 3, 41]), np.arange(N)[::-1]):
        np.testing.assert_allclose(model.outputs(take(case.X, rows)), whole[rows], atol=1e-5)
    model.batch_rows = 7 if not getattr(model, "_fixed", None) else model.batch_rows
    np.testing.assert_allclose(model.outputs(case.X), whole, atol=1e-5)


def test_tables_and_arrays_of_any_library(case):
    model = wrap(case)
    whole = model.loss_table(case.X)
    if model.takes_frame:
        assert isinstance(case.X, pd.DataFrame)
        shuffled = case.X[case.X.columns[::-1]].assign(other=1.0)
        if model.feature_names:
            np.testing.assert_allclose(model.loss_table(shuffled), whole)
        if not any(isinstance(kind, pd.CategoricalDtype) for kind in case.X.dtypes):
            np.testing.assert_allclose(model.loss_table(pl.from_pandas(case.X)), whole, atol=1e-6)
        with pytest.raises(InputError, match="table"):
            model.outputs(X)
        return
    array = np.asarray(case.X)
    np.testing.assert_allclose(model.loss_table(array), whole)
    names = list(model.feature_names) if model.feature_names else NAMES
    frame = pd.DataFrame(array, columns=names)
    np.testing.assert_allclose(model.loss_table(frame), whole)
    np.testing.assert_allclose(model.loss_table(pl.from_pandas(frame)), whole)
    np.testing.assert_allclose(model.loss_table(torch.tensor(array)), whole)
    np.testing.assert_allclose(model.loss_table(array.astype(np.float32)), whole, atol=1e-5)
    if isinstance(case.X, pd.DataFrame):
        np.testing.assert_allclose(model.loss_table(frame[names[::-1]]), whole)
        with pytest.raises(InputError, match="no column"):
            model.outputs(frame.rename(columns={names[0]: "nobody"}))
    with pytest.raises(InputError, match="not numeric"):
        model.outputs(RAW[["job", *NAMES[1:]]].set_axis(names, axis=1))


def test_bad_input_is_refused(case):
    model = wrap(case)
    stranger = "martian" if isinstance(case.classes[0], str) else 99
    with pytest.raises(InputError, match=rf"does not know: {stranger!r} \(first at row 2\)"):
        model.losses(take(case.X, np.arange(3)), [*case.y[:2].tolist(), stranger])
    with pytest.raises(InputError, match="lengths differ"):
        model.losses(case.X, case.y[:-1])
    with pytest.raises(InputError, match="no rows"):
        model.outputs(take(case.X, np.arange(0)))
    with pytest.raises(InputError, match="missing label"):
        model.losses(take(case.X, np.arange(2)), [None, case.y.tolist()[0]])
    # A module, a graph or a function does not know what it is for; the number of its outputs tells.
    if not (isinstance(case.model, nn.Module) and case.scores().ndim == 1):
        with pytest.raises((InputError, ModelError), match=r"'loss'|one value per row|numbers"):
            wrap(case, loss="squared").losses(case.X, case.y)


def test_too_few_columns_are_refused(case):
    model = wrap(case)
    if isinstance(case.X, np.ndarray):
        # A function and a module of unknown make find out themselves.
        with pytest.raises((InputError, ModelError)):
            model.outputs(case.X[:, :3])
    elif model.feature_names:
        with pytest.raises(InputError, match="no column"):
            model.outputs(case.X.iloc[:, :3])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda good: np.where(np.arange(len(good))[:, None] == 5, np.nan, good), "not finite.*row 5"),
        (lambda good: np.where(np.arange(len(good))[:, None] == 5, np.inf, good), "not finite.*row 5"),
        (lambda good: good[:-1], "returned shape"),
        (lambda good: good.sum(), "returned shape"),
        (lambda good: np.hstack([good * 0.5, good * 0.5]), "columns for"),
        (lambda good: good[:, :, None], "returned shape"),
        (lambda good: np.full(good.shape, "high"), "expected numbers"),
        (lambda good: 1 / 0, "raised ZeroDivisionError"),
    ],
    ids=["nan", "inf", "too few rows", "scalar", "too many classes", "three axes", "text", "raises"],
)
def test_answers_that_cannot_be_scored_are_errors(case, spoil, message, monkeypatch):
    model = wrap(case)
    good = model.outputs(case.X)
    monkeypatch.setattr(model, "_answer", lambda rows: spoil(good))
    for ask in (model.outputs, model.loss_table, lambda rows: model.losses(rows, case.y)):
        with pytest.raises(ModelError, match=message):
            ask(case.X)


def test_random_states_are_left_alone(case):
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    wrap(case).losses(case.X, case.y)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert np.array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def test_a_copy_in_another_process_answers_the_same(case):
    """What the workers of an engine get: the adapter, pickled."""
    cloudpickle = pytest.importorskip("cloudpickle")
    model = wrap(case)
    sent = cloudpickle.loads(cloudpickle.dumps(model))
    assert sent.loss_table(case.X).tobytes() == model.loss_table(case.X).tobytes()
    assert sent.predict(case.X).tolist() == model.predict(case.X).tolist()


def test_twice_the_same_bytes(case):
    assert wrap(case).loss_table(case.X).tobytes() == wrap(case).loss_table(case.X).tobytes()


def double_oracle(model: Any) -> Any:
    """The oracle of a model in double precision; of a module that of a copy."""
    if not hasattr(model, "module"):
        return model.gradient_oracle()
    double = copy.deepcopy(model.module).double()
    return as_model(double, loss=model.loss, output=model._torch_output).gradient_oracle()


GRADED = [
    (name, loss)
    for name in CASES
    for loss in ("cross_entropy", "hinge")
    if name.startswith(("torch", "logistic")) or ("sklearn mlp" in name and loss == "cross_entropy")
]


@pytest.mark.parametrize(("name", "loss"), GRADED)
def test_gradients_are_those_of_the_losses(name, loss):
    case = case_of(name)
    model = wrap(case, loss=loss)
    assert isinstance(model, DifferentiableModel)
    oracle = double_oracle(model)
    x, y = torch.tensor(np.asarray(case.X), dtype=torch.float64), torch.tensor(model.targets(case.y))
    np.testing.assert_allclose(oracle(x, y)[0].numpy(), model.losses(case.X, case.y), atol=2e-6)
    # Beside the rows themselves: training to the end can put a kink of a ReLU exactly on one, where no slope is.
    x = x + 1e-3 * torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(0))
    _, gradient = oracle(x, y)
    step = 1e-6 * torch.eye(4, dtype=torch.float64)
    for j in range(4):
        slope = (oracle.loss(x + step[j], y) - oracle.loss(x - step[j], y)) / 2e-6
        np.testing.assert_allclose(gradient[:, j].numpy(), slope.numpy(), atol=1e-5)
    form = model.linear_form()
    assert (form is not None) == ("logistic" in name)
    if form is not None:
        scores = np.asarray(case.X) @ form[0].T + form[1]
        table = model.loss.table(scores)
        np.testing.assert_allclose(table, model.loss_table(case.X), atol=1e-9)


# Regression


def _linear_torch() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))


def _regressors() -> dict[str, Callable[[], tuple[Any, np.ndarray]]]:
    def fitted(estimator: Any) -> tuple[Any, np.ndarray]:
        estimator.fit(X, NUMBERS)
        return estimator, np.asarray(estimator.predict(X), dtype=float)

    def torch_case() -> tuple[Any, np.ndarray]:
        module = _linear_torch()
        return module, _torch_scores(module)[:, 0]

    def linear() -> tuple[Any, np.ndarray]:
        from sklearn.linear_model import LinearRegression

        return fitted(LinearRegression())

    def network() -> tuple[Any, np.ndarray]:
        from sklearn.neural_network import MLPRegressor

        return fitted(
            MLPRegressor(hidden_layer_sizes=(5,), solver="lbfgs", max_iter=3000, alpha=0.1, random_state=0)
        )

    def forest() -> tuple[Any, np.ndarray]:
        from sklearn.ensemble import RandomForestRegressor

        return fitted(RandomForestRegressor(5, random_state=0))

    def xgb() -> tuple[Any, np.ndarray]:
        import xgboost

        return fitted(xgboost.XGBRegressor(n_estimators=5, n_jobs=1))

    def xgb_native() -> tuple[Any, np.ndarray]:
        import xgboost

        data = xgboost.DMatrix(X, label=NUMBERS)
        booster = xgboost.train({"nthread": 1}, data, 5)
        return booster, booster.predict(data).astype(float)

    def lgb() -> tuple[Any, np.ndarray]:
        import lightgbm

        booster = lightgbm.train(
            {"objective": "regression", "verbose": -1, "num_threads": 1}, lightgbm.Dataset(X, NUMBERS), 5
        )
        return booster, np.asarray(booster.predict(X))

    def cat() -> tuple[Any, np.ndarray]:
        import catboost

        return fitted(
            catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False, thread_count=1)
        )

    def onnx() -> tuple[Any, np.ndarray]:
        from skl2onnx import to_onnx

        estimator, values = linear()
        return to_onnx(estimator, X[:1].astype(np.float32)), values

    def function() -> tuple[Any, np.ndarray]:
        return (lambda rows: rows.sum(axis=1)), X.sum(axis=1)

    return {
        "torch": torch_case, "linear": linear, "sklearn mlp": network, "forest": forest, "xgboost wrapper": xgb,
        "xgboost": xgb_native, "lightgbm": lgb, "catboost": cat, "onnx": onnx, "function": function,
    }  # fmt: skip


@pytest.mark.parametrize("name", _regressors())
def test_regression(name):
    model_object, values = _regressors()[name]()
    model = as_model(model_object, loss="squared")
    assert model.classes_ is None
    assert model.outputs(X).shape == (N, 1)
    np.testing.assert_allclose(model.predict(X), values, atol=1e-5)
    np.testing.assert_allclose(model.losses(X, NUMBERS), (values - NUMBERS) ** 2, atol=1e-4)
    np.testing.assert_allclose(
        model.loss.pairwise(model.outputs(X[:3]), NUMBERS[:2]),
        (values[:3, None] - NUMBERS[:2]) ** 2,
        atol=1e-4,
    )
    own = as_model(model_object, loss=CustomLoss(lambda out, y: (out[:, 0] - y).abs(), regression=True))
    np.testing.assert_allclose(own.losses(X, NUMBERS), np.abs(values - NUMBERS), atol=1e-5)
    with pytest.raises(InputError, match="pairwise"):
        model.loss_table(X)
    with pytest.raises(InputError, match="numbers"):
        model.losses(X, ["a"] * N)
    if name not in ("torch", "onnx", "function"):
        with pytest.raises(InputError, match="squared"):
            as_model(model_object)
    assert isinstance(model, DifferentiableModel) == (name in ("torch", "linear", "sklearn mlp"))
    if isinstance(model, DifferentiableModel):
        x, y = torch.tensor(X), torch.tensor(NUMBERS)
        loss, gradient = double_oracle(model)(x, y)
        np.testing.assert_allclose(loss.numpy(), model.losses(X, NUMBERS), atol=1e-5)
        assert gradient.shape == (N, 4)
        form = model.linear_form()
        assert (form is not None) == (name == "linear")
        if form is not None:
            np.testing.assert_allclose(X @ form[0][0] + form[1][0], values)
