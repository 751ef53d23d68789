"""Estimator parameters as dataclass fields: declared, typed and documented once, and inherited by subclasses."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")

# What a subclass inherits from the docstrings of its bases.
_INHERITED = ("Parameters", "Attributes")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def parameters_from_fields(cls: type[T]) -> type[T]:
    """Make the fields of an estimator class, its own and its bases', the parameters of its ``__init__``.

    scikit-learn reads parameters off the signature of ``__init__``, so a subclass would have to repeat those of its
    base. A dataclass writes exactly the ``__init__`` that scikit-learn asks for (one explicit keyword each, stored
    as it came), and type checkers know it. Identity, hash and repr stay scikit-learn's. The sections "Parameters"
    and "Attributes" of the docstring get what the bases document and the class does not.
    """
    dataclass(cls, eq=False, repr=False, match_args=False, kw_only=True)
    for base in cls.__bases__:
        cls.__doc__ = with_inherited_sections(cls.__doc__ or "", base.__doc__ or "")
    return cls


def with_inherited_sections(own: str, inherited: str) -> str:
    """Return a numpydoc docstring with the parameters and attributes of another that it does not mention itself."""
    mine, theirs = _sections(own), _sections(inherited)
    for title in _INHERITED:
        if title not in theirs:
            continue
        entries = _entries(mine.get(title, ""))
        known = {name for names in entries for name in names.split(" : ")[0].split(", ")}
        entries |= {
            names: text
            for names, text in _entries(theirs[title]).items()
            if not known.issuperset(names.split(" : ")[0].split(", "))
        }
        mine[title] = "\n".join(f"{names}{text}" for names, text in entries.items())
    order = ["", *_INHERITED, *(title for title in mine if title not in ("", *_INHERITED))]
    parts = [(title, mine[title]) for title in order if title in mine]
    return "\n\n".join(body if not title else f"{title}\n{'-' * len(title)}\n{body}" for title, body in parts)


def _sections(docstring: str) -> dict[str, str]:
    """The body of each section by its title; what comes before the first has the title ""."""
    pieces = re.split(r"(?m)^(\S[^\n]*)\n-{3,}\n", inspect.cleandoc(docstring))
    return {"": pieces[0].strip(), **dict(zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True))}


def _entries(body: str) -> dict[str, str]:
    """The text below each unindented line of a section, by that line."""
    pieces = re.split(r"(?m)^(\S[^\n]*)", body)
    return dict(zip(pieces[1::2], map(str.rstrip, pieces[2::2]), strict=True))
