"""Shares of the domain that are proved, flip and stay open, against the enumeration of every row."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import encoded_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.verification.verify import verify, verify_family
from likewise.core.errors import InputError
from likewise.data import TabularDomain
from likewise.data.column import Column, Dtype
from likewise.models.layers import Layers
from likewise.models.losses import ZeroOne

_spec = importlib.util.spec_from_file_location(
    "random_ensembles", Path(__file__).with_name("random_ensembles.py")
)
made = importlib.util.module_from_spec(_spec)
sys.modules["random_ensembles"] = made
_spec.loader.exec_module(made)


def random_family(seed):
    rng = np.random.default_rng(seed)
    columns = made.random_columns(rng)
    layout = TableLayout(columns)
    outputs = int(rng.choice([1, 2, 3]))
    if seed % 2:
        trees = made.random_trees(rng, columns, encoded_sources(layout), 1 if outputs == 2 else outputs)
        return TreeFamily(trees, layout, encoded_sources(layout), ZeroOne())
    sizes = [layout.width, 5, 4, outputs]
    weights = tuple(rng.normal(size=(b, a)) for a, b in pairwise(sizes))
    return NetworkFamily(Layers(weights, tuple(rng.normal(size=len(w)) for w in weights)), layout, ZeroOne())


def enumerated(family, sensitive):
    """Share of the other columns' combinations whose decision is the same for all sensitive values."""
    columns = family.layout.columns
    rows = made.every_row(columns)
    # Loss 0 under a label is that decision: nothing of the regions is asked.
    labels = np.array(
        [[family.losses(rows, np.full(len(rows), y)) == 0.0] for y in range(len(family.parts.mixing))]
    )[:, 0].argmax(axis=0)
    frame = pd.DataFrame(rows, columns=[c.name for c in columns]).assign(decision=labels)
    others = [c.name for c in columns if c.name not in sensitive]
    if not others:
        return float(labels.min() == labels.max())
    each = frame.groupby(others)["decision"]
    return float((each.min() == each.max()).mean())


@pytest.mark.parametrize("seed", range(40))
def test_shares_equal_enumeration_when_nothing_is_left_open(seed, monkeypatch):
    if seed % 4 < 2:  # cut all the way down instead of looking row by row
        monkeypatch.setattr("likewise.auditing.verification.undecided_regions._FEW_ROWS", 0)
    family = random_family(seed)
    names = [c.name for c in family.layout.columns]
    sensitive = names[: 1 + seed % 2]
    found = verify_family(family, sensitive, budget_seconds=20)
    truth = enumerated(family, sensitive)
    assert found.undecided == pytest.approx(0.0, abs=1e-9)
    assert found.proved == pytest.approx(truth, abs=1e-9)
    assert found.flips == pytest.approx(1 - truth, abs=1e-9)
    for _, pair in found.examples.groupby("pair") if found.pairs else ():
        rows = pair.iloc[:, : len(family.layout.columns)].to_numpy(dtype=float)
        assert tuple(family.decisions(rows)) == tuple(pair["decision"])
        assert pair["decision"].nunique() == 2
        differs = {names[i] for i in np.flatnonzero(rows[0] != rows[1])}
        assert differs <= set(sensitive)
    assert bool(found.pairs) == (truth < 1)


@pytest.mark.parametrize("seed", range(10))
def test_a_stopped_run_claims_less_and_nothing_wrong(seed, monkeypatch):
    monkeypatch.setattr("likewise.auditing.verification.undecided_regions._FEW_ROWS", 0)
    family = random_family(seed)
    sensitive = [family.layout.columns[0].name]
    truth = enumerated(family, sensitive)
    found = verify_family(family, sensitive, max_regions=4)
    assert found.proved <= truth + 1e-9
    assert found.flips <= 1 - truth + 1e-9
    assert found.proved + found.flips + found.undecided == pytest.approx(1.0)


def test_people_and_rules_of_a_blunt_rule():
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(20, 60, 300), "sex": rng.choice(["f", "m"], 300)})
    y = ((people.age > 40) & (people.sex == "m")).astype(int)
    domain = TabularDomain.from_frame(people)
    X = domain.encode(people)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    found = verify(tree, people, ["sex"], domain=domain, encoded=True)
    older = float((people.age > 40).mean())
    assert found.people == pytest.approx((1 - older, older, 0.0))
    assert found.rules[0].rows.startswith("age >= 41")
    assert found.flips == pytest.approx(19 / 40)


def test_wide_numbers_are_looked_at_in_pieces():
    age = Column("age", "integer", Dtype("int64"), lower=0, upper=99, start=0, stop=1)
    job = Column("job", "integer", Dtype("int64"), lower=0, upper=9, start=1, stop=2)
    layout = TableLayout((age, job))
    # 1 where job >= 5 whatever the age; below, where age >= 50.
    weights = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 100.0]]))
    net = Layers(weights, (np.array([-49.0, -4.0]), np.array([-0.5])))
    found = verify_family(NetworkFamily(net, layout, ZeroOne()), ["age"])
    assert (found.proved, found.flips) == (pytest.approx(0.5), pytest.approx(0.5))


def test_unknown_columns_are_named():
    family = random_family(0)
    with pytest.raises(InputError, match="sensitive_features"):
        verify_family(family, ["nobody"])


@pytest.mark.parametrize("seed", range(0, 24, 2))
def test_lines_claim_no_more_than_there_is_however_early_it_stops(seed, monkeypatch):
    monkeypatch.setattr("likewise.auditing.verification.undecided_regions._FEW_ROWS", 0)
    family = random_family(seed)
    sensitive = [family.layout.columns[-1].name]
    truth = enumerated(family, sensitive)
    before = 0.0
    for most in (1, 3, 10, 40):
        found = verify_family(family, sensitive, max_regions=most)
        assert found.proved <= truth + 1e-9
        assert found.flips <= 1 - truth + 1e-9
        assert found.proved + found.flips + found.undecided == pytest.approx(1.0)
        before = max(before, found.proved + found.flips)
    assert before > 0.0 or truth in (0.0, 1.0) or len(family.layout.columns) > 3


def test_a_linear_model_is_decided_almost_at_once():
    rng = np.random.default_rng(0)
    tops = (30, 40, 1, 60)
    columns = tuple(
        Column(
            f"x{i}",
            "integer",
            Dtype("int64"),
            lower=0,
            upper=top,
            mean=top / 2,
            scale=3.0,
            start=i,
            stop=i + 1,
        )
        for i, top in enumerate(tops)
    )
    layout = TableLayout(columns)
    net = Layers((rng.normal(size=(1, 4)),), (np.array([0.3]),))
    family = NetworkFamily(net, layout, ZeroOne())
    rows = np.stack(np.meshgrid(*(np.arange(top + 1.0) for top in tops), indexing="ij"), axis=-1)
    decided = family.decisions(rows.reshape(-1, 4)).reshape(rows.shape[:-1])
    truth = (decided.min(axis=2) == decided.max(axis=2)).mean()
    found = verify_family(family, ["x2"], max_regions=60)
    assert truth - 0.01 <= found.proved <= truth
    assert (1 - truth) - 0.01 <= found.flips <= 1 - truth
    # Where decisions flip most they flip more than elsewhere.
    assert found.rules[0].within > 1 - truth


def test_networks_of_the_tables_own_numbers_are_bounded_in_its_units():
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(20, 60, 400), "sex": rng.integers(0, 2, 400)})
    y = ((people.age - 40) / 10 + 0.7 * people.sex + 0.2 * rng.normal(size=400) > 0).astype(int)
    domain = TabularDomain.from_frame(people)
    assert domain.columns_[0].mean != 0.0
    ages = np.arange(people.age.min(), people.age.max() + 1)
    net = MLPClassifier((8,), max_iter=3000, tol=1e-3, random_state=0).fit(people, y)
    each = [net.predict(pd.DataFrame({"age": ages, "sex": sex})) for sex in (0, 1)]
    with pytest.raises(InputError, match="encoded=True or False"):
        verify(net, domain, ["sex"])
    found = verify(net, people, ["sex"], domain=domain, encoded=False)
    assert 0 < (each[0] != each[1]).mean() < 1
    assert found.proved == pytest.approx((each[0] == each[1]).mean())
    assert found.flips == pytest.approx((each[0] != each[1]).mean())
    assert found.pairs
    assert (net.predict(found.examples[["age", "sex"]]) == found.examples["decision"]).all()


def test_a_model_with_an_encoding_of_its_own_is_verified_over_any_domain_of_its_columns():
    from likewise.training import MLPBaselineClassifier

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(20, 60, 100), "sex": rng.choice(["f", "m"], 100)})
    domain = TabularDomain.from_frame(people)
    other = TabularDomain.from_frame(people.iloc[:10])
    assert domain.columns_[0].mean != other.columns_[0].mean
    model = MLPBaselineClassifier(domain=domain, hidden_layer_sizes=(4,), n_steps=300, random_state=0)
    model.fit(people, (people.age + 8 * (people.sex == "m") > 44).astype(int))
    for known in (domain, other):
        ages = np.arange(known.columns_[0].lower, known.columns_[0].upper + 1).astype(int)
        each = [model.predict(pd.DataFrame({"age": ages, "sex": sex})) for sex in ("f", "m")]
        found = verify(model, known, ["sex"], budget_seconds=2)
        assert (each[0] != each[1]).any()
        assert found.flips == pytest.approx((each[0] != each[1]).mean())
        assert found.proved == pytest.approx((each[0] == each[1]).mean())


def test_ctrl_c_keeps_what_is_proved(monkeypatch):
    from likewise.auditing.verification import undecided_regions

    monkeypatch.setattr(undecided_regions, "_FEW_ROWS", 0)
    family = random_family(1)
    calls = []
    advance = undecided_regions.UndecidedRegions.advance

    def interrupted(self):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        advance(self)

    monkeypatch.setattr(undecided_regions.UndecidedRegions, "advance", interrupted)
    found = verify_family(family, [family.layout.columns[0].name])
    truth = enumerated(family, [family.layout.columns[0].name])
    assert found.stopped
    assert found.proved <= truth + 1e-9
    assert found.proved + found.flips + found.undecided == pytest.approx(1.0)


def table_with_sex():
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"age": rng.integers(18, 60, 80), "pay": rng.normal(size=80)})
    people["sex"] = rng.choice(["f", "m"], 80)
    return people, TabularDomain.from_frame(people)


def test_trees_that_do_not_split_by_a_column_are_proved_at_once():
    from sklearn.tree import DecisionTreeClassifier

    people, domain = table_with_sex()
    rows = domain.encode(people)
    told_nothing = rows.assign(**dict.fromkeys(rows.columns[2:], 0.0))
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(told_nothing, people["age"] > 40)
    found = verify(tree, people, ["sex"], domain=domain, encoded=True)
    assert (found.proved, found.people, found.regions) == (1.0, (1.0, 0.0, 0.0), 0)
    assert found.trivial
    assert found.sampled.share == 0.0


def test_networks_that_do_not_weigh_a_column_are_proved_at_once():
    _, domain = table_with_sex()
    layout, rng = TableLayout.of(domain), np.random.default_rng(0)
    weights = (rng.normal(size=(6, layout.width)), rng.normal(size=(1, 6)))
    weights[0][:, layout.columns[2].slice] = 0.0
    blind = NetworkFamily(Layers(weights, (np.zeros(6), np.zeros(1))), layout, ZeroOne())
    found = verify_family(blind, ["sex"])
    assert (found.proved, found.trivial, found.regions) == (1.0, True, 0)
    # Sex has no say, age has: the two together are as age alone.
    both, one = (verify_family(blind, names, max_regions=50) for names in (["sex", "age"], ["age"]))
    assert both.regions == one.regions > 0
    assert (both.proved, both.flips) == (one.proved, one.flips)


def test_time_must_be_positive():
    with pytest.raises(InputError, match="budget_seconds"):
        verify_family(random_family(0), [random_family(0).layout.columns[0].name], budget_seconds=0)
