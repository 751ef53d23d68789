"""Words of a text with their places, addresses apart; and a word written in the case of another."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Word", "addresses", "folded", "like_case", "words_of"]

# Accents may stand behind their letter (U+0301 after e): they belong to the word.
_ACCENTS = "\u0300-\u036f"
_PART = rf"[^\W\d_][\w{_ACCENTS}]*"
_WORD = re.compile(rf"(?<![\w{_ACCENTS}])({_PART}(?:-{_PART})*)")
_ADDRESS = re.compile(
    r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+|https?://\S+|\b(?:www\.)?(?:[\w-]+\.)+[a-z]{2,}/\S+|(?<![\w.])@[\w.]+",
)


@dataclass(frozen=True)
class Word:
    """A word and where it begins."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Place behind it."""
        return self.start + len(self.text)


def folded(word: str) -> str:
    r"""Return a word as it is looked up: composed accents, no case.

    Examples
    --------
    >>> folded("JOSE\u0301") == folded("josé")
    True
    """
    return unicodedata.normalize("NFC", word).casefold()


def addresses(text: str) -> list[tuple[int, int]]:
    """Return the places of e-mail addresses, links and handles.

    Examples
    --------
    >>> [("Write to ann.lee@example.org or @ann.")[a:b] for a, b in addresses("Write to ann.lee@example.org or @ann.")]
    ['ann.lee@example.org', '@ann.']
    """
    return [found.span() for found in _ADDRESS.finditer(text)]


def words_of(text: str) -> Iterator[Word]:
    """Go through the words of a text that stand in no address; hyphens join, what follows ' is apart.

    Examples
    --------
    >>> [word.text for word in words_of("Mary-Jane's mail: mj@example.org, O'Brien")]
    ['Mary-Jane', 's', 'mail', 'O', 'Brien']
    """
    taken = addresses(text)
    for found in _WORD.finditer(text):
        if not any(low <= found.start() < high for low, high in taken):
            yield Word(found.group(1), found.start())


def like_case(word: str, model: str) -> str:
    """Write `word` in capitals, with a capital, or as it is, as `model` is written.

    Examples
    --------
    >>> like_case("jamal", "EMILY"), like_case("jamal", "Emily"), like_case("he", "she"), like_case("mcKay", "Ann")
    ('JAMAL', 'Jamal', 'he', 'McKay')
    """
    letters = [letter for letter in model if letter.isalpha()]
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return word.upper()
    if letters and letters[0].isupper():
        return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))
    return word
