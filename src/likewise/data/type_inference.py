"""Type inference for columns: number, integer, code, category, id, dates or free text.

A guess from the values and, if these do not decide, from words in the name. It is always said, and the user's word
(`columns.toml`, --read) wins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.files import atomic_path
from likewise.core.text import option, short_number
from likewise.data.column import ColumnPlan
from likewise.data.curve import ScaleName
from likewise.data.inference import LARGEST_EXACT

if TYPE_CHECKING:
    import pandas as pd

# A text column with more values than this is left out unless somebody needs it.
MOST_CATEGORIES = 200
# Whole numbers with at most so many values, up to this one, are codes unless the name says that they are ordered.
MOST_CODES = 7
LARGEST_CODE = 12
# What stands for "nothing here" in columns of numbers that have none below zero.
_MISSING_CODES = frozenset({-1.0, *(-(10.0**digits - 1) for digits in range(1, 7))})
_CONSTANT = "the same for everybody"
_FEW = 30
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_ID_WORDS = "id ids uuid guid key ssn email mail phone name surname firstname lastname dob address"
_ORDERED_WORDS = (
    "age count counts number num n nr year years yr month months week weeks day days hour hours score "
    "scores rating rank level grade decile quantile quartile tier size income inc amount total stars "
    "dependents children kids rooms priors visits times degree stage step since duration"
)
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:.*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ]\d{1,2}:.*)?"
    r"|\d{1,2}:\d{2}(:\d{2})?|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}"
)


@dataclass(frozen=True)
class InferredColumn:
    """How one column will be read, and why.

    Parameters
    ----------
    name : str
    plan : ColumnPlan
        The guess.
    why : str
        What the guess rests on; empty if there is nothing to say.
    missing, rows : int
        How many cells are empty, of how many.
    distinct : int
        How many different values there are.
    low, high : float or None
        Of numbers.
    scale : str, optional
        A scale that suits a mass at zero or a heavy tail; it is advised, never taken without the user's word.
    empty : str or float, optional
        A value that may stand for a missing cell, advised likewise.

    Examples
    --------
    >>> import pandas as pd
    >>> look = look_at_column(pd.Series([31, 45, None, 31], name="age"))
    >>> look.plan.kind, look.missing, look.rows, look.low, look.high
    ('category', 1, 4, 31.0, 45.0)
    """

    name: str
    plan: ColumnPlan
    why: str
    missing: int
    rows: int
    distinct: int
    low: float | None = None
    high: float | None = None
    scale: ScaleName | None = None
    empty: Any = None


def infer_types(frame: pd.DataFrame) -> tuple[InferredColumn, ...]:
    """Look at every column of a table; see `look_at_column`.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20.0, 31.5, 45.0], "sex": ["F", "M", "M"]})
    >>> [(look.name, look.plan.kind, look.distinct) for look in infer_types(people)]
    [('age', 'number', 3), ('sex', 'category', 2)]
    """
    return tuple(look_at_column(column) for _, column in frame.items())


def look_at_column(series: pd.Series[Any]) -> InferredColumn:
    """Guess what the values of a column are."""
    import pandas as pd

    name = str(series.name)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf":
        values = series.to_numpy(dtype=float)
        return _number(name, values[~np.isnan(values)], series)
    known = series.dropna()
    try:
        distinct = int(known.nunique())
    except TypeError:
        return _made(name, series, 0, "left out", "values that are neither numbers nor words")
    made = partial(_made, name, series, distinct)
    if not distinct:
        return made("left out", "empty")
    declared = isinstance(series.dtype, pd.CategoricalDtype)
    if declared:
        known = known.astype(known.cat.categories.dtype)
    if known.dtype.kind in "mM":
        return made("left out", "dates")
    if known.dtype.kind == "c":
        return made("left out", "complex numbers")
    if known.dtype.kind == "b":
        return made("category", "")
    if known.dtype.kind in "iuf" and not declared:
        return _number(name, known.to_numpy(dtype=float), series)
    return _words(name, known, series, distinct)


def _made(
    name: str,
    series: pd.Series[Any],
    distinct: int,
    kind: Any,
    why: str,
    known: int | None = None,
    **more: Any,
) -> InferredColumn:
    missing = int(series.isna().sum()) if known is None else len(series) - known
    return InferredColumn(name, ColumnPlan(kind), why, missing, len(series), distinct, **more)


# ---------------------------------------------------------------------------------------------- numbers


def _number(name: str, values: np.ndarray[Any, Any], series: pd.Series[Any]) -> InferredColumn:
    """Look at the values of a column of numbers, without its gaps."""
    distinct = len(np.unique(values))
    # A table may have ten thousand columns: what is known of each is not counted again.
    made = partial(_made, name, series, distinct, known=len(values))
    if not distinct:
        return made("left out", "empty")
    finite = np.isfinite(values)
    if not finite.all():
        return made("number", f"{int((~finite).sum()):,} infinite values")
    low, high = float(values.min()), float(values.max())
    made = partial(made, low=low, high=high)
    code = _missing_code(values, distinct)
    if code:
        made = partial(made, empty=low)
    if not (values == np.rint(values)).all():
        why, scale = (code, None) if code else _tail(values)
        return made("number", why, scale=scale)
    if max(abs(low), abs(high)) > LARGEST_EXACT:
        if series.dtype.kind in "iu":
            return made("left out", "looks like an id: very large whole numbers")
        return made("number", "very large")
    if _counts_rows(name, values, distinct):
        return made("left out", "looks like an id: every row has its own number")
    is_code = _is_code(name, values, distinct, low, high)
    if code and not is_code:
        return made("integer", code, scale=_tail(values)[1] if low == -1 else None)
    if distinct == 2:
        shown = " and ".join(f"{value:g}" for value in sorted(set(values.tolist())))
        return made("category", f"two values: {shown}")
    if distinct > 2 and is_code:
        return made("category", f"a code: {distinct} whole numbers" + (f"; {code}" if code else ""))
    why, scale = (_CONSTANT, None) if distinct == 1 else _tail(values)
    return made("integer", why, scale=scale)


def _counts_rows(name: str, values: np.ndarray[Any, Any], distinct: int) -> bool:
    n = len(values)
    if n < 3 or distinct < 0.98 * n:
        return False
    steps = np.diff(values)
    dense = n >= 50 and distinct == n and float(np.ptp(values)) < 1.1 * n
    return bool(_has(name, _ID_WORDS)) or bool((steps == 1).all() and n >= 20) or dense


def _is_code(name: str, values: np.ndarray[Any, Any], distinct: int, low: float, high: float) -> bool:
    small = distinct <= MOST_CODES and low >= -1 and high <= LARGEST_CODE
    return small and len(values) >= 5 * distinct and not _has(name, _ORDERED_WORDS)


def _missing_code(values: np.ndarray[Any, Any], distinct: int) -> str:
    """Words about one value such as -1 or -999 among others that are not below zero: it may stand for a missing one."""
    low = float(values.min())
    at_low = values == low
    count = int(at_low.sum())
    # -1, 0, 1 are signs.
    if low not in _MISSING_CODES or (low == -1 and distinct < 4):
        return ""
    if count < 2 or count == len(values) or float(values[~at_low].min()) < 0:
        return ""
    return _empty_advice(f"{low:.0f}", count / len(values))


def _empty_advice(mark: str, share: float) -> str:
    return f"{share:.1%} are {mark or 'blank'}: if that means missing, {option('empty', mark or ' ')}"


def _tail(values: np.ndarray[Any, Any]) -> tuple[str, ScaleName | None]:
    """Words about a mass at zero or a heavy tail, where a standardised distance misleads, and a scale for it."""
    n = len(values)
    if n < _FEW:
        return "", None
    zero, largest = np.count_nonzero(values == 0) / n, float(np.abs(values).max())
    if zero > 0.5 and largest > 20:
        return f"{zero:.0%} are zero", "signed log"
    if largest >= 1e150:
        return "", None
    away = values - values.sum() / n
    spread = float(np.sqrt(away @ away / n))
    if spread > 0 and abs(float(((away / spread) ** 3).sum() / n)) > 3:
        return "a heavy tail", "signed log"
    return "", None


def _has(name: str, words: str) -> bool:
    known = words.split()
    return any(word.lower() in known for word in _WORD.findall(name))


# ------------------------------------------------------------------------------------------------ words


def _words(name: str, known: pd.Series[Any], series: pd.Series[Any], distinct: int) -> InferredColumn:
    n, made = len(known), partial(_made, name, series, distinct)
    sample = [str(value) for value in known.head(500)]
    if distinct > 2 and sum(bool(_DATE.fullmatch(value.strip())) for value in sample) >= 0.9 * len(sample):
        return made("left out", "dates")
    mark, advice = _missing_word(known)
    if distinct <= 2:
        why = advice or (_CONSTANT if distinct == 1 else "")
        return made("category", why, empty=mark)
    length = float(np.mean([len(value) for value in sample]))
    gaps = float(np.mean([value.count(" ") for value in sample]))
    if distinct > 20 and distinct > 0.5 * n:
        text = length > 40 or gaps >= 4
        why = "free text" if text else "looks like an id or a name: nearly every value is another"
        return made("left out", why + _mostly_numbers(sample))
    if distinct > 20 and _has(name, _ID_WORDS) and distinct > 0.2 * n:
        return made("left out", "looks like an id or a name")
    if distinct > MOST_CATEGORIES:
        why = f"{distinct:,} different values" + _mostly_numbers(sample)
        return made("left out", why)
    return made("category", advice or _mostly_numbers(sample).lstrip("; "), empty=mark)


def _missing_word(known: pd.Series[Any]) -> tuple[str | None, str]:
    """Return the most frequent word of a column that may stand for a missing one, and what to say of it."""
    from likewise.data.text_tables import MARKED_MISSING, MISSING

    counts = known.astype(str).value_counts()
    for word, count in counts.items():
        plain = str(word).strip()
        if plain in MISSING or plain.lower() in MARKED_MISSING - {"none"}:
            return str(word), _empty_advice(plain, count / len(known))
    return None, ""


def _mostly_numbers(sample: list[str]) -> str:
    """Words about a column of numbers in which some cells are not numbers."""
    from likewise.data.text_tables import is_number

    odd = [value for value in sample if not is_number(value)]
    if len(sample) < 5 or not odd or len(odd) > 0.2 * len(sample):
        return ""
    return f"; numbers but for {odd[0][:20]!r}"


def shown_range(look: InferredColumn) -> str:
    """Return the range of a column in words: least to greatest, or how many values."""
    if look.plan.kind == "category" or look.low is None or look.high is None:
        return f"{look.distinct:,} values" if look.distinct != 1 else "1 value"
    low, high = (
        f"{end:.0f}" if float(end).is_integer() and abs(end) < 1e7 else short_number(end)
        for end in (look.low, look.high)
    )
    return f"{low} to {high}"


# How the columns will be read, as a TOML file that a person edits and `--columns` takes.


_HEADER = """# How likewise reads the columns of {table}. Edit it, and pass it to any verb: --columns {file}
# kind: "number", "integer", "category", "left out" or "target"
# range = [low, high] for numbers and integers, -inf or inf for an open end; default: that of the table at hand
# immutable = true: no twin differs in it
# empty = ["?", -1] for values that stand for a missing cell
# values = ["a", "b"] for categories that can exist besides those of the table
# scale = "signed log", "rank" or "value or not" for numbers and integers that few people have much of
"""


def columns_text(looks: Sequence[InferredColumn], *, table: str, file: str = "columns.toml") -> str:
    """Return the text of a columns file."""
    parts = [_HEADER.format(table=_comment(table), file=_comment(file))]
    for look in looks:
        lines = [
            f"[{_key(look.name)}]",
            f'kind = "{look.plan.kind}"' + (f"  # {_comment(look.why)}" if look.why else ""),
        ]
        if look.plan.kind in ("number", "integer") and look.low is not None and look.high is not None:
            lines.append(f"# range = [{_written(look.low)}, {_written(look.high)}]")
        lines += _scale(look)
        if look.plan.empty:
            lines.append(f"empty = [{', '.join(map(_value, look.plan.empty))}]")
        elif look.empty is not None:
            lines.append(f"# empty = [{_value(look.empty)}]")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _scale(look: InferredColumn) -> list[str]:
    """The scale that the user chose, or one that is advised, to be taken by removing the sign of a comment."""
    if look.plan.kind not in ("number", "integer"):
        return []
    if look.plan.scale is not None:
        name = look.plan.scale if isinstance(look.plan.scale, str) else look.plan.scale.name
        return [f'scale = "{name}"']
    return [] if look.scale is None else [f'# scale = "{look.scale}"']


def write_columns(looks: Sequence[InferredColumn], path: Path, *, table: str) -> None:
    """Write a columns file, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> path = Path(tempfile.mkdtemp()) / "columns.toml"
    >>> write_columns(infer_types(pd.DataFrame({"age": [20, 31, 45]})), path, table="people.csv")
    >>> path.read_text(encoding="utf-8").splitlines()[-1]
    '# range = [20, 45]'
    """
    with atomic_path(path) as temporary:
        temporary.write_text(columns_text(looks, table=table, file=path.name), encoding="utf-8")


def _value(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else _written(float(value))


def _key(name: str) -> str:
    plain = name.isascii() and all(char.isalnum() or char in "-_" for char in name) and name != ""
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    """A TOML string: JSON's is one, but for the character DEL, and for halves of a pair, which no file can hold."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _written(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 2**53 else repr(value)
