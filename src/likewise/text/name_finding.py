"""First names in a text: which words are a person's, which are not, and which cannot be told."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cache

import pandas as pd

from likewise.core.errors import bad_parameter
from likewise.datasets.bundled import open_bundled, read_bundled_text
from likewise.datasets.words import capitalised, evaluation_names
from likewise.text.edited import Change, Word, addresses, folded, like_case, words_of

# First names by sex and race: the census list and the evaluation names.


GENDERS = ("female", "male")
RACES = ("black", "white")

# A name that one sex bears this many times as often as the other tells the sex.
_CLEARLY = 20.0


def names_of(race: str | None = None, gender: str | None = None) -> tuple[str, ...]:
    """Return the evaluation names (Caliskan et al. 2017) of a race, a gender or both, with capitals.

    Parameters
    ----------
    race : "black", "white" or None
    gender : "female", "male" or None

    Examples
    --------
    >>> names_of("black", "female")[:3], len(names_of("white"))
    (('Aiesha', 'Lashelle', 'Nichelle'), 50)
    """
    for name, value, allowed in (("race", race, RACES), ("gender", gender, GENDERS)):
        if value is not None and value not in allowed:
            raise bad_parameter("names_of", name, allowed=f"one of {', '.join(allowed)} or None", got=value)
    people = evaluation_names()
    keep = pd.Series(True, index=people.index)
    for column, value in (("race", race), ("gender", gender)):
        if value is not None:
            keep &= people[column] == value
    return tuple(capitalised(name) for name in people["name"][keep])


@cache
def known_genders() -> dict[str, str]:
    """Return every first name known, in lower case, with ``"female"``, ``"male"`` or ``""`` (both bear it)."""
    with open_bundled("census_first_names.csv") as stream:
        table = pd.read_csv(stream, keep_default_na=False)
    found = {}
    shares = table.pivot_table(index="name", columns="sex", values="percent", aggfunc="sum", fill_value=0.0)
    for name, female, male in zip(shares.index, shares["female"], shares["male"], strict=True):
        found[str(name)] = _tell(float(female), float(male))
    people = evaluation_names()
    accented = {
        word.partition(":")[0]: {"f": "female", "m": "male"}.get(word.partition(":")[2], "")
        for word in WORD_LISTS["accented"]
    }
    return found | dict(zip(people["name"], people["gender"], strict=True)) | accented


def gender_of(names: Iterable[str]) -> str:
    """Return the gender that all names share, or ``""``."""
    genders = {known_gender(folded(name)) for name in names}
    return genders.pop() if len(genders) == 1 else ""


def known_gender(name: str) -> str:
    """Return the gender of a name in lower case, of a hyphenated one by its first part; ``""`` if unknown."""
    return known_genders().get(name, "") or known_genders().get(name.partition("-")[0], "")


def _tell(female: float, male: float) -> str:
    if female > _CLEARLY * male:
        return "female"
    return "male" if male > _CLEARLY * female else ""


# First names of the census that are ordinary words or places too: they count as names only in a name's
# place.


WORD_LISTS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(read_bundled_text("name_words.toml")).items()
}

# Places, firms, months and days are written with a capital wherever they stand.
PLACES_AND_TIMES = WORD_LISTS["places_and_times"]
PRODUCTS = WORD_LISTS["products"]
ORDINARY = WORD_LISTS["words"] | PLACES_AND_TIMES | PRODUCTS

# A name before one of these is a place, a street, an institution or a firm.
AFTER_A_PLACE_NAME = WORD_LISTS["after_a_place_name"]
_NAMES_TOO = WORD_LISTS["names_too"]
FIRMS = frozenset(name.replace("_", " ").replace("'s", "") for name in WORD_LISTS["firms"])
_STATES = frozenset(name.replace("_", " ") for name in WORD_LISTS["states"])


# Where first names stand in a text: as words, in addresses and as initials. Each word of the list of names is a person's,
# is not, or is doubtful: then the text is left out, since a wrong change would be an edit of something else.


_TITLE_BEFORE = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|MR|MRS|MS|MISS|DR|PROF)\.?[ \u00a0]+$")
_SAID_BEFORE = re.compile(
    r"(?:\b(?:my name is|i am|i'm|i’m|this is|named|called|dear|hi|hello|regards,|sincerely,)|\b(?:first |full )?name:)"
    r"[ \u00a0\n]+$",
    re.IGNORECASE,
)
_PLACE_BEFORE = re.compile(
    r"\b(?:St|Saint|San|Santa|Fort|Ft|Mount|Mt|Port|Lake|New|Los|El|Cape|Point|Camp|Villa)\.?[ \u00a0]+$"
)
_NAME_LINE = re.compile(r"\s*[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){1,3}\s*(?:\n|$)")
# "Johnson & Johnson", "Smith + Co": a firm.
_FIRM_BEFORE, _FIRM_AFTER = (
    re.compile(r"[&+][ \u00a0]*$"),
    re.compile(r"(?:['’]s)?[ \u00a0]*[&+][ \u00a0]*\w"),
)
# "Madison, Wisconsin", "Jackson, MS".
_STATE_AFTER = re.compile(rf", (?:{'|'.join(sorted(_STATES))})\b")
# Where people are, and firms, products and places more often.
_EMPLOYER_BEFORE = re.compile(
    r"\b(?:at|in|via|using|joined|joining|(?:work|intern|consult|freelanc|volunteer)\w*\s+(?:for|with)|employed\s+by"
    r"|(?:clients?|customers?|brands?|firms?|companies|tools?|languages?|software)\s+(?:such\s+as|like|including))[ \u00a0]+$",
    re.IGNORECASE,
)

# What a person with a full name does next.
_ACTS = re.compile(
    r"[ \u00a0](?:is|was|has|had|will|would|can|could|and|who|applied|applies|asked|asks|called|came|joined|leads|led|left"
    r"|made|managed|manages|met|said|says|spoke|studied|taught|teaches|thinks|told|took|went|worked|works|writes|wrote)\b"
)

_NOT_BEFORE_NAMES = frozenset({"the", "a", "an", "in", "at", "this", "that"})
# Words that begin a sentence and are followed by no capital of their own.
_BEGINNINGS = frozenset(
    {"with", "for", "to", "by", "from", "when", "if", "about", "and", "but", "because", "like"}
)


def find_names(text: str, source: Collection[str] = ()) -> tuple[list[Word], list[Word]]:
    """Return the words that are first names of people, and those of which it cannot be told."""
    wanted = {name_key(name) for name in source}
    words = list(words_of(text))
    if wanted:
        return [w for w in words if name_key(w.text) in wanted and not _inside_other(text, w)], []
    surnames = _surnames(text, words)
    found: list[Word] = []
    doubtful: list[Word] = []
    unsure: list[Word] = []
    sure: set[str] = set()
    lower = text == text.lower()
    for place, word in enumerate(words):
        key = name_key(word.text)
        if not key or _not_a_person(text, words, place):
            continue
        if not word.text[0].isupper():
            if _SAID_BEFORE.search(_before(text, word)) or (lower and key not in ORDINARY):
                found.append(word)
                sure.add(key)
            else:
                unsure.append(word)
        elif _is_person(text, words, place):
            found.append(word)
            sure.add(key)
        elif key in ORDINARY and key in _NAMES_TOO and _before_surname(text, words, place):
            doubtful.append(word)
        elif key in ORDINARY or (key in surnames and not _before_surname(text, words, place)):
            unsure.append(word)
        elif _EMPLOYER_BEFORE.search(_before(text, word)):
            doubtful.append(word)
        else:
            found.append(word)
            sure.add(key)
    # What is a name in one place of a text is the same person's name in the others, but "mark" after "Mark" is a word.
    again = [w for w in (*unsure, *doubtful) if w.text[0].isupper() or name_key(w.text) not in ORDINARY]
    found += [w for w in again if name_key(w.text) in sure - surnames]
    doubtful = [w for w in doubtful if name_key(w.text) not in sure]
    return sorted(found, key=lambda word: word.start), doubtful


def name_key(word: str) -> str:
    """Return a word as the list of first names has it, or an empty text if it is not a first name."""
    key = folded(word)
    if key in known_genders():
        return key
    parts = key.split("-")
    # Mary-Jane, Jean-Luc; not anti-Emily, Emily-like.
    if len(parts) == 2 and all(part in known_genders() for part in parts) and word[0].isupper():
        return key if all(part[:1].isupper() for part in word.split("-")) else ""
    return ""


def _surnames(text: str, words: list[Word]) -> set[str]:
    """Words that stand behind a title alone, or behind a first name, somewhere in the text."""
    found = set()
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else None
        behind = following is not None and _one_space(text, word, following) and following.text[0].isupper()
        if _TITLE_BEFORE.search(_before(text, word)) and not behind:
            found.add(folded(word.text))
        elif following is not None and behind and word.text[0].isupper() and name_key(word.text):
            firm = folded(following.text) in AFTER_A_PLACE_NAME or _not_a_person(text, words, place)
            found.update(() if firm else (folded(following.text),))
    return found


def _not_a_person(text: str, words: list[Word], place: int) -> bool:
    """A surname, a firm, a place, a product, or a part of another word."""
    word = words[place]
    before, after = _before(text, word), text[word.end : word.end + 48]
    if len(word.text) < 2 or _inside_other(text, word) or _PLACE_BEFORE.search(before):
        return True
    if _FIRM_BEFORE.search(before) or _FIRM_AFTER.match(after) or _STATE_AFTER.match(after):
        return True
    following = words[place + 1] if place + 1 < len(words) else None
    capital_behind = (
        following is not None and _one_space(text, word, following) and following.text[0].isupper()
    )
    if _in_firm(text, words, place) or (capital_behind and _ends_as_firm(text, words, place)):
        return True
    if not capital_behind and _TITLE_BEFORE.search(before):
        return True  # "Mr. James": a surname
    if place == 0:
        return False
    previous = words[place - 1]
    if not previous.text[0].isupper() or not re.fullmatch(r"\.?[ \u00a0]", text[previous.end : word.start]):
        return False
    if len(previous.text) == 1 and previous.text != "I":
        return True  # "E. James"
    key = name_key(previous.text)
    first = bool(key) and (key not in ORDINARY or _is_person(text, words, place - 1))
    joined = text[previous.end : word.start].strip() == ""
    return first and joined and not _not_a_person(text, words, place - 1)


def _before_surname(text: str, words: list[Word], place: int) -> bool:
    """Whether a capitalised word follows that can be a surname."""
    if place + 1 >= len(words) or words[place].text.isupper():
        return False
    word, following = words[place], words[place + 1]
    known = folded(following.text) in ORDINARY
    return _one_space(text, word, following) and following.text[0].isupper() and not known


def _ends_as_firm(text: str, words: list[Word], place: int) -> bool:
    """Whether the run of capitalised words that begins here has a word such as Street, College, Inc among the next three."""
    for before, word in zip(words[place : place + 3], words[place + 1 : place + 4], strict=False):
        if not re.fullmatch(r",?[ \u00a0]", text[before.end : word.start]) or not word.text[0].isupper():
            return False
        if folded(word.text) in AFTER_A_PLACE_NAME:
            return True
    return False


def _in_firm(text: str, words: list[Word], place: int) -> bool:
    """Whether the word is part of the name of a firm, an institution, a product or somebody famous that is listed."""
    for length in (1, 2, 3):
        for start in range(max(0, place - length + 1), place + 1):
            run = words[start : start + length]
            name = " ".join(folded(word.text) for word in run)
            if name in FIRMS and all(word.text[0].isupper() for word in run):
                return True
    return False


def _is_person(text: str, words: list[Word], place: int) -> bool:
    """Whether a word stands where only a name can: behind a title, in a CV's first line, mid-sentence."""
    word = words[place]
    before = _before(text, word)
    if _TITLE_BEFORE.search(before) or _SAID_BEFORE.search(before):
        return True
    key = name_key(word.text)
    if not before.strip() and _NAME_LINE.match(text) is not None and "\n" in text.strip():
        return True
    if key in _NAMES_TOO and _before_surname(text, words, place):
        # "Grace Lee leads", but perhaps not "Grace Kitchen in Dover".
        after = text[words[place + 1].end :][:48]
        return _ACTS.match(after) is not None and not _EMPLOYER_BEFORE.search(before)
    if key not in ORDINARY or not before.strip():
        return False
    if key in PLACES_AND_TIMES or key in PRODUCTS or word.text.isupper() or _EMPLOYER_BEFORE.search(before):
        return False
    previous = words[place - 1] if place else None
    return (
        previous is not None
        and _one_space(text, previous, word)
        and (previous.text.islower() or folded(previous.text) in _BEGINNINGS)
        and previous.text not in _NOT_BEFORE_NAMES
    )


def _before(text: str, word: Word) -> str:
    """What stands before a word, as far as rules look."""
    return text[max(0, word.start - 48) : word.start]


def _inside_other(text: str, word: Word) -> bool:
    """Angelo in D'Angelo, Ann in Ann's-lace."""
    before = text[max(word.start - 2, 0) : word.start]
    return len(before) == 2 and before[1] in "'’" and before[0].isalpha()


def name_changes(text: str, found: Collection[Word], new_names: Mapping[str, str]) -> list[Change]:
    """Return what replaces names: the words, their possessives, initials before the surname, addresses."""
    changes = []
    surnames: dict[str, str] = {}
    words = list(words_of(text))
    starts = {word.start: place for place, word in enumerate(words)}
    for word in found:
        new = new_names[name_key(word.text)]
        written = like_case(new, word.text) if word.text[0].isupper() else new.lower()
        changes.append(_with_possessive(text, word, written))
        place = starts[word.start] + 1
        if place < len(words) and _one_space(text, word, words[place]) and words[place].text[0].isupper():
            surnames[folded(words[place].text)] = name_key(word.text)
    changes += _initials(text, surnames, new_names)
    for low, high in addresses(text):
        changes += _in_address(text, low, high, new_names, surnames)
    return changes


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
            elif key in (surname + name, surname + name[0]):
                new = surname + (new_names[name] if key.endswith(name) else new_names[name][0])
            elif len(name) > 2 and key.startswith(name) and surname.startswith(key[len(name) :]):
                new = new_names[name] + key[len(name) :]
            elif key == name[0] and re.match(
                rf"[._-]{re.escape(surname)}\b", folded(text[low + part.end() : end])
            ):
                new = new_names[name][0]
        if new is not None:
            written = new if part.group()[0].isupper() else new.lower()
            changes.append(Change(low + part.start(), part.group(), written))
    return changes


def names_left(text: str, names: Collection[str], changes: Collection[Change]) -> list[str]:
    """Return the addresses and handles that still hold one of the names after the changes."""
    left = []
    for low, high in addresses(text):
        at = text.find("@", low + 1, high)
        end = at if at > low else high
        for part in re.finditer(r"[^\W\d_]+", text[low:end]):
            key, start = folded(part.group()), low + part.start()
            held = any(len(name) > 3 and name in key for name in names)
            if held and not any(change.start == start for change in changes):
                left.append(text[low:high])
    return left
