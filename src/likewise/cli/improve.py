"""`likewise improve`: train several models, choose the least unfair that is accurate enough, check it on new people."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import example, options, parse_edits, repeated_command, table_options
from likewise.cli.output import reporting
from likewise.core.errors import InputError

if TYPE_CHECKING:
    from likewise.cli.output import Reporter
    from likewise.improving import Improvement, Rule
    from likewise.improving.cells import Cell
    from likewise.improving.runner import CellTask, Failure, Plan, StudyProgress

_LEAST = ("changed", "pure", "gap", "group")


@click.command(
    "improve",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise improve people.csv --target target --sensitive sex -o better",
        after="Run the same command again after a stop: finished cells are kept, and only the missing ones are computed.",
    ),
)
@click.argument("table", type=click.Path(path_type=Path))
@options("target", "positive", "classes", "sensitive", "edit", "metric")
@table_options
@click.option(
    "--model", metavar="MODEL", help="Your model: what it shows now, and with the consensus of twins."
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder to write; made if not there."
)
@click.option(
    "--within",
    type=click.FloatRange(0.0, 1.0),
    default=0.01,
    show_default=True,
    help="The rule: balanced accuracy that may be given up against the best.",
)
@click.option(
    "--least",
    type=click.Choice(_LEAST),
    multiple=True,
    help="The rule: what is to be least; repeat it for what counts between alike ones.  [default: all, in this order]",
)
@click.option(
    "--eps", type=click.FloatRange(min=0), default=0.1, show_default=True, help="Budget of the gap."
)
@click.option("--folds", type=click.IntRange(min=2), help="Of the cross-validation.  [default: 5, 3 if many]")
@click.option(
    "--test-share",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.2,
    show_default=True,
    help="Share of people put aside, to check the choice on.",
)
@options("confidence", "seed", "sample")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Trainings at a time, each in a process of its own with one thread.",
)
@options("language", "allow_pickle", "trust", "trust_type", "quiet", "force", "config")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    table: Path,
    model: str | None,
    out: Path,
    within: float,
    least: tuple[str, ...],
    jobs: int,
    language: str,
    quiet: bool,
    force: bool,
    **given: Any,
) -> None:
    """Search for a less discriminatory alternative, and document the search.

    Boosted trees plain, with the consensus of twins and fair at several strengths, SenSR, SenSeI, Project, and your
    model if you name one: each is cross-validated on 80% of the people. The rule takes one (the least unfair within
    .01 of the best balanced accuracy); it is trained on all of these and checked on the people put aside.

    Writes OUT/index.html, improvement.json, alternatives.csv and the chosen model, and keeps finished trainings in
    OUT/cells.
    """
    if not given["sensitive"]:
        raise InputError("Which columns shall not decide? Pass --sensitive COLUMN.")
    from likewise.improving.output import check_improvement_folder, write_improvement
    from likewise.report.provenance import Provenance

    check_improvement_folder(out)
    try:
        with ExitStack() as stack:
            reporter: list[Reporter | None] = [None]

            def announce(plan: Plan) -> None:
                stack.close()  # the bar of the cells before: two of them would write over each other
                _announce(plan, jobs, quiet)
                reporter[0] = stack.enter_context(reporting(len(plan.tasks), quiet, unit="fold"))

            def report(progress: StudyProgress, task: CellTask, outcome: Cell | Failure) -> None:
                if reporter[0] is not None:
                    reporter[0](progress, task, outcome)

            found = _improved(
                table, model, _rule(within, least), given, out, jobs, force, announce, report, quiet
            )
    except KeyboardInterrupt:
        # Below the bar, not in it.
        if not quiet:
            click.echo("What was finished is kept. Run the same command to go on.", err=True)
        raise
    found = replace(found, command=repeated_command(ctx))
    provenance = Provenance.now(
        tables=[table], models=[] if model is None else [model], seed=given["seed"], command=found.command
    )
    written = write_improvement(found, out, language=language, provenance=provenance)
    if not quiet:
        _show(found, written)


def _rule(within: float, least: Sequence[str]) -> Rule:
    from likewise.improving.improvement import SHORT, UNFAIRNESS, Rule

    return Rule(within, tuple(SHORT[word] for word in dict.fromkeys(least)) or UNFAIRNESS)


def _improved(
    table: Path,
    model: str | None,
    rule: Rule,
    given: dict[str, Any],
    out: Path,
    jobs: int,
    force: bool,
    announce: Any,
    report: Any,
    quiet: bool,
) -> Improvement:
    from likewise.auditing.case import read_metric, table_request
    from likewise.auditing.case_evaluation import as_edits
    from likewise.cli.output import Progress
    from likewise.data.case import check_finite, check_varied, read_people
    from likewise.data.target import check_classes, find_value, leakage_notes, unique_values
    from likewise.improving import improve
    from likewise.models.model_files import read_model

    progress = Progress(quiet)
    words = parse_edits(given["edit"])
    metric = read_metric(given["metric"])
    loaded = None
    if model is not None:
        with progress.stage(f"Loading {model}"):
            loaded = read_model(
                model,
                allow_pickle=given["allow_pickle"],
                trusted=given["trust_type"],
                trust=given["trust"],
            )
    with progress.stage(f"Reading {table.name}"):
        asked = table_request(
            None,
            metric,
            (*given["sensitive"], *words),
            target=given["target"],
            positive=given["positive"],
            choices=given["reading"],
            sample=given["sample"],
            seed=given["seed"],
        )
        people = read_people(table, asked)
        labels = people.labels
        assert labels is not None  # a target was named
        check_classes(labels, given["target"], accepted=given["classes"])
        check_varied(people.frame, given["sensitive"])
        check_finite(people.frame)
        edits = as_edits(people.frame, words)
    for note in (*people.notes, *leakage_notes(people.frame, labels, given["target"])):
        progress.note(note)
    positive = given["positive"]
    if positive is not None:
        positive = find_value(unique_values(labels), positive, what="--positive: the target")
    return improve(
        people,
        labels,
        sensitive_features=given["sensitive"],
        model=loaded,
        edits=edits or None,
        metric=metric,
        eps=given["eps"],
        rule=rule,
        test_share=given["test_share"],
        folds=given["folds"],
        confidence=given["confidence"],
        n_jobs=jobs,
        folder=out,
        replace_other=force,
        positive=positive,
        scales={name: plan.scale for name, plan in people.plans.items() if plan.scale is not None} or None,
        random_state=given["seed"],
        announce=announce,
        report=report,
    )


def _announce(plan: Plan, jobs: int, quiet: bool) -> None:
    if quiet:
        return
    for line in plan.damaged:
        click.echo(f"Note: {line}; it is computed again.", err=True)
    kept = f"{plan.finished} cells are finished; " if plan.finished else ""
    click.echo(f"{kept}{len(plan.tasks)} to compute, {jobs} at a time.", err=True)


def _show(found: Improvement, written: Sequence[Path]) -> None:
    click.echo(str(found))
    for name, reason in found.failed.items():
        click.echo(f"Not computed: {name}: {reason}", err=True)
    for note in found.notes:
        click.echo(f"Note: {note}")
    for path in written:
        click.echo(f"Wrote {path}")
    click.echo(f"To repeat it: {found.command}")
