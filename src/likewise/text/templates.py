"""Texts made from a pattern with slots."""

from __future__ import annotations

import itertools
import string
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from likewise.core.errors import bad_parameter

__all__ = ["Template"]


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
                "Template",
                "text",
                allowed="a text with {slots}",
                got=self.text,
                remedy="Write {{ for a brace.",
            ) from error
        if not all(name.isidentifier() for name in found):
            raise bad_parameter(
                "Template", "text", allowed="a text whose slots are plain names", got=self.text
            )
        return tuple(dict.fromkeys(found))

    def fill(self, **values: str) -> str:
        """Return the text with every slot filled."""
        if set(values) != set(self.slots):
            raise bad_parameter(
                "Template.fill", "values", allowed=f"given for {', '.join(self.slots)}", got=sorted(values)
            )
        return self.text.format(**values)

    def frame(self, **lists: Sequence[str]) -> pd.DataFrame:
        """Return all combinations as a table: the slots' values and the column ``text``."""
        rows = [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]
        return pd.DataFrame([row | {"text": self.fill(**row)} for row in rows])
