"""First names by sex and race, lists of words that are like them, and what stands before and after names in a text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache

import pandas as pd

from likewise.core.errors import bad_parameter
from likewise.datasets.bundled import open_bundled, read_bundled_text
from likewise.datasets.words import capitalised, evaluation_names
from likewise.text.edited import folded

GENDERS = ("female", "male")
RACES = ("black", "white")

# A name that one sex bears this many times as often as the other tells the sex.
_CLEARLY = 20.0


def names_of(race: str | None = None, gender: str | None = None) -> tuple[str, ...]:
    """Return the evaluation names (Caliskan et al. 2017) of a race, a gender or both, with capitals.

    Parameters
    ----------
    race : "black", "white" or None
    gender : "female", "male" or None

    Examples
    --------
    >>> names_of("black", "female")[:3], len(names_of("white"))
    (('Aiesha', 'Lashelle', 'Nichelle'), 50)
    """
    for name, value, allowed in (("race", race, RACES), ("gender", gender, GENDERS)):
        if value is not None and value not in allowed:
            raise bad_parameter("names_of", name, f"one of {', '.join(allowed)} or None", value)
    return tuple(
        capitalised(name)
        for name, of_race, of_gender in _evaluation_names()
        if race in (None, of_race) and gender in (None, of_gender)
    )


@cache
def _evaluation_names() -> list[tuple[str, str, str]]:
    people = evaluation_names()
    return list(zip(people["name"], people["race"], people["gender"], strict=True))


@cache
def known_genders() -> dict[str, str]:
    """Return every first name known, in lower case, with ``"female"``, ``"male"`` or ``""`` (both bear it)."""
    with open_bundled("census_first_names.csv") as stream:
        table = pd.read_csv(stream, keep_default_na=False)
    found = {}
    shares = table.pivot_table(index="name", columns="sex", values="percent", aggfunc="sum", fill_value=0.0)
    for name, female, male in zip(shares.index, shares["female"], shares["male"], strict=True):
        found[str(name)] = _tell(float(female), float(male))
    more = {
        word.partition(":")[0]: {"f": "female", "m": "male"}.get(word.partition(":")[2], "")
        for word in WORD_LISTS["more_names"]
    }
    return found | {name: gender for name, _, gender in _evaluation_names()} | more


def gender_of(names: Iterable[str]) -> str:
    """Return the gender that all names share, or ``""``."""
    genders = {known_gender(folded(name)) for name in names}
    return genders.pop() if len(genders) == 1 else ""


def known_gender(name: str) -> str:
    """Return the gender of a name in lower case, of a hyphenated one by its first part; ``""`` if unknown."""
    return known_genders().get(name, "") or known_genders().get(name.partition("-")[0], "")


def _tell(female: float, male: float) -> str:
    if female > _CLEARLY * male:
        return "female"
    return "male" if male > _CLEARLY * female else ""


WORD_LISTS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(read_bundled_text("name_words.toml")).items()
}
# First names that are words, places, products or firms too: people's only with evidence.
ORDINARY = frozenset[str]().union(
    *(WORD_LISTS[key] for key in ("words", "places_and_times", "products", "firms_alone", "names_too"))
)


def name_key(word: str) -> str:
    """Return a word as the list of first names has it, or an empty text if it is not a first name."""
    key = folded(word)
    if key in known_genders():
        return key
    parts = key.split("-")
    # Mary-Jane, Jean-Luc; not anti-Emily, Emily-like.
    if len(parts) == 2 and all(part in known_genders() for part in parts) and word[0].isupper():
        return key if all(part[:1].isupper() for part in word.split("-")) else ""
    return ""


# What tells people's names from other words.

PLACES_AND_TIMES, PRODUCTS, FIRMS_ALONE = (
    WORD_LISTS[key] for key in ("places_and_times", "products", "firms_alone")
)
NAMES_TOO = WORD_LISTS["names_too"]
# What people do and firms, places and products do not; what all of them may do.
DEEDS, ACTS = WORD_LISTS["deeds"], WORD_LISTS["acts"]
FIRMS = frozenset(name.replace("_", " ").replace("'s", "") for name in WORD_LISTS["firms"])
BESIDE = PRODUCTS | PLACES_AND_TIMES | WORD_LISTS["technical"]
INSTITUTIONS, SURNAMES_TOO = WORD_LISTS["after_a_place_name"], WORD_LISTS["surnames_too"]
# What stands before a name and is none: "Director Emily Hart", "Monday Emily left".
ROLES = WORD_LISTS["no_surnames"] | PLACES_AND_TIMES
NO_SURNAMES = INSTITUTIONS | ROLES | PRODUCTS | FIRMS_ALONE


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted((word.replace("_", " ") for word in words), key=len, reverse=True))


_BLANK = r"[ \u00a0]"
TITLE = (
    r"(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Rev|MR|MRS|MS|MISS|DR|PROF)\b\.?|Professor|Doctor|Sir|Madam|Judge|Captain"
)
TITLE_BEFORE = re.compile(rf"\b(?:{TITLE}){_BLANK}+$")
RULER_BEFORE = re.compile(
    r"\b(?:King|Queen|Prince|Princess|Pope|Lord|Lady|President|Senator|Governor|Hurricane|Uncle|Aunt|Planet)"
    r"[ \u00a0]+$"
)
SAID_BEFORE = re.compile(
    r"(?:\b(?:my name is|i am|i'm|i’m|this is|named|called)"
    r"|\b(?:(?:first|full|given) )?(?:name|candidate|applicant|student|employee|author):"
    r"|\bI,|\b(?:regards|sincerely|yours|wishes|thanks|truly|faithfully),)[ \u00a0\n]+$",
    re.IGNORECASE,
)
GREETED_BEFORE = re.compile(rf"\b(?:dear|hi|hello|hey){_BLANK}+(?:(?:{TITLE}){_BLANK}+)?$", re.IGNORECASE)
PLACE_BEFORE = re.compile(
    r"\b(?:(?i:St|Saint|San|Santa|Fort|Ft|Mount|Mt|Lake)|Port|New|Los|El|Cape|Point|Camp|Villa|North|South|East|West"
    r"|(?i:city|state|town|county|university|bank|college|district|diocese|port|bay|isle|church|school|institute|hospital|republic|kingdom|book|battle|treaty|village|borough|province|department|bureau|duke|earl) (?:of|at))\.?[ \u00a0]+$"
)
_HEADINGS = r"\s*(?:(?:curriculum vitae|cv|r[ée]sum[ée]|profile|cover letter|application)\b[^\n]{0,12}\n\s*)?"
HEADER = re.compile(
    rf"{_HEADINGS}(?P<name>[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){{1,3}})[ \u00a0]*(?:\n|[|•·–—(<]|, ?[^\n]*\n|$)",
    re.IGNORECASE,
)
# "Johnson & Johnson", "Smith + Co", "Dean, Foster and Partners": a firm.
FIRM_BEFORE = re.compile(r"[&+][ \u00a0]*$")
FIRM_AFTER = re.compile(
    r"(?:['’]s)?(?:[ \u00a0][A-Z][\w-]+)?[ \u00a0]*[&+][ \u00a0]*\w"
    r"|(?:,? (?:and )?[A-Z][\w-]+){0,3},? (?:and|&) (?:Sons?|Brothers|Daughters|Partners|Company|Co|Associates)\b"
    r"|(?: [A-Z][\w-]+){0,3},? (?:Inc|Ltd|LLC|LLP|PLC|Corp|GmbH|Co|Bros|AG)\b"
)
# "Taylor series", "Wilson score".
EPONYM_AFTER = re.compile(
    r"[ \u00a0](?:series|theorem|tests?|method|distribution|criterion|transform|scores?|matrix|filter|equations?|curve|index"
    r"|information|rank|regression|technique|scale|approach|principle|rule|number|fellow|scholar|grant|award|prize|brand|franchise"
    r"|clusters?|servers?|queues?|pipelines?|scripts?|framework|library)\b"
)
STATE_AFTER = re.compile(rf", (?:{_any_of(WORD_LISTS['states'])})\b")
# Where people are, and firms, products and places more often.
AT = re.compile(
    r"\b(?:at|in|via|us(?:e|es|ed|ing)|joined|joining|near|through|throughout|across|into"
    r"|(?:work|intern|consult|freelanc|volunteer|contract)\w*[ \u00a0]+for|employed[ \u00a0]+by"
    r"|(?:clients?|customers?|brands?|firms?|companies|tools?|languages?|software|frameworks?)[ \u00a0]+(?:such[ \u00a0]+as|like|including)"
    r"|(?:moved|moving|relocated|travel\w*|went|migrat\w+|switched|deploy\w*)[ \u00a0]+(?:to|from|with|on)"
    r"|(?:written|wrote|writes|coded|codes|programm\w+|built|builds|tests?|tested|automat\w+|implemented)[ \u00a0]+(?:\w+[ \u00a0]+){0,3}(?:in|with|on))"
    r"[ \u00a0]+$",
    re.IGNORECASE,
)
INSIDE = re.compile(
    rf"\b(?:at|in|near|via|using|into|across|throughout|through|on|off|along|visit\w*){_BLANK}+$",
    re.IGNORECASE,
)
TECHNICAL = re.compile(rf"\b(?:{_any_of(WORD_LISTS['technical'])})\b", re.IGNORECASE)
SOCIAL_BEFORE = re.compile(rf"\b(?:{_any_of(WORD_LISTS['social'])})[ \u00a0]+$", re.IGNORECASE)
GENDERED = re.compile(r"\b(?:she|he|her|his|hers|him|herself|himself)\b", re.IGNORECASE)
# "Faith Robinson, CPA," and "Hope Reed, who", "June Park, a nurse".
APPOSITION = re.compile(
    r",? (?:[A-Z]{3,5}\b|Ph\.?D|M\.?D|M\.?B\.?A|R\.?N\b|Esq|Jr|Sr|III?\b|who\b|aged? \d|(?:a|an|our|my|the) [a-z]|(?:of|from) [A-Z])"
)
PARTICLES = frozenset(
    {"von", "van", "de", "der", "den", "del", "della", "di", "da", "du", "la", "le", "dos", "bin", "ibn"}
)
# "We", "Then", "My" before a name begin a sentence and are not part of the name.
FUNCTION = WORD_LISTS["no_noun_behind"] - {"of"}
DETERMINERS = frozenset({"the", "a", "an", "this", "that", "in", "at", "no", "every", "some", "any", "more"})

# People that a text names beside the one it is about: superiors and referees; and those it may be about after all.
_WHOSE = rf"[ \u00a0\n]+(?:(?:my|our|the|her|his|their)(?: [a-z]+){{1,3}},?[ \u00a0]+)?(?:[A-Z]{{2,4}}[ \u00a0]+)?(?:(?:{TITLE})[ \u00a0]+)*$"
OTHER_BEFORE = re.compile(
    r"(?:\b(?:(?:report|answer)(?:s|ed|ing)?(?: directly)? to|(?:supervised|managed|mentored|advised|led|headed|trained|coached|taught|founded|owned|run|created|designed|invented) by"
    r"|(?:supervision|guidance|direction|leadership|mentorship) of|under|assistant to|deputy to|assisted|succeed(?:ed|ing)"
    r"|on behalf of|work(?:s|ed|ing)? for)"
    r"|\b(?:referees?|references?|supervisors?|advis[oe]rs?|(?:line )?managers?|mentors?|(?:emergency )?contact|co-authors?"
    rf"|spouse|father|mother)(?: \w+)?:){_WHOSE}",
    re.IGNORECASE,
)
BESIDE_BEFORE = re.compile(
    r"(?:\b(?:(?:work(?:s|ed|ing)?|collaborat\w+|co-?author\w*|together)(?: closely)? (?:with|alongside)|alongside"
    r"|(?:admire|read|quote|cite|inspired|influence)\w*(?: by)?))"
    rf"{_WHOSE}"
    r"|\b(?:my|our|her|his) (?:former |line |direct )?(?:manager|supervisor|boss|advis[oe]r|mentor|director|wife|husband"
    rf"|partner|father|mother),?[ \u00a0]+(?:(?:{TITLE})[ \u00a0]+)*$",
    re.IGNORECASE,
)
OTHER_AFTER = re.compile(
    r",? (?:\()?(?:my|our|her|his|the) (?:\w+ )?(?:manager|supervisor|boss|advis[oe]r|mentor|referee)\b"
)
REFEREES = re.compile(r"^[ \t]*(?:references?|referees?)\b[^\n]{0,20}\n", re.IGNORECASE | re.MULTILINE)
