"""The rows that an unfair map lists attain V(ε), up to one person's step: against the transport LP, if many people are alike."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linprog

import likewise as lw
from likewise.auditing.auditor import audit_asked
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.partitions.runner import Sizes
from likewise.auditing.partitions.tables import ParquetTable
from likewise.auditing.search.candidates import CandidateSearch

VALUES = {"job": ["clerk", "cook", "nurse"], "town": ["east", "west"], "sex": ["f", "m"]}
EPS = (0.0, 0.01, 0.1, 0.5)


def alike(seed):
    """Up to 40 people of few kinds, a model that asks nothing but a table of scores, and the kinds."""
    rng = np.random.default_rng(seed)
    n, kinds = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    rows = pd.MultiIndex.from_product(VALUES.values(), names=VALUES).to_frame(index=False)
    some = rng.choice(len(rows), size=kinds, replace=False)
    frame = rows.iloc[rng.choice(some, size=n)].reset_index(drop=True)
    score = dict(
        zip(rows.itertuples(index=False, name=None), rng.choice([0.1, 0.3, 0.5, 0.8], len(rows)), strict=True)
    )
    y = rng.integers(2, size=n) if rng.random() < 0.5 else np.ones(n, dtype=int)
    return (
        frame,
        y,
        rows,
        lambda frame: np.array([score[row] for row in frame.itertuples(index=False, name=None)]),
    )


def asked(frame, rows, model, eps):
    domain = lw.data.TabularDomain.from_frame(rows)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(frame).metric_
    search = CandidateSearch(edits=[*VALUES], pool_rows=len(frame))
    return AuditRequest(model, metric, (search,), domain, eps=eps), domain, metric


def lp_gap(frame, y, rows, model, domain, metric, eps):
    p = model(rows)
    loss = -np.log(np.where(y[:, None] == 1, p[None], 1 - p[None]))
    own, everyone = domain.encode(frame), domain.encode(rows)
    d2 = np.array(
        [[metric.squared_distance(a[None], b[None])[0] for b in everyone.to_numpy()] for a in own.to_numpy()]
    )
    d2[d2 < 1e-12] = 0.0
    n, m = loss.shape
    each = sparse.kron(sparse.eye(n), np.ones((1, m)))
    answer = linprog(-loss.ravel(), A_ub=d2.reshape(1, -1), b_ub=[eps], A_eq=each, b_eq=np.full(n, 1 / n))
    assert answer.status == 0
    q = model(frame)
    return -answer.fun - float(-np.log(np.where(y == 1, q, 1 - q)).mean())


@pytest.mark.parametrize("seed", range(4))
def test_listed_rows_attain_the_gap_and_keep_within_eps(seed, tmp_path):
    frame, y, rows, model = alike(seed)
    n, people = len(frame), tmp_path / "people"
    people.mkdir()
    for k, at in enumerate(np.array_split(np.arange(n), min(n, 3))):
        frame.iloc[at].assign(paid=y[at]).to_parquet(people / f"{k}.parquet", index=False)
    for eps in EPS:
        request, domain, metric = asked(frame, rows, model, eps)
        memory = audit_asked(request, frame, y)
        listed = memory.worst_case.unfair_map.frame
        harm, distance = listed["harm"].to_numpy(), listed["squared_distance"].to_numpy()
        assert memory.gap == pytest.approx(lp_gap(frame, y, rows, model, domain, metric, eps), abs=1e-7)
        assert distance.mean() <= eps * (1 + 1e-6) + 1e-12
        assert harm.mean() <= memory.gap + 1e-9
        # λ* times what is left of ε is what is missing: less than one person's step of at most the largest loss.
        short = memory.gap - harm.mean()
        assert short == pytest.approx(
            memory.worst_case.lambda_ * (eps - distance.mean()) if eps else 0.0, abs=1e-7
        ) or (short == pytest.approx(0.0, abs=1e-9))
        assert short * n <= np.log(0.9 / 0.1) + 1e-9
        if eps < 0.1:
            continue
        folder = tmp_path / f"map-{eps}"
        parts = audit_asked(
            request,
            ParquetTable.find(people, ("paid", 1)),
            None,
            sizes=Sizes(part=max(n // 3, 1), chunk=7, exact=0 if seed % 2 else 10**6),
            map_folder=folder,
        )
        written = pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))])
        assert parts.gap == pytest.approx(memory.gap, abs=1e-12)
        for name in ("harm", "squared_distance"):
            np.testing.assert_allclose(written[name], listed[name], atol=1e-12)


def test_many_alike_are_listed_until_eps_is_spent():
    """The case that refuted the claim: everybody ties at λ*, and the map was empty."""
    frame = pd.DataFrame({"job": ["cook"] * 20, "town": ["east"] * 20, "sex": ["f"] * 20})
    rows = pd.MultiIndex.from_product(VALUES.values(), names=VALUES).to_frame(index=False)
    request, *_ = asked(frame, rows, lambda frame: np.where(frame["job"] == "nurse", 0.1, 0.9), 0.1)
    result = audit_asked(request, frame, np.ones(20, dtype=int))
    listed = result.worst_case.unfair_map.frame
    taken = (listed["harm"] > 0).to_numpy()
    assert 0 < taken.sum() < 20
    assert (np.diff(taken.astype(int)) <= 0).all()  # the first of the table
    assert (taken.sum() + 1) * listed["harm"].max() > result.gap * 20 >= listed["harm"].sum()
