"""`likewise audit`: is this model unfair to individuals, to whom, by how much; the exit code tells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.engines import check_engine, open_engine
from likewise.cli.options import example, options, parse_budget, parse_edits
from likewise.cli.outputs import check_outputs
from likewise.cli.repeating import repeated_command
from likewise.cli.table_options import TableChoices, table_options
from likewise.core.errors import InputError, NotConvergedError

if TYPE_CHECKING:
    from likewise.auditing import AuditResult
    from likewise.auditing.parts.engine import Engine
    from likewise.cli.case import Case
    from likewise.cli.stage_progress import Progress
    from likewise.cli.table_columns import Asked
    from likewise.fair_metrics import FairMetric
    from likewise.models.model_files import LoadedModel
    from likewise.report.provenance import Provenance
    from likewise.tables import MemoryFile

__all__ = ["REPEATED", "AuditChoices", "Audited", "Trusted", "check_choices", "command", "load", "run_audit"]


@dataclass(frozen=True)
class AuditChoices:
    """The options of an audit that say what is looked at."""

    target: str
    positive: str | None
    sensitive: tuple[str, ...]
    immutable: tuple[str, ...]
    reading: TableChoices
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
    model_takes: str
    tolerance: float
    twins: str | None = None
    graph: Path | None = None
    rules: str | None = None


# Parameters that a repetition takes over. None of them lets a file run code or opens a connection.
REPEATED = tuple(field.name for field in fields(AuditChoices) if field.name != "reading")


@click.command(
    "audit",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise audit model.safetensors people.csv --target target --sensitive sex --eps 0 --delta 0.02 --html audit.html",
        after="Exit codes: 0 no unfairness beyond --delta was found, or fair where a bound proves it, 1 unfair, 2 bad input, 3 could not be answered: the search did not converge, or model and table do not belong together.",
    ),
)
@click.argument("model")
@click.argument("table", type=click.Path(path_type=Path))
@options(
    "target", "positive", "sensitive", "immutable", "edit", "eps", "delta", "confidence", "metric", "search",
    "budget", "loss", "tolerance", "twins", "graph", "rules",
)  # fmt: skip
@table_options
@click.option(
    "--model-takes",
    type=click.Choice(["auto", "table", "encoded"]),
    default="auto",
    show_default=True,
    help="Whether the model takes the table itself or encoded numbers, where that cannot be seen.",
)
@options(
    "diagnose", "json", "html", "language", "explore", "evidence", "map", "engine", "scheduler", "workers", "seed", "sample",
    "allow_pickle", "trust", "trust_type",
    "quiet", "force", "config",
)  # fmt: skip
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    table: Path,
    json_file: str | None,
    html_file: Path | None,
    explore: bool,
    language: str,
    evidence_folder: Path | None,
    map_folder: Path | None,
    engine: str,
    scheduler: str | None,
    workers: int | None,
    allow_pickle: bool,
    trust: bool,
    trust_type: Sequence[str],
    diagnose: bool,
    quiet: bool,
    force: bool,
    **given: Any,
) -> None:
    """Audit a model for unequal treatment of comparable people.

    MODEL is a file (likewise's own, ONNX, XGBoost, LightGBM, CatBoost, skops) or package.module:attribute.
    TABLE is CSV, Parquet, Arrow, JSON lines or Excel, with the people in their own units; `likewise inspect` shows how
    its columns will be read. A Parquet file of more than 100,000 people
    is read part by part, as is a folder or a quoted pattern of Parquet files: 'people/*.parquet'.
    """
    choices = AuditChoices(**given)
    check_choices(choices)
    check_outputs([html_file, None if json_file in (None, "-") else Path(str(json_file))], force=force)
    check_engine(engine, scheduler, workers, map_folder)
    if explore and html_file is None:
        raise InputError("--explore is about the page. Name it: --html FILE.")
    if evidence_folder is not None:
        from likewise.report.evidence.evidence_folder import check_folder

        check_folder(evidence_folder, overwrite=force)
    from likewise.cli.exploring import explore_case
    from likewise.cli.stage_progress import Progress

    progress = Progress(quiet)
    trusted = Trusted(allow_pickle, trust, tuple(trust_type))
    loaded = load(model, trusted, progress)
    with open_engine(engine, scheduler, workers, map_folder, progress) as runner:
        audited = run_audit(
            loaded, table, choices, progress, runner, map_folder, diagnose=diagnose, explore=explore
        )
    provenance = _provenance(ctx)
    extras = audited.extras | {"provenance": provenance}
    panel = explore_case(audited.case, audited.people, audited.result, name=model) if explore else None
    page = {"language": language, "explore": panel}
    _show(audited.result, extras, json_file, html_file, page, name=model, quiet=quiet, force=force)
    silent = quiet or json_file == "-"
    if map_folder is not None and not silent:
        click.echo(f"Wrote {map_folder}")
    if evidence_folder is not None:
        _leave_evidence(audited, evidence_folder, model, table, provenance, force=force)
        if not silent:
            click.echo(f"Wrote {evidence_folder}")
    _judge(audited.result)


@dataclass(frozen=True)
class Trusted:
    """What the user lets a model file do; see the options."""

    allow_pickle: bool = False
    trust: bool = False
    types: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Audited:
    """An audit that has been run.

    Parameters
    ----------
    result : AuditResult
    extras : dict
        What stands beside it: its evaluation, and what the metric hides.
    case : Case
    people : DataFrame
        Those in memory.
    """

    result: AuditResult
    extras: dict[str, Any]
    case: Case
    people: Any


def load(model: str, trusted: Trusted, progress: Progress) -> LoadedModel:
    """Load a model file, as far as the user trusts it."""
    from likewise.models.model_files import read_model

    with progress.stage(f"Loading {model}"):
        return read_model(
            model, allow_pickle=trusted.allow_pickle, trusted=trusted.types, trust=trusted.trust
        )


def run_audit(
    loaded: LoadedModel,
    table: Path | MemoryFile,
    choices: AuditChoices,
    progress: Progress,
    engine: Engine | None = None,
    map_folder: Path | None = None,
    *,
    diagnose: bool = False,
    explore: bool = False,
) -> Audited:
    """Read a table, audit a model and evaluate it: what `likewise audit` and `likewise replay` do."""
    from likewise.cli.case import diagnose_metric, evaluate_case, solve_case
    from likewise.cli.exploring import check_explorable
    from likewise.cli.gaps_of_people import with_gaps
    from likewise.cli.twins_of_case import check_twins, twins_of_case

    with progress.stage(f"Reading {table.name}"):
        case, people, labels = make_case(loaded, table, choices, progress, engine)
        if explore:
            check_explorable(case, people)
        without = {} if choices.twins is None else check_twins(case, people, choices)
    with progress.stage("Auditing", spinner=False):
        result = solve_case(case, progress=progress.searches, engine=engine, map_folder=map_folder)
    with progress.stage("Evaluating"):
        evaluation, unknown = evaluate_case(
            case.matched,
            people,
            labels,
            sensitive=case.sensitive,
            edits=case.edits,
            confidence=choices.confidence,
            seed=choices.seed,
        )
        asked = case.sensitive if diagnose else ()
        found, hidden = diagnose_metric(case.metric, people, asked, choices.seed)
        for why in (*unknown, *hidden):
            progress.note(why)
    result = with_gaps(result, case.gaps, choices.tolerance)
    if choices.tolerance and result.flipped is None:
        progress.note(_apart_words(result, choices.tolerance))
    extras: dict[str, Any] = {"evaluation": evaluation, "diagnoses": found}
    if choices.twins is not None:
        with progress.stage("Comparing kinds of twins"):
            extras["twins"], unknown = twins_of_case(case, people, choices, without)
        for why in unknown:
            progress.note(why)
    return Audited(result, extras, case, people)


def _apart_words(result: AuditResult, tolerance: float) -> str:
    only = result.sensitive
    if only is not None and only.changed is not None:
        names = ", ".join(only.columns)
        return f"{only.share} of the people are predicted more than {tolerance:g} apart when only {names} changes."
    apart = result.pure_map.flipped.sum() / result.n
    return f"at least {apart:.1%} of the people are predicted more than {tolerance:g} from a free twin."


def _leave_evidence(
    audited: Audited, folder: Path, model: str, table: Path, provenance: Provenance, *, force: bool
) -> None:
    from likewise.cli.impact_of_case import impact_of_case
    from likewise.cli.recorded_run import inputs_of, recorded_options
    from likewise.report.evidence import write_evidence

    context = click.get_current_context()
    options = recorded_options(context.command, context.params, REPEATED)
    impact, notes = impact_of_case(audited.case, audited.people)
    write_evidence(
        audited.result,
        folder,
        name=model,
        evaluation=audited.extras["evaluation"],
        impact=impact,
        impact_notes=notes,
        options=options,
        inputs=inputs_of(model, table, options),
        provenance=provenance,
        overwrite=force,
    )


def make_case(
    loaded: LoadedModel,
    table: Path | MemoryFile,
    choices: AuditChoices,
    progress: Progress,
    engine: Engine | None,
) -> tuple[Case, Any, Any]:
    """Bring a model and a table together.

    Returns
    -------
    case : Case
    people : DataFrame
        Those in memory: all, or a sample of a file that streams.
    labels : ndarray
    """
    from likewise.cli.case import (
        Case,
        call_classes,
        fit_metric,
        is_plain,
        metric_columns,
        read_metric,
    )
    from likewise.cli.gaps_of_people import settle_gaps
    from likewise.cli.people_of_table import as_column_values
    from likewise.cli.sources import open_people
    from likewise.models.matching import match_model

    edits = parse_edits(choices.edit)
    metric = read_metric(choices.metric)
    named = (*choices.sensitive, *choices.immutable, *edits)
    columns = metric_columns(metric)
    asked = _asked(loaded, choices, metric, (*named, *columns))
    source = open_people(table, asked, engine)
    matched = match_model(
        loaded,
        source.filled,
        make_domain=lambda used: source.domain(used, [name for name in choices.immutable if name in used]),
        widen=source.widened,
        immutable=choices.immutable,
        needed=(*named, *columns),
        encoder=None if metric is None else metric.feature_map,
        takes=choices.model_takes,
        loss=choices.loss,
    )
    if not matched.model.loss.regression:
        matched = call_classes(matched, source.values, choices.positive)
    if metric is None:
        plain = is_plain(choices.metric)
        metric = fit_metric(
            source.filled, choices.sensitive, matched.domain, plain=plain, told=source.frame
        ).metric_
    settled = settle_gaps(matched, source, choices.reading.policy, choices.immutable)
    for note in (*source.notes, matched.note, settled.note):
        if note:
            progress.note(note)
    case = Case(
        settled.matched,
        settled.people,
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
        settled.gaps,
        source.frame[list(choices.sensitive)],
        choices.tolerance or None,
    )
    return case, settled.frame, source.labels


def _asked(
    loaded: LoadedModel, choices: AuditChoices, metric: FairMetric | None, needed: tuple[str, ...]
) -> Asked:
    """What is asked of the table: the user's choices, and what the model and the metric know of its columns."""
    from likewise.cli.case import plans_of
    from likewise.cli.table_columns import WIDEST_AUDIT, Asked
    from likewise.models.matching import model_columns

    used, width, encoder = model_columns(loaded)
    return Asked(
        choices.target,
        choices.positive,
        choices.reading,
        needed=needed,
        used=used,
        width=width,
        plans=plans_of(encoder) | plans_of(None if metric is None else metric.feature_map),
        sample=choices.sample,
        seed=choices.seed,
        widest=WIDEST_AUDIT,
    )


def check_choices(choices: AuditChoices) -> None:
    """Raise where choices are missing or do not go together, before anything is read."""
    parse_budget(choices.eps)
    parse_edits(choices.edit)
    if choices.twins is None and (choices.graph is not None or choices.rules is not None):
        raise InputError(
            "--graph and --rules say what follows from an attribute for --twins. Add --twins all."
        )
    if choices.twins is not None and not choices.sensitive:
        raise InputError("--twins needs to know what twins differ in. Name it: --sensitive COLUMN.")
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


def _show(
    result: AuditResult,
    extras: dict[str, Any],
    json_file: str | None,
    html_file: Path | None,
    page: dict[str, Any],
    *,
    name: str,
    quiet: bool,
    force: bool,
) -> None:
    from likewise import report
    from likewise.texts import Texts

    if html_file is not None:
        title = Texts(page["language"])("page.title.audit_of", name=name)
        report.write_html(result, html_file, title=title, overwrite=force, **page, **extras)
    if json_file == "-":
        document = report.audit_document(result, name=name, **extras)
        click.echo(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
        return
    if json_file is not None:
        report.write_json(result, json_file, overwrite=force, **extras)
    if quiet:
        return
    report.print_audit(result, evaluation=extras["evaluation"], twins=extras.get("twins", ()))
    for path in (html_file, json_file):
        if path is not None:
            click.echo(f"Wrote {path}")


def _provenance(ctx: click.Context) -> Provenance:
    from likewise.report.provenance import Provenance

    given = ctx.params
    return Provenance.now(
        tables=[given["table"]], models=[given["model"]], seed=given["seed"], command=repeated_command(ctx)
    )


def _judge(result: AuditResult) -> None:
    result.raise_if_unanswered()
    if result.delta is not None:
        result.raise_if_unfair()
    elif result.status != "converged":
        raise NotConvergedError("the audit did not converge: " + "; ".join(result.reasons))
