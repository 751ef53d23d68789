"""The words of a text, what stands around each, and which of them are one name."""

from __future__ import annotations

import re
from collections.abc import Collection

from likewise.text.edited import words_of
from likewise.text.name_lists import WORD_LISTS, name_key

_PREDICATE = re.compile(r"(?:,? who)?[ \u00a0]([a-z]+(?: [a-z]+){0,2})")
_SENTENCE_END = re.compile(r"[.!?;\n](?=\s|$)")


class Reading:
    """A text by its words; places count them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = list(words_of(text))
        self.keys = [name_key(word.text) for word in self.words]

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
            if word not in WORD_LISTS["auxiliaries"] and not word.endswith("ly"):
                break
        return False

    def verb_like(self, place: int) -> bool:
        """Whether a word in -s or -ed follows."""
        return re.match(r"[ \u00a0][a-z]{2,}(?:[^s]s|ed)(?:[ \u00a0.,;]|$)", self.after(place)) is not None

    def begins(self, place: int) -> bool:
        """Whether the word begins a sentence or a line."""
        return re.search(r"(?:^|[.!?:;\n•*-]['\"”’)]?)\s*['\"“‘(]?$", self.before(place)) is not None
