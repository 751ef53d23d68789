"""What is particular to one library, and how `as_model` finds its way."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

import likewise as lw
from likewise.core.errors import FormatError, InputError, MissingExtraError, ModelError
from likewise.models import DifferentiableModel, OnnxModel, as_model
from likewise.models.convert import CallableModel
from likewise.models.sklearn_model import SklearnModel, wants_table
from likewise.models.sklearn_network import SklearnNetwork

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
Y = (X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=120) > 0).astype(int)
Y3 = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=120), [-0.5, 0.5])


# scikit-learn


def _gradient_matches(model) -> None:
    """Gradient of the oracle against differences of the estimator's own losses."""
    oracle = model.gradient_oracle()
    x, y = X[:10], Y[:10]
    _, gradient = oracle(torch.tensor(x), torch.tensor(model.targets(y)))
    for j in range(5):
        step = np.zeros(5)
        step[j] = 1e-5
        slope = (model.losses(x + step, y) - model.losses(x - step, y)) / 2e-5
        np.testing.assert_allclose(gradient[:, j].numpy(), slope, atol=1e-5)


def test_affine_steps_are_folded_into_the_first_layer():
    from sklearn.decomposition import PCA, TruncatedSVD
    from sklearn.feature_selection import SelectKBest
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    shifted = 3.0 * X + [1.0, -2.0, 0.5, 4.0, 0.0]
    steps = [
        [SimpleImputer(), StandardScaler()],
        [RobustScaler(), MinMaxScaler()],
        [MaxAbsScaler(), PCA(3, whiten=True)],
        [StandardScaler(with_mean=False), TruncatedSVD(2)],
        ["passthrough", SelectKBest(k=3), StandardScaler(with_std=False)],
    ]
    for before in steps:
        for final in (
            LogisticRegression(),
            MLPClassifier((4,), activation="tanh", solver="lbfgs", max_iter=3000, alpha=1.0),
        ):
            model = as_model(make_pipeline(*before, final).fit(shifted, Y))
            assert isinstance(model, SklearnNetwork), before
            _gradient_matches(model)
            form = model.linear_form()
            assert (form is None) == isinstance(final, MLPClassifier)
            if form is not None:
                expected = model.loss_table(shifted)
                np.testing.assert_allclose(
                    model.loss.table(shifted @ form[0].T + form[1]), expected, atol=1e-8
                )


def test_steps_that_are_not_affine_leave_no_gradient():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, Normalizer, PolynomialFeatures

    for step in (Normalizer(), PolynomialFeatures(2), MinMaxScaler(clip=True)):
        model = as_model(make_pipeline(step, LogisticRegression()).fit(X, Y))
        assert not isinstance(model, DifferentiableModel), step
        assert model.linear_form() is None


def test_one_against_rest_is_no_softmax_and_is_not_taken_for_one():
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.multiclass import OneVsRestClassifier

    binary = as_model(SGDClassifier(loss="log_loss", random_state=0).fit(X, Y))
    assert isinstance(binary, SklearnNetwork)
    three = SGDClassifier(loss="log_loss", random_state=0).fit(X, Y3)
    assert as_model(three).linear_form() is None
    assert as_model(three, loss="hinge").linear_form() is not None
    assert as_model(OneVsRestClassifier(LogisticRegression()).fit(X, Y3)).linear_form() is None


def test_a_row_that_one_against_rest_gives_to_no_class_has_equal_ones():
    """Trees that all said no about a made-up row, [0, 0, 0], ended an audit with an error."""
    from sklearn.multiclass import OneVsRestClassifier

    X = pd.DataFrame({"a": [2, 1, 0, 0], "sex": [0, 1, 1, 0]})
    estimator = OneVsRestClassifier(DecisionTreeClassifier(random_state=0)).fit(X, [2, 0, 1, 1])
    asked = pd.concat([X, pd.DataFrame({"a": [1], "sex": [0]})])
    own = estimator.predict_proba(asked)
    assert not own[4].any(), "the trees claim every row"
    np.testing.assert_allclose(as_model(estimator).outputs(asked), np.vstack([own[:4], np.full(3, 1 / 3)]))
    metric = lw.ExpertSubspace(["sex"]).fit(X).metric_
    assert lw.audit(estimator, X, [2, 0, 1, 1], metric=metric, eps=0.1).gap > 0


def test_decisions_and_scores_of_estimators_without_probabilities():
    from sklearn.linear_model import RidgeClassifier
    from sklearn.svm import LinearSVC

    for estimator in (LinearSVC().fit(X, Y3), RidgeClassifier().fit(X, Y)):
        labels = Y3 if len(estimator.classes_) == 3 else Y
        hinge = as_model(estimator, loss="hinge")
        assert hinge.linear_form() is not None
        assert as_model(estimator, loss="zero_one").losses(X, labels).mean() == pytest.approx(
            1 - estimator.score(X, labels)
        )
        with pytest.raises(InputError, match="CalibratedClassifierCV"):
            as_model(estimator)


def test_a_tuned_threshold_is_the_decision():
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import FixedThresholdClassifier

    estimator = FixedThresholdClassifier(LogisticRegression(), threshold=0.9).fit(X, Y)
    model = as_model(estimator, loss="zero_one")
    assert np.array_equal(model.predict(X), estimator.predict(X))
    assert model.losses(X, Y).mean() == pytest.approx((estimator.predict(X) != Y).mean())
    assert not np.array_equal(model.predict(X), estimator.predict_proba(X).argmax(1))
    with pytest.raises(InputError, match="no probabilities"):
        model.predict_proba(X)


def test_a_search_is_its_best_estimator():
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert as_model(search).linear_form() is not None


def test_which_estimators_want_the_table():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pd.DataFrame({"a": X[:, 0], "job": np.where(X[:, 1] > 0, "u", "v")})
    columns = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["job"]))
    pipeline = make_pipeline(columns, LogisticRegression())
    assert wants_table(pipeline.fit(frame, Y))
    assert wants_table(CalibratedClassifierCV(pipeline, cv=2).fit(frame, Y))
    assert wants_table(VotingClassifier([("p", pipeline)], voting="soft").fit(frame, Y))
    numeric = frame.assign(job=1.0)
    assert not wants_table(make_pipeline(StandardScaler(), LogisticRegression()).fit(numeric, Y))
    assert not as_model(LogisticRegression().fit(numeric, Y)).takes_frame
    assert as_model(LogisticRegression().fit(numeric, Y), takes_frame=True).takes_frame


def test_missing_values_go_to_estimators_that_take_them():
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    holes = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    hist = HistGradientBoostingClassifier(max_iter=3).fit(holes, Y)
    np.testing.assert_allclose(as_model(hist).outputs(holes), hist.predict_proba(holes))
    with pytest.raises(ModelError, match=r"raised ValueError.*NaN"):
        as_model(LogisticRegression().fit(X, Y)).outputs(holes)
    with pytest.raises(InputError, match="not finite"):
        as_model(hist).outputs(np.where(np.isnan(holes), np.inf, holes))


def test_not_fitted_several_targets_and_a_class_are_refused():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(InputError, match="not fitted"):
        as_model(LogisticRegression())
    with pytest.raises(InputError, match="several targets"):
        as_model(RandomForestClassifier(3).fit(X, np.column_stack([Y, Y3])))
    with pytest.raises(InputError, match=r"LogisticRegression\(\)\.fit"):
        as_model(LogisticRegression)
    with pytest.raises(InputError, match="2 labels"):
        as_model(LogisticRegression().fit(X, Y), classes=[1, 2, 3])


def test_other_names_for_the_classes():
    from sklearn.linear_model import LogisticRegression

    model = as_model(LogisticRegression().fit(X, Y), classes=["no", "yes"])
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.losses(X, np.where(Y, "yes", "no")).mean() < 0.6


def test_labels_of_other_types_are_understood():
    from sklearn.linear_model import LogisticRegression

    model = as_model(LogisticRegression().fit(X, Y))
    expected = model.losses(X, Y)
    for labels in (Y.tolist(), Y.astype(bool), Y.astype(float), pd.Series(Y), torch.tensor(Y), Y[:, None]):
        np.testing.assert_array_equal(model.losses(X, labels), expected)
    words = np.where(Y, "yes", "no")
    worded = as_model(LogisticRegression().fit(X, words))
    for labels in (
        words.tolist(),
        pd.Series(words),
        pd.Series(words, dtype="category"),
        words.astype(object),
    ):
        np.testing.assert_array_equal(worded.losses(X, labels), expected)


# Boosted trees


def test_missing_values_go_to_boosted_trees():
    import catboost
    import lightgbm
    import xgboost

    holes = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    models = [
        xgboost.XGBClassifier(n_estimators=3, n_jobs=1),
        lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1),
        catboost.CatBoostClassifier(iterations=3, verbose=False, allow_writing_files=False, thread_count=1),
    ]
    for estimator in models:
        estimator.fit(pd.DataFrame(holes, columns=[*"abcde"]), Y)
        frame = pd.DataFrame(holes, columns=[*"abcde"])
        np.testing.assert_allclose(
            as_model(estimator).predict_proba(holes), estimator.predict_proba(frame), atol=1e-6
        )


def test_boosted_models_that_are_no_classifiers_of_a_known_kind_are_refused():
    import catboost
    import lightgbm
    import xgboost

    data = xgboost.DMatrix(X, label=Y)
    hinge = xgboost.train({"objective": "binary:hinge", "nthread": 1}, data, 2)
    with pytest.raises(InputError, match="'binary:hinge' gives no probabilities"):
        as_model(hinge)
    assert as_model(hinge, loss="hinge").losses(X, Y).shape == (120,)
    ranker = xgboost.train(
        {"objective": "rank:pairwise", "nthread": 1}, xgboost.DMatrix(X, label=Y, qid=[0] * 120), 2
    )
    with pytest.raises(InputError, match="cannot tell"):
        as_model(ranker)
    params = {"verbose": -1, "num_threads": 1, "num_class": 3, "objective": "multiclassova"}
    with pytest.raises(InputError, match="'multiclassova' gives no probabilities"):
        as_model(lightgbm.train(params, lightgbm.Dataset(X, Y3), 2))
    for estimator in (xgboost.XGBClassifier(), lightgbm.LGBMClassifier(), catboost.CatBoostClassifier()):
        with pytest.raises(InputError, match="not fitted"):
            as_model(estimator)


def test_a_sum_of_catboost_models_is_asked_and_not_read():
    import catboost

    from likewise.models.tree_ensemble import read_trees

    def fitted(kind, rate):
        return kind(
            iterations=3, learning_rate=rate, verbose=False, allow_writing_files=False, thread_count=1
        ).fit(X, Y)

    summed = catboost.sum_models([fitted(catboost.CatBoostClassifier, rate) for rate in (0.1, 0.5)])
    for model in (summed, catboost.to_classifier(summed)):
        expected = model.predict(X, prediction_type="Probability")
        np.testing.assert_allclose(as_model(model).predict_proba(X), expected)
        np.testing.assert_array_equal(as_model(model).predict(X), model.predict(X, prediction_type="Class"))
        with pytest.raises(InputError, match="asked and not read"):
            read_trees(model)
    numbers = catboost.sum_models([fitted(catboost.CatBoostRegressor, rate) for rate in (0.1, 0.5)])
    np.testing.assert_allclose(as_model(numbers, loss="squared").predict(X), numbers.predict(X))
    with pytest.raises(InputError, match="regression loss"):
        as_model(numbers)


def test_the_margin_of_logitraw_is_not_taken_for_the_probability_of_a_wrapper():
    import xgboost

    wrapper = xgboost.XGBClassifier(n_estimators=3, n_jobs=1, objective="binary:logitraw").fit(X, Y)
    assert wrapper.predict_proba(X).max() > 1.0
    with pytest.raises(InputError, match="'binary:logitraw' gives no probabilities"):
        as_model(wrapper)
    np.testing.assert_array_equal(as_model(wrapper, loss="zero_one").predict(X), wrapper.predict(X))
    # A booster returns the logit and nothing else.
    booster = as_model(wrapper.get_booster())
    margin = wrapper.predict(X, output_margin=True).astype(float)
    np.testing.assert_allclose(booster.predict_proba(X)[:, 1], 1 / (1 + np.exp(-margin)))


# ONNX


def _graph(op: str, shape=(None, 3), *, output: str = "out", width: int | None = None) -> bytes:
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node(op, ["x"], [output])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [shape[0], width or shape[1]])],
    )
    proto = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    return proto.SerializeToString()


def test_onnx_logits_and_probabilities_are_told_apart():
    rows = X[:, :3]
    logits, probabilities = as_model(_graph("Identity")), as_model(_graph("Softmax"))
    assert logits.output_kind == "scores"
    assert probabilities.output_kind == "probabilities"
    np.testing.assert_allclose(logits.loss_table(rows), probabilities.loss_table(rows), atol=1e-5)
    with pytest.raises(ModelError, match="output='probabilities'"):
        logits.outputs(probabilities.outputs(rows))
    single = as_model(_graph("Sigmoid", (None, 1)))
    np.testing.assert_allclose(single.predict_proba(X[:, :1])[:, 1], 1 / (1 + np.exp(-X[:, 0])), atol=1e-6)
    np.testing.assert_allclose(
        as_model(_graph("Identity", (None, 1))).predict_proba(X[:, :1]),
        single.predict_proba(X[:, :1]),
        atol=1e-6,
    )
    named = as_model(_graph("Identity", output="probabilities"))
    np.testing.assert_allclose(
        named.outputs(probabilities.outputs(rows)), probabilities.outputs(rows), atol=1e-6
    )


def test_onnx_from_a_path_a_session_and_a_proto(tmp_path):
    import onnx
    import onnxruntime

    raw = _graph("Softmax")
    path = tmp_path / "model.onnx"
    path.write_bytes(raw)
    expected = as_model(raw).loss_table(X[:, :3])
    session = onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    for source in (path, str(path), session, onnx.load_from_string(raw)):
        assert as_model(source).loss_table(X[:, :3]).tobytes() == expected.tobytes()
    with pytest.raises(InputError, match="no file"):
        as_model(tmp_path / "other.onnx")
    with pytest.raises(FormatError, match="not an ONNX model"):
        as_model(b"not a graph")
    with pytest.raises(InputError, match=r"\.onnx"):
        as_model("model.pkl")


def test_onnx_with_a_fixed_batch():
    model = as_model(_graph("Softmax", (8, 3)))
    free = as_model(_graph("Softmax"))
    np.testing.assert_allclose(model.outputs(X[:19, :3]), free.outputs(X[:19, :3]), atol=1e-6)


def test_onnx_labels_that_nobody_named_are_asked_for():
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    estimator = LogisticRegression().fit(X, Y + 5)
    proto = to_onnx(estimator, X[:1].astype(np.float32), options={"zipmap": False})
    with pytest.raises(ModelError, match="classes="):
        as_model(proto).outputs(X)
    named = as_model(proto, classes=[5, 6])
    assert np.array_equal(named.predict(X), estimator.predict(X))


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(), DummyClassifier()])
def test_an_estimator_of_one_class_is_said_to_be_that(estimator):
    """Broke once: of the losses that were tried, the last one's error was raised, about a loss that nobody had passed."""
    frame = pd.DataFrame({"skill": [0.0, 1.0, 2.0], "sex": ["f", "m", "f"]})
    fitted = estimator.fit(frame[["skill"]], [1, 1, 1])
    with pytest.raises(ModelError, match=r"labels of one class only \(1\).*two or more classes"):
        lw.audit(fitted, frame, sensitive_features=["sex"])


def test_a_function_that_returns_words_is_told_what_to_return():
    frame = pd.DataFrame({"sex": ["f", "m", "f"]})
    with pytest.raises(ModelError, match=r"such as 'no', expected numbers.*decisions as 0 and 1"):
        lw.audit(lambda table: np.array([0, "no", 1], dtype=object), frame, sensitive_features=["sex"])


def test_of_what_a_model_raises_the_first_line_is_told():
    def raises(table):
        raise ValueError("no such column\n  and a page of rows\n")

    with pytest.raises(ModelError, match=r"raised ValueError on rows 0 to 1: no such column\. The model was"):
        lw.audit(raises, pd.DataFrame({"sex": ["f", "m"]}), sensitive_features=["sex"])


def test_onnx_nan_is_an_error():
    with pytest.raises(ModelError, match="not finite for"):
        as_model(_graph("Log")).outputs(X[:, :3])


def test_onnx_outputs_that_cannot_be_told_apart():
    from onnx import TensorProto, helper

    names = ["left", "right"]
    graph = helper.make_graph(
        [helper.make_node("Softmax", ["x"], ["left"]), helper.make_node("Identity", ["x"], ["right"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 3]) for name in names],
    )
    proto = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(InputError, match=r"left.*right"):
        as_model(proto)
    left, right = (OnnxModel(proto, output_name=name) for name in names)
    np.testing.assert_allclose(left.loss_table(X[:, :3]), right.loss_table(X[:, :3]), atol=1e-5)
    with pytest.raises(InputError, match="output_name"):
        OnnxModel(proto, output_name="middle")


# Functions and the rest


def test_functions():
    logits = as_model(lambda rows: rows[:, :3], output="logits")
    assert logits.loss_table(X).shape == (120, 3)
    with pytest.raises(ModelError, match="output='logits'"):
        as_model(lambda rows: rows[:, :3]).loss_table(X)
    one = as_model(lambda rows: 1 / (1 + np.exp(-rows[:, 0])))
    np.testing.assert_allclose(one.outputs(X).sum(axis=1), 1)
    tensor = as_model(lambda rows: torch.softmax(torch.as_tensor(rows[:, :2]), 1))
    assert tensor.losses(X, Y).shape == (120,)
    with pytest.raises(InputError, match="'output'"):
        as_model(lambda rows: rows, output="odds")


def test_a_bound_method_knows_its_estimator():
    from sklearn.linear_model import LogisticRegression

    estimator = LogisticRegression().fit(pd.DataFrame(X, columns=[*"abcde"]), np.where(Y, "yes", "no"))
    model = as_model(estimator.predict_proba)
    assert isinstance(model, CallableModel)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.outputs(X), as_model(estimator).outputs(X))


def test_a_function_sees_batches():
    seen = []

    def predict(rows):
        seen.append(len(rows))
        return np.full((len(rows), 2), 0.5)

    model = CallableModel(predict)
    model.batch_rows = 50
    model.outputs(X)
    assert seen == [50, 50, 20]


def test_duck_typed_estimators_and_own_conversion():
    class Duck:
        classes_ = np.array([0, 1])

        def fit(self, rows, y):
            return self

        def predict(self, rows):
            return (rows[:, 0] > 0).astype(int)

        def predict_proba(self, rows):
            p = 1 / (1 + np.exp(-rows[:, 0]))
            return np.column_stack([1 - p, p])

    model = as_model(Duck())
    assert isinstance(model, SklearnModel)
    assert model.losses(X, Y).shape == (120,)

    class Swan:
        def __likewise_model__(self, *, loss, classes):
            return as_model(torch.nn.Linear(5, 2), loss=loss, classes=classes)

    assert isinstance(as_model(Swan(), loss="hinge"), DifferentiableModel)

    class Goose:
        def __likewise_model__(self, **choices):
            return 1

    with pytest.raises(InputError, match="Goose did not return a Model"):
        as_model(Goose())
    with pytest.raises(InputError, match="got int"):
        as_model(3)


@pytest.mark.parametrize(
    ("library", "extra"),
    [("xgboost", "boosting"), ("lightgbm", "boosting"), ("catboost", "boosting"), ("onnxruntime", "onnx")],
)
def test_an_absent_library_names_the_extra(library, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    stranger = (
        b"graph" if library == "onnxruntime" else type("Booster", (), {"__module__": f"{library}.core"})()
    )
    with pytest.raises(MissingExtraError, match=rf"likewise\[{extra}\]"):
        as_model(stranger)


def test_nothing_heavy_is_imported_before_it_is_used():
    import subprocess

    code = (
        "import sys, likewise.models as m; m.as_model(lambda X: X); "
        "print([name for name in ('torch', 'sklearn', 'xgboost', 'lightgbm', 'catboost', 'onnx', 'onnxruntime') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("row", [[0.5, 0.4], [1.2, -0.2], [0.0, 0.0]])
def test_what_is_no_probability_is_an_error(row):
    answers = np.tile([0.5, 0.5], (120, 1))
    answers[7] = row
    with pytest.raises(ModelError, match="not probabilities at row 7"):
        as_model(lambda rows: answers).outputs(X)


def test_the_row_in_the_message_is_counted_over_all_batches():
    def predict(rows):
        p = np.full((len(rows), 2), 0.5)
        p[rows[:, 0] == X[71, 0]] = np.nan
        return p

    model = CallableModel(predict)
    model.batch_rows = 20
    with pytest.raises(ModelError, match="1 of 20 rows, first at row 71"):
        model.outputs(X)
