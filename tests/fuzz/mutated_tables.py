"""Tables of every format, sound, crafted and mutated, for `fuzz_tables.py`."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator

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


def crafted() -> Iterator[tuple[str, bytes]]:
    """Files made to crash a parser or to fill memory: nesting by a ladder of depths, and few bytes for many rows."""
    for depth in DEPTHS:
        for begin, end in (("[", "]"), ('{"a":', "}")):
            deep = begin * depth + "1" + end * depth
            yield f"deep-{depth}.jsonl", f'{{"a": {deep}}}\n'.encode()
            yield f"late-{depth}.jsonl", (b'{"a": 1}\n' * 5_000) + f'{{"a": {deep}}}\n'.encode()
            yield f"deep-{depth}.json", f'[{{"a": {deep}}}]'.encode()
            yield f"open-{depth}.jsonl", f'{{"a": {begin * depth}'.encode()
        if depth <= 1_000:
            yield f"deep-{depth}.parquet", _parquet(pa.table({"a": pa.nulls(2, _nested(depth))}))
            yield f"deep-{depth}.arrow", _arrow(pa.table({"a": pa.nulls(2, _nested(min(depth, 60)))}))
        yield f"quotes-{depth}.csv", b"a,b\n" + b'"' * depth + b",1\n"
        yield (
            f"wide-{depth}.csv",
            b",".join(b"c%d" % k for k in range(depth)) + b"\n" + b"1," * (depth - 1) + b"1\n",
        )
    rows = 200_000
    word = pa.array([b"x" * 4_000]).dictionary_encode()
    repeated = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), word.dictionary)
    yield "repeated.parquet", _parquet(pa.table({"a": repeated, "b": pa.array(np.zeros(rows))}))
    flat = pa.array(np.zeros(rows, np.int32)).cast(pa.int32())
    fixed = pa.DictionaryArray.from_arrays(flat, pa.array([b"x" * 20_000], pa.binary(20_000)))
    yield "fixed.parquet", _parquet(pa.table({"a": fixed, "b": pa.array(np.zeros(rows))}))
    yield "nulls.arrow", _arrow(pa.table({f"n{k}": pa.nulls(50_000_000) for k in range(20)}))
    yield "nulls.parquet", _parquet(pa.table({"a": pa.nulls(60_000_000), "b": pa.nulls(60_000_000)}))
    yield (
        "dictionary.arrow",
        _arrow(
            pa.table(
                {
                    "a": pa.DictionaryArray.from_arrays(
                        pa.array([0, 7], pa.int8()), pa.array(["x"]), safe=False
                    )
                }
            )
        ),
    )
    yield "digits.json", b'[{"a": ' + b"9" * 20_000 + b"}]"
    yield "digits.jsonl", b'{"a": ' + b"9" * 20_000 + b"}\n"
    yield "surrogate.jsonl", b'{"a\\ud800": "\\ud800"}\n{"a\\ud800": "x"}\n'
    yield "bomb.csv.gz", gzip.compress(b"1,2\n" * 2_500_000, mtime=0) * 120
    yield "escape.csv", b"a\x1b[2Jb,c\n1,2\n3,4\n"
    yield "names.jsonl", json.dumps({f"c{k}": 1 for k in range(5_000)}).encode() + b"\n"


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


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _arrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()
