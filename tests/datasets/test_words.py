from __future__ import annotations

import gzip

import pytest

from likewise.core.errors import FormatError, InputError
from likewise.datasets.words import evaluation_names, opinion_words, read_names, sentence_tokens


def test_opinion_words_are_unique_and_in_one_list_only():
    positive, negative = opinion_words()
    assert len(set(positive)) == len(positive) == 2006 - 3
    assert len(set(negative)) == len(negative) == 4783 - 3
    assert not set(positive) & set(negative)
    assert "envious" not in positive + negative


def test_evaluation_names_are_fifty_and_fifty_with_half_of_each_gender():
    names = evaluation_names()
    assert names["race"].value_counts().to_dict() == {"white": 50, "black": 50}
    assert names.groupby(["race", "gender"]).size().tolist() == [25, 25, 25, 25]
    by_name = names.set_index("name")
    assert by_name.loc["adam"].tolist() == ["white", "male"]
    assert by_name.loc["wendy"].tolist() == ["white", "female"]
    assert by_name.loc["alonzo"].tolist() == ["black", "male"]
    assert by_name.loc["aiesha"].tolist() == ["black", "female"]


def test_census_names_keep_the_names_that_look_like_missing_values():
    names = read_names("census", owner="f")
    assert len(names) == len(set(names)) == 5163
    assert {"nan", "na", "aaron"} <= set(names)


@pytest.mark.parametrize("column", ["Child's First Name", "NAME", " first name "])
@pytest.mark.parametrize("gzipped", [False, True])
def test_a_csv_with_a_name_column(tmp_path, column, gzipped):
    text = f"Year,{column},Count\n2011,SOPHIA,1\n2012,Sophia,2\n2012,Nan,3\n2012, ,3\n".encode()
    path = tmp_path / "names.any"
    path.write_bytes(gzip.compress(text) if gzipped else text)
    assert read_names(path, owner="f") == ("sophia", "nan")


def test_a_csv_with_one_column_needs_no_known_heading(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("people\nAnna\nBob\n")
    assert read_names(str(path), owner="f") == ("anna", "bob")


def test_bad_name_lists_say_what_to_do(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match=r"has no column called .*Its columns: a, b\. Rename"):
        read_names(path, owner="load_sentiment")
    with pytest.raises(InputError, match=r"there is no file .*nowhere\.csv"):
        read_names(tmp_path / "nowhere.csv", owner="load_sentiment")
    with pytest.raises(InputError, match='is "census", the path'):
        read_names("cencus", owner="load_sentiment")
    with pytest.raises(InputError, match="list of strings"):
        read_names([1, 2], owner="load_sentiment")
    with pytest.raises(InputError, match="'names' must be"):
        read_names(5, owner="load_sentiment")
    with pytest.raises(InputError, match="no names in it"):
        read_names([" "], owner="load_sentiment")
    path.write_bytes(b"\xff\xfe\x00\x80" * 50)
    with pytest.raises(FormatError, match="not a CSV file"):
        read_names(path, owner="load_sentiment")
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="is empty"):
        read_names(path, owner="load_sentiment")


def test_sentence_words_prefer_their_spelling_except_at_the_start():
    assert sentence_tokens("Let's go get Mexican food.") == [
        ("let", "let"),
        ("go", "go"),
        ("get", "get"),
        ("Mexican", "mexican"),
        ("food", "food"),
    ]
