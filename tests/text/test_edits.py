"""Edits of text change what they should and nothing else; 300 sentences with tricky names."""

from __future__ import annotations

import itertools

import pytest

from likewise.core.errors import InputError
from likewise.text.edited import Change
from likewise.text.name_finding import find_names
from likewise.text.name_lists import names_of
from likewise.text.name_swap import NameSwap
from likewise.text.term_swap import (
    FunctionEdit,
    Greeting,
    ListOrder,
    Template,
    TermSwap,
    WhiteSpace,
    default_placebos,
)

TO_LAKISHA = NameSwap(names=("Lakisha",), gender="female")

# Text, and the text with a woman's name; written by hand.
FEMALE = [
    ("Emily went home.", "Lakisha went home."),
    ("EMILY WENT HOME.", "LAKISHA WENT HOME."),
    ("Emily's desk and EMILY'S desk.", "Lakisha's desk and LAKISHA'S desk."),
    ("Emily’s desk.", "Lakisha’s desk."),
    ("Call Emily, Emily; or (Emily)!", "Call Lakisha, Lakisha; or (Lakisha)!"),
    ("“Emily” and 'Emily' and \"Emily\".", "“Lakisha” and 'Lakisha' and \"Lakisha\"."),
    ("Emilyville is not Emily.", "Emilyville is not Lakisha."),
    ("Emily2 and emily_x and x_Emily.", "Emily2 and emily_x and x_Emily."),
    ("Ann sells annual Annuities.", "Lakisha sells annual Annuities."),
    ("Sam's sample of Samsung.", "Lakisha's sample of Samsung."),
    ("Emily Walsh, E. Walsh, e.walsh@x.org", "Lakisha Walsh, L. Walsh, l.walsh@x.org"),
    ("Emily Walsh <emily.walsh@x.org>", "Lakisha Walsh <lakisha.walsh@x.org>"),
    ("Emily Walsh: emilywalsh@emily.org", "Lakisha Walsh: lakishawalsh@emily.org"),
    ("Emily Walsh: ewalsh7@x.org", "Lakisha Walsh: lwalsh7@x.org"),
    ("Emily Walsh, F. Walsh, fwalsh@x.org", "Lakisha Walsh, F. Walsh, fwalsh@x.org"),
    ("Emily Walsh, linkedin.com/in/emily-walsh", "Lakisha Walsh, linkedin.com/in/lakisha-walsh"),
    ("Emily, https://x.org/Emily/cv", "Lakisha, https://x.org/Lakisha/cv"),
    ("Emily James and Mr. James.", "Lakisha James and Mr. James."),
    ("Emily James met us.", "Lakisha James met us."),
    ("Dr. Emily James met us.", "Dr. Lakisha James met us."),
    ("Ms. James met us.", "Ms. James met us."),
    ("Emily lives on James Street.", "Lakisha lives on James Street."),
    ("Emily prays at St. James.", "Lakisha prays at St. James."),
    ("Emily studied at Stanley College.", "Lakisha studied at Stanley College."),
    ("Emily D'Angelo and O'Neil.", "Lakisha D'Angelo and O'Neil."),
    ("Emily will pay the bill in May in Virginia.", "Lakisha will pay the bill in May in Virginia."),
    ("Will you mark it in June?", "Will you mark it in June?"),
    ("Hope and grace are joy.", "Hope and grace are joy."),
    ("My name is Grace and I hope.", "My name is Lakisha and I hope."),
    ("Grace Lee\nEngineer\nGrace is quick.", "Lakisha Lee\nEngineer\nLakisha is quick."),
    ("Austin, Paris and Charlotte are cities.", "Austin, Paris and Charlotte are cities."),
    ("Emily told us that he left.", "Lakisha told us that he left."),
    ("Greg took his bag.", "Lakisha took her bag."),
    ("Greg said he hurt himself.", "Lakisha said she hurt herself."),
    ("The bag is his. Greg knows.", "The bag is hers. Lakisha knows."),
    ("We saw him with Greg.", "We saw her with Lakisha."),
    ("MR. GREG HALL AND HIS DOG", "MS. LAKISHA HALL AND HER DOG"),
    ("Mr. Greg Hall and his dog", "Ms. Lakisha Hall and her dog"),
    ("Greg heard this; the history of Hisham.", "Lakisha heard this; the history of Hisham."),
    ("Zoë is here.", "Lakisha is here."),
    ("Emil\u00fd is not Emily.", "Emil\u00fd is not Lakisha."),
    ("Emily\u0301 is not Emily.", "Emily\u0301 is not Lakisha."),
    ("Émily and Emily", "Émily and Lakisha"),
    ("Emily\u00a0Walsh", "Lakisha\u00a0Walsh"),
    ("Ärger mit Emily", "Ärger mit Lakisha"),
    ("I met James' sister.", "I met Lakisha's sister."),
    ("I met JAMES' sister.", "I met LAKISHA'S sister."),
    ("She said 'I know James' to us.", "She said 'I know Lakisha' to us."),
    ("They said 'I know James' to us.", "They said 'I know Lakisha' to us."),
    ("I met James's sister.", "I met Lakisha's sister."),
    ("Emily-Rose is one name.", "Lakisha is one name."),
    ("", ""),
    ("12345 !!", "12345 !!"),
]

NAMES = ["Emily", "Ann", "Chris", "Amanda", "Betsy", "Nancy", "Stephanie", "Ellen"]
FRAMES = [
    "{} wrote it.", "I met {} there.", "{}'s plan", "{}’s plan", "to {}, at once", "({})", "“{}”", "x {} y",
    "{}: {}", "{}\n{}", "Ask {}!", "The {} file", "Dr. {} Walsh", "{} Walsh-Hall", "{} O'Brien", "- {}\n- you",
]  # fmt: skip
KEPT = ["{}x", "x{}", "{}_1", "1{}", "{}ville", "a{}", "anti-{}", "{}-like", "{}\u0301", "_{}_", "{}9"]
GENERATED = [(frame, name) for frame, name in itertools.product(FRAMES, NAMES)]
NOT_NAMES = [(frame, name) for frame, name in itertools.product(KEPT, NAMES)]


def test_there_are_three_hundred_sentences():
    n = len(FEMALE) + len(GENERATED) + len(NOT_NAMES) + len(BACK_AND_FORTH)
    assert n >= 300


@pytest.mark.parametrize(("text", "wanted"), FEMALE)
def test_only_what_should_change_changes(text, wanted):
    edited = TO_LAKISHA(text)
    assert edited.text == wanted
    assert edited.undone() == text
    assert edited.changed == (edited.text != text)


@pytest.mark.parametrize("text", ["Greg and Emily lost his keys.", "Greg spoke; she answered; he left."])
def test_pronouns_of_both_sexes_are_left_and_said_so(text):
    edited = NameSwap(gender="female", race="black")(text)
    assert edited.text == text
    assert "both sexes" in edited.skipped


@pytest.mark.parametrize(("frame", "name"), GENERATED)
def test_every_occurrence_of_a_name_changes(frame, name):
    text = frame.replace("{}", name)
    edited = TO_LAKISHA(text)
    assert edited.text == frame.replace("{}", "Lakisha")
    assert len(edited.changes) == frame.count("{}")
    assert edited.undone() == text
    back = NameSwap(names=(name,), source=("Lakisha",), gender="female")(edited.text)
    assert back.text == text


@pytest.mark.parametrize(("frame", "name"), NOT_NAMES)
def test_a_name_inside_another_word_stays(frame, name):
    text = "See " + frame.format(name)
    assert TO_LAKISHA(text).text == text
    assert TO_LAKISHA(text).skipped == "no first name found"


BACK_AND_FORTH = [
    f"{name} said he {verb} his {thing}; we {saw} him {when}."
    for name, verb, thing, saw, when in itertools.product(
        ["Greg", "Brad"],
        ["lost", "found"],
        ["keys", "old car"],
        ["saw", "told"],
        ["yesterday", "in town", "there"],
    )
]


@pytest.mark.parametrize("text", BACK_AND_FORTH)
def test_pronouns_there_and_back(text):
    there = NameSwap(race="black", gender="female")(text)
    assert not {"he", "his", "him"} & set(there.text.replace(".", "").replace(";", "").split())
    back = NameSwap(names=(text.split()[0],), gender="male")(there.text)
    assert back.text == text
    assert there.undone() == text


def test_people_keep_different_names_and_one_name_is_one_person():
    text = "Emily met Anna. Emily's friend Anna left."
    edited = NameSwap(race="black")(text).text.replace(".", "").replace("'s", "").split()
    assert edited[0] == edited[3]
    assert edited[2] == edited[5]
    assert edited[0] != edited[2]
    assert {edited[0], edited[2]} <= set(names_of("black", "female"))


def test_a_race_keeps_the_gender_and_the_pronouns():
    edited = NameSwap(race="black")("Greg lost his keys.")
    assert edited.text.split()[0] in names_of("black", "male")
    assert edited.text.endswith("lost his keys.")


def test_names_of_the_group_already_stay():
    edited = NameSwap(race="black", gender="female")("Lakisha is here.")
    assert not edited.changed
    assert edited.skipped == "the names are these already"


def test_terms_are_swapped_both_ways_at_once():
    swap = TermSwap("nation_swap", {"Nigeria": "Norway"}, both_ways=True)
    text = "From Nigeria to NORWAY; Nigerian; nigeria@x.org"
    assert swap(text).text == "From Norway to NIGERIA; Nigerian; nigeria@x.org"
    assert swap(swap(text).text).text == text
    assert TermSwap("dialect", {"going to": "gonna"})("I'm Going to go").text == "I'm Gonna go"


def test_placebos_say_what_they_did():
    assert Greeting()("I apply").skipped == "no greeting found"
    assert ListOrder()("- a\n- b\nend").text == "- b\n- a\nend"
    assert WhiteSpace()("a").changes == (Change(1, "", "\n\n"),)
    for placebo in default_placebos():
        text = "Dear team,\nSkills: SQL, Go.\n"
        assert placebo(text).changed
        assert placebo(text).undone() == text


def test_templates():
    template = Template("{name} is {word}; {name}!")
    assert template.slots == ("name", "word")
    assert len(template.frame(name=["A", "B"], word=["c", "d", "e"])) == 6
    with pytest.raises(InputError, match="given for name, word"):
        template.fill(name="A")
    with pytest.raises(InputError, match="slots"):
        _ = Template("{").slots


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NameSwap(), "Say who to become"),
        (lambda: NameSwap(race="blue"), "'race' must be one of black, white"),
        (lambda: NameSwap(gender="x"), "'gender'"),
        (lambda: NameSwap(names="Emily"), "'names' must be a tuple"),
        (lambda: TermSwap("t", {}), "'terms' must be"),
        (lambda: FunctionEdit("f", len)("abc"), "function from text to text"),
        (lambda: NameSwap(names=("Ada",))("Emily met Greg"), "at least 2 names"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    "frame", ["The letter of {} was good.", "With {} it is well.", "We asked {}, who left."]
)
def test_every_evaluation_name_is_found_inside_a_sentence(frame):
    missed = [name for name in names_of() if len(find_names(frame.format(name))[0]) != 1]
    assert missed == []


def test_title_words_that_are_no_titles_stay():
    text = "Emily Hall: a near miss. I miss Ms. Hall, MS Office and Ms. Price."
    changed = "Greg Hall: a near miss. I miss Mr. Hall, MS Office and Ms. Price."
    assert NameSwap(names=("Greg",))(text).text == changed
