"""What an audit checked, as the tools of a pipeline count it: passed, failed, skipped, or no answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote
from xml.etree import ElementTree

from likewise._version import __version__
from likewise.core.text import short_number
from likewise.report.evidence.cards import person_in_words

State = Literal["passed", "open", "failed", "skipped", "error"]

# Identifier of each check, and what it asks.
CHECKS = {
    "belong-together": "Model, table and labels belong together.",
    "changed-within-limit": "The share of decisions that change with the sensitive columns is within the limit.",
    "gap-within-delta": "Comparable counterparts within the tolerance ε add at most δ to the mean loss.",
    "search-converged": "The search for the worst case ended well.",
}

# By what `AuditResult.verdict` says of the gap, and by whether the limit of changed decisions is kept.
_STATES: dict[str | None, State] = {
    "fair (proved)": "passed",
    "fair (trivially)": "passed",
    "unfair (shown)": "failed",
    "undecided": "open",
    "unanswered": "error",
    "not converged": "error",
    None: "skipped",
}
_KEPT: dict[bool | None, State] = {True: "passed", False: "failed", None: "open"}


@dataclass(frozen=True)
class Check:
    """One thing that an audit checked."""

    id: str
    state: State
    title: str
    message: str


def checks_of(document: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return what an audit checked."""
    verdict, numbers, computed = document["verdict"], document["numbers"], document["computed"]
    limit, said = document["summary"]["limit"], f"{verdict['title']}: {verdict['sentence']}"
    changed = Check(
        "changed-within-limit",
        "skipped" if limit is None else _KEPT[limit["passed"]],
        "decisions that change with the sensitive columns",
        said if limit is None else f"{said} {limit['sentence']}",
    )
    delta = "no limit" if verdict["delta"] is None else f"δ = {verdict['delta']:g}"
    gap = Check(
        "gap-within-delta",
        _STATES[verdict["words"]],
        f"gap at ε = {numbers['eps']:g} ({short_number(numbers['gap']['value'])}) against {delta}"
        if "gap" in numbers
        else "the gap within a tolerance ε was not asked for",
        verdict["gap_sentence"] or "No δ was set.",
    )
    against = [finding["sentence"] for finding in document["findings"] if finding["blocks"]]
    belong = Check(
        "belong-together",
        "error" if against else "passed",
        "model, table and labels",
        " ".join(against) or "Nothing speaks against it.",
    )
    ended = computed["status"] == "converged"
    search = Check(
        "search-converged",
        "passed" if ended else "error",
        f"search by {computed['search']}",
        "The search converged." if ended else "; ".join(computed["reasons"]) or "No reason was given.",
    )
    return belong, changed, gap, search


# An audit as JUnit XML, which every CI system shows: one test case for each thing checked.


# Characters that XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(document: Mapping[str, Any]) -> str:
    """Return an audit as JUnit XML, in the form that Jenkins' schema ``junit-10.xsd`` describes.

    Unfair is a failure, a search that did not converge an error, and a limit that was not set a skipped test. An
    undecided audit passes, as its exit code does; what it says is in ``system-out``.

    Parameters
    ----------
    document : mapping
        Of `audit_document`.

    Returns
    -------
    str
    """
    checks = checks_of(document)
    count = {state: sum(check.state == state for check in checks) for state in ("failed", "error", "skipped")}
    name = _text(document["name"] or "audit")
    totals = {"tests": str(len(checks)), "failures": str(count["failed"]), "errors": str(count["error"])}
    root = ElementTree.Element("testsuites", {"name": "likewise", **totals})
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": f"likewise audit of {name}", **totals, "skipped": str(count["skipped"])}
    )
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in _properties(document).items():
        ElementTree.SubElement(properties, "property", {"name": key, "value": _text(value)})
    for check in checks:
        _add_case(suite, check, name)
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False).join(
        ['<?xml version="1.0" encoding="UTF-8"?>\n', "\n"]
    )


def _add_case(suite: ElementTree.Element, check: Check, name: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", {"name": _text(check.title), "classname": check.id})
    message = _text(check.message)
    tag = {"failed": "failure", "error": "error", "skipped": "skipped"}.get(check.state)
    if tag is None:
        ElementTree.SubElement(case, "system-out").text = message
        return
    found = ElementTree.SubElement(case, tag, {"message": f"{check.id}: {name}", "type": check.state})
    found.text = message


def _properties(document: Mapping[str, Any]) -> dict[str, str]:
    numbers, changed = document["numbers"], document["numbers"]["changed"]
    found = {
        "likewise.verdict": document["verdict"]["kind"],
        "likewise.people": str(numbers["people"]),
        "likewise.changed": str(None if changed is None else changed["share"]),
    }
    if "gap" not in numbers:
        return found
    return found | {
        "likewise.eps": str(numbers["eps"]),
        "likewise.gap": str(numbers["gap"]["value"]),
        "likewise.pure_gap": str(numbers["pure_gap"]["value"]),
        "likewise.changed_decisions": str(numbers["changed_decisions"]),
    }


def _text(value: Any) -> str:
    return _FORBIDDEN.sub("\ufffd", str(value))


# An audit as SARIF 2.1.0 (OASIS), which code-scanning services show: rules, results, and people.


SARIF_VERSION = "2.1.0"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# Results for people: whose decision another sex or race would change, those who would lose first.
_MOST_PEOPLE = 20
_PERSON = "twin-decided-differently"

# SARIF's kind and level of each state; a result that is not a failure has the level "none".
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
                + [
                    _rule(
                        _PERSON, "A comparable counterpart of this person is decided differently.", "warning"
                    )
                ],
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
    for row in document["summary"]["people"][:_MOST_PEOPLE]:
        said = person_in_words(row)
        result = _result(_PERSON, "fail", "warning", said, model, f"{_PERSON}/{row['person']}")
        name = f"person {row['person']}"
        where = {"name": name, "kind": "member", "fullyQualifiedName": name}
        result["locations"][0]["logicalLocations"] = [where]
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
