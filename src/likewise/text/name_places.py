"""Where first names stand in a text: as words, in addresses and as initials."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from likewise.text.edited import Change
from likewise.text.name_lists import known_genders
from likewise.text.ordinary_words import AFTER_A_PLACE_NAME, ORDINARY, PLACES_AND_TIMES
from likewise.text.words_in_text import Word, addresses, folded, like_case, words_of

__all__ = ["name_changes", "names_in"]

_TITLE_BEFORE = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|MR|MRS|MS|MISS|DR|PROF)\.?[ \u00a0]+$")
_SAID_BEFORE = re.compile(
    r"(?:\b(?:[Mm]y name is|[Nn]amed|[Cc]alled|[Dd]ear)|\b(?:[Ff]irst |[Ff]ull )?[Nn]ame:)[ \u00a0]+$"
)
_PLACE_BEFORE = re.compile(r"\b(?:St|Saint|San|Santa|Fort|Mount|Port|Lake|New|Los|El)\.?[ \u00a0]+$")
_NAME_LINE = re.compile(r"\s*[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){1,3}\s*(?:\n|$)")

_NOT_BEFORE_NAMES = frozenset({"the", "a", "an", "in", "at", "this", "that"})
# Words that begin a sentence and are followed by no capital of their own.
_BEGINNINGS = frozenset(
    {"with", "for", "to", "by", "from", "when", "if", "about", "and", "but", "because", "like"}
)


def names_in(text: str, source: Collection[str] = ()) -> list[Word]:
    """Find the first names of a text: whole words with a capital, no surnames, no places.

    Parameters
    ----------
    text : str
    source : collection of str
        Names to look for, in any case. None given: the census and evaluation names, those that are ordinary
        words too (Will, May, Virginia) only where a name must stand.

    Returns
    -------
    list of Word

    Examples
    --------
    >>> [word.text for word in names_in("Emily James met Anna's boss on James Street. Will May will go.")]
    ['Emily', 'Anna']
    >>> [word.text for word in names_in("In May I met Mark, who said Will will mark it.")]
    ['Mark', 'Will']
    >>> [word.text for word in names_in("Dear Will, call GREG.")]
    ['Will', 'GREG']
    """
    wanted = {folded(name) for name in source}
    words = list(words_of(text))
    found: list[Word] = []
    sure: set[str] = set()
    unsure: list[Word] = []
    for place, word in enumerate(words):
        key = folded(word.text)
        if wanted:
            if key in wanted and not _inside_other(text, word):
                found.append(word)
            continue
        if key not in known_genders() or not word.text[0].isupper() or _no_first_name(text, words, place):
            continue
        if key not in ORDINARY or _must_be_name(text, words, place):
            found.append(word)
            sure.add(key)
        else:
            unsure.append(word)
    # What is a name in one place of a text is the same person's name in the others.
    found += [word for word in unsure if folded(word.text) in sure]
    return sorted(found, key=lambda word: word.start)


def name_changes(text: str, found: Collection[Word], new_names: Mapping[str, str]) -> list[Change]:
    """Return what replaces names: the words, their possessives, initials before the surname, addresses.

    Parameters
    ----------
    text : str
    found : collection of Word
        From `names_in`.
    new_names : mapping of str to str
        From the folded name to the new one.
    """
    changes = []
    surnames: dict[str, str] = {}
    words = list(words_of(text))
    starts = {word.start: place for place, word in enumerate(words)}
    for word in found:
        new = new_names[folded(word.text)]
        changes.append(_with_possessive(text, word, like_case(new, word.text)))
        place = starts[word.start] + 1
        if place < len(words) and _one_space(text, word, words[place]) and words[place].text[0].isupper():
            surnames[folded(words[place].text)] = folded(word.text)
    changes += _initials(text, surnames, new_names)
    for low, high in addresses(text):
        changes += _in_address(text, low, high, new_names, surnames)
    return changes


def _no_first_name(text: str, words: list[Word], place: int) -> bool:
    word = words[place]
    if _inside_other(text, word) or _PLACE_BEFORE.search(text[: word.start]):
        return True
    if len(word.text) < 2:
        return True
    following = words[place + 1] if place + 1 < len(words) else None
    if (
        following is not None
        and _one_space(text, word, following)
        and (folded(following.text) in AFTER_A_PLACE_NAME and following.text[0].isupper())
    ):
        return True
    alone = following is None or not _one_space(text, word, following) or not following.text[0].isupper()
    if alone and _TITLE_BEFORE.search(text[: word.start]):
        return True  # "Mr. James": a surname
    if place == 0:
        return False
    before = words[place - 1]
    if not before.text[0].isupper() or not re.fullmatch(r"\.?[ \u00a0]", text[before.end : word.start]):
        return False
    if len(before.text) == 1 and before.text != "I":
        return True  # "E. James"
    key = folded(before.text)
    first = key in known_genders() and (key not in ORDINARY or _must_be_name(text, words, place - 1))
    return (
        first and text[before.end : word.start].strip() == "" and not _no_first_name(text, words, place - 1)
    )


def _inside_other(text: str, word: Word) -> bool:
    """Angelo in D'Angelo, Ann in Ann's-lace."""
    before = text[max(word.start - 2, 0) : word.start]
    return len(before) == 2 and before[1] in "'’" and before[0].isalpha()


def _must_be_name(text: str, words: list[Word], place: int) -> bool:
    """Whether an ordinary word stands where only a name can: behind a title, in a CV's first line, mid-sentence."""
    word = words[place]
    before = text[: word.start]
    if _TITLE_BEFORE.search(before) or _SAID_BEFORE.search(before):
        return True
    if not before.strip():
        return _NAME_LINE.match(text) is not None and "\n" in text.strip()
    if folded(word.text) in PLACES_AND_TIMES or word.text.isupper():
        return False
    previous = words[place - 1] if place else None
    return (
        previous is not None
        and _one_space(text, previous, word)
        and (previous.text.islower() or folded(previous.text) in _BEGINNINGS)
        and previous.text not in _NOT_BEFORE_NAMES
    )


def _one_space(text: str, word: Word, following: Word) -> bool:
    return text[word.end : following.start] in (" ", "\u00a0")


def _with_possessive(text: str, word: Word, new: str) -> Change:
    """James' becomes Jamal's, James's becomes Jamal's; a closing quotation mark stays."""
    rest = text[word.end : word.end + 2]
    bare = rest[:1] in ("'", "’") and word.text[-1] in "sS" and not rest[1:2].isalpha()
    opened = re.search(r"(?:^|[\s(])['‘][^'’]*$", text[: word.start]) is not None
    if bare and not opened and re.match(r".\s+\w", text[word.end :]) and new[-1] not in "sS":
        return Change(word.start, word.text + rest[0], new + rest[0] + ("S" if word.text.isupper() else "s"))
    return Change(word.start, word.text, new)


def _initials(text: str, surnames: Mapping[str, str], new_names: Mapping[str, str]) -> list[Change]:
    """Find E. for Emily in "E. Walsh" where the text has her whole name."""
    changes = []
    for surname, name in surnames.items():
        pattern = re.compile(
            rf"(?<![\w.])([^\W\d_])(?=\.[ \u00a0]?{re.escape(surname)}(?!\w))", re.IGNORECASE
        )
        changes += [
            Change(hit.start(1), hit[1], new_names[name][0].upper())
            for hit in pattern.finditer(text)
            if folded(hit[1]) == name[0] and hit[1].isupper()
        ]
    return changes


def _in_address(
    text: str, low: int, high: int, new_names: Mapping[str, str], surnames: Mapping[str, str]
) -> list[Change]:
    """Names in the parts of an address, alone or glued to the surname: emily.walsh, emilywalsh, ewalsh."""
    at = text.find("@", low + 1, high)
    end = at if at > low else high
    changes = []
    for part in re.finditer(r"[^\W\d_]+", text[low:end]):
        key = folded(part.group())
        new = new_names.get(key)
        for surname, name in surnames.items():
            if key == name + surname:
                new = new_names[name] + surname
            elif key == name[0] + surname:
                new = new_names[name][0] + surname
            elif key == surname + name:
                new = surname + new_names[name]
            elif key == name[0] and re.match(
                rf"[._-]{re.escape(surname)}\b", folded(text[low + part.end() : end])
            ):
                new = new_names[name][0]
        if new is not None:
            written = new if part.group()[0].isupper() else new.lower()
            changes.append(Change(low + part.start(), part.group(), written))
    return changes
