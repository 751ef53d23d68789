"""First names in a text: which words are a person's, which are not, and which are doubtful."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

import pandas as pd

from likewise.core.errors import bad_parameter
from likewise.datasets.bundled import open_bundled, read_bundled_text
from likewise.datasets.words import capitalised, evaluation_names
from likewise.text.edited import Change, Word, addresses, folded, like_case, words_of

# First names by sex and race: the census list and the evaluation names.


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
            raise bad_parameter("names_of", name, allowed=f"one of {', '.join(allowed)} or None", got=value)
    people = evaluation_names()
    keep = pd.Series(True, index=people.index)
    for column, value in (("race", race), ("gender", gender)):
        if value is not None:
            keep &= people[column] == value
    return tuple(capitalised(name) for name in people["name"][keep])


@cache
def known_genders() -> dict[str, str]:
    """Return every first name known, in lower case, with ``"female"``, ``"male"`` or ``""`` (both bear it)."""
    with open_bundled("census_first_names.csv") as stream:
        table = pd.read_csv(stream, keep_default_na=False)
    found = {}
    shares = table.pivot_table(index="name", columns="sex", values="percent", aggfunc="sum", fill_value=0.0)
    for name, female, male in zip(shares.index, shares["female"], shares["male"], strict=True):
        found[str(name)] = _tell(float(female), float(male))
    people = evaluation_names()
    more = {
        word.partition(":")[0]: {"f": "female", "m": "male"}.get(word.partition(":")[2], "")
        for word in WORD_LISTS["more_names"]
    }
    return found | dict(zip(people["name"], people["gender"], strict=True)) | more


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


# First names of the census that are ordinary words, places or products too: people only with evidence.


WORD_LISTS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(read_bundled_text("name_words.toml")).items()
}

PLACES_AND_TIMES, PRODUCTS, FIRMS_ALONE = (
    WORD_LISTS[key] for key in ("places_and_times", "products", "firms_alone")
)
NAMES_TOO = WORD_LISTS["names_too"]
ORDINARY = WORD_LISTS["words"] | PLACES_AND_TIMES | PRODUCTS | FIRMS_ALONE | NAMES_TOO
# What people do and firms, places and products do not; what all of them may do.
DEEDS, ACTS = WORD_LISTS["deeds"], WORD_LISTS["acts"]
FIRMS = frozenset(name.replace("_", " ").replace("'s", "") for name in WORD_LISTS["firms"])
_BESIDE = PRODUCTS | PLACES_AND_TIMES | WORD_LISTS["technical"]
_INSTITUTIONS, _SURNAMES_TOO = WORD_LISTS["after_a_place_name"], WORD_LISTS["surnames_too"]
_NO_SURNAMES = _INSTITUTIONS | WORD_LISTS["no_surnames"] | PLACES_AND_TIMES | PRODUCTS | FIRMS_ALONE


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted((word.replace("_", " ") for word in words), key=len, reverse=True))


# Where first names stand in a text: as words, in addresses and as initials. Each word of the list of names is a person's,
# is not, or is doubtful: then the text is left out, since a wrong change would be an edit of something else.


_BLANK = r"[ \u00a0]"
_TITLE = (
    r"(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Rev|MR|MRS|MS|MISS|DR|PROF)\b\.?|Professor|Doctor|Sir|Madam|Judge|Captain"
)
_TITLE_BEFORE = re.compile(rf"\b(?:{_TITLE}){_BLANK}+$")
_RULER_BEFORE = re.compile(
    r"\b(?:King|Queen|Prince|Princess|Pope|Lord|Lady|President|Senator|Governor|Hurricane|Uncle|Aunt|Planet)"
    r"[ \u00a0]+$"
)
_SAID_BEFORE = re.compile(
    r"(?:\b(?:my name is|i am|i'm|i’m|this is|named|called)"
    r"|\b(?:(?:first|full|given) )?(?:name|candidate|applicant|student|employee|author):"
    r"|\bI,|\b(?:regards|sincerely|yours|wishes|thanks|truly|faithfully),)[ \u00a0\n]+$",
    re.IGNORECASE,
)
_GREETED_BEFORE = re.compile(rf"\b(?:dear|hi|hello|hey){_BLANK}+(?:(?:{_TITLE}){_BLANK}+)?$", re.IGNORECASE)
_PLACE_BEFORE = re.compile(
    r"\b(?:(?i:St|Saint|San|Santa|Fort|Ft|Mount|Mt|Lake)|Port|New|Los|El|Cape|Point|Camp|Villa|North|South|East|West"
    r"|(?:[A-Z]\w+|city|state|town|county|university|bank|college|district|diocese|port|bay|isle) (?:of|at))\.?[ \u00a0]+$"
)
_HEADINGS = r"\s*(?:(?:curriculum vitae|cv|r[ée]sum[ée]|profile|cover letter|application)\b[^\n]{0,12}\n\s*)?"
_HEADER = re.compile(
    rf"{_HEADINGS}(?P<name>[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){{1,3}})[ \u00a0]*(?:\n|[|•·–—(<]|, ?[^\n]*\n|$)",
    re.IGNORECASE,
)
_PLACED_BEFORE = re.compile(
    rf"\b(?:on|at|in|near|to|of|the|off|from|along|visit\w*|through|via){_BLANK}+$", re.IGNORECASE
)
# "Johnson & Johnson", "Smith + Co", "Dean, Foster and Partners": a firm.
_FIRM_BEFORE = re.compile(r"[&+][ \u00a0]*$")
_FIRM_AFTER = re.compile(
    r"(?:['’]s)?(?:[ \u00a0][A-Z][\w-]+)?[ \u00a0]*[&+][ \u00a0]*\w"
    r"|(?:,? (?:and )?[A-Z][\w-]+){0,3},? (?:and|&) (?:Sons?|Brothers|Daughters|Partners|Company|Co|Associates)\b"
    r"|(?: [A-Z][\w-]+){0,3},? (?:Inc|Ltd|LLC|LLP|PLC|Corp|GmbH|Co|Bros|AG)\b"
)
# "Taylor series", "Wilson score".
_EPONYM_AFTER = re.compile(
    r"[ \u00a0](?:series|theorem|tests?|method|distribution|criterion|transform|scores?|matrix|filter|equations?|curve|index"
    r"|information|rank|regression|technique|scale|approach|principle|rule|number|fellow|scholar|grant|award|prize|brand|franchise"
    r"|clusters?|servers?|queues?|pipelines?|scripts?|framework|library)\b"
)
_STATE_AFTER = re.compile(rf", (?:{_any_of(WORD_LISTS['states'])})\b")
# Where people are, and firms, products and places more often.
_AT = re.compile(
    r"\b(?:at|in|via|us(?:e|es|ed|ing)|joined|joining|near|through|throughout|across|into"
    r"|(?:work|intern|consult|freelanc|volunteer|contract)\w*[ \u00a0]+for|employed[ \u00a0]+by"
    r"|(?:clients?|customers?|brands?|firms?|companies|tools?|languages?|software|frameworks?)[ \u00a0]+(?:such[ \u00a0]+as|like|including)"
    r"|(?:moved|moving|relocated|travel\w*|went|migrat\w+|switched|deploy\w*)[ \u00a0]+(?:to|from|with|on)"
    r"|(?:written|wrote|writes|coded|codes|programm\w+|built|builds|tests?|tested|automat\w+|implemented)[ \u00a0]+(?:\w+[ \u00a0]+){0,3}(?:in|with|on))"
    r"[ \u00a0]+$",
    re.IGNORECASE,
)
_INSIDE = re.compile(rf"\b(?:at|in|near|via|using|into|across|throughout){_BLANK}+$", re.IGNORECASE)
_TECHNICAL = re.compile(rf"\b(?:{_any_of(WORD_LISTS['technical'])})\b", re.IGNORECASE)
_SOCIAL_BEFORE = re.compile(rf"\b(?:{_any_of(WORD_LISTS['social'])})[ \u00a0]+$", re.IGNORECASE)
_GENDERED = re.compile(r"\b(?:she|he|her|his|hers|him|herself|himself)\b", re.IGNORECASE)
_PREDICATE = re.compile(r"(?:,? who)?[ \u00a0]([a-z]+(?: [a-z]+){0,2})")
# "Faith Robinson, CPA," and "Hope Reed, who", "June Park, a nurse".
_APPOSITION = re.compile(
    r",? (?:[A-Z]{3,5}\b|Ph\.?D|M\.?D|M\.?B\.?A|R\.?N\b|Esq|Jr|Sr|III?\b|who\b|aged? \d|(?:a|an|our|my|the) [a-z])"
)
_PARTICLES = frozenset(
    {"von", "van", "de", "der", "den", "del", "della", "di", "da", "du", "la", "le", "dos", "bin", "ibn"}
)
_AUXILIARIES = WORD_LISTS["auxiliaries"]
# "We", "Then", "My" before a name begin a sentence and are no part of the name.
_FUNCTION = WORD_LISTS["no_noun_behind"] - {"of"}
_DETERMINERS = frozenset({"the", "a", "an", "this", "that", "in", "at", "no", "every", "some", "any", "more"})

# People that a text names beside the one it is about: superiors and referees; and those it may be about after all.
_WHOSE = rf"[ \u00a0\n]+(?:(?:my|our|the|her|his|their)(?: [a-z]+){{1,3}},?[ \u00a0]+)?(?:[A-Z]{{2,4}}[ \u00a0]+)?(?:(?:{_TITLE})[ \u00a0]+)*$"
_OTHER_BEFORE = re.compile(
    r"(?:\b(?:report(?:s|ed|ing)?(?: directly)? to|(?:supervised|managed|mentored|advised|led|headed|trained|coached) by"
    r"|(?:supervision|guidance|direction|leadership|mentorship) of|under|assistant to|deputy to|assisted|succeed(?:ed|ing)"
    r"|on behalf of|work(?:s|ed|ing)? for)"
    r"|\b(?:referees?|references?|supervisors?|advis[oe]rs?|(?:line )?managers?|mentors?|(?:emergency )?contact|co-authors?"
    rf"|spouse|father|mother)(?: \w+)?:){_WHOSE}",
    re.IGNORECASE,
)
_BESIDE_BEFORE = re.compile(
    r"(?:\b(?:(?:work(?:s|ed|ing)?|collaborat\w+|co-?author\w*|together)(?: closely)? (?:with|alongside)|alongside"
    r"|(?:admire|read|quote|cite|inspired|influence)\w*(?: by)?))"
    rf"{_WHOSE}"
    r"|\b(?:my|our|her|his) (?:former |line |direct )?(?:manager|supervisor|boss|advis[oe]r|mentor|director|wife|husband"
    rf"|partner|father|mother),?[ \u00a0]+(?:(?:{_TITLE})[ \u00a0]+)*$",
    re.IGNORECASE,
)
_OTHER_AFTER = re.compile(
    r",? (?:\()?(?:my|our|her|his|the) (?:\w+ )?(?:manager|supervisor|boss|advis[oe]r|mentor|referee)\b"
)
_REFEREES = re.compile(r"^[ \t]*(?:references?|referees?)\b[^\n]{0,20}\n", re.IGNORECASE | re.MULTILINE)


class People(NamedTuple):
    """First names in a text: of whom it is about, of which it cannot be told, and of others that it names."""

    found: list[Word]
    doubtful: list[Word]
    others: list[Word]


def find_names(text: str, source: Collection[str] = ()) -> People:
    """Find the first names of a text; with `source`, these alone."""
    wanted = {name_key(name) for name in source}
    if wanted:
        words = words_of(text)
        return People([w for w in words if name_key(w.text) in wanted and not _inside_other(text, w)], [], [])
    return _Reader(text).people()


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


class _Reader:
    """The words of a text and what stands around them; each first name gets a verdict from it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = list(words_of(text))
        self.keys = [name_key(word.text) for word in self.words]
        self.no_capitals = text == text.lower()
        header = _HEADER.match(text)
        headed = header is not None and ("\n" in text.strip() or "@" in text)
        self.header = header.span("name") if header and headed else (-1, -1)
        self.titled = {
            folded(word.text)
            for place, word in enumerate(self.words)
            if _TITLE_BEFORE.search(self.before(place)) and not self.joined(place)
        }
        self.handles = folded(" ".join(text[low:high] for low, high in addresses(text)))

    def people(self) -> People:
        verdicts = {place: self._verdict(place) for place, key in enumerate(self.keys) if key}
        surnames = self._surnames(verdicts)
        for place, verdict in verdicts.items():
            if verdict == "person" and self.keys[place] in surnames and not self._full(place):
                verdicts[place] = "word"
        sure = {self.keys[n] for n, verdict in verdicts.items() if verdict == "person"} - surnames
        for place, verdict in verdicts.items():
            # What is a name in one place of a text is the same person's in the others, but "mark" after "Mark" is a word.
            if verdict in ("word", "doubtful") and self.keys[place] in sure:
                verdicts[place] = self._again(place)
            elif verdict == "doubtful" and self._partner(place, sure):
                verdicts[place] = "person"
        told = [n for n, verdict in verdicts.items() if verdict == "person"]
        about, others = self._who_it_is_about(told)
        # Beside somebody else whom the text is about, "Bryant Park" and "at Emory" stay whether they are people or not.
        mine = {self.keys[n] for n in about}
        doubtful = [
            n
            for n, verdict in verdicts.items()
            if verdict == "doubtful"
            and not (
                mine - {self.keys[n]}
                and (self.joined(n) or self._referee(n) or _INSIDE.search(self.before(n)))
            )
        ]
        if not about:
            doubtful, others = doubtful + others, []
        return People(*([self.words[n] for n in sorted(group)] for group in (about, doubtful, others)))

    def _who_it_is_about(self, told: list[int]) -> tuple[list[int], list[int]]:
        """Part people into those the text is about and others: superiors, those written to, further full names."""
        other, beside, about = set[str](), set[str](), set[str]()
        listed = -1
        for n in told:
            key, before = self.keys[n], self.before(n)
            if (
                (listed >= 0 and self._listed_after(listed, n))
                or self._referee(n)
                or _OTHER_BEFORE.search(before)
                or _OTHER_AFTER.match(self.after(self.last(n)))
            ):
                other.add(key)
                listed = n
            else:
                further = self._full(n) and about - {key} and not self._evident(n)
                further = further and not self._partner(n, about)
                weak = further or _BESIDE_BEFORE.search(before) or _GREETED_BEFORE.search(before)
                (beside if weak else about).add(key)
        about -= other
        about, beside = about or (beside - other), beside - about
        mine = [n for n in told if self.keys[n] in about]
        return mine, [n for n in told if n not in mine]

    def before(self, place: int, reach: int = 72) -> str:
        start = self.words[place].start
        return self.text[max(0, start - reach) : start]

    def after(self, place: int, reach: int = 96) -> str:
        end = self.words[place].end
        return self.text[end : end + reach]

    def capital(self, place: int) -> bool:
        return 0 <= place < len(self.words) and self.words[place].text[0].isupper()

    def joined(self, place: int) -> bool:
        """Whether a capitalised word follows, behind one blank or an initial's dot."""
        if not self.capital(place + 1) or self.words[place + 1].text == "I":
            return False
        between = self.text[self.words[place].end : self.words[place + 1].start]
        initial = len(self.words[place].text) == 1
        return between in (" ", "\u00a0") or (initial and between in (". ", "'", "’"))

    def last(self, place: int) -> int:
        """The last capitalised word of the name that begins here."""
        first = place
        while self.joined(place) and not (
            place > first and len(self.words[place].text) > 1 and self.words[place].text.isupper()
        ):
            place += 1
        return place

    def sentence(self, place: int) -> str:
        parts = re.split(r"[.!?;\n](?=\s|$)", self.text[: self.words[place].start])
        return (
            parts[-1]
            + self.words[place].text
            + re.split(r"[.!?;\n](?=\s|$)", self.text[self.words[place].end :])[0]
        )

    def _verdict(self, place: int) -> str:
        """Return "person", "doubtful", "word" (a person's only if the text says so elsewhere) or "not"."""
        word, key, before = self.words[place], self.keys[place], self.before(place)
        if self._not_a_person(place):
            return "not"
        if not word.text[0].isupper():
            said = _SAID_BEFORE.search(before) or _GREETED_BEFORE.search(before)
            if key in ORDINARY:
                said = re.search(r"\bname(?: is|:) $", before.lower())
            return "person" if said or (self.no_capitals and key not in ORDINARY) else "word"
        if self._evident(place):
            return "person"
        full = self._full(place)
        owned = re.match(r"['’]s ([A-Z]\w*[a-z]\w*)", self.after(place))
        branded = owned and folded(owned[1]) not in _BESIDE and not _GENDERED.search(self.text)
        # "I was at Emily's": a brand, or a house.
        bare = re.match(r"['’]s(?:[.,;!?\n]|$| (?:and|or) [A-Z]| ([a-z]+)\b)", self.after(place))
        bare = bare and (bare[1] is None or bare[1] in _FUNCTION - {"and", "or"})
        branded = branded or (bare and not re.search(r"\b(?:of|than|is|are|was|were|be) $", before))
        if key not in ORDINARY:
            if self._behind_stranger(place) or self._in_list(place) or self._ending(place) == "either":
                return "doubtful"
            if full and (_AT.search(before) or re.search(r"\bthe $", before)):
                return "not"
            if _AT.search(before):
                return "doubtful"
            technical = not full and re.search(r"\b(?:with|on|and|or) $", before) and self._technical(place)
            return "doubtful" if branded or technical or self._beside_product(place) else "person"
        return "word" if branded else self._listed(place, full)

    def _behind_stranger(self, place: int) -> bool:
        """Whether a capitalised word that is no common beginning stands before: a first name that nobody listed."""
        if (
            place == 0
            or not self.capital(place - 1)
            or self.keys[place - 1]
            or self.words[place - 1].text.isupper()
        ):
            return False
        previous = folded(self.words[place - 1].text)
        common = previous in WORD_LISTS["beginnings"] | _FUNCTION | _NO_SURNAMES or previous.endswith(
            ("ly", "ing")
        )
        return self._spaced(place) and not common

    def _in_list(self, place: int) -> bool:
        """Whether the line is a list of capitalised names alone, which may be those of firms."""
        start = self.text.rfind("\n", 0, self.words[place].start) + 1
        line = self.text[start:].split("\n", 1)[0]
        items = [item.strip(" .") for item in re.split(r"[,;/|•]|:(?= )| and ", line)]
        names = [re.fullmatch(r"(?:[A-Z&][\w.'’-]*[ \u00a0]?)+", item) for item in items]
        return len(items) > 2 and all(names)

    def _listed(self, place: int, full: bool) -> str:
        """The verdict on a name that is a word, a place or a product too."""
        key, before = self.keys[place], self.before(place)
        end = self.last(place) if full else place
        deed, act = self._does(end, DEEDS), self._does(end, ACTS)
        gendered = _GENDERED.search(self.sentence(place)[self.sentence(place).find(self.words[place].text) :])
        if full and re.search(r"\b[Tt]he $", before):
            return "not"
        if full and not _AT.search(before):
            with_person = key in NAMES_TOO and re.search(r"\b(?:by|with|about|for) $", before)
            if (
                deed
                or act
                or _SOCIAL_BEFORE.search(before)
                or with_person
                or _APPOSITION.match(self.after(end))
                or self._verb_like(end)
                or (gendered and re.match(r"[ \u00a0][a-z]", self.after(end)))
            ):
                return "person"
            return "doubtful" if key in NAMES_TOO else "word"
        alone = not self.joined(place) and not self.words[place].text.isupper()
        if not alone or _AT.search(before) or key in FIRMS_ALONE:
            return "word"
        if self._begins(place):
            technical = self._technical(place)
            if (deed and not technical) or re.match(r" and (?:his|her)\b", self.after(place)):
                return "person"
            return "person" if act and gendered and key not in WORD_LISTS["words"] - NAMES_TOO else "word"
        previous = self.words[place - 1].text
        if (
            key in PLACES_AND_TIMES
            or key in PRODUCTS
            or self._technical(place)
            or self._beside_product(place)
        ):
            return "person" if _SOCIAL_BEFORE.search(before) else "word"
        placed = previous.islower() or folded(previous) in _FUNCTION
        noun = re.match(r"[ \u00a0][a-z]", self.after(place)) and not self._does(
            place, DEEDS | ACTS | _FUNCTION
        )
        return (
            "person"
            if placed and previous not in _DETERMINERS and not noun and self._spaced(place)
            else "word"
        )

    def _does(self, place: int, verbs: Collection[str]) -> bool:
        """Whether one of the verbs follows."""
        found = _PREDICATE.match(self.after(place))
        for word in found[1].split() if found else ():
            if word in verbs:
                return True
            if word not in _AUXILIARIES and not word.endswith("ly"):
                break
        return False

    def _verb_like(self, place: int) -> bool:
        return re.match(r"[ \u00a0][a-z]{2,}(?:[^s]s|ed)(?:[ \u00a0.,;]|$)", self.after(place)) is not None

    def _spaced(self, place: int) -> bool:
        return self.text[self.words[place - 1].end : self.words[place].start] in (" ", "\u00a0")

    def _begins(self, place: int) -> bool:
        """Whether the word begins a sentence or a line."""
        return re.search(r"(?:^|[.!?:;\n•*-]['\"”’)]?)\s*['\"“‘(]?$", self.before(place)) is not None

    def _evident(self, place: int) -> bool:
        """Behind a title or an introduction, in the first line of a CV, or in an address with the surname."""
        before, word = self.before(place), self.words[place]
        if _SAID_BEFORE.search(before) or _GREETED_BEFORE.search(before):
            return (
                not before.lower().rstrip().endswith(("called", "named")) or self.keys[place] not in ORDINARY
            )
        full = self._full(place)
        if _TITLE_BEFORE.search(before):
            return True
        surname = folded(self.words[self.last(place)].text)
        held = (self.keys[place] in self.handles and surname in self.handles) or surname in self.titled
        return (full and held) or (full and self.header[0] == word.start and word.end <= self.header[1])

    def _full(self, place: int) -> bool:
        """Whether what follows can be a surname."""
        if not self.joined(place):
            return False
        following = folded(self.words[place + 1].text)
        if (
            self.words[place].text.isupper()
            and self.header[0] != self.words[place].start
            and not _TITLE_BEFORE.search(self.before(place))
        ):
            return False
        return following in _SURNAMES_TOO or following not in _NO_SURNAMES

    def _not_a_person(self, place: int) -> bool:
        """A surname, a firm, a place, or a part of another word."""
        word, key, before, after = self.words[place], self.keys[place], self.before(place), self.after(place)
        if _TITLE_BEFORE.search(word.text + " ") and self.joined(place):
            return True  # "Miss Hart"
        if len(word.text) < 2 or _inside_other(self.text, word) or _PLACE_BEFORE.search(before):
            return True
        if _FIRM_BEFORE.search(before) or _FIRM_AFTER.match(after) or _STATE_AFTER.match(after):
            return True
        if _EPONYM_AFTER.match(after) and (key in ORDINARY or not self._begins(place)):
            return True
        if _RULER_BEFORE.search(before) or self._in_firm(place) or self._ending(place) == "firm":
            return True
        if _TITLE_BEFORE.search(before) and not self.joined(place):
            return True  # "Mr. James": a surname
        between = self.text[self.words[place - 1].end : word.start] if place else ""
        if self.no_capitals and place and self.keys[place - 1] not in ORDINARY and self.keys[place - 1]:
            return between == " "  # "sarah mitchell"
        if place and folded(self.words[place - 1].text) in _PARTICLES and between.isspace():
            return True
        if not self.capital(place - 1) or not self.capital(place):
            return False
        previous = self.words[place - 1].text
        if not re.fullmatch(r"\.?[ \u00a0]", between):
            return False
        if len(previous) == 1 and previous != "I":
            return True  # "E. James"
        if between[0] == "." or folded(previous) in _FUNCTION or _TITLE_BEFORE.search(before):
            return False
        if self.keys[place - 1]:
            return self.keys[place - 1] not in ORDINARY or self._verdict(place - 1) == "person"
        # "Baker McKenzie", "Neiman Marcus": behind another capital that does not begin the sentence.
        begins = self._begins(place - 1)
        return not begins and not previous.isupper() and not self._is_role(place - 1)

    def _is_role(self, place: int) -> bool:
        """Whether the word is no name but stands before one: "Director Emily Hart", "Monday Emily left"."""
        return folded(self.words[place].text) in WORD_LISTS["no_surnames"] | PLACES_AND_TIMES

    def _ending(self, place: int) -> str:
        """Return "firm" if a word such as Street is in the name, "surname" for "Dr. Emily Park", "either" if it cannot be told."""
        last, before, key = min(self.last(place), place + 5), self.before(place), self.keys[place]
        for n in range(place + 1, last + 1):
            ending = folded(self.words[n].text)
            if ending not in _INSTITUTIONS or re.match(r"\. [A-Z]", self.after(n)):
                continue
            if ending not in _SURNAMES_TOO or n < last or n > place + 1 or _PLACED_BEFORE.search(before):
                return "firm"
            cues = (_TITLE_BEFORE, _SAID_BEFORE, _OTHER_BEFORE, _BESIDE_BEFORE)
            sure = any(cue.search(before) for cue in cues) or ending in self.titled
            if sure or self.header[0] == self.words[place].start:
                return "surname"
            if key in ORDINARY - NAMES_TOO:
                return "firm"
            return "surname" if self._does(n, DEEDS | ACTS) or _SOCIAL_BEFORE.search(before) else "either"
        return ""

    def _in_firm(self, place: int) -> bool:
        """Whether the word is part of the name of a firm, an institution, a product or somebody famous that is listed."""
        for length in (1, 2, 3):
            for start in range(max(0, place - length + 1), place + 1):
                # Three words may have "s" of a possessive among them: "Victoria's Secret".
                run = [word for word in self.words[start : start + length + 1] if word.text != "s"][:length]
                name = " ".join(folded(word.text) for word in run)
                if name in FIRMS and (self.no_capitals or all(word.text[0].isupper() for word in run)):
                    return True
        return False

    def _technical(self, place: int) -> bool:
        return _TECHNICAL.search(self.sentence(place)) is not None

    def _beside_product(self, place: int) -> bool:
        """Whether a listed product or place stands before or behind "and" or "or"."""
        for n, step in ((place - 2, place - 1), (place + 2, place + 1)):
            if (
                0 <= n < len(self.words)
                and self.capital(n)
                and folded(self.words[step].text) in ("and", "or")
                and folded(self.words[n].text) in _BESIDE
                and not self._full(n)
            ):
                return not self._full(place)
        return False

    def _surnames(self, verdicts: Mapping[int, str]) -> set[str]:
        """Words that stand behind a title alone, or behind a first name, somewhere in the text."""
        behind = {
            folded(self.words[n + 1].text)
            for n, one in verdicts.items()
            if one == "person" and self.joined(n)
        }
        return self.titled | behind

    def _again(self, place: int) -> str:
        """The verdict on a word that is somebody's name elsewhere in the text."""
        key, word = self.keys[place], self.words[place]
        before = self.before(place)
        if key not in ORDINARY:
            return "person"
        if not word.text[0].isupper() or self._technical(place) or self._beside_product(place):
            return "word"
        if re.match(r"['’]s [A-Z]", self.after(place)):
            return "word"
        if self._full(place) or (self._begins(place) and self._does(place, DEEDS | ACTS)):
            return "person"
        if re.match(r"['’]s? [a-z]", self.after(place)) or _SOCIAL_BEFORE.search(before):
            return "person"
        elsewhere = _AT.search(before) or re.search(
            r"\b(?:to|from|of|by|since|until|the|a|an|this|last|next|named|is|was|am|be) $", before
        )
        things = re.match(r"[ \u00a0](?:\d|[a-z])|:? \d", self.after(place)) and not self._does(
            place, DEEDS | ACTS | _FUNCTION - {"of"}
        )
        if elsewhere or things or (key in PLACES_AND_TIMES and re.search(r", $", before)):
            return "word"
        return "doubtful" if key in PLACES_AND_TIMES | FIRMS_ALONE | PRODUCTS else "person"

    def _partner(self, place: int, people: Collection[str]) -> bool:
        """Whether "and" joins the name to one of these people: "Emily and Grace Lee"."""
        return any(
            self.keys[n] in people
            and self.text[self.words[self.last(n)].end : self.words[place].start] == " and "
            for n in range(max(0, place - 4), place)
        )

    def _referee(self, place: int) -> bool:
        section = _REFEREES.search(self.text)
        return section is not None and 0 < section.start() < self.words[place].start

    def _listed_after(self, first: int, place: int) -> bool:
        """Whether a list of people goes on: "Referees: Susan Hill, Peter Grant"."""
        between = self.text[self.words[self.last(first)].end : self.words[place].start]
        return re.fullmatch(rf"(?:,? and|,)[ \u00a0\n]+(?:(?:{_TITLE})[ \u00a0]+)*", between) is not None


def _inside_other(text: str, word: Word) -> bool:
    """Angelo in D'Angelo, Ann in Ann's-lace."""
    before = text[max(word.start - 2, 0) : word.start]
    return len(before) == 2 and before[1] in "'’" and before[0].isalpha()


def called(text: str, found: Collection[Word]) -> set[str]:
    """Return the first names found and their surnames, as titles stand before them."""
    reader = _Reader(text)
    starts = {word.start: place for place, word in enumerate(reader.words)}
    places = [(starts[word.start], reader.last(starts[word.start])) for word in found]
    return {folded(reader.words[n].text) for first, last in places for n in range(first, last + 1)}


def name_changes(text: str, found: Collection[Word], new_names: Mapping[str, str]) -> list[Change]:
    """Return what replaces names: the words, their possessives, initials before the surname, addresses."""
    changes = []
    surnames: dict[str, str] = {}
    reader = _Reader(text)
    starts = {word.start: place for place, word in enumerate(reader.words)}
    for word in found:
        key, place = name_key(word.text), starts[word.start]
        new = new_names[key]
        written = like_case(new, word.text) if word.text[0].isupper() else new.lower()
        last = reader.last(place)
        if reader.joined(place) and _women(key, reader.keys[place + 1]):
            place += 1  # "Mary Ann"
        whole = Word(text[word.start : reader.words[place].end], word.start)
        changes.append(_with_possessive(text, whole, written))
        surnames.update(
            {folded(one.text): key for one in reader.words[place + 1 : last + 1] if len(one.text) > 1}
        )
    changes += _initials(text, surnames, new_names)
    for low, high in addresses(text):
        changes += _in_address(text, low, high, new_names, surnames)
    return changes


def _women(*keys: str) -> bool:
    return all(key not in ORDINARY and known_gender(key) == "female" for key in keys)


def _with_possessive(text: str, word: Word, new: str) -> Change:
    """James' becomes Jamal's, James's becomes Jamal's; a closing quotation mark stays."""
    rest = text[word.end : word.end + 2]
    bare = rest[:1] in ("'", "’") and word.text[-1] in "sS" and not rest[1:2].isalpha()
    opened = re.search(r"(?:^|[\s(])['‘][^'’]*$", text[: word.start]) is not None
    if bare and not opened and re.match(r".\s+\w", text[word.end :]) and new[-1] not in "sS":
        return Change(word.start, word.text + rest[0], new + rest[0] + ("S" if word.text.isupper() else "s"))
    return Change(word.start, word.text, new)


def _initials(text: str, surnames: Mapping[str, str], new_names: Mapping[str, str]) -> list[Change]:
    """Find E. for Emily in "E. Walsh" if the text has her whole name."""
    changes = []
    for surname, name in surnames.items():
        pattern = re.compile(
            rf"(?<![\w.])([^\W\d_])(?=\.[ \u00a0]?(?:[A-Z]\.[ \u00a0]?)?{re.escape(surname)}(?!\w))",
            re.IGNORECASE,
        )
        changes += [
            Change(hit.start(1), hit[1], new_names[name][0].upper())
            for hit in pattern.finditer(text)
            if folded(hit[1]) == name[0] and hit[1].isupper()
        ]
    return changes


def _in_address(
    text: str, low: int, high: int, new_names: Mapping[str, str], surnames: Mapping[str, str]
) -> list[Change]:
    """Names in the parts of an address, alone or glued to the surname: emily.walsh, emilywalsh, ewalsh."""
    at = text.find("@", low + 1, high)
    end = at if at > low else high
    changes = []
    for part in re.finditer(r"[^\W\d_]+", text[low:end]):
        key = folded(part.group())
        new = new_names.get(key)
        for surname, name in surnames.items():
            if key == name + surname:
                new = new_names[name] + surname
            elif key == name[0] + surname:
                new = new_names[name][0] + surname
            elif key in (surname + name, surname + name[0]):
                new = surname + (new_names[name] if key.endswith(name) else new_names[name][0])
            elif len(name) > 2 and key.startswith(name) and surname.startswith(key[len(name) :]):
                new = new_names[name] + key[len(name) :]
            elif key == name[0] and re.match(
                rf"[._-]{re.escape(surname)}\b", folded(text[low + part.end() : end])
            ):
                new = new_names[name][0]
        if new is not None:
            written = like_case(new, part.group()) if part.group()[0].isupper() else new.lower()
            changes.append(Change(low + part.start(), part.group(), written))
    return changes


def names_left(text: str, names: Collection[str], changes: Collection[Change]) -> list[str]:
    """Return the addresses and handles that still hold one of the names after the changes."""
    left = []
    for low, high in addresses(text):
        at = text.find("@", low + 1, high)
        end = at if at > low else high
        for part in re.finditer(r"[^\W\d_]+", text[low:end]):
            key, start = folded(part.group()), low + part.start()
            held = any(len(name) > 3 and name in key for name in names)
            if held and not any(change.start == start for change in changes):
                left.append(text[low:high])
    return left
