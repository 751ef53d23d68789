"""First names in a text: of whom it is about, of others, and those of which it cannot be told.

A first name is a person's, is not, or is doubtful: then the text is left out, since a wrong change would be an edit of
something else.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from likewise.text import name_lists as cue
from likewise.text.edited import Word, addresses, folded, words_of


class People(NamedTuple):
    """First names in a text: of whom it is about, of which it cannot be told, and of others that it names."""

    found: list[Word]
    doubtful: list[Word]
    others: list[Word]


def find_names(text: str, source: Collection[str] = ()) -> People:
    """Find the first names of a text; with `source`, these alone."""
    wanted = {cue.name_key(name) for name in source}
    if wanted:
        words = words_of(text)
        return People(
            [w for w in words if cue.name_key(w.text) in wanted and not _inside_other(text, w)], [], []
        )
    return _Finder(text).people()


_PREDICATE = re.compile(r"(?:,? who)?[ \u00a0]([a-z]+(?: [a-z]+){0,2})")
_SENTENCE_END = re.compile(r"[.!?;\n](?=\s|$)")


class Reading:
    """A text by its words; places count them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = list(words_of(text))
        self.keys = [cue.name_key(word.text) for word in self.words]

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

    def between(self, place: int) -> str:
        """What stands between a word and the one before."""
        return self.text[self.words[place - 1].end : self.words[place].start] if place else ""

    def sentence(self, place: int) -> tuple[str, str]:
        """The sentence before a word, and from it on."""
        start = self.words[place].start
        return _SENTENCE_END.split(self.text[:start])[-1], _SENTENCE_END.split(self.text[start:])[0]

    def does(self, place: int, verbs: Collection[str]) -> bool:
        """Whether one of the verbs follows."""
        found = _PREDICATE.match(self.after(place))
        for word in found[1].split() if found else ():
            if word in verbs:
                return True
            if word not in cue.WORD_LISTS["auxiliaries"] and not word.endswith("ly"):
                break
        return False

    def verb_like(self, place: int) -> bool:
        """Whether a word in -s or -ed follows."""
        return re.match(r"[ \u00a0][a-z]{2,}(?:[^s]s|ed)(?:[ \u00a0.,;]|$)", self.after(place)) is not None

    def begins(self, place: int) -> bool:
        """Whether the word begins a sentence or a line."""
        return re.search(r"(?:^|[.!?:;\n•*-]['\"”’)]?)\s*['\"“‘(]?$", self.before(place)) is not None


class _Finder(Reading):
    """The words of a text and what stands around them; each first name gets a verdict from it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.no_capitals = text == text.lower()
        header = cue.HEADER.match(text)
        headed = header is not None and ("\n" in text.strip() or "@" in text)
        self.header = header.span("name") if header and headed else (-1, -1)
        self.titled = {
            folded(word.text)
            for place, word in enumerate(self.words)
            if cue.TITLE_BEFORE.search(self.before(place)) and not self.joined(place)
        }
        self.handles = folded(" ".join(text[low:high] for low, high in addresses(text)))

    def people(self) -> People:
        verdicts = {place: self._verdict(place) for place, key in enumerate(self.keys) if key}
        # Words that stand behind a title alone, or behind a first name, somewhere in the text.
        behind = {
            folded(self.words[n + 1].text)
            for n, one in verdicts.items()
            if one == "person" and self.joined(n)
        }
        surnames = self.titled | behind
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
                and (self.joined(n) or self._referee(n) or cue.INSIDE.search(self.before(n)))
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
                or cue.OTHER_BEFORE.search(before)
                or cue.OTHER_AFTER.match(self.after(self.last(n)))
            ):
                other.add(key)
                listed = n
            else:
                further = self._full(n) and about - {key} and not self._evident(n)
                further = further and not self._partner(n, about)
                weak = further or cue.BESIDE_BEFORE.search(before) or cue.GREETED_BEFORE.search(before)
                (beside if weak else about).add(key)
        about -= other
        about, beside = about or (beside - other), beside - about
        mine = [n for n in told if self.keys[n] in about]
        return mine, [n for n in told if n not in mine]

    def _verdict(self, place: int) -> str:
        """Return "person", "doubtful", "word" (a person's only if the text says so elsewhere) or "not"."""
        word, key, before = self.words[place], self.keys[place], self.before(place)
        if self._not_a_person(place):
            return "not"
        if not word.text[0].isupper():
            said = cue.SAID_BEFORE.search(before) or cue.GREETED_BEFORE.search(before)
            if key in cue.ORDINARY:
                said = re.search(r"\bname(?: is|:) $", before.lower())
            return "person" if said or (self.no_capitals and key not in cue.ORDINARY) else "word"
        if self._evident(place):
            return "person"
        full = self._full(place)
        branded = self._branded(place)
        if key not in cue.ORDINARY:
            if self._after_unlisted_name(place) or self._in_list(place) or self._ending(place) == "either":
                return "doubtful"
            organised = full and (cue.AT.search(before) or re.search(r"\bthe $", before))
            if organised or re.search(r"\ban? $", before):
                return "not"
            if cue.AT.search(before):
                return "doubtful"
            technical = not full and re.search(r"\b(?:with|on|and|or) $", before) and self._technical(place)
            return "doubtful" if branded or technical or self._beside_product(place) else "person"
        return "word" if branded else self._listed(place, full)

    def _branded(self, place: int) -> bool:
        """Whether a possessive may be a brand's: "Victoria's Secret", "I was at Wendy's"."""
        after = self.after(place)
        if thing := re.match(r"['’]s ([A-Z]\w*[a-z]\w*)", after):
            return folded(thing[1]) not in cue.BESIDE and not cue.GENDERED.search(self.text)
        bare = re.match(r"['’]s(?:[.,;!?\n]|$| (?:and|or) [A-Z]| ([a-z]+)\b)", after)
        alone = bare is not None and (bare[1] is None or bare[1] in cue.FUNCTION - {"and", "or"})
        return alone and not re.search(r"\b(?:of|than|is|are|was|were|be) $", self.before(place))

    def _after_unlisted_name(self, place: int) -> bool:
        """Whether a capitalised word that is no common beginning stands before: a first name that nobody listed."""
        if (
            place == 0
            or not self.capital(place - 1)
            or self.keys[place - 1]
            or self.words[place - 1].text.isupper()
        ):
            return False
        previous = folded(self.words[place - 1].text)
        common = previous in cue.WORD_LISTS[
            "beginnings"
        ] | cue.FUNCTION | cue.NO_SURNAMES or previous.endswith(("ly", "ing"))
        return self.between(place) in (" ", "\u00a0") and not common

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
        deed, act = self.does(end, cue.DEEDS), self.does(end, cue.ACTS)
        gendered = cue.GENDERED.search(self.sentence(place)[1])
        if full and re.search(r"\b[Tt]he $", before):
            return "not"
        if full and not cue.AT.search(before):
            with_person = key in cue.NAMES_TOO and re.search(r"\b(?:by|with|about|for) $", before)
            if (
                deed
                or act
                or cue.SOCIAL_BEFORE.search(before)
                or with_person
                or cue.APPOSITION.match(self.after(end))
                or self.verb_like(end)
                or (gendered and re.match(r"[ \u00a0][a-z]", self.after(end)))
            ):
                return "person"
            return "doubtful" if key in cue.NAMES_TOO else "word"
        alone = not self.joined(place) and not self.words[place].text.isupper()
        if not alone or cue.AT.search(before) or key in cue.FIRMS_ALONE:
            return "word"
        if self.begins(place):
            technical = self._technical(place)
            if (deed and not technical) or re.match(r" and (?:his|her)\b", self.after(place)):
                return "person"
            return (
                "person"
                if act and gendered and key not in cue.WORD_LISTS["words"] - cue.NAMES_TOO
                else "word"
            )
        previous = self.words[place - 1].text
        if self._beside_product(place):
            return "word"
        if key in cue.PLACES_AND_TIMES | cue.PRODUCTS or self._technical(place):
            return "person" if cue.SOCIAL_BEFORE.search(before) else "word"
        placed = previous.islower() or folded(previous) in cue.FUNCTION
        noun = re.match(r"[ \u00a0][a-z]", self.after(place)) and not self.does(
            place, cue.DEEDS | cue.ACTS | cue.FUNCTION
        )
        return (
            "person"
            if placed
            and previous not in cue.DETERMINERS
            and not noun
            and self.between(place) in (" ", "\u00a0")
            else "word"
        )

    def _evident(self, place: int) -> bool:
        """Behind a title or an introduction, in the first line of a CV, or in an address with the surname."""
        before = self.before(place)
        if cue.SAID_BEFORE.search(before) or cue.GREETED_BEFORE.search(before):
            return (
                not before.lower().rstrip().endswith(("called", "named"))
                or self.keys[place] not in cue.ORDINARY
            )
        full = self._full(place)
        if cue.TITLE_BEFORE.search(before):
            return True
        surname = folded(self.words[self.last(place)].text)
        held = (self.keys[place] in self.handles and surname in self.handles) or surname in self.titled
        return full and (held or self._heads(place))

    def _heads(self, place: int) -> bool:
        """Whether the word begins the first line of a CV."""
        return self.header[0] == self.words[place].start

    def _full(self, place: int) -> bool:
        """Whether what follows can be a surname."""
        if not self.joined(place):
            return False
        following = folded(self.words[place + 1].text)
        if (
            self.words[place].text.isupper()
            and self.header[0] != self.words[place].start
            and not cue.TITLE_BEFORE.search(self.before(place))
        ):
            return False
        return following in cue.SURNAMES_TOO or following not in cue.NO_SURNAMES

    def _not_a_person(self, place: int) -> bool:
        """A surname, a firm, a place, or a part of another word."""
        word, key, before, after = self.words[place], self.keys[place], self.before(place), self.after(place)
        if cue.TITLE_BEFORE.search(word.text + " ") and self.joined(place):
            return True  # "Miss Hart"
        if len(word.text) < 2 or _inside_other(self.text, word) or cue.PLACE_BEFORE.search(before):
            return True
        if cue.FIRM_BEFORE.search(before) or cue.FIRM_AFTER.match(after) or cue.STATE_AFTER.match(after):
            return True
        if cue.EPONYM_AFTER.match(after) and (key in cue.ORDINARY or not self.begins(place)):
            return True
        told = self._evident(place) and not self._heads(place)
        if (
            cue.RULER_BEFORE.search(before)
            or (self._in_firm(place) and not told)
            or self._ending(place) == "firm"
        ):
            return True
        if cue.TITLE_BEFORE.search(before) and not self.joined(place):
            return True  # "Mr. James": a surname
        between = self.between(place)
        if self.no_capitals and place and self.keys[place - 1] not in cue.ORDINARY and self.keys[place - 1]:
            return between == " "  # "sarah mitchell"
        if place and folded(self.words[place - 1].text) in cue.PARTICLES and between.isspace():
            return True
        if not self.capital(place - 1) or not self.capital(place):
            return False
        previous = self.words[place - 1].text
        if not re.fullmatch(r"\.?[ \u00a0]", between):
            return False
        if len(previous) == 1 and previous != "I":
            return True  # "E. James"
        if between[0] == "." or folded(previous) in cue.FUNCTION or cue.TITLE_BEFORE.search(before):
            return False
        if self.keys[place - 1]:
            return self.keys[place - 1] not in cue.ORDINARY or self._verdict(place - 1) == "person"
        # "Baker McKenzie", "Neiman Marcus": behind another capital that does not begin the sentence.
        begins = self.begins(place - 1)
        return not begins and not previous.isupper() and folded(previous) not in cue.ROLES

    def _ending(self, place: int) -> str:
        """Return "firm" if a word such as Street is in the name, "surname" for "Dr. Emily Park", "either" if it cannot be told."""
        last, before, key = min(self.last(place), place + 5), self.before(place), self.keys[place]
        for n in range(place + 1, last + 1):
            ending = folded(self.words[n].text)
            if ending not in cue.INSTITUTIONS or re.match(r"\. [A-Z]", self.after(n)):
                continue
            if ending not in cue.SURNAMES_TOO or n < last or n > place + 1 or cue.INSIDE.search(before):
                return "firm"
            cues = (cue.TITLE_BEFORE, cue.SAID_BEFORE, cue.OTHER_BEFORE, cue.BESIDE_BEFORE)
            sure = any(cue.search(before) for cue in cues) or ending in self.titled
            if sure or self.header[0] == self.words[place].start:
                return "surname"
            if key in cue.ORDINARY - cue.NAMES_TOO:
                person = self.does(n, cue.DEEDS) and cue.GENDERED.search(self.sentence(n)[1])
                return "surname" if person else "firm"
            return (
                "surname"
                if self.does(n, cue.DEEDS | cue.ACTS) or cue.SOCIAL_BEFORE.search(before)
                else "either"
            )
        return ""

    def _in_firm(self, place: int) -> bool:
        """Whether the word is part of the name of a firm, an institution, a product or somebody famous that is listed."""
        for length in (1, 2, 3):
            for start in range(max(0, place - length + 1), place + 1):
                # Three words may have "s" of a possessive among them: "Victoria's Secret".
                run = [word for word in self.words[start : start + length + 1] if word.text != "s"][:length]
                name = " ".join(folded(word.text) for word in run)
                if name in cue.FIRMS and (self.no_capitals or all(word.text[0].isupper() for word in run)):
                    return True
        return False

    def _technical(self, place: int) -> bool:
        return any(cue.TECHNICAL.search(part) for part in self.sentence(place))

    def _beside_product(self, place: int) -> bool:
        """Whether a listed product or place stands before or behind "and" or "or"."""
        for n, step in ((place - 2, place - 1), (place + 2, place + 1)):
            if (
                0 <= n < len(self.words)
                and self.capital(n)
                and folded(self.words[step].text) in ("and", "or")
                and folded(self.words[n].text) in cue.BESIDE
                and not self._full(n)
            ):
                return not self._full(place)
        return False

    def _again(self, place: int) -> str:
        """The verdict on a word that is somebody's name elsewhere in the text."""
        key, word = self.keys[place], self.words[place]
        before = self.before(place)
        if key not in cue.ORDINARY:
            return "person"
        if not word.text[0].isupper() or self._technical(place) or self._beside_product(place):
            return "word"
        if re.match(r"['’]s [A-Z]", self.after(place)):
            return "word"
        if self._full(place) or (self.begins(place) and self.does(place, cue.DEEDS | cue.ACTS)):
            return "person"
        if re.match(r"['’]s? [a-z]", self.after(place)) or cue.SOCIAL_BEFORE.search(before):
            return "person"
        elsewhere = cue.AT.search(before) or re.search(
            r"\b(?:to|from|of|by|since|until|the|a|an|this|last|next|named|is|was|am|be) $", before
        )
        things = re.match(r"[ \u00a0](?:\d|[a-z])|:? \d", self.after(place)) and not self.does(
            place, cue.DEEDS | cue.ACTS | cue.FUNCTION - {"of"}
        )
        if elsewhere or things or (key in cue.PLACES_AND_TIMES and re.search(r", $", before)):
            return "word"
        return "doubtful" if key in cue.PLACES_AND_TIMES | cue.FIRMS_ALONE | cue.PRODUCTS else "person"

    def _partner(self, place: int, people: Collection[str]) -> bool:
        """Whether "and" joins the name to one of these people: "Emily and Grace Lee"."""
        return any(
            self.keys[n] in people
            and self.text[self.words[self.last(n)].end : self.words[place].start] == " and "
            for n in range(max(0, place - 4), place)
        )

    def _referee(self, place: int) -> bool:
        section = cue.REFEREES.search(self.text)
        return section is not None and 0 < section.start() < self.words[place].start

    def _listed_after(self, first: int, place: int) -> bool:
        """Whether a list of people goes on: "Referees: Susan Hill, Peter Grant"."""
        between = self.text[self.words[self.last(first)].end : self.words[place].start]
        return re.fullmatch(rf"(?:,? and|,)[ \u00a0\n]+(?:(?:{cue.TITLE})[ \u00a0]+)*", between) is not None


def _inside_other(text: str, word: Word) -> bool:
    """Angelo in D'Angelo, Ann in Ann's-lace."""
    before = text[max(word.start - 2, 0) : word.start]
    return len(before) == 2 and before[1] in "'’" and before[0].isalpha()
