"""What the user says about a file that the file does not say itself."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Literal

from likewise.core.errors import InputError

__all__ = ["Doubled", "Reading"]

Doubled = Literal["drop", "number"]


@dataclass(frozen=True)
class Reading:
    """How a file is read, where that cannot be seen.

    Parameters
    ----------
    encoding : str, optional
        Of the text: ``"latin-1"``, ``"cp1252"``, … By default UTF-8, or UTF-16 where a mark says so.
    decimal : {".", ","}, optional
        What stands before the decimals. By default it is seen from the cells.
    header : bool, optional
        Whether the first line names the columns. By default it is asked about where it looks like values.
    doubled : {"drop", "number"}, default="drop"
        Columns of the same name: later copies with the same values are dropped (different ones are an error), or all
        later ones get a number.

    Examples
    --------
    >>> Reading(encoding="latin-1").encoding
    'latin-1'
    >>> Reading(encoding="latin-99")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: --encoding: 'latin-99' is no text encoding that Python knows. Common ones: utf-8, latin-1, cp1252, utf-16.
    """

    encoding: str | None = None
    decimal: str | None = None
    header: bool | None = None
    doubled: Doubled = "drop"

    def __post_init__(self) -> None:
        if self.encoding is None:
            return
        try:
            known = codecs.lookup(self.encoding)
        except LookupError as error:
            raise InputError(
                f"--encoding: {self.encoding!r} is no text encoding that Python knows. "
                "Common ones: utf-8, latin-1, cp1252, utf-16."
            ) from error
        # Some codecs of Python turn bytes into bytes, such as base64.
        if not getattr(known, "_is_text_encoding", True):
            raise InputError(f"--encoding: {self.encoding!r} is no encoding of text.")
