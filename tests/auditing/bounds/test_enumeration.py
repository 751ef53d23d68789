"""Everybody at no fair distance listed: the answer at ε = 0 is the brute force's, for a model that only answers."""

import itertools

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.bounds.enumeration import EnumerationSearch, free_values
from likewise.auditing.problem import AuditProblem

AGES = range(20, 25)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 25, 16),
            "job": rng.choice(["a", "b", "c"], 16),
            "sex": rng.choice(["F", "M"], 16),
            "pay": rng.uniform(0, 1, 16).round(3),
        }
    )
    return frame, rng.integers(0, 2, 16)


def answers_of_a_table(seed):
    """A model that answers every combination at random: nothing but asking finds its worst case."""
    rng = np.random.default_rng(seed)
    known = rng.uniform(0.05, 0.95, (5, 3, 2))

    def answer(frame):
        job, sex = frame["job"].map({"a": 0, "b": 1, "c": 2}), frame["sex"].map({"F": 0, "M": 1})
        return known[frame["age"].to_numpy() - 20, job.to_numpy(int), sex.to_numpy(int)]

    return answer


def brute_force(model, domain, metric, frame, y):
    """V(0) and the share of changed decisions over every row of the domain, each person at their own pay."""
    losses, changed = [], []
    for i in range(len(frame)):
        rows = pd.DataFrame(list(itertools.product(AGES, "abc", "FM")), columns=["age", "job", "sex"])
        rows["pay"] = frame["pay"][i]
        apart = domain.encode_array(rows) - domain.encode_array(frame.iloc[[i]])
        near = rows[np.asarray(metric.without_feature_map().costs_nothing(apart))]
        p = model(near)
        losses.append((-np.log(np.where(y[i] == 1, p, 1 - p))).max())
        changed.append(((p > 0.5) != (model(frame.iloc[[i]])[0] > 0.5)).any())
    return float(np.mean(losses)), float(np.mean(changed))


METRICS = {
    "whole column": ["sex"],
    "two columns": ["sex", "job"],
    "whole numbers": ["age", "sex"],
    "contrast": ["job: a − b", "sex"],
    "contrast and whole numbers": ["job: a − b", "age", "sex"],
    "across columns": [np.array([0.0, 0.0, 1.0, -1.0, 0.0, 1.0])],
}


@pytest.mark.parametrize("eps", [0.0, 0.05])
@pytest.mark.parametrize("kind", METRICS)
def test_the_bracket_at_no_distance_is_the_brute_force(people, kind, eps):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame, ranges={"age": (20, 24)})
    metric = lw.ExpertSubspace(METRICS[kind], domain=domain).fit(frame).metric_
    model = answers_of_a_table(len(kind))
    result = lw.audit(model, frame, y, metric=metric, domain=domain, eps=eps)
    value, share = brute_force(model, domain, metric, frame, y)
    for quantity, truth in (("value", value), ("changed", share)):
        found = result.bracket(quantity, eps=0)
        assert found.closed
        assert found.lower == pytest.approx(truth, abs=1e-12)
    assert result.bracket("gap", eps=0).lower == pytest.approx(result.pure_gap)
    if eps == 0:
        assert result.verdict(result.gap + 1e-9) == "fair (proved)"
        assert result.gap < 1e-9 or result.verdict(result.gap / 2) == "unfair (shown)"
    else:
        assert result.bracket("gap").upper is None
    # Nothing that another search found may hide what the list left out.
    alone = lw.audit(model, frame, y, metric=metric, domain=domain, eps=eps, search=EnumerationSearch())
    assert alone.bracket("value", eps=0).lower == pytest.approx(value, abs=1e-12)


def test_auto_needs_no_other_search_at_no_distance(people):
    from sklearn.linear_model import LogisticRegression

    frame, y = people
    domain = lw.TabularDomain.from_frame(frame)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(frame).metric_
    model = LogisticRegression().fit(domain.encode(frame), y)
    found = lw.audit(model, domain.encode(frame), y, metric=metric, domain=domain, eps=0.0)
    assert found.search == "candidates, enumeration"
    assert sum("nothing is left to find at ε = 0" in line for line in found.left_out) == 2
    assert found.bracket("gap").closed
    more = lw.audit(model, domain.encode(frame), y, metric=metric, domain=domain, eps=0.01)
    assert more.search == "candidates, enumeration, gradient, exact"


def test_what_may_not_change_does_not(people):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame, immutable=["sex"], ranges={"age": (20, 24)})
    metric = lw.ExpertSubspace(["sex", "job"], domain=domain).fit(frame).metric_
    assert list(free_values(tuple(domain.columns_), metric)) == [2]
    model = answers_of_a_table(3)
    held = lw.audit(model, frame, y, metric=metric, domain=domain, eps=0.0)
    only = lw.ExpertSubspace(["job"], domain=domain).fit(frame).metric_
    assert held.value == pytest.approx(lw.audit(model, frame, y, metric=only, domain=domain, eps=0.0).value)
    assert held.bracket("value").closed


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        (lambda frame: lw.ExpertSubspace(["pay"]).fit(frame).metric_, "lets pay vary without end"),
        (
            lambda frame: lw.ExpertSubspace([np.array([0, 0.3, 0, 0, 0, 1.0])]).fit(frame).metric_,
            "lets pay vary",
        ),
        (lambda frame: lw.ExpertSubspace(["age", "job", "sex"]).fit(frame).metric_, "30 combinations"),
    ],
)
def test_says_why_the_rows_cannot_be_listed(people, metric, why):
    frame, y = people
    given = metric(frame)
    problem = AuditProblem.build(answers_of_a_table(0), frame, y, metric=given)
    assert why in EnumerationSearch(most=20).why_not(problem)


def test_is_left_out_where_it_cannot_serve_also_when_searches_are_named(people):
    frame, y = people
    metric = lw.ExpertSubspace(["pay"]).fit(frame).metric_
    result = lw.audit(
        answers_of_a_table(0), frame, y, metric=metric, search=["candidates", EnumerationSearch()]
    )
    assert result.bracket("gap", eps=0).upper is None
    assert any("enumeration search was left out" in line for line in result.left_out)


def test_time_that_is_up_proves_nothing(people):
    frame, y = people
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    problem = AuditProblem.build(answers_of_a_table(0), frame, y, metric=metric)
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.search.contract import Budget

    found = EnumerationSearch().extend(problem, Support.start(problem), 0.0, Budget(1.0, _start=0.0))
    assert found.status == "not_converged"
    assert not found.bounds


def test_a_consensus_of_trees_is_proved_fair(people):
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    frame = people[0]
    trees = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3, random_state=0)
    encoder = make_column_transformer((OrdinalEncoder(), ["job", "sex"]), remainder="passthrough")
    model = make_pipeline(encoder, trees).fit(frame, frame["sex"] == "M")
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    labels = (frame["sex"] == "M").to_numpy()
    unfair = lw.audit(model, frame, labels, metric=metric, eps=0.0)
    assert unfair.verdict(0.01) == "unfair (shown)"
    mended = lw.TwinConsensus(model, sensitive_features="sex").fit(frame)
    fair = lw.audit(mended, frame, labels, metric=metric, eps=0.0, delta=0.0)
    assert fair.verdict() == "fair (trivially)"  # everybody gets the same decision
    assert fair.bracket("changed").upper == 0.0


def test_parts_of_a_table_prove_together_what_memory_proves(people, tmp_path):
    frame, y = people
    frame.assign(y=y).to_parquet(tmp_path / "people.parquet", row_group_size=7)
    metric = lw.ExpertSubspace(["sex", "job"]).fit(frame).metric_
    from likewise.auditing.auditor import audit_asked
    from likewise.auditing.first_answer import AuditRequest
    from likewise.auditing.partitions.runner import Sizes
    from likewise.auditing.search.contract import read_searches

    model = answers_of_a_table(0)
    whole = lw.audit(model, frame, y, metric=metric, eps=0.02)
    asked = AuditRequest(
        lw.as_model(model, takes_frame=True),
        metric,
        read_searches("auto")[0],
        domain=metric.feature_map,
        eps=0.02,
    )
    from likewise.auditing.partitions.tables import ParquetTable

    table = ParquetTable.find(tmp_path / "people.parquet", "y")
    parts = audit_asked(asked, table, None, sizes=Sizes(part=7, chunk=4))
    for quantity in ("value", "gap", "changed"):
        assert parts.bracket(quantity, eps=0).closed
        assert parts.bracket(quantity, eps=0).upper == pytest.approx(whole.bracket(quantity, eps=0).upper)


@pytest.mark.parametrize("kind", METRICS)
def test_encoded_rows_are_listed_like_the_table(people, kind):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame, ranges={"age": (20, 24)})
    metric = lw.ExpertSubspace(METRICS[kind], domain=domain).fit(frame).metric_
    model = answers_of_a_table(5)
    given = {"metric": metric, "domain": domain, "eps": 0.0, "search": EnumerationSearch()}
    raw = lw.audit(model, frame, y, **given)
    # Rounded as a file of single precision rounds them: they are the same people.
    encoded = domain.encode_array(frame).astype(np.float32).astype(np.float64)
    coded = lw.audit(lambda x: model(domain.decode(x)), encoded, y, **given)
    assert coded.value == pytest.approx(raw.value, abs=1e-12)
    assert coded.flipped == raw.flipped
    assert coded.bracket("gap").closed


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_where_nothing_is_free_nobody_moves_and_that_is_proved(people, eps):
    from likewise.fair_metrics import euclidean

    frame, y = people
    costly = lw.ExpertSubspace(["sex"], weight=0.5).fit(frame).metric_
    table = lw.audit(answers_of_a_table(0), frame, y, metric=costly, eps=eps)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    box = lw.audit(lambda x: 1 / (1 + np.exp(-x[:, 0])), X, y, metric=euclidean(2), eps=eps)
    for found in (table, box):
        assert found.bracket("gap", eps=0).upper == 0.0
        assert found.bracket("changed", eps=0).upper == 0.0
