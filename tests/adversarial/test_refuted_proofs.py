"""Claims of proofs that an attacker refuted, each with the smallest case that did it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import likewise as lw
from likewise.auditing.bounds import exact_search
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.people import answers_repeat
from likewise.auditing.problem import AuditProblem
from likewise.auditing.search.contract import Budget
from likewise.core.errors import InputError
from likewise.models import as_model

RACES = ["race_w", "race_b", "race_o"]


@pytest.mark.filterwarnings("ignore:ExpertSubspace. the metric is zero")
def test_directions_that_span_everything_leave_no_cost_at_all():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"x": rng.normal(size=40).round(2), "s": rng.integers(0, 2, 40)})
    y = (people.x > 0).astype(int)
    model = XGBClassifier(n_estimators=3, n_jobs=1).fit(people, y)
    domain, below_zero = lw.TabularDomain().fit(people), 0
    for seed in range(6):
        directions = list(np.random.default_rng(seed).normal(size=(2, 2)))
        metric = lw.ExpertSubspace(directions, domain=domain).fit(people).metric_
        below_zero += np.linalg.eigvalsh(metric.sigma()).max() <= 0
        found = lw.audit(model, people, y, metric=metric, domain=domain, eps=0.1, search="exact")
        assert found.status in ("converged", "not_converged")
    assert below_zero


def numbers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.integers(0, 4, n), "b": rng.integers(0, 3, n), "sex": rng.integers(0, 2, n)}
    )
    y = (frame.a + frame.sex + rng.normal(size=n) > 2).astype(int)
    domain = lw.TabularDomain.from_frame(frame)
    return frame, y, domain, lw.ExpertSubspace(["sex"], domain=domain).fit(frame).metric_


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("hidden", [True, False])
def test_half_precision_is_searched_and_nothing_is_read_off_it(kind, hidden):
    torch = pytest.importorskip("torch")
    frame, y, domain, metric = numbers()
    x = domain.encode_array(frame)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(x.shape[1], 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)]
    net = torch.nn.Sequential(*(layers if hidden else [torch.nn.Linear(x.shape[1], 2)])).to(
        getattr(torch, kind)
    )
    found = lw.audit(net.eval(), x, y, metric=metric, domain=domain, eps=0.05)
    assert found.bracket("gap", eps=0.05).upper is None
    assert next(net.parameters()).dtype == getattr(torch, kind)
    shares = lw.verify(net, frame, ["sex"], domain=domain, encoded=True, budget_seconds=1)
    assert (shares.proved, shares.undecided) == (0.0, 1.0)
    assert "rounds too coarsely" in shares.reason
    assert shares.people[2] == 0.0


def one_hot_table():
    rng = np.random.default_rng(5)
    race = rng.integers(0, 3, 300)
    frame = pd.DataFrame({name: (race == k).astype(int) for k, name in enumerate(RACES)})
    return frame.assign(age=rng.integers(20, 50, 300), kids=rng.integers(0, 6, 300))


def test_one_hot_columns_take_the_values_that_people_have_everywhere_in_a_result():
    frame = one_hot_table()
    domain = lw.TabularDomain.from_frame(frame)

    def of_two_races(rows):
        low = np.where(rows.age > 30, 0.9, 0.1)
        return np.where(rows[RACES].sum(axis=1) == 1, low, 1 - low)

    found = lw.verify(of_two_races, frame, RACES, domain=domain, encoded=False, budget_seconds=3)
    assert found.people == (1.0, 0.0, 0.0)
    assert found.sampled.share == 0.0
    assert not found.pairs

    y = ((frame.age - 35) / 8 + frame.race_w - frame.race_b + 0.3 * frame.kids > 1).astype(int)
    model = LogisticRegression(C=0.1).fit(frame, y)
    found = lw.verify(model, frame, RACES, domain=domain, encoded=False, budget_seconds=20)
    rows = pd.DataFrame([(a, k) for a in range(20, 50) for k in range(6)], columns=["age", "kids"])
    decided = [
        model.predict(rows.assign(**{n: int(n == race) for n in RACES})[list(frame)]) for race in RACES
    ]
    truth = float((np.ptp(decided, axis=0) > 0).mean())
    assert found.flips == pytest.approx(truth)
    assert found.proved == pytest.approx(1 - truth)
    assert found.sampled.low <= truth <= found.sampled.high
    assert (found.examples[RACES].sum(axis=1) == 1).all()


@pytest.mark.parametrize("with_people", [True, False])
def test_some_columns_of_a_one_hot_attribute_are_refused_with_and_without_people(with_people):
    frame = one_hot_table()
    model = DecisionTreeClassifier(max_depth=2).fit(frame, frame.age > 30)
    domain = lw.TabularDomain.from_frame(frame)
    given, choices = (frame, {"domain": domain}) if with_people else (domain, {})
    with pytest.raises(InputError, match=r"^verify: the columns race_w, race_b, race_o are .*one attribute"):
        lw.verify(model, given, RACES[:2], encoded=False, **choices)


@pytest.mark.parametrize(
    ("sensitive", "needle"),
    [
        (["age", "kids", "job"], lambda rows: (rows.age == 77) & (rows.kids == 7) & (rows.job == "c")),
        (["wide"], lambda rows: rows.wide == 301),
    ],
)
def test_one_combination_among_thousands_is_found_for_everybody_of_the_table(sensitive, needle):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.integers(0, 121, 80), "kids": rng.integers(0, 10, 80)})
    frame = frame.assign(
        job=rng.choice(list("abcde"), 80), wide=rng.integers(0, 400, 80), x=rng.integers(0, 30, 80)
    )
    frame.loc[:1, ["age", "kids", "wide"]] = [[0, 0, 0], [120, 9, 399]]

    def score(rows):
        return np.where(needle(rows) == (rows.x > 15), 0.1, 0.9)

    found = lw.verify(score, frame, sensitive, domain=lw.TabularDomain.from_frame(frame), budget_seconds=30)
    assert found.people == (0.0, 1.0, 0.0)
    assert found.pairs
    # The sample does not ask about all of them, and says so.
    assert found.sampled.high == 1.0


def test_the_model_predicts_numbers():
    frame, _, domain, _ = numbers()
    model = LinearRegression().fit(frame, frame.a)
    with pytest.raises(InputError, match=r"^verify: the model predicts numbers.*tolerance"):
        lw.verify(model, frame, ["sex"], domain=domain)


def test_nothing_is_proved_of_a_model_that_draws_its_answers():
    torch = pytest.importorskip("torch")
    frame, y, domain, metric = numbers()
    x = domain.encode_array(frame)

    class Noisy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.base = torch.nn.Linear(x.shape[1], 2)

        def forward(self, rows):
            scores = self.base(rows)
            return scores + 0.5 * torch.randn_like(scores)

    torch.manual_seed(0)
    model = Noisy().eval()
    for eps in (0.0, 0.05):
        found = lw.audit(model, x, y, metric=metric, domain=domain, eps=eps)
        assert all(bracket.upper is None for bracket in found.brackets)
        assert "does not give the same answer twice" in " ".join(found.left_out)
        assert found.findings[0].kind == "unstable"
        assert found.verdict(0.001) == "unanswered"
        assert not found.sensitive.exact
    shares = lw.verify(model, frame, ["sex"], domain=domain, encoded=True, budget_seconds=1)
    assert (shares.proved, shares.flips, shares.people, shares.sampled) == (0.0, 0.0, (0.0, 0.0, 1.0), None)
    assert "does not give the same answer twice" in shares.reason


@pytest.mark.parametrize("n", [30, 500])
@pytest.mark.parametrize(
    "decide",
    [
        lambda table: table["age"] > table["age"].mean(),
        lambda table: (table["age"] + 5 * (table["sex"] == "m")).rank(pct=True) > 0.5,
        lambda table: np.arange(len(table)) % 2 == 0,
    ],
    ids=["mean", "rank", "place"],
)
def test_nothing_is_exact_of_a_model_whose_answers_depend_on_the_other_rows(decide, n):
    rng = np.random.default_rng(n)
    people = pd.DataFrame({"age": rng.normal(40, 9, n), "sex": rng.choice(["f", "m"], n)})
    found = lw.audit(
        lambda table: decide(table).astype(int), people, sensitive_features=["sex"], favourable=1
    )
    assert found.findings[0].kind == "unstable"
    assert not found.sensitive.exact


@pytest.mark.parametrize(
    "decide",
    [
        lambda x: x[:, 0] > x[:, 0].mean(),
        lambda x: x[:, 0].argsort().argsort() > len(x) / 2,
        lambda x: np.random.default_rng().random(len(x)) > 0.5,
        lambda x: (
            (x[:, 0] > np.sort(x[:, 0])[30]) ^ (x[:, 1] > x[:, 1].mean()) if len(x) > 30 else x[:, 0] > 1e6
        ),
    ],
    ids=["mean", "rank", "drawn", "mean, and a threshold"],
)
def test_answers_about_numbers_that_depend_on_the_call_do_not_pass_for_rounding(decide):
    x = np.random.default_rng(0).normal(1e6, 9, (60, 2))
    model = as_model(lambda rows: decide(np.asarray(rows)).astype(float))
    assert not answers_repeat(model, lambda at: x[at])


def test_time_that_is_left_goes_to_more_people(monkeypatch):
    rng = np.random.default_rng(1)
    people = pd.DataFrame(
        {"u": rng.integers(0, 6, 300), "v": rng.integers(0, 6, 300), "s": rng.integers(0, 2, 300)}
    )
    y = ((people.u + people.v + rng.normal(size=300)) > 5).astype(int)
    model = XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1).fit(people, y)
    domain = lw.TabularDomain().fit(people)
    metric = lw.ExpertSubspace(["s"], domain=domain).fit(people).metric_
    problem = AuditProblem.build(model, people, y, metric=metric, domain=domain, encoded=False)
    looks, solve = [], exact_search._People.solve

    def watched(self, at, lam, nodes, seconds):
        if nodes:
            looks.append(len(at))
        return solve(self, at, lam, nodes, seconds)

    monkeypatch.setattr(exact_search._People, "solve", watched)
    monkeypatch.setattr(exact_search._People, "worthwhile", lambda self, lam, *_: lam)
    monkeypatch.setattr(exact_search._People, "price", lambda self, *_: 0.5)
    # The people of the pilot seem to take half a minute each.
    ticks = iter([0.0, 720.0])
    monkeypatch.setattr(exact_search, "time", SimpleNamespace(perf_counter=lambda: next(ticks, 0.0)))
    found = exact_search.prove_by_sample(problem, Support.start(problem), 0.1, Budget(120.0), nodes=2_000)
    assert found is not None
    # The pilot, a first round that looks short of time, and a second with what was left.
    assert len(looks) >= 3
    assert found.bounds[0].method.values["drawn"] > looks[0] + looks[1]


def test_a_listed_pair_of_a_single_precision_column_is_the_pair_that_was_asked_about():
    """Encoded rows hold more digits than the column does: a pair was listed that is decided alike."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"pay": rng.normal(1e6, 0.5, 200).astype(np.float32), "sex": rng.integers(0, 2, 200)}
    )
    domain = lw.TabularDomain.from_frame(people, categories={"sex": None})
    X = domain.encode_array(people)
    model = LogisticRegression().fit(X, X @ [1.0, 1.0] > 0.5)
    found = lw.verify(model, X, ["sex"], domain=domain, encoded=True)
    assert found.pairs > 5
    decided = model.predict(domain.encode_array(found.examples[["pay", "sex"]]))
    assert (decided[::2] != decided[1::2]).all()
    assert decided.tolist() == found.examples["decision"].tolist()


def test_the_rounding_of_another_batch_is_not_a_changed_decision():
    """Scores of exactly 0 come out on both sides of it, by how many rows are asked about at once."""
    rng = np.random.default_rng(0)
    names = ["race", *(f"x{i}" for i in range(1, 12))]
    people = pd.DataFrame(rng.integers(0, 4, (600, 12)), columns=names)
    model = LogisticRegression().fit(people, rng.integers(0, 2, 600))
    model.coef_ = np.array([[0, 0.1, -0.1, 0.3, -0.3, 0.7, -0.7, 0.2, -0.2, 0.6, -0.6, 0]])
    model.intercept_[:] = 0
    domain = lw.TabularDomain.from_frame(people, categories={"race": None})
    at_once = model.predict(people)
    few = [people[i : i + k] for k in (2, 3, 5) for i in range(0, 600, k)]
    rounded = [some for some in few if (model.predict(some) != at_once[some.index]).any()]
    for some in [*rounded[:2], people[:7]]:
        assert lw.audit(model, some, sensitive_features=["race"], domain=domain).changed.count == 0
        found = lw.verify(model, some, ["race"], domain=domain)
        assert (found.badge, found.people) == ("not_read", (1.0, 0.0, 0.0))


@pytest.mark.parametrize("loss", ["zero_one", "cross_entropy"])
@pytest.mark.parametrize("eps", [0.05, 1.0])
def test_no_bound_exceeds_the_largest_loss_there_is(loss, eps):
    """Everybody can be moved to the other decision, at no distance."""
    people = pd.DataFrame({"age": np.arange(24) % 6, "k": np.arange(24) // 6})
    y = (people.age > 2).astype(int)
    model = DecisionTreeClassifier(random_state=0).fit(people, y)
    metric = lw.ExpertSubspace(["age"], domain=lw.TabularDomain.from_frame(people)).fit(people).metric_
    found = lw.audit(model, people, y, metric=metric, eps=eps, loss=loss, search="exact").bracket("value")
    most = 1.0 if loss == "zero_one" else -np.log(1e-12)
    assert found.lower <= found.upper <= most
    assert found.lower == pytest.approx(most)


def test_trees_of_texts_are_not_read():
    from catboost import CatBoostClassifier

    people = pd.DataFrame(
        {"sex": np.arange(40) % 2, "said": ["one two", "two three", "three four", "one four"] * 10}
    )
    y = (np.arange(40) % 4 > 1).astype(int)
    choices = {"iterations": 3, "verbose": False, "allow_writing_files": False}
    model = CatBoostClassifier(text_features=["said"], **choices).fit(people, y)
    brute = (model.predict(people.assign(sex=0)) != model.predict(people.assign(sex=1))).sum()
    assert lw.audit(model, people, y, sensitive_features=["sex"]).changed.count == brute
    assert "texts" in lw.verify(model, people, ["sex"], budget_seconds=0.2).reason
