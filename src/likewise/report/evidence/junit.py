"""An audit as JUnit XML, which every CI system shows: one test case for each thing checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from likewise.report.evidence.checks import Check, checks_of

__all__ = ["junit_xml"]

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
    totals = {
        "tests": str(len(checks)),
        "failures": str(count["failed"]),
        "errors": str(count["error"]),
    }
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
    numbers = document["numbers"]
    return {
        "likewise.verdict": document["verdict"]["kind"],
        "likewise.people": str(numbers["people"]),
        "likewise.eps": str(numbers["eps"]),
        "likewise.gap": str(numbers["gap"]["value"]),
        "likewise.pure_gap": str(numbers["pure_gap"]["value"]),
        "likewise.changed_decisions": str(numbers["changed_decisions"]),
    }


def _text(value: Any) -> str:
    return _FORBIDDEN.sub("\ufffd", str(value))
