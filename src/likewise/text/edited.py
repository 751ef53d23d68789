"""What an edit did to a text: every change with its place, so that it can be shown and undone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["Change", "Edited", "TextEdit", "edited_text"]


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
        In order; none where the edit found nothing to change.
    skipped : str, default=""
        Why nothing was changed, where there is something to say.

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
    """Apply changes that do not overlap; those that change nothing are left out.

    Examples
    --------
    >>> edited_text("a b a", [Change(4, "a", "c"), Change(0, "a", "c"), Change(2, "b", "b")]).text
    'c b c'
    """
    real = sorted(change for change in changes if change.before != change.after)
    parts, place = [], 0
    for change in real:
        parts += [text[place : change.start], change.after]
        place = change.start + len(change.before)
    return Edited("".join([*parts, text[place:]]), tuple(real), "" if real else skipped)
