"""Sentences that can be said again in another language: plain strings that remember their key and values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from likewise.texts.catalogue import PLACE, catalogue
from likewise.texts.numbers import written

__all__ = ["Said", "collect_said", "filled", "form_of", "render_said", "restore_said"]

# Deeper than any sentence is nested; a damaged file cannot make us go on without end.
_DEEPEST = 8


class Said(str):
    """An English sentence, made of a key and values, that can be written in another language.

    It is a `str` in every respect, so who only wants the sentence need not know.

    Parameters
    ----------
    key : str
        Of a text in `en.toml`.
    **values
        Numbers, text, sequences of text, or other `Said`.

    Examples
    --------
    >>> said = Said("people", n=1200)
    >>> said, said.written("de")
    ('1,200 people', '1.200 Personen')
    """

    __slots__ = ("key", "values")

    key: str
    values: Mapping[str, Any]

    def __new__(cls, key: str, /, **values: Any) -> Said:
        """Write the English sentence and keep what it was made of."""
        made = super().__new__(cls, render_said(key, values, "en"))
        made.key, made.values = key, values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self.key, dict(self.values)))

    def written(self, language: str) -> str:
        """Return the sentence in a language."""
        return str(self) if language == "en" else render_said(self.key, self.values, language)

    def document(self) -> dict[str, Any]:
        """Return key and values as plain JSON values."""
        return {"key": self.key, "values": {name: _plain(value) for name, value in self.values.items()}}

    @classmethod
    def of(cls, document: Any, depth: int = 0) -> Said | None:
        """Return what `document` described, or None where that is no text that is known here."""
        if not isinstance(document, Mapping) or depth > _DEEPEST:
            return None
        key, values = document.get("key"), document.get("values")
        if not isinstance(key, str) or not isinstance(values, Mapping):
            return None
        try:
            return cls(key, **{str(name): _read(value, depth) for name, value in values.items()})
        except (KeyError, TypeError, ValueError):
            return None


def render_said(key: str, values: Mapping[str, Any], language: str) -> str:
    """Return a text with its values filled in.

    Parameters
    ----------
    key : str
    values : mapping
        `n` chooses the form where there are two.
    language : str

    Examples
    --------
    >>> render_said("people", {"n": 3}, "de")
    '3 Personen'
    """
    text = form_of(key, values, language)
    return PLACE.sub(lambda place: filled(values[place[1]], place[2] or "", language), text)


def form_of(key: str, values: Mapping[str, Any], language: str) -> str:
    """Return a text with its places still open, in the form for the number `n` where there are two."""
    forms = catalogue(language)[key]
    return forms if isinstance(forms, str) else forms["one" if values["n"] == 1 else "other"]


def filled(value: Any, form: str, language: str) -> str:
    """Return what stands in a place: a sentence in the language, or a value in its format."""
    if isinstance(value, Said):
        return value.written(language)
    if form in ("list", "either"):
        value = [item.written(language) if isinstance(item, Said) else item for item in value]
    return written(value, form, language)


def collect_said(value: Any, found: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return every `Said` inside of plain values: the English sentence to its key and values.

    Parameters
    ----------
    value : object
        Mappings and sequences are looked into.

    Examples
    --------
    >>> collect_said({"a": ["plain", Said("people", n=1)]})
    {'1 person': {'key': 'people', 'values': {'n': 1}}}
    """
    known: dict[str, Any] = {} if found is None else found
    if isinstance(value, Said):
        known[str(value)] = value.document()
    elif isinstance(value, Mapping):
        for item in value.values():
            collect_said(item, known)
    elif isinstance(value, (list, tuple)):
        for item in value:
            collect_said(item, known)
    return known


def restore_said(sentence: str, known: Mapping[str, Any]) -> str:
    """Return a sentence with its key and values again, where `collect_said` had noted them.

    Examples
    --------
    >>> restore_said("1 person", {"1 person": {"key": "people", "values": {"n": 1}}}).written("de")
    '1 Person'
    """
    return Said.of(known.get(sentence)) or sentence


def _again(key: str, values: dict[str, Any]) -> Said:
    return Said(key, **values)


def _plain(value: Any) -> Any:
    if isinstance(value, Said):
        return value.document()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):  # JSON has neither
        return None if math.isnan(value) else written(value, "number", "en")
    return value


def _read(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        found = Said.of(value, depth + 1)
        if found is None:
            raise ValueError("no text that is known here")
        return found
    return [_read(item, depth + 1) for item in value] if isinstance(value, list) else value
