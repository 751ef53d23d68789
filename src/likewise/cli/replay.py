"""`likewise replay`: repeat an audit from its evidence, and compare the figures; the exit code tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import example, options
from likewise.core.errors import InputError

if TYPE_CHECKING:
    from likewise.cli.audit import AuditChoices
    from likewise.report.evidence import Evidence

# Figures of different machines and libraries agree to about this; those of the same machine to the last bit.
TOLERANCE = 1e-6
_MOST_SHOWN = 20


@click.command(
    "replay",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise audit model.safetensors people.csv --target target --sensitive sex --evidence evidence",
        "likewise replay evidence/evidence.json",
        after="Exit codes: 0 the figures are the same, 1 some differ, 2 it cannot be repeated: a file is missing or has "
        "changed, or the evidence is damaged.",
    ),
)
@click.argument("evidence", type=click.Path(path_type=Path))
@click.option(
    "--model",
    metavar="MODEL",
    help="Where the model is now; needed for one that is package.module:attribute.",
)
@click.option("--table", type=click.Path(path_type=Path), help="Where the table is now.")
@click.option("--metric", type=click.Path(path_type=Path), help="Where the file of the metric is now.")
@click.option("--columns", type=click.Path(path_type=Path), help="Where the file of the columns is now.")
@click.option(
    "--rtol",
    type=click.FloatRange(min=0),
    default=TOLERANCE,
    show_default=True,
    help="Numbers that differ by no more, relative to the larger, are the same.",
)
@options("allow_pickle", "trust", "trust_type", "quiet")
def command(
    evidence: Path,
    model: str | None,
    table: Path | None,
    metric: Path | None,
    columns: Path | None,
    rtol: float,
    allow_pickle: bool,
    trust: bool,
    trust_type: Sequence[str],
    quiet: bool,
) -> None:
    """Repeat an audit from EVIDENCE, the evidence.json that an audit with --evidence wrote, and compare.

    The files it read must be the same, byte for byte. Nothing but an audit with the recorded options is run, and no
    option that lets a model file run code is taken from the evidence: such trust is yours to give, here again. Files
    outside the current folder are read only where you name them.
    """
    from likewise.cli.audit import Trusted, impact_of_case, load, run_audit
    from likewise.cli.output import Progress
    from likewise.report.document import audit_document
    from likewise.report.evidence import compare_figures, figures_of, read_evidence

    moved = {"model": model, "table": table, "metric": metric, "columns": columns}
    recorded = _found_again(read_evidence(evidence), moved)
    source, people = (str(recorded.inputs[name]["path"]) for name in ("model", "table"))
    choices = _choices(recorded, source, people)
    _check_unchanged(recorded, source, Path(people))
    progress = Progress(quiet)
    for note in _notes(recorded):
        progress.note(note)
    loaded = load(source, Trusted(allow_pickle, trust, tuple(trust_type)), progress)
    audited = run_audit(loaded, Path(people), choices, progress)
    impact, _ = impact_of_case(audited.case, audited.people)
    document = audit_document(audited.result, evaluation=audited.extras["evaluation"])
    now = figures_of(document, impact)
    different = compare_figures(recorded.figures, now, tolerance=rtol)
    if not quiet:
        _say(different, len(recorded.figures))
    if different:
        raise click.exceptions.Exit(1)


def _found_again(recorded: Evidence, moved: Mapping[str, str | Path | None]) -> Evidence:
    """The same evidence with every file where it is now; one outside the current folder must have been named."""
    if recorded.options is None or not {"model", "table"} <= set(recorded.inputs):
        raise InputError(
            "The evidence does not say how the audit was run, so it cannot be repeated. `likewise audit --evidence DIR` "
            "writes evidence that can."
        )
    known = recorded.inputs["model"]
    if moved["model"] is None and known["sha256"] is None:
        raise InputError(
            f"The audited model was no file but {known['path']!r}, which is code. If you trust it, name it: "
            "--model package.module:attribute."
        )
    options, inputs = dict(recorded.options), dict(recorded.inputs)
    for name in ("metric", "columns"):
        if name in options and [inputs.get(name, {}).get("path")] != list(options[name]):
            raise InputError(f"The evidence names different files for its {name}, so it is damaged.")
    for name, place in moved.items():
        if name in inputs and place is not None:
            inputs[name] = {**inputs[name], "path": str(place)}
            if name in options:
                options[name] = [str(place)]
        elif name in inputs and not _is_inside(str(inputs[name]["path"])):
            raise InputError(
                f"The evidence names a {name} outside the current folder, {inputs[name]['path']!r}. If that is the file you "
                f"mean, name it: --{name} FILE."
            )
    return replace(recorded, options=options, inputs=inputs)


def _is_inside(path: str) -> bool:
    """Whether a path leads to the current folder or below, before any file is touched."""
    place = Path(path)
    return "\0" not in path and ".." not in place.parts and place.absolute().is_relative_to(Path.cwd())


def _choices(recorded: Evidence, model: str, table: str) -> AuditChoices:
    """The recorded options, read as the command line reads them."""
    from likewise.cli import audit
    from likewise.cli.audit import arguments_of
    from likewise.cli.options import TableChoices

    assert recorded.options is not None  # _found_again has looked
    arguments = arguments_of(audit.command, recorded.options, audit.REPEATED)
    try:
        with audit.command.make_context("audit", [*arguments, "--", model, table]) as context:
            given: Mapping[str, Any] = context.params
    except click.ClickException as error:
        raise InputError(
            f"The evidence has an option that `likewise audit` refuses: {error.format_message()}"
        ) from error
    reading = TableChoices(**{field.name: given[field.name] for field in fields(TableChoices)})
    return audit.AuditChoices(reading=reading, **{name: given[name] for name in audit.REPEATED})


def _check_unchanged(recorded: Evidence, model: str, table: Path) -> None:
    """Raise unless every file the audit read is there and has the recorded bytes."""
    from likewise.cli.audit import inputs_of

    now = inputs_of(model, table, recorded.options or {})
    for name, known in recorded.inputs.items():
        found = now.get(name)
        path = known["path"] if found is None else found["path"]
        wanted = known["sha256"]
        if wanted is None:
            continue
        if found is None or found["sha256"] is None:
            hint = "" if name == "model description" else f" Say where it is now: --{name}."
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
    if "budget" in (recorded.options or {}):
        said.append("the audit had a time limit (--budget), so how far it came depends on the machine.")
    if recorded.inputs["model"]["sha256"] is None:
        said.append("the model is code, so whether it has changed cannot be told.")
    return said


def _say(different: Sequence[tuple[str, Any, Any]], total: int) -> None:
    if not different:
        click.echo(f"Repeated: all {total} figures are the same.")
        return
    click.echo(f"Different: {len(different)} of {total} figures.")
    for name, before, now in different[:_MOST_SHOWN]:
        click.echo(f"  {name}: {before} in the evidence, {now} now")
    if len(different) > _MOST_SHOWN:
        click.echo(f"  and {len(different) - _MOST_SHOWN} more")
