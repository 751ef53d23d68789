"""Branch and bound inside an audit: the bracket holds the truth over every person who could exist."""

import itertools

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.bounds.exact_search import BranchAndBoundSearch
from likewise.core.errors import InputError


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 30, 60),
            "job": rng.choice(["a", "b", "c"], 60),
            "sex": rng.choice(["F", "M"], 60),
        }
    )
    noisy = frame["age"] + 4 * (frame["sex"] == "M") + 3 * (frame["job"] == "c") + rng.normal(0, 2, 60)
    return frame, (noisy > 28).to_numpy().astype(int)


def fitted(kind, domain, frame, y):
    X = domain.encode(frame)
    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1).fit(X, y)
    if kind == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(8, max_depth=3, min_samples_leaf=4, random_state=0).fit(X.to_numpy(), y)
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    x, t = torch.tensor(X.to_numpy(), dtype=torch.float32), torch.tensor(y)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), t).backward()
        optimizer.step()
    return net


def truth(model, domain, metric, frame, y, eps):
    """V(ε) over every row of the domain, by listing them all."""
    rows = pd.DataFrame(list(itertools.product(range(20, 30), "abc", "FM")), columns=["age", "job", "sex"])
    z, x = domain.encode_array(rows), domain.encode_array(frame)
    loss = lw.as_model(model).loss_table(z)[:, y].T
    d2 = np.stack([metric.without_feature_map().squared_norm(z - row) for row in x])
    d2[d2 < 1e-12] = 0.0
    if eps == 0:
        return float(np.where(d2 == 0, loss, -np.inf).max(axis=1).mean())
    lam = np.concatenate([np.linspace(0, 60, 6001)])
    return float(min(k * eps + (loss - k * d2).max(axis=1).mean() for k in lam))


@pytest.mark.parametrize("kind", ["xgboost", "forest", "network"])
@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_the_bracket_holds_the_truth_and_decides(people, kind, eps):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame, ranges={"age": (20, 29)})
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(frame).metric_
    model = fitted(kind, domain, frame, y)
    given = {"metric": metric, "domain": domain, "eps": eps, "search": "exact"}
    result = lw.audit(model, domain.encode(frame), y, **given)
    exact = truth(model, domain, metric, frame, y, eps)
    bound = result.certificate.bound
    assert result.value <= exact + 1e-3
    assert bound.value >= exact - 1e-3
    assert bound.value >= result.value
    assert bound.value - result.value <= 0.02 * bound.value + 1e-6
    assert result.verdict(bound.gap + 0.01) == "fair (proved)"
    assert result.verdict(result.gap - 0.01) == "unfair (shown)"
    assert domain.validate(result.unfair_map.twins) == ()


def test_a_model_that_nothing_bounds_says_so(people):
    frame, y = people
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    with pytest.raises(InputError, match="search='exact' cannot be used"):
        lw.audit(lambda f: 1.0 * (f["age"] > 25), frame, y, metric=metric, search="exact")


def test_a_time_that_is_set_is_used_to_prove(people):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(frame).metric_
    model = fitted("xgboost", domain, frame, y)
    timed = lw.audit(model, domain.encode(frame), y, metric=metric, domain=domain, budget_seconds=60)
    assert timed.certificate.bound is not None
    plain = lw.audit(model, domain.encode(frame), y, metric=metric, domain=domain)
    assert plain.certificate.bound is None
    few = lw.audit(
        model, domain.encode(frame), y, metric=metric, domain=domain, search=BranchAndBoundSearch(nodes=2)
    )
    assert few.certificate.bound.value >= timed.certificate.bound.value - 1e-9


def test_a_linear_model_of_a_table_is_bounded_over_people_not_over_the_box_around_them(people):
    """Shares of a category are nobody: the bound over the box around a table lies far above that over the table."""
    from sklearn.linear_model import LogisticRegression

    from likewise.auditing.bounds.exact_search import ProofSearch
    from likewise.auditing.bounds.linear.search import LinearSearch
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.search.contract import Budget

    frame, y = people
    domain = lw.TabularDomain.from_frame(frame)
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    model = LogisticRegression(C=30.0).fit(domain.encode(frame).to_numpy(), y)
    problem = AuditProblem.build(model, domain.encode(frame), y, metric=metric, domain=domain, encoded=True)
    value = truth(model, domain, metric, frame, y, 0.05)
    boxed = LinearSearch().extend(problem, Support.start(problem), 0.05, Budget())
    found = ProofSearch().solve(problem, Support.start(problem), 0.05, Budget())
    assert value <= found.bound(eps=0.05).value <= 1.011 * value
    assert boxed.bound(eps=0.05).value > 1.05 * value
    # The bound for the population is the solver's own.
    population = {"eps": 0.05, "about": "population"}
    assert found.bound(**population).value == boxed.bound(**population).value
