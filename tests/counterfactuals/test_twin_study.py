"""Three kinds of twins side by side: counts, intervals, validity, who changes under one question only."""

from __future__ import annotations

import jsonschema
import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.core.intervals import proportion_interval
from likewise.counterfactuals import (
    AttributeTwins,
    Boosting,
    Consequences,
    Edit,
    MatchedTwins,
    learn_plausibility,
    twin_study,
)
from likewise.counterfactuals.changes import Outcomes, SharedPeople, e_value
from likewise.report import json_schema
from likewise.report.document import twins_document


def lends(table):
    return (table["pay"] > 12.5).to_numpy()


@pytest.fixture(scope="module")
def people(planted):
    return planted(300, 0, linear=True)[0]


@pytest.fixture(scope="module")
def study(people, planted_graph):
    given = Consequences(graph=planted_graph, boosting=Boosting(n_iter=10))
    return twin_study(lends, people, "sex", consequences=given)


def test_three_questions_are_answered_side_by_side(study, people):
    assert [answer.question for answer in study.answers] == ["attribute", "consequences", "matched"]
    assert study["attribute"].changed.value == 0
    assert study["consequences"].changed.value > 0.1
    for answer in study.answers:
        assert answer.n == len(people) == sum(group.n for group in answer.groups)
        if answer.question != "consequences":
            assert answer.changed.low <= answer.changed.value <= answer.changed.high
        assert answer.changed.value * answer.n == pytest.approx(answer.flips.sum())
        weighted = sum(group.n * group.changed.value for group in answer.groups)
        assert weighted == pytest.approx(answer.n * answer.changed.value)


def test_who_changes_only_under_one_question_is_who_does(study):
    flips = np.stack([answer.flips for answer in study.answers])
    for answer in study.answers:
        alone = np.flatnonzero(answer.flips & (flips.sum(axis=0) == 1))
        assert study.only_under[answer.question].tolist() == alone.tolist()


def test_the_effect_is_what_everybody_has_as_the_one_less_as_the_other(people):
    score = lambda table: (table["pay"] + 2 * (table["sex"] == "M") > 12.5).to_numpy()  # noqa: E731
    found = twin_study(score, people, "sex", questions=["attribute"])["attribute"]
    truth = score(people.assign(sex="M")).mean() - score(people.assign(sex="F")).mean()
    assert found.effects[0].value == pytest.approx(truth)


def test_refits_widen_the_interval_and_the_same_seed_gives_the_same(people, planted_graph, study):
    given = Consequences(graph=planted_graph, boosting=Boosting(n_iter=10))
    asked = {"questions": ["consequences"], "consequences": given, "refits": 4, "random_state": 3}
    one, two = (twin_study(lends, people, "sex", **asked)["consequences"] for _ in range(2))
    assert one.effects == two.effects
    plain = study["consequences"].effects[0]
    assert one.effects[0].value == plain.value
    assert one.effects[0].high - one.effects[0].low > 0.01
    assert "refits" in one.interval


def test_implausible_twins_are_counted_always_and_dropped_by_choice():
    data = lw.datasets.load_adult().frame.iloc[:1500].reset_index(drop=True)
    model = lambda table: (table["age"] > 40).to_numpy()  # noqa: E731
    kept = twin_study(model, data, "sex", questions=["attribute"])["attribute"]
    dropped = twin_study(model, data, "sex", questions=["attribute"], implausible="drop")["attribute"]
    husbands = int(((data["relationship"] == "Husband") & (data["sex"] == "Male")).sum())
    assert kept.n_implausible == dropped.n_implausible >= husbands
    assert kept.n == len(data)
    assert kept.dropped == {}
    assert dropped.n == len(data) - dropped.n_implausible
    assert dropped.dropped == {"such people are not plausible": dropped.n_implausible}
    assert kept.validity == dropped.validity
    assert kept.validity.value == pytest.approx(1 - kept.n_implausible / len(data))


def test_plausible_is_what_so_many_real_people_are():
    data = lw.datasets.load_adult().frame.iloc[:1500].reset_index(drop=True)
    for level in (0.8, 0.95):
        looks = learn_plausibility(data, "sex", level=level)
        near = looks.squared_distance(data, np.arange(len(data))) <= looks.limit
        assert abs(near.mean() - level) < 0.02


def test_a_study_is_a_document_a_table_and_words(study):
    document = twins_document(study)
    schema = json_schema()
    jsonschema.validate(document, {"$ref": "#/$defs/twinStudy", "$defs": schema["$defs"]})
    assert len(study.table[1]) == 9
    assert "the attribute and its consequences" in str(study)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"questions": ["twins"]}, "'attribute', 'consequences' and 'matched'"),
        ({"questions": ["consequences"]}, "needs to know them"),
        ({"implausible": "hide"}, "'keep' or 'drop'"),
        ({"refits": 1}, "2 and more"),
        ({"level": 1.5}, "level"),
        ({"questions": ["matched"], "matched": MatchedTwins("job")}, "differ in job, not in 'sex'"),
        (
            {"questions": ["consequences"], "consequences": AttributeTwins({"sex": ["F", "M"]}), "refits": 2},
            "no method anew",
        ),
    ],
)
def test_what_cannot_be_studied_says_why(people, choices, words):
    with pytest.raises(lw.InputError, match=words):
        twin_study(lends, people, "sex", **choices)


def test_words_as_decisions_three_groups_and_numbers_as_predictions():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"race": rng.choice(["a", "b", "c"], 90), "x": rng.normal(size=90), "z": rng.normal(size=90)}
    )
    decides = lambda t: np.where((t["race"] == "a") | (t["x"] > 0), "yes", "no")  # noqa: E731
    words = twin_study(decides, people, "race", questions=["attribute"])
    assert [effect.name for effect in words["attribute"].effects] == ["b less a", "c less a"]
    numbers = twin_study(lambda t: t["x"].to_numpy() + (t["race"] == "c"), people, "race",
                         questions=["attribute"], tolerance=0.5)  # fmt: skip
    assert numbers["attribute"].changed.value == 1.0
    assert numbers["attribute"].effects[1].value == pytest.approx(1.0)


def test_comparators_shared_by_many_make_intervals_wider(people):
    shared = twin_study(lends, people, "sex", questions=["matched"])["matched"]
    alone = twin_study(
        lends, people, "sex", questions=["matched"], matched=MatchedTwins("sex", replace=False)
    )
    assert shared.changed.method == "Abadie and Imbens"
    assert alone["matched"].changed.method == "exact"
    assert alone["matched"].dropped


def test_people_that_cannot_be_studied_say_why(people):
    with pytest.raises(lw.InputError, match="cannot be learned from 1 of them"):
        twin_study(lends, people.iloc[:1], Edit("sex", ["F", "M"]), questions=["attribute"])
    with pytest.raises(lw.InputError, match="twin_study: 'people' has missing values: 'age'"):
        twin_study(lends, people.assign(age=np.nan), "sex", questions=["attribute"])
    with pytest.raises(lw.InputError, match="twin_study: 'people' has no column 'sexx'"):
        twin_study(lends, people, "sexx", questions=["attribute"])


def test_refits_keep_every_group_and_groups_of_a_few_are_named(people):
    some = pd.concat([people[people["sex"] == "M"].iloc[:40], people[people["sex"] == "F"].iloc[:2]])
    given = Consequences(graph={"sex": ["pay"]}, boosting=Boosting(n_iter=5))
    found = twin_study(
        lends, some, "sex", consequences=given, refits=8, questions=["attribute", "consequences"]
    )
    assert found["consequences"].n == len(some)  # two women of 42 are missing in one draw of eight
    assert "only 2 people have sex = F" in str(found)
    assert found["attribute"].notes == ()


def test_whose_group_is_none_of_those_compared_has_no_consequences(people):
    rng = np.random.default_rng(0)
    coded = people.assign(group=rng.choice([1, 2, 3], len(people)))
    given = Consequences(graph={"group": ["pay"]}, boosting=Boosting(n_iter=5))
    answer = twin_study(lends, coded, Edit("group", [1, 2]), consequences=given, questions=["consequences"])[
        "consequences"
    ]
    third = int((coded["group"] == 3).sum())
    assert answer.n == len(people) - third
    assert answer.dropped == {"their own group is not among those compared": 2 * third}


def test_shares_on_which_all_agree_have_an_interval_all_the_same(people):
    always = lambda table: np.ones(len(table), dtype=bool)  # noqa: E731
    matched = twin_study(always, people, "sex", questions=["matched"])["matched"]
    assert matched.changed.value == matched.changed.low == 0
    assert 0 < matched.changed.high < 0.05


def pairs_of(y, other, neighbour, comparator):
    """Outcomes of people with score y whose comparators are given, and of everybody's nearest neighbour."""
    n = len(y)
    outcomes = Outcomes(
        ("a", "b"), np.array([1]), np.zeros((1, n), bool), np.ones((1, n), bool), y[None].repeat(2, 0) > 0.5,
        np.stack([y, other[comparator]]), None,
    )  # fmt: skip
    scores = np.stack([neighbour, neighbour[comparator]])
    return outcomes, SharedPeople(np.stack([np.arange(n), n + comparator]), scores > 0.5, scores, False)


def test_the_variance_of_shared_comparators_is_that_of_abadie_and_imbens():
    rng = np.random.default_rng(0)
    n = 20_000
    y, other, neighbour = rng.normal(size=(3, n))
    comparator = rng.integers(0, 8_000, n)
    outcomes, shared = pairs_of(y, other, neighbour, comparator)
    # The same people are comparators of these, so a person's neighbour stands for that of the comparator as well.
    change = other[comparator] - y
    times = np.bincount(comparator, minlength=n)
    noise = (other - neighbour) ** 2 / 2
    truth = 1 + float((noise * (times**2 - times)).sum() / ((change - change.mean()) ** 2).sum())
    found = shared.design_effect(Outcomes.change, outcomes, np.arange(n))
    # The part that is in the variance of the people already is estimated by one draw for each of them.
    assert found == pytest.approx(truth, rel=0.02)
    assert found > 1.5


def test_distinct_pairs_are_counted_once(people):
    matched = MatchedTwins("sex", replace=False)
    answer = twin_study(lends, people, "sex", questions=["matched"], matched=matched)["matched"]
    pairs = int((people["sex"] == "F").sum())
    pairs = min(pairs, len(people) - pairs)
    assert answer.n == 2 * pairs
    changed = int(answer.flips.sum()) // 2
    assert (answer.changed.low, answer.changed.high) == pytest.approx(
        tuple(proportion_interval(changed, pairs))
    )
    women = answer.groups[0]
    assert (women.changed.low, women.changed.high) == pytest.approx(
        tuple(proportion_interval(changed, pairs))
    )


def test_groups_that_do_not_overlap_are_not_called_comparable():
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 300)
    apart = pd.DataFrame(
        {"sex": np.where(sex, "M", "F"), "x": rng.normal(size=300) + 8 * sex, "z": rng.normal(size=300)}
    )
    with pytest.warns(UserWarning, match="hardly overlap"):
        answer = twin_study(lambda t: t["x"] > 4, apart, "sex", questions=["matched"])["matched"]
    assert answer.changed.value > 0.95
    assert answer.validity.value < 0.05
    assert "median distance in all columns" in answer.notes[0]
    near = apart.assign(x=apart["x"] - 8 * sex)
    answer = twin_study(lambda t: t["x"] > 4, near, "sex", questions=["matched"])["matched"]
    assert answer.validity.value > 0.85


def test_the_e_value_is_the_published_one_and_is_told(people, planted_graph):
    assert e_value(3.9) == pytest.approx(7.26, abs=0.01)  # VanderWeele and Ding (2017), their example
    assert e_value(1.8) == pytest.approx(3.0, abs=0.01)
    assert e_value(1 / 1.8) == pytest.approx(3.0, abs=0.01)
    given = Consequences(graph=planted_graph, boosting=Boosting(n_iter=5))
    study = twin_study(
        lends, people, "sex", consequences=given, refits=2, questions=["consequences", "attribute"]
    )
    answer = study["consequences"]
    assert study["attribute"].e_values == ()
    point, limit = answer.e_values[0]
    assert 1.0 <= limit < point
    assert "do not include a wrong graph or an unobserved confounder" in str(study)
    assert any("risk ratio" in note or "no unobserved confounder" in note for note in answer.notes)


def test_learned_consequences_have_no_interval_without_refits(study):
    answer = study["consequences"]
    assert np.isnan([answer.changed.low, answer.effects[0].high, answer.groups[0].change.low]).all()
    assert answer.interval.startswith("none")


def test_nobody_needs_to_change_if_nothing_follows_from_the_attribute():
    """What is learned from 150 people changes some decisions either way; the interval of the share never held 0."""
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 150), "pay": rng.normal(size=150)})
    given = Consequences(graph={"sex": ["pay"]}, boosting=Boosting(n_iter=5))
    decide = lambda table: table["pay"] > 0.0  # noqa: E731
    asked = {"consequences": given, "questions": ["consequences"], "refits": 10}
    answer = twin_study(decide, people, "sex", **asked)["consequences"]
    assert answer.changed.value > 0.02
    assert answer.changed.low == answer.groups[0].changed.low == 0.0
    moved = people.assign(pay=people["pay"] + 2.0 * (people["sex"] == "M"))
    shown = twin_study(decide, moved, "sex", **asked)["consequences"]
    assert 0.1 < shown.changed.low < shown.changed.value < shown.changed.high
