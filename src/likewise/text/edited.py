"""Edited texts: every change with its place, so that it can be shown and undone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, order=True)
class Change:
    """One replaced stretch of a text.

    Parameters
    ----------
    start : int
        Where it begins in the text as it was.
    before, after : str
        What stood there, and what stands there now.

    Examples
    --------
    >>> from likewise.text import NameSwap
    >>> NameSwap(names=("Lakisha",))("Dear Emily").changes
    (Change(start=5, before='Emily', after='Lakisha'),)
    """

    start: int
    before: str
    after: str


@dataclass(frozen=True)
class Edited:
    """A text after an edit.

    Parameters
    ----------
    text : str
        The text now.
    changes : tuple of Change
        In order; none if the edit found nothing to change.
    skipped : str, default=""
        Why nothing was changed, if there is something to say.

    Examples
    --------
    >>> edited = edited_text("Hi Ann", [Change(3, "Ann", "Eve")])
    >>> edited.text, edited.undone()
    ('Hi Eve', 'Hi Ann')
    """

    text: str
    changes: tuple[Change, ...] = ()
    skipped: str = ""

    @property
    def changed(self) -> bool:
        """Whether the text is another one now."""
        return bool(self.changes)

    def undone(self) -> str:
        """Return the text as it was."""
        shift, reverse = 0, []
        for change in self.changes:
            reverse.append(Change(change.start + shift, change.after, change.before))
            shift += len(change.after) - len(change.before)
        return edited_text(self.text, reverse).text


@runtime_checkable
class TextEdit(Protocol):
    """Anything with a name that turns a text into an `Edited`.

    Examples
    --------
    >>> from likewise.text import NameSwap
    >>> isinstance(NameSwap(race="black"), TextEdit), NameSwap(race="black").name
    (True, 'name_black')
    """

    @property
    def name(self) -> str:
        """What tables call it: ``family`` or ``family_value``."""
        ...

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        ...


def edited_text(text: str, changes: Iterable[Change], skipped: str = "") -> Edited:
    """Apply changes that do not overlap; those that change nothing are left out."""
    real = sorted(change for change in changes if change.before != change.after)
    parts, place = [], 0
    for change in real:
        parts += [text[place : change.start], change.after]
        place = change.start + len(change.before)
    return Edited("".join([*parts, text[place:]]), tuple(real), "" if real else skipped)


# Words of a text with their places, addresses apart; and a word written in the case of another.


# Accents may stand behind their letter (U+0301 after e): they belong to the word.
_ACCENTS = "\u0300-\u036f"
_PART = rf"[^\W\d_][\w{_ACCENTS}]*"
_WORD = re.compile(rf"(?<![\w{_ACCENTS}])({_PART}(?:-{_PART})*)")
_ADDRESS = re.compile(
    r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+|https?://\S+|\b(?:www\.)?(?:[\w-]+\.)+[a-z]{2,}/\S+|(?<![\w.])@[\w.]+"
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
    r"""Return a word as it is looked up: composed accents, no case."""
    return unicodedata.normalize("NFC", word).casefold()


def addresses(text: str) -> list[tuple[int, int]]:
    """Return the places of e-mail addresses, links and handles."""
    return [found.span() for found in _ADDRESS.finditer(text)]


def words_of(text: str) -> Iterator[Word]:
    """Go through the words of a text that stand in no address; hyphens join, what follows ' is apart."""
    taken = addresses(text)
    for found in _WORD.finditer(text):
        if not any(low <= found.start() < high for low, high in taken):
            yield Word(found.group(1), found.start())


def like_case(word: str, model: str) -> str:
    """Write `word` in capitals, with a capital, or as it is, as `model` is written."""
    letters = [letter for letter in model if letter.isalpha()]
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return word.upper()
    if letters and letters[0].isupper():
        return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))
    return word
