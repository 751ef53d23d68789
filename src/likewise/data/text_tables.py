"""Text with separated cells as a table: separators, encodings, line ends and decimal commas as they come."""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import FormatError, first_line_of
from likewise.core.text import option, truncated
from likewise.data.opening import CELL, HEAD, OpenedFile, Reading, check_room, check_width

if TYPE_CHECKING:
    import pandas as pd

# The first line of a text file: where it ends, what separates its cells, whether it names columns.


SEPARATORS = ",;\t|"
# A quoted cell (which may hold line ends), or anything else up to the end of the line.
# Nothing is taken back once it has matched: a long cell would take a hundred times its size.
_LINE = re.compile(r'(?:"(?:[^"]++|"")*+"|[^"\r\n]++|")*+')
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


def first_line(text: str) -> str:
    r"""Return the first line that is not empty, whatever ends it, with the line ends that are inside quotes."""
    found = _LINE.match(text.lstrip("\r\n"))
    return found.group() if found else ""


def split_cells(line: str, separator: str) -> list[str]:
    """Cut a line into cells; a quoted cell may hold the separator, and two quotes in it are one; spaces at its end stay."""
    cells: list[str] = []
    start = 0
    part = re.compile(
        rf'[ ]*+(?:"((?:[^"]++|"")*+)"[^{re.escape(separator)}]*+|([^{re.escape(separator)}]*+))'
    )
    while True:
        found = part.match(line, start)
        if found is None:
            return cells
        quoted, plain = found.groups()
        cells.append(quoted.replace('""', '"') if quoted is not None else plain.lstrip())
        if found.end() >= len(line):
            return cells
        start = found.end() + 1


def find_separator(line: str, below: Sequence[str] = ()) -> str:
    """Return what cuts a line into the most cells, and the lines below it into as many."""

    def fits(separator: str) -> tuple[bool, int]:
        cells = len(split_cells(line, separator))
        return cells > 1 and all(len(split_cells(row, separator)) == cells for row in below), cells

    return max(SEPARATORS, key=fits)


def is_number(text: str) -> bool:
    """Whether a cell is written as a number, with a decimal point or comma."""
    return _NUMBER.fullmatch(text.strip()) is not None


def looks_like_values(header: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first line is a row of values: many of its cells are numbers above numbers, or words that come again below."""
    if header and all(map(is_number, header)):
        return True
    columns = [[row[at] for row in below if at < len(row)] for at in range(len(header))]
    same = [
        any(map(is_number, column)) if is_number(name) else bool(name.strip()) and name in column
        for name, column in zip(header, columns, strict=True)
    ]
    return sum(same) >= 2 and 3 * sum(same) >= len(header)


# An empty cell and the common words for "nothing here". "None" is not among them: it is a category in many tables.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>"]
# Among numbers these mean that there is none; among words they are a category.
MARKED_MISSING = frozenset({"?", "-", "--", ".", "none", "unknown", "missing", "n.a.", "#n/a", "*"})
# A line may be long, but not the whole of a large file.
_LONGEST_LINE = 16 * 2**20
_BELOW = 50
# A parser skips lines of these.
_BLANK = "\r\n \t"
_BLOCK = 2**22
# A cell that begins with a zero and another digit; so many rows are looked at together then.
_PADDED = re.compile(r"(?:^|[,;\t|\s\"])0\d")
_PADDED_ROWS = 65_536
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# 1.234,5 and 12,5 as most of Europe writes them; 1,234.5 and 1,234 as English does.
_COMMA_DECIMALS = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?|[+-]?,\d+")
_COMMA_THOUSANDS = re.compile(r"[+-]?(\d{1,3}(,\d{3})+(\.\d+)?|\d+(\.\d+)?)")
# Before or behind every number of a column.
_UNITS = ("$", "€", "£", "¥", "%")


def read_text(file: OpenedFile, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    """Read a table whose cells are separated by comma, semicolon, tab or bar."""
    text, notes = open_text(file, reading)
    check_width(file.name, len(text.names))
    check_room(file.name, CELL * len(text.names) * _lines(file), file.room)
    (frame,) = text.frames()
    return _numbers(frame, reading.decimal, text, notes), notes


@dataclass(frozen=True, eq=False)
class OpenedText:
    """A text file whose separator, encoding and header are known."""

    file: OpenedFile
    encoding: str
    separator: str
    names: list[str]
    header: bool
    commas: bool
    # Columns whose cells stay as they are written.
    words: tuple[int, ...] = ()

    def frames(
        self, rows: int | None = None, dtypes: Mapping[int, Any] | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield so many rows at a time, by default all at once; by default types are those that the cells look like."""
        import pandas as pd

        given: dict[str, Any] = {
            "sep": self.separator,
            "encoding": self.encoding,
            "keep_default_na": False,
            "na_values": MISSING,
            "skipinitialspace": True,
            "header": 0 if self.header else None,
            # Names of our own, since pandas renames columns that share one.
            "names": list(range(len(self.names))),
            "decimal": "," if self.commas else ".",
            "thousands": "." if self.commas and self.separator != "." else None,
            "low_memory": False,
            "dtype": dict(dtypes or {}) | dict.fromkeys(self.words, str),
        }
        try:
            with pd.read_csv(self.file.stream(), iterator=True, **given) as read:
                while True:
                    try:
                        frame = read.read(rows)
                    except StopIteration:
                        return
                    if not isinstance(frame.index, pd.RangeIndex):
                        raise FormatError(
                            f"{self.file.name} has more cells in its rows than names in its header ({len(self.names)}). "
                            "Name every column."
                        )
                    frame.columns = pd.Index(self.names, dtype=object)
                    yield frame
                    if rows is None:
                        return
        except UnicodeError as error:
            raise _not_text(self.file.name, self.encoding, error) from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise FormatError(
                f"{self.file.name} is not a rectangular CSV: {first_line_of(error)}. Every row must have {len(self.names)} cells; "
                "quote cells that contain the separator."
            ) from error


def open_text(file: OpenedFile, reading: Reading) -> tuple[OpenedText, list[str]]:
    """Look at the first lines of a text file; also return what to say of them."""
    encoding = reading.encoding or next(
        (name for mark, name in _MARKS if file.head().startswith(mark)), "utf-8"
    )
    separator, names, header, notes = _header(file, encoding, reading)
    text = OpenedText(file, encoding, separator, names, header, reading.decimal == ",")
    padded = _padded(text)
    kept = tuple(at for at in padded if names[at] in reading.categorical)
    lost = [names[at] for at in padded if at not in kept and names[at] not in reading.ignore]
    if lost:
        notes.append(
            f"read codes with leading zeros as numbers in {_some(lost)}. If the model was fitted on the codes as they are "
            f"written: {option('categorical', lost[0])}."
        )
    return replace(text, words=kept), notes


def _padded(text: OpenedText) -> list[int]:
    """Columns of whole numbers with leading zeros, such as 01001, which a number does not keep."""
    with io.TextIOWrapper(text.file.opened(), text.encoding, errors="replace", newline="") as lines:
        before, found = "", False
        while not found and (block := lines.read(_BLOCK)):
            found = _PADDED.search(before + block) is not None
            before = block[-2:]
    columns = range(len(text.names))
    frames = text.frames(_PADDED_ROWS, dict.fromkeys(columns, str)) if found else ()
    padded, other = set[int](), set[int]()
    for frame in frames:
        for at in columns:
            if at not in other:
                cells = frame.iloc[:, at].dropna().str.strip()
                other |= set() if cells.str.fullmatch(r"\d+").all() else {at}
                padded |= {at} if cells.str.fullmatch(r"0\d+").any() else set()
    return sorted(padded - other)


def _lines(file: OpenedFile) -> int:
    """Return at least the number of rows: a short row is filled up to the width of the header."""
    ends, last = Counter[int](), b""
    with file.opened() as stream:
        while block := stream.read(_BLOCK):
            ends[10] += block.count(b"\n")
            ends[13] += block.count(b"\r")
            last = block
    return max(ends.values(), default=0) + bool(last)


def _header(file: OpenedFile, encoding: str, reading: Reading) -> tuple[str, list[str], bool, list[str]]:
    """Return the separator, a name for every column, whether the first line has them, and what to say of it."""
    text = _decoded_head(file, encoding)
    line = first_line(text)
    rest: list[str] = []
    if len(line) < HEAD:
        # The last line of the head may be cut off; an empty line is not a row.
        rest = [row for row in text.lstrip("\r\n")[len(line) :].splitlines()[1:] if row]
        rest = rest[: min(_BELOW, max(len(rest) - 1, 1))]
    separator = find_separator(line, rest)
    names = split_cells(line, separator)
    # Of the row below all cells become columns, of any other too many are an error.
    row = _row_below(text, line, _BLANK.replace(separator, ""))
    check_width(file.name, len(split_cells(row, separator)))
    below = [split_cells(row, separator) for row in rest]
    if reading.header is None and looks_like_values(names, below):
        raise FormatError(
            f"{file.name} seems to have no header: its first line holds values such as {_some(names)}. Put the "
            f"column names in the first line. To number the columns instead, pass {option('header', 'no')} "
            f"({option('header', 'yes')} if these are names)."
        )
    if reading.header is False:
        return separator, [f"column {at + 1}" for at in range(len(names))], False, []
    blank = [at for at, name in enumerate(names) if not name.strip()]
    for at in blank:
        names[at] = f"column {at + 1}"
    said = (
        []
        if not blank
        else [f"{_columns(blank)} of {file.name} has no name; called 'column {blank[0] + 1}'."]
    )
    return separator, names, True, said


def _decoded_head(file: OpenedFile, encoding: str) -> str:
    """Return the beginning of the text, at least as much as the first two lines."""
    size = HEAD
    while True:
        data = file.head(size)
        try:
            text = codecs.getincrementaldecoder(encoding)("strict").decode(data, final=False)
        except UnicodeError as error:
            raise _not_text(file.name, encoding, error) from error
        text = text.removeprefix("\ufeff")
        row = _row_below(text, first_line(text))
        if len(data) < size or (row and not text.endswith(row)):
            return text
        if size >= _LONGEST_LINE:
            raise FormatError(f"{file.name} has a line of more than 16 MB, so it is not a table.")
        size *= 16


def _row_below(text: str, line: str, blank: str = _BLANK) -> str:
    """Return the first line of people below the first line of a text."""
    return first_line(text.lstrip("\r\n")[len(line) :].lstrip(blank))


def _not_text(name: str, encoding: str, error: UnicodeError) -> FormatError:
    where = f" ({error.reason} at byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
    return FormatError(
        f"{name} is not {encoding.upper().removesuffix('-SIG')} text{where}. Say how it was written, such as "
        f"{option('encoding', 'latin-1')}, or save it as UTF-8."
    )


def _numbers(frame: pd.DataFrame, decimal: str | None, text: OpenedText, notes: list[str]) -> pd.DataFrame:
    """Turn columns of numbers with commas, with a unit or with a word for a missing one into numbers."""
    import pandas as pd

    decimals = decimals_of(decimal, text.separator)
    changed: dict[int, tuple[str, pd.Series[Any]]] = {}
    for at, dtype in enumerate(frame.dtypes):
        if dtype.kind in "biuf" or at in text.words:
            continue
        looked = TextColumn()
        looked.look(frame.iloc[:, at], decimals)
        way = looked.settled()[1]
        numbers = numbers_by(way, frame.iloc[:, at], decimals) if way else None
        if numbers is not None:
            changed[at] = way, numbers
    notes += number_notes({str(frame.columns[at]): way for at, (way, _) in changed.items()})
    if not changed:
        return frame
    whole = pd.concat(
        [changed[at][1] if at in changed else frame.iloc[:, at] for at in range(frame.shape[1])], axis=1
    )
    whole.columns = frame.columns
    return whole


# Ways to read a column of text as numbers, in the order in which they are tried, and what is said of each.
WAYS = {
    "marks": "read words such as '?' as missing numbers in",
    "commas": "read commas as part of numbers in",
    "unit": "read a sign such as '$' or '%' as the unit of the numbers in",
}


@dataclass
class TextColumn:
    """What the cells of a column are, some rows after the other."""

    kinds: set[str] = field(default_factory=set)
    gaps: bool = False
    # Ways in which all its text so far can be read as numbers.
    ways: set[str] = field(default_factory=lambda: set(WAYS))
    whole: bool = True
    cells: int = 0
    marks: int = 0
    commas: bool = False

    def look(self, column: pd.Series[Any], decimals: bool | None) -> None:
        """Take in some more rows."""
        known = column.dropna()
        self.gaps |= len(known) < len(column)
        self.cells += len(known)
        if not len(known):
            return
        kind = column.dtype.kind if column.dtype.kind in "biuf" else "O"
        if kind == "O" and isinstance(known.iloc[0], (bool, np.bool_)):
            kind = "b"
        self.kinds.add(kind)
        if kind == "b":
            self.ways = set()
        elif kind != "O":
            # Every number must have the unit.
            self.ways.discard("unit")
            self.whole &= kind != "f"
        elif self.ways:
            read = {way: numbers_by(way, column, decimals) for way in sorted(self.ways)}
            self.ways = {way for way, numbers in read.items() if numbers is not None}
            self.whole &= all(numbers is None or numbers.dtype.kind != "f" for numbers in read.values())
            self.marks += int(known.str.strip().str.lower().isin(MARKED_MISSING).sum())
            self.commas |= bool(known.str.contains(",").any())

    def settled(self) -> tuple[str, str]:
        """Return the type of the whole column, and the way in which text is read as numbers, if it is."""
        if self.kinds == {"b"}:
            return "bool", ""
        number = "int64" if self.whole and not self.gaps else "float64"
        if "O" in self.kinds or "b" in self.kinds:
            found = self.ways if "O" in self.kinds else set()
            if not 0 < self.marks <= 0.9 * self.cells:
                found = found - {"marks"}
            found = found if self.commas else found - {"commas"}
            way = next((way for way in WAYS if way in found), "")
            return ("float64" if way == "marks" else number if way else "str"), way
        return ("uint64" if self.kinds == {"u"} and not self.gaps else number), ""


def decimals_of(decimal: str | None, separator: str) -> bool | None:
    """Whether a comma stands before decimals; None if it is not part of a number."""
    return None if decimal == "." else separator != "," or decimal == ","


def number_notes(ways: Mapping[str, str]) -> list[str]:
    """Say which columns of text were read as numbers, and how."""
    named = {
        way: [repr(name) for name, how in ways.items() if how == way] for way in ("commas", "unit", "marks")
    }
    return [f"{WAYS[way]} {truncated(names)}." for way, names in named.items() if names]


def numbers_by(way: str, column: pd.Series[Any], decimals: bool | None) -> pd.Series[Any] | None:
    """Return a column of text, or a part of one, as numbers; None if some cells cannot be read so."""
    import pandas as pd

    cells = column.dropna()
    if not len(cells):
        return column.astype(float)
    if not all(isinstance(value, str) for value in cells.head(200)):
        return None
    words = cells.astype(str).str.strip()
    if way == "marks":
        words = words[~words.str.lower().isin(MARKED_MISSING)]
        if not words.head(200).map(is_number).all():
            return None
        numbers = pd.to_numeric(words, errors="coerce")
        return None if numbers.isna().any() else numbers.astype(float).reindex(column.index)
    if way == "unit":
        unit = next((sign for sign in _UNITS if sign in (words.iloc[0][:1], words.iloc[0][-1:])), None)
        if unit is None:
            return None
        bare = (
            words.str.removeprefix(unit) if words.iloc[0].startswith(unit) else words.str.removesuffix(unit)
        )
        if not (bare.str.len() < words.str.len()).all():
            return None
        words = bare.str.strip()
        if not words.str.contains(",").any():
            numbers = pd.to_numeric(words, errors="coerce")
            fits = words.map(is_number).all() and not numbers.isna().any()
            return numbers.reindex(column.index) if fits else None
    pattern = _COMMA_DECIMALS if decimals else _COMMA_THOUSANDS
    if decimals is None or not all(map(pattern.fullmatch, words)):
        return None
    plain = words.str.replace(".", "").str.replace(",", ".") if decimals else words.str.replace(",", "")
    return pd.to_numeric(plain, errors="coerce").reindex(column.index)


def _some(names: Sequence[str]) -> str:
    return truncated([repr(name) for name in names if name][:3])


def _columns(positions: Sequence[int]) -> str:
    return f"column {positions[0] + 1}" + (f" (and {len(positions) - 1} more)" if len(positions) > 1 else "")
