"""The printed numbers against brute force of their own: shares, decisions, rounds, and whose answers they are."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likewise as lw
from likewise.core.errors import InputError
from likewise.models import DifferentiableModel
from likewise.models.sklearn_network import read_layers
from likewise.models.tree_ensemble import read_trees
from likewise.models.tree_readers import kept_rounds

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
y = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)
OTHERS = RNG.normal(size=(150, 3))
OTHER_LABELS = (OTHERS[:, 0] + RNG.normal(size=150) > 0).astype(int)
PROBES = RNG.normal(size=(400, 3))


# Decisions are the model's own.


def catboost_of(threshold):
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(iterations=10, verbose=False, allow_writing_files=False, random_seed=0)
    model.fit(X, y).set_probability_threshold(threshold)
    return model


def test_catboost_with_a_probability_threshold_decides_as_its_predict(tmp_path):
    model = catboost_of(0.7)
    model.save_model(str(tmp_path / "model.cbm"))
    own = model.predict(PROBES)
    # The class of the largest probability is another decision about some of these people.
    assert (own != model.predict_proba(PROBES).argmax(axis=1)).any()
    labels = (PROBES[:, 0] > 0).astype(int)
    for loss in ("cross_entropy", "zero_one", "hinge"):
        isolated = loss == "zero_one"
        file = lw.load_model(tmp_path / "model.cbm", loss=loss, trust=not isolated)
        for one in (lw.as_model(model, loss=loss), file):
            assert np.array_equal(one.predict(PROBES), own)
            if loss == "zero_one":
                assert np.array_equal(one.losses(PROBES, labels), own != labels)


def test_the_changed_share_of_catboost_goes_by_its_threshold():
    from catboost import CatBoostClassifier

    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=(RNG.random(300) < 0.5).astype(int))
    label = (X[:, 0] + frame["sex"] + RNG.normal(size=300) > 0.5).astype(int)
    model = CatBoostClassifier(iterations=20, verbose=False, allow_writing_files=False, random_seed=0)
    model.fit(frame, label).set_probability_threshold(0.7)
    true = np.mean(model.predict(frame.assign(sex=0)) != model.predict(frame.assign(sex=1)))
    by_half = np.mean(
        (model.predict_proba(frame.assign(sex=0))[:, 1] > 0.5)
        != (model.predict_proba(frame.assign(sex=1))[:, 1] > 0.5)
    )
    assert true != by_half
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    assert lw.audit(model, frame, label, metric=metric, eps=0.0).sensitive.changed == true
    assert lw.audit(model, frame, sensitive_features=["sex"]).sensitive.changed == true
    assert lw.verify(model, frame, sensitive_features=["sex"], budget_seconds=1).people[1] == true


def test_trees_with_another_threshold_are_not_read_as_if_they_had_none():
    assert read_trees(catboost_of(0.5)) is not None
    with pytest.raises(InputError, match=r"decides at a probability of 0\.7"):
        read_trees(catboost_of(0.7))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_wrappers_decide_by_their_own_predict(library, monkeypatch):
    """A wrapper whose `predict` says something else than its outputs, as one with a threshold does."""
    if library == "xgboost":
        from xgboost import XGBClassifier as Wrapper

        model = Wrapper(n_estimators=5).fit(X, y)
    else:
        from lightgbm import LGBMClassifier as Wrapper

        model = Wrapper(n_estimators=5, verbose=-1).fit(X, y)

    plain = Wrapper.predict

    def strict(self, rows, **options):
        if options:
            return plain(self, rows, **options)
        return (self.predict_proba(rows)[:, 1] > 0.7).astype(int)

    monkeypatch.setattr(Wrapper, "predict", strict)
    wanted = (model.predict_proba(PROBES)[:, 1] > 0.7).astype(int)
    labels = (PROBES[:, 0] > 0).astype(int)
    assert np.array_equal(lw.as_model(model).predict(PROBES), wanted)
    assert np.array_equal(lw.as_model(model, loss="zero_one").losses(PROBES, labels), wanted != labels)


# A subclass is asked, not read.


def upside_down(base):
    """A subclass that answers the opposite of its parent."""

    class Mine(base):
        def predict_proba(self, rows):
            return np.asarray(super().predict_proba(rows))[:, ::-1]

        def predict(self, rows):
            return np.asarray(self.classes_)[self.predict_proba(rows).argmax(axis=1)]

    return Mine


def bases():
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    return {
        "xgboost": (XGBClassifier, {"n_estimators": 5}),
        "lightgbm": (LGBMClassifier, {"n_estimators": 5, "verbose": -1}),
        "catboost": (CatBoostClassifier, {"iterations": 5, "verbose": False, "allow_writing_files": False}),
        "linear": (LogisticRegression, {}),
        "network": (MLPClassifier, {"hidden_layer_sizes": (4,), "max_iter": 2000, "random_state": 0}),
        "own": (lw.MLPBaselineClassifier, {"n_steps": 20, "random_state": 0}),
    }


@pytest.mark.parametrize("kind", list(bases()))
def test_a_subclass_is_audited_by_its_own_answers(kind):
    base, choices = bases()[kind]
    model = upside_down(base)(**choices).fit(X, y)
    parent = base.predict_proba(model, PROBES)
    adapter = lw.as_model(model)
    np.testing.assert_allclose(adapter.predict_proba(PROBES), np.asarray(parent)[:, ::-1])
    assert np.array_equal(adapter.predict(PROBES), model.predict(PROBES))
    wrong = lw.as_model(model, loss="zero_one").losses(PROBES, model.predict(PROBES))
    assert not wrong.any()


@pytest.mark.parametrize("kind", ["xgboost", "catboost"])
def test_the_trees_of_a_subclass_are_not_read(kind):
    base, choices = bases()[kind]
    with pytest.raises(InputError, match="read_trees: Mine is not"):
        read_trees(lw.as_model(upside_down(base)(**choices).fit(X, y)))


def test_weights_are_read_from_exact_types_only():
    class MyLogistic(LogisticRegression):
        pass

    class MyScaler(StandardScaler):
        def transform(self, rows, copy=None):
            return -super().transform(rows, copy)

    class Duck:
        """Has what a linear model has, and what a selector has."""

        coef_, intercept_, classes_ = np.ones((1, 3)), np.zeros(1), np.array([0, 1])

        def get_support(self):
            return np.array([True, True, True])

        def fit(self, rows, labels=None):
            return self

        def transform(self, rows):
            return np.asarray(rows) ** 2

    assert read_layers(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)) is not None
    assert read_layers(MyLogistic().fit(X, y)) is None
    assert read_layers(make_pipeline(MyScaler(), LogisticRegression()).fit(X, y)) is None
    assert read_layers(Duck()) is None
    assert read_layers(make_pipeline(Duck(), LogisticRegression()).fit(X, y)) is None
    assert isinstance(lw.as_model(LogisticRegression().fit(X, y)), DifferentiableModel)
    assert not isinstance(lw.as_model(MyLogistic().fit(X, y)), DifferentiableModel)


# Rounds after early stopping.


def stopped(how):
    from xgboost import XGBClassifier
    from xgboost.callback import EarlyStopping

    choices = {
        "rounds": {"early_stopping_rounds": 5},
        "callback": {"callbacks": [EarlyStopping(rounds=5)]},
        "save_best": {"callbacks": [EarlyStopping(rounds=5, save_best=True)]},
        "none": {},
    }[how]
    model = XGBClassifier(n_estimators=40, learning_rate=0.9, **choices)
    return model.fit(X, y, eval_set=[(OTHERS, OTHER_LABELS)], verbose=False)


@pytest.mark.parametrize("ending", ["json", "ubj"])
@pytest.mark.parametrize("how", ["rounds", "callback", "save_best", "none"])
def test_xgboost_stopped_early_answers_as_what_was_saved(how, ending, tmp_path):
    import xgboost

    model = stopped(how)
    matrix = xgboost.DMatrix(PROBES)
    every = model.get_booster().predict(matrix, output_margin=True)
    own = model.predict(PROBES, output_margin=True)
    # Unless the later trees were thrown away, they would change the answers.
    assert np.allclose(every, own) == (how in ("save_best", "none"))
    by_wrapper, by_booster = tmp_path / f"wrapper.{ending}", tmp_path / f"booster.{ending}"
    model.save_model(by_wrapper)
    model.get_booster().save_model(by_booster)
    again = xgboost.XGBClassifier()
    again.load_model(by_wrapper)
    np.testing.assert_allclose(again.predict(PROBES, output_margin=True), own)
    cases = [
        (lw.as_model(model), own),
        (lw.as_model(again), own),
        (lw.as_model(model.get_booster()), every),
        (lw.load_model(by_wrapper, trust=True), own),
        (lw.load_model(by_booster, trust=True), every),
    ]
    if how == "rounds" and ending == "json":
        cases += [(lw.load_model(by_wrapper), own), (lw.load_model(by_booster), every)]
    for adapter, margin in cases:
        share = 1 / (1 + np.exp(-margin.astype(float)))
        np.testing.assert_allclose(adapter.predict_proba(PROBES)[:, 1], share, atol=1e-6)
        np.testing.assert_allclose(read_trees(adapter).outputs(PROBES)[:, 0], margin, atol=1e-5)
        assert np.array_equal(adapter.predict(PROBES), margin > 0)


def test_kept_rounds_are_those_of_predict():
    for how in ("rounds", "callback", "save_best"):
        model = stopped(how)
        assert kept_rounds(model) == model.best_iteration + 1
        assert kept_rounds(model.get_booster()) is None
    assert kept_rounds(stopped("none")) is None


def test_a_consensus_of_a_stopped_model_is_the_same_after_saving(tmp_path):
    model = stopped("rounds")
    rows = pd.DataFrame(PROBES, columns=["a", "b", "c"])
    people = pd.DataFrame(X, columns=["a", "b", "c"]).assign(c=(X[:, 2] > 0).astype(float))
    model.fit(
        people, y, eval_set=[(pd.DataFrame(OTHERS, columns=["a", "b", "c"]), OTHER_LABELS)], verbose=False
    )
    assert model.best_iteration + 1 < len(model.get_booster().get_dump())
    fair = lw.TwinConsensus(model, edits={"c": [0.0, 1.0]}).fit(people, y)
    fair.save(tmp_path / "fair.json")
    again = lw.load_model(tmp_path / "fair.json", trust=True)
    np.testing.assert_allclose(again.predict_proba(rows), fair.predict_proba(rows))


@pytest.mark.parametrize("best", [True, False])
def test_catboost_and_lightgbm_stopped_early(best, tmp_path):
    import lightgbm
    from catboost import CatBoostClassifier

    cat = CatBoostClassifier(
        iterations=40, learning_rate=0.9, verbose=False, allow_writing_files=False, use_best_model=best
    ).fit(X, y, eval_set=(OTHERS, OTHER_LABELS))
    assert (cat.tree_count_ < 40) == best
    cat.save_model(str(tmp_path / "cat.cbm"))
    data = lightgbm.Dataset(X, y, free_raw_data=False)
    light = lightgbm.train(
        {"objective": "binary", "verbose": -1, "learning_rate": 0.9},
        data,
        40,
        valid_sets=[lightgbm.Dataset(OTHERS, OTHER_LABELS, reference=data)],
        callbacks=[lightgbm.early_stopping(5, verbose=False)] if best else [],
    )
    light.save_model(tmp_path / "light.txt")
    light.save_model(tmp_path / "all.txt", num_iteration=-1)
    every = lightgbm.Booster(model_file=tmp_path / "all.txt")
    raw = cat.predict(PROBES, prediction_type="RawFormulaVal")
    for adapter, scores in [
        (lw.as_model(cat), raw),
        (lw.load_model(tmp_path / "cat.cbm", trust=True), raw),
        (lw.as_model(light), light.predict(PROBES, raw_score=True)),
        (lw.load_model(tmp_path / "light.txt", trust=True), light.predict(PROBES, raw_score=True)),
        (lw.load_model(tmp_path / "all.txt", trust=True), every.predict(PROBES, raw_score=True)),
    ]:
        np.testing.assert_allclose(read_trees(adapter).outputs(PROBES)[:, 0], scores, atol=1e-9)
        np.testing.assert_allclose(adapter.predict_proba(PROBES)[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-9)


# Numbers as sensitive columns.


def share_by_brute_force(model, frame, column, values):
    """Share of people whom some of these values of one column decides differently."""
    own, changed = model.predict(frame), np.zeros(len(frame), dtype=bool)
    for value in values:
        changed |= model.predict(frame.assign(**{column: value})) != own
    return changed.mean()


class Rule:
    """A classifier that is a function of the table."""

    classes_ = np.array([0, 1])

    def __init__(self, score):
        self.score = score

    def predict_proba(self, frame):
        p = np.clip(np.asarray(self.score(frame), dtype=float), 0.05, 0.95)
        return np.column_stack([1 - p, p])

    def predict(self, frame):
        return self.predict_proba(frame).argmax(axis=1)


def audited(model, frame, sensitive, label=None, loss="cross_entropy", **choices):
    label = np.arange(len(frame)) % 2 if label is None else label
    metric = lw.ExpertSubspace(list(sensitive)).fit(frame).metric_
    adapter = lw.as_model(model, loss=loss, takes_frame=True)
    found = lw.audit(adapter, frame, label, metric=metric, eps=0.0, **choices)
    first = lw.audit(adapter, frame, label, sensitive_features=list(sensitive), **choices)
    assert first.sensitive.changed == found.sensitive.changed
    return found


def test_every_whole_number_of_the_domain_is_tried():
    """Only ages from 40 to 45 are refused, and nobody in the table has such an age."""
    rng = np.random.default_rng(1)
    age = rng.choice([*range(18, 38), *range(48, 81)], size=200)
    age[:2] = 18, 80
    frame = pd.DataFrame({"age": age, "pay": rng.normal(size=200)})
    model = Rule(lambda table: ~table["age"].between(40, 45))
    assert share_by_brute_force(model, frame, "age", np.unique(age)) == 0.0
    assert share_by_brute_force(model, frame, "age", range(18, 81)) == 1.0
    result = audited(model, frame, ["age"])
    assert result.sensitive.changed == 1.0
    assert result.sensitive.exact
    assert result.flipped == 1.0


@pytest.mark.parametrize("dtype", ["int64", "int16", "float64"])
def test_the_share_of_a_whole_number_is_that_of_brute_force(dtype):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.integers(20, 70, 150).astype(dtype), "pay": rng.normal(size=150)})
    model = Rule(lambda table: np.sin(table["age"] * 1.3) + table["pay"] > 0)
    true = share_by_brute_force(
        model, frame, "age", range(int(frame["age"].min()), int(frame["age"].max()) + 1)
    )
    result = audited(model, frame, ["age"])
    assert result.sensitive.changed == pytest.approx(true, abs=0)


def test_the_splits_of_trees_are_tried_and_the_share_is_called_a_lower_bound():
    """A tree refuses incomes in a range of 3 in 10,000, which no grid and no person meets."""
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(3)
    income = np.concatenate([rng.uniform(0, 5000, 200), rng.uniform(5003, 10000, 200), np.full(30, 5001.5)])
    tree = DecisionTreeClassifier(random_state=0).fit(
        pd.DataFrame({"income": income, "other": rng.normal(size=430)}), np.repeat([1, 1, 0], [200, 200, 30])
    )
    people = pd.DataFrame({"income": income[:400], "other": rng.normal(size=400)})
    result = audited(tree, people, ["income"])
    assert share_by_brute_force(tree, people, "income", [5001.5]) == 1.0
    assert result.sensitive.changed == 1.0
    assert result.flipped == 1.0
    assert not result.sensitive.exact
    assert result.sensitive.changed_interval[1] == 1.0


def test_at_least_is_said_wherever_the_share_is(tmp_path):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"income": rng.uniform(0, 100, 120), "other": rng.normal(size=120)})
    model = Rule(lambda table: table["income"] / 100 + table["other"] > 0.5)
    found = audited(model, frame, ["income"])
    true = share_by_brute_force(
        model, frame, "income", np.linspace(frame["income"].min(), frame["income"].max(), 2001)
    )
    assert 0 < found.sensitive.changed <= true
    assert found.sensitive.changed > 0.95 * true
    count = found.changed.count
    said = f"{count} of {found.n} people ({found.sensitive.changed:.1%}) or more would get another decision"
    assert said in " ".join(str(found).split())
    assert said in found._repr_html_()
    document = lw.report.audit_document(found)
    assert document["numbers"]["sensitive_only"]["exact"] is False
    assert said in document["summary"]["sentences"][0]
    for language, words in (
        ("en", r"people \([\d.]+%\) or more"),
        ("de", r"Personen \([\d,]+\s?%\) oder mehr"),
    ):
        page = tmp_path / f"{language}.html"
        lw.report.write_html(found, page, language=language)
        text = page.read_text(encoding="utf-8")
        assert re.search(rf"{count} (of|von) {found.n} {words}", text)
    found.save(tmp_path / "result.json")
    assert lw.AuditResult.load(tmp_path / "result.json").sensitive == found.sensitive


def test_one_whole_number_is_exact_however_many_people_there_are():
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.results.sensitive import sensitive_values

    frame = pd.DataFrame({"age": np.arange(128), "pay": np.linspace(0, 1, 128)})
    metric = lw.ExpertSubspace(["age"]).fit(frame).metric_
    rule = lw.as_model(Rule(lambda table: table["pay"] > 0.5), takes_frame=True)
    problem = AuditProblem.build(rule, frame, np.arange(128) % 2, metric=metric)
    found = sensitive_values(dataclasses.replace(problem, total=10_000_000))
    assert found.exact
    assert found.edits[0].values == tuple(range(128))


def test_a_category_is_exact_and_says_so_nowhere():
    frame = pd.DataFrame({"sex": ["F", "M"] * 20, "pay": np.linspace(0, 1, 40)})
    result = audited(Rule(lambda table: table["pay"] + 0.2 * (table["sex"] == "M") > 0.5), frame, ["sex"])
    assert result.sensitive.exact
    assert "at least" not in str(result)


def test_too_many_combinations_are_thinned_and_called_a_lower_bound():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"age": rng.integers(0, 100, 300), "hours": rng.integers(0, 100, 300), "pay": rng.normal(size=300)}
    )
    model = Rule(lambda table: (table["age"] + table["hours"]) / 200 + table["pay"] > 0.5)
    own, changed = model.predict(frame), np.zeros(300, dtype=bool)
    for age in (frame["age"].min(), frame["age"].max()):
        for hours in (frame["hours"].min(), frame["hours"].max()):
            changed |= model.predict(frame.assign(age=age, hours=hours)) != own
    result = audited(model, frame, ["age", "hours"])
    assert not result.sensitive.exact
    assert result.sensitive.changed == changed.mean()  # a sum is extreme at the ends, which are always tried


def test_a_column_of_a_plain_array():
    rng = np.random.default_rng(6)
    rows = np.column_stack(
        [rng.normal(size=200), rng.choice([0.0, 1.0], 200), rng.choice([0.0, 1.0, 8.0], 200)]
    )
    hump = lambda X: np.where((X[:, 2] > 3) & (X[:, 2] < 5), 0.1, 0.9)  # noqa: E731
    metric = lw.ExpertSubspace([2]).fit(rows).metric_
    result = lw.audit(
        lw.as_model(hump, classes=[0, 1]), rows, np.arange(200) % 2, metric=metric, eps=0.0, edits=[2]
    )
    assert result.sensitive.changed == 1.0


# One-hot columns.


def one_hot_people(n=400, drop_first=False):
    rng = np.random.default_rng(7)
    race = rng.choice(["A", "B", "C"], n, p=[0.6, 0.3, 0.1])
    sex = rng.choice(["Male", "Female"], n)
    dummies = pd.get_dummies(pd.DataFrame({"race": race, "sex": sex}), dtype=int, drop_first=drop_first)
    return dummies.assign(skill=rng.normal(size=n)), race, sex


def races_and_sexes(frame, race, sex):
    rows = frame.copy()
    for value in ("A", "B", "C"):
        if f"race_{value}" in rows:
            rows[f"race_{value}"] = int(race == value)
    for value in ("Male", "Female"):
        if f"sex_{value}" in rows:
            rows[f"sex_{value}"] = int(sex == value)
    return rows


@pytest.mark.parametrize("drop_first", [False, True])
def test_one_hot_columns_are_exchanged_as_one(drop_first):
    frame, _, _ = one_hot_people(drop_first=drop_first)
    weights = {"race_A": -0.1, "race_B": 0.2, "race_C": 0.4, "sex_Male": 0.3, "sex_Female": -0.1}
    names = [name for name in weights if name in frame]
    model = Rule(lambda table: sum(weights[name] * table[name] for name in names) + table["skill"] > 0)
    own, changed, impossible = model.predict(frame), np.zeros(len(frame), bool), np.zeros(len(frame), bool)
    for race in "ABC":
        for sex in ("Male", "Female"):
            changed |= model.predict(races_and_sexes(frame, race, sex)) != own
    for bits in np.ndindex(*(2,) * len(names)):
        impossible |= model.predict(frame.assign(**dict(zip(names, bits, strict=True)))) != own
    assert changed.mean() < impossible.mean()
    result = audited(model, frame, names)
    assert result.sensitive.changed == changed.mean()
    assert any("0/1 columns of one attribute" in said for said in result.assumptions)
    study = lw.correspondence_study(model, frame, dict.fromkeys(names))
    assert 1 - study.consistency == changed.mean()


def test_half_of_an_attribute_is_refused():
    frame, _, _ = one_hot_people()
    model = Rule(lambda table: table["sex_Male"] + table["skill"] > 0)
    with pytest.raises(InputError, match=r"sex_Female is not among .* Name all of them"):
        audited(model, frame, ["sex_Male"])


def test_flags_that_occur_together_stay_apart():
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "has_child": rng.integers(0, 2, 200),
            "has_car": rng.integers(0, 2, 200),
            "skill": rng.normal(size=200),
        }
    )
    model = Rule(lambda table: 0.3 * table["has_child"] + 0.3 * table["has_car"] + table["skill"] > 0.3)
    own, changed = model.predict(frame), np.zeros(200, bool)
    for child, car in np.ndindex(2, 2):
        changed |= model.predict(frame.assign(has_child=child, has_car=car)) != own
    assert audited(model, frame, ["has_child", "has_car"]).sensitive.changed == changed.mean()


# The tolerance of a regression.


class Line:
    """A regression that pays one sex more."""

    _estimator_type = "regressor"

    def predict(self, frame):
        return 20_000 + 1_500.0 * (frame["sex"] == "M").to_numpy() + 100 * frame["skill"].to_numpy()


def test_predictions_that_fall_count_as_much_as_those_that_rise():
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"sex": rng.choice(["F", "M"], 300), "skill": rng.normal(size=300)})
    paid = Line().predict(frame) + rng.normal(size=300)
    for tolerance, true in ((1000.0, 1.0), (1499.0, 1.0), (1501.0, 0.0)):
        result = audited(Line(), frame, ["sex"], paid, loss="squared", tolerance=tolerance)
        assert result.sensitive.changed == true
        assert result.sensitive.tolerance == tolerance
    assert "would get predictions more than 1501 apart" in " ".join(str(result).split())
    assert audited(Line(), frame, ["sex"], paid, loss="squared").sensitive.changed is None
    rule = Rule(lambda table: table["skill"] > 0)
    with pytest.raises(InputError, match="tolerance"):
        audited(rule, frame, ["sex"], tolerance=1.0)
    with pytest.raises(InputError, match="tolerance"):
        lw.audit(rule, frame, sensitive_features=["sex"], tolerance=1.0)


def test_the_tolerance_of_the_command_line(tmp_path):
    from click.testing import CliRunner
    from xgboost import XGBRegressor

    from likewise.cli.app import cli

    rng = np.random.default_rng(10)
    frame = pd.DataFrame({"sex": rng.integers(0, 2, 300), "skill": rng.normal(size=300)})
    frame["hours"] = rng.integers(1, 60, 300)
    frame["pay"] = 20_000 + 3_000 * frame["sex"] + 100 * frame["skill"]
    rows = frame.drop(columns="pay")
    model = XGBRegressor(n_estimators=30, max_depth=2).fit(rows, frame["pay"])
    model.save_model(tmp_path / "pay.json")
    frame.to_csv(tmp_path / "people.csv", index=False)
    twins = [model.predict(rows.assign(sex=value)) for value in (0, 1)]
    assert (np.abs(twins[1] - twins[0]) > 1000).all()
    found = CliRunner().invoke(
        cli,
        ["audit", str(tmp_path / "pay.json"), str(tmp_path / "people.csv"), "--target", "pay", "--sensitive", "sex",
         "--eps", "0", "--set", "tolerance=1000", "--trust", "process"],
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    said = " ".join(found.output.split())
    assert (
        "300 of 300 people would get predictions more than 1000 apart if only the entry for sex were" in said
    )


# Missing sensitive cells.


def test_people_whose_sensitive_cell_is_missing_are_a_group_and_get_every_value():
    """They were counted as the value that fills their cell, and never tried with any."""
    from likewise.data.missing_values import find_missing
    from likewise.models.matching import MissingCellsModel

    rng = np.random.default_rng(11)
    frame = pd.DataFrame({"race": rng.choice(["w", "b", "o"], 300), "pay": rng.normal(size=300)})
    frame.loc[rng.random(300) < 0.15, "race"] = None
    weight = {"w": 0.4, "b": -0.5, "o": 0.0}
    model = Rule(lambda table: table["pay"] + table["race"].map(weight).fillna(0.9) > 0)
    own, changed = model.predict(frame), np.zeros(300, dtype=bool)
    for value in weight:
        changed |= model.predict(frame.assign(race=value)) != own
    lacks = frame["race"].isna().to_numpy()
    assert changed[lacks].any()
    missing = find_missing(frame)
    marked = missing.marked(frame)
    domain = lw.TabularDomain.from_frame(marked, immutable=list(missing.marks))
    metric = lw.ExpertSubspace(["race"], domain=domain).fit(marked).metric_
    shown = MissingCellsModel(lw.as_model(model, takes_frame=True), missing)
    result = lw.audit(shown, marked, own.astype(int), metric=metric, domain=domain, eps=0.0)
    assert result.sensitive.changed == changed.mean()
    assert result.sensitive.exact
    people, moved = {}, {}
    for group in result.sensitive.groups:
        people[group.value] = people.get(group.value, 0) + group.people
        moved[group.value] = moved.get(group.value, 0) + group.changed
    assert people == {value: int((frame["race"] == value).sum()) for value in weight} | {
        "(missing)": int(lacks.sum())
    }
    assert moved["(missing)"] == changed[lacks].sum()
    assert set(result.listed[0].cells) == set(frame)
    assert sum(moved.values()) == changed.sum()


def tied(frame):
    """A score that is 0 for a == 1, up to the rounding of a batch of this size; sex does not matter."""
    rounding = 1e-9 if (len(frame) * 2654435761 >> 7) % 2 else -1e-9
    return 1 / (1 + np.exp(-np.where(frame["a"] == 1, rounding, np.where(frame["a"] > 1, 1.0, -1.0))))


@pytest.mark.parametrize("loss", ["cross_entropy", "zero_one"])
@pytest.mark.parametrize("search", ["candidates", "domain"])
def test_a_decision_that_hangs_on_the_rounding_of_a_batch_is_not_a_change(search, loss):
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"a": rng.integers(0, 4, 60), "b": rng.choice(["x", "y"], 60), "sex": ["f", "m"] * 30}
    )
    y, domain = rng.integers(0, 2, 60), lw.TabularDomain.from_frame(people)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(people).metric_
    signs = set()
    for n in (56, 57, 58, 59):
        some = people.iloc[:n]
        signs.add(float(tied(some)[some["a"] == 1][0]))
        assert lw.audit(tied, some, y[:n], sensitive_features=["sex"]).changed.count == 0
        found = lw.audit(tied, some, y[:n], metric=metric, domain=domain, eps=0.0, search=search, loss=loss)
        assert found.worst_case.flipped == 0
        assert found.gap == pytest.approx(0.0, abs=1e-8)
        assert found.bracket("changed", eps=0.0).lower == 0
    assert len(signs) > 1, "batches of these sizes round alike"


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_one_person_with_a_metric_is_answered(eps):
    people = pd.DataFrame({"age": [30.0, 40, 50, 20], "sex": ["f", "m", "f", "m"]})
    domain = lw.TabularDomain.from_frame(people)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(people).metric_

    def chance(frame):
        return 1 / (1 + np.exp(-(frame["age"] - 35) / 10 - (frame["sex"] == "m")))

    found = lw.audit(chance, people.iloc[:1], np.array([0]), metric=metric, domain=domain, eps=eps)
    free = np.log(1 + np.exp(0.5)) - np.log(1 + np.exp(-0.5))
    assert found.worst_case.pure_gap == pytest.approx(free)
    assert found.gap >= free - 1e-12
    # One person says of others no more than Markov's inequality does: P(gain ≥ mean / α) ≤ α.
    assert found.test.interval[0] == pytest.approx(0.025 * free)
    assert found.test.p_value == pytest.approx(found.test.threshold / free, rel=1e-3)
    assert found.test.interval[1] > 20
