"""`likewise learn-metric`: who is comparable with whom, learned from a table, in a file."""

from __future__ import annotations

from pathlib import Path

import click

from likewise.cli.options import PEOPLE, TableChoices, example, option, options, verb
from likewise.cli.output import Outputs, outputs, say
from likewise.core.errors import InputError
from likewise.core.progress import Progress


@verb(
    "learn-metric",
    epilog=example(
        PEOPLE, "likewise learn-metric people.csv --sensitive sex --target target -o metric.safetensors"
    ),
)
@options("table", "sensitive", "target_left_out", "read")
@option(
    "--diagnose/--no-diagnose",
    None,
    "Show how well each sensitive column can still be predicted under the metric.",
    default=True,
)
@options("sample", "seed")
@outputs("safetensors", then=["config"], required=True)
def command(
    table: Path,
    outputs: Outputs,
    sensitive: tuple[str, ...],
    target: str | None,
    reading: TableChoices,
    diagnose: bool,
    seed: int,
    sample: int | None,
) -> None:
    """Learn a fair metric: people who differ only along sensitive directions are comparable.

    The directions are the sensitive columns themselves and what predicts them from the others. The file goes to
    --metric of `audit`, `train` and `improve`.
    """
    if not sensitive:
        raise InputError("Name the columns that decisions should not depend on: --sensitive COLUMN.")
    from likewise.auditing.case import fit_metric
    from likewise.auditing.case_evaluation import diagnose_metric
    from likewise.data.case import TableRequest, read_people

    progress = Progress(outputs.quiet)
    with progress.stage(f"Reading {table.name}"):
        asked = TableRequest(target, choices=reading, needed=sensitive, sample=sample, seed=seed)
        people = read_people(table, asked)
    for note in people.notes:
        progress.note(note)
    with progress.stage("Learning who is comparable"):
        learner = fit_metric(people.frame, sensitive, people.domain())
        metric = learner.metric_
        metric.save(outputs.paths["safetensors"])
    if outputs.quiet:
        return
    size = 0 if metric.subspace is None else metric.subspace.dim
    say(
        f"Wrote {outputs.paths['safetensors']}: {size} sensitive directions of {metric.n_features} encoded columns."
    )
    if diagnose:
        with progress.stage("Looking at what it hides"):
            found, unknown = diagnose_metric(learner, people.frame, sensitive, seed)
        for why in unknown:
            progress.note(why)
        for diagnosis in found:
            click.echo(f"\n{diagnosis}")
