"""Gradient and exact searches of a table in files: the numbers of the table in memory."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.auditor import audit_asked
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.partitions.runner import Sizes
from likewise.auditing.partitions.tables import ParquetTable
from likewise.auditing.search.domain import DomainSearch

N = 24


@dataclasses.dataclass
class Table:
    frame: pd.DataFrame
    y: np.ndarray
    domain: lw.data.TabularDomain
    X: pd.DataFrame


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, N),
            "pay": rng.normal(30, 8, N).round(1),
            "job": rng.choice(["cook", "clerk", "nurse"], N),
            "sex": rng.choice(["f", "m"], N),
        }
    )
    odds = (frame["pay"] - 30) / 8 + (frame["sex"] == "m") + 0.5 * (frame["job"] == "nurse")
    y = (odds + rng.normal(0, 0.5, N) > 0.5).to_numpy().astype(int)
    domain = lw.data.TabularDomain.from_frame(frame)
    folder = tmp_path_factory.mktemp("people")
    for k, at in enumerate(np.split(np.arange(N), 3)):
        frame.iloc[at].assign(paid=y[at]).to_parquet(folder / f"{k}.parquet", index=False)
    metric = lw.AttributeSubspace(["sex"], domain=domain).fit(frame).metric_
    return Table(frame, y, domain, domain.encode(frame)), folder, metric


def network(data):
    import torch

    torch.manual_seed(0)
    width = data.X.shape[1]
    net = torch.nn.Sequential(torch.nn.Linear(width, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).double()
    x, y = torch.tensor(data.X.to_numpy(dtype=float)), torch.tensor(np.asarray(data.y))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    return net


def linear(data):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=3000).fit(data.X.to_numpy(), data.y)


def trees(data):
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(5, max_depth=3, random_state=0).fit(data.X.to_numpy(), data.y)


def both(small, model, **given):
    data, folder, metric = small
    given = {"metric": metric, "domain": data.domain, **given}
    people, y = data.frame, data.y
    return lw.audit(model, people, y, **given), lw.audit(model, folder, "paid", **given)


def check_same(memory, parts, rounding):
    for name in ("value", "base_loss", "pure_gap", "flipped", "lambda_"):
        assert getattr(parts, name) == pytest.approx(getattr(memory, name), rel=rounding, abs=rounding), name
    assert parts.status == memory.status
    assert [one.eps for one in parts.brackets] == [one.eps for one in memory.brackets]
    for mine, theirs in zip(parts.brackets, memory.brackets, strict=True):
        assert (mine.upper is None) == (theirs.upper is None), mine
        if mine.upper is not None:
            assert mine.upper == pytest.approx(theirs.upper, rel=rounding, abs=rounding)
    top, wanted = (one.unfair_map.top(20) for one in (parts, memory))
    assert top["person"].tolist() == wanted["person"].tolist()
    assert top["harm"].to_numpy() == pytest.approx(wanted["harm"].to_numpy(), rel=rounding, abs=rounding)


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_gradients_in_parts(small, eps):
    memory, parts = both(small, network(small[0]), search="gradient", eps=eps)
    # Sums of doubles in other batches.
    check_same(memory, parts, 1e-9)
    assert parts.gap > 0.01
    assert "part by part" in parts.search


@pytest.mark.parametrize("kind", [linear, trees, network])
def test_proofs_in_parts(small, kind):
    memory, parts = both(small, kind(small[0]), search="exact", eps=0.02)
    # A linear model is solved to one in a million.
    check_same(memory, parts, 1e-6)
    assert parts.certificate.bound is not None
    assert parts.certificate.bound.value >= parts.value
    assert parts.certificate.bound.n == N


def test_auto_takes_what_it_takes_in_memory(small):
    memory, parts = both(small, network(small[0]), eps=0.02)
    assert any(name in str(parts.search) for name in ("domain", "gradient"))
    assert str(parts.search) == f"{memory.search}, part by part"


def test_people_of_a_sample_choose_the_prices(small):
    """With prices chosen on some of the people the bound is still one, and rows are still attained."""
    data, folder, metric = small
    model = linear(data)
    memory = lw.audit(model, data.frame, data.y, metric=metric, domain=data.domain, search="exact", eps=0.02)
    asked = AuditRequest.of(model=model, metric=metric, domain=data.domain, eps=0.02, search="exact")
    parts = audit_asked(asked, ParquetTable.find(folder, "paid"), None, sizes=Sizes(sample=12))
    assert parts.value <= memory.certificate.bound.value * (1 + 1e-9)
    assert parts.certificate.bound.value >= memory.value
    assert parts.certificate.bound.value <= 1.1 * memory.certificate.bound.value
    assert parts.value >= 0.95 * memory.value


def test_time_is_shared_out_over_the_parts(small, monkeypatch):
    """Every part has its turn: a first one that takes all the time would leave the others unsearched."""
    given = []

    def extend(self, problem, support, eps, budget):
        given.append(budget.left)
        return lw.auditing.Found(support)

    monkeypatch.setattr(DomainSearch, "extend", extend)
    data, folder, metric = small

    def score(frame):
        return 1 / (1 + np.exp(-(frame["sex"] == "m") - frame["age"] / 50 + 1))

    lw.audit(
        score,
        folder,
        "paid",
        metric=metric,
        domain=data.domain,
        eps=0.02,
        search="domain",
        budget_seconds=60,
    )
    assert len(given) >= 3
    assert 0 < given[0] < 25
    assert given[2] > 25
