"""No verdict before it is known that model, table and labels belong together, and a trivial truth is called trivial.

What broke: a model fitted on z-scores and asked about a raw table of the same column names was "Fair (proved)", exit 0,
where decisions do change; and so was, without a word, a model that never reads the sensitive column.
"""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import likewise as lw
from likewise.auditing.inference.sanity import (
    check_before_verdict,
    far_from_range,
    one_class,
    worse_than_guessing,
)
from likewise.auditing.inference.verdict import give_verdict
from likewise.auditing.problem import AuditProblem
from likewise.cli.app import main
from likewise.core.errors import NotConvergedError
from likewise.report import audit_document, json_schema, write_html
from likewise.report.evidence.checks import checks_of

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "tables"
BLOCKING = {"units", "one class", "guessing"}


def audited(model, people, y, sensitive, **choices):
    metric = lw.ExpertSubspace([sensitive]).fit(people).metric_
    return lw.audit(model, people, np.asarray(y), metric=metric, **({"eps": 0.0} | choices))


def kinds(result):
    return {finding.kind for finding in result.findings}


# ---- a table in other units than the model ------------------------------------------------------------------


@pytest.fixture(scope="module")
def adult_numbers():
    """Adult as numbers of the table's own units, and what fitting on z-scores sees of it."""
    data = lw.datasets.load_adult()
    people = data.frame_train.iloc[:3000].reset_index(drop=True).copy()
    for name in people.select_dtypes(exclude="number"):
        people[name] = people[name].astype("category").cat.codes
    people = people.astype(float)
    mean, scale = people.mean(), people.std()
    return people, np.asarray(data.y_train)[:3000].astype(int), (people - mean) / scale, (mean, scale)


@pytest.fixture(scope="module")
def on_z_scores(adult_numbers):
    _, y, scores, _ = adult_numbers
    return {
        "xgboost": XGBClassifier(n_estimators=60, max_depth=4).fit(scores, y),
        "logistic": LogisticRegression(max_iter=500).fit(scores, y),
    }


@pytest.mark.parametrize("name", ["xgboost", "logistic"])
def test_a_model_of_z_scores_and_a_raw_table_get_no_verdict(adult_numbers, on_z_scores, name, tmp_path):
    people, y, scores, (mean, scale) = adult_numbers
    model = on_z_scores[name]
    twins = people.assign(sex=1.0 - people["sex"])
    truth = (model.predict(scores) != model.predict((twins - mean) / scale)).sum()
    assert truth > 20  # decisions that do change, which no answer about the raw table can tell
    result = audited(model, people, y, "sex", delta=0.9)
    assert kinds(result) & BLOCKING
    # Neither may be said: what is shown is as far from the model in its own units as what is proved.
    assert result.gap > 0.0
    assert result.verdict() == result.verdict(delta=0.0) == "unanswered"
    assert result.certificate.bound is None
    assert all(bracket.upper is None for bracket in result.brackets)
    for delta in (0.9, 0.0):
        with pytest.raises(NotConvergedError, match="could not be answered"):
            result.raise_if_unfair(delta)
    document = audit_document(result)
    jsonschema.validate(document, json_schema())
    assert document["verdict"]["title"] == "Could not be answered"
    assert document["summary"]["sentences"][0] == document["findings"][0]["sentence"]
    assert {check.id: check.state for check in checks_of(document)}["belong-together"] == "error"
    for language, words in (("en", "Could not be answered"), ("de", "Nicht zu beantworten")):
        write_html(result, tmp_path / f"{language}.html", language=language)
        page = (tmp_path / f"{language}.html").read_text(encoding="utf-8")
        assert words in page
        assert "Fair (proved)" not in page
        assert "Fair (bewiesen)" not in page
    result.save(tmp_path / "kept")
    assert lw.AuditResult.load(tmp_path / "kept").findings == result.findings


def test_the_units_are_named_and_the_right_units_are_not_doubted(adult_numbers, on_z_scores):
    people, y, scores, _ = adult_numbers
    told = next(f for f in audited(on_z_scores["xgboost"], people, y, "sex").findings if f.kind == "units")
    assert "age" in told.columns
    for model in on_z_scores.values():
        assert not kinds(audited(model, scores, y, "sex"))


def test_a_pipeline_whose_scaler_never_saw_such_people(adult_numbers):
    people, y, scores, _ = adult_numbers
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(scores, y)
    told = next(f for f in audited(model, people, y, "sex").findings if f.kind == "units")
    assert "age" in told.columns
    assert "standard deviations" in told.sentence


def test_the_command_line_says_it_first_and_exits_with_3(adult_numbers, on_z_scores, tmp_path, capsys):
    people, y, _, _ = adult_numbers
    on_z_scores["xgboost"].save_model(tmp_path / "model.json")
    table = people.iloc[:600].astype({"sex": int}).assign(paid=y[:600])
    table.to_csv(tmp_path / "people.csv", index=False)
    words = [str(tmp_path / "model.json"), str(tmp_path / "people.csv"), "--target", "paid"]
    words += ["--sensitive", "sex"]
    for extra in (["--delta", "0.9"], ["--delta", "0"], []):
        with pytest.raises(SystemExit) as ended:
            main(["audit", *words, "--eps", "0", "--metric", "columns", *extra])
        out = " ".join(capsys.readouterr().out.split())
        assert ended.value.code == 3
        assert out.startswith("Could not be answered: The table does not seem to be in the units")
        assert "Fair (proved)" not in out
    with pytest.raises(SystemExit) as ended:
        main(["verify", *words, "--budget-seconds", "1", "-o", str(tmp_path / "verified.json")])
    assert ended.value.code == 3
    assert "the same decision, proved" not in capsys.readouterr().out
    verified = json.loads((tmp_path / "verified.json").read_text(encoding="utf-8"))
    assert verified["findings"][0]["kind"] == "units"


# ---- labels -------------------------------------------------------------------------------------------------


def test_labels_of_the_other_class_are_worse_than_guessing(adult_numbers, on_z_scores):
    _, y, scores, _ = adult_numbers
    result = audited(on_z_scores["xgboost"], scores, 1 - y, "sex")
    assert kinds(result) == {"guessing"}
    assert give_verdict(result).kind == "unanswered"


def test_a_weak_and_careful_model_is_not_doubted():
    labels = np.repeat([0, 1], [900, 100])
    shares = np.tile([0.9, 0.1], (1000, 1))
    loss = -np.log(shares[np.arange(1000), labels])
    everybody = np.zeros(1000, dtype=int)
    assert one_class(everybody, labels, shares) is None
    assert worse_than_guessing(everybody, labels, loss, loss, shares) is None
    sure = np.tile([0.999, 0.001], (1000, 1))
    assert one_class(everybody, labels, sure) == (0, 1.0, 0.9)


def test_a_regression_far_from_its_labels_is_doubted():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"skill": rng.normal(size=200), "sex": rng.choice(["F", "M"], 200)})
    pay = people["skill"].to_numpy() + rng.normal(size=200)

    def predict(frame, shift=0.0):
        return frame["skill"].to_numpy() + 0.1 * (frame["sex"] == "M") + shift

    assert not kinds(audited(predict, people, pay, "sex", loss="squared"))
    result = audited(lambda frame: predict(frame, 10.0), people, pay, "sex", loss="squared")
    assert kinds(result) == {"guessing"}


def test_few_people_of_one_decade_are_not_doubted():
    assert far_from_range([25.5, 40.5, 61.5], np.linspace(64, 74, 40)) is False
    assert far_from_range([3000.0, 5000.0, 7000.0], [0.0, 594.0] * 20) is False  # two values tell nothing
    assert far_from_range([20_500.0, 33_000.0, 61_000.0], np.linspace(18, 90, 40)) is True  # thousands


# ---- columns that are not read ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def some_people():
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"age": rng.integers(18, 80, 300), "hours": rng.integers(5, 60, 300)})
    people["sex"] = rng.integers(0, 2, 300)
    return people, (people["age"] + people["hours"] + rng.normal(0, 10, 300) > 80).to_numpy().astype(int)


def blind_models(people, y):
    constant = people.assign(sex=0)
    yield (
        "trees",
        XGBClassifier(n_estimators=10, max_depth=3).fit(constant, y),
        "since the model does not read it",
    )
    yield "tree", DecisionTreeClassifier(max_depth=4).fit(constant, y), "since the model does not read it"
    lines = LogisticRegression(max_iter=500).fit(constant, y)
    lines.coef_[0, list(people.columns).index("sex")] = 0.0
    yield "weights", lines, "since the model does not read it"
    yield "function", lambda frame: 1 / (1 + np.exp(-(frame["age"] - 50) / 9)), "changes by a bit"


def test_a_column_that_is_not_read_is_called_trivial(some_people, tmp_path):
    people, y = some_people
    for name, model, words in blind_models(people, y):
        result = audited(model, people, y, "sex", delta=0.01)
        assert [(f.kind, f.columns, f.blocks) for f in result.findings] == [("unread", ("sex",), False)], name
        assert words in result.findings[0].sentence, name
        assert "proxies" in result.findings[0].sentence
        assert result.verdict() == "fair (trivially)", name
        verdict = give_verdict(result)
        assert (verdict.kind, verdict.title) == ("trivial", "Fair, trivially")
        assert verdict.sentence.startswith("Trivially, ")
        result.raise_if_unfair()
        jsonschema.validate(audit_document(result), json_schema())
        assert str(result).startswith("Trivially, no prediction depends on sex")
    write_html(result, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Fair, trivially" in page
    assert "Fair (proved)" not in page


def test_what_is_read_however_little_is_not_called_trivial(some_people):
    people, y = some_people

    def nearly(frame):
        """Reads sex of one person in the table only: the last of the rows that are asked about."""
        rare = (frame["age"] == people["age"].iloc[-1]) & (frame["hours"] == people["hours"].iloc[-1])
        return 1 / (1 + np.exp(-(frame["age"] + frame["hours"] - 80) / 9 - 1e-9 * frame["sex"] * rare))

    assert not kinds(audited(nearly, people, y, "sex"))
    # Decisions, and probabilities that are rounded to 0 or 1, hide what a model reads.
    assert not kinds(
        audited(lambda frame: (frame["age"] + frame["hours"] > 80).astype(float), people, y, "sex")
    )


def test_a_proxy_keeps_a_proof_from_being_trivial(some_people):
    people, y = some_people
    people = people.assign(sex=(people["age"] > 45).astype(int))
    model = XGBClassifier(n_estimators=10, max_depth=3).fit(people.assign(sex=0), y)
    metric = lw.ExpertSubspace(["sex", "age"]).fit(people).metric_
    result = lw.audit(model, people, y, metric=metric, eps=0.0, delta=100.0)
    assert [f.columns for f in result.findings] == [("sex",)]
    assert result.verdict() != "fair (trivially)"


# ---- honest models on real tables ---------------------------------------------------------------------------


def real_tables():
    adult = lw.datasets.load_adult()
    yield "adult", adult.frame_train.iloc[:2500], adult.y_train[:2500], "sex"
    german = lw.datasets.load_german()
    yield "german", german.frame_train, german.y_train, "sex"
    compas = SHARED / "compas-scores-two-years.csv"
    if compas.exists():
        chosen = ["sex", "age", "race", "juv_fel_count", "priors_count", "c_charge_degree", "two_year_recid"]
        table = pd.read_csv(compas, usecols=chosen).dropna().iloc[:2500]
        yield "compas", table.drop(columns="two_year_recid"), table["two_year_recid"], "sex"
    law = SHARED / "law_school.csv"
    if law.exists():
        table = pd.read_csv(law).dropna().iloc[:2500]
        table["male"] = np.where(table["male"] == 1, "yes", "no")
        yield "law school", table.drop(columns="pass_bar"), table["pass_bar"].astype(int), "male"


def honest_models(people):
    numbers = list(people.select_dtypes("number"))
    words = [name for name in people if name not in numbers]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    plain = make_column_transformer((codes, words), ("passthrough", numbers))
    scaled = make_column_transformer((hot, words), (StandardScaler(), numbers))
    yield "logistic regression", make_pipeline(scaled, LogisticRegression(max_iter=1000))
    yield "balanced", make_pipeline(scaled, LogisticRegression(max_iter=1000, class_weight="balanced"))
    yield "xgboost", make_pipeline(plain, XGBClassifier(n_estimators=60))
    yield "xgboost of z-scores", make_pipeline(scaled, XGBClassifier(n_estimators=20, max_depth=3))
    yield (
        "lightgbm",
        make_pipeline(plain, LGBMClassifier(n_estimators=40, verbose=-1)).set_output(transform="pandas"),
    )
    yield "forest", make_pipeline(plain, RandomForestClassifier(30, random_state=0))
    yield "hist", make_pipeline(plain, HistGradientBoostingClassifier(max_iter=40, random_state=0))
    yield "full tree", make_pipeline(plain, DecisionTreeClassifier(random_state=0))


def unmoved(model, people, column):
    """Whether no prediction depends on a column, by asking about every value."""
    own = model.predict_proba(people)
    others = [people.assign(**{column: value}) for value in people[column].unique()]
    return all((model.predict_proba(other) == own).all() for other in others)


def test_honest_models_of_real_tables_raise_no_doubt():
    looked = []
    for table, people, labels, sensitive in real_tables():
        people, y = people.reset_index(drop=True), np.asarray(labels).astype(int)
        half = len(people) // 2
        metric = lw.ExpertSubspace([sensitive]).fit(people).metric_
        for name, model in honest_models(people):
            model.fit(people.iloc[:half], y[:half])
            for part in (slice(half, None), slice(half, half + 40)):
                rest = people.iloc[part].reset_index(drop=True)
                domain = lw.TabularDomain.from_frame(people)
                problem = AuditProblem.build(model, rest, y[part], metric=metric, domain=domain)
                told = {finding.kind for finding in check_before_verdict(problem)}
                assert told <= ({"unread"} if unmoved(model, rest, sensitive) else set()), (
                    table,
                    name,
                    len(rest),
                )
                looked.append((table, name))
    assert len({table for table, _ in looked}) >= 2
