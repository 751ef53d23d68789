"""How the columns of a table will be read, as a TOML file that a person edits and `--columns` takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from likewise.core.files import atomic_path
from likewise.data.type_inference import InferredColumn

_HEADER = """# How likewise reads the columns of {table}. Edit it, and pass it to any verb: --columns {file}
# kind: "number", "integer", "category", "left out" or "target"
# range = [low, high] for numbers and integers, -inf or inf for an open end; default: that of the table at hand
# immutable = true: no twin differs in it
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
            lines.append(f"# range = [{_number(look.low)}, {_number(look.high)}]")
        lines += _scale(look)
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
    >>> from likewise.data.type_inference import infer_types
    >>> path = Path(tempfile.mkdtemp()) / "columns.toml"
    >>> write_columns(infer_types(pd.DataFrame({"age": [20, 31, 45]})), path, table="people.csv")
    >>> path.read_text(encoding="utf-8").splitlines()[-1]
    '# range = [20, 45]'
    """
    with atomic_path(path) as temporary:
        temporary.write_text(columns_text(looks, table=table, file=path.name), encoding="utf-8")


def _key(name: str) -> str:
    plain = name.isascii() and all(char.isalnum() or char in "-_" for char in name) and name != ""
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    """A TOML string: JSON's is one, but for the character DEL, and for halves of a pair, which no file can hold."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 2**53 else repr(value)
