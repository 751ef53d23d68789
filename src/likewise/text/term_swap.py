"""Edits of texts other than names: words and phrases replaced, templates, placebos."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from likewise.core.errors import bad_parameter
from likewise.text.edited import Change, Edited, TextEdit, addresses, edited_text, folded, like_case


@dataclass(frozen=True)
class TermSwap:
    """Replace whole words or phrases, in the case they are written in; all at once, so a swap is a swap.

    Parameters
    ----------
    name : str
        What tables call it: ``"religion_muslim"`` is the value muslim of the family religion.
    terms : mapping of str to str
        What to replace by what.
    both_ways : bool, default=False
        Replace the second by the first too.

    Examples
    --------
    >>> swap = TermSwap("religion_mosque", {"church": "mosque", "Catholic": "Muslim"})
    >>> swap("The CHURCH choir of a catholic parish; churches stay.").text
    'The MOSQUE choir of a Muslim parish; churches stay.'
    """

    name: str
    terms: dict[str, str] = field(default_factory=dict)
    both_ways: bool = False

    def __post_init__(self) -> None:
        if not self.terms or not all(isinstance(k, str) and k.strip() for k in self.terms):
            raise bad_parameter(
                "TermSwap", "terms", "a mapping of words to words with at least one pair", self.terms
            )

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        pairs = {folded(old): new for old, new in self.terms.items()}
        if self.both_ways:
            pairs |= {folded(new): old for old, new in self.terms.items() if folded(new) not in pairs}
        longest = sorted(pairs, key=len, reverse=True)
        pattern = re.compile(
            r"(?<![\w\u0300-\u036f])(?:" + "|".join(map(re.escape, longest)) + r")(?![\w\u0300-\u036f])",
            re.IGNORECASE,
        )
        taken = addresses(text)
        changes = [
            Change(hit.start(), hit.group(), like_case(pairs[folded(hit.group())], hit.group()))
            for hit in pattern.finditer(text)
            if folded(hit.group()) in pairs and not any(a <= hit.start() < b for a, b in taken)
        ]
        return edited_text(text, changes, skipped="none of the terms found")


@dataclass(frozen=True)
class FunctionEdit:
    """Any function from text to text as an edit.

    Examples
    --------
    >>> FunctionEdit("shout", str.upper)("hi").changes
    (Change(start=0, before='hi', after='HI'),)
    """

    name: str
    function: Callable[[str], str]

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        after = self.function(text)
        if not isinstance(after, str):
            raise bad_parameter(self.name, "function", "a function from text to text", after)
        return edited_text(text, [Change(0, text, after)], skipped="the function changed nothing")


# Texts made from a pattern with slots.


@dataclass(frozen=True)
class Template:
    """A text with slots in braces.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> template = Template("{name} has a {word} idea.")
    >>> template.slots, template.fill(name="Emily", word="bright")
    (('name', 'word'), 'Emily has a bright idea.')
    >>> template.frame(name=["Emily", "Greg"], word=["bright"])["text"].tolist()
    ['Emily has a bright idea.', 'Greg has a bright idea.']
    """

    text: str

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the slots, each once, in order."""
        try:
            found = [name for _, name, _, _ in string.Formatter().parse(self.text) if name is not None]
        except ValueError as error:
            raise bad_parameter(
                "Template", "text", "a text with {slots}", self.text, "Write {{ for a brace."
            ) from error
        if not all(name.isidentifier() for name in found):
            raise bad_parameter("Template", "text", "a text whose slots are plain names", self.text)
        return tuple(dict.fromkeys(found))

    def fill(self, **values: str) -> str:
        """Return the text with every slot filled."""
        if set(values) != set(self.slots):
            raise bad_parameter(
                "Template.fill", "values", f"given for {', '.join(self.slots)}", sorted(values)
            )
        return self.text.format(**values)

    def frame(self, **lists: Sequence[str]) -> pd.DataFrame:
        """Return all combinations as a table: the slots' values and the column ``text``."""
        rows = [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]
        return pd.DataFrame([row | {"text": self.fill(**row)} for row in rows])


# Edits that should change nothing: what they move is the floor that an edit must rise above.


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
    """Return the placebos of `audit_texts` if none are given.

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
