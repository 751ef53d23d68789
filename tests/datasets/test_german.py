from __future__ import annotations

import csv
import gzip
import re

import numpy as np
import pytest

from likewise.datasets import load_german
from likewise.datasets.bundled import open_bundled

NUMBERS = ["duration", "credit_amount", "installment_rate", "residence_since", "age"]
NUMBERS += ["existing_credits", "people_liable"]

with open_bundled("german_codes.csv") as stream:
    WORDS = {}
    for line in csv.DictReader(stream.read().decode().splitlines()):
        WORDS.setdefault(line["column"], {})[line["code"]] = line["word"]
SEX, PERSONAL_STATUS = WORDS.pop("sex"), WORDS.pop("personal_status")


@pytest.fixture(scope="module")
def data():
    return load_german()


@pytest.fixture(scope="module")
def raw():
    with open_bundled("german.csv.gz") as stream, gzip.open(stream, "rt") as text:
        return list(csv.DictReader(text))


def test_every_code_of_the_file_has_its_word(data, raw):
    for place, (row, record) in enumerate(zip(data.frame.to_dict("records"), raw, strict=True)):
        status = record.pop("personal_status_sex")
        assert row.pop("sex") == SEX[status]
        assert row.pop("personal_status") == PERSONAL_STATUS[status]
        assert (record.pop("credit_risk") == "1") == bool(data.y[place])
        for column, value in row.items():
            assert value == (WORDS[column][record[column]] if column in WORDS else int(record[column]))


def test_shape_labels_and_kinds(data):
    assert data.frame.shape == (1000, 21)
    assert data.y.sum() == 700
    assert data.target_names == ("bad", "good")
    assert [c for c in data.frame.columns if data.frame[c].dtype == np.int64] == NUMBERS
    assert not data.frame.isna().any().any()
    assert data.sensitive_features == ("sex", "age")
    assert (len(data.train_index), len(data.test_index)) == (800, 200)
    assert data.X.columns[:7].tolist() == NUMBERS


def test_words_of_a_column_are_distinct():
    assert all(len(set(words.values())) == len(words) for words in WORDS.values())


def test_personal_status_gives_sex_away_as_the_docstring_says(data):
    women = data.frame.loc[data.frame["sex"] == "female", "personal_status"]
    men = data.frame.loc[data.frame["sex"] == "male", "personal_status"]
    assert set(women) == {"divorced or separated or married"}
    assert not set(women) & set(men)


def test_feature_names_are_ones_that_tree_libraries_accept(data):
    # XGBoost refuses [ ] <, LightGBM refuses , : " [ ] { }.
    assert not [name for name in data.X.columns if re.search(r'[\[\]<,:"{}]', name)]


def test_decoding_gives_the_people_back(data):
    assert data.domain.decode(data.X).equals(data.frame)


def test_a_caller_cannot_corrupt_what_the_next_one_gets(data):
    spoiled = load_german()
    spoiled.frame["age"] = 0
    assert load_german().frame.equals(data.frame)
