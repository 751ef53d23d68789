"""`likewise replay`: repeat an audit from its evidence, and compare the figures; the exit code tells."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.app import cli
from likewise.cli.case import PART, REPEATED, AuditChoices, impact_of, inputs_of, rule_files, run_audit
from likewise.cli.options import (
    PATH,
    READ,
    SETTINGS,
    TRAINED,
    TableChoices,
    example,
    option,
    options,
    parse_keys,
    verb,
)
from likewise.cli.output import say
from likewise.cli.reading import load
from likewise.core.errors import InputError
from likewise.core.files import is_below
from likewise.core.progress import Progress, stop_if_interrupted

if TYPE_CHECKING:
    from likewise.report.evidence import Evidence

# Figures of different machines and libraries agree to about this; those of the same machine to the last bit.
TOLERANCE = 1e-6
_MOST_SHOWN = 20
# Files that can be said to be elsewhere now.
MOVED = ("model", "table", "metric", "columns", "config")


@verb(
    "replay",
    epilog=example(
        *TRAINED,
        "likewise audit model.safetensors people.csv --target target --sensitive sex -o evidence/",
        "likewise replay evidence/evidence.json",
        after="Exit codes: 0 the figures are the same, 1 some differ, 2 it cannot be repeated: a file is missing or has "
        "changed, or the evidence is damaged.",
    ),
)
@click.argument("evidence", type=PATH)
@option("--model", "MODEL", "Where the model is now; needed for one that is package.module:attribute.")
@option("--table", None, "Where the table is now.", PATH)
@option("--metric", None, "Where the file of the metric is now.", PATH)
@option("--columns", None, "Where the file of the columns is now.", PATH)
@option("--config", None, "Where the file of the options is now.", PATH)
@option(
    "--rtol",
    None,
    "Numbers that differ by no more, relative to the larger, are the same.",
    click.FloatRange(min=0),
    TOLERANCE,
)
@option("--verify-key", "KEY", "A public key (PEM); its owner must have signed the evidence.", PATH)
@options("trust", "quiet")
def command(
    evidence: Path, rtol: float, verify_key: Path | None, trust: Sequence[str], quiet: bool, **moved: Any
) -> None:
    """Repeat an audit from EVIDENCE, the evidence.json in a folder that an audit wrote with -o, and compare.

    The files it read must be the same, byte for byte. Nothing but an audit with the recorded options is run, and no
    option that lets a model file run code is taken from the evidence: name such options here again if you trust the model. Files
    outside the current folder are read only if you name them.
    """
    from likewise.report.document import audit_document
    from likewise.report.evidence import (
        check_files,
        compare_figures,
        evidence_files,
        figures_of,
        read_evidence,
    )

    folder = evidence if evidence.is_dir() else evidence.parent
    known = read_evidence(evidence)
    check_files(folder, known, verify_key=verify_key)
    recorded = _found_again(known, moved)
    source, people = (str(recorded.inputs[name]["path"]) for name in ("model", "table"))
    choices = _choices(recorded, source, people)
    _check_unchanged(recorded, source, Path(people), named=moved["model"] is not None)
    progress = Progress(quiet)
    for note in _notes(recorded):
        progress.note(note)
    loaded = load(source, trust, progress)
    audited = run_audit(loaded, Path(people), choices, progress)
    stop_if_interrupted()
    impact, notes = impact_of(audited)
    document = audit_document(audited.result, name=recorded.name, evaluation=audited.extras["evaluation"])
    now = figures_of(document, impact)
    different = compare_figures(recorded.figures, now, tolerance=rtol)
    if not compare_figures(recorded.figures, now, tolerance=0.0):
        # The same figures to the last bit are written as the same files.
        files = evidence_files(audited.result, document | {"provenance": recorded.provenance}, impact, notes)
        different += [
            (name, "changed", "not what this audit writes")
            for name, text in files.items()
            if recorded.files.get(name) != hashlib.sha256(text.encode()).hexdigest()
        ]
    if not quiet:
        _say(different, len(recorded.figures))
    if different:
        raise click.exceptions.Exit(1)


def _found_again(recorded: Evidence, moved: Mapping[str, str | Path | None]) -> Evidence:
    """The same evidence with every file where it is now; one outside the current folder must have been named."""
    if recorded.options is None or not {"model", "table"} <= set(recorded.inputs):
        raise InputError(
            "The evidence does not say how the audit was run, so it cannot be repeated. `likewise audit -o FOLDER/` "
            "writes evidence that can."
        )
    known = recorded.inputs["model"]
    if moved["model"] is None and known["sha256"] is None:
        raise InputError(
            f"The audited model was not a file but {known['path']!r}, which is code. If you trust it, name it: "
            "--model package.module:attribute."
        )
    options, inputs = dict(recorded.options), dict(recorded.inputs)
    named = {name: [inputs.get(name, {}).get("path")] for name in ("metric", "columns")}
    rules = rule_files(options)
    named["twins"] = [inputs.get(f"file of rules {path}", {}).get("path") for path in rules]
    for name, files in named.items():
        if name in options and files != (rules if name == "twins" else options[name]):
            raise InputError(f"The evidence names different files for its {name}, so it is damaged.")
    hashed = {name for name, known in inputs.items() if known["sha256"] is not None}
    idle = [name for name, place in moved.items() if place is not None and name not in {"model", *hashed}]
    if idle:
        raise InputError(f"The audit read no file of its {idle[0]}. Leave out --{idle[0]}.")
    for name, known in inputs.items():
        place = moved.get(name)
        if place is not None:
            inputs[name] = {**known, "path": str(place)}
            if name in options:
                options[name] = [str(place)]
        elif not name.startswith(PART) and not is_below(str(known["path"]), Path.cwd()):
            remedy = (
                f"If that is the file you mean, name it: --{name} FILE." if name in moved else "Copy it here."
            )
            raise InputError(
                f"The evidence names a {name} outside the current folder, {known['path']!r}. {remedy}"
            )
    return replace(recorded, options=options, inputs=inputs)


def _choices(recorded: Evidence, model: str, table: str) -> AuditChoices:
    """The recorded options, read as the command line reads them."""
    audit = cli.get_command(click.get_current_context(), "audit")
    assert audit is not None
    assert recorded.options is not None  # _found_again has looked
    arguments = arguments_of(recorded.options)
    try:
        with audit.make_context("audit", [*arguments, "--", model, table]) as context:
            given = context.params
    except click.ClickException as error:
        raise InputError(
            f"The evidence has an option that `likewise audit` refuses: {error.format_message()}"
        ) from error
    reading = TableChoices(columns=given["columns"], **parse_keys(given["read"], READ))
    wanted = {field.name for field in fields(AuditChoices)}
    found = given | parse_keys(given["set"], SETTINGS) | {"reading": reading}
    return AuditChoices(**{name: value for name, value in found.items() if name in wanted})


def arguments_of(options: Mapping[str, Sequence[str]]) -> list[str]:
    """Return recorded options as the command line takes them; one that a repetition must not take is refused."""
    for name in options:
        if name not in REPEATED:
            raise InputError(
                f"The evidence asks for the option '--{name}', which a replay never takes from a file."
            )
    return [f"--{name}={value}" for name, values in options.items() for value in values]


def _check_unchanged(recorded: Evidence, model: str, table: Path, *, named: bool) -> None:
    """Raise unless every file the audit read is there and has the recorded bytes; the model may be `named` by the user."""
    now = inputs_of(model, table, recorded.options or {}, recorded.inputs.get("config", {}).get("path"))
    for name, part in now.items():  # where links beside a model lead
        if name.startswith(PART) and not named and not is_below(str(part["path"]), Path.cwd()):
            raise InputError(f"The {name} leads outside the current folder. Copy it here.")
    for name, known in recorded.inputs.items():
        found = now.get(name)
        path = known["path"] if found is None else found["path"]
        wanted = known["sha256"]
        if wanted is None:
            continue
        if found is None or found["sha256"] is None:
            hint = f" Say where it is now: --{name}." if name in MOVED else ""
            raise InputError(f"The {name} {path!r} is not there.{hint}")
        if found["sha256"] != wanted:
            raise InputError(
                f"The {name} {path!r} is not the one that was audited: its SHA-256 begins with {found['sha256'][:12]}, "
                f"that of the audited one with {wanted[:12]}. Its figures would be those of another audit."
            )
    extra = [name for name in now if name not in recorded.inputs and now[name]["sha256"] is not None]
    if extra:
        raise InputError(
            f"The {extra[0]} {now[extra[0]]['path']!r} was not there when the model was audited."
        )


def _notes(recorded: Evidence) -> list[str]:
    """What may make figures differ although the files are the same."""
    said = []
    if parse_keys((recorded.options or {}).get("set", ()), SETTINGS)["budget_seconds"] is not None:
        said.append("the audit had a time limit (budget_seconds), so how far it came depends on the machine.")
    if recorded.inputs["model"]["sha256"] is None:
        said.append("the model is code, so whether it has changed cannot be told.")
    return said


def _say(different: Sequence[tuple[str, Any, Any]], total: int) -> None:
    if not different:
        say(f"Repeated: all {total} figures are the same.")
        return
    say(f"Different: {len(different)} of {total} figures.")
    for name, before, now in different[:_MOST_SHOWN]:
        say(f"  {name}: {before} in the evidence, {now} now")
    if len(different) > _MOST_SHOWN:
        say(f"  and {len(different) - _MOST_SHOWN} more")
