"""Every page comes from one template, and says what a reader has to know before anything else."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.core.messages import Texts
from likewise.improving.output import render_improvement
from likewise.models import as_model
from likewise.report import (
    Comparison,
    Provenance,
    ProxyFindings,
    audit_document,
    comparison_document,
    document_of,
    render_html,
    write_html,
)
from likewise.report.templates import asset
from likewise.report.writing import text_of
from likewise.text import audit_scores

MADE = Provenance("2026-01-02T03:04:05Z", seed=3, command="likewise audit m t")


def model(frame):
    """Skill, and a bonus for men."""
    return 1 / (1 + np.exp(-(frame["skill"] + 0.8 * (frame["sex"] == "M") - 0.4).to_numpy(dtype=float)))


def people(n=80):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "skill": random.normal(size=n),
            "lvr": random.uniform(size=n).round(10),
            "sex": random.choice(["F", "M"], n),
        }
    )


def default_audit(frame=None, **choices):
    frame = people() if frame is None else frame
    y = (frame["skill"] > 0).astype(int)
    return lw.audit(model, frame, y, sensitive_features=["sex"], favourable=1, **choices)


@cache
def improved():
    from likewise.improving import improve
    from likewise.improving.candidates import BoostingCandidate

    frame = people(160)
    few = {"n_estimators": 5, "max_depth": 2}
    given = [
        BoostingCandidate("plain", "", blind=False, choices=few),
        BoostingCandidate("blind", "", choices=few),
    ]
    y = (model(frame) > 0.5).astype(int)
    return improve(frame, y, sensitive_features=["sex"], candidates=given, folds=2)


def scores_page():
    rows = [
        (text, variant, text % 2 + shift)
        for text in range(8)
        for variant, shift in [("baseline", 0), ("name_a", 0), ("name_b", -1), ("placebo_1", 0)]
    ]
    found = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    return render_html(document_of(found, provenance=MADE))


def verification_page():
    from sklearn.tree import DecisionTreeClassifier

    frame = pd.DataFrame({"age": [20, 30, 40, 50], "sex": [0, 1, 0, 1]})
    tree = DecisionTreeClassifier().fit(frame, ["refused", "granted", "refused", "granted"])
    found = lw.verify(tree, frame, sensitive_features=["sex"])
    return render_html(document_of(found, name="tree", provenance=MADE))


def proxies_page():
    frame = people(200)
    found = lw.proxy_test(
        lambda table: (table["skill"] > 0).astype(int), frame, "sex", y=frame["skill"] > 0.2
    )
    groups = pd.DataFrame(
        {"F": np.where(frame["sex"] == "F", 0.9, 0.1), "M": np.where(frame["sex"] == "F", 0.1, 0.9)}
    )
    given = lw.group_probabilities(groups)
    disparity = lw.disparity_bounds(frame["skill"] > 0, given, favourable=True)
    return render_html(document_of(ProxyFindings(found, disparity, given), provenance=MADE))


def explanation_pages():
    from sklearn.tree import DecisionTreeClassifier

    frame = people(60).assign(sex=lambda table: (table["sex"] == "M").astype(int))
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    tree.fit(frame, (frame["skill"] + 0.8 * frame["sex"] > 0.4).astype(int))
    refused = int(np.flatnonzero(tree.predict(frame) == 0)[0])
    asked = {"sensitive_features": ["sex"], "favourable": 1}
    person = lw.explain(tree, frame, refused, **asked)
    burden = lw.recourse(tree, frame, sample=5, **asked)
    return {
        "person": render_html(document_of(person, provenance=MADE)),
        "recourse": render_html(document_of(burden, provenance=MADE)),
    }


@pytest.fixture(scope="module")
def pages():
    result = default_audit()
    wider = default_audit(eps=0.0)
    both = Comparison.of({"one": (None, wider), "two": (None, wider)})
    return {
        "audit": render_html(audit_document(result, provenance=MADE)),
        "comparison": render_html(comparison_document(both, provenance=MADE)),
        "improvement": render_improvement(improved(), provenance=MADE),
        "scores": scores_page(),
        "verification": verification_page(),
        "proxies": proxies_page(),
        **explanation_pages(),
    }


def shown(page):
    """The text of a page without style, scripts and data, and without its annex."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body.split('id="annex"')[0]))


KINDS = ("audit", "comparison", "improvement", "scores", "verification", "person", "recourse", "proxies")


def nothing_found():
    """Results of every kind about models that treat everybody alike, by name."""
    from sklearn.tree import DecisionTreeClassifier

    frame = people(60).assign(sex=lambda table: (table["sex"] == "M").astype(int))
    y = (frame["skill"] > 0).astype(int)
    tree = DecisionTreeClassifier(max_depth=1).fit(frame, y)
    asked = {"sensitive_features": ["sex"], "favourable": 1}
    refused, granted = (int(np.flatnonzero(y == name)[0]) for name in (0, 1))

    def generous(table):
        return np.ones(len(table), dtype=int)

    return {
        "not read": lambda: lw.audit(tree, frame, y, **asked),
        "all alike": lambda: lw.audit(generous, frame, **asked),
        "verified, not read": lambda: lw.verify(tree, frame, sensitive_features=["sex"]),
        "verified by asking": lambda: lw.verify(
            lambda table: y[table.index], frame, sensitive_features=["sex"]
        ),
        "refused": lambda: lw.explain(tree, frame, refused, **asked),
        "granted": lambda: lw.explain(tree, frame, granted, **asked),
        "nobody refused": lambda: lw.recourse(generous, frame, **asked),
        "no proxies": lambda: ProxyFindings(lw.proxy_test(generous, frame, "sex"), None, None),
    }


@pytest.mark.parametrize("name", nothing_found())
def test_a_page_can_say_that_nothing_was_found(name):
    """Broke once: the page of a verification without a single pair."""
    found = nothing_found()[name]()
    for language in ("en", "de"):
        assert 'class="badge"' in render_html(document_of(found, provenance=MADE), language=language)
    assert str(found)


def test_a_choice_is_green_only_if_it_is_no_less_fair_to_people_held_out():
    found = improved()
    assert found.chosen != found.reference.name
    assert 'class="card answer is-good"' in render_improvement(found)
    worse = tuple(replace(m, value=1.0) if m.name == found.rule.least[0] else m for m in found.unseen.figures)
    page = render_improvement(replace(found, unseen=replace(found.unseen, figures=worse)))
    assert 'class="card answer is-plain"' in page


@pytest.mark.parametrize("limit", [None, 1.0])
def test_no_badge_of_an_audit_looks_like_all_is_good(limit):
    """Broke once: a green tick beside "Not read by the model", since the limit was kept."""
    frame = people(40)
    for score in (lambda t: t["skill"] > 0, lambda t: t["sex"] == "M"):
        page = render_html(document_of(lw.audit(score, frame, sensitive_features=["sex"], limit=limit)))
        assert "is-good" not in page.split("<body")[1]


def test_pairs_without_a_share_are_counted_and_not_called_none_of_everybody():
    frame = people(40).assign(sex=lambda table: (table["sex"] == "M").astype(int))
    asked = lw.verify(
        lambda table: (table["skill"] + table["sex"] > 0.5).astype(int), frame, sensitive_features=["sex"]
    )
    assert asked.flips == 0
    pairs = len(asked.examples) // 2
    text = shown(render_html(document_of(asked)))
    assert f"{pairs} pairs were found that differ in sex alone" in text
    assert f"a different one, shown {pairs} pairs found" in text
    assert "0.000% are shown" not in text + str(asked)


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_comes_from_one_template(pages, kind):
    page = pages[kind]
    order = [
        '<p class="mark">', "<h1>", '<dl class="scope">', 'id="answer"', 'class="badge"', 'class="sentence"',
        'id="not-shown"', 'id="next"', 'class="card sign-off print-only"', 'id="annex"', 'id="provenance"',
        '<footer class="wrap foot">',
    ]  # fmt: skip
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert page.count("<style>") == 1
    assert asset("page.css") in page
    scope = shown(page).split("Depends")[0]
    assert "2026-01-02 03:04:05" in scope
    assert "likewise audit m t" in scope


def test_there_are_five_sizes_of_type_and_no_other():
    found = set(re.findall(r"font(?:-size)?:\s*([^;}]+)", asset("page.css")))
    sizes = {value for value in found if value.startswith("var(--")}
    assert {value.split(")")[0] for value in sizes} <= {
        f"var(--{s}" for s in ("small", "text", "lead", "head", "title")
    }
    # Besides: what is inherited, and the numbers of printed pages.
    assert all(value in sizes or value in ("inherit", "8pt sans-serif") for value in found)


@pytest.mark.parametrize("kind", KINDS)
def test_words_that_mislead_are_not_on_a_page(pages, kind):
    text = shown(pages[kind]).lower()
    for word in ("harm", "pure ", "twin", "nothing proved"):
        assert word not in text, word


def test_an_audit_that_asks_nothing_more_speaks_of_nothing_more(pages):
    body = re.sub(r"<(script|style)\b.*?</\1>", "", pages["audit"], flags=re.DOTALL)
    for word in ("ε", "δ", "mean loss", "gap", "metric", "search"):
        assert word not in body, word
    frame = people()
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    asked = lw.audit(model, frame, (frame["skill"] > 0).astype(int), metric=metric, eps=0.1)
    annex = render_html(audit_document(asked)).split('id="annex"')[1]
    assert "Among people a little apart (ε = 0.1)" in annex


def test_the_first_screen_answers_what_is_asked(pages):
    frame = people()
    women, men = frame[frame["sex"] == "F"], frame[frame["sex"] == "M"]
    lose = int(((model(men) > 0.5) & (model(men.assign(sex="F")) <= 0.5)).sum())
    gain = int(((model(women) <= 0.5) & (model(women.assign(sex="M")) > 0.5)).sum())
    assert lose
    assert gain
    card = shown(pages["audit"].split('id="who"')[0])
    for words in (
        "Depends on sex", f"{lose + gain} of 80 people", "The dependence is to the disadvantage of people recorded as F.",
        f"{lose} lose", f"{gain} gain", f"Together {lose + gain} of 80", f"the {lose} who get “1” now and would lose it", "Exact for these 80 people", "95% confidence interval", f"Review first the {gain} people who do not get", "What this does not show", "What next",
    ):  # fmt: skip
        assert words in card, words
    # Who is at a disadvantage, before any count: those who "would lose" are not the harmed.
    assert card.index("to the disadvantage of people recorded as F") < card.index(
        f"{lose + gain} of 80 people"
    )
    assert "proved" not in shown(pages["audit"])


def test_more_people_to_review_than_are_listed_are_said():
    document = audit_document(default_audit(people(12_000)))
    gain, listed = document["summary"]["directions"]["gain"], len(document["summary"]["people"])
    assert listed < gain
    text = shown(render_html(document))
    assert f"would get it with another entry for sex: {listed} of them are in the list below" in text
    assert "first in the list below" not in text


def test_both_kinds_of_changed_people_are_counted_and_listed():
    frame = people(3000)
    summary = audit_document(default_audit(frame))["summary"]
    kinds = [row["direction"] for row in summary["people"]]
    now, other = (model(frame) > 0.5), model(frame.assign(sex=frame["sex"].map({"F": "M", "M": "F"}))) > 0.5
    lose, gain = int((now & ~other).sum()), int((~now & other).sum())
    assert summary["directions"] == {"gain": gain, "lose": lose, "other": 0}
    assert 100 < gain < 500
    # Those to review first come first, all of them if there is room.
    assert kinds == ["gain"] * gain + ["lose"] * min(lose, 500 - gain)
    text = shown(render_html(audit_document(default_audit(frame))))
    assert (
        f"{lose + gain} people: first {gain} who do not get “1” now and would gain it, then {lose} who get “1” now and "
        "would lose it." in text
    )
    assert f"Review first the {gain} people who do not get “1” and would get it" in text
    assert "All of them are recorded as F and would get it as M." in text
    assert "decide again about the people reviewed" in text
    example = summary["people"][0]
    assert example["direction"] == "gain"
    # A plain index counts from 0; a reader counts rows from 1.
    assert f"Row {example['row'] + 1} of the table, counted from 1" in text
    assert frame["skill"][example["row"]] == pytest.approx(example["cells"]["skill"])


def test_those_to_review_are_counted_by_the_entry_at_a_disadvantage():
    """As counted by asking the model; people with that entry come first in the list."""
    random = np.random.default_rng(1)
    frame = people(400).assign(race=random.choice(["a", "b"], 400), luck=random.choice([-1, 1], 400))

    def decided(table):
        bonus = 0.8 * (table["sex"] == "M") + 0.5 * (table["race"] == "b") * table["luck"].clip(lower=-0.4)
        return (table["skill"] + bonus > 0.4).astype(int).to_numpy()

    result = lw.audit(decided, frame, sensitive_features=["sex", "race"], favourable=1)
    refused = decided(frame) == 0
    gains = {
        (name, own, other): refused & (frame[name] == own) & (decided(frame.assign(**{name: other})) == 1)
        for name, own, other in (("sex", "F", "M"), ("race", "a", "b"), ("race", "b", "a"))
    }
    sex, race, back = (int(who.sum()) for who in gains.values())
    assert race > back > 0
    total = audit_document(result)["summary"]["directions"]["gain"]
    text = shown(render_html(audit_document(result)))
    assert f"Review first the {total} people" in text
    counted = f"{sex} recorded as F who would get it as M and {race} recorded as a who would get it as b."
    assert f"Among them: {counted}" in text
    single = [one for one in result.listed if result.direction(one) == "gain" and one.changes == 1]
    better = [one.twin in ({"sex": "M"}, {"race": "b"}) for one in single]
    assert better == sorted(better, reverse=True)
    assert 0 < sum(better) < len(better)


@pytest.mark.parametrize("room", [5000, 50])
def test_of_three_decisions_nobody_is_counted_as_gaining_who_would_not(monkeypatch, room):
    """Broke once: of more people of one decision than are listed, those beyond the list all counted as gaining."""
    frame = people(300)

    def three(table):
        # Women get "b" instead of "c", which is no gain; a few of both get "a", the favourable one.
        top = table["skill"] > 1.9
        return np.eye(3)[np.where(top, 0, np.where(table["sex"] == "F", 1, 2))]

    monkeypatch.setattr("likewise.auditing.results.effects.MAX_LISTED", room)
    model = as_model(three, classes=["a", "b", "c"], takes_frame=True)
    result = lw.audit(model, frame, sensitive_features=["sex"], favourable="a")
    document = audit_document(result)
    changed = int((frame["skill"] <= 1.9).sum())
    known = {"gain": 0, "lose": 0, "other": changed}
    assert document["summary"]["directions"] == (
        known if room == 5000 else {"gain": None, "lose": 0, "other": None}
    )
    text = shown(render_html(document))
    assert (f"{changed} whose decision would change in another way" in text) == (room == 5000)
    assert (f"100 of {changed} people are listed" in text) == (room == 50)
    assert "who do not get “a” and would get it" not in text


def test_who_would_gain_by_any_entry_is_listed_as_gaining():
    """Broke once: listed as "would differ", because the first of three other entries gives a third decision."""
    frame = pd.DataFrame({"skill": [0.0, 1.0] * 6, "race": ["x", "y", "z"] * 4})
    codes = {"x": 2, "y": 1, "z": 0}

    def three(table):
        return np.eye(3)[table["race"].map(codes).to_numpy(dtype=int)]

    model = as_model(three, classes=["high", "middle", "low"], takes_frame=True)
    result = lw.audit(model, frame, sensitive_features=["race"], favourable="high")
    kinds = {
        (row["cells"]["race"], row["change"]["race"], row["instead"], row["direction"])
        for row in audit_document(result)["summary"]["people"]
    }
    assert {one for one in kinds if one[0] != "z"} == {("x", "z", "high", "gain"), ("y", "z", "high", "gain")}
    assert {one[3] for one in kinds if one[0] == "z"} == {"lose"}
    counted = result.effects.query("instead == 'z'")["gain"].sum()
    assert counted == 8 == audit_document(result)["summary"]["directions"]["gain"]


def test_people_of_a_frame_are_counted_from_1_by_everybody():
    """The first row of a frame is row 1, whoever tells it."""
    from sklearn.tree import DecisionTreeClassifier

    frame = pd.DataFrame({"age": [20, 30, 40, 50], "sex": [0, 1, 0, 1]})
    tree = DecisionTreeClassifier().fit(
        frame[["sex"]].assign(age=1)[["age", "sex"]], ["no", "yes", "no", "yes"]
    )
    asked = {"sensitive_features": ["sex"]}
    first = {
        "verify": lw.verify(tree, frame, **asked),
        "recourse": lw.recourse(tree, frame, favourable="yes", **asked),
        "explain": lw.explain(tree, frame, 0, favourable="yes", **asked),
    }
    for verb, found in first.items():
        told = shown(render_html(document_of(found)))
        told = f"{told} {text_of(found)}".lower()
        assert "row 0 of" not in told, verb
        assert "row 1 of the table, counted from 1" in told, verb


def test_the_page_says_what_is_assumed_and_what_is_not_judged(tmp_path):
    """What first-time readers stumbled over."""
    frame = people(3000)
    y = pd.Series((frame["skill"] > 0).astype(int), name="invited")
    result = lw.audit(model, frame, y, sensitive_features=["sex"])
    page = render_html(audit_document(result, provenance=MADE))
    text = shown(page)
    assert "Model model People 3,000 of 3,000 rows" in text
    assert "invited = 1 (assumed: please confirm)" in text
    assert "No limit was set, so this is neither a pass nor a fail." in text
    assert "gets “invited = 0”. With sex M instead, the same person would get “invited = 1”." in text
    assert "gets “invited = 0”; the same person with sex M would get “invited = 1”." in " ".join(
        str(result).split()
    )
    for told in ("may itself be biased", "Share ÷ highest share is the ratio of the four-fifths rule"):
        assert told in text
    heads = (
        "share ÷ highest share",
        "decision differs from recorded outcome",
        "favourable outcome recorded, but refused",
    )
    assert all(head in text for head in heads)
    assert "personal data of the people listed" in page
    declared = shown(render_html(audit_document(default_audit(frame, limit=0.5))))
    assert "1 (declared)" in declared
    assert "No limit was set" not in declared
    coded = shown(render_html(audit_document(lw.audit(model, frame, sensitive_features=["sex"]))))
    assert "1 (assumed; a code: please confirm what it stands for)" in coded
    # Only the group at a disadvantage stands out, and it comes first.
    (against,) = re.findall(r'<tr class="against">.*?</tr>', page, flags=re.DOTALL)
    assert "F → M" in against
    assert page.index('class="against"') < page.index("M → F")
    result.save(tmp_path / "people.csv")
    table = pd.read_csv(tmp_path / "people.csv")
    assert len(table) == result.changed.count
    assert table["direction"].tolist() == sorted(table["direction"], key="gain lose".index)
    # Rows are numbered as on the page, from 1.
    assert table["skill"].tolist() == pytest.approx(frame["skill"].iloc[table["row"] - 1].tolist())


def test_every_form_of_a_result_says_the_same_sentence_and_counts(tmp_path):
    result = default_audit(limit=0.01)
    result.save(tmp_path / "evidence")
    card = (tmp_path / "evidence" / "model_card.md").read_text(encoding="utf-8")
    notebook = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", result._repr_html_()))
    sentence = str(result.headline.sentence)
    forms = {
        "page": shown(render_html(audit_document(result))),
        "notebook": notebook,
        "terminal": " ".join(str(result).split()),
        "JSON": audit_document(result)["summary"]["sentence"],
        "evidence": card,
    }
    for form, text in forms.items():
        assert sentence in text, form
    for form in ("terminal", "notebook", "evidence"):
        assert "Favourable decision: 1." in forms[form], form
    assert "Favourable decision 1 (declared)" in forms["page"]
    for row in result.effects.itertuples(index=False):
        assert f"{row.attribute}: {row.recorded} → {row.instead} {row.lose} {row.gain}" in notebook
    for form in ("page", "notebook", "terminal"):
        assert str(result.headline.limit.sentence) in forms[form], form


def test_a_page_that_lists_nobody_speaks_of_no_personal_data():
    frame = people(60)
    blind = lw.audit(lambda table: model(table.assign(sex="F")), frame, sensitive_features=["sex"])
    page = render_html(audit_document(blind, provenance=MADE))
    assert blind.changed.count == 0
    assert "personal data" not in page
    recourse = explanation_pages()["recourse"]
    assert 'id="people"' not in recourse
    assert "personal data" not in recourse


def test_numbers_are_shown_as_they_are_recorded():
    frame = people().assign(lvr=0.9043478261)
    page = render_html(audit_document(default_audit(frame)))
    assert "0.9043478261" in shown(page)
    assert not re.search(r"\b0\.904\b", shown(page))


def test_people_are_named_by_their_line_of_the_file(tmp_path):
    frame = people(300)
    frame.assign(hired=(frame["skill"] > 0).astype(int)).to_csv(tmp_path / "people.csv", index=False)
    from likewise.auditing.auditor import audit_case
    from likewise.auditing.case import prepare_case, table_request
    from likewise.auditing.first_answer import AuditRequest
    from likewise.auditing.sources import loaded_model
    from likewise.data.case import read_people

    loaded = loaded_model(lw.models.as_model(model, takes_frame=True))
    asked = table_request(loaded, None, ["sex"], target="hired", sample=100, seed=0, keeps_missing=True)
    found = read_people(tmp_path / "people.csv", asked)
    request = AuditRequest(metric="columns", worst_case=False)
    result = audit_case(prepare_case(loaded, found, request, sensitive=["sex"]))
    document = audit_document(result)
    lines = (tmp_path / "people.csv").read_text().splitlines()
    assert document["summary"]["people"]
    for row in document["summary"]["people"]:
        assert lines[row["row"] - 1].startswith(repr(row["cells"]["skill"])[:9])
    page = render_html(document)
    summary = document["summary"]
    example = summary["people"][0]
    assert example["direction"] == "gain"
    assert f"Line {example['row']} of " in shown(page)
    assert "random sample of 100 of 300 rows" in shown(page)


def test_people_of_unknown_sex_are_nobody_elses():
    frame = people()
    frame.loc[:3, "sex"] = None
    page = render_html(audit_document(default_audit(frame)))
    text, women, men = shown(page), int((frame["sex"] == "F").sum()), int((frame["sex"] == "M").sum())
    assert re.search(rf"\bF {women} ", text)
    assert re.search(rf"\bM {men} ", text)
    assert re.search(r"\(missing\) 4 ", text)
    assert "nan" not in re.findall(r"\w+", text)


def test_a_group_gap_of_one_group_is_not_measured():
    frame = people()
    result = default_audit(frame, eps=0.0)
    y = (frame["skill"] > 0).astype(int)
    evaluation = lw.evaluate(
        lambda table: (model(table) > 0.5).astype(int), frame, y, sensitive_features=["sex"]
    )
    found = comparison_document(Comparison.of({"m": (evaluation, result)}))
    assert "not measured" not in shown(render_html(found))
    gaps = found["entries"][0]["audit"]["evaluation"]["gaps"][0]
    gaps["groups"] = gaps["groups"][:1]
    gaps["max"]["value"] = 0.0
    text = shown(render_html(found))
    assert "not measured" in text
    assert "fewer than two groups could be compared" in text
    assert "0.000" not in text.split("largest group gap")[1].split("not measured")[0][:20]


def test_warnings_stand_in_the_open(pages):
    result = default_audit(eps=0.0)
    result = replace(result, worst_case=replace(result.worst_case, reasons=("it was broken off",)))
    both = Comparison.of({"one": (None, result)})
    for page in (render_html(audit_document(result)), render_html(comparison_document(both))):
        first = page.split('id="annex"')[0]
        assert "it was broken off" in re.findall(r'<p class="warning">(.*?)</p>', first)[0]
        assert "<details" not in first.split('class="warning"')[0]
    notes = re.findall(r'<p class="warning">(.*?)</p>', pages["improvement"])
    assert notes
    assert "<details" not in pages["improvement"].split('id="annex"')[0].removesuffix(
        '<details class="card" '
    )


def test_an_audit_that_is_not_answered_counts_nobody():
    frame = people()
    result = lw.audit(
        model, frame, (frame["skill"] < 0).astype(int), sensitive_features=["sex"], favourable=1
    )
    assert not result.answered
    page = render_html(audit_document(result))
    assert "Could not be answered" in page
    for part in ('class="effects"', 'id="who"', 'id="people"', 'class="person-card"'):
        assert part not in page


def test_a_prediction_in_its_own_units(tmp_path):
    frame = people()
    salary = 20_000 + 1_000 * frame["skill"] + 6_300 * (frame["sex"] == "M")
    result = lw.audit(
        lambda table: 20_000 + 1_000 * table["skill"] + 6_300 * (table["sex"] == "M"), frame, salary,
        sensitive_features=["sex"], loss="squared",
    )  # fmt: skip
    write_html(result, tmp_path / "page.html")
    text = shown((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "6,300" in text
    assert "mean prediction" in text
    assert "F → M 6,300 on average" in text
    assert "the same person would be predicted" in text
    assert "gets “" not in text + str(result)
    assert "decision" not in text.split("What this does not show")[0].split("People")[0]
    assert '<th scope="col">Decision</th>' not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_column_that_changes_nothing_is_said_to_and_none_is_asked_about_it():
    frame = people(200).assign(abroad=np.random.default_rng(1).choice(["yes", "no"], 200))
    result = lw.audit(model, frame, sensitive_features=["sex", "abroad"], favourable=1)
    text = shown(render_html(audit_document(result)))
    assert "Depends on sex The dependence" in text
    assert "With another entry for abroad alone, nothing was found to change." in text
    assert "establish whether sex is allowed to influence this decision" in text
    assert "F, abroad = yes" in text
    assert "abroad no yes" in text
    assert "decision would change get it now" not in text


def test_the_column_that_moves_most_decisions_is_named_first_and_with_its_effect():
    """Broke once: race moved more decisions than sex, and the headline spoke of sex and of a median person."""
    frame = people(400).assign(race=np.random.default_rng(2).choice(["black", "white"], 400))

    def both(table):
        push = table["skill"] + 0.1 * (table["sex"] == "M") + 0.9 * (table["race"] == "white") - 0.5
        return 1 / (1 + np.exp(-push.to_numpy(dtype=float)))

    result = lw.audit(both, frame, sensitive_features=["sex", "race"], favourable=1)
    moved = (both(frame) > 0.5) != (both(frame.assign(race="white")) > 0.5)
    assert str(result.headline.title) == "Depends on race and sex"
    told = shown(render_html(audit_document(result)))
    effect = (
        f"Of {(frame['race'] == 'black').sum()} people with race recorded as black, {moved.sum()} would gain"
    )
    assert told.index("recorded as black (race) and F (sex)") < told.index(effect)
    assert "This is the largest effect." in told
    first = audit_document(result)["summary"]["people"][0]
    assert first["direction"] == "gain"
    assert both(frame.iloc[[first["row"]]])[0] <= 0.5


def test_german_pages_are_german():
    page = render_html(audit_document(default_audit(), provenance=MADE), language="de")
    text = shown(page)
    for words in (
        "Wie sicher",
        "Was das nicht zeigt",
        "Was nun",
        "zum Nachteil von Personen",
        Texts("de")("page.sign.signature"),
    ):
        assert words in text
    assert "What next" not in text


def test_a_verification_without_pairs_has_a_page():
    """What is undecided and has no counterexample was something unforeseen."""
    found = lw.verify(model, people(), sensitive_features=["sex"])
    none = replace(found, examples=found.examples.iloc[:0])
    assert len(found.examples)
    assert 'id="pairs"' in render_html(document_of(found))
    assert 'id="pairs"' not in render_html(document_of(none))
