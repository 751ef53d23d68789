"""A text in a language: its form for the number at hand, its places filled."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from likewise.texts.catalogue import PLACE, catalogue, check_language
from likewise.texts.numbers import STYLES, written
from likewise.texts.said import Said, filled, form_of, render_said

__all__ = ["Texts"]

# Stress inside of a text, and what is said in passing.
_STRONG, _ASIDE = "**", "~~"


class Texts:
    """All texts in one language.

    Parameters
    ----------
    language : {"en", "de"}, default="en"

    Examples
    --------
    >>> Texts("en")("people", n=1), Texts("de")("people", n=1200)
    ('1 person', '1.200 Personen')
    >>> Texts("de").said(Said("people", n=2))
    '2 Personen'
    """

    def __init__(self, language: str = "en") -> None:
        self.language = check_language(language, owner="Texts")

    def __call__(self, key: str, /, **values: Any) -> str:
        """Return a text with its values filled in.

        Parameters
        ----------
        key : str
        **values
            For its places; `n` chooses the form where there are two. Another `Said` is written in this language.
        """
        return render_said(key, values, self.language)

    def rich(self, key: str, /, **values: Any) -> str:
        """Return a text as HTML: values escaped, ``**stress**`` as strong, ``~~in passing~~`` as muted.

        Parameters
        ----------
        key, **values
            As in a call.
        """
        text = escape(form_of(key, values, self.language), quote=False)
        for sign, before, after in (
            (_STRONG, "<strong>", "</strong>"),
            (_ASIDE, '<span class="muted">', "</span>"),
        ):
            parts = text.split(sign)
            text = "".join(
                part + (before, after)[i % 2] if i < len(parts) - 1 else part for i, part in enumerate(parts)
            )
        return PLACE.sub(lambda place: escape(filled(values[place[1]], place[2] or "", self.language)), text)

    def number(self, value: Any, form: str = "number") -> str:
        """Return one number, share or list as this language writes it."""
        return written(value, form, self.language)

    def said(self, sentence: str, known: Mapping[str, Any] | None = None) -> str:
        """Return a sentence in this language where its key is known, else as it is.

        Parameters
        ----------
        sentence : str
            Perhaps a `Said`.
        known : mapping, optional
            English sentences to their keys and values, as `collect_said` returns them.
        """
        if self.language == "en":
            return str(sentence)
        if not isinstance(sentence, Said):
            found = Said.of(None if known is None else known.get(sentence))
            if found is None:
                return sentence
            sentence = found
        return sentence.written(self.language)

    def has(self, key: str) -> bool:
        """Whether there is a text of this key."""
        return key in catalogue("en")

    def for_scripts(self, *groups: str) -> dict[str, Any]:
        """Return what a script needs to write texts itself: those whose keys begin with one of `groups`.

        Parameters
        ----------
        *groups : str
            Such as "script".
        """
        style = STYLES[self.language]
        wanted = tuple(f"{group}." for group in groups)
        return {
            "language": self.language,
            "decimal": style.decimal,
            "group": style.group,
            "percent": style.percent,
            "last": style.last,
            "either": style.either,
            "unknown": style.unknown,
            "texts": {
                key: forms if isinstance(forms, str) else dict(forms)
                for key, forms in catalogue(self.language).items()
                if key.startswith(wanted)
            },
        }
