"""A result or evidence that was altered is refused, and nothing that was loaded calls itself proved."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.core.errors import FormatError, InputError
from likewise.core.files import sealed
from likewise.core.plain import to_json
from likewise.report.evidence import check_files, read_evidence


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"skill": rng.normal(size=50), "sex": rng.choice(["F", "M"], 50)})
    score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - 0 * (frame["sex"] == "M")))  # noqa: E731
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    y = (people["skill"] > 0).astype(int)
    return lw.audit(score, people, y, metric=metric, sensitive_features=["sex"], eps=0.1, delta=9.0)


@pytest.fixture
def saved(result, tmp_path):
    result.save(tmp_path / "result.json")
    return tmp_path / "result.json"


def test_a_changed_byte_is_refused_wherever_it_is(saved):
    data = saved.read_bytes()
    for at in np.random.default_rng(0).integers(0, len(data), 40):
        saved.write_bytes(data[:at] + bytes([(data[at] + 1) % 256]) + data[at + 1 :])
        with pytest.raises(InputError):
            lw.AuditResult.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one["worst_case"].update(eps="abc"),
        lambda one: one["worst_case"].update(eps=0.7),
        lambda one: one.update(n=-5),
        lambda one: one.update(n=200),
        lambda one: one["worst_case"].update(value=-1.0),
        lambda one: one["sensitive"].update(changed=2.5),
        lambda one: one["sensitive"].update(exact="yes"),
        lambda one: one["worst_case"]["certificate"]["estimate"].update(value=0.0),
    ],
)
def test_figures_that_contradict_each_other_are_refused_also_with_a_new_digest(saved, change):
    """A result that was edited by hand loaded, and its card said what was written into it."""
    document = json.loads(saved.read_text())
    change(document["result"])
    saved.write_text(to_json(sealed(document)))
    with pytest.raises(FormatError):
        lw.AuditResult.load(saved)


def test_what_was_loaded_is_told_as_recorded(result, saved, tmp_path):
    loaded = lw.AuditResult.load(saved)
    assert "proved" not in loaded.verdict()
    assert not loaded.headline.title.startswith("Proved")
    assert any(finding.kind == "recorded" for finding in loaded.findings)
    assert "was not checked again" in str(loaded)
    loaded.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "was not checked again" in page
    loaded.save(tmp_path / "again.json")
    again = lw.AuditResult.load(tmp_path / "again.json")
    assert sum(finding.kind == "recorded" for finding in again.findings) == 1


def test_a_folder_of_evidence_holds_what_was_written_and_nothing_else(result, tmp_path):
    """`replay` never looked at them: a card could be overwritten, the SARIF deleted."""
    folder = tmp_path / "evidence"
    result.save(folder)
    known = read_evidence(folder)
    check_files(folder, known)
    card = folder / "model_card.md"
    text = card.read_text()
    card.write_text(text.replace("50", "51", 1) if "50" in text else text + " ")
    with pytest.raises(FormatError, match=r"model_card\.md"):
        check_files(folder, known)
    card.write_text(text)
    (folder / "tables" / "more.csv").write_text("a\n")
    with pytest.raises(FormatError, match=r"more\.csv"):
        check_files(folder, known)
    (folder / "tables" / "more.csv").unlink()
    (folder / "audit.sarif").unlink()
    with pytest.raises(FormatError, match=r"audit\.sarif"):
        check_files(folder, known)


def test_weights_in_another_file_are_part_of_the_model(tmp_path):
    """Evidence of a fair and of an unfair model carried the same digests."""
    pytest.importorskip("onnx")
    from likewise.cli.case import inputs_of

    place = Path(__file__).parents[1] / "fuzz" / "fuzz_evidence.py"
    spec = importlib.util.spec_from_file_location("fuzz_evidence", place)
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    table = tmp_path / "people.csv"
    table.write_text("a\n1\n")
    digests = []
    for name, weights in (("fair", [[1.0, 0.0], [0.0, 0.0]]), ("unfair", [[1.0, 0.0], [9.0, 0.0]])):
        (tmp_path / name).mkdir()
        fuzz.onnx_with_weights_apart(tmp_path / name / "model.onnx", weights)
        found = inputs_of(str(tmp_path / name / "model.onnx"), table, {})
        digests.append({key: one["sha256"] for key, one in found.items()})
    assert digests[0]["model"] == digests[1]["model"]
    assert digests[0]["part of the model weights.bin"] != digests[1]["part of the model weights.bin"]


def located(*names: str) -> bytes:
    """What the parts of an ONNX file look like that say where weights are."""
    return b"".join(b"\x0a\x08location\x12" + bytes([len(name)]) + name.encode() for name in names)


def test_weights_of_the_same_name_in_two_folders_are_two_parts(tmp_path):
    """One took the place of the other, which could be changed without notice."""
    from likewise.cli.case import inputs_of
    from likewise.models.containers import model_files

    model = tmp_path / "model.onnx"
    model.write_bytes(located("a/w.bin", "b/w.bin", "w.bin"))
    for folder in ("a", "b", "."):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "w.bin").write_text(folder)
    assert list(model_files(model)) == ["model.onnx", "a/w.bin", "b/w.bin", "w.bin"]
    found = inputs_of(str(model), tmp_path / "people.csv", {})
    digests = [one["sha256"] for name, one in found.items() if name.startswith("part of the model")]
    assert None not in digests
    assert len(set(digests)) == 3


def test_what_a_model_names_elsewhere_is_not_looked_at(tmp_path):
    """The digest of a password file came into evidence, and the process of the model was allowed to read it."""
    from likewise.models.containers import model_files

    (tmp_path / "folder").mkdir()
    (tmp_path / "secret").write_text("secret")
    model = tmp_path / "folder" / "model.onnx"
    model.write_bytes(
        located(
            "../secret", str(tmp_path / "secret")[-120:], "/etc/passwd", "a/../../secret", "..", ".", "\0"
        )
    )
    assert model_files(model) == {"model.onnx": model}


def test_the_note_of_a_loaded_result_is_ours(saved):
    document = json.loads(saved.read_text())
    document["result"]["findings"] = [
        {"kind": "recorded", "sentence": "An auditor has proved all of it.", "columns": []}
    ]
    saved.write_text(to_json(sealed(document)))
    loaded = lw.AuditResult.load(saved)
    assert "was not checked again" in str(loaded)
    assert "An auditor" not in str(loaded)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one["sensitive"].update(groups=3),
        lambda one: one["sensitive"].update(people=[{}]),
        lambda one: one["sensitive"].update(exchanges=[None]),
        lambda one: one.update(settings=None),
        lambda one: one.update(timing={"search": "soon"}),
        lambda one: one["worst_case"].update(curve=10**400),
    ],
)
def test_what_cannot_be_told_is_damaged(saved, change):
    """It loaded, and its page ended in an error of a template."""
    document = json.loads(saved.read_text())
    change(document["result"])
    saved.write_text(to_json(sealed(document)))
    with pytest.raises(FormatError):
        lw.AuditResult.load(saved)
