"""TwinConsensus: the same bits for all twins, for every kind of model; brute force says what the answer is."""

import itertools
import json
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression

from likewise.core.errors import FormatError, InputError
from likewise.counterfactuals import Edit, correspondence_study
from likewise.mitigation import TwinConsensus
from likewise.models import as_model, load_model
from likewise.training import MLPBaselineClassifier

SEX, RACE, SPOUSE = ["F", "M"], ["a", "b", "c"], ["Husband", "Wife"]
N = 160


pytestmark = pytest.mark.usefixtures("files_in_this_process")


@cache
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, size=N).astype(float),
            "sex": rng.choice(SEX, size=N),
            "race": rng.choice(RACE, size=N),
            "relationship": rng.choice([*SPOUSE, "Child"], size=N),
        }
    )
    score = (frame["age"] - 45) / 15 + 1.5 * (frame["sex"] == "M") - (frame["race"] == "b")
    score += 1.2 * (frame["relationship"] == "Wife")
    return frame, (score + rng.normal(size=N) > 0.3).astype(int).to_numpy()


def categories(frame):
    known = {"sex": SEX, "race": RACE, "relationship": ["Child", *SPOUSE]}
    return frame.assign(**{c: pd.Categorical(frame[c], categories=v) for c, v in known.items()})


def codes(frame):
    """Numbers only: what an ONNX graph of one input takes."""
    known = {"sex": SEX, "race": RACE, "relationship": ["Child", *SPOUSE]}
    return frame.assign(
        **{c: frame[c].map({v: float(i) for i, v in enumerate(vs)}) for c, vs in known.items()}
    )


def _xgboost():
    xgboost = pytest.importorskip("xgboost")
    frame, y = people()
    model = xgboost.XGBClassifier(n_estimators=15, max_depth=3, enable_categorical=True, n_jobs=1)
    return model.fit(categories(frame), y), categories


def _lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    frame, y = people()
    model = lightgbm.LGBMClassifier(n_estimators=15, min_child_samples=5, n_jobs=1, verbose=-1)
    return model.fit(categories(frame), y), categories


def _hist():
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame, y = people()
    model = HistGradientBoostingClassifier(max_iter=15, categorical_features="from_dtype")
    return model.fit(categories(frame), y), categories


def _pipeline():
    from sklearn.compose import make_column_transformer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame, y = people()
    steps = make_column_transformer(
        (StandardScaler(), ["age"]), (OneHotEncoder(), ["sex", "race", "relationship"])
    )
    model = make_pipeline(steps, MLPClassifier((8,), max_iter=60, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged, and need not be
        return model.fit(frame, y), lambda table: table


def _onnx():
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn.linear_model import LogisticRegression

    frame, y = people()
    model = LogisticRegression().fit(codes(frame).to_numpy(), y)
    graph = skl2onnx.convert_sklearn(
        model, initial_types=[("X", FloatTensorType([None, 4]))], options={"zipmap": False}
    )
    return graph.SerializeToString(), codes


def _callable():
    def chance(table):
        score = (table["age"] - 45) / 15 + 1.5 * (table["sex"] == "M") + (table["relationship"] == "Wife")
        return 1 / (1 + np.exp(-score.to_numpy()))

    return chance, lambda table: table


MODELS = {
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "hist": _hist,
    "pipeline": _pipeline,
    "onnx": _onnx,
    "callable": _callable,
}
made = cache(lambda name: MODELS[name]())
each = pytest.mark.parametrize("name", MODELS)


def wrapped(name, **choices):
    model, shape = made(name)
    numbers = name == "onnx"
    edits = Edit("relationship", (1.0, 2.0) if numbers else tuple(SPOUSE))
    fair = TwinConsensus(model, sensitive_features=["sex", "race"], edits=edits, **choices)
    frame = shape(people()[0])
    return fair.fit(frame), frame, shape


def twins_by_hand(frame, shape):
    """Every combination, one table each; only husbands and wives have spouses for twins."""
    raw = people()[0]
    married = raw["relationship"].isin(SPOUSE)
    tables = []
    for sex, race, spouse in itertools.product(SEX, RACE, SPOUSE):
        table = raw.assign(sex=sex, race=race, relationship=raw["relationship"].where(~married, spouse))
        tables.append(shape(table))
    return tables


@each
def test_all_twins_get_the_same_bits_and_it_is_their_mean(name):
    fair, frame, shape = wrapped(name)
    tables = twins_by_hand(frame, shape)
    answers = [fair.predict_proba(table) for table in tables]
    assert {answer.tobytes() for answer in answers} == {fair.predict_proba(frame).tobytes()}
    model = as_model(made(name)[0], takes_frame=True if name == "callable" else None)
    by_hand = np.mean([model.predict_proba(table) for table in tables], axis=0)
    np.testing.assert_allclose(answers[0], by_hand, atol=1e-12)
    assert fair.n_twins_ == 12


@each
def test_twins_in_one_table_in_any_order_get_the_same_bits(name):
    fair, frame, shape = wrapped(name)
    order = np.random.default_rng(1).permutation(12 * N)
    mixed = pd.concat(twins_by_hand(frame, shape), ignore_index=True).iloc[order]
    answers = np.empty((12 * N, 2))
    answers[order] = fair.predict_proba(mixed)
    assert len({answers[k * N : (k + 1) * N].tobytes() for k in range(12)}) == 1


@each
def test_a_correspondence_study_finds_nothing_any_more(name):
    fair, frame, _ = wrapped(name)
    model, _ = made(name)
    edits = {"sex": None, "race": None}
    before = as_model(model, takes_frame=True if name == "callable" else None)
    assert correspondence_study(before, frame, edits).consistency < 1
    assert correspondence_study(fair, frame, edits).consistency == 1
    spouse = Edit("relationship", (1.0, 2.0) if name == "onnx" else tuple(SPOUSE))
    assert correspondence_study(fair, frame, spouse).consistency == 1
    together = [{"sex": 0.0, "relationship": 2.0}, {"sex": 1.0, "relationship": 1.0}]
    if name != "onnx":
        together = [{"sex": "F", "relationship": "Wife"}, {"sex": "M", "relationship": "Husband"}]
    assert correspondence_study(fair, frame, together).consistency == 1
    assert fair.classes_.tolist() == [0, 1] or name in ("onnx", "callable")


@pytest.mark.parametrize("how", ["margin", "median", "worst"])
@each
def test_the_other_ways_to_agree(name, how):
    fair, frame, shape = wrapped(name, how=how)
    tables = twins_by_hand(frame, shape)
    assert len({fair.predict_proba(table).tobytes() for table in tables}) == 1
    model = as_model(made(name)[0], takes_frame=True if name == "callable" else None)
    p = np.array([model.predict_proba(table)[:, 1] for table in tables])
    if how == "worst":
        expected = p.min(axis=0)
    elif how == "median":
        expected = np.median(p, axis=0) / (np.median(p, axis=0) + np.median(1 - p, axis=0))
    else:
        expected = 1 / (1 + np.exp(-np.log(p / (1 - p)).mean(axis=0)))
    np.testing.assert_allclose(fair.predict_proba(frame)[:, 1], expected, atol=1e-9)


def test_the_worst_is_measured_by_the_favourable_class():
    frame = pd.DataFrame({"sex": ["F", "M"], "x": [0.0, 1.0]})
    model = as_model(lambda t: np.where(t["sex"] == "M", 0.9, 0.2), takes_frame=True, classes=["good", "bad"])
    fair = TwinConsensus(model, sensitive_features={"sex": SEX}, how="worst", favourable="good")
    assert fair.predict_proba(frame)[:, 0].tolist() == pytest.approx([0.1, 0.1])
    with pytest.raises(InputError, match="'favourable' must be one of the classes"):
        TwinConsensus(model, sensitive_features={"sex": SEX}, how="worst", favourable=7).predict(frame)


def test_the_model_is_asked_once_about_each_twin():
    asked = []

    def chance(table):
        asked.append(len(table))
        return np.full(len(table), 0.3)

    frame, _ = people()
    fair = TwinConsensus(chance, sensitive_features=["sex", "race"]).fit(frame)
    fair.predict(frame)
    assert sum(asked) <= fair.n_twins_ * len(frame)
    assert len(asked) == 1


def test_who_lacks_an_edit_is_not_asked_about_again():
    asked = []

    def chance(table):
        asked.append(len(table))
        return np.where(table["relationship"] == "Husband", 0.9, np.where(table["sex"] == "M", 0.6, 0.2))

    frame = pd.DataFrame(
        {
            "relationship": ["Husband", "Wife", "Own-child", "Unmarried"],
            "sex": ["M", "F", "F", "M"],
            "age": [30, 40, 20, 50],
        }
    )
    fair = TwinConsensus(
        chance, sensitive_features="sex", edits={"relationship": ["Husband", "Wife"]}, takes_frame=True
    ).fit(frame)
    got = fair.predict_proba(frame)[:, 1]
    # Two spouses with four twins each, and two others with two each.
    assert sum(asked) == 2 * 4 + 2 * 2
    np.testing.assert_allclose(got, [(0.9 + 0.9 + 0.6 + 0.2) / 4] * 2 + [0.4] * 2)


def test_what_stands_in_a_sensitive_column_does_not_matter_even_if_nothing_does():
    fair, frame, _ = wrapped("xgboost")
    hidden = frame.assign(sex=pd.Categorical([None] * N, categories=SEX))
    assert fair.predict_proba(hidden).tobytes() == fair.predict_proba(frame).tobytes()


def test_one_hot_columns_and_plain_arrays():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50), rng.integers(2, size=50)])
    model = as_model(lambda rows: 1 / (1 + np.exp(-rows.sum(axis=1))))
    fair = TwinConsensus(model, sensitive_features="1").fit(X)
    other = X * [1, 0]
    assert fair.predict_proba(X).tobytes() == fair.predict_proba(other).tobytes()
    frame = pd.DataFrame(X, columns=["age", "sex_M"])
    encoded = TwinConsensus(model, sensitive_features=["sex"]).fit(frame)
    assert encoded.predict_proba(frame).tobytes() == fair.predict_proba(X).tobytes()


def test_an_audit_finds_nothing_at_no_distance():
    from likewise.auditing.dual.finite_dual import dual_curve
    from likewise.auditing.search.candidates import CandidateSearch
    from likewise.data import TabularDomain
    from likewise.fair_metrics import ExpertSubspace

    frame, y = people()
    metric = ExpertSubspace(["sex", "race"], domain=TabularDomain.from_frame(frame)).fit(frame).metric_
    search = CandidateSearch(edits=("sex", "race"))
    gaps = []
    # A network that encodes tables itself, and knows more races than the table that is audited.
    wider = TabularDomain(categories={"race": ["d", "e"]})
    network = MLPBaselineClassifier(domain=wider, n_steps=30, lr=0.05, random_state=0).fit(frame, y)
    for model in (made("callable")[0], network):
        for asked in (model, TwinConsensus(model, sensitive_features=["sex", "race"]).fit(frame)):
            wrapped_model = as_model(asked, **({} if hasattr(asked, "predict") else {"takes_frame": True}))
            frontier = search.run(wrapped_model, frame, y, metric=metric).frontier
            gaps.append(dual_curve(frontier).gap(0.0))
    assert min(gaps[0], gaps[2]) > 0.05
    assert gaps[1] == gaps[3] == 0.0


def test_regressions_are_averaged():
    from sklearn.linear_model import LinearRegression

    frame = codes(people()[0])
    model = LinearRegression().fit(frame, frame["age"] + 10 * frame["sex"])
    fair = TwinConsensus(model, sensitive_features=["sex"]).fit(frame)
    np.testing.assert_allclose(fair.predict(frame), frame["age"] + 5)
    with pytest.raises(InputError, match="needs classes"):
        TwinConsensus(model, sensitive_features=["sex"], how="margin").fit(frame)


def test_a_clone_keeps_the_fitted_model():
    fair, frame, _ = wrapped("hist")
    again = clone(fair)
    assert again.model is fair.model
    assert again.fit(frame).predict(frame).tolist() == fair.predict(frame).tolist()


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({}, "nothing says who is whose twin"),
        ({"sensitive_features": ["sexx"]}, "did you mean 'sex'"),
        ({"sensitive_features": ["sex"], "edits": {"sex": SEX}}, "'sex' is edited twice"),
        ({"sensitive_features": ["sex"], "how": "average"}, "'how' must be"),
        ({"edits": [{"sex": "F"}, {"sex": "M", "race": "a"}]}, "must all be named in each dict"),
        ({"edits": {"relationship": ["Husband", "Wive"]}}, "did you mean 'Wife'"),
        ({"sensitive_features": ["age", "relationship", "race", "sex"]}, "at most 1,000"),
    ],
)
def test_bad_choices_are_refused(choices, message):
    frame, _ = people()
    with pytest.raises(InputError, match=message):
        TwinConsensus(made("callable")[0], **choices).fit(frame)


def test_before_fit_the_values_are_asked_for():
    with pytest.raises(InputError, match=r"Call fit\(X\)"):
        TwinConsensus(made("callable")[0], sensitive_features=["sex"]).predict(people()[0])


@pytest.mark.parametrize(
    ("name", "file"), [("xgboost", "m.ubj"), ("xgboost", "m.json"), ("lightgbm", "m.txt"), ("onnx", "m.onnx")]
)
def test_files_answer_the_same(name, file, tmp_path):
    fair, frame, _ = wrapped(name)
    fair.save(tmp_path / file)
    for loaded in (TwinConsensus.load(tmp_path / file), load_model(tmp_path / file)):
        np.testing.assert_array_equal(loaded.predict_proba(frame), fair.predict_proba(frame))
        assert loaded.classes_.tolist() == [0, 1]


def test_a_consensus_of_fair_boosting_is_opened_with_trial(tmp_path):
    """Broke once: the process of the file took the classifier inside of the consensus for its trees."""
    from likewise.training import FairBoostingClassifier

    frame, y = people()
    model = FairBoostingClassifier(n_estimators=3, max_depth=2, random_state=0).fit(frame, y)
    fair = TwinConsensus(model, sensitive_features=["sex"]).fit(frame)
    fair.save(tmp_path / "m.ubj")
    np.testing.assert_array_equal(
        load_model(tmp_path / "m.ubj").predict_proba(frame), fair.predict_proba(frame)
    )


def test_a_scikit_learn_model_goes_through_skops(tmp_path):
    pytest.importorskip("skops")
    from sklearn.linear_model import LogisticRegression

    frame, y = people()
    model = LogisticRegression().fit(codes(frame), y)
    fair = TwinConsensus(model, sensitive_features=["sex"]).fit(codes(frame))
    fair.save(tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").predict_proba(codes(frame)).tobytes() == (
        fair.predict_proba(codes(frame)).tobytes()
    )


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    fair, _, _ = wrapped("xgboost")
    fair.save(tmp_path / "a.ubj")
    beside = tmp_path / "a.ubj.likewise.json"
    (tmp_path / "b.ubj").write_bytes((tmp_path / "a.ubj").read_bytes())
    with pytest.raises(FormatError, match="beside it"):
        TwinConsensus.load(tmp_path / "b.ubj")
    about = json.loads(beside.read_text())
    beside.write_text(json.dumps(about | {"sha256": "0"}))
    with pytest.raises(FormatError, match="describes another file"):
        load_model(tmp_path / "a.ubj")
    beside.write_text(json.dumps(about | {"schema": 9}))
    with pytest.raises(FormatError, match="newer version"):
        load_model(tmp_path / "a.ubj")
    beside.write_text(json.dumps({k: v for k, v in about.items() if k != "learned"}))
    with pytest.raises(FormatError, match="damaged"):
        load_model(tmp_path / "a.ubj")
    beside.write_text("{")
    with pytest.raises(FormatError, match="damaged"):
        load_model(tmp_path / "a.ubj")


def test_functions_cannot_be_saved(tmp_path):
    frame, _ = people()
    fair = TwinConsensus(made("callable")[0], sensitive_features=["sex"]).fit(frame)
    with pytest.raises(InputError, match="cannot be written without pickle"):
        fair.save(tmp_path / "model.bin")


def test_an_xgboost_export_is_the_mean_of_the_margins_in_one_model(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    fair, frame, _ = wrapped("xgboost", how="margin")
    fair.export(tmp_path / "one.ubj")
    one = xgboost.Booster(model_file=tmp_path / "one.ubj")
    matrix = xgboost.DMatrix(frame, enable_categorical=True)
    expected = fair.predict_proba(frame)[:, 1]
    np.testing.assert_allclose(one.predict(matrix), expected, atol=1e-5)
    twins = frame.assign(sex=frame["sex"].cat.codes.map(lambda c: SEX[1 - c]).astype(frame["sex"].dtype))
    spouses = frame["relationship"].map({"Husband": "Wife", "Wife": "Husband", "Child": "Child"})
    twins = twins.assign(relationship=spouses.astype(frame["relationship"].dtype))
    again = one.predict(xgboost.DMatrix(twins, enable_categorical=True))
    assert again.tobytes() == one.predict(matrix).tobytes()


def test_an_xgboost_export_of_numbers_with_missing_values(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    frame, y = codes(people()[0]), people()[1]
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    model = xgboost.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1).fit(frame, y)
    fair = TwinConsensus(model, sensitive_features={"sex": [0.0, 1.0], "race": [0.0, 1.0, 2.0]}, how="margin")
    fair.export(tmp_path / "one.json")
    one = xgboost.Booster(model_file=tmp_path / "one.json")
    np.testing.assert_allclose(
        one.predict(xgboost.DMatrix(frame)), fair.predict_proba(frame)[:, 1], atol=1e-5
    )
    hidden = one.predict(xgboost.DMatrix(frame.assign(sex=np.nan)))
    assert hidden.tobytes() == one.predict(xgboost.DMatrix(frame)).tobytes()
    spouse = TwinConsensus(model, edits={"relationship": [1.0, 2.0]}, how="margin").fit(frame)
    with pytest.raises(InputError, match="make it categorical"):
        spouse.export(tmp_path / "two.json")


def test_an_onnx_export_is_the_mean_of_the_probabilities_in_one_graph(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    graph, _ = made("onnx")
    rows = codes(people()[0]).to_numpy().astype(np.float32)
    fair = TwinConsensus(
        graph,
        sensitive_features={"1": [0.0, 1.0], "2": [0.0, 1.0, 2.0]},
        edits=[[{"3": 1.0}, {"3": 2.0}]],
    )
    fair.export(tmp_path / "one.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "one.onnx")
    (found,) = session.run(None, {"X": rows})
    np.testing.assert_allclose(found, fair.predict_proba(rows), atol=1e-6)
    spouses = rows.copy()
    spouses[:, 3] = np.where(rows[:, 3] > 0, 3 - rows[:, 3], 0)
    spouses[:, 1] = 1 - rows[:, 1]
    assert session.run(None, {"X": spouses})[0].tobytes() == found.tobytes()
    assert load_model(tmp_path / "one.onnx").predict(rows).tolist() == fair.predict(rows).tolist()


@pytest.mark.parametrize(
    ("name", "how", "file", "message"),
    [
        ("callable", "mean", "m.onnx", "is not an ONNX graph"),
        ("hist", "margin", "m.json", "no trees of XGBoost"),
        ("xgboost", "mean", "m.json", "how='margin' only"),
        ("xgboost", "mean", "m.txt", "ends in .onnx"),
    ],
)
def test_what_cannot_be_exported_is_said(name, how, file, message, tmp_path):
    fair, _, _ = wrapped(name, how=how)
    with pytest.raises(InputError, match=message):
        fair.export(tmp_path / file)
    assert not list(tmp_path.iterdir())


def test_a_model_of_two_files_is_saved_and_loaded(tmp_path):
    from likewise.training import FairBoostingClassifier

    frame, y = people()
    model = FairBoostingClassifier(n_estimators=5, random_state=0).fit(frame, y)
    fair = TwinConsensus(model, sensitive_features=["sex"], edits={"relationship": SPOUSE}).fit(frame)
    fair.save(tmp_path / "model.ubj")
    for loaded in (TwinConsensus.load(tmp_path / "model.ubj"), load_model(tmp_path / "model.ubj")):
        assert loaded.predict_proba(frame).tobytes() == fair.predict_proba(frame).tobytes()


def test_an_estimator_of_ones_own_that_keeps_no_columns_gets_the_table_it_was_fitted_on():
    class Score(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            chance = 1 / (1 + np.exp(-(X["age"] - 45) / 15 - 0.5 * (X["sex"] == "M")))
            return np.stack([1 - chance, chance], axis=1)

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    frame, y = people()
    mended = TwinConsensus(Score().fit(frame, y), sensitive_features=["sex"]).fit(frame, y)
    twins = [mended.predict_proba(frame.assign(sex=value)) for value in SEX]
    assert np.array_equal(*twins)
    own = [mended.model.predict_proba(frame.assign(sex=value)) for value in SEX]
    np.testing.assert_allclose(twins[0], np.mean(own, axis=0))


def test_people_whose_sensitive_cells_are_all_missing_get_the_answer_of_their_counterparts():
    frame, y = people()
    skilled = LogisticRegression().fit(pd.get_dummies(frame), y)
    columns = list(skilled.feature_names_in_)

    def score(table):
        encoded = pd.get_dummies(table).reindex(columns=columns, fill_value=0)
        return skilled.predict_proba(encoded)[:, 1]

    mended = TwinConsensus(score, sensitive_features=["sex"]).fit(frame, y)
    some = frame.head(9)
    assert np.array_equal(mended.predict_proba(some.assign(sex=np.nan)), mended.predict_proba(some))
