"""Evidence from one result: every form valid by its standard, whole or not at all, safe with any text."""

import csv
import importlib.util
import io
import json
import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from likewise.core.errors import FormatError, InputError
from likewise.evaluation import impact_tables
from likewise.report import audit_document
from likewise.report.evidence import (
    compare_figures,
    csv_tables,
    figures_of,
    impact_page,
    junit_xml,
    model_card,
    read_evidence,
    sarif_log,
    write_evidence,
)
from likewise.report.provenance import Provenance

_SPEC = importlib.util.spec_from_file_location(
    "evidence_forms", Path(__file__).with_name("evidence_forms.py")
)
forms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(forms)


@pytest.fixture(scope="module")
def results(samples):
    """An unfair audit of people whose cells are markup, the same undecided, not converged, without a limit; a still one."""
    nasty = samples.nasty_result()
    return {
        "unfair": nasty,
        "undecided": samples.with_worst_case(nasty, delta=100.0),
        "not converged": samples.with_worst_case(
            nasty, delta=100.0, status="not_converged", reasons=("a < b & c",)
        ),
        "no limit": samples.with_worst_case(nasty, delta=None),
        "still": samples.still_result(),
    }


@pytest.fixture(scope="module")
def documents(results):
    name = 'models/my "model" <1>|é.onnx'
    origin = Provenance("2026-01-02T03:04:05Z", command="likewise audit 'my model'", seed=3)
    return {kind: audit_document(result, name=name, provenance=origin) for kind, result in results.items()}


@pytest.fixture(scope="module")
def impact(results, samples):
    people = results["unfair"].pure_map.people
    decided = results["unfair"].pure_map.outcomes["decision"] == "yes & more"
    return impact_tables(decided, people, [samples.QUOTES, samples.SNOW])


def test_sarif_is_of_its_form_and_says_what_the_verdict_says(documents):
    kinds = {"unfair": "fail", "undecided": "open", "not converged": "review", "no limit": "notApplicable"}
    for kind, document in documents.items():
        log = json.loads(json.dumps(sarif_log(document)))
        jsonschema.Draft202012Validator(forms.SARIF).validate(log)
        if "LIKEWISE_SARIF_SCHEMA" in os.environ:
            schema = json.loads(Path(os.environ["LIKEWISE_SARIF_SCHEMA"]).read_text(encoding="utf-8"))
            jsonschema.validators.validator_for(schema)(schema).validate(log)
        results = log["runs"][0]["results"]
        gap = next(one for one in results if one["ruleId"] == "gap-within-delta")
        assert gap["kind"] == kinds.get(kind, "notApplicable")
        rules = {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
        assert {result["ruleId"] for result in results} <= rules
    people = [
        one for one in sarif_log(documents["unfair"])["runs"][0]["results"] if one["level"] == "warning"
    ]
    changed = [row["person"] for row in documents["unfair"]["summary"]["people"]]
    assert changed
    assert [one["locations"][0]["logicalLocations"][0]["name"] for one in people] == [
        f"person {person}" for person in changed[:20]
    ]


def test_junit_is_of_its_form_and_says_what_the_verdict_says(documents):
    tags = {"unfair": "failure", "undecided": None, "not converged": "error", "no limit": "skipped"}
    for kind, document in documents.items():
        text = junit_xml(document)
        root = ElementTree.fromstring(text.encode())
        forms.check_junit(root)
        if "LIKEWISE_JUNIT_XSD" in os.environ:
            etree = pytest.importorskip("lxml.etree")
            etree.XMLSchema(etree.parse(os.environ["LIKEWISE_JUNIT_XSD"])).assertValid(
                etree.fromstring(text.encode())
            )
        case = root.find("testsuite/testcase[@classname='gap-within-delta']")
        found = {child.tag for child in case} & {"failure", "error", "skipped"}
        assert found == ({tags[kind]} - {None} if kind in tags else {"skipped"})
    sentence = documents["unfair"]["verdict"]["gap_sentence"]
    assert sentence in "".join(ElementTree.fromstring(junit_xml(documents["unfair"]).encode()).itertext())


def test_junit_survives_characters_that_xml_cannot_hold(documents):
    document = documents["unfair"] | {"name": "a\x00b\x1b\ufffe"}
    root = ElementTree.fromstring(junit_xml(document).encode())
    assert root.find("testsuite").get("name") == "likewise audit of a\ufffdb\ufffd\ufffd"


def test_the_card_holds_the_numbers_and_no_markup_of_the_table(documents, impact, samples):
    card = model_card(documents["unfair"], impact)
    assert card.startswith("## Individual fairness")
    assert "Depends on" in card
    assert "| 80 people | value |" in card
    for markup in ("<script", "<b>", "<img", "{{ 7", "<i>"):
        assert markup not in card
    # A cell cannot end its row: all rows of a table have as many bars that are not escaped.
    for line in impact_page(impact).splitlines():
        if line.startswith("| "):
            assert line.replace("\\|", "").count("|") == 6
    page = impact_page(impact)
    assert "evidence for" in page
    assert "complies" in page
    assert "do not say that a tool or its use complies" in page


def test_csv_tables_are_readable_and_hold_no_formula(samples, results, documents, impact):
    people = results["unfair"].pure_map
    evil = replace(
        people, people=people.people.assign(**{"=1+1": "=cmd()"}), twins=people.twins.assign(**{"=1+1": "@x"})
    )
    tables = csv_tables(
        samples.with_worst_case(results["unfair"], pure_map=evil), documents["unfair"], impact
    )
    assert set(tables) == {
        "numbers.csv", "effects.csv", "curve.csv", "harm_by_value.csv", "twins_free.csv", "twins_budget.csv",
        "impact_ratios.csv",
    }  # fmt: skip
    for text in tables.values():
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows}) == 1
        for cell in (cell for row in rows for cell in row):
            # What begins so is a number, or is kept from being a formula.
            assert not cell.startswith(("=", "+", "@"))
            if cell.startswith("-"):
                float(cell)
    numbers = {row["quantity"]: row for row in csv.DictReader(io.StringIO(tables["numbers.csv"]))}
    assert float(numbers["gap"]["value"]) == results["unfair"].gap
    assert len(list(csv.reader(io.StringIO(tables["twins_free.csv"])))) == 81


def test_evidence_is_read_as_it_was_written_and_its_hashes_hold(results, impact, tmp_path):
    import hashlib

    folder = write_evidence(
        results["unfair"],
        tmp_path / "evidence",
        name="m",
        impact=impact,
        options={"eps": ["0.05"]},
        inputs={"model": {"path": "m", "sha256": None}},
        provenance=Provenance("2026-01-02T03:04:05Z", seed=3),
    )
    read = read_evidence(folder)
    document = audit_document(results["unfair"], name="m")
    assert read.figures == figures_of(document, impact)
    assert read.options == {"eps": ["0.05"]}
    assert (read.provenance["made"], read.provenance["seed"]) == ("2026-01-02T03:04:05Z", 3)
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {*read.files, "evidence.json"}
    for file, digest in read.files.items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest
    assert [path.name for path in tmp_path.iterdir()] == ["evidence"]


def test_a_folder_is_written_whole_or_not_at_all(results, tmp_path, monkeypatch):
    folder = tmp_path / "evidence"
    write_evidence(results["still"], folder, name="old")
    with pytest.raises(InputError, match="exists already"):
        write_evidence(results["still"], folder)
    written = []

    def full(self, data):
        written.append(self)
        if len(written) > 3:
            raise OSError("the disk is full")
        return len(data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="disk is full"):
            write_evidence(results["still"], folder, name="new", overwrite=True)
    assert read_evidence(folder).name == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["evidence"]
    write_evidence(results["still"], folder, name="new", overwrite=True)
    assert read_evidence(folder).name == "new"
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="holds no evidence"):
        write_evidence(results["still"], tmp_path / "mine", overwrite=True)
    with pytest.raises(InputError, match="does not exist"):
        write_evidence(results["still"], tmp_path / "no" / "evidence")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d.update(kind="other"), "'kind' of the evidence must be one of"),
        (lambda d: d.update(schema_version=2), "'schema_version'"),
        (lambda d: d["figures"].update(gap=[1]), "figure 'gap'"),
        (lambda d: d["figures"].update(gap=float("nan")), "NaN is not a number"),
        (lambda d: d.update(run={"verb": "train", "options": {}, "inputs": {}}), "'verb'"),
        (lambda d: d.update(run={"verb": "audit", "options": {"eps": "0"}, "inputs": {}}), "must be a list"),
        (lambda d: d.update(more=1), "'more', which is not known"),
        (lambda d: d.pop("figures"), "has no 'figures'"),
    ],
)
def test_what_is_not_of_the_form_is_refused_in_words(results, tmp_path, change, match):
    file = write_evidence(results["still"], tmp_path / "evidence") / "evidence.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(FormatError, match=match):
        read_evidence(file)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "[]", "null", '{"kind": '])
def test_damaged_files_are_refused_in_words(tmp_path, text):
    file = tmp_path / "evidence.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=r"evidence\.json is no"):
        read_evidence(file)


def test_figures_are_compared_by_name_with_a_tolerance():
    before = {"a": 1.0, "b": 0.0, "c": "x", "d": None, "e": True}
    assert compare_figures(before, before | {"a": 1 + 1e-9, "b": 1e-15}, tolerance=1e-6) == []
    assert compare_figures(before, {"a": 1.1, "b": 0.0, "c": "y", "e": 1.0, "f": 2}, tolerance=1e-6) == [
        ("a", 1.0, 1.1),
        ("c", "x", "y"),
        ("f", None, 2),
    ]
