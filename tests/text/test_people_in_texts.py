"""Sentences of CVs and letters: firms, products, places, titles, pronouns; people change, nothing else does."""

from __future__ import annotations

import re

import numpy as np
import pytest

from likewise.text import NameSwap, WhiteSpace, audit_texts

TO_FEMALE = NameSwap(names=("Lakisha", "Aiesha"), gender="female")
TO_MALE = NameSwap(names=("Jamal", "Alonzo"), gender="male")

# Clear sentences, and what they are with a woman's name.
FEMALE = [
    ("Emily Walsh worked at Johnson & Johnson.", "Lakisha Walsh worked at Johnson & Johnson."),
    ("Emily joined Morgan Stanley in 2015.", "Lakisha joined Morgan Stanley in 2015."),
    ("Emily knows Ruby and Julia.", "Lakisha knows Ruby and Julia."),
    ("Emily codes in Ruby, Julia and Python.", "Lakisha codes in Ruby, Julia and Python."),
    ("Emily deployed Cassandra and Jenkins.", "Lakisha deployed Cassandra and Jenkins."),
    ("Emily was a teller at Wells Fargo.", "Lakisha was a teller at Wells Fargo."),
    ("Emily sold Calvin Klein and Ralph Lauren.", "Lakisha sold Calvin Klein and Ralph Lauren."),
    ("Emily studied at Johns Hopkins.", "Lakisha studied at Johns Hopkins."),
    ("Emily audited Ernst & Young's books.", "Lakisha audited Ernst & Young's books."),
    ("Emily interned with Charles Schwab.", "Lakisha interned with Charles Schwab."),
    ("Emily works for Eli Lilly.", "Lakisha works for Eli Lilly."),
    ("Emily managed the Robert Half account.", "Lakisha managed the Robert Half account."),
    ("Emily lives in Madison, Wisconsin.", "Lakisha lives in Madison, Wisconsin."),
    ("Emily moved to Eugene, OR.", "Lakisha moved to Eugene, OR."),
    ("Emily grew up in Charlotte.", "Lakisha grew up in Charlotte."),
    ("Emily lives on Martin Luther King Street.", "Lakisha lives on Martin Luther King Street."),
    ("Emily went to Stanley Clark School.", "Lakisha went to Stanley Clark School."),
    ("Emily volunteers at St. Mary's.", "Lakisha volunteers at St. Mary's."),
    ("Emily won the Marie Curie fellowship.", "Lakisha won the Marie Curie fellowship."),
    ("Emily admires Steve Jobs.", "Lakisha admires Steve Jobs."),
    ("Emily led Allen Consulting Group.", "Lakisha led Allen Consulting Group."),
    ("Emily shops at Trader Joe's.", "Lakisha shops at Trader Joe's."),
    ("Ms. Emily Taylor met us. Ms. Taylor left.", "Ms. Lakisha Taylor met us. Ms. Taylor left."),
    ("Emily Taylor wrote. Taylor is kind.", "Lakisha Taylor wrote. Taylor is kind."),
    ("Dr. Emily Hart and Dr. Taylor agree.", "Dr. Lakisha Hart and Dr. Taylor agree."),
    ("Mary-Jane Hall leads it.", "Lakisha Hall leads it."),
    ("Anne-Marie's plan worked.", "Lakisha's plan worked."),
    ("Jean-Luc said he knows Allen-Bradley.", "Lakisha said she knows Allen-Bradley."),
    ("Renée Hall leads it.", "Lakisha Hall leads it."),
    ("José Ruiz said he likes it.", "Lakisha Ruiz said she likes it."),
    ("my name is emily and i apply.", "my name is lakisha and i apply."),
    ("hello, i am emily walsh, a nurse.", "hello, i am lakisha walsh, a nurse."),
    ("Emily Walsh, emilyw@x.org", "Lakisha Walsh, lakishaw@x.org"),
    ("Emily Walsh, walsh.emily88@x.org", "Lakisha Walsh, walsh.lakisha88@x.org"),
    ("Emily Walsh, github.com/emily-walsh", "Lakisha Walsh, github.com/lakisha-walsh"),
    ("Emily Walsh (@emilywalsh)", "Lakisha Walsh (@lakishawalsh)"),
    ("Grace Lee leads the team.", "Lakisha Lee leads the team."),
    ("Mark Lewis said he would come.", "Lakisha Lewis said she would come."),
    ("Greg praised his team.", "Lakisha praised her team."),
    ("The idea was his. Greg knew.", "The idea was hers. Lakisha knew."),
    ("Greg is here; call him anytime.", "Lakisha is here; call her anytime."),
]  # fmt: skip

# The same with a man's name: "her" by its role.
MALE = [
    ("I recommend Emily; I recommend her highly.", "I recommend Jamal; I recommend him highly."),
    ("Emily is kind and we trust her completely.", "Jamal is kind and we trust him completely."),
    ("I know Emily; hire her without delay.", "I know Jamal; hire him without delay."),
    ("Emily leads, and I value her work.", "Jamal leads, and I value his work."),
    ("Emily and her team won.", "Jamal and his team won."),
    ("I supervised Emily in her first year.", "I supervised Jamal in his first year."),
    ("Emily is good; I know her well.", "Jamal is good; I know him well."),
    ("We wanted to keep Emily; we miss her.", "We wanted to keep Jamal; we miss him."),
    ("Emily: I rate her very highly.", "Jamal: I rate him very highly."),
    ("I met Emily; working with her was a joy.", "I met Jamal; working with him was a joy."),
    ("Emily showed her colleagues how.", "Jamal showed his colleagues how."),
    ("The prize is hers; Emily earned it herself.", "The prize is his; Jamal earned it himself."),
    ("Ms. Emily Hart said she is ready.", "Mr. Jamal Hart said he is ready."),
    ("Emily did her daily rounds.", "Jamal did his daily rounds."),
    ("We promoted her twice; Emily thrived.", "We promoted him twice; Jamal thrived."),
]

# Nobody's first name, or not to be told: left as it is.
UNCHANGED = [
    "Johnson & Johnson hired me.", "I worked at Morgan Stanley.", "I know Ruby and Julia.", "Ms. Taylor was my manager.",
    "I studied at Harvey Mudd College.", "I used Jenkins and Travis.", "I lived in Jackson, MS.", "Ben & Jerry's is sweet.",
    "I was a clerk at Macy's and Wendy's.", "I admire Maya Angelou.", "I teach at Allen Academy.", "Skills: Ruby, Julia, Ada.",
]  # fmt: skip
DOUBTFUL = [
    "I worked at Bradley.", "I worked for Stanley.", "Emily is quick; I gave her credit.", "Emily works at Marvin.",
    "We saw her leave, said Emily.", "Emily Walsh, @emilycodes", "Emily found her capable.", "Emily met Greg.",
]  # fmt: skip


def test_there_are_sixty_sentences():
    assert len(FEMALE) + len(MALE) + len(UNCHANGED) + len(DOUBTFUL) >= 60


@pytest.mark.parametrize(("text", "wanted"), FEMALE)
def test_clear_sentences_get_a_womans_name(text, wanted):
    assert TO_FEMALE(text).text == wanted


@pytest.mark.parametrize(("text", "wanted"), MALE)
def test_clear_sentences_get_a_mans_name_and_pronouns_by_their_role(text, wanted):
    assert TO_MALE(text).text == wanted


@pytest.mark.parametrize("text", UNCHANGED)
def test_what_is_nobodys_name_stays(text):
    for swap in (TO_FEMALE, TO_MALE, NameSwap(race="black")):
        assert swap(text).text == text


@pytest.mark.parametrize("text", DOUBTFUL)
def test_doubtful_sentences_are_left_out_and_say_why(text):
    edited = TO_MALE(text)
    assert edited.text == text
    assert "doubtful" in edited.skipped or "both sexes" in edited.skipped


def test_a_scorer_that_does_not_read_first_names_is_never_flagged():
    """Broke once: firms and products were changed, and such a scorer was found shifted by −2.0, p = .0001."""
    firms = [
        "Johnson & Johnson",
        "Morgan Stanley",
        "Ruby and Julia",
        "Ms. Taylor",
        "Wells Fargo",
        "her manager",
    ]
    for seed in range(25):
        rng = np.random.default_rng(seed)
        texts = [f"Emily Hart, {n} years. " + "; ".join(rng.choice(firms, 3)) + "." for n in range(8)]
        weights = dict(zip(re.findall(r"\w+", " ".join(firms)), rng.normal(size=20), strict=False))

        def score(text, weights=weights):
            return sum(weights.get(word, 0.0) for word in re.findall(r"\w+", text))

        edits = [NameSwap(race="black")]
        found = audit_texts(score, texts, edits=edits, placebos=[WhiteSpace()], random_state=seed)
        assert not found.audits.parts[0].shifted
