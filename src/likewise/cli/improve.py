"""`likewise improve`: search for a fairer model, choose one by a rule and check it; or compare models that are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.audit import load
from likewise.cli.options import (
    Key,
    Outputs,
    example,
    option,
    options,
    outputs,
    parse_budget,
    parse_edits,
    repeated_command,
    settings,
    table_options,
    verb,
)
from likewise.cli.output import announce_plan, reporting, say
from likewise.core.errors import InputError
from likewise.core.progress import Progress, stop_if_interrupted
from likewise.core.text import join_words

if TYPE_CHECKING:
    from likewise.cli.output import Reporter
    from likewise.counterfactuals.edits import Edit
    from likewise.data.case import People
    from likewise.fair_metrics import FairMetric
    from likewise.improving import Improvement
    from likewise.improving.cells import Cell
    from likewise.improving.runner import CellTask, Failure, Plan, StudyProgress

_LEAST = ("changed", "pure", "gap", "group")
_INSIDE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)


@verb(
    "improve",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise improve people.csv --target target --sensitive sex -o better/",
        "likewise improve people.csv --target target --sensitive sex --compare baseline --compare sensr -o compare.html",
        after="Run the same command again after a stop: finished cells are kept, and only the missing ones are computed.",
    ),
)
@click.argument("table", type=click.Path(path_type=Path))
@options("target", "favourable", "classes", "sensitive", "edit", "metric", "eps", "confidence")
@option("--model", metavar="MODEL", help="Your model, to search beside.")
@option(
    "--compare",
    multiple=True,
    metavar="METHOD|MODEL",
    help="Audit a method of `train` or a [NAME=]MODEL instead. Repeatable.",
)
@option(
    "--within",
    type=click.FloatRange(0.0, 1.0),
    default=0.01,
    show_default=True,
    help="The rule: balanced accuracy that may be given up.",
)
@option(
    "--least",
    type=click.Choice(_LEAST),
    metavar="MEASURE",
    multiple=True,
    help=f"The rule: make {', '.join(_LEAST)} least, in this order. Repeatable.",
)
@table_options
@options("sample", "seed", "jobs")
@settings(
    "search",
    "immutable",
    folds=Key("N", "Of the cross-validation; by default 5, 3 if many.", click.IntRange(min=2)),
    test_share=Key("SHARE", "People put aside, to check the choice on.", _INSIDE, 0.2),
    steps=Key("N", "Training steps of compared methods.", click.IntRange(min=1)),
)
@outputs("folder", "html", "json", "-", folder="The search: page, tables, trainings, the chosen model.")
@options("language", "trust", "quiet", "config")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    table: Path,
    compare: Sequence[str],
    outputs: Outputs,
    quiet: bool,
    **given: Any,
) -> None:
    """Search for a less discriminatory alternative, and document the search.

    Logistic regression and boosted trees, plain and without the sensitive columns, trees with the consensus of twins
    and fair at several strengths, SenSR, SenSeI, Project, and your model if you name one: each is cross-validated on 80%
    of the people. The rule takes one (the least unfair within
    .01 of the best balanced accuracy); it is trained on all of these and checked on the people put aside. -o FOLDER/
    gets index.html, improvement.json, alternatives.csv, the chosen model, and the finished trainings in cells.

    With --compare the named methods are trained on 80% of the people, and all are audited and evaluated on the rest,
    side by side: -o FILE.html, FILE.json or - (JSON on the screen).
    """
    progress = Progress(quiet)
    folder = outputs.get("folder")
    if compare:
        if folder is not None or given["model"] is not None:
            raise InputError(
                "--compare writes -o FILE.html or FILE.json, and takes models itself: --compare MODEL."
            )
        from likewise.cli.comparing import compare_models

        parse_budget(given["eps"])
        compare_models(ctx, table, compare, outputs, progress, given, quiet=quiet)
        return
    if folder is None or len(outputs.paths) > 1:
        raise InputError("Where should the search be kept? Name one new folder: -o FOLDER/.")
    if not given["sensitive"]:
        raise InputError("Which columns should not decide? Pass --sensitive COLUMN.")
    from likewise.improving.output import check_improvement_folder, write_improvement
    from likewise.report.provenance import Provenance

    check_improvement_folder(folder)
    try:
        found = _improved(table, folder, outputs.force, given, progress, quiet)
        stop_if_interrupted()
    except KeyboardInterrupt:
        if not quiet:
            say("What was finished is kept. Run the same command to go on.", err=True)
        raise
    found = replace(found, command=repeated_command(ctx))
    provenance = Provenance.now(
        tables=[table],
        models=[] if given["model"] is None else [given["model"]],
        seed=given["seed"],
        command=found.command,
    )
    written = write_improvement(found, folder, language=given["language"], provenance=provenance)
    if not quiet:
        _show(found, written)


def read_training_table(
    table: Path, given: Mapping[str, Any], progress: Progress
) -> tuple[People, FairMetric | str | None, tuple[Edit, ...]]:
    """Read a table with its target as classes, the metric if one is named, and the edits."""
    from likewise.auditing.case import read_metric, table_request
    from likewise.auditing.case_evaluation import as_edits
    from likewise.data.case import read_people
    from likewise.data.target import check_classes, leakage_notes

    words = parse_edits(given["edit"])
    metric = read_metric(given["metric"])
    with progress.stage(f"Reading {table.name}"):
        asked = table_request(
            None,
            metric,
            (*given["sensitive"], *given["immutable"], *words),
            target=given["target"],
            favourable=given["favourable"],
            choices=given["reading"],
            sample=given["sample"],
            seed=given["seed"],
        )
        people = read_people(table, asked)
        labels = people.labels
        assert labels is not None  # a target was named
        check_classes(labels, given["target"], accepted=given["classes"])
        edits = as_edits(people.frame, words)
    for note in (*people.notes, *leakage_notes(people.frame, labels, given["target"])):
        progress.note(note)
    return people, metric, edits


def _improved(
    table: Path, folder: Path, force: bool, given: dict[str, Any], progress: Progress, quiet: bool
) -> Improvement:
    from likewise.data.case import check_finite, check_varied
    from likewise.data.target import find_value, unique_values
    from likewise.improving import improve
    from likewise.improving.improvement import SHORT, UNFAIRNESS, Rule

    eps = parse_budget(given["eps"])
    if not isinstance(eps, float):
        raise InputError(
            "--eps must be a number here; columns in their own units are for --compare and `audit`."
        )
    least = tuple(SHORT[word] for word in dict.fromkeys(given["least"]))
    model, favourable = given["model"], given["favourable"]
    loaded = None if model is None else load(model, given["trust"], progress)
    people, metric, edits = read_training_table(table, given, progress)
    check_varied(people.frame, given["sensitive"])
    check_finite(people.frame)
    if favourable is not None:
        favourable = find_value(unique_values(people.labels), favourable, what="--favourable: the target")
    with ExitStack() as stack:
        reporter: list[Reporter | None] = [None]

        def announce(plan: Plan) -> None:
            stack.close()  # the bar of the cells before: two of them would overwrite each other
            announce_plan(plan, given["jobs"], quiet)
            reporter[0] = stack.enter_context(reporting(len(plan.tasks), quiet, unit="fold"))

        def report(done: StudyProgress, task: CellTask, outcome: Cell | Failure) -> None:
            if reporter[0] is not None:
                reporter[0](done, task, outcome)

        return improve(
            people,
            people.labels,
            sensitive_features=given["sensitive"],
            model=loaded,
            edits=edits or None,
            metric=metric,
            eps=eps,
            rule=Rule(given["within"], least or UNFAIRNESS),
            test_share=given["test_share"],
            folds=given["folds"],
            confidence=given["confidence"],
            n_jobs=given["jobs"],
            folder=folder,
            replace_other=force,
            favourable=favourable,
            scales={name: plan.scale for name, plan in people.plans.items() if plan.scale is not None}
            or None,
            random_state=given["seed"],
            announce=announce,
            report=report,
        )


def _show(found: Improvement, written: Sequence[Path]) -> None:
    for name, reason in found.failed.items():
        say(f"Not computed: {name}: {reason}", err=True)
    names = join_words([path.name for path in written])
    say(
        f"Wrote {names} to {written[0].parent}; index.html has every figure with its interval, and the notes."
    )
    for line in str(found).splitlines():
        say(line)
