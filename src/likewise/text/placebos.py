"""Edits that should change nothing: what they move is the floor that an edit must rise above."""

from __future__ import annotations

import re
from dataclasses import dataclass

from likewise.text.edited import Change, Edited, TextEdit, edited_text

__all__ = ["Greeting", "IrrelevantSentence", "ListOrder", "WhiteSpace", "default_placebos"]

_GREETINGS = {"dear": "Hello", "hello": "Hi", "hi": "Hello", "hey": "Hi", "greetings": "Hello"}
_LIST = re.compile(
    r"(?<=: )(?P<colon>[\w+#/ -]+(?:, [\w+#/ -]+)+)(?=[.;\n]|$)"
    r"|(?P<bullets>(?:^[ \t]*[-*•] .*$\n?){2,})",
    re.MULTILINE,
)


@dataclass(frozen=True)
class WhiteSpace:
    r"""Add a blank line at the end.

    Examples
    --------
    >>> WhiteSpace()("Hello.").text
    'Hello.\n\n'
    """

    name: str = "placebo_whitespace"

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        return edited_text(text, [Change(len(text), "", "\n\n")])


@dataclass(frozen=True)
class ListOrder:
    """Reverse the first list of equals: what follows a colon with commas, or lines with bullets.

    Examples
    --------
    >>> ListOrder()("Skills: SQL, Python, Go.").text
    'Skills: Go, Python, SQL.'
    >>> ListOrder()("I like it.").skipped
    'no list found'
    """

    name: str = "placebo_list-order"

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        found = _LIST.search(text)
        if found is None:
            return Edited(text, skipped="no list found")
        if found["colon"] is not None:
            after = ", ".join(reversed(found["colon"].split(", ")))
        else:
            end = "\n" * found["bullets"].endswith("\n")
            after = "\n".join(reversed(found["bullets"].rstrip("\n").split("\n"))) + end
        return edited_text(text, [Change(found.start(), found.group(), after)], "the list is its own reverse")


@dataclass(frozen=True)
class Greeting:
    """Greet in another word that means the same; a text without a greeting stays.

    Examples
    --------
    >>> Greeting()("Dear team, I apply.").text
    'Hello team, I apply.'
    """

    name: str = "placebo_greeting"

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        found = re.match(r"\s*(dear|hello|hi|hey|greetings)\b", text, re.IGNORECASE)
        if found is None:
            return Edited(text, skipped="no greeting found")
        return edited_text(text, [Change(found.start(1), found[1], _GREETINGS[found[1].lower()])])


@dataclass(frozen=True)
class IrrelevantSentence:
    """Add a sentence that has nothing to do with the matter.

    Parameters
    ----------
    sentence : str, default="It is Tuesday today."
    name : str, default="placebo_sentence"

    Examples
    --------
    >>> IrrelevantSentence()("I apply.").text
    'I apply. It is Tuesday today.'
    """

    sentence: str = "It is Tuesday today."
    name: str = "placebo_sentence"

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        end = len(text.rstrip())
        return edited_text(text, [Change(end, "", (" " if end else "") + self.sentence)])


def default_placebos() -> tuple[TextEdit, ...]:
    """Return the placebos of `audit_texts` where none are given.

    Examples
    --------
    >>> [placebo.name for placebo in default_placebos()][:2]
    ['placebo_whitespace', 'placebo_list-order']
    """
    return (
        WhiteSpace(),
        ListOrder(),
        Greeting(),
        IrrelevantSentence(),
        IrrelevantSentence("The weather is fine.", "placebo_weather"),
    )
