"""Hard rules: the same twins as the candidates of audits make today, nothing broken, nothing dropped in silence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.counterfactuals import (
    ConsequenceTwins,
    Forbidden,
    Implication,
    Rules,
    ValueMap,
    learn_rules,
    read_rules,
)

SPOUSES = {
    "map": [
        {"when": {"sex": "Female"}, "column": "relationship", "values": {"Husband": "Wife"}},
        {"when": {"sex": "Male"}, "column": "relationship", "values": {"Wife": "Husband"}},
    ],
    "implies": [
        {"if": {"relationship": "Husband"}, "then": {"sex": "Male"}},
        {"if": {"relationship": "Wife"}, "then": {"sex": "Female"}},
    ],
}
TOML = """
[[map]]
when = {sex = "Female"}
column = "relationship"
values = {Husband = "Wife"}

[[map]]
when = {sex = "Male"}
column = "relationship"
values = {Wife = "Husband"}

[[implies]]
if = {relationship = "Husband"}
then = {sex = "Male"}

[[implies]]
if = {relationship = "Wife"}
then = {sex = "Female"}
"""


@pytest.fixture(scope="module")
def adult():
    return lw.datasets.load_adult().frame.iloc[:3000].reset_index(drop=True)


def test_with_rules_only_sex_and_spouse_change(adult):
    clean = adult[~Rules.broken(read_rules(SPOUSES, owner="x"), adult)].reset_index(drop=True)
    made = ConsequenceTwins("sex", rules=SPOUSES).fit(clean).make(clean)
    other = clean.assign(
        sex=clean["sex"].map({"Male": "Female", "Female": "Male"}),
        relationship=clean["relationship"].replace({"Husband": "Wife", "Wife": "Husband"}),
    )
    male = (clean["sex"] == "Male").to_numpy()
    pd.testing.assert_frame_equal(made.tables[0][male], other[male], check_dtype=False)
    pd.testing.assert_frame_equal(made.tables[1][~male], other[~male], check_dtype=False)
    pd.testing.assert_frame_equal(made.tables[1][male], clean[male])


@pytest.mark.parametrize("rules", [SPOUSES, "learned"])
@pytest.mark.parametrize(
    "graph", [None, {"sex": ["marital-status", "hours-per-week"], "marital-status": ["relationship"]}]
)
def test_every_twin_keeps_all_rules_and_the_domain(adult, rules, graph):
    maker = ConsequenceTwins("sex", rules=rules, graph=graph).fit(adult)
    made = maker.make(adult)
    domain = lw.TabularDomain.from_frame(adult)
    assert maker.rules_.sentences()
    for table, compared in zip(made.tables, made.compared, strict=True):
        assert not maker.rules_.broken(table[compared]).any()
        assert domain.validate(table) == ()
    flagged = sum(int(mask.sum()) for mask in made.why_not.values())
    assert flagged == int((~made.usable).sum())


def test_twins_that_break_a_rule_without_a_map_are_flagged_never_silent(adult):
    rules = Rules(forbidden=(Forbidden({"sex": "Female", "relationship": "Husband"}),))
    made = ConsequenceTwins("sex", rules=rules).fit(adult).make(adult)
    husbands = ((adult["relationship"] == "Husband") & (adult["sex"] == "Male")).to_numpy()
    ((why, mask),) = made.why_not.items()
    assert str(why) == "they break a rule"
    assert mask[0].tolist() == husbands.tolist()
    assert not made.usable[0][husbands].any()


def test_the_file_and_the_dict_say_the_same(tmp_path):
    (tmp_path / "rules.toml").write_text(TOML)
    assert read_rules(tmp_path / "rules.toml", owner="x") == read_rules(SPOUSES, owner="x")


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"maps": []}, "did you mean 'map'"),
        ({"map": {"when": 1}}, "must be a list"),
        ({"map": [{"when": {"sex": "F"}, "column": "job"}]}, "has no 'values'"),
        ({"implies": [{"if": {"sex": "F"}}]}, "has no 'then'"),
        ({"forbid": [{}]}, "columns with values"),
        (
            {"map": [{"when": {"sex": "F"}, "column": "job", "values": {"a": "b"}, "unless": 1}]},
            "has 'unless'",
        ),
        ({"implies": [{"if": {"sex": "F"}, "thn": {"job": "a"}}]}, "did you mean 'then'"),
        ("nowhere.toml", "there is no file"),
        (7, "got int"),
    ],
)
def test_rules_that_cannot_be_read_say_why(rules, words):
    with pytest.raises(lw.InputError, match=words):
        read_rules(rules, owner="x")


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (
            Rules(maps=(ValueMap({"sex": "Female"}, "relationship", {"Husbnd": "Wife"}),)),
            "'Husbnd', which never occurs",
        ),
        (Rules(implications=(Implication({"nowhere": 1}, {"sex": "Male"}),)), "nowhere"),
        (
            Rules(maps=(ValueMap({"sex": "Femal"}, "relationship", {"Husband": "Wife"}),)),
            "speaks of 'sex' with 'Femal'.*did you mean 'Female'",
        ),
        (Rules(implications=(Implication({"relationship": "Husband"}, {"sex": "Mle"}),)), "'Mle'"),
        (Rules(forbidden=(Forbidden({"sex": "Male", "relationship": ["Wif"]}),)), "'Wif'"),
        (
            Rules(
                maps=(
                    ValueMap({"sex": "Female"}, "relationship", {"Husband": "Wife"}),
                    ValueMap({"sex": ["Female"]}, "relationship", {"Husband": "Unmarried"}),
                )
            ),
            "contradict each other",
        ),
        (
            Rules(
                implications=(
                    Implication({"relationship": "Wife"}, {"sex": "Female"}),
                    Implication({"relationship": "Wife"}, {"sex": "Male"}),
                )
            ),
            "contradict each other",
        ),
        (Rules(maps=(ValueMap({"race": "White"}, "sex", {"Male": "Female"}),)), "the column that is edited"),
    ],
)
def test_rules_that_do_not_fit_the_table_say_why(adult, rules, words):
    with pytest.raises(lw.InputError, match=words):
        ConsequenceTwins("sex", rules=rules).fit(adult)


def test_learned_rules_name_their_support_and_their_counterparts(adult):
    learned = learn_rules(adult, "sex")
    found = {(r.value, r.other): r.becomes for r in learned.found if r.column == "relationship"}
    assert found == {("Female", "Husband"): "Wife", ("Male", "Wife"): "Husband"}
    for rule in learned.found:
        both = ((adult["sex"] == rule.value) & (adult[rule.column] == rule.other)).sum()
        independent = (
            (adult["sex"] == rule.value).sum() * (adult[rule.column] == rule.other).sum() / len(adult)
        )
        assert rule.seen == both
        assert rule.expected == pytest.approx(independent)
        assert rule.expected >= 20


def test_what_chance_explains_is_no_rule():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 400), "job": rng.choice(list("abcdefgh"), 400)})
    assert learn_rules(people, "sex").found == ()


def test_maps_of_numbers_come_from_a_file_and_pass_over_missing_cells(tmp_path):
    (tmp_path / "rules.toml").write_text('[[map]]\nwhen = {sex = "F"}\ncolumn = "code"\nvalues = {3 = 1}\n')
    people = pd.DataFrame({"sex": ["F", "M", "M", "M"], "code": pd.array([1, 3, 2, None], dtype="Int64")})
    (women, _) = ConsequenceTwins("sex", rules=tmp_path / "rules.toml").fit(people).make(people).tables
    assert women["code"].tolist()[:3] == [1, 1, 2]
    assert women["code"].isna().tolist() == [False, False, False, True]
