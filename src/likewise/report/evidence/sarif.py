"""An audit as SARIF 2.1.0 (OASIS), which code-scanning services show: rules, results, and people most harmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from likewise._version import __version__
from likewise.core.text import short_number
from likewise.report.evidence.checks import CHECKS, Check, checks_of
from likewise.report.evidence.people_in_words import person_in_words

__all__ = ["SARIF_VERSION", "sarif_log"]

SARIF_VERSION = "2.1.0"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# Results for people: the most harmed whose decision another sex or race would change.
_MOST_PEOPLE = 20
_PERSON = "twin-decided-differently"

# SARIF's kind and level of each state; a result that is no failure has the level "none".
_KINDS = {
    "failed": ("fail", "error"),
    "error": ("review", "none"),
    "open": ("open", "none"),
    "skipped": ("notApplicable", "none"),
    "passed": ("pass", "none"),
}


def sarif_log(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an audit as a SARIF log with one run.

    Parameters
    ----------
    document : mapping
        Of `audit_document`.

    Returns
    -------
    dict
        Ready for `json.dumps`.
    """
    model = document["name"] or "model"
    checks = checks_of(document)
    invocation: dict[str, Any] = {"executionSuccessful": all(check.state != "error" for check in checks)}
    known = document["provenance"] or {}
    if known.get("command"):
        invocation["commandLine"] = known["command"]
    if known.get("made"):
        invocation["endTimeUtc"] = known["made"]
    run = {
        "tool": {
            "driver": {
                "name": "likewise",
                "version": __version__,
                "rules": [_rule(id, asked, "error") for id, asked in CHECKS.items()]
                + [_rule(_PERSON, "A comparable twin of this person is decided differently.", "warning")],
            }
        },
        "invocations": [invocation],
        "artifacts": [{"location": {"uri": _uri(model)}, "description": {"text": "The audited model."}}],
        "results": [_checked(check, model) for check in checks] + _people(document, model),
        "columnKind": "unicodeCodePoints",
        "properties": {"numbers": document["numbers"], "assumptions": document["assumptions"]},
    }
    return {"$schema": _SCHEMA, "version": SARIF_VERSION, "runs": [run]}


def _rule(id: str, asked: str, level: str) -> dict[str, Any]:
    return {
        "id": id,
        "name": "".join(word.capitalize() for word in id.split("-")),
        "shortDescription": {"text": asked},
        "defaultConfiguration": {"level": level},
    }


def _checked(check: Check, model: str) -> dict[str, Any]:
    kind, level = _KINDS[check.state]
    return _result(check.id, kind, level, f"{check.title}. {check.message}", model, check.id)


def _people(document: Mapping[str, Any], model: str) -> list[dict[str, Any]]:
    found = []
    for one in document["maps"][:1]:
        rows = [row for row in one["people"]["rows"] if row["decision"] != row["twin_decision"]]
        for row in rows[:_MOST_PEOPLE]:
            said = person_in_words(row, one["people"]["columns"])
            harm = short_number(row["harm"])
            result = _result(
                _PERSON, "fail", "warning", f"{said} (loss up by {harm})", model, f"{_PERSON}/{row['person']}"
            )
            result["locations"][0]["logicalLocations"] = [
                {
                    "name": f"person {row['person']}",
                    "kind": "member",
                    "fullyQualifiedName": f"person {row['person']}",
                }
            ]
            found.append(result)
    return found


def _result(rule: str, kind: str, level: str, text: str, model: str, identity: str) -> dict[str, Any]:
    return {
        "ruleId": rule,
        "kind": kind,
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(model)}}}],
        "partialFingerprints": {"likewise/v1": identity},
    }


def _uri(name: str) -> str:
    """A file's name, or an import path, as a relative URI reference."""
    return quote(name.replace("\\", "/"), safe="/")
