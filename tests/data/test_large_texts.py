"""A text file written as Parquet some rows at a time is the table that is read at once."""

import numpy as np
import pandas as pd
import pytest

from likewise.core.errors import FormatError, InputError
from likewise.data import large_texts
from likewise.data.opening import Reading, open_file
from likewise.data.table_files import read_table

N = 60


def write(path, separator=",", **columns):
    pd.DataFrame(columns).to_csv(path, index=False, sep=separator)
    return path


def in_parts(path, monkeypatch, reading=None, rows=7, **given):
    monkeypatch.setattr(large_texts, "ROWS", rows)
    target = path.with_suffix(".parquet")
    count, _, notes = large_texts.write_parts(open_file(path), reading or Reading(**given), target)
    return pd.read_parquet(target), count, notes


def texts(values, at, other):
    cells = [str(value) for value in values]
    for k in at:
        cells[k] = other
    return cells


RNG = np.random.default_rng(0)
WHOLE, SHARE = RNG.integers(0, 2000, N), RNG.normal(size=N)
TABLES = {
    "numbers": {"a": WHOLE, "b": SHARE, "c": WHOLE % 2 == 0},
    "a gap in a late row": {"a": texts(WHOLE, [50], ""), "b": texts(WHOLE % 2 == 0, [41], ""), "c": WHOLE},
    "a fraction in a late row": {"a": texts(WHOLE, [55], "0.1234567890123456789"), "c": WHOLE},
    "a word in a late row": {"a": [f"{k:03d}" for k in range(N - 1)] + ["x"], "c": WHOLE},
    "a mark in a late row": {"a": texts(WHOLE, [58], "?"), "b": texts(WHOLE, range(21, 35), "-"), "c": WHOLE},
    "marks nearly everywhere": {"a": texts(WHOLE, range(57), "?"), "c": WHOLE},
    "truth values, then numbers": {"a": ["True"] * 30 + ["1"] * 30, "c": WHOLE},
    "an empty column": {"a": [""] * N, "c": WHOLE},
    "a unit": {"a": [f"${k}" for k in WHOLE], "b": [f"${k}" for k in WHOLE[:-1]] + ["7"], "c": WHOLE},
    "thousands": {
        "a": [f"{k:,}" for k in WHOLE],
        "b": [f"{k:,}" for k in WHOLE[:-1]] + ["1,2,3"],
        "c": WHOLE,
    },
}


@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES)
def test_types_are_those_of_the_whole_table(columns, tmp_path, monkeypatch):
    path = write(tmp_path / "people.csv", **columns)
    whole = read_table(path)
    found, count, notes = in_parts(path, monkeypatch)
    for name, column in found.items():
        if column.dtype == object:  # truth values with gaps, of which Parquet has one kind
            found[name] = column.where(column.notna(), np.nan)
    pd.testing.assert_frame_equal(found, whole.frame, check_dtype=not whole.frame["a"].isna().all())
    assert count == N
    assert tuple(notes) == whole.notes


def test_semicolons_and_decimal_commas(tmp_path, monkeypatch):
    # 1.234 is one thousand and more once another row has a decimal comma.
    columns = {"a": ["1.234"] * 20 + ["3,5"] * 40, "b": [f"{x:.3f}".replace(".", ",") for x in SHARE]}
    path = write(tmp_path / "people.csv", ";", **columns)
    whole = read_table(path)
    found, _, _ = in_parts(path, monkeypatch)
    pd.testing.assert_frame_equal(found, whole.frame)
    assert found["a"].iloc[0] == 1234


def test_names_of_columns(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    frame = pd.DataFrame({"a": WHOLE, "b": SHARE})
    frame.to_csv(path)
    whole = read_table(path)
    found, _, notes = in_parts(path, monkeypatch)
    pd.testing.assert_frame_equal(found, whole.frame)
    assert tuple(notes) == whole.notes
    rows = [f"{a},{b},{a}" for a, b in zip(WHOLE, SHARE, strict=True)]
    path.write_text("\n".join(["a,b,a", *rows]))
    pd.testing.assert_frame_equal(in_parts(path, monkeypatch)[0], read_table(path).frame)
    assert list(in_parts(path, monkeypatch, ignore=("b",))[0].columns) == ["a"]
    with pytest.raises(InputError, match="no column 'c'"):
        in_parts(path, monkeypatch, ignore=("c",))
    path.write_text("\n".join(["a,b,a", *rows[:-1], "1,2,3"]))
    with pytest.raises(FormatError, match="same name"):
        in_parts(path, monkeypatch)


def test_a_ragged_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_text("a,b\n" + "1,2\n" * 30 + "1,2,3\n")
    with pytest.raises(FormatError, match="rectangular"):
        in_parts(path, monkeypatch)


@pytest.mark.parametrize("late", [False, True])
def test_codes_with_leading_zeros_stay_as_written_if_asked_for_else_it_is_said(late, tmp_path, monkeypatch):
    """A model that was fitted on "01001" knows no 1001, and decides about it without a word."""
    codes = ["10001"] * N if late else ["01001", "02139"] * (N // 2)
    codes[-1] = "00501"
    day = ["05:30", "0.5"] * (N // 2)
    path = write(tmp_path / "people.csv", separator="\t", age=WHOLE, zip=codes, day=day)
    monkeypatch.setattr("likewise.data.text_tables._BLOCK", 64)
    kept = Reading(categorical=("zip", "age"))
    for frame, notes in (
        (read_table(path).frame, read_table(path).notes),
        in_parts(path, monkeypatch)[::2],
    ):
        assert frame["zip"].dtype == np.int64
        assert [note for note in notes if "leading zeros as numbers in 'zip'" in note]
    for frame in (read_table(path, kept).frame, in_parts(path, monkeypatch, kept)[0]):
        assert frame["zip"].tolist() == codes
        assert frame["age"].dtype == np.int64
