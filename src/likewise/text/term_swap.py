"""The edit that replaces words or phrases by others: dialect, nationality, religion; and functions as edits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from likewise.core.errors import bad_parameter
from likewise.text.edited import Change, Edited, edited_text
from likewise.text.words_in_text import addresses, folded, like_case

__all__ = ["FunctionEdit", "TermSwap"]


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
                "TermSwap",
                "terms",
                allowed="a mapping of words to words with at least one pair",
                got=self.terms,
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
            raise bad_parameter(self.name, "function", allowed="a function from text to text", got=after)
        return edited_text(text, [Change(0, text, after)], skipped="the function changed nothing")
