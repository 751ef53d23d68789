"""Three kinds of twins side by side: counts, intervals, validity, who changes under one question only."""

from __future__ import annotations

import jsonschema
import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.report import json_schema
from likewise.report.twin_documents import twins_document, twins_table
from likewise.twins import Boosting, Consequences, MatchedTwins, learn_plausibility, twin_study


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
    assert one.effects[0].high - one.effects[0].low > plain.high - plain.low
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
    assert dropped.dropped == {"they could be nobody": dropped.n_implausible}
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
    assert twins_table(study).row_count == 9
    assert "the attribute and its consequences" in str(study)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"questions": ["twins"]}, "'attribute', 'consequences' and 'matched'"),
        ({"questions": ["consequences"]}, "needs to know them"),
        ({"implausible": "hide"}, "'keep' or 'drop'"),
        ({"refits": 1}, "2 and more"),
        ({"level": 1.5}, "level"),
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
    assert shared.changed.method == "clustered by comparator"
    assert alone["matched"].changed.method == "exact"
    assert alone["matched"].dropped
