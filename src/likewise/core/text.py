"""Plain text: small tables for `print(result)` (`report` has the others), numbers and lists in words."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_NUMBERS = re.compile(r"[-+]?\d[\d.,e+-]*")

# What a reader sees as it is; of everything else `printable` looks at each sign.
_PLAIN = re.compile(r"[^ -~]")
# Python calls them not printable. Spaces that do not break, signs that join letters as Persian and Hindi need them, and the
# isolates that `messages.contained` puts around words that are read from the right.
_HARMLESS = frozenset("\u00a0\u202f\u2009\u200c\u200d\u2068\u2069")


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text of others as it may be shown: control signs, line ends and overrides of direction are spelled out.

    The one gate for everything that is echoed. They are spelled as JSON does, so that JSON means the same afterwards.

    Examples
    --------
    >>> print(printable("sex\x1b[2J\u202e, naïve\n"))
    sex\u001b[2J\u202e, naïve\n
    """
    return _PLAIN.sub(lambda sign: _spelled(sign[0], keep), text)


def _spelled(sign: str, keep: str) -> str:
    return sign if sign.isprintable() or sign in _HARMLESS or sign in keep else json.dumps(sign)[1:-1]


def distinct_names(names: Iterable[str], form: str) -> list[str]:
    """Return names that are all different: a repeated one gets the next free number, written in a form such as "{}#{}"."""
    given = list(names)
    taken, seen, new = set(given), Counter[str](), []
    for name in given:
        seen[name] += 1
        numbered = (form.format(name, number) for number in itertools.count(seen[name]))
        new.append(name if seen[name] == 1 else next(word for word in numbered if word not in taken))
        taken.add(new[-1])
    return new


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> str:
    """Lay out a small table: some columns left (by default the first), the others right."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        cells_of_row = [
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells_of_row).rstrip())
    return "\n".join(lines)


def short_number(value: float | None) -> str:
    """Write a number with as many digits as people read: three decimals, fewer if it is large."""
    if value is None or math.isnan(value):
        return "unknown"
    size = abs(value)
    if math.isinf(size):
        return "∞" if value > 0 else "−∞"
    if size >= 1000:
        text = f"{value:,.0f}" if size < 1e7 else f"{value:.3g}"
    elif size >= 10:
        text = f"{value:.2f}"
    elif size >= 0.001 or size < 1e-9:
        text = f"{value:.3f}"
    else:
        text = f"{value:.2g}"
    return text.replace("-", "−", 1) if value < 0 else text


def value_words(value: object) -> str:
    """Write a recorded value; whole numbers without decimals, whatever type their column has, others in six digits.

    Examples
    --------
    >>> value_words(1.0), value_words(0.0446416365), value_words("White")
    ('1', '0.0446416', 'White')
    """
    if not isinstance(value, float):
        return str(value)
    return str(int(value)) if value.is_integer() else f"{value:.6g}"


def interval_ends(low: float | None, high: float | None) -> str:
    """Write the ends of an interval; without an upper end, say so."""
    if low is None or math.isnan(low):
        return "unknown"
    if high is None or math.isinf(high):
        return f"from {short_number(low)}, no upper limit"
    return f"{short_number(low)} to {short_number(high)}"


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Join words as a sentence does."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def truncated(words: Sequence[str], most: int = 8) -> str:
    """Join words as a sentence does; of too many, name the first and count the rest."""
    if len(words) <= most + 1:
        return join_words(words)
    return f"{', '.join(words[:most])} and {len(words) - most:,} more"


def without_numbers(line: str) -> str:
    """Return a line with dots for its numbers: lines that say the same of other figures are the same then."""
    return _NUMBERS.sub("…", line)


def once_each(lines: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return the first of all lines that differ only in numbers, and how many there are."""
    kinds: dict[str, list[str]] = {}
    for line in lines:
        kinds.setdefault(without_numbers(line), []).append(line)
    return tuple((alike[0], len(alike)) for alike in kinds.values())


# What the user can choose, in messages: options for those who use the command line, parameters for those who write Python.


# Of a process that the command line has started.
COMMAND_LINE = "LIKEWISE_COMMAND_LINE"
_COMMAND_LINE: ContextVar[bool] = ContextVar("command_line", default=COMMAND_LINE in os.environ)
_OWN_OPTIONS = ("sensitive", "favourable", "target", "metric", "sample", "columns", "sign", "verify-key")
_PARAMETERS = {"sensitive": "sensitive_features", "target": "y", "verify-key": "verify_key"}
# What is said in other words: on the command line, in Python.
_SPELLED = {
    "overwrite": ("--force", "overwrite=True"),
    "replace_other": ("--force", "replace_other=True"),
    "this_process": ("--trust process", "trust=True"),
    "allow_pickle": ("--trust pickle", "allow_pickle=True"),
    "trusted": ("--trust {}", "trusted=[{!r}]"),
    "encoded": ("--set model_takes=encoded", "a function that encodes the table"),
    "port": ("--port", "port"),
    "classes": ("--classes", "classes=True"),
    "a limit": ("--limit 1%", "limit=0.01"),
    "held": ("--fixed COLUMN, --only-up COLUMN", "actions={{'age': 'up'}}"),
    "apart": ("--set tolerance=NUMBER", "tolerance="),
    "all people": ("-o people.csv", "result.people"),
}
# What Python does with the table itself.
_OF_TABLE = {
    "ignore": "X.drop(columns=[{}])",
    "only": "X[[{}]]",
    "keep": "",
    "empty": "X.replace({}, None)",
    "sample": "X.sample({})",
}


@contextmanager
def command_line() -> Iterator[None]:
    """Run a block whose messages name options of the command line."""
    token = _COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _COMMAND_LINE.reset(token)


def on_command_line() -> bool:
    """Whether messages name options of the command line."""
    return _COMMAND_LINE.get()


def option(name: str, value: str = "") -> str:
    """Return how the user says a choice: an option of the command line, or a parameter of Python.

    Examples
    --------
    >>> option("missing", "impute"), option("ignore", "age"), option("sensitive")
    ("missing='impute'", "X.drop(columns=['age'])", 'sensitive_features')
    >>> with command_line():
    ...     print(option("missing", "impute"), option("sensitive", "sex"))
    --read missing=impute --sensitive sex
    """
    if name in _SPELLED:
        return _SPELLED[name][0 if _COMMAND_LINE.get() else 1].format(value)
    if _COMMAND_LINE.get():
        if name in _OWN_OPTIONS:
            return f"--{name} {shlex.quote(value)}" if value else f"--{name}"
        return f"--read {name}={shlex.quote(value)}" if value else f"--read {name}"
    if name in _OF_TABLE:
        return _OF_TABLE[name].format(repr(value) if value else "…")
    named = _PARAMETERS.get(name, name)
    return f"{named}={value!r}" if value else named
