"""Every language has every text with the same places, no text is unused, and sentences survive being written down."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest

import likewise as lw
from likewise.core.messages import (
    FORMATS,
    LANGUAGES,
    Message,
    Texts,
    catalogue,
    collect_messages,
    places,
)

SOURCE = Path(lw.__file__).parent
# Keys that are put together from a machine's word; every one of them is a word that some result may hold.
MADE = (
    "page.status.", "page.terms.", "improve.terms.", "page.provenance.", "page.brackets.name_", "page.title.",
    "page.first.", "page.sign.", "page.rates.", "page.people.l", "page.people.gain", "page.people.other", "page.people.title",
    "page.effects.l", "page.effects.gain", "page.effects.higher", "page.people.count_", "page.computed.decisions", "page.computed.predictions", "page.compared.lose", "page.compared.gain",
    "badge.", "recourse.", "proxies.", "verified.sentence.", "verified.head.", "headline.", "counted.", "effect.",
    "setting.", "setting_value.", "measure.", "clock.", "search.",
    "person.way_status.", "person.twins_sentence.", "person.unit_", "person.direction_", "interval.about_", "assumption.domain_of_",
)  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_the_same_places(language):
    english, other = catalogue("en"), catalogue(language)
    assert set(other) == set(english)
    for key, forms in english.items():
        assert places(other[key]) == places(forms), key
        assert isinstance(other[key], str) == isinstance(forms, str), key


def test_formats_are_known():
    for key, forms in catalogue("en").items():
        for _, form in places(forms):
            assert form in (*FORMATS, "", "list", "either"), key


def test_no_text_is_unused_and_none_is_missing():
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for pattern in ("**/*.py", "**/*.j2", "**/*.js")
        for path in SOURCE.glob(pattern)
    )
    used = set(re.findall(r"[\"']([a-z_]+(?:\.[a-z_0-9]+)+|people)[\"']", code))
    unused = [key for key in catalogue("en") if key not in used and not key.startswith(MADE)]
    assert unused == []
    asked = set(re.findall(r"\b(?:t|rich|texts|Message)\(\s*[\"']([a-z_.0-9]+)[\"']", code))
    assert [key for key in asked if key not in catalogue("en") and not key.endswith((".", "_"))] == []


def test_numbers_are_written_as_the_language_does():
    german = Texts("de")
    assert german.number(1234.5) == "1.234"
    assert german.number(0.3104) == "0,310"
    assert german.number(0.125, "percent") == "12,5\u00a0%"
    assert german.number(None) == "unbekannt"
    assert german.number(float("inf")) == "∞"
    assert german.number(["a", "b", "c"], "either") == "a, b oder c"
    assert Texts("en").number(-0.5) == "−0.500"


def test_values_are_never_read_as_places_or_markup():
    assert Texts()("first.of_model", name="{n} **x**", sentence="<b>") == "“{n} **x**”: <b>"
    rich = Texts().rich("page.effects.row", attribute="a", recorded="<b>**x**</b> {n}", instead="b")
    assert rich == '<span class="muted">a</span> &lt;b&gt;**x**&lt;/b&gt; {n} → b'


def test_a_sentence_is_a_string_that_remembers():
    inner = Message("people", n=3)
    said = Message("first.of_model", name="m", sentence=inner)
    assert said == "“m”: 3 people"
    assert said.written("de") == "„m“: 3 Personen"
    assert pickle.loads(pickle.dumps(said)).written("de") == said.written("de")
    known = json.loads(json.dumps(collect_messages([{"a": (said,)}])))
    assert Message.of(known[str(said)]).written("de") == said.written("de")
    assert Texts("de").said(str(said), known) == said.written("de")
    assert Texts("en").said(str(said), known) == str(said)


@pytest.mark.parametrize(
    "damaged",
    [None, 3, {}, {"key": "no.such", "values": {}}, {"key": "people", "values": {}}, {"key": "people", "values": {"n": []}}],
)  # fmt: skip
def test_what_is_damaged_stays_as_it_is(damaged):
    assert Texts("de").said("3 people", {"3 people": damaged}) == "3 people"


def test_unbounded_numbers_travel_as_json():
    said = Message("page.interval", low=0.5, high=float("inf"))
    assert said == "0.500 to ∞"
    known = json.loads(json.dumps(collect_messages([said]), allow_nan=False))
    assert Message.of(known[str(said)]) == said


def test_an_unknown_language_says_which_there_are():
    with pytest.raises(lw.InputError, match="'en', 'de'"):
        Texts("fr")
