"""Files as they come: separators, line ends, encodings, names, formats; and the sentence where it cannot be read."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

from likewise.core.errors import FormatError, InputError, MissingExtraError
from likewise.data import Reading, read_table


def same(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found.reset_index(drop=True), wanted, check_dtype=False)


@pytest.mark.parametrize("name", ["comma", "codes", "old_mac", "zipped"])
def test_the_same_people_however_they_are_written(trouble, people, name):
    same(read_table(trouble(name)).frame, people())


def test_other_encodings_by_choice(trouble, people):
    with pytest.raises(FormatError, match=r"not UTF-8 text.*encoding='latin-1'"):
        read_table(trouble("latin"))
    found = read_table(trouble("latin"), Reading(encoding="latin-1")).frame
    assert set(found["job"]) == {"clerk", "Köchin", "nurse"}


@pytest.mark.parametrize("how", ["utf-8-sig", "utf-16"])
def test_a_mark_at_the_beginning_says_the_encoding(tmp_path, how):
    path = tmp_path / "a.csv"
    path.write_bytes("größe;n\n1,5;2\n".encode(how))
    assert read_table(path).frame.to_dict("list") == {"größe": [1.5], "n": [2]}


def test_every_doubled_name_is_told_and_identical_copies_go(trouble, people, tmp_path):
    found = read_table(trouble("doubled"))
    same(found.frame, people())
    assert "'age' and 'job'" in found.notes[-1]
    path = tmp_path / "differ.csv"
    path.write_text("a,b,a,b,c\n1,2,3,4,5\n")
    with pytest.raises(FormatError, match=r"'a' and 'b'.*doubled='number'.*X.drop"):
        read_table(path)
    assert list(read_table(path, Reading(doubled="number")).frame) == ["a", "b", "a (2)", "b (2)", "c"]
    assert list(read_table(path, Reading(ignore=("a", "b"))).frame) == ["c"]


def test_a_column_without_a_name_that_numbers_the_rows_is_left_out(people, tmp_path):
    people().to_csv(tmp_path / "index.csv")
    found = read_table(tmp_path / "index.csv")
    same(found.frame, people())
    assert "numbers the rows" in found.notes[-1]


def test_a_file_without_header_is_told(trouble):
    with pytest.raises(FormatError, match="seems to have no header"):
        read_table(trouble("without_header"))
    found = read_table(trouble("without_header"), Reading(header=False)).frame
    assert found.shape == (200, 8)
    assert found.columns[0] == "column 1"


def test_a_header_line_of_a_megabyte(tmp_path):
    names = [f"{'long ' * 20}{at}" for at in range(10_000)]
    path = tmp_path / "long.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" * 10_000) + "\n")
    assert path.stat().st_size > 1_000_000
    assert list(read_table(path).frame) == names


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [(["1,5", "2"], [1.5, 2.0]), (["1.234,5", "0,25"], [1234.5, 0.25]), (["-,5", "3"], [-0.5, 3.0])],
)
def test_decimal_commas(tmp_path, cells, numbers):
    path = tmp_path / "a.csv"
    path.write_text("x;y\n" + "".join(f"{cell};a\n" for cell in cells))
    assert read_table(path).frame["x"].tolist() == numbers


def test_marks_for_missing_numbers_and_the_same_marks_among_words(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,job\n40,?\n?,clerk\n35.5,cook\n")
    found = read_table(path)
    assert found.frame["age"].isna().tolist() == [False, True, False]
    assert found.frame["job"].tolist() == ["?", "clerk", "cook"]
    assert "'age'" in found.notes[0]


def test_commas_that_group_thousands_and_commas_in_words(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('pay,town\n"1,234","Paris, France"\n"12,000.5","x, y"\n')
    found = read_table(path).frame
    assert found["pay"].tolist() == [1234.0, 12000.5]
    assert found["town"].tolist() == ["Paris, France", "x, y"]


def test_numbers_with_a_unit_and_words_that_have_one(tmp_path):
    """Broke once: dollars were left out as ids, and percents were categories."""
    path = tmp_path / "a.csv"
    path.write_text('fee,rate,euro,kind,mixed\n"$1,250",12.5%,3 €,$a,$3\n$8,,1.5 €,$b,4%\n')
    found = read_table(path)
    assert found.frame["fee"].tolist() == [1250.0, 8.0]
    assert found.frame["rate"].tolist()[:1] == [12.5]
    assert found.frame["euro"].tolist() == [3.0, 1.5]
    assert found.frame["kind"].tolist() == ["$a", "$b"]
    assert found.frame["mixed"].tolist() == ["$3", "4%"]
    assert "'fee', 'rate' and 'euro'" in found.notes[0]


@pytest.mark.parametrize("pack", [None, "gzip", "zstd"])
@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl", "json"])
def test_every_format_packed_or_not(tmp_path, people, form, pack):
    frame, path = people(30), tmp_path / "people"
    write = {
        "csv": lambda: frame.to_csv(path, index=False),
        "parquet": lambda: frame.to_parquet(path),
        "feather": lambda: feather.write_feather(frame, path),
        "jsonl": lambda: path.write_text("\n".join(json.dumps(row) for row in frame.to_dict("records"))),
        "json": lambda: path.write_text(json.dumps(frame.to_dict("records"))),
    }
    write[form]()
    if pack is not None:
        data = path.read_bytes()
        with pa.CompressedOutputStream(str(path), pack) as stream:
            stream.write(data)
    same(read_table(path).frame, frame)


def test_excel(tmp_path, people):
    pytest.importorskip("openpyxl")
    people(30).to_excel(tmp_path / "a.xlsx", index=False)
    same(read_table(tmp_path / "a.xlsx").frame, people(30))


def test_excel_without_its_extra_says_what_to_install(tmp_path, monkeypatch):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "<x/>")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match="excel"):
        read_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n\n  \n", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2,3\n", "more cells"),
        (b"a,b\n1,2\n1,2,3\n", "rectangular"),
        (b"\x1f\x8b broken", "damaged gzip"),
        (b"PAR1 broken PAR1", "not a readable Parquet"),
        (b"ARROW1 broken", "not a readable Arrow"),
        (b"PK\x03\x04 broken", "damaged zip"),
        (b'{"a": [1, 2]}\n', "lists or records"),
        (b'{"a": 1\n', "not a readable JSON lines"),
        (b"[" * 200_000 + b"{", "no"),
        (b'[{"a": 1}, 2]', "no list of records"),
        (b"<!DOCTYPE html><table>", "web page"),
        (b"\x80\x04pickle", "run code"),
        (b"a,b\n\xff,2\n", "not UTF-8"),
        (b"a\x00b\n1\n", "neither text"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, content, said):
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as told:
        read_table(path)
    assert "people.csv" in str(told.value)
    assert len(str(told.value)) < 500


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.data.opening.LARGEST_UNPACKED", 10_000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 100_000))
    with pytest.raises(FormatError, match=r"holds more than 0\.00954 MB"):
        read_table(path)


def test_unknown_columns_to_ignore_are_told(trouble):
    with pytest.raises(InputError, match="did you mean 'age'"):
        read_table(trouble("codes"), Reading(ignore=("agee",)))


def test_numbers_beyond_float32_stay_numbers(trouble):
    found = read_table(trouble("huge_numbers")).frame
    assert found["money"].max() == 1e300
    assert np.isfinite(found["debt"]).all()


@pytest.mark.parametrize(
    "text",
    [
        "M,yes,blue,no\nF,no,red,no\nM,yes,red,yes\nF,yes,blue,yes\n",
        "yes,no,39,M\nno,no,40,F\nno,no,41,F\nno,yes,12,F\n",
        "M,no,no\nF,no,yes\nM,yes,no\nM,no,no\n",
    ],
)
def test_a_file_without_a_header_is_told_to_say_so_also_if_it_holds_words(text, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"seems to have no header.*header='no'"):
        read_table(path)
    assert len(read_table(path, Reading(header=False)).frame) == 4


def test_inspect_advises_marks_for_missing_cells_and_takes_them_back(tmp_path, monkeypatch, capsys):
    from likewise.cli.app import main

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": rng.choice(["cook", "clerk", "?"], 60),
            "debt": rng.integers(0, 60, 60),
            "sign": rng.choice([-1, 0, 1], 60),
            "sex": rng.choice(["F", "M", " "], 60),
        }
    )
    frame.loc[:3, "debt"] = -1
    frame.to_parquet("people.parquet")

    def inspect(*words):
        with pytest.raises(SystemExit) as ended:
            main(["inspect", "people.parquet", *words])
        assert ended.value.code == 0
        return {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}

    said = inspect("-o", "columns.toml")
    assert "--read empty='?'" in said["job"]
    assert "--read empty=-1" in said["debt"]
    assert "are blank" in said["sex"]
    assert "empty" not in said["sign"]
    share = f"{(frame['job'] == '?').mean():.1%}"
    assert share in inspect("--no-file", "--read", "empty=?")["job"].split("values")[1]
    text = (
        Path("columns.toml")
        .read_text()
        .replace("\n# empty", "\nempty")
        .replace('empty = ["?", -1] for', "# for")
    )
    Path("columns.toml").write_text(text)
    again = inspect("--no-file", "--columns", "columns.toml")
    assert share in again["job"]
    assert "6.7%" in again["debt"]
    assert "2 to 56" in again["debt"]
    with pytest.raises(SystemExit):
        main(["inspect", "people.parquet", "--no-file", "--read", "empty=nobody"])
    assert "no cell of the table is nobody" in capsys.readouterr().err


def test_names_keep_the_spaces_at_their_end_as_values_do(tmp_path):
    """As pandas reads them; broke once: without quotes they were cut off, and the column was not found by its name."""
    path = tmp_path / "people.csv"
    path.write_text('age, sex ,"job "\n30,F ,cook\n40,M ,"nurse "\n')
    found = read_table(path).frame
    assert (
        list(found.columns)
        == list(pd.read_csv(path, skipinitialspace=True).columns)
        == ["age", "sex ", "job "]
    )
    assert found["sex "].tolist() == ["F ", "M "]
