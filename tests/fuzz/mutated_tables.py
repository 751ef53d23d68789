"""Tables of every format, sound, crafted and mutated, for `fuzz_tables.py`."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

DEPTHS = (10, 100, 1_000, 5_000, 20_000, 100_000)


def people(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.normal(30.0, 5.0, n),
            "sex": rng.choice(["F", "M"], n),
            "paid": rng.choice(["no", "yes"], n),
        }
    )


def sound_files() -> dict[str, bytes]:
    frame, table = people(), pa.Table.from_pandas(people())
    arrow, packed, parquet, book = io.BytesIO(), io.BytesIO(), io.BytesIO(), io.BytesIO()
    feather.write_feather(table, arrow, compression="uncompressed")
    feather.write_feather(table, packed, compression="zstd")
    pq.write_table(table, parquet)
    frame.to_excel(book, index=False)
    csv, lines = frame.to_csv(index=False).encode(), frame.to_json(orient="records", lines=True).encode()
    return {
        "people.csv": csv,
        "people.jsonl": lines,
        "people.json": frame.to_json(orient="records").encode(),
        "people.arrow": arrow.getvalue(),
        "packed.arrow": packed.getvalue(),
        "people.parquet": parquet.getvalue(),
        "people.xlsx": book.getvalue(),
        "people.csv.gz": gzip.compress(csv, mtime=0),
        "people.jsonl.zst": pa.compress(lines, codec="zstd", asbytes=True),
    }


def crafted() -> dict[str, Callable[[], bytes]]:
    """Files made to crash a parser or to fill memory: nesting by a ladder of depths, and few bytes for many rows."""
    found: dict[str, Callable[[], bytes]] = {}
    for depth in DEPTHS:
        for sign, begin, end in (("list", "[", "]"), ("record", '{"a":', "}")):
            deep = f'{{"a": {begin * depth}1{end * depth}}}'
            found |= {
                f"{sign}-{depth}.jsonl": lambda deep=deep: f"{deep}\n".encode(),
                f"{sign}-{depth}-late.jsonl": lambda deep=deep: b'{"a": 1}\n' * 5_000 + f"{deep}\n".encode(),
                f"{sign}-{depth}.json": lambda deep=deep: f"[{deep}]".encode(),
                # As many line ends as a flat table has.
                f"{sign}-{depth}-lines.jsonl": lambda deep=deep, n=depth: f"{deep}\n".encode() + b"\n" * n,
                f"{sign}-{depth}-open.jsonl": lambda text=f'{{"a": {begin * depth}': text.encode(),
            }
        if depth <= 1_000:
            found[f"list-{depth}.parquet"] = lambda n=depth: _parquet(a=pa.nulls(2, _nested(n)))
        if depth < 60:
            found[f"list-{depth}.arrow"] = lambda n=depth: _arrow(a=pa.nulls(2, _nested(n)))
        found[f"quotes-{depth}.csv"] = lambda n=depth: b"a,b\n" + b'"' * n + b",1\n"
        found[f"wide-{depth}.csv"] = lambda n=depth: (
            ",".join(f"c{k}" for k in range(n)) + "\n" + "1," * (n - 1) + "1\n"
        ).encode()
    return found | {
        "repeated.parquet": lambda: _parquet(a=_repeated(pa.array(["x" * 4_000])), b=np.zeros(_ROWS)),
        "repeated.arrow": lambda: _arrow(a=_repeated(pa.array(["x" * 4_000])), b=np.zeros(_ROWS)),
        "views.arrow": lambda: _arrow(
            a=pa.Array.from_buffers(
                pa.string_view(),
                2_000,
                [None, pa.py_buffer(_words(10**6, 0x78787878, 0, 0) * 2_000), pa.py_buffer(b"x" * 10**6)],
            )
        ),
        "fixed.parquet": lambda: _parquet(
            20, a=_repeated(pa.array([b"x" * 50_000], pa.binary(50_000)), 1_000)
        ),
        "nulls.parquet": lambda: _parquet(**{f"n{k}": pa.nulls(1_000_000) for k in range(100)}),
        "nulls.arrow": lambda: _arrow(**{f"n{k}": pa.nulls(50_000_000) for k in range(20)}),
        "zeros.arrow": lambda: _arrow("zstd", **{f"n{k}": np.zeros(400_000_000, np.int8) for k in range(1)}),
        "offsets.arrow": lambda: _arrow(a=pa.array(["a", "b"])).replace(_words(0, 1, 2), _words(0, 1, 2**30)),
        "codes.arrow": lambda: _arrow(a=pa.array(["a", "b"]).dictionary_encode()).replace(
            _words(0, 1), _words(0, 99)
        ),
        "short.csv": lambda: (",".join(f"c{k}" for k in range(5_000)) + "\n" + "1\n" * 100_000).encode(),
        "row.csv": lambda: b"a,b\n" + b"," * 1_000_000 + b"\n1,2\n",
        "row-later.csv": lambda: b"a,b\n1,2\n" + b"," * 1_000_000 + b"\n1,2\n",
        "row-blank.csv": lambda: b"a,b\n \n\n\t" + b"x" * 100_000 + b"," * 1_000_000 + b"\n1,2\n",
        "row-tabs.csv": lambda: b"a\tb\n" + b"\t" * 1_000_000 + b"\n1\t2\n",
        "keys.jsonl": lambda: "".join(f'{{"c{k}": 1}}\n' for k in range(20_000)).encode(),
        "digits.json": lambda: b'[{"a": ' + b"9" * 20_000 + b"}]",
        "digits.jsonl": lambda: b'{"a": ' + b"9" * 20_000 + b"}\n",
        "surrogate.jsonl": lambda: b'{"a\\ud800": "\\ud800"}\n{"a\\ud800": "x"}\n',
        "escape.csv": lambda: b"a\x1b[2Jb,c\n1,2\n3,4\n",
        "word.jsonl.zst": lambda: pa.compress(
            b'{"a": "' + b"x" * 600_000_000 + b'"}\n', codec="zstd", asbytes=True
        ),
        "records.json.gz": lambda: gzip.compress(b"[{}" + b",{}" * 3_000_000 + b"]", 1, mtime=0),
        "lists.json.gz": lambda: gzip.compress(b"[{}" + b",[]" * 3_000_000 + b"]", 1, mtime=0),
        "corner.xlsx": lambda: _book(
            b'<c r="A2"><v>2</v></c></row><row r="1048576"><c r="XFD1048576"><v>3</v></c>'
        ),
        "rows.xlsx": lambda: _book(b"</row><row><c><v>3</v></c>" * 4_000_000),
        "entities.xlsx": lambda: _book(
            b'<c t="inlineStr"><is><t>&j;</t></is></c>',
            b'<!DOCTYPE a [<!ENTITY a "ha">'
            + b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
            + b"]>",
        ),
        "long-name.csv": lambda: b'a,"' + b"x" * 20_000_000 + b'",b\n1,2,3\n4,5,6\n',
        "bomb.csv.gz": lambda: gzip.compress(b"1,2\n" * 2_500_000, mtime=0) * 120,
    }


_ROWS = 200_000


def _book(cells: bytes, before: bytes = b"") -> bytes:
    """A workbook whose second row has these cells, as they are."""
    book, changed = io.BytesIO(), io.BytesIO()
    pd.DataFrame({"a": [1]}).to_excel(book, index=False)
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            data = old.read(part)
            if "sheet1" in part:
                start, end = data.index(b">", data.index(b'<row r="2"')) + 1, data.rindex(b"</row>")
                data = before + data[:start] + cells + data[end:]
            new.writestr(part, data)
    return changed.getvalue()


def _repeated(words: pa.Array, rows: int = _ROWS) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), words)


def _words(*numbers: int) -> bytes:
    return np.array(numbers, np.int32).tobytes()


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with some bytes changed, cut out, doubled or put in, or cut off."""
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 8))):
        at, size = int(rng.integers(0, max(len(found), 1))), int(rng.integers(1, 65))
        kind = rng.integers(0, 6)
        if kind == 0:
            found[at : at + 1] = bytes([int(rng.integers(0, 256))])
        elif kind == 1:
            found[at : at + size] = rng.bytes(size)
        elif kind == 2:
            del found[at : at + size]
        elif kind == 3:
            found[at:at] = found[at : at + size] * int(rng.integers(1, 40))
        elif kind == 4:
            found[at : at + 4] = rng.choice(
                [b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\xff\xff\xff\xff", b"\0\0\0\0"]
            )
        else:
            del found[int(rng.integers(1, len(found) + 1)) :]
        if not found:
            break
    return bytes(found)


def _nested(depth: int) -> pa.DataType:
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)
    return kind


def _parquet(times: int = 1, **columns: Any) -> bytes:
    out, table = io.BytesIO(), pa.table(columns)
    with pq.ParquetWriter(out, table.schema) as writer:
        for _ in range(times):
            writer.write_table(table)
    return out.getvalue()


def _arrow(compression: str | None = None, **columns: Any) -> bytes:
    out, table = io.BytesIO(), pa.table(columns)
    with pa.ipc.new_file(
        out, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return out.getvalue()
