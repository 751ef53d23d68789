"""`likewise audit`: is this model unfair to individuals, to whom, by how much; the exit code tells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.engines import check_engine, open_engine
from likewise.cli.options import example, options, parse_budget, parse_edits
from likewise.cli.outputs import check_outputs
from likewise.core.errors import InputError, NotConvergedError

if TYPE_CHECKING:
    from likewise.auditing import AuditResult
    from likewise.auditing.parts.engine import Engine
    from likewise.cli.case import Case
    from likewise.cli.stage_progress import Progress
    from likewise.models.model_files import LoadedModel

__all__ = ["command"]


@dataclass(frozen=True)
class AuditChoices:
    """The options of an audit that say what is looked at."""

    target: str
    positive: str | None
    sensitive: tuple[str, ...]
    immutable: tuple[str, ...]
    ignore: tuple[str, ...]
    edit: tuple[str, ...]
    eps: str
    delta: float | None
    confidence: float
    metric: Path | None
    search: str
    budget: float | None
    loss: str
    seed: int
    sample: int | None
    drop_missing: bool
    model_takes: str


@click.command(
    "audit",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise audit model.safetensors people.csv --target target --sensitive sex --eps 0 --delta 0.02 --html audit.html",
        after="Exit codes: 0 no unfairness beyond --delta was found, or fair where a bound proves it, 1 unfair, 2 bad input, 3 the search did not converge.",
    ),
)
@click.argument("model")
@click.argument("table", type=click.Path(path_type=Path))
@options(
    "target", "positive", "sensitive", "immutable", "edit", "ignore", "drop_missing", "eps", "delta",
    "confidence", "metric", "search", "budget", "loss",
)  # fmt: skip
@click.option(
    "--model-takes",
    type=click.Choice(["auto", "table", "encoded"]),
    default="auto",
    show_default=True,
    help="Whether the model takes the table itself or encoded numbers, where that cannot be seen.",
)
@options(
    "diagnose", "json", "html", "map", "engine", "scheduler", "workers", "seed", "sample", "allow_pickle", "trust",
    "quiet", "force", "config",
)  # fmt: skip
def command(
    model: str,
    table: Path,
    json_file: str | None,
    html_file: Path | None,
    map_folder: Path | None,
    engine: str,
    scheduler: str | None,
    workers: int | None,
    allow_pickle: bool,
    trust: Sequence[str],
    diagnose: bool,
    quiet: bool,
    force: bool,
    **given: Any,
) -> None:
    """Audit a model for unequal treatment of comparable people.

    MODEL is a file (likewise's own, ONNX, XGBoost, LightGBM, CatBoost, skops) or package.module:attribute.
    TABLE is CSV, Parquet or Arrow, with the people in their own units. A Parquet file of more than 100,000 people
    is read part by part, as is a folder or a quoted pattern of Parquet files: 'people/*.parquet'.
    """
    choices = AuditChoices(**given)
    _check(choices, [html_file, None if json_file in (None, "-") else Path(str(json_file))], force)
    check_engine(engine, scheduler, workers, map_folder)
    from likewise.cli.case import diagnose_metric, evaluate_case, nobody_there, solve_case
    from likewise.cli.stage_progress import Progress
    from likewise.models.model_files import read_model

    progress = Progress(quiet)
    with progress.stage(f"Loading {model}"):
        loaded = read_model(model, allow_pickle=allow_pickle, trusted=trust)
    with open_engine(engine, scheduler, workers, map_folder, progress) as runner:
        with progress.stage(f"Reading {table.name}"):
            case, people, labels = make_case(loaded, table, choices, progress, runner)
        with progress.stage("Auditing", spinner=False):
            result = solve_case(case, progress=progress.shown, engine=runner, map_folder=map_folder)
    with progress.stage("Evaluating"):
        evaluation = evaluate_case(
            case.matched,
            people,
            labels,
            sensitive=case.sensitive,
            edits=case.edits,
            confidence=choices.confidence,
            seed=choices.seed,
        )
        for name, why in nobody_there(people, labels, case.sensitive).items():
            progress.note(f"the group gaps of {name} are not known: {why}.")
        found = diagnose_metric(case.metric, people, case.sensitive, choices.seed) if diagnose else []
    extras = {"evaluation": evaluation, "diagnoses": found}
    _show(result, extras, json_file, html_file, name=model, quiet=quiet, force=force)
    if map_folder is not None and not quiet and json_file != "-":
        click.echo(f"Wrote {map_folder}")
    _judge(result)


def make_case(
    loaded: LoadedModel, table: Path, choices: AuditChoices, progress: Progress, engine: Engine | None
) -> tuple[Case, Any, Any]:
    """Bring a model and a table together.

    Returns
    -------
    case : Case
    people : DataFrame
        Those in memory: all, or a sample of a file that streams.
    labels : ndarray
    """
    from likewise.cli.case import Case, call_classes, fit_metric, metric_columns, read_metric
    from likewise.cli.people_of_table import as_column_values
    from likewise.cli.sources import open_people
    from likewise.models.matching import match_model

    edits = parse_edits(choices.edit)
    metric = None if choices.metric is None else read_metric(choices.metric)
    named = (*choices.sensitive, *choices.immutable, *edits)
    columns = () if metric is None else metric_columns(metric)
    source = open_people(
        table,
        target=choices.target,
        positive=choices.positive,
        ignore=choices.ignore,
        needed=(*named, *columns),
        drop_missing=choices.drop_missing,
        sample=choices.sample,
        seed=choices.seed,
        engine=engine,
    )
    if source.note:
        progress.note(source.note)
    matched = match_model(
        loaded,
        source.frame,
        make_domain=lambda used: source.domain(used, [name for name in choices.immutable if name in used]),
        widen=source.widened,
        immutable=choices.immutable,
        needed=(*named, *columns),
        encoder=None if metric is None else metric.feature_map,
        takes=choices.model_takes,
        loss=choices.loss,
    )
    if matched.note:
        progress.note(matched.note)
    matched = call_classes(matched, source.values, choices.positive)
    if metric is None:
        metric = fit_metric(source.frame, choices.sensitive, matched.domain).metric_
    case = Case(
        matched,
        source.people,
        source.y,
        metric,
        choices.sensitive,
        as_column_values(source.frame, edits),
        choices.eps,
        choices.delta,
        choices.confidence,
        choices.search,
        choices.seed,
        choices.budget,
    )
    return case, source.frame, source.labels


def _check(choices: AuditChoices, outputs: Sequence[Path | None], force: bool) -> None:
    parse_budget(choices.eps)
    parse_edits(choices.edit)
    if choices.metric is None and not choices.sensitive:
        raise InputError(
            "Who is comparable with whom? Name the columns that should not decide (--sensitive COLUMN), or pass a "
            "metric (--metric FILE)."
        )
    both = [name for name in choices.sensitive if name in choices.immutable]
    if both:
        raise InputError(
            f"Column {both[0]!r} is both sensitive and immutable, so no twin could differ in it. Choose one."
        )
    check_outputs(outputs, force=force)


def _show(
    result: AuditResult,
    extras: dict[str, Any],
    json_file: str | None,
    html_file: Path | None,
    *,
    name: str,
    quiet: bool,
    force: bool,
) -> None:
    from likewise import report

    if html_file is not None:
        report.write_html(result, html_file, title=f"Audit of {name}", overwrite=force, **extras)
    if json_file == "-":
        document = report.audit_document(result, name=name, **extras)
        click.echo(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
        return
    if json_file is not None:
        report.write_json(result, json_file, overwrite=force, **extras)
    if quiet:
        return
    report.print_audit(result, evaluation=extras["evaluation"])
    for path in (html_file, json_file):
        if path is not None:
            click.echo(f"Wrote {path}")


def _judge(result: AuditResult) -> None:
    if result.delta is not None:
        result.raise_if_unfair()
    elif result.status != "converged":
        raise NotConvergedError("the audit did not converge: " + "; ".join(result.reasons))
