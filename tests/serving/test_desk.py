"""Uploads in memory and under limits; one audit at a time, watched and cancelled; model errors as sentences."""

from __future__ import annotations

import gzip
import io
import json
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.core.errors import FormatError, InputError
from likewise.data import TabularDomain, find_missing
from likewise.models import as_model
from likewise.models.matching import MissingCellsModel
from likewise.serving import FrameAuditor, Limits
from likewise.serving.queue import Job, RowScores, open_upload, page_words

SCORE = "/api/audits/0/score"


def parquet(frame, **choices):
    stream = io.BytesIO()
    pq.write_table(frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame), stream, **choices)
    return stream.getvalue()


def table(n=60):
    random = np.random.default_rng(1)
    skill, age = random.normal(size=n).round(3), random.integers(18, 70, n)
    frame = pd.DataFrame({"skill": skill, "age": age, "sex": random.choice(["F", "M"], n)})
    return frame.assign(hired=(skill > 0).astype(int))


# ---- rows ------------------------------------------------------------------------------------------------


def test_rows_reach_the_model_as_the_table_had_them():
    people = pd.DataFrame(
        {
            "n": pd.array([1, 5], dtype="int8"),
            "x": [0.1, 0.7],
            "job": pd.Categorical(["b", "a"], categories=["c", "b", "a"]),
            "old": [True, False],
            "code": pd.Categorical([7, 9]),
        }
    )
    seen = []

    def look(frame):
        seen.append(frame)
        return np.full(len(frame), 0.25)

    scores = RowScores(as_model(look, takes_frame=True), TabularDomain.from_frame(people))
    assert scores.score([[1, 0.1, "b", True, 7], [5, 0.7, "a", False, 9]]) == [[0.75, 0.25]] * 2
    pd.testing.assert_frame_equal(seen[0], people)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([0.5, 30.5, "F"], "age: 30.5 is not a whole number."),
        ([0.5, 30, "X"], "sex: X is a category never seen."),
        ([0.5, 300, "F"], "age: 300 is above"),
        ([0.5, "old", "F"], "age: old is not a number."),
        ([None, 30, "F"], "skill: missing."),
        ([0.5, 30, "<script>alert(1)</script>" * 9], "a category never seen."),
        ([10**400, 30, "F"], "too large"),
        ([0.5, 30], "every row must be a list of 3 cells"),
        ([0.5, 30, ["F"]], "a cell must be"),
        ("abc", "every row must be a list of 3 cells"),
    ],
)
def test_an_impossible_row_is_refused_with_a_sentence(client, row, why):
    status, said = client.post(SCORE, {"rows": [[0.5, 30, "F"], row]})
    assert status == 422
    assert why in said["error"]
    assert len(said["error"]) < 200


@pytest.mark.parametrize("rows", [None, [], {}, [[0.5, 30, "F"]] * 1001])
def test_as_many_rows_as_are_allowed(client, rows):
    assert client.post(SCORE, {"rows": rows})[0] == 422


def test_gaps_go_to_a_model_that_takes_them():
    people = pd.DataFrame({"age": [20.0, np.nan, 40.0], "sex": ["F", "M", None]})
    gaps = find_missing(people)
    marked = gaps.marked(people)
    unknown = as_model(lambda f: 0.5 * f["age"].isna() + 0.25 * f["sex"].isna(), takes_frame=True)
    scores = RowScores(MissingCellsModel(unknown, gaps), TabularDomain.from_frame(marked))
    names = list(scores.domain.encoding_.names)
    assert names == ["age", "sex", "age is missing", "sex is missing"]
    rows = [[20, "F", None, None], [None, "M", None, None], [30, None, None, None], [None, None, None, None]]
    assert [row[1] for row in scores.score(rows)] == [0.0, 0.5, 0.25, 0.75]


def test_what_the_model_raises_becomes_a_sentence(make_client, audited):
    from dataclasses import replace

    def broken(frame):
        if len(frame) > 1:
            raise SystemExit(3)
        raise RuntimeError("the licence of the scorer has ended")

    matched = replace(audited.case.matched, model=as_model(broken, takes_frame=True))
    client = make_client(
        audited=replace(
            audited, case=replace(audited.case, found=replace(audited.case.found, matched=matched))
        )
    )
    status, said = client.post(SCORE, {"rows": [[0.5, 30, "F"]]})
    assert status == 422
    assert "the licence of the scorer has ended" in said["error"]
    assert "Traceback" not in said["error"]
    status, said = client.post(SCORE, {"rows": [[0.5, 30, "F"]] * 2})
    assert (status, said["error"]) == (422, "The model raised SystemExit.")


# ---- tables ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_a_table_is_read_and_its_columns_listed(kind):
    csv = table().to_csv(index=False).encode()
    data = {"csv": csv, "csv.gz": gzip.compress(csv), "parquet": parquet(table())}[kind]
    found = open_upload(1, f"people.{kind}", data, Limits()).document()
    assert found["people"] == 60
    assert [column["name"] for column in found["columns"]] == ["skill", "age", "sex", "hired"]
    assert found["columns"][2]["values"] == ["F", "M"]
    assert found["columns"][3]["values"] == ["0", "1"]
    assert found["columns"][0]["values"] is None


REPEATED = pa.table({"a": pa.DictionaryArray.from_arrays(np.zeros(9_000, dtype=np.int32), ["x" * 100_000])})
BOMBS = {
    "many rows": parquet(pa.table({"a": pa.array(np.zeros(200_000, dtype=np.int8))})),
    "long words, stored once": parquet(REPEATED),
    "many columns": b",".join(b"c%d" % i for i in range(3_000)) + b"\n" + b"1," * 2_999 + b"1\n",
    "one endless line": b"," * 3_000_000,
    "many lines": b"a,b\n" + b"1,2\n" * 150_000,
    "packed": gzip.compress(b"a,b\n" + b"1,2\n" * 1_200_000, 1),
    "packed twice": gzip.compress(gzip.compress(b"a\n1\n")),
    "an Excel workbook": b"PK\x03\x04" + b"0" * 100,
    "JSON": b'[{"a": 1}]',
    "a pickle": b"\x80\x04K\x01.",
    "half a Parquet file": parquet(table())[:400],
    "nothing": b"",
    "one word": b"hello\nworld",
    "one person": b"a,b\n1,2\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_too_large_or_no_table_is_refused(name):
    limits = Limits(unpacked_bytes=4 * 2**20)
    with pytest.raises((InputError, FormatError)) as caught:
        open_upload(1, "people", BOMBS[name], limits)
    assert str(caught.value).startswith("people")


def test_the_name_of_a_file_is_only_shown():
    csv = table().to_csv(index=False).encode()
    assert open_upload(1, "../../etc/\x00passwd\n" + "x" * 900, csv, Limits()).file.name.startswith(
        "../../etc/ passwd"
    )
    assert len(open_upload(1, "y" * 900, csv, Limits()).file.name) == 200


# ---- audits ----------------------------------------------------------------------------------------------


def upload(client, name="people.csv", data=None):
    body = table().to_csv(index=False).encode() if data is None else data
    status, said = client.post("/api/tables", body, content_type="application/octet-stream", x_file_name=name)
    assert status == 200, said
    return said["table"]


def wait(client, states, seconds=60):
    until = time.monotonic() + seconds
    while (job := client.app.jobs.job.document())["state"] not in states:
        assert time.monotonic() < until, job
        time.sleep(0.02)
    return job


def test_an_uploaded_table_becomes_a_page(client):
    number = upload(client, "my%20people.csv")
    question = {"table": number, "target": "hired", "sensitive": ["sex"]}
    assert client.post("/api/jobs", question)[0] == 200
    job = wait(client, ("done", "failed"))
    assert job["error"] is None
    assert job["name"] == "my people.csv"
    status, headers, page = client.ask("GET", job["page"])
    assert status == 200
    assert b"Audit of black box on my people.csv" in page
    assert "connect-src 'self'" in headers["content-security-policy"]
    status, said = client.post(f"/api/audits/{number}/score", {"rows": [[0.25, 30, "M"]]})
    assert status == 200
    assert said["probabilities"][0][1] == pytest.approx(1 / (1 + np.exp(-0.9)))
    assert b"my people.csv" in client.ask("GET", "/tables")[2]


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ({"target": "nothing"}, "no column 'nothing'"),
        ({"sensitive": ["hired"]}, "cannot be sensitive too"),
        ({"sensitive": []}, "at least one sensitive column"),
        ({"sensitive": "sex"}, "Choose the sensitive columns"),
        ({"target": 1}, "must be a column of the table, or nothing"),
        ({"limit": 1.5}, "between 0 and 100%"),
        ({"limit": True}, "between 0 and 100%"),
        ({"table": 999}, "not here any more"),
        ({"favourable": 1}, "must be one of the target's"),
    ],
)
def test_a_question_that_does_not_fit_is_refused(client, question, why):
    number = upload(client)
    asked = {"table": number, "target": "hired", "sensitive": ["sex"]} | question
    status, said = client.post("/api/jobs", asked)
    assert status == 422
    assert why in said["error"]


def test_an_audit_that_fails_says_why(client):
    data = table().rename(columns={"skill": "talent"}).to_csv(index=False).encode()
    number = upload(client, data=data)
    client.post("/api/jobs", {"table": number, "target": "hired", "sensitive": ["sex"]})
    job = wait(client, ("done", "failed"))
    assert job["state"] == "failed"
    assert "skill" in job["error"]
    assert "Traceback" not in job["error"]
    assert job["page"] is None


def test_advice_about_an_uploaded_table_is_in_the_words_of_the_page(client):
    number = upload(client, data=table().assign(sex="").to_csv(index=False).encode())
    client.post("/api/jobs", {"table": number, "target": "hired", "sensitive": ["sex"]})
    said = wait(client, ("done", "failed"))["error"]
    assert "Name another column (sensitive column)" in said
    assert "sensitive_features" not in said


@pytest.mark.parametrize("favourable", ["0", "1"])
def test_the_favourable_value_and_the_sample_that_are_asked_for_are_used(client, favourable):
    number = upload(client)
    asked = {"table": number, "target": "hired", "sensitive": ["sex"], "favourable": favourable, "sample": 40}
    assert client.post("/api/jobs", asked)[0] == 200
    job = wait(client, ("done", "failed"))
    assert job["error"] is None
    page = client.ask("GET", job["page"])[2].decode()
    document = json.loads(page.split('id="data">')[1].split("</script>")[0])
    scope = document["summary"]["scope"]
    assert str(scope["favourable"]) == favourable
    assert (scope["people"], scope["supplied"], scope["sampled"]) == (40, 60, True)
    assert "random sample of 40 of 60 rows" in page


@pytest.mark.parametrize(("limit", "words"), [(None, "No limit was set"), (0.0, "Above the limit")])
def test_a_table_without_labels_is_audited_against_the_limit_that_is_set(client, limit, words):
    data = table().drop(columns="hired").to_csv(index=False).encode()
    asked = {"table": upload(client, data=data), "target": None, "sensitive": ["sex"], "limit": limit}
    assert client.post("/api/jobs", asked)[0] == 200
    job = wait(client, ("done", "failed"))
    assert job["error"] is None
    page = client.ask("GET", job["page"])[2].decode().split('id="annex"')[0]
    assert words in page
    assert "Depends on sex" in page
    # Readers of this page have no command line.
    assert "--limit" not in page


def test_everybody_is_audited_unless_a_sample_is_asked_for(client):
    number = upload(client, data=table(700).to_csv(index=False).encode())
    client.post("/api/jobs", {"table": number, "target": "hired", "sensitive": ["sex"]})
    page = client.ask("GET", wait(client, ("done",))["page"])[2].decode()
    assert "700 of 700 rows" in page


def test_a_table_that_the_model_cannot_read_is_refused_when_it_comes(make_client):
    from sklearn.linear_model import LogisticRegression

    frame = table()
    fitted = LogisticRegression().fit(frame[["skill", "age"]], frame["hired"])
    client = make_client(auditor=FrameAuditor(fitted, "fitted"))
    data = frame.rename(columns={"skill": "talent"}).to_csv(index=False).encode()
    status, said = client.post("/api/tables", data, content_type="text/csv", x_file_name="people.csv")
    assert status == 422
    assert said["error"].startswith(
        "people.csv lacks skill, which the model reads. The table has: talent, age"
    )


def test_advice_on_a_page_names_no_option_of_the_command_line():
    said = "The sensitive column 'a' has one value. Name another --sensitive, or pass --read missing=impute. Try again."
    assert page_words(said) == "The sensitive column 'a' has one value. Try again."
    assert page_words("Name another --target.") == "Name another column that the model predicts."
    assert "--" not in page_words("It failed: pass --read missing=drop.")


def test_the_next_table_forgets_what_became_of_the_last(client):
    data = table().rename(columns={"skill": "talent"}).to_csv(index=False).encode()
    number = upload(client, data=data)
    client.post("/api/jobs", {"table": number, "target": "hired", "sensitive": ["sex"]})
    assert wait(client, ("done", "failed"))["state"] == "failed"
    upload(client)
    assert json.loads(client.ask("GET", "/api/jobs/current")[2]) == {"state": "none"}


class Patient:
    """An auditor that searches for as long as nobody cancels it."""

    def __init__(self, auditor):
        self.auditor, self.asked = auditor, 0

    def __call__(self, file, question, on_progress):
        while True:
            on_progress("Searching", min(self.asked / 400, 0.9))
            self.asked += 1
            time.sleep(0.005)


def test_one_audit_at_a_time_and_it_can_be_cancelled(make_client, auditor):
    client = make_client(auditor=Patient(auditor))
    number = upload(client)
    question = {"table": number, "target": "hired", "sensitive": ["sex"]}
    assert client.post("/api/jobs", question)[0] == 200
    until = time.monotonic() + 30
    while client.app.jobs.job.document()["left"] is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    status, said = client.post("/api/jobs", question)
    assert (status, said["error"]) == (409, "An audit is running. Wait for its end, or cancel it.")
    assert client.post("/api/tables", b"a\n1\n", content_type="text/csv")[0] == 409
    assert client.post("/api/jobs/cancel", {})[1]["state"] in ("cancelling", "cancelled")
    job = wait(client, ("cancelled",))
    assert job["page"] is None
    assert number not in client.app.jobs.results


def test_a_cancelled_search_of_the_library_ends(make_client):
    asked = []

    def slow(frame):
        asked.append(len(frame))
        time.sleep(0.002)
        return 1 / (1 + np.exp(-frame["skill"].to_numpy(dtype=float)))

    client = make_client(auditor=FrameAuditor(slow, "slow", eps=0.1))
    number = upload(client)
    client.post("/api/jobs", {"table": number, "target": "hired", "sensitive": ["sex"]})
    until = time.monotonic() + 60
    while client.app.jobs.job.stage != "domain":
        assert time.monotonic() < until
        assert not client.app.jobs.job.over
        time.sleep(0.001)
    client.post("/api/jobs/cancel", {})
    assert wait(client, ("cancelled", "done", "failed"))["state"] == "cancelled"


def test_time_left_follows_from_what_is_done():
    now = [0.0]
    job = Job(1, "people.csv", clock=lambda: now[0])
    job.on_progress("searching", None)
    assert job.document()["left"] is None
    now[0] = 3.0
    job.on_progress("searching", 0.25)
    assert job.seconds_left == pytest.approx(9.0)
    now[0] = 5.0
    job.on_progress("proving", 0.0)
    assert job.seconds_left is None
    job.cancel()
    with pytest.raises(KeyboardInterrupt):
        job.on_progress("proving", 0.5)


def test_old_results_make_room(make_client, auditor, audited):
    client = make_client(auditor=lambda file, question, on_progress: audited, limits=Limits(results=2))
    for _ in range(3):
        number = upload(client)
        client.post("/api/jobs", {"table": number, "target": "hired", "sensitive": ["sex"]})
        wait(client, ("done",))
    assert list(client.app.jobs.results) == [0, number]
    assert client.ask("GET", "/audits/1")[0] == 404


def test_without_uploads_there_is_no_desk(make_client):
    client = make_client(auditor=None)
    assert client.ask("GET", "/tables")[0] == 404
    assert client.post("/api/tables", b"a\n1\n", content_type="text/csv")[0] == 422
    assert b'href="/tables"' not in client.ask("GET", "/")[2]
