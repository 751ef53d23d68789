"""Least changes equal those of asking about every row, for every engine, and none is impossible."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.explaining.enumeration import FAMILIES, TREES, small_case

import likewise as lw
from likewise.explaining.engine import Effort
from likewise.explaining.person import explain_person
from likewise.explaining.situation import ExplanationRequest, Situation, situate

ENGINES = {**dict.fromkeys(TREES, "TreeEngine"), "logistic": "LinearEngine", "network": "NetworkEngine"}


def check(seed: int, family: str, people: int = 4) -> int:
    """Compare some people of a case with enumeration; how many suggestions were made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = small_case(seed, family)
    asked = ExplanationRequest(case.favourable, case.actions, case.rules, case.cost, Effort(100_000, 20.0))  # type: ignore[arg-type]
    situation = situate(case.model, case.table, ["sex"], asked)
    assert type(situation.reader).__name__ == ENGINES[family], situation.family[1]
    made = 0
    for number in situation.refused[:people]:
        own = situation.people[number]
        found = situation.least(own, situation.gaps[number], whole=True)
        wanted = case.least(case.table.iloc[number])
        assert found.status == ("none" if np.isinf(wanted) else "proved"), (
            seed,
            family,
            number,
            found,
            wanted,
        )
        assert found.cost == pytest.approx(wanted, abs=1e-9), (seed, family, number)
        if found.values is None:
            continue
        made += 1
        table = situation.all.table(found.values[None, :])[list(case.table.columns)].astype(
            case.table.dtypes.to_dict()
        )
        assert case.model.predict(table)[0] == case.favourable
        for name in case.table.columns:
            options = case.options(name, case.table[name].iloc[number])
            value = table[name].iloc[0]
            assert any(value == one or (name == "rate" and abs(value - one) < 1e-9) for one in options), (
                seed,
                name,
                value,
            )
    return made


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(2))
def test_equal_to_enumeration(seed: int, family: str) -> None:
    check(100 * seed + 7, family)


@pytest.mark.parametrize(
    "learner",
    [
        DecisionTreeClassifier(max_depth=6, random_state=0),
        LogisticRegression(),
        MLPClassifier((5,), random_state=0),
    ],
)
def test_numbers_of_single_precision_move_in_steps_too(learner: Any) -> None:
    rng = np.random.default_rng(4)
    people = pd.DataFrame(rng.normal(0, 1, (80, 2)).astype(np.float32), columns=["rate", "gain"])
    people["sex"] = rng.integers(0, 2, 80)
    model = make_pipeline(StandardScaler(), learner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(people, people["rate"] + people["gain"] ** 2 > 0.8)
    steps = {"rate": {"step": 0.1}, "gain": {"step": 0.05}}
    asked = ExplanationRequest(True, steps, None, "range", Effort(100_000, 20.0))
    situation = situate(model, people, ["sex"], asked)
    spans = [np.subtract(*np.quantile(people[name].astype(float), [0.9, 0.1])) for name in steps]
    for number in situation.refused[:6]:
        found = situation.least(situation.people[number], situation.gaps[number], whole=True)
        own = people.iloc[[number]]
        ways = [
            (float(own[name].iloc[0]) + np.arange(-99, 100) * said["step"]).astype(np.float32)
            for name, said in steps.items()
        ]
        ways = [
            np.append(w[(w >= people[n].min()) & (w <= people[n].max())], own[n])
            for w, n in zip(ways, steps, strict=True)
        ]
        rows = own.loc[own.index.repeat(len(ways[0]) * len(ways[1]))]
        pairs = np.stack([part.ravel() for part in np.meshgrid(*ways)], axis=1)
        rows = rows.assign(rate=pairs[:, 0], gain=pairs[:, 1])
        good = model.predict(rows)
        costs = np.abs(pairs.astype(float) - own[list(steps)].to_numpy(float)) @ (1.0 / np.array(spans))
        assert found.status == "proved"
        assert found.cost == pytest.approx(costs[good].min(), abs=1e-9)


@pytest.mark.parametrize("learner", ["tree", "two classes", "three classes", "network", "any"])
def test_nobody_can_change_what_is_all_fixed(learner: str) -> None:
    rng = np.random.default_rng(0)
    people = pd.DataFrame({name: rng.integers(0, 12, 60) for name in ("skill", "years", "sex")})
    grades = np.digitize(people["skill"] + people["years"], [8, 14] if learner == "three classes" else [12])
    model = {
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
        "network": make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=900, random_state=0)),
        "any": GaussianNB(),
    }.get(learner, make_pipeline(StandardScaler(), LogisticRegression()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(people, grades)
    row = int(np.flatnonzero(model.predict(people) != 1)[0])
    fixed = {"skill": "fixed", "years": "fixed"}
    found = lw.explain(
        model, people, row, sensitive_features=["sex"], favourable=1, actions=fixed, rules=None
    )
    assert found.least.status in ("none", "not found")
    assert found.least.status == "none" or learner == "any"


def test_a_reading_that_is_withdrawn_later_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    case = small_case(7, "tree")
    asked = ExplanationRequest(case.favourable, case.actions, case.rules, case.cost, Effort(100_000, 20.0))  # type: ignore[arg-type]
    situation = situate(case.model, case.table, ["sex"], asked)
    row = case.table.index[situation.refused[0]]
    assert explain_person(situation, row).least.status in ("proved", "none")
    confirms, calls = Situation.confirms, iter(range(100_000))

    def later_denied(self: Situation, *given: object) -> object:
        answer = confirms(self, *given)  # type: ignore[arg-type]
        return answer & False if self.reader is not None and next(calls) == 1 else answer

    monkeypatch.setattr(Situation, "confirms", later_denied)
    found = explain_person(situation, row)
    assert situation.reader is None
    assert found.settings["engine"] == "search"
    said = [found.least, found.fewest, *found.alternatives]
    assert {one.status for one in said if one is not None} <= {"estimate", "not found"}


@pytest.mark.parametrize("favourable", ["grant", "jail"])
def test_another_decision_that_is_no_better_is_another_decision(favourable: str) -> None:
    people = pd.DataFrame({"age": np.arange(60) % 30, "sex": np.arange(60) // 30})
    decided = np.where(people["age"] > 20, "grant", np.where(people["sex"] == 1, "deny", "jail"))
    model = DecisionTreeClassifier(random_state=0).fit(people, decided)
    row = int(np.flatnonzero(decided == "deny")[0])
    found = lw.explain(
        model, people, row, sensitive_features=["sex"], favourable=favourable, alternatives=0, rules=None
    )
    assert [one.decision for one in found.counterparts] == ["jail"]
    assert found.changes_with == 1
    assert "the same person is decided jail" in " ".join(str(found).split())
