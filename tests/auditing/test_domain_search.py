"""The search of the domain: against brute force and the exact search, the same alone and among many, any model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
)
from sklearn.linear_model import LogisticRegression

import likewise as lw
from likewise.auditing.bounds.families import family_in
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.problem import AuditProblem
from likewise.auditing.search.black_box import probe_cuts, split_points
from likewise.auditing.search.contract import Budget, choose_searches, read_searches
from likewise.auditing.search.domain import DomainSearch, MoveSearch, _asking, prices_of
from likewise.auditing.worst_case import prepare_people, search_people

LAMBDAS = (0.0, 0.3, 2.0, 10.0, 50.0)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 66, n),
            "gain": np.where(rng.uniform(size=n) < 0.8, 0, rng.integers(1, 5000, n)),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    score = table["age"] / 20 + (table["gain"] > 3000) * 2 + (table["job"] == "nurse") + (table["sex"] == "m")
    return table, (score + rng.normal(size=n) > 4).astype(int).to_numpy()


@pytest.fixture(scope="module")
def setting():
    table, y = people(600)
    domain = lw.TabularDomain.from_frame(table)
    encoded = domain.encode(table)
    model = HistGradientBoostingClassifier(max_iter=25, random_state=0).fit(encoded, y)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(table).metric_
    return table, y, domain, model, metric


def black_box(model, domain):
    """A function of the table itself, which says nothing of what is behind it."""
    return lambda frame: model.predict_proba(domain.encode(frame))[:, 1]


def found(model, setting, who, eps=0.1, search="auto", **choices):
    table, y, domain, _, metric = setting
    searches, required = read_searches(search)
    asked = AuditRequest(model, metric, searches, domain, eps=eps, required=required, **choices)
    prepared = prepare_people(asked, table.iloc[who], y[who])
    return search_people(prepared, prepared.problem).found.support


def gap(support, eps):
    return solve_dual(support.frontier, eps).value - support.frontier.base_loss.mean()


@pytest.mark.parametrize("eps", [0.0, 0.01, 0.1])
def test_trees_and_the_same_trees_as_a_black_box_come_near_the_exact_value(setting, eps):
    table, y, domain, model, metric = setting
    who = np.arange(40)
    # At no distance everybody can be listed, and "auto" leaves it at that.
    search = "auto" if eps > 0 else [DomainSearch()]
    # Encoded rows for the trees, so that their splits are read; the table itself for the function.
    rows, choices = domain.encode(table.iloc[who]), {"metric": metric, "domain": domain, "eps": eps}
    exact = lw.audit(model, rows, y[who], search="exact", **choices)
    known = lw.audit(model, rows, y[who], search=search, **choices)
    unknown = found(black_box(model, domain), setting, who, eps, search)
    assert exact.certificate.bound.gap <= 1.02 * exact.gap + 1e-9
    assert "domain" in known.search
    assert 0.97 * exact.gap - 1e-12 <= known.gap <= exact.certificate.bound.gap + 1e-9
    assert 0.95 * exact.gap - 1e-12 <= gap(unknown, eps) <= exact.certificate.bound.gap + 1e-9


@pytest.mark.parametrize("hidden", [True, False])
def test_what_is_found_for_a_person_does_not_depend_on_the_table(setting, hidden):
    _, _, domain, model, _ = setting
    model = black_box(model, domain) if hidden else model
    who = np.arange(5, 300, 29)
    alone, among = found(model, setting, who), found(model, setting, np.arange(300))
    mine = among.frontier.take(who)
    for lam in LAMBDAS:
        np.testing.assert_allclose(alone.frontier.conjugate(lam), mine.conjugate(lam), atol=1e-9)
    assert (alone.changed == among.changed[who]).all()


def test_it_finds_more_than_the_people_of_the_table(setting):
    _, _, domain, model, _ = setting
    some, model = np.arange(60), black_box(model, domain)
    mine = found(model, setting, some, 0.1)
    others = found(model, setting, some, 0.1, "candidates")
    assert gap(mine, 0.1) > 1.2 * gap(others, 0.1)
    assert gap(mine, 0.0) >= gap(others, 0.0) - 1e-12


def test_the_same_person_twice_is_told_the_same(setting):
    _, _, domain, model, _ = setting
    who = np.array([3, 8, 3, 3, 11, 8])
    support = found(black_box(model, domain), setting, who)
    value = support.frontier.conjugate(2.0)
    assert value[0] == value[2] == value[3]
    assert value[1] == value[5]


def brute_force(answer, y, domain, metric, table, lam):
    """The largest loss − λ d² over every row of a small domain, for every person."""
    ages, jobs = np.arange(table["age"].min(), table["age"].max() + 1), ["a", "b", "c"]
    every = pd.DataFrame([(age, job) for age in ages for job in jobs], columns=["age", "job"])
    p = answer(every)
    loss = np.stack([-np.log(np.where(label == 1, p, 1 - p)) for label in y])
    rows, own = domain.encode(every).to_numpy(), domain.encode(table).to_numpy()
    cost = np.stack([metric.squared_norm(rows - x) for x in own])
    return (loss - lam * cost).max(axis=1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("probes", [1, 50_000], ids=["moves", "listed"])
def test_brute_force_over_a_small_domain(seed, probes):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(0, 60, 30), "job": rng.choice(["a", "b", "c"], 30)})
    steps, size = np.sort(rng.integers(5, 55, 4)), rng.normal(size=(4, 3)) * 2

    def answer(frame):
        code = frame["job"].map({"a": 0, "b": 1, "c": 2}).to_numpy()
        above = frame["age"].to_numpy()[:, None] > steps
        return 1 / (1 + np.exp(-(above * size[:, code].T).sum(axis=1)))

    y = rng.integers(0, 2, 30)
    domain = lw.TabularDomain.from_frame(table)
    metric = lw.ExpertSubspace(["job"], domain=domain).fit(table).metric_
    asked = AuditRequest(answer, metric, (DomainSearch(probes=probes),), domain, eps=0.1, required=True)
    prepared = prepare_people(asked, table, y)
    frontier = search_people(prepared, prepared.problem).found.support.frontier
    for lam in (0.8, 2.0, 7.0):
        truth = brute_force(answer, y, domain, metric, table, lam)
        mine = frontier.conjugate(lam)
        assert (mine <= truth + 1e-9).all()
        assert (np.abs(mine - truth) < 1e-9).mean() > 0.95


def test_probing_finds_every_split_and_leaves_smooth_numbers_alone(setting):
    table, _, domain, model, _ = setting
    problem = AuditProblem.build(model, domain.encode(table), setting[1], metric=setting[4], domain=domain)
    hidden = AuditProblem.build(black_box(model, domain), table, setting[1], metric=setting[4], domain=domain)
    read, probed = split_points(problem, 50_000), split_points(hidden, 50_000)
    # A split that no row shows is no loss; one that is not there would be.
    assert set(probed["age"]) <= set(read["age"])
    assert len(probed["age"]) > 0.8 * len(read["age"])
    smooth = LogisticRegression(max_iter=500).fit(domain.encode(table), setting[1])
    curved = AuditProblem.build(
        black_box(smooth, domain), table, setting[1], metric=setting[4], domain=domain
    )
    assert "gain" not in split_points(curved, 50_000)


def test_narrow_bands_of_a_wide_range_are_found_beside_others():
    box = lw.data.BoxDomain([0.0], [100_000.0])
    edges = np.array([4000.0, 4100.0, 4140.0, 7000.0])
    asked = []

    def answers(values):
        asked.append(len(values))
        return np.isin(np.searchsorted(edges, values), (1, 3)).astype(float)

    cuts = np.array(probe_cuts(answers, TableLayout.of(box), calls=20_000)["x0"])
    assert all(np.abs(cuts - edge).min() < 1.0 for edge in edges)
    assert sum(asked) < 25_000


def test_a_regression_is_searched_in_its_own_units():
    table, _ = people(200)
    target = table["age"] * 100.0 + (table["sex"] == "m") * 500.0
    domain = lw.TabularDomain.from_frame(table)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(table).metric_
    rows = domain.encode(table.iloc[:30])

    def audited(unit, search):
        model = GradientBoostingRegressor(n_estimators=20, random_state=0)
        model.fit(domain.encode(table), unit * target)
        choices = {"metric": metric, "domain": domain, "loss": "squared", "eps": 0.1, "search": search}
        return lw.audit(model, rows, unit * target[:30], **choices).gap

    mine = audited(1.0, "auto")
    assert mine > 1.2 * audited(1.0, "candidates")
    assert audited(1024.0, "auto") == pytest.approx(1024.0**2 * mine, rel=1e-6)


def test_auto_searches_the_domain_only_without_gradients(setting):
    table, y, domain, model, metric = setting
    smooth = LogisticRegression(max_iter=500).fit(domain.encode(table), y)
    rows = domain.encode(table.iloc[:30])
    linear = lw.audit(smooth, rows, y[:30], metric=metric, domain=domain)
    trees = lw.audit(model, rows, y[:30], metric=metric, domain=domain)
    assert "domain" not in linear.search
    assert any("domain search was left out" in line for line in linear.left_out)
    assert trees.search == "enumeration, domain"
    assert not any("other person of the table" in line for line in trees.assumptions)
    boundless = lw.audit(model, rows, y[:30], metric=metric, domain=lw.data.Unbounded())
    assert "domain" not in boundless.search
    assert any("column by column" in line for line in boundless.left_out)


def test_rows_come_in_the_dtypes_and_order_of_the_table(setting):
    table, y, domain, _, metric = setting
    seen = set()

    def answer(frame):
        seen.add((tuple(frame.columns), tuple(str(dtype) for dtype in frame.dtypes)))
        assert list(frame["job"].cat.categories) == ["nurse", "clerk", "cook"]
        return np.where(frame["age"] > 40, 0.8, 0.3)

    mixed = table[["sex", "job", "gain", "age"]].assign(
        job=pd.Categorical(table["job"], categories=["nurse", "clerk", "cook"])
    )
    lw.audit(answer, mixed.iloc[:20], y[:20], metric=metric, domain=domain)
    assert len(seen) == 1


def test_a_large_table_gets_fewer_calls_and_says_so(setting):
    table, y, domain, model, metric = setting
    problem = AuditProblem.build(model, domain.encode(table), y, metric=metric, domain=domain)
    search = DomainSearch(total_calls=600 * 80)
    assert search.prepare(problem).calls == 80
    assert "80 questions" in search.prepare(problem).assumes(problem)[0]
    chosen, _ = choose_searches(read_searches("auto")[0], problem, required=False, in_parts=False)
    assert "candidates" not in [one.name for one in chosen]
    few = [replace_total(one) for one in read_searches("auto")[0]]
    kept, _ = choose_searches(few, problem, required=False, in_parts=True)
    assert kept[0].use_rows == "pool"


def replace_total(one):
    return DomainSearch(total_calls=600 * 80) if isinstance(one, DomainSearch) else one


def test_calls_are_counted_per_person(setting):
    table, y, domain, model, metric = setting
    asked = []
    answer = black_box(model, domain)

    def counting(frame):
        asked.append(len(frame))
        return answer(frame)

    cuts = {"age": [30.0, 45.0], "gain": [3000.0]}
    problem = AuditProblem.build(counting, table.iloc[:20], y[:20], metric=metric, domain=domain)
    support = Support.start(problem)
    asked.clear()
    DomainSearch(calls=30, cuts=cuts).extend(problem, support, 0.1, Budget())
    # Singles and rounds stop at 30; a round in flight, and the rows that are kept, come on top.
    assert sum(asked) <= 20 * (30 + 32 + 10)


def test_time_that_is_up_is_said(setting):
    table, y, domain, model, metric = setting
    problem = AuditProblem.build(model, domain.encode(table), y, metric=metric, domain=domain)
    over = Budget(1e-9)
    stopped = DomainSearch().extend(problem, Support.start(problem), 0.1, over)
    assert stopped.status == "not_converged"
    assert "600 of 600 people" in stopped.reasons[0]


def test_prices_follow_the_budget():
    assert prices_of(0.0, 1.0) == (np.inf,)
    assert prices_of(np.inf, 1.0) == (np.inf, 0.0)
    assert prices_of(0.02, 3.0)[1:] == pytest.approx(
        [share * 3 / 0.02 for share in (0.3, 0.1, 1.0, 0.5, 0.2, 0.03, 2.0)]
    )


@pytest.mark.parametrize(
    "choice",
    [{"calls": 0}, {"rounds": -1}, {"probes": 0}],
)
def test_bad_choices_are_refused(choice):
    with pytest.raises(lw.InputError, match=f"DomainSearch: '{next(iter(choice))}'"):
        DomainSearch(**choice)


def test_a_domain_without_columns_cannot_be_searched(setting):
    table, y, domain, model, metric = setting
    with pytest.raises(lw.InputError, match="search='domain' cannot be used"):
        lw.audit(
            model,
            domain.encode(table.iloc[:10]),
            y[:10],
            metric=metric,
            domain=lw.data.Unbounded(),
            search="domain",
        )


def test_a_table_with_more_columns_than_the_domain_is_left_to_the_people_in_it(setting):
    table, y, domain, _, metric = setting
    more = table.assign(note="a")
    result = lw.audit(
        lambda frame: np.where((frame["note"] == "a") & (frame["age"] > 40), 0.8, 0.3),
        more.iloc[:30],
        y[:30],
        metric=metric,
        domain=domain,
    )
    assert "domain" not in result.search
    assert any("'note'" in line for line in result.left_out)


def test_multiclass_and_immutable_columns():
    table, _ = people(150)
    y = np.digitize(table["age"], [35, 50])
    domain = lw.TabularDomain.from_frame(table, immutable=["job"])
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(domain.encode(table), y)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(table).metric_
    found = lw.audit(model, domain.encode(table.iloc[:30]), y[:30], metric=metric, domain=domain, eps=0.2)
    assert found.gap > 0.05
    assert (found.unfair_map.twins["job"] == table["job"].iloc[:30].to_numpy()).all()
    assert domain.validate(found.unfair_map.twins) == ()


def test_asking_and_probing_end_when_the_time_is_up(setting):
    """A first batch of a black box could not be stopped, and took four times a budget of one second."""
    table, y, domain, model, metric = setting
    calls = []

    def ask(frame):
        calls.append(len(frame))
        return black_box(model, domain)(frame)

    problem = AuditProblem.build(
        lw.as_model(ask, classes=[0, 1], takes_frame=True),
        table.iloc[:20],
        y[:20],
        metric=metric,
        domain=domain,
    )
    layout = TableLayout.of(domain)
    assert probe_cuts(lambda X: (X[:, [0]] > 40) * 1.0, layout, until=0.0) == {}
    asked = []
    for until in (0.0, np.inf):
        search = MoveSearch(
            layout,
            metric,
            (1.0,),
            problem.coordinates.model.loss,
            None,
            _asking(problem, layout),
            {},
            until=until,
        )
        calls.clear()
        rows = search.run(problem.X, problem.target)
        asked.append((len(calls), len(rows.loss)))
    # Everybody and their single moves are asked about whatever the time, rounds only before it is up.
    assert asked[0][0] <= 3 < asked[1][0]
    assert asked[0][1] > 20


def test_a_model_that_was_read_already_is_used_however_little_time_is_left(setting, monkeypatch):
    table, y, domain, model, metric = setting
    problem = AuditProblem.build(model, table.iloc[:20], y[:20], metric=metric, domain=domain)
    monkeypatch.setattr("likewise.auditing.search.domain.seconds_to_read", lambda problem: 1e9)
    taken = []
    monkeypatch.setattr("likewise.auditing.search.domain._read", lambda problem: taken.append(1))
    DomainSearch().extend(problem, Support.start(problem), 0.1, Budget(60.0))
    assert not taken
    assert family_in(problem) is not None
    DomainSearch().extend(problem, Support.start(problem), 0.1, Budget(60.0))
    assert taken
