"""A model file and a table as verbs read them: loaded, matched, and said where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import repeated_command, trusting
from likewise.core.errors import InputError

if TYPE_CHECKING:
    from likewise.auditing.case import MatchedPeople
    from likewise.core.progress import Progress
    from likewise.counterfactuals.edits import Edit
    from likewise.data.case import People, TableRequest
    from likewise.fair_metrics import FairMetric
    from likewise.models.model_files import LoadedModel
    from likewise.report.provenance import Provenance


def load(model: str, trust: Sequence[str], progress: Progress) -> LoadedModel:
    """Load a model file, as far as the user trusts it."""
    from likewise.models.model_files import read_model

    with progress.stage(f"Loading {model}"):
        return read_model(model, **trusting(trust))


def _asked(
    loaded: LoadedModel | None, metric: Any, needed: Sequence[str], given: Mapping[str, Any], **more: Any
) -> TableRequest:
    """What is to be read of a table, by the options of a verb."""
    from likewise.auditing.case import table_request

    said = {"target": given["target"], "favourable": given["favourable"], "choices": given["reading"]}
    return table_request(loaded, metric, needed, seed=given["seed"], **said, **more)


def match_files(
    model: str,
    table: Path,
    given: Mapping[str, Any],
    progress: Progress,
    *,
    favourable: str | None,
    sample: int | None = None,
) -> MatchedPeople:
    """Bring a model file and a table together, for the questions about its decisions."""
    from likewise.auditing.case import match_people
    from likewise.data.case import read_people

    loaded = load(model, given["trust"], progress)
    sensitive, reading = given["sensitive"], given["reading"]
    with progress.stage(f"Reading {table.name}"):
        asked = _asked(loaded, None, sensitive, given, sample=sample, keeps_missing=True)
        met = match_people(
            loaded,
            read_people(table, asked),
            needed=sensitive,
            takes=given["model_takes"],
            loss="cross_entropy",
            favourable=favourable,
            missing=reading.missing,
            lenient=True,
        )
    for note in met.notes:
        progress.note(note)
    return met


def read_training_table(
    table: Path, given: Mapping[str, Any], progress: Progress, **limits: Any
) -> tuple[People, FairMetric | str | None, tuple[Edit, ...]]:
    """Read a table with its target as classes, the metric if one is named, and the edits."""
    from likewise.auditing.case import read_metric
    from likewise.auditing.case_evaluation import as_edits
    from likewise.data.case import read_people
    from likewise.data.target import check_classes, leakage_notes

    words = parse_edits(given.get("edit", ()))
    metric = read_metric(given["metric"])
    with progress.stage(f"Reading {table.name}"):
        needed = (*given["sensitive"], *given.get("immutable", ()), *words)
        asked = _asked(None, metric, needed, given, sample=given["sample"], **limits)
        people = read_people(table, asked)
        labels = people.labels
        assert labels is not None  # a target was named
        check_classes(labels, given["target"], accepted=given["classes"])
        edits = as_edits(people.frame, words)
    for note in (*people.notes, *leakage_notes(people.frame, labels, given["target"])):
        progress.note(note)
    return people, metric, edits


def provenance_now(tables: Sequence[Path], models: Sequence[str] = ()) -> Provenance:
    """Say when, of which files and by which command the verb that runs makes a result."""
    from likewise.report.provenance import Provenance

    ctx = click.get_current_context()
    return Provenance.now(
        tables=tables, models=models, seed=ctx.params.get("seed"), command=repeated_command(ctx)
    )


def parse_edits(edits: Sequence[str]) -> dict[str, list[str]]:
    """Read ``relationship:Husband=Wife`` as a column with the values that are exchanged."""
    found: dict[str, list[str]] = {}
    for edit in edits:
        column, colon, rest = edit.partition(":")
        values = [value.strip() for value in rest.split("=")]
        if not colon or not column or len(values) < 2 or not all(values):
            raise InputError(
                f"--edit must be COLUMN:A=B, such as relationship:Husband=Wife, got {edit!r}. "
                "Quote it if it contains spaces."
            )
        known = found.setdefault(column.strip(), [])
        known.extend(value for value in values if value not in known)
    return found


def parse_budget(text: str) -> float | dict[str, float]:
    """Read ``--eps``: a number, or columns with an amount each in their own units."""
    wrong = (
        f"--eps must be a number >= 0, or columns with amounts such as age=2,hours-per-week=5, got {text!r}."
    )
    try:
        if "=" not in text:
            number = float(text)
            if 0 <= number < float("inf"):
                return number
            raise InputError(wrong)
        parts = [part.rpartition("=") for part in text.split(",")]
        units = {column.strip(): float(amount) for column, _, amount in parts}
    except ValueError as error:
        raise InputError(wrong) from error
    if not all(units):
        raise InputError(wrong)
    return units
