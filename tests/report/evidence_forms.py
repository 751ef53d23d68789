"""The parts of SARIF 2.1.0 and of JUnit's XML that likewise writes, as strict forms.

Written after the OASIS standard (sections 3.13 to 3.58) and after Jenkins' junit-10.xsd for the parts in use; anything
else is refused here although the standards allow it. With LIKEWISE_SARIF_SCHEMA and LIKEWISE_JUNIT_XSD set to the paths
of the published schemas the tests validate against those too.
"""

from __future__ import annotations


def _object(required: dict, optional: dict | None = None) -> dict:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = _object({"text": _TEXT})
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_URI = {"type": "string", "format": "uri-reference", "pattern": r"^[^\s<>\"{}|\\^`]*$"}
_RULE = _object(
    {"id": _TEXT},
    {"name": _TEXT, "shortDescription": _MESSAGE, "defaultConfiguration": _object({"level": _LEVEL})},
)
_LOCATION = _object(
    {"physicalLocation": _object({"artifactLocation": _object({"uri": _URI})})},
    {
        "logicalLocations": {
            "type": "array",
            "items": _object({"name": _TEXT, "kind": _TEXT, "fullyQualifiedName": _TEXT}),
        }
    },
)
_RESULT = {
    **_object(
        {
            "ruleId": _TEXT,
            "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
            "level": _LEVEL,
            "message": _MESSAGE,
            "locations": {"type": "array", "minItems": 1, "items": _LOCATION},
            "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        }
    ),
    # Section 3.27.10: a result whose kind is not "fail" has the level "none".
    "if": {"properties": {"kind": {"not": {"const": "fail"}}}},
    "then": {"properties": {"level": {"const": "none"}}},
}
_RUN = _object(
    {
        "tool": _object(
            {"driver": _object({"name": _TEXT, "version": _TEXT, "rules": {"type": "array", "items": _RULE}})}
        ),
        "results": {"type": "array", "items": _RESULT},
        "invocations": {
            "type": "array",
            "items": _object(
                {"executionSuccessful": {"type": "boolean"}},
                {"commandLine": _TEXT, "endTimeUtc": {"type": "string", "format": "date-time"}},
            ),
        },
        "artifacts": {
            "type": "array",
            "uniqueItems": True,
            "items": _object({"location": _object({"uri": _URI}), "description": _MESSAGE}),
        },
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "properties": {"type": "object"},
    }
)
SARIF = _object(
    {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "items": _RUN},
    }
)

# Element: attributes that must be there, those that may, and the elements inside it.
JUNIT = {
    "testsuites": ((), ("name", "tests", "failures", "errors", "time"), ("testsuite",)),
    "testsuite": (
        ("name", "tests", "failures", "errors"),
        ("skipped", "time", "timestamp", "hostname", "id", "package"),
        ("properties", "testcase", "system-out", "system-err"),
    ),
    "properties": ((), (), ("property",)),
    "property": (("name", "value"), (), ()),
    "testcase": (
        ("name",),
        ("classname", "time"),
        ("skipped", "error", "failure", "system-out", "system-err"),
    ),
    "failure": ((), ("type", "message"), ()),
    "error": ((), ("type", "message"), ()),
    "skipped": ((), ("type", "message"), ()),
    "system-out": ((), (), ()),
    "system-err": ((), (), ()),
}


def check_junit(element) -> None:
    """Raise where an element tree is not of the form above."""
    required, optional, inside = JUNIT[element.tag]
    assert set(required) <= set(element.attrib), element.tag
    assert set(element.attrib) <= {*required, *optional}, element.tag
    for child in element:
        assert child.tag in inside, f"{child.tag} in {element.tag}"
        check_junit(child)
    if element.tag == "testsuite":
        cases = element.findall("testcase")
        assert int(element.get("tests")) == len(cases)
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.get(attribute)) == sum(case.find(tag) is not None for case in cases)
