"""`audit-texts`, of texts and of recorded scores, from the outside: tables, pages, JSON, exit codes."""

import json
import stat

import numpy as np
import pandas as pd
import pytest

from likewise.datasets import load_hiring_scores
from likewise.report import document_of, print_document
from likewise.text import audit_scores

HIRING = ["--unit", "job", "--by", "model", "--set", "variant=variant", "--set", "placebo=placebo_*"]
JUDGE = """
CALLS = "calls.txt"
def score(text):
    with open(CALLS, "a") as stream:
        stream.write("x")
    return len(text) % 7 / 100 - text.startswith("Lakisha")
def word(text):
    return "good" if len(text) % 2 else "bad"
"""


@pytest.fixture(scope="module")
def hiring():
    frame = load_hiring_scores()
    return frame, audit_scores(frame, unit="job", by="model", decision="recommend", margin=0.5, n_flips=999)


def test_the_hiring_data_have_eleven_models_and_eight_families(hiring):
    frame = hiring[1].frame
    assert frame.groupby("part")["family"].nunique().to_dict() == dict.fromkeys(sorted(set(frame["part"])), 8)
    assert frame["part"].nunique() == 11
    assert frame.groupby("part")["floor"].first().isna().sum() == 4
    assert frame[["change", "shift", "low", "high", "size", "p_value", "adjusted"]].notna().all(axis=None)


def test_raw_changes_are_those_of_the_study(hiring):
    # Its own figures: a blank line moves the score by .262, a demographic edit by .362, on the models with placebos.
    table, result = hiring
    with_floor = [part for part in result if part.placebos]
    sizes = [effect.size for part in with_floor for effect in part.edits]
    assert np.mean(sizes) == pytest.approx(0.362, abs=0.0005)
    kept = table[table["model"].isin([part.name for part in with_floor])]
    kept = kept[kept["variant"].isin(["baseline", "placebo_noop-whitespace"])]
    blank = audit_scores(kept, unit="job", by="model", placebo=[], n_flips=19)
    assert len(blank) == 7
    assert np.mean([part.edits[0].size for part in blank]) == pytest.approx(0.262, abs=0.0005)


def test_audit_scores_writes_what_it_found(run, tmp_path):
    assert run("datasets", "hiring", "-o", "scores.csv").code == 0
    done = run("audit-texts", "scores.csv", *HIRING, "-o", "page.html", "-o", "scores.json")
    # Eleven models × eight families are tested together; one model alone is another question.
    assert done.code == 0
    assert "No placebos in claude-fable-5" in done.out
    scores = pd.read_csv(tmp_path / "scores.csv")
    scores[scores["model"] == "qwen-3-next-80b"].to_csv(tmp_path / "one.csv", index=False)
    alone = run("audit-texts", "one.csv", *HIRING)
    assert alone.code == 1
    assert alone.err.startswith("The score depends on qwen-3-next-80b careerGap, ")
    document = json.loads((tmp_path / "scores.json").read_text())
    assert len(document["parts"]) == 11
    assert document["shifted"] == sum(
        effect["verdict"] == "shifted" for part in document["parts"] for effect in part["families"]
    )
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert page.count('<h2 id="part-') == 11
    assert "likewise audit-texts scores.csv" in page
    assert document["provenance"]["tables"][0]["sha256"] in page
    again = json.loads(run("audit-texts", "scores.csv", *HIRING, "-o", "-").out)
    assert again | {"provenance": None} == document | {"provenance": None}
    refused = run("audit-texts", "scores.csv", "--unit", "job", "--set", "baseline=none")
    assert (refused.code, "Traceback" in refused.err) == (2, False)
    assert "'baseline' must be one of" in refused.err


def test_equal_scores_pass_and_markup_in_names_is_text(run, tmp_path):
    rows = [(text, variant, text) for text in range(9) for variant in ("baseline", "<b>x_y", "placebo_1")]
    pd.DataFrame(rows, columns=["text", "variant", "score"]).to_csv(tmp_path / "equal.csv", index=False)
    done = run("audit-texts", "equal.csv", "--unit", "text", "--margin", "0.1", "-o", "page.html")
    assert done.code == 0
    assert "equivalent" in done.out
    assert "<b>x" not in (tmp_path / "page.html").read_text()


def test_a_wide_terminal_shows_every_column(hiring, capsys):
    from rich.console import Console

    print_document(document_of(hiring[1]), Console(width=150))
    assert "above placebos" in capsys.readouterr().out


@pytest.fixture
def letters(tmp_path):
    texts = [f"Emily has {n} years of practice and {n + 3} of study." for n in range(10)]
    pd.DataFrame({"letter": texts, "job": [n // 2 for n in range(10)]}).to_csv(
        tmp_path / "letters.csv", index=False
    )
    (tmp_path / "judge.py").write_text(JUDGE)
    return ["letters.csv", "--text", "letter", "--scorer", "judge.py:score"]


def test_audit_texts_counts_first_then_pays_once_then_replays(run, letters, tmp_path):
    term = ["--term", "name_lakisha:Emily=Lakisha", "--cache", "replies.db"]
    dry = run("audit-texts", *letters, *term, "--dry-run")
    assert dry.code == 0
    # Ten texts with one edit and the three placebos that fit: no greeting, no list.
    assert "50 calls for 10 texts" in dry.out
    assert "20 of 60 edits change nothing" in dry.out
    assert not (tmp_path / "replies.db").exists()
    capped = run("audit-texts", *letters, *term, "--max-calls", "20")
    assert (capped.code, "cap of 20 calls" in capped.err) == (3, True)
    done = run("audit-texts", *letters, *term, "-o", "first.json", "-o", "page.html")
    assert done.code == 1
    assert "30 calls, 20 replies from the cache" in done.out
    assert len((tmp_path / "calls.txt").read_text()) == 50
    assert stat.S_IMODE((tmp_path / "replies.db").stat().st_mode) == 0o600
    replayed = run("audit-texts", *letters, *term, "--offline", "-o", "second.json")
    assert replayed.code == 1
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("first", "second"))
    assert first | {"provenance": None} == second | {"provenance": None}
    assert len((tmp_path / "calls.txt").read_text()) == 50


def test_audit_texts_by_default_swaps_names_and_reads_labels(run, letters):
    letters[-1] = "judge.py:word"
    done = run(
        "audit-texts", *letters, "--set", "favourable=good", "--names", "black-female", "--cluster", "job"
    )
    assert done.code in (0, 1)
    assert "name" in done.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--scorer", "judge.py"], "FILE.py:NAME"),
        (["--scorer", "none.py:score"], "no file"),
        (["--scorer", "judge.py:nothing"], "defines no 'nothing'"),
        (["--text", "nothing"], "nothing"),
        (["--names", "green"], "race, a gender or both"),
        (["--term", "church=mosque"], "FAMILY_VALUE:A=B"),
        (["--offline"], "not in the cache"),
    ],
)
def test_audit_texts_refuses_bad_input_in_one_message(run, letters, change, message):
    done = run("audit-texts", *letters, *change)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_doubtful_texts_are_counted_and_listed(run, tmp_path):
    (tmp_path / "letters.csv").write_text("letter\nEmily wrote it.\nI worked at Bradley.\n")
    said = run(
        "audit-texts", "letters.csv", "--text", "letter", "--scorer", "judge.py:score", "--dry-run"
    ).out
    assert "1 texts were left out as doubtful:" in said
    assert "Bradley may be a person or not" in said
