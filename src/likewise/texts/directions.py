"""Words from a table inside of our sentences: what they say about the direction of writing ends where they end.

A column called in Hebrew would turn the numbers beside it around, and a sign that overrides the direction everything up
to the end of the sentence: 68.5% could be shown for 58.6%. Words that are written from the right are therefore isolated
(U+2068 … U+2069), and signs that override are left out.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["contained"]

_BEGIN, _END = "\u2068", "\u2069"
_OVERRIDES = re.compile("[\u202a-\u202e\u2066\u2067]")
_ISOLATES = re.compile("[\u2068\u2069]")
_FROM_RIGHT = ("R", "AL")


def contained(text: str) -> str:
    """Return words that leave the direction of what stands around them alone.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> contained("sex"), contained("\u202esex"), contained("\u05de\u05d9\u05df") == "\u2068\u05de\u05d9\u05df\u2069"
    ('sex', 'sex', True)
    """
    if text.isascii():
        return text
    text = _OVERRIDES.sub("", text)
    depth, balanced, open_word = 0, True, False
    for sign in text:
        depth += (sign == _BEGIN) - (sign == _END)
        balanced = balanced and depth >= 0
        open_word = open_word or (depth <= 0 and unicodedata.bidirectional(sign) in _FROM_RIGHT)
    if depth or not balanced:
        return contained(_ISOLATES.sub("", text))
    return f"{_BEGIN}{text}{_END}" if open_word else text
