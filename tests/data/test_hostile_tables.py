"""Tables that crash parsers, fill memory or never end are refused in a sentence, and so is every path that is not a file."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.cli.app import main
from likewise.core.errors import InputError
from likewise.data.opening import MemoryFile
from likewise.data.table_files import read_table

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from mutated_tables import _book, crafted, sound_files


def ends(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


def test_sound_tables_are_read_as_before():
    whole = {name: read_table(MemoryFile(name, data)).frame for name, data in sound_files().items()}
    expected = whole["people.csv"]
    for name, frame in whole.items():
        pd.testing.assert_frame_equal(frame, expected, check_dtype=False, obj=name)


def test_words_of_parquet_files_keep_their_types():
    words = ["x", None, "y"] * 20
    frame = pd.DataFrame({"a": words, "b": pd.Categorical(words), "c": [b"1"] * 60})
    out = io.BytesIO()
    frame.to_parquet(out)
    read = read_table(MemoryFile("a.parquet", out.getvalue())).frame
    pd.testing.assert_frame_equal(read, frame)


def parquet_of_bytes() -> bytes:
    out = io.BytesIO()
    pd.DataFrame({"a": [b"\xff\xfe", b"a"]}).to_parquet(out)
    return out.getvalue()


def parquet_of_broken_words() -> bytes:
    out = io.BytesIO()
    words = pa.array([b"\xff\xfe", b"a"]).view(pa.string())  # what a writer that does not check would store
    pq.write_table(pa.table({"a": words}), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "make", "code"),
    [
        ("columns.csv", lambda: ",".join(f"c{k}" for k in range(100_000)).encode() + b"\n", 2),
        ("bytes.parquet", parquet_of_bytes, 2),
        ("words.parquet", parquet_of_broken_words, 2),
        ("words.jsonl", lambda: b'{"a": "\xff\xfe"}\n{"a": "b"}\n', 2),
        ("line.jsonl", lambda: b'{"a": "%s"}\n{"a": "b"}\n' % (b"x" * 3_000_000), 0),
        ("doubled.csv", lambda: b",".join([b"a"] * 3_000) + b"\n" + b",".join([b"1"] * 3_000) + b"\n", 0),
        ("packed.csv.gz", lambda: gzip.compress(b"a,b\n" + b"1,2\n" * 1_200_000), 2),
        (
            "far.xlsx",
            lambda: _book(b'<c><v>1</v></c></row><row r="999999999999"><c r="A999999999999"><v>2</v></c>'),
            0,
        ),
    ],
)
def test_what_took_minutes_memory_or_ended_unforeseen(name, make, code, tmp_path, capsys, monkeypatch):
    """A minute, 2.8 GB of a 200 KB file, for ever, and "something unforeseen": what a stranger found."""
    if name == "packed.csv.gz":  # as 512 MB are to 50,000,000 rows
        monkeypatch.setattr("likewise.data.opening._LEAST_ROOM", 2**24)
    (tmp_path / name).write_bytes(make())
    assert ends("inspect", tmp_path / name, "--no-file") == code
    assert "unforeseen" not in capsys.readouterr().err


@pytest.mark.parametrize("most", [1, 2, 3, 7, 4_096])
def test_nesting_is_that_of_the_whole_text_wherever_blocks_end(most, monkeypatch):
    """A depth that line ends outnumbered was not looked at, and a text in one line was looked at in one piece."""
    from likewise.data import opening

    monkeypatch.setattr(opening, "_BLOCK", most)
    rng = np.random.default_rng(most)

    def value(depth: int) -> tuple[object, int]:
        kind = rng.integers(3) if depth else 0
        if not kind:
            return ["a", '[{"', "\\", '\\"]', 1][rng.integers(5)], 0
        parts = [value(depth - 1) for _ in range(rng.integers(4))]
        deepest = 1 + max((found for _, found in parts), default=0)
        values = [one for one, _ in parts]
        return values if kind == 1 else {f'{at}["': one for at, one in enumerate(values)}, deepest

    for _ in range(100):
        made = [value(5) for _ in range(3)]
        text = "\n".join(json.dumps(one, indent=[None, 0][rng.integers(2)]) for one, _ in made).encode()
        deepest = max(found for _, found in made)
        assert opening.nesting(text) == deepest
        assert deepest < 2 or opening._NESTED.search(text)


QUICK = ("row", "list-20000", "record-20000", "offsets", "codes", "digits", "surrogate", "escape", "list-10")


def test_crafted_tables_end_in_a_sentence(tmp_path, capsys):
    """A 40 KB file of 20,000 nested lists was a segmentation fault, a mapped Arrow file SIGBUS."""
    for name, make in crafted().items():
        if name.startswith(QUICK) and "00000" not in name:
            (tmp_path / name).write_bytes(make())
            assert ends("inspect", tmp_path / name, "--no-file") in (0, 2), name
            assert "unforeseen" not in capsys.readouterr().err, name


@pytest.mark.parametrize(
    "name",
    [
        "repeated.parquet",
        "repeated.arrow",
        "views.arrow",
        "fixed.parquet",
        "nulls.arrow",
        "short.csv",
        "keys.jsonl",
        "records.json.gz",
        "lists.json.gz",
        "corner.xlsx",
    ],
)
def test_few_bytes_do_not_become_many(name):
    with pytest.raises(InputError, match="in memory"):
        read_table(MemoryFile(name, crafted()[name](), largest=2**28))


@pytest.mark.parametrize("name", ["offsets.arrow", "codes.arrow"])
def test_numbers_that_lead_outside_of_a_buffer_are_refused(name):
    with pytest.raises(InputError, match="readable Arrow table"):
        read_table(MemoryFile(name, crafted()[name]()))


@pytest.fixture
def odd_paths(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "deep.toml").write_text("a = " + "[" * 20_000 + "]" * 20_000)
    (tmp_path / "people.csv").write_bytes(sound_files()["people.csv"])
    return tmp_path


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder", "absent", "deep.toml"])
@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "{}"],
        ["inspect", "people.csv", "--columns", "{}"],
        ["inspect", "people.csv", "--config", "{}"],
        ["replay", "{}"],
        ["audit", "{}", "people.csv", "--target", "paid", "--sensitive", "sex"],
        ["train", "people.csv", "--target", "paid", "--metric", "{}", "-o", "m.safetensors"],
        ["reproduce", "sentiment", "--quick", "--names", "{}"],
        ["reproduce", "sentiment", "--quick", "--vectors", "{}"],
        ["audit-texts", "people.csv", "--cache", "{}", "--scorer", "math:sqrt"],
    ],
    ids=lambda words: " ".join(words[:1] + [word for word in words if word.startswith("--")][-1:]),
)
def test_every_option_that_takes_a_path_takes_files_only(words, kind, odd_paths, monkeypatch, capsys):
    monkeypatch.chdir(odd_paths)
    assert ends(*(word.format(kind) for word in words)) == 2
    assert "unforeseen" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder"])
def test_an_output_replaces_files_only(kind, odd_paths, monkeypatch, capsys):
    """`--force` put a file in the place of a device, a loop of links was replaced without."""
    from likewise.core.files import atomic_path

    monkeypatch.chdir(odd_paths)
    (place := Path(f"{kind}.toml")).symlink_to(kind)
    before = place.lstat().st_ino
    assert ends("inspect", "people.csv", "-o", place, "--force") == 2
    assert "cannot be written" in (said := capsys.readouterr().err) or "is a " in said
    with pytest.raises(InputError), atomic_path(place):
        pass
    assert place.lstat().st_ino == before


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder", "absent"])
def test_rules_and_graphs_are_files(kind, odd_paths):
    from likewise.counterfactuals.causal.graphs import read_graph
    from likewise.counterfactuals.rules import read_rules

    with pytest.raises(InputError):
        read_graph(odd_paths / kind, ["a"], owner="graph")
    with pytest.raises(InputError):
        read_rules(odd_paths / kind, owner="rules")


def test_a_cache_of_replies_leaves_other_files_alone(tmp_path):
    from likewise.text.replies import ReplyCache

    other = tmp_path / "notes.txt"
    other.write_text("mine")
    other.chmod(0o644)
    with pytest.raises(InputError, match="not a file of replies"):
        ReplyCache(other)
    assert (other.read_text(), other.stat().st_mode & 0o777) == ("mine", 0o644)
    kept = tmp_path / "replies.db"
    with ReplyCache(kept) as cache:
        cache.put("judge", "1", "text", 0, 0.5)
    assert kept.stat().st_mode & 0o777 == 0o600
    data = bytearray(kept.read_bytes())
    data[100:] = b"\xff" * (len(data) - 100)
    kept.write_bytes(data)
    with pytest.raises(InputError, match="not a file of replies"), ReplyCache(kept) as cache:
        cache.get("judge", "1", "text", 0)
