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
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import likewise as lw
from likewise.auditing.inference.sanity import (
    check_before_verdict,
    far_from_range,
    one_class,
    worse_than_guessing,
)
from likewise.auditing.problem import AuditProblem
from likewise.auditing.results.effects import SensitiveSums
from likewise.auditing.results.sensitive import enumerate_sensitive
from likewise.cli.app import main
from likewise.core.errors import NotConvergedError
from likewise.report import audit_document, json_schema, write_html
from likewise.report.evidence.checks import checks_of

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "tables"
BLOCKING = {"units", "values", "one class", "guessing"}


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
    people = data.frame_train.iloc[:1200].reset_index(drop=True).copy()
    for name in people.select_dtypes(exclude="number"):
        people[name] = people[name].astype("category").cat.codes
    people = people.astype(float)
    mean, scale = people.mean(), people.std()
    return people, np.asarray(data.y_train)[:1200].astype(int), (people - mean) / scale, (mean, scale)


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
    for labels in (y, None):
        first = lw.audit(model, people, labels, sensitive_features=["sex"])
        # Weights alone have no units: without labels it is said that everybody gets one decision, and nothing is proved.
        assert kinds(first) & BLOCKING or (labels is None and name == "logistic" and kinds(first) == {"same"})
        assert first.headline.badge == ("unanswered" if kinds(first) & BLOCKING else "not_found")
    result = audited(model, people, y, "sex", delta=0.9)
    assert kinds(result) & BLOCKING
    # Neither may be said: what is shown is as far from the model in its own units as what is proved.
    assert result.gap > 0.0
    assert result.verdict() == result.verdict(delta=0.0) == "unanswered"
    assert result.certificate.bound is None
    assert all(bracket.upper is None for bracket in result.brackets)
    for delta in (0.9, 0.0):
        with pytest.raises(NotConvergedError, match="could not be answered"):
            result.raise_if_unfair(delta=delta)
    document = audit_document(result)
    jsonschema.validate(document, json_schema())
    assert document["summary"]["badge"]["title"] == "Could not be answered"
    assert document["summary"]["sentences"][0] == document["findings"][0]["sentence"]
    assert {check.id: check.state for check in checks_of(document)}["belong-together"] == "error"
    for language, words in (("en", "Could not be answered"), ("de", "Nicht zu beantworten")):
        write_html(result, tmp_path / f"{language}.html", language=language)
        page = (tmp_path / f"{language}.html").read_text(encoding="utf-8")
        assert words in page
        assert "Fair (proved)" not in page
        assert "Fair (bewiesen)" not in page
    result.save(tmp_path / "kept.json")
    *kept, recorded = lw.AuditResult.load(tmp_path / "kept.json").findings
    assert tuple(kept) == result.findings
    assert recorded.kind == "recorded"


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
    assert "scaler" in told.sentence


def test_the_command_line_says_it_first_and_exits_with_3(adult_numbers, on_z_scores, tmp_path, capsys):
    people, y, _, _ = adult_numbers
    on_z_scores["xgboost"].save_model(tmp_path / "model.json")
    table = people.iloc[:600].astype({"sex": int}).assign(paid=y[:600])
    table.to_csv(tmp_path / "people.csv", index=False)
    words = [str(tmp_path / "model.json"), str(tmp_path / "people.csv"), "--target", "paid"]
    words += ["--sensitive", "sex"]
    worst = ["--eps", "0", "--metric", "columns"]
    for extra in ([*worst, "--delta", "0.9"], [*worst, "--delta", "0"], ["--limit", "50%"], []):
        with pytest.raises(SystemExit) as ended:
            main(["audit", *words, *extra])
        out = " ".join(capsys.readouterr().out.split())
        assert ended.value.code == 3
        assert "Could not be answered: The table does not seem to be in the units" in out
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
    assert result.headline.badge == "unanswered"


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


def test_a_column_that_is_not_read_is_called_trivial(some_people, tmp_path):
    people, y = some_people
    for name, model, words in blind_models(people, y):
        result = audited(model, people, y, "sex", delta=0.01)
        assert [(f.kind, f.columns, f.blocks) for f in result.findings] == [("unread", ("sex",), False)], name
        assert words in result.findings[0].sentence, name
        assert "proxies" in result.findings[0].sentence
        assert result.verdict() == "fair (trivially)", name
        first = lw.audit(model, people, y, sensitive_features=["sex"])
        assert (first.headline.badge, kinds(first)) == ("not_read", {"unread"}), name
        found = result.headline
        assert (found.badge, found.title) == ("not_read", "Not read by the model (sex)")
        assert found.sentence.startswith("The model does not use the entry for sex")
        result.raise_if_unfair()
        jsonschema.validate(audit_document(result), json_schema())
        assert "The model does not use the entry for sex" in " ".join(str(result).split())
    write_html(result, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Not read by the model (sex)" in page
    assert "Proved independent" not in page


def test_what_is_only_asked_is_not_called_unread(some_people):
    """A function, and trees that are not read, which use sex of nobody in the table."""
    people, y = some_people

    def predict(frame):
        return 1 / (1 + np.exp(-(frame["age"] - 50) / 9 - 9 * (frame["age"] > 200) * frame["sex"]))

    result = audited(predict, people, y, "sex", delta=0.01)
    assert [(f.kind, f.columns, f.blocks) for f in result.findings] == [("unmoved", ("sex",), False)]
    assert "these people" in result.findings[0].sentence
    assert result.headline.badge == "independent"
    assert result.verdict() == "fair (proved)"


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
    yield "adult", adult.frame_train.iloc[:800], adult.y_train[:800], "sex"
    german = lw.datasets.load_german()
    yield "german", german.frame_train[:800], german.y_train[:800], "sex"
    compas = SHARED / "compas-scores-two-years.csv"
    if compas.exists():
        chosen = ["sex", "age", "race", "juv_fel_count", "priors_count", "c_charge_degree", "two_year_recid"]
        table = pd.read_csv(compas, usecols=chosen).dropna().iloc[:800]
        yield "compas", table.drop(columns="two_year_recid"), table["two_year_recid"], "sex"
    law = SHARED / "law_school.csv"
    if law.exists():
        table = pd.read_csv(law).dropna().iloc[:800]
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
    yield "xgboost", make_pipeline(plain, XGBClassifier(n_estimators=20))
    yield "xgboost of z-scores", make_pipeline(scaled, XGBClassifier(n_estimators=20, max_depth=3))
    yield (
        "lightgbm",
        make_pipeline(plain, LGBMClassifier(n_estimators=15, verbose=-1)).set_output(transform="pandas"),
    )
    yield "forest", make_pipeline(plain, RandomForestClassifier(10, random_state=0))
    yield "hist", make_pipeline(plain, HistGradientBoostingClassifier(max_iter=15, random_state=0))
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
                told = {
                    finding.kind
                    for finding in check_before_verdict(
                        problem, SensitiveSums.of(enumerate_sensitive(problem))
                    )
                }
                allowed = {"unread", "unmoved"} if unmoved(model, rest, sensitive) else set()
                allowed |= {"same"} if len(set(model.predict(rest))) == 1 else set()
                assert told <= allowed, (table, name, len(rest))
                looked.append((table, name))
    assert len({table for table, _ in looked}) >= 2


# ---- a value that nobody has ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_a_value_that_nobody_has_is_tried_before_a_column_is_called_unread(seed):
    """A function that reverses everybody at age 77, which nobody is, was said not to depend on age."""
    rng = np.random.default_rng(seed)
    people = pd.DataFrame({"age": rng.integers(0, 100, 200), "x": rng.integers(0, 30, 200)})
    people = people[people["age"] != 77].reset_index(drop=True)
    people.loc[[0, 1], "age"] = [0, 99]

    def predict(frame):
        sure = 0.1 + 0.8 * (frame["x"] > 15)
        return np.where(frame["age"] == 77, 1 - sure, sure)

    result = audited(predict, people, (people["x"] > 15).astype(int), "age", delta=0.05)
    assert result.sensitive.changed == 1.0
    assert not result.findings
    assert result.verdict() == "unfair (shown)"


def test_columns_that_matter_in_combination_only_are_not_called_unread():
    rng = np.random.default_rng(4)
    people = pd.DataFrame({name: rng.choice(["F", "M"], 200) for name in ("sex", "race", "club")})
    people["x"] = rng.normal(size=200)
    # Nobody has both, so that no person's own value of one column shows what the other does.
    people.loc[people["race"] == "M", "sex"] = "F"

    def predict(frame):
        both = (frame["sex"] == "M") & (frame["race"] == "M")
        return 1 / (1 + np.exp(-frame["x"] - both))

    metric = lw.ExpertSubspace(["sex", "race", "club"]).fit(people).metric_
    result = lw.audit(predict, people, (people["x"] > 0).astype(int), metric=metric, eps=0.0)
    assert [(finding.kind, finding.columns) for finding in result.findings] == [("unmoved", ("club",))]


def test_whoever_is_not_in_the_sample_of_a_large_table_counts_too(tmp_path):
    """Of Parquet files a sample tells what is learned; whether a column is read is asked about everybody."""
    from likewise.auditing.auditor import audit_asked
    from likewise.auditing.first_answer import AuditRequest
    from likewise.auditing.partitions.runner import Sizes
    from likewise.auditing.search.candidates import CandidateSearch

    rng = np.random.default_rng(5)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 400), "x": np.arange(400)})
    people.assign(y=(people["x"] > 200).astype(int)).to_parquet(tmp_path / "people.parquet")
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    found = []
    for last in (400, 399):  # the last person's prediction depends on sex, or nobody's does

        def predict(frame, last=last):
            return 1 / (
                1 + np.exp(-(frame["x"] - 200) / 90 - 1e-9 * (frame["sex"] == "M") * (frame["x"] == last))
            )

        request = AuditRequest(predict, metric, (CandidateSearch(use_rows=False),), eps=0.0)
        result = audit_asked(
            request,
            tmp_path / "people.parquet",
            "y",
            sizes=Sizes(sample=50, part=100, chunk=40),
        )
        found.append([finding.columns for finding in result.findings if finding.kind == "unmoved"])
    assert found == [[("sex",)], []]


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_rounding_of_batches_does_not_hide_that_a_column_is_dropped(C):
    """Predictions differ in the last bit between batches of different sizes."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "inc": np.exp(rng.normal(8, 1.0, 1250)).round(2),
            "age": rng.integers(18, 90, 1250),
            "sex": rng.choice(["f", "m"], 1250),
        }
    )
    y = (np.log(people["inc"]) - 8 + 0.04 * (people["age"] - 50) + rng.normal(size=1250) > 0).astype(int)
    model = make_pipeline(
        make_column_transformer((StandardScaler(), ["inc", "age"])), LogisticRegression(C=C)
    ).fit(people, y)
    assert audited(model, people, y, "sex", delta=0.05).verdict() == "fair (trivially)"


# ---- worse than guessing ----------------------------------------------------------------------------------------


def decisions_of(n, seed, share=0.55):
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < share).astype(int)
    return rng, target


@pytest.mark.parametrize("sure", [0.55, 0.7, 0.9])
def test_decisions_that_are_wrong_more_often_than_by_chance_are_doubted(sure):
    """However careful its probabilities are, and however well their mean fits the labels."""
    rng, target = decisions_of(1000, 0)
    decided = np.where(rng.random(1000) < 0.8, 1 - target, target)
    probability = np.where(np.arange(2) == decided[:, None], sure, 1 - sure)
    loss = -np.log(probability[np.arange(1000), target])
    constant = -np.log(np.bincount(target)[target] / 1000)
    assert worse_than_guessing(decided, target, loss, constant, probability) is not None


@pytest.mark.parametrize("own", [0.1, 0.3, 0.45, 0.48])
def test_one_class_for_everybody_is_doubted_if_another_is_more_frequent(own):
    _, target = decisions_of(1250, 1)
    probability = np.tile([1 - own, own], (1250, 1))
    loss = -np.log(probability[np.arange(1250), target])
    constant = -np.log(np.bincount(target)[target] / 1250)
    everybody = np.zeros(1250, dtype=int)
    assert one_class(everybody, target, probability, loss=loss, constant=constant) is not None
    # An odd threshold of a model that knows something: everybody is decided alike, with probabilities that are better.
    knows = np.clip(np.where(target == 1, 0.7, 0.3), 0.0, 1.0)
    probability = np.column_stack([1 - knows, knows])
    better = -np.log(probability[np.arange(1250), target])
    assert one_class(everybody, target, probability, loss=better, constant=constant) is None


@pytest.mark.parametrize("share", [0.01, 0.03, 0.05, 0.2, 0.5])
def test_noise_imbalance_and_odd_thresholds_are_not_doubted(share):
    for seed in range(40):
        rng, target = decisions_of(600, seed, share)
        probability = np.clip(share + 0.3 * share * rng.normal(size=600), 0.001, 0.999)
        both = np.column_stack([1 - probability, probability])
        loss = -np.log(both[np.arange(600), target])
        constant = -np.log(np.maximum(np.bincount(target, minlength=2)[target] / 600, 1e-12))
        thresholds = (0.5, share) if share < 0.5 else (0.5,)
        for threshold in thresholds:
            decided = (probability > threshold).astype(int)
            assert worse_than_guessing(decided, target, loss, constant, both) is None
            assert one_class(decided, target, both, loss=loss, constant=constant) is None


# ---- tables that the model was not fitted on, of many kinds ------------------------------------------------------


def random_people(seed, n=400):
    """Random numbers of random units, words of random alphabets, and labels that depend on the sensitive one."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(0, 5, 3)
    people = pd.DataFrame({f"n{k}": rng.normal(4 * size, size, n) for k, size in enumerate(sizes)})
    people["n0"] = people["n0"].round(3)
    words = [f"w{rng.integers(1000)}{k}" for k in range(3)]
    people["group"] = rng.choice(words[: rng.integers(2, 4)], n)
    people["region"] = rng.choice(["north", "south", "east"], n)
    scores = (
        (people["n0"] / sizes[0] - 4) + (people["n1"] / sizes[1] - 4) + 1.5 * (people["group"] == words[0])
    )
    return people, (scores + rng.normal(0, 0.5, n) > 0.7).astype(int)


def fitted_models(people, y):
    """Models of every way to keep what is known of a column, with the wrappers that people put around them."""
    numbers, words = [name for name in people if name.startswith("n")], ["group", "region"]
    ignore = OneHotEncoder(handle_unknown="ignore")
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    kept = make_column_transformer((ignore, words), remainder="passthrough")
    filled = make_column_transformer((make_pipeline(SimpleImputer(strategy="most_frequent"), ignore), words))
    plain = make_column_transformer((codes, words), ("passthrough", numbers))
    lines = {
        scaler: make_column_transformer((ignore, words), (scaler, numbers))
        for scaler in (StandardScaler(), MinMaxScaler(), RobustScaler(), QuantileTransformer(n_quantiles=50))
    }
    models = [make_pipeline(steps, LogisticRegression(max_iter=500)) for steps in lines.values()]
    first = next(iter(lines.values()))
    models += [
        make_pipeline(kept, RandomForestClassifier(10, random_state=0)),
        make_pipeline(filled, LogisticRegression()),
        make_pipeline(plain, XGBClassifier(n_estimators=10, max_depth=3)),
        make_pipeline(
            make_column_transformer((TargetEncoder(), words), (StandardScaler(), numbers)),
            LogisticRegression(),
        ),
        GridSearchCV(make_pipeline(first, LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2),
        CalibratedClassifierCV(make_pipeline(first, LinearSVC()), cv=2),
        VotingClassifier([("a", make_pipeline(first, LogisticRegression()))], voting="soft"),
    ]
    yield from (clone(model).fit(people, y) for model in models)
    typed = people.astype(dict.fromkeys(words, "category"))
    yield LGBMClassifier(n_estimators=10, verbose=-1, min_child_samples=5).fit(typed, y)
    yield HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype").fit(typed, y)


def other_tables(people):
    """The same people as a table that the model was not fitted on."""
    yield "other words", people.assign(group=people["group"].str.upper() + "!")
    numbers = [name for name in people if name.startswith("n")]
    yield "z-scores", people.assign(**{n: (people[n] - people[n].mean()) / people[n].std() for n in numbers})
    yield "thousandths", people.assign(**{name: people[name] * 1000 for name in numbers})


@pytest.mark.parametrize("seed", [0])
def test_no_proof_of_a_table_that_the_model_was_not_fitted_on(seed):
    """With or without labels: nothing is called proved, and the table that it was fitted on raises no doubt."""
    people, y = random_people(seed, n=250)
    doubted = []
    for number, model in enumerate(fitted_models(people, y)):
        typed = hasattr(model, "booster_") or isinstance(model, HistGradientBoostingClassifier)
        own = people.astype({"group": "category", "region": "category"}) if typed else people
        right = lw.audit(model, own, y, sensitive_features=["group"])
        assert not right.findings, (model, right.findings)
        assert right.changed.count > 0
        for turn, (kind, table) in enumerate(other_tables(people)):
            # Every model with two of the tables, and every table with most models.
            if (number + turn) % 3 == 1:
                continue
            table = table.astype({"group": "category", "region": "category"}) if typed else table
            labels = y if (number + turn) % 2 else None
            found = lw.audit(model, table, labels, sensitive_features=["group"], eps=0.0)
            assert found.headline.badge in ("unanswered", "depends", "not_found"), (model, kind)
            assert found.changed.count or found.verdict(0.9) != "fair (proved)"
            if kind == "other words":
                told = found.findings[0]
                assert (told.kind, told.columns, found.verdict(0.9)) == ("values", ("group",), "unanswered")
                assert all(repr(word) in told.sentence for word in people["group"].unique())
            doubted.append(not found.answered)
            # Every model with one of the tables, every table with several models: `verify` asks as much again.
            if not found.answered and (number + turn) % 3 == 0:
                proof = lw.verify(model, table, ["group"], y=labels, budget_seconds=1)
                assert [finding.kind for finding in proof.findings] == [one.kind for one in found.findings]
                assert (proof.badge, proof.proved, proof.undecided, proof.pairs) == (
                    "unanswered",
                    0.0,
                    1.0,
                    0,
                )
                assert str(proof).startswith(f"Could not be answered: {str(found.findings[0].sentence)[:40]}")
    assert np.mean(doubted) > 0.8


def test_new_values_of_an_honest_table_are_not_doubted():
    """Somebody of a group that the model has never seen, and a region nobody of the training table came from."""
    people, y = random_people(3, n=250)
    for model in fitted_models(people, y):
        if hasattr(model, "booster_") or isinstance(model, HistGradientBoostingClassifier):
            continue
        table = people.assign(group=np.where(np.arange(len(people)) < 8, "new", people["group"]))
        table.loc[::3, "region"] = "west"
        found = lw.audit(model, table, y, sensitive_features=["group"])
        assert found.answered, (model, found.findings)
        # Words of another language for half of the people and more are no rare region.
        table.loc[::3, "region"], table.loc[1::3, "region"] = "ouest", "est"
        found = lw.audit(model, table, y, sensitive_features=["group"])
        assert [one.columns for one in found.findings if one.kind == "values"] == [("region",)], model


@pytest.mark.parametrize("labels", [False, True])
def test_one_decision_for_everybody_is_never_proof_of_independence(labels):
    rng = np.random.default_rng(7)
    people, _ = random_people(7)
    mixed = rng.integers(0, 2, 400)

    def everybody(frame):
        return np.full(len(frame), 0.8) + 0.01 * np.tanh(frame["n0"] - 4) + 0.01 * (frame["group"] == "x")

    found = lw.audit(everybody, people, mixed if labels else None, sensitive_features=["group"])
    assert found.changed.count == 0
    assert found.headline.badge == ("unanswered" if labels else "not_found")
    assert (
        "class" in found.findings[0].sentence
        if labels
        else "Everybody gets the same" in found.headline.sentence
    )
    assert ("Without labels" in found.headline.sure) is not labels


def test_an_encoding_that_nobody_named_is_said_first_and_nothing_is_proved():
    """A bare network on a raw table: with the encoder or a function that encodes, the doubt is gone."""
    torch = pytest.importorskip("torch")
    people = pd.DataFrame({"income": np.random.default_rng(0).normal(size=60), "sex": ["F", "M"] * 30})
    domain = lw.TabularDomain.from_frame(people)
    names = list(domain.get_feature_names_out())
    net = torch.nn.Linear(len(names), 2)
    with torch.no_grad():
        net.weight[:, [name.startswith("sex") for name in names]] = 0.0
    found = lw.audit(net, people, sensitive_features=["sex"])
    assert [one.kind for one in found.findings][:1] == ["encoding"]
    assert found.headline.badge == "not_found"
    assert "not known how the model's inputs were encoded" in " ".join(str(found).split())
    told = lw.audit(net, people, sensitive_features=["sex"], domain=domain)
    assert "encoding" not in {one.kind for one in told.findings}
