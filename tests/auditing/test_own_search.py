"""The contract of a search: one's own runs in memory and on Parquet, and parts change no bit."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.auditor import audit_asked
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.partitions.runner import Sizes
from likewise.auditing.partitions.tables import ParquetTable
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.core.errors import InputError

sys.path.insert(0, str(Path(__file__).parent))
from own_search import OtherAges

SAME = (
    "n",
    "value",
    "base_loss",
    "pure_gap",
    "flipped",
    "sensitive",
    "lambda_",
    "transport",
    "interval",
    "test",
)


def old_score(frame):
    return 1 / (1 + np.exp(-(frame["age"] - 45) / 10 - 0.5 * (frame["sex"] == "male")))


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    data = lw.datasets.load_german()
    folder = tmp_path_factory.mktemp("german")
    table = data.frame.assign(credit=data.y)
    for k in range(3):
        table.iloc[334 * k : 334 * (k + 1)].to_parquet(folder / f"part-{k}.parquet", index=False)
    metric = lw.ExpertSubspace(["sex", "age"], domain=data.domain).fit(data.frame).metric_
    return data, folder, metric


def same_to_the_bit(one, other):
    for name in SAME:
        assert getattr(one, name) == getattr(other, name), name
    assert one.curve.values.tobytes() == other.curve.values.tobytes()
    top = [result.unfair_map.top(50) for result in (one, other)]
    pd.testing.assert_frame_equal(top[0], top[1], check_exact=True)


def test_a_search_of_ones_own_finds_what_brute_force_finds(german):
    data, _, metric = german
    result = lw.audit(
        old_score, data.frame, data.y, metric=metric, domain=data.domain, eps=0.0, search=OtherAges()
    )
    model = lw.as_model(old_score, takes_frame=True)
    own = model.losses(data.frame, data.y)
    others = np.stack([model.losses(data.frame.assign(age=age), data.y) for age in (20, 40, 60)])
    assert result.search == "other ages"
    assert result.pure_gap == pytest.approx(float(np.maximum(others - own, 0).max(axis=0).mean()), rel=1e-9)
    assert (result.pure_map.twins["age"].isin([20, 40, 60]) | (result.pure_map.harm == 0)).all()


def test_it_runs_in_memory_and_on_parquet_with_the_same_bits(german):
    """On Dask: tests/scale, where there is a cluster."""
    data, folder, metric = german
    searches = [lw.auditing.CandidateSearch(use_rows="pool", pool_rows=60), OtherAges()]
    given = {"metric": metric, "domain": data.domain, "eps": 0.05, "search": searches}
    here = lw.audit(old_score, data.frame, data.y, **given)
    files = lw.audit(old_score, folder, "credit", **given)
    assert here.search == "candidates, other ages"
    same_to_the_bit(here, files)


@pytest.mark.parametrize("kind", ["xgboost", "weights"])
def test_memory_and_parts_agree_to_the_bit_on_adult(kind, tmp_path):
    data = lw.datasets.load_adult()
    if kind == "xgboost":
        from xgboost import XGBClassifier

        model = XGBClassifier(n_estimators=20, max_depth=3).fit(data.X_train[:400], data.y_train[:400])
    else:
        weights = np.random.default_rng(0).normal(size=data.X_train.shape[1])

        def score(rows):
            # Summed row by row: a matrix product may round a row otherwise beside other rows.
            return 1 / (1 + np.exp(-(rows * weights).sum(axis=1)))

        model = lw.as_model(score, takes_frame=False)
    metric = lw.ExpertSubspace(["sex", "race"], domain=data.domain).fit(data.frame_train).metric_
    people, y = data.frame_test[:300], data.y_test[:300]
    people.assign(income=y).to_parquet(tmp_path / "a.parquet", index=False, row_group_size=64)
    searches = (lw.auditing.CandidateSearch(use_rows="pool", pool_rows=60), OtherAges((25, 50)))
    asked = AuditRequest(model, metric, searches, data.domain, eps=0.02)
    here = audit_asked(asked, people, y)
    table = ParquetTable.find(tmp_path, "income")
    parts = audit_asked(asked, table, None, sizes=Sizes(part=68, chunk=24))
    assert parts.settings["parts"] == 5
    same_to_the_bit(here, parts)


@dataclasses.dataclass(frozen=True)
class Liar(Search):
    """Claims rows that cannot exist."""

    name = "liar"

    def extend(self, problem, support, eps, budget):
        return Found(support.with_rows(problem.X + 1e3, np.arange(problem.n)))


def test_rows_that_cannot_exist_are_refused_whoever_finds_them(german):
    data, _, metric = german
    with pytest.raises(InputError, match="row 0, found for person 0, cannot exist in the domain"):
        lw.audit(old_score, data.frame, data.y, metric=metric, domain=data.domain, search=Liar())
    with pytest.raises(InputError, match="search='liar' cannot be used: it cannot work on a part"):
        lw.audit(old_score, german[1], "credit", metric=metric, domain=data.domain, search=[Liar()])


def test_a_search_that_cannot_serve_says_so(german):
    data, _, _ = german
    frame = data.frame.drop(columns="age")
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    score = lambda f: 1.0 * (f["sex"] == "male")  # noqa: E731
    with pytest.raises(InputError, match="the table has no column 'age'"):
        lw.audit(score, frame, data.y, metric=metric, search=OtherAges())


def test_a_budget_that_is_spent_is_said_and_leaves_a_valid_result(german):
    data, _, metric = german
    result = lw.audit(
        old_score, data.frame, data.y, metric=metric, domain=data.domain, eps=0.0, budget_seconds=1e-9
    )
    assert result.status == "not_converged"
    assert "budget_seconds" in result.reasons[0]
    assert result.sensitive is not None
    assert Budget(100.0).left > 90
    with pytest.raises(InputError, match="'budget_seconds'"):
        Budget(-1.0)
