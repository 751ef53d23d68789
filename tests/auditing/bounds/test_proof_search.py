"""All that an exact audit proves holds over every person who could exist: V and changed decisions, at ε and at 0."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.bounds.enumeration import EnumerationSearch
from likewise.auditing.bounds.exact_search import (
    BranchAndBoundSearch,
    ProofSearch,
    about_decisions,
    prove_by_sample,
)
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.problem import AuditProblem
from likewise.auditing.search.contract import Budget, Found, Search

AGES = (20, 29)


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 30, n),
            "job": rng.choice(["a", "b", "c"], n),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    noisy = frame["age"] + 4 * (frame["sex"] == "M") + 3 * (frame["job"] == "c") + rng.normal(0, 2, n)
    return frame, (noisy > 28).to_numpy().astype(int)


def setting(kind, n=40, oblique=False):
    frame, y = table(n)
    domain = lw.TabularDomain.from_frame(frame, ranges={"age": AGES})
    if oblique:
        metric = lw.ExpertSubspace([np.array([1.0, 0.0, 0.0, 0.0, 0.6])], domain=domain).fit(frame).metric_
    else:
        metric = lw.ExpertSubspace(["sex"], domain=domain).fit(frame).metric_
    X = domain.encode(frame)
    if kind == "forest":
        from sklearn.ensemble import RandomForestClassifier

        model = RandomForestClassifier(6, max_depth=3, min_samples_leaf=4, random_state=0).fit(
            X.to_numpy(), y
        )
    else:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression().fit(X, y)
    return model, domain, metric, X, y


def truth(model, domain, metric, X, y, eps):
    """V(ε) and the share of changed decisions over every row of the domain, by listing them all."""
    rows = pd.DataFrame(
        list(itertools.product(range(AGES[0], AGES[1] + 1), "abc", "FM")), columns=["age", "job", "sex"]
    )
    z, x = domain.encode_array(rows), X.to_numpy()
    asked = lw.as_model(model)
    named = pd.DataFrame(z, columns=X.columns) if hasattr(model, "feature_names_in_") else z
    own = X if hasattr(model, "feature_names_in_") else x
    delta = z[None, :, :] - x[:, None, :]
    plain = metric.without_feature_map()
    d2 = np.stack([np.where(plain.costs_nothing(part), 0.0, plain.squared_norm(part)) for part in delta])
    losses = asked.loss_table(named)[:, y].T
    other = (asked.predict(named)[None, :] != asked.predict(own)[:, None]).astype(float)
    found = []
    for loss in (losses, other):
        if eps == 0:
            found.append(float(np.where(d2 == 0, loss, -np.inf).max(axis=1).mean()))
            continue
        lam = np.concatenate([np.linspace(0, 60, 3001), np.geomspace(60, 1e6, 400)])
        found.append(float(min(k * eps + (loss - k * d2).max(axis=1).mean() for k in lam)))
    return found


@pytest.mark.parametrize("kind", ["forest", "linear"])
@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_every_bracket_holds_the_brute_force(kind, oblique, eps, monkeypatch):
    if oblique:  # as where the rows at no distance cannot be listed
        monkeypatch.setattr(EnumerationSearch, "why_not", lambda self, problem: "too many")
    model, domain, metric, X, y = setting(kind, oblique=oblique)
    result = lw.audit(model, X, y, metric=metric, domain=domain, eps=eps, search="exact")
    for at in {0.0, eps}:
        value, share = truth(model, domain, metric, X, y, at)
        for quantity, exact in (("value", value), ("gap", value - result.base_loss), ("changed", share)):
            bracket = result.bracket(quantity, eps=at)
            assert bracket.upper is not None
            assert bracket.lower <= exact + 1e-3
            assert bracket.upper >= exact - 1e-3 * (at > 0) - 1e-9
            if kind == "forest":
                assert bracket.upper - bracket.lower <= 0.02 * bracket.upper + 1e-4


def test_a_changed_decision_is_a_loss_of_one():
    model, domain, metric, X, y = setting("forest")
    problem = AuditProblem.build(model, X, y, metric=metric, domain=domain)
    decided = about_decisions(problem)
    assert not decided.base_loss.any()
    other = np.roll(problem.X, 1, axis=0)
    loss = decided.coordinates.losses_encoded(other, decided.labels)
    np.testing.assert_array_equal(loss, np.roll(problem.decisions, 1) != problem.decisions)
    assert problem.coordinates.model.loss.name == "cross_entropy"


def test_changed_decisions_are_found_where_they_lower_the_loss():
    """Somebody decided wrongly is decided rightly a little further on: the loss falls, and the decision changes."""
    frame = pd.DataFrame({"pay": [0, 1, 2, 3, 4, 5], "sex": list("FMFMFM")})
    model = lw.as_model(lambda f: np.where(f["pay"] >= 2, 0.9, 0.1), takes_frame=True, classes=[0, 1])
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    problem = AuditProblem.build(model, frame, [1, 1, 0, 0, 0, 0], metric=metric)
    start = Support.start(problem)
    moved = problem.X.copy()
    moved[:2, 0] = problem.X[2, 0]
    found = start.with_rows(moved[:2], np.array([0, 1]))
    assert found.frontier.loss.tolist() == start.frontier.loss.tolist()  # no worse for anybody
    step = float(problem.squared_distance(moved[1:2], np.array([1]))[0])
    np.testing.assert_allclose(found.nearest_change[:2], [4 * step, step])
    assert np.isinf(found.nearest_change[2:]).all()
    assert found.change_frontier().loss.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]


class Forgetful(Search):
    """Is broken off in its second answer."""

    name = "forgetful"

    def __init__(self):
        self.asked = 0

    def extend(self, problem, support, eps, budget):
        self.asked += 1
        if self.asked == 2:
            return Found(support, status="not_converged", reasons=("broken off",))
        return BranchAndBoundSearch().extend(problem, support, eps, budget)


def test_what_was_proved_before_it_was_broken_off_is_kept():
    model, domain, metric, X, y = setting("forest", oblique=True)
    problem = AuditProblem.build(model, X, y, metric=metric, domain=domain)
    inner = Forgetful()
    found = ProofSearch((inner,)).extend(problem, Support.start(problem), 0.1, Budget())
    assert inner.asked == 2
    assert (found.status, found.reasons) == ("not_converged", ("broken off",))
    assert [(bound.measure, bound.eps) for bound in found.bounds] == [("loss", 0.1)]


class Interrupted(Search):
    name = "interrupted"

    def extend(self, problem, support, eps, budget):
        raise KeyboardInterrupt


def test_ctrl_c_keeps_what_earlier_searches_found():
    model, domain, metric, X, y = setting("forest")
    given = {"metric": metric, "domain": domain, "eps": 0.1}
    result = lw.audit(model, X, y, search=["candidates", EnumerationSearch(), Interrupted()], **given)
    assert result.status == "not_converged"
    assert "interrupted search was broken off" in result.reasons[0]
    assert result.bracket("gap", eps=0).closed
    with pytest.raises(KeyboardInterrupt):
        lw.audit(model, X, y, search=[Interrupted()], **given)


def test_a_sample_bounds_the_table(monkeypatch):
    """Time for fewer than all: the bound has a confidence and holds for everybody, and for the population."""
    import likewise.auditing.bounds.exact_search as module

    model, domain, metric, X, y = setting("forest", n=400)
    problem = AuditProblem.build(model, X, y, metric=metric, domain=domain)
    # A person takes a second.
    clock, solve_people = [0.0], module._People.solve

    def slowly(self, at, lam, nodes, seconds):
        clock[0] += len(at) if nodes else 0.0
        return solve_people(self, at, lam, nodes, None)

    class Time(Budget):
        left = property(lambda self: self.seconds - clock[0])

    monkeypatch.setattr(module._People, "solve", slowly)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    budget = Time(10_000.0)  # enough for everybody
    assert prove_by_sample(problem, Support.start(problem), 0.1, budget, nodes=500) is None
    for asked in (problem, about_decisions(problem)):
        for eps in (0.0, 0.1):
            clock[0], budget = 0.0, Time(200.0)
            proof = prove_by_sample(asked, Support.start(asked), eps, budget, nodes=500, confidence=0.9)
            # Most of the time is used, and hardly more.
            assert 150 < clock[0] < 230
            everybody = ProofSearch().solve(asked, Support.start(asked), eps, Budget())
            bound, population = proof.bounds
            assert bound.method.values["drawn"] < 400
            assert (bound.confidence, bound.about, bound.n) == (0.9, "sample", 400)
            assert population.about == "population"
            lower, base = solve(everybody.support, eps), asked.base_loss.mean()
            assert bound.value >= lower
            assert population.value >= lower
            assert bound.value <= everybody.bound(eps=eps).value + 1.5
            # Rows that were found on the way stay, below the bound.
            assert base < solve(proof.support, eps) <= bound.value


def solve(support, eps):
    from likewise.auditing.dual.finite_dual import solve_dual

    return solve_dual(support.frontier, eps).value


def test_a_sampled_bound_is_said_with_its_confidence(monkeypatch):
    model, domain, metric, X, y = setting("forest", n=300)
    monkeypatch.setattr("likewise.auditing.bounds.exact_search._FEW", 10)
    # Every look at the clock takes 20 seconds, but the reading of the model does not.
    monkeypatch.setattr("likewise.auditing.bounds.exact_search.seconds_to_read", lambda problem: 1.0)
    ticks = iter(np.cumsum(np.full(10_000, 20.0)))
    monkeypatch.setattr("likewise.auditing.bounds.exact_search.time.perf_counter", lambda: float(next(ticks)))
    result = lw.audit(
        model,
        X,
        y,
        metric=metric,
        domain=domain,
        eps=0.05,
        delta=30.0,
        budget_seconds=60,
        confidence=0.9,
        search="exact",
    )
    assert result.verdict() == "fair (proved)"
    assert result.certificate.bound.confidence == 0.9
    assert result.population_bound is not None
    assert "90% confidence" in str(result.bracket("gap"))
    from likewise.auditing.inference.verdict import gap_words

    assert "for everyone audited at 90% confidence" in gap_words(result)


def test_a_bound_with_a_confidence_may_fall_short_of_what_was_found():
    from likewise.auditing.inference.certificate import Bound, Certificate, Estimate
    from likewise.core.errors import InputError

    low = Estimate(value=0.6, gap=0.2, eps=0.1, n=9, method="listed")
    high = Bound(value=0.5, gap=0.1, eps=0.1, n=9, method="a sample", confidence=0.95)
    assert Certificate(low, high).verdict(0.15) == "unfair (shown)"
    with pytest.raises(InputError, match="above the bound"):
        Certificate(low, replace(high, confidence=1.0))


def test_a_table_in_parts_is_bounded_from_a_sample(tmp_path):
    model, domain, metric, X, y = setting("forest", n=600)
    frame, _ = table(600)
    frame.assign(y=y).to_parquet(tmp_path / "people.parquet", row_group_size=200)
    encoded = lambda f: model.predict_proba(domain.encode_array(f))  # noqa: E731 (only asked at ε = 0)
    path = str(tmp_path / "people.parquet")
    given = {"metric": metric, "domain": domain, "eps": 0.1}
    parts = lw.audit(model, path, "y", budget_seconds=20, **given)
    whole = lw.audit(model, X, y, search="exact", **given)
    for quantity in ("gap", "value", "changed"):
        assert parts.bracket(quantity, eps=0).upper == pytest.approx(whole.bracket(quantity, eps=0).upper)
        assert parts.bracket(quantity, eps=0).confidence == 1
        found = parts.bracket(quantity)
        assert found.confidence == 0.95
        assert whole.bracket(quantity).lower <= found.upper
    assert parts.population_bound is not None
    assert any("drawn at random" in said for said in parts.assumptions)
    untimed = lw.audit(model, path, "y", **given)
    assert untimed.bracket("gap").upper is None
    assert untimed.left_out  # as in memory: branch and bound needs time to be given
    asked = lw.audit(lw.as_model(encoded, takes_frame=True), path, "y", budget_seconds=20, **given)
    assert asked.bracket("gap", eps=0).closed


def test_searches_say_how_far_they_are(capsys):
    from likewise.auditing.worst_case import search_bar

    model, domain, metric, X, y = setting("linear")
    problem = AuditProblem.build(model, X, y, metric=metric, domain=domain)
    for search in (ProofSearch(), EnumerationSearch(), lw.auditing.GradientSearch()):
        told = []
        search.extend(problem, Support.start(problem), 0.1, Budget(watch=told.append))
        assert told
        assert told == sorted(told)
        assert 0.0 <= told[0] <= told[-1] <= 1.0
    with search_bar(show=True) as watched:
        budget = watched("exact", Budget(60.0))
        budget.tell(0.5)
        assert budget.seconds == 60.0
    shown = lw.audit(model, X, y, metric=metric, domain=domain, eps=0.1, progress=True)
    assert shown.value == lw.audit(model, X, y, metric=metric, domain=domain, eps=0.1).value
    assert capsys.readouterr().out == ""
