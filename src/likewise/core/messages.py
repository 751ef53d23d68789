"""Localised messages: catalogues, number formats, and sentences that keep their key so that they can be translated later."""

from __future__ import annotations

import functools
import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib import resources
from types import MappingProxyType
from typing import Any, TypeAlias

from likewise.core.errors import bad_parameter
from likewise.core.text import join_words, printable, short_number

# The texts of a language as they stand in its file: dotted keys, one form or two.


#: Languages that there are texts in.
LANGUAGES = ("en", "de")

# One text, or its forms for one and for any other number `n`.
Forms: TypeAlias = str | Mapping[str, str]

# {name} or {name:format}
PLACE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_PLURAL = {"one", "other"}


def check_language(language: str, *, owner: str) -> str:
    """Return a language that there are texts in, or raise."""
    if language not in LANGUAGES:
        raise bad_parameter(owner, "language", f"one of {', '.join(map(repr, LANGUAGES))}", repr(language))
    return language


@functools.cache
def catalogue(language: str) -> Mapping[str, Forms]:
    """Return all texts of a language by key."""
    file = resources.files("likewise.core") / f"{language}.toml"
    return MappingProxyType(dict(_flat(tomllib.loads(file.read_text(encoding="utf-8")))))


def places(forms: Forms) -> set[tuple[str, str]]:
    """Return the values that a text asks for, with their formats; of two forms, those of either but for the count."""
    listed = [forms] if isinstance(forms, str) else list(forms.values())
    return {(found[1], found[2] or "") for text in listed for found in PLACE.finditer(text)}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Forms]]:
    for name, item in table.items():
        key = f"{prefix}{name}"
        if isinstance(item, str):
            yield key, item
        elif set(item) == _PLURAL:
            yield key, MappingProxyType(item)
        else:
            yield from _flat(item, f"{key}.")


# Words from a table inside of our sentences: what they say about the direction of writing ends where they
# end.


_BEGIN, _END = "\u2068", "\u2069"
_ISOLATES = re.compile("[\u2068\u2069]")
_FROM_RIGHT = ("R", "AL")


def contained(text: str) -> str:
    """Return printable words that leave the direction of what stands around them alone; a space at their end is shown."""
    text = printable(text)
    text = f"“{text}”" if text.endswith(" ") else text
    if text.isascii():
        return text
    depth, balanced, open_word = 0, True, False
    for sign in text:
        depth += (sign == _BEGIN) - (sign == _END)
        balanced = balanced and depth >= 0
        open_word = open_word or (depth <= 0 and unicodedata.bidirectional(sign) in _FROM_RIGHT)
    if depth or not balanced:
        return contained(_ISOLATES.sub("", text))
    return f"{_BEGIN}{text}{_END}" if open_word else text


# Numbers, shares and lists as a language writes them; the scripts of the page know the same formats by
# name.


@dataclass(frozen=True)
class NumberStyle:
    """How a language writes numbers."""

    decimal: str
    group: str
    percent: str
    last: str
    either: str
    unknown: str


STYLES = {
    "en": NumberStyle(".", ",", "%", "and", "or", "unknown"),
    "de": NumberStyle(",", ".", "\u00a0%", "und", "oder", "unbekannt"),
}


def _percent(value: float | None) -> str:
    if value is None:
        return "unknown"
    # A small share is not none: the end of an interval at 0.04% is not 0.0%.
    small = 0.0 < value < 0.0005
    return f"{max(100 * value, 0.001):.1g}%" if small else f"{100 * value:,.1f}%"


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:,.0f} s"


def _p(value: float | None) -> str:
    if value is None:
        return "p unknown"
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


# In English; `written` turns that into another language's signs.
FORMATS: dict[str, Callable[[Any], str]] = {
    "number": short_number,
    "general": "{:g}".format,
    "whole": "{:,.0f}".format,
    "percent": _percent,
    "percent0": lambda value: f"{value * 100:g}%",
    "seconds": _seconds,
    "p": _p,
    "times": "{:.1f}×".format,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def written(value: Any, form: str, language: str) -> str:
    r"""Write one value in a format, as a language does."""
    style = STYLES[language]
    if form in ("list", "either"):
        words: Sequence[str] = [written(word, "", language) for word in value]
        return join_words(words, style.last if form == "list" else style.either)
    if isinstance(value, str) or (not form and not _is_number(value)):
        return contained(str(value))
    text = FORMATS[form or "general"](value).replace("-", "−")
    if language == "en":
        return text
    signs = {",": style.group, ".": style.decimal}
    text = "".join(signs.get(sign, sign) for sign in text)
    return text.replace("%", style.percent).replace("unknown", style.unknown)


# Sentences that can be said again in another language: plain strings that remember their key and values.


# Deeper than any sentence is nested; a damaged file cannot make us go on without end.
_DEEPEST = 8


class Message(str):
    """An English sentence, made of a key and values, that can be written in another language.

    It is a `str` in every respect, so who only wants the sentence need not know.
    """

    __slots__ = ("key", "values")

    key: str
    values: Mapping[str, Any]

    def __new__(cls, key: str, /, **values: Any) -> Message:
        """Write the English sentence and keep what it was made of."""
        made = super().__new__(cls, render_said(key, values, "en"))
        made.key, made.values = key, values
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.key,), dict(self.values)

    def written(self, language: str) -> str:
        """Return the sentence in a language."""
        return str(self) if language == "en" else render_said(self.key, self.values, language)

    def document(self) -> dict[str, Any]:
        """Return key and values as plain JSON values."""
        return {"key": self.key, "values": {name: _plain(value) for name, value in self.values.items()}}

    @classmethod
    def of(cls, document: Any, depth: int = 0) -> Message | None:
        """Return what `document` described, or None if that is not a text that is known here."""
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
    """Return a text with its values filled in."""
    text = form_of(key, values, language)
    return PLACE.sub(lambda place: filled(values[place[1]], place[2] or "", language), text)


def form_of(key: str, values: Mapping[str, Any], language: str) -> str:
    """Return a text with its places still open, in the form for the number `n` if there are two."""
    forms = catalogue(language)[key]
    return forms if isinstance(forms, str) else forms["one" if values["n"] == 1 else "other"]


def filled(value: Any, form: str, language: str) -> str:
    """Return what stands in a place: a sentence in the language, or a value in its format."""
    if isinstance(value, Message):
        return value.written(language)
    if form in ("list", "either"):
        value = [item.written(language) if isinstance(item, Message) else item for item in value]
    return written(value, form, language)


def collect_messages(value: Any, found: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return every `Message` inside of plain values: the English sentence to its key and values."""
    known: dict[str, Any] = {} if found is None else found
    if isinstance(value, Message):
        known[str(value)] = value.document()
    elif isinstance(value, Mapping):
        for item in value.values():
            collect_messages(item, known)
    elif isinstance(value, (list, tuple)):
        for item in value:
            collect_messages(item, known)
    return known


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.document()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):  # JSON has neither
        return None if math.isnan(value) else written(value, "number", "en")
    return value


def _read(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        found = Message.of(value, depth + 1)
        if found is None:
            raise ValueError("no text that is known here")
        return found
    return [_read(item, depth + 1) for item in value] if isinstance(value, list) else value


class Texts:
    """All texts in one language."""

    def __init__(self, language: str = "en") -> None:
        self.language = check_language(language, owner="Texts")

    def __call__(self, key: str, /, **values: Any) -> str:
        """Return a text with its values filled in."""
        return render_said(key, values, self.language)

    def rich(self, key: str, /, **values: Any) -> str:
        """Return a text as HTML: values escaped, ``**stress**`` as strong, ``~~in passing~~`` as muted."""
        text = escape(form_of(key, values, self.language), quote=False)
        text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
        text = re.sub(r"~~(.+?)~~", r'<span class="muted">\1</span>', text)
        return PLACE.sub(lambda place: escape(filled(values[place[1]], place[2] or "", self.language)), text)

    def number(self, value: Any, form: str = "number") -> str:
        """Return one number, share or list as this language writes it."""
        return written(value, form, self.language)

    def said(self, sentence: str, known: Mapping[str, Any] | None = None) -> str:
        """Return a sentence in this language if its key is known, else as it is."""
        if self.language == "en":
            return str(sentence)
        if not isinstance(sentence, Message):
            found = Message.of(None if known is None else known.get(sentence))
            if found is None:
                return sentence
            sentence = found
        return sentence.written(self.language)

    def has(self, key: str) -> bool:
        """Whether there is a text of this key."""
        return key in catalogue("en")

    def for_scripts(self, *groups: str) -> dict[str, Any]:
        """Return what a script needs to write texts itself: those whose keys begin with one of `groups`."""
        wanted = tuple(f"{group}." for group in groups)
        return {
            "language": self.language,
            **asdict(STYLES[self.language]),
            "texts": {
                key: forms if isinstance(forms, str) else dict(forms)
                for key, forms in catalogue(self.language).items()
                if key.startswith(wanted)
            },
        }
