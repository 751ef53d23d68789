"""`verify` against the enumeration of small domains: every row under every sensitive value, asked of the model itself."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
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
    "linear": lambda: LogisticRegression(),
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
        found = lw.verify(model, domain, sensitive, people=people, encoded=True, seconds=20, max_regions=most)
        assert found.proved <= 1 - flips + 1e-9
        assert found.flips <= flips + 1e-9
        assert found.proved + found.flips + found.undecided == pytest.approx(1.0)
        assert found.people == pytest.approx((1 - changed.mean(), changed.mean(), 0.0))
        share, low, high, rows = found.sampled
        # One interval in twenty may miss; twice as wide, none in ten thousand does.
        assert low - (high - low) / 2 <= flips <= high + (high - low) / 2
        assert low <= share <= high
        assert rows >= 300
        check_examples(found, domain, decide, sensitive, people)
    if kind == "not readable":
        assert (found.proved, found.undecided) == (0.0, 1.0)
        assert "no upper bound is known" in found.reason
    else:
        assert found.undecided == pytest.approx(0.0, abs=1e-9)
        assert found.reason == ""


def check_examples(found, domain, decide, sensitive, people):
    assert found.examples
    seen = set()
    for flip in found.examples:
        both = domain.decode(np.stack([flip.first, flip.second])).astype(people.dtypes)
        assert tuple(decide(both)) == flip.decisions
        assert flip.decisions[0] != flip.decisions[1]
        assert {name for name in both if both[name].iloc[0] != both[name].iloc[1]} <= set(sensitive)
        if flip.person is not None:
            assert (both.iloc[0] == people.iloc[flip.person]).all()
        seen.add(frozenset(map(tuple, both.to_numpy().tolist())))
    assert len(seen) == len(found.examples)
    # Rows of the table first.
    made_up = [flip.person is None for flip in found.examples]
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
    found = lw.verify(model, domain, sensitive, people=frame, encoded=True, max_regions=3)
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
    found = lw.verify(net, domain, ["sex"], people=frame, encoded=False, seconds=10)
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
    found = lw.verify(model, domain, ["score"], people=frame, encoded=True)
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
    found = lw.verify(model, domain, ["sex"], people=frame)
    assert len(found.examples) > 5
    for flip in found.examples:
        both = domain.decode(np.stack([flip.first, flip.second]))
        assert set(both.relation) == {"single"}


def test_rows_that_contradict_the_table_are_shown_if_nothing_else_is_there():
    frame = husbands()

    def model(rows):
        return ((rows["sex"] == "m") & (rows["relation"] != "single")).to_numpy(dtype=float)

    found = lw.verify(model, lw.TabularDomain.from_frame(frame), ["sex"], people=frame)
    assert found.examples
    assert found.examples[0].person is not None


def test_a_model_that_refuses_rows_of_the_domain_is_asked_about_the_people():
    frame = husbands()

    def model(rows):
        if ((rows["sex"] == "f") & (rows["age"] > 38) & (rows["relation"] == "wife")).any():
            raise ValueError("no such person")
        return (rows["age"] > 30).to_numpy(dtype=float)

    domain = lw.TabularDomain.from_frame(frame)
    found = lw.verify(model, domain, ["relation"], people=frame[(frame.age < 38) & (frame.sex == "m")])
    assert found.people == (1.0, 0.0, 0.0)
    assert found.sampled is None
    assert found.proved == 0.0
    assert found.reason
