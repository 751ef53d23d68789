"""The texts of a language as they stand in its file: dotted keys, one form or two."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any, TypeAlias

from likewise.core.errors import bad_parameter

__all__ = ["LANGUAGES", "PLACE", "Forms", "catalogue", "check_language", "places"]

#: Languages that there are texts in.
LANGUAGES = ("en", "de")

# One text, or its forms for one and for any other number `n`.
Forms: TypeAlias = str | Mapping[str, str]

# {name} or {name:format}
PLACE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_PLURAL = {"one", "other"}


def check_language(language: str, *, owner: str) -> str:
    """Return a language that there are texts in, or raise.

    Examples
    --------
    >>> check_language("de", owner="write_html")
    'de'
    """
    if language not in LANGUAGES:
        raise bad_parameter(
            owner, "language", allowed=f"one of {', '.join(map(repr, LANGUAGES))}", got=repr(language)
        )
    return language


@functools.cache
def catalogue(language: str) -> Mapping[str, Forms]:
    """Return all texts of a language by key.

    Parameters
    ----------
    language : str
        Checked.

    Examples
    --------
    >>> catalogue("en")["people"]["one"]
    '1 person'
    """
    file = resources.files("likewise.texts") / f"{language}.toml"
    return MappingProxyType(dict(_flat(tomllib.loads(file.read_text(encoding="utf-8")))))


def places(forms: Forms) -> set[tuple[str, str]]:
    """Return the values that a text asks for, with their formats; of two forms, those of either but for the count.

    Examples
    --------
    >>> sorted(places("{who} of {n:whole}"))
    [('n', 'whole'), ('who', '')]
    """
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
