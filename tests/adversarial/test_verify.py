"""`verify` against the enumeration of small domains: every row under every sensitive value, asked of the model itself."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import likewise as lw
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.verification.asked_shares import SensitiveValues, sample_rows, uniform_rows


def small_table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 32, n),
            "hours": rng.integers(0, 6, n),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "sex": rng.choice(["f", "m"], n),
            "group": rng.integers(0, 4, n),
        }
    )
    score = (frame.age - 26) / 3 + 0.8 * (frame.sex == "m") + 0.3 * frame.group - 0.4 * (frame.job == "cook")
    return frame, (score + rng.normal(size=n) > 0.8).astype(int)


def every_row(frame):
    """All combinations of the values between the ends of each column."""
    options = [
        sorted(frame[name].unique()) if frame[name].dtype.kind not in "iuf" else range(frame[name].min(), frame[name].max() + 1)
        for name in frame
    ]  # fmt: skip
    return pd.DataFrame(list(product(*options)), columns=list(frame.columns)).astype(frame.dtypes)


def truth(decide, frame, sensitive):
    """Share of the other columns' combinations whose decision depends on the sensitive ones."""
    rows = every_row(frame)
    others = [name for name in frame if name not in sensitive]
    decided = rows.assign(decision=decide(rows)).groupby(others)["decision"]
    return float((decided.min() != decided.max()).mean())


def people_truth(decide, people, frame, sensitive):
    """Which people get another decision under some sensitive values."""
    own, changed = decide(people), np.zeros(len(people), dtype=bool)
    for values in every_row(frame[list(sensitive)]).itertuples(index=False):
        changed |= decide(people.assign(**dict(zip(sensitive, values, strict=True)))) != own
    return changed


MODELS = {
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: RandomForestClassifier(n_estimators=7, max_depth=4, random_state=0),
    "linear": lambda: LogisticRegression(max_iter=5000),
    "not readable": lambda: GradientBoostingClassifier(n_estimators=25, random_state=0),
}


@pytest.mark.parametrize("sensitive", [["sex"], ["sex", "group"]])
@pytest.mark.parametrize("kind", MODELS)
def test_shares_never_claim_more_than_there_is_and_people_are_exact(kind, sensitive):
    frame, y = small_table()
    domain = lw.TabularDomain.from_frame(frame)
    model = MODELS[kind]().fit(domain.encode_array(frame), y)

    def decide(rows):
        return model.predict(domain.encode_array(rows))

    flips, people = truth(decide, frame, sensitive), frame.iloc[:120]
    changed = people_truth(decide, people, frame, sensitive)
    assert 0 < flips < 1
    for most in (3, 1_000_000):
        found = lw.verify(
            model, people, sensitive, domain=domain, encoded=True, budget_seconds=20, max_regions=most
        )
        assert found.proved <= 1 - flips + 1e-9
        assert found.flips <= flips + 1e-9
        assert found.proved + found.flips + found.undecided == pytest.approx(1.0)
        assert found.people == pytest.approx((1 - changed.mean(), changed.mean(), 0.0))
        share, low, high, rows = found.sampled
        # One interval in twenty may miss; twice as wide, none in ten thousand does.
        assert low - (high - low) / 2 <= flips <= high + (high - low) / 2
        assert low <= share <= high
        assert rows >= 300
        check_examples(found, decide, sensitive, people)
    if kind == "not readable":
        assert (found.proved, found.undecided) == (0.0, 1.0)
        assert "no upper bound is known" in found.reason
    else:
        assert found.undecided == pytest.approx(0.0, abs=1e-9)
        assert found.reason == ""


def check_examples(found, decide, sensitive, people):
    assert found.pairs
    seen, made_up = set(), []
    asked = decide(found.examples[list(people)].astype(people.dtypes))
    assert list(asked) == found.examples["decision"].tolist()
    for _, pair in found.examples.groupby("pair"):
        both, (row, _), decisions = (
            pair[list(people)].astype(people.dtypes),
            pair["row"],
            tuple(pair["decision"]),
        )
        assert decisions[0] != decisions[1]
        assert {name for name in both if both[name].iloc[0] != both[name].iloc[1]} <= set(sensitive)
        if row is not None:
            assert (both.iloc[0] == people.loc[row]).all()
        seen.add(frozenset(map(tuple, both.to_numpy().tolist())))
        made_up.append(row is None)
    assert len(seen) == found.pairs
    # Rows of the table first.
    assert made_up == sorted(made_up)


@pytest.mark.parametrize("sensitive", [["sex"], ["sex", "group"], ["age"]])
def test_the_share_of_people_is_the_audits(sensitive):
    frame, y = small_table(seed=1)
    domain = lw.TabularDomain.from_frame(frame)
    model = RandomForestClassifier(n_estimators=9, max_depth=5, random_state=1)
    model.fit(domain.encode_array(frame), y)
    rows = domain.encode_array(frame)
    metric = lw.ExpertSubspace(sensitive, domain=domain).fit(frame).metric_
    audited = lw.audit(model, rows, y, metric=metric, domain=domain, eps=0.0, search="candidates")
    found = lw.verify(model, frame, sensitive, domain=domain, encoded=True, max_regions=3)
    assert found.people[1] == audited.sensitive.changed
    assert found.people[1] > 0


def float32_network(width, seed=0):
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Linear(width, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )  # fmt: skip
    return torch, net


def test_a_single_precision_network_of_large_whole_numbers_leaves_nobody_undecided():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "fnlwgt": rng.integers(1_000_000, 1_000_040, 300),
            "gain": rng.integers(99_000, 99_006, 300),
            "sex": rng.integers(0, 2, 300),
        }
    )
    torch, net = float32_network(3)
    with torch.no_grad():
        # The bias cancels what the large numbers add, so that rounding is as large as the scores.
        middle = torch.tensor(frame.median().to_numpy(), dtype=torch.float32)
        net[0].bias -= net[0].weight @ middle
        net[0].weight[:, 2] *= 6
        net[0].bias += 6.0
        net[4].bias[0] -= float(
            (net(torch.tensor(frame.to_numpy(dtype=np.float32))) @ torch.tensor([1.0, -1.0])).median()
        )
    domain = lw.TabularDomain.from_frame(frame)

    def decide(rows):
        with torch.no_grad():
            return net(torch.tensor(rows.to_numpy(dtype=np.float32))).numpy().argmax(axis=1)

    flips = truth(decide, frame, ["sex"])
    changed = people_truth(decide, frame, frame, ["sex"])
    assert 0 < flips < 1
    found = lw.verify(net, frame, ["sex"], domain=domain, encoded=False, budget_seconds=10)
    assert found.people == pytest.approx((1 - changed.mean(), changed.mean(), 0.0))
    assert found.proved <= 1 - flips + 1e-9
    assert found.flips <= flips + 1e-9
    assert found.sampled.low <= flips <= found.sampled.high
    # Single rows are asked, so that no rounding leaves one of them open.
    assert found.undecided == pytest.approx(0.0, abs=1e-9)


def test_people_with_a_continuous_sensitive_column_are_proved_or_open_never_wrong():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.uniform(0, 1, 200), "pay": rng.uniform(0, 1, 200)})
    y = (frame.pay + 0.2 * frame.score > 0.6).astype(int)
    domain = lw.TabularDomain.from_frame(frame)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(domain.encode_array(frame), y)
    grid = np.linspace(frame.score.min(), frame.score.max(), 2001)
    decided = np.stack(
        [model.predict(domain.encode_array(frame.assign(score=value))) for value in grid], axis=1
    )
    changed = (decided != decided[:, :1]).any(axis=1)
    found = lw.verify(model, frame, ["score"], domain=domain, encoded=True)
    same, flips, undecided = found.people
    assert same <= 1 - changed.mean() + 1e-12
    assert flips >= changed.mean() - undecided - 1e-12
    assert same + flips + undecided == pytest.approx(1.0)
    assert undecided < 0.2
    assert found.sampled.low <= found.flips + found.undecided
    assert found.sampled.high >= found.flips


def test_random_rows_are_uniform_over_the_values_of_whole_numbers_and_categories():
    frame, _ = small_table()
    layout = TableLayout.of(lw.TabularDomain.from_frame(frame))
    rows = uniform_rows(layout, np.random.default_rng(0), 30_000)
    for i, column in enumerate(layout.columns):
        values, counts = np.unique(rows[:, i], return_counts=True)
        size = len(column.categories) or int(column.upper - column.lower) + 1
        assert len(values) == size
        # Ends are as likely as the others: rounding a uniform number would halve them.
        assert np.abs(counts / len(rows) * size - 1).max() < 0.2


def test_intervals_of_the_sampled_share_cover_as_often_as_they_say(monkeypatch):
    monkeypatch.setattr("likewise.auditing.verification.asked_shares._ASKED", 2_000)
    frame, y = small_table()
    domain = lw.TabularDomain.from_frame(frame)
    model = RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0)
    model.fit(domain.encode_array(frame), y)
    layout = TableLayout.of(domain)
    values = SensitiveValues.of(layout, ["sex"])
    decide = {
        tuple(row): label
        for row, label in zip(
            layout.values(domain.encode_array(every_row(frame))).tolist(),
            model.predict(domain.encode_array(every_row(frame))),
            strict=True,
        )
    }
    flips = truth(lambda rows: model.predict(domain.encode_array(rows)), frame, ["sex"])
    found = [
        sample_rows(layout, values, lambda rows: [decide[tuple(row)] for row in rows.tolist()], random_state=seed)
        for seed in range(100)
    ]  # fmt: skip
    # Of 100 at 95%, fewer than 88 happen once in a thousand times.
    assert sum(one.low <= flips <= one.high for one in found) >= 88
    assert abs(np.mean([one.share for one in found]) - flips) < 4 * np.sqrt(flips * (1 - flips) / 100_000)


def test_the_sample_repeats_by_its_seed():
    frame, y = small_table()
    domain = lw.TabularDomain.from_frame(frame)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(domain.encode_array(frame), y)
    one, two, other = (
        lw.verify(model, domain, ["sex"], encoded=True, max_regions=1, random_state=seed).sampled
        for seed in (1, 1, 2)
    )
    assert one == two != other


def husbands(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": rng.integers(20, 40, n)})
    frame["relation"] = np.where(frame.sex == "m", "husband", "wife")
    frame.loc[rng.random(n) < 0.3, "relation"] = "single"
    return frame


def test_rows_that_contradict_the_table_are_not_shown():
    frame = husbands()

    def model(rows):
        # The decision depends on sex for everybody.
        return (rows["sex"] == "m").to_numpy(dtype=float)

    domain = lw.TabularDomain.from_frame(frame)
    found = lw.verify(model, frame, ["sex"], domain=domain)
    assert found.pairs > 5
    assert set(found.examples["relation"]) == {"single"}


def test_rows_that_contradict_the_table_are_shown_if_nothing_else_is_there():
    frame = husbands()

    def model(rows):
        return ((rows["sex"] == "m") & (rows["relation"] != "single")).to_numpy(dtype=float)

    found = lw.verify(model, frame, ["sex"], domain=lw.TabularDomain.from_frame(frame))
    assert found.pairs
    assert found.examples["row"].iloc[0] is not None


def test_a_model_that_refuses_rows_of_the_domain_is_asked_about_the_people():
    frame = husbands()

    def model(rows):
        if ((rows["sex"] == "f") & (rows["age"] > 38) & (rows["relation"] == "wife")).any():
            raise ValueError("no such person")
        return (rows["age"] > 30).to_numpy(dtype=float)

    domain = lw.TabularDomain.from_frame(frame)
    some = frame[(frame.age < 38) & (frame.sex == "m")]
    found = lw.verify(model, some, ["relation"], domain=domain)
    assert found.people == (1.0, 0.0, 0.0)
    assert found.sampled is None
    assert found.proved == 0.0
    assert found.reason


# ---- people of the user's table, whatever cells are missing ---------------------------------------------------


def table_with_gaps(seed):
    """Numbers, words and a sensitive column, cells of any of them missing, under an index of the user's own."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 120))
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n).astype(float),
            "pay": rng.normal(3e4, 9e3, n).round(),
            "job": rng.choice(["clerk", "cook", "nurse"], n).astype(object),
            "sex": rng.choice(["f", "m"], n).astype(object),
        }
    )
    y = ((frame.age > 40) & (frame.sex == "m") | (frame.pay > 4e4)).astype(int).to_numpy()
    for name in rng.choice(["age", "pay", "job", "sex"], 2, replace=False):
        frame.loc[rng.random(n) < 0.15, name] = np.nan
    frame.index = pd.Index(rng.permutation([f"p{k}" for k in range(n)]))
    return frame, y


def models_that_take_gaps(frame, y):
    """Pipelines that fill, trees that take missing cells, and a function."""
    words, numbers = ["job", "sex"], ["age", "pay"]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    hot = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    steps = make_column_transformer((codes, words), ("passthrough", numbers))
    filled = make_column_transformer(
        (hot, words), (make_pipeline(SimpleImputer(), StandardScaler()), numbers)
    )
    yield make_pipeline(steps, DecisionTreeClassifier(max_depth=4, random_state=0)).fit(frame, y)
    yield make_pipeline(steps, HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=5)).fit(frame, y)
    yield make_pipeline(filled, LogisticRegression()).fit(frame, y)
    yield lambda rows: ((rows.age > 40) & (rows.sex == "m") | (rows.pay > 4e4)).to_numpy(dtype=float)


@pytest.mark.parametrize("seed", range(3))
def test_examples_are_people_of_the_users_table_whatever_is_missing(seed):
    frame, y = table_with_gaps(seed)
    for number, model in enumerate(models_that_take_gaps(frame, y)):
        missing = ("auto", "impute", "drop")[(seed + number) % 3]
        found = lw.verify(model, frame, ["sex"], missing=missing, budget_seconds=0.2)
        audited = lw.audit(model, frame, sensitive_features=["sex"], missing=missing)
        assert found.people[1] == pytest.approx(audited.changed.share)
        assert found.people[1] > 0
        decide = model if callable(model) else model.predict
        listed = found.examples[found.examples["row"].notna()]
        assert len(listed)
        shown_rows = listed[list(frame)].astype(frame.dtypes)
        assert np.asarray(decide(shown_rows)).astype(int).tolist() == listed["decision"].tolist()
        for row, pair in listed.groupby("row"):
            own, shown = frame.loc[row], pair.iloc[0]
            # The person's own cells; those that were filled for the model are shown as it got them.
            assert all(shown[name] == own[name] or pd.isna(own[name]) for name in frame)
            assert (
                pair.iloc[0][["age", "job", "pay"]].dropna() == pair.iloc[1][["age", "job", "pay"]].dropna()
            ).all()
            assert shown["decision"] != pair.iloc[1]["decision"]


# ---- what is printed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_printed_is_short_and_ends_in_the_verdict(kind):
    frame, y = small_table(seed=3)
    frame = frame.assign(**{f"a_rather_long_name_of_a_column_{k}": frame.age + k for k in range(6)})
    numbers = frame.assign(job=frame.job.astype("category").cat.codes, sex=(frame.sex == "m").astype(int))
    model = MODELS[kind]().fit(numbers, y)
    for sensitive in (["sex"], ["sex", "group"]):
        found = lw.verify(model, numbers, sensitive, y=y, budget_seconds=0.2)
        lines = str(found).splitlines()
        assert len(lines) <= 20
        assert max(map(len, lines)) <= 80
        assert f"Depends on {' and '.join(sensitive)}: " in "\n".join(lines[-5:])
        assert repr(found).startswith("<Verification: Depends on sex")
        assert "\n" not in repr(found)


@pytest.mark.parametrize("wrong", ["sex", [], ["nobody"], ["sex", "nobody"]])
def test_sensitive_features_are_a_list_of_columns(wrong):
    frame, y = small_table(60)
    model = DecisionTreeClassifier(max_depth=2).fit(frame[["age", "hours"]], y)
    for given in (frame, lw.TabularDomain.from_frame(frame)):
        with pytest.raises(lw.InputError, match=r"sensitive_features|nobody"):
            lw.verify(model, given, wrong)


@pytest.mark.parametrize(
    "model",
    [
        RidgeClassifier(),
        SGDClassifier(random_state=0),
        Perceptron(),
        LinearSVC(random_state=0),
        SVC(kernel="linear"),
        make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_linear_classifiers_without_probabilities_are_proved_as_enumerated(model):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": rng.integers(0, 6, 40), "b": rng.integers(0, 5, 40), "sex": rng.integers(0, 2, 40)}
    )
    model = model.fit(table, (table["a"] - table["b"] + table["sex"] + rng.normal(size=40) > 1).astype(int))
    rows = pd.DataFrame(list(product(range(6), range(5))), columns=["a", "b"])
    kept = model.predict(rows.assign(sex=0)) == model.predict(rows.assign(sex=1))
    found = lw.verify(model, table, ["sex"], budget_seconds=20)
    assert found.proved == pytest.approx(kept.mean())
    assert found.undecided == pytest.approx(0.0, abs=1e-12)


def tables_of_rows_that_look_alike():
    """Whole numbers that come back from the encoding as −0.0, and numbers of which single precision keeps few."""
    rng = np.random.default_rng(0)
    whole = pd.DataFrame({name: rng.integers(0, top, 17) for name, top in (("age", 4), ("sex", 2), ("k", 4))})
    yield "whole numbers", whole, (whole["age"] + whole["k"] > 3).astype(int)
    far = pd.DataFrame({"a": rng.normal(size=40), "k": rng.integers(0, 4, 40) / 4.0}) + 1e6
    yield "single precision", far.astype("float32"), (far["a"] + far["k"] > 2e6 + 0.3).astype(int)


@pytest.mark.parametrize("kind", ["whole numbers", "single precision"])
def test_each_pair_is_listed_once(kind):
    people, y = next(rest for name, *rest in tables_of_rows_that_look_alike() if name == kind)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(people, y)
    found = lw.verify(model, people, ["k"], budget_seconds=0.5)
    assert found.pairs > 3
    rows = found.examples[list(people)].astype(people.dtypes) + 0.0
    pairs = rows.groupby(found.examples["pair"]).apply(
        lambda pair: frozenset(map(tuple, pair.to_numpy().tolist()))
    )
    assert pairs.is_unique


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (GridSearchCV(make_pipeline(StandardScaler(), GaussianNB()), {}, cv=2), "GridSearchCV is not"),
        (VotingClassifier([("bayes", GaussianNB())]), "VotingClassifier is not"),
        (MLPClassifier((3,), activation="tanh", tol=1.0, n_iter_no_change=1), "units that are not ReLUs"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_reason_why_nothing_is_proved_is_that_of_the_model(model, said):
    """A wrapper keeps an estimator that it never fitted; what that one lacks is no reason."""
    frame, y = small_table()
    rows = frame[["age", "hours", "group"]]
    reason = lw.verify(model.fit(rows, y), rows, ["group"], budget_seconds=0.2).reason
    assert said in reason
    assert "not fitted" not in reason
    assert "loss=" not in reason
