"""What is said to people, in every language: the texts themselves (`en.toml`, `de.toml`) and how they are written.

A text has a key, places for values and, where it counts something, two forms. `Texts` writes it in a language;
`Said` is the English sentence that remembers its key and values, so that it can be written in another language later.

Examples
--------
>>> from likewise.texts import LANGUAGES
>>> LANGUAGES
('en', 'de')
"""

from __future__ import annotations

from likewise.texts.catalogue import LANGUAGES, check_language
from likewise.texts.said import Said, collect_said, restore_said
from likewise.texts.writing import Texts

__all__ = ["LANGUAGES", "Said", "Texts", "check_language", "collect_said", "restore_said"]
