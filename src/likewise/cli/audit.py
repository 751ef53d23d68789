"""`likewise audit`: is this model unfair to individuals, to whom, by how much; the exit code tells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likewise.cli.options import (
    TableChoices,
    example,
    options,
    parse_budget,
    parse_edits,
    repeated_command,
    table_options,
)
from likewise.cli.output import check_outputs
from likewise.core.errors import InputError, LikewiseError, NotConvergedError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.auditing.case import Case
    from likewise.auditing.partitions.engine import Engine
    from likewise.cli.output import Progress
    from likewise.counterfactuals.study import TwinStudy
    from likewise.data.opening import MemoryFile
    from likewise.evaluation.impact import ImpactTable
    from likewise.models.matching import Matched
    from likewise.models.model_files import LoadedModel
    from likewise.report.provenance import Provenance

# The engine that the options of a verb ask for, started before any work is done.


def check_engine(engine: str, scheduler: str | None, workers: int | None, map_folder: Path | None) -> None:
    """Refuse options that do not go together, and a folder that cannot be written."""
    if engine == "local" and (scheduler is not None or workers is not None):
        option = "--workers" if scheduler is None else "--scheduler"
        raise InputError(f"{option} is for Dask. Add --engine dask.")
    if scheduler is not None and workers is not None:
        raise InputError(
            "--workers starts workers on this machine, --scheduler uses those that run. Choose one."
        )
    if map_folder is not None:
        from likewise.auditing.partitions.tables import MapFolder

        MapFolder(map_folder)


@contextmanager
def open_engine(
    engine: str, scheduler: str | None, workers: int | None, map_folder: Path | None, progress: Progress
) -> Iterator[Engine | None]:
    """Start or reach what an engine needs."""
    if engine == "local":
        from likewise.auditing.partitions.engine import LocalEngine

        yield None if map_folder is None else LocalEngine()
        return
    from likewise.auditing.partitions.dask import DaskEngine

    with ExitStack() as opened:
        with progress.stage("Reaching workers" if scheduler else "Starting workers"):
            dask = opened.enter_context(DaskEngine(scheduler, workers or 2))
        if dask.dashboard is not None:
            if not progress.shown:  # else it is said beside the bar
                progress.note(f"dashboard of {dask.describe()}: {dask.dashboard}")
        else:
            progress.note("install bokeh to watch the workers on Dask's dashboard.")
        yield dask


# `--explore`: what a page needs so that its readers can edit people, from the case of the command line.


def check_explorable(case: Case, people: pd.DataFrame) -> None:
    """Raise before any work is done where the page of a case could not be explored."""
    from likewise.report.explore import page_model

    if isinstance(case.frame, Path):
        raise InputError(
            "--explore puts some of the people into the page, and this table is read part by part. Pass --sample."
        )
    page_model(case.matched.model, case.matched.domain, people[list(case.matched.columns)])


def explore_case(case: Case, people: pd.DataFrame, result: AuditResult, *, name: str) -> dict[str, Any]:
    """Return the panel of an audit as plain data."""
    from likewise.report.explore import explore_document

    matched = case.matched
    return explore_document(
        matched.domain,
        people[list(matched.columns)],
        case.y,
        models={name: matched.model},
        metric=case.metric,
        sensitive=case.sensitive,
        results={name: result},
        seed=case.seed,
    )


# Impact ratios of an audited model on the people in memory, or why there are none.


def impact_of_case(case: Case, people: pd.DataFrame) -> tuple[tuple[ImpactTable, ...], tuple[str, ...]]:
    """Return rates and impact ratios by each sensitive column and each two of them, and what a reader must know."""
    from likewise.auditing.case_evaluation import MAX_GROUPS
    from likewise.evaluation.impact import above_median, impact_tables

    told = people if case.told is None else case.told
    groups = [name for name in case.sensitive if 2 <= told[name].nunique() <= MAX_GROUPS]
    notes = [
        f"There are no impact ratios by {name}: it has {told[name].nunique():,} values."
        for name in case.sensitive
        if name not in groups
    ]
    if not groups:
        return (), tuple(notes)
    answers: Any = case.matched.decide(people)
    classes = case.matched.model.classes_
    if classes is None:
        kind, outcome, selected = "scoring", "predicted above the median", above_median(answers)
    elif len(classes) == 2:
        favoured = classes[1]
        kind, outcome, selected = "selection", f"predicted {favoured}", np.asarray(answers) == favoured
    else:
        notes.append(
            f"There are no impact ratios: the model chooses among {len(classes)} classes, so that nobody is plainly "
            "selected (--positive names the value that counts)."
        )
        return (), tuple(notes)
    if not isinstance(case.frame, type(people)):
        notes.append(f"The rates are those of a random sample of {len(people):,} people of the files.")
    return impact_tables(selected, told, groups, kind=kind, outcome=outcome), tuple(notes)  # type: ignore[arg-type]


# An audit that can be repeated: its options as plain text, the files it read with their hashes, and the way
# back.


# Options that name files which the audit reads.
_READ = ("metric", "columns", "graph", "rules")


def recorded_options(
    command: click.Command, values: Mapping[str, Any], names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the options of a run as text, by their long names."""
    found: dict[str, list[str]] = {}
    for option in _options(command, names).values():
        value = values.get(str(option.name))
        if value is None or value == ():
            continue
        many = value if option.multiple else [value]
        found[_long(option)] = [str(one).lower() if isinstance(one, bool) else str(one) for one in many]
    return found


def arguments_of(
    command: click.Command, options: Mapping[str, Sequence[str]], names: Sequence[str]
) -> list[str]:
    """Return recorded options as the command line takes them; one that is not among `names` is refused."""
    known = _options(command, names)
    found = []
    for name, values in options.items():
        if name not in known:
            raise InputError(
                f"The evidence asks for the option '--{name}', which a replay never takes from a file."
            )
        option = known[name]
        if not option.is_flag:
            found += [f"--{name}={value}" for value in values]
            continue
        wanted = bool(values) and values[-1] == "true"
        flags = option.opts if wanted else option.secondary_opts
        found += [flag for flag in flags if flag.startswith("--")][:1]
    return found


def inputs_of(
    model: str, table: Path, options: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, str | None]]:
    """Return what an audit reads: the path of each file as it was given, and its SHA-256."""
    from likewise.models.containers import sidecar_path
    from likewise.report.provenance import hash_of

    paths = {"model": model, "table": str(table)}
    if sidecar_path(model).is_file():
        paths["model description"] = str(sidecar_path(model))
    paths |= {name: options[name][-1] for name in _READ if name in options}
    return {name: {"path": path, "sha256": hash_of(path)} for name, path in paths.items()}


def _options(command: click.Command, names: Sequence[str]) -> dict[str, click.Option]:
    wanted = {*names, *(field.name for field in fields(TableChoices))}
    return {
        _long(option): option
        for option in command.params
        if isinstance(option, click.Option) and option.name in wanted
    }


def _long(option: click.Option) -> str:
    return next(flag[2:] for flag in option.opts if flag.startswith("--"))


# Three kinds of twins of the people of an audit: what `--twins`, `--graph` and `--rules` ask for.


QUESTIONS = ("attribute", "consequences", "matched")


class _Asked:
    """A matched model as twins ask it: tables in, decisions and, where it has them, probabilities out."""

    def __init__(self, matched: Matched) -> None:
        self._matched = matched
        if matched.model.loss.wants == "probabilities" and not matched.model.loss.regression:
            self.predict_proba = self._shares
            self.classes_ = matched.model.known_classes

    def predict(self, table: Any) -> Any:
        return self._matched.decide(table)

    def _shares(self, table: Any) -> Any:
        model = self._matched.model
        rows = table[list(self._matched.columns)]
        return model.predict_proba(rows if model.takes_frame else self._matched.domain.encode_array(rows))


def check_twins(case: Case, people: pd.DataFrame, choices: AuditChoices) -> dict[str, str]:
    """Read graph and rules before the audit is run, and raise where they fit no sensitive column."""
    from likewise.counterfactuals.causal.consequences import Consequences

    if choices.graph is None and choices.rules is None:
        if choices.twins == "consequences":
            raise InputError(
                "--twins consequences needs to know them. Add --rules learned, --rules rules.toml or --graph file.dot."
            )
        return {}
    from likewise.counterfactuals.edits import Edit

    without: dict[str, str] = {}
    seen = _seen(case)
    for name in seen:
        given = Consequences(graph=choices.graph, rules=choices.rules)
        try:
            given.maker(Edit(name)).check(people[list(case.matched.columns)])
        except LikewiseError as error:
            if len(without) == len(seen) - 1:
                raise
            without[name] = str(error)
    return without


def twins_of_case(
    case: Case, people: pd.DataFrame, choices: AuditChoices, without: Mapping[str, str]
) -> tuple[list[TwinStudy], tuple[str, ...]]:
    """Study the twins of every sensitive column."""
    from likewise.counterfactuals.causal.consequences import Consequences
    from likewise.counterfactuals.matched import MatchedTwins
    from likewise.counterfactuals.study import twin_study

    regression = case.matched.model.loss.regression
    model = _Asked(case.matched)
    given = choices.graph is not None or choices.rules is not None
    rules = choices.rules if given else "learned"
    studies, notes = [], [f"consequences of {name} are n/a: {why}" for name, why in without.items()]
    for name in _seen(case):
        asked = [*QUESTIONS] if choices.twins == "all" else [str(choices.twins)]
        asked = [question for question in asked if question != "consequences" or name not in without]
        if not asked:
            continue
        try:
            studies.append(
                twin_study(
                    model,
                    people[list(case.matched.columns)],
                    name,
                    questions=asked,
                    consequences=Consequences(graph=choices.graph, rules=rules, random_state=case.seed),
                    matched=MatchedTwins(name, metric=case.metric),
                    tolerance=choices.tolerance if regression else None,
                    confidence=case.confidence,
                    random_state=case.seed,
                )
            )
        except LikewiseError as error:
            if given:
                raise
            notes.append(f"kinds of twins by {name} are n/a: {error}")
    notes += [
        f"kinds of twins by {name} are n/a: the model does not look at it"
        for name in case.sensitive
        if name not in case.matched.columns
    ]
    return studies, tuple(notes)


def _seen(case: Case) -> list[str]:
    return [name for name in case.sensitive if name in case.matched.columns]


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
        from likewise.report.evidence.folder import check_folder

        check_folder(evidence_folder, overwrite=force)
    from likewise.cli.output import Progress

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
    """An audit that has been run."""

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
    from likewise.auditing.case import audit_case
    from likewise.auditing.case_evaluation import diagnose_metric, evaluate_case

    with progress.stage(f"Reading {table.name}"):
        case = make_case(loaded, table, choices, engine)
        people = case.people
        for note in case.notes:
            progress.note(note)
        if explore:
            check_explorable(case, people)
        without = {} if choices.twins is None else check_twins(case, people, choices)
    with progress.stage("Auditing", spinner=False):
        result = audit_case(case, progress=progress.searches, engine=engine, map_folder=map_folder)
    with progress.stage("Evaluating"):
        evaluation, unknown = evaluate_case(case)
        asked = case.sensitive if diagnose else ()
        found, hidden = diagnose_metric(case.metric, people, asked, choices.seed)
        for why in (*unknown, *hidden):
            progress.note(why)
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
    loaded: LoadedModel, table: Path | MemoryFile, choices: AuditChoices, engine: Engine | None = None
) -> Case:
    """Bring a model and a table together."""
    from likewise.auditing.case import prepare_case, read_metric, table_request
    from likewise.auditing.case_evaluation import as_edits
    from likewise.auditing.sources import open_people

    words = parse_edits(choices.edit)
    metric = read_metric(choices.metric)
    asked = table_request(
        loaded,
        metric,
        (*choices.sensitive, *choices.immutable, *words),
        target=choices.target,
        positive=choices.positive,
        choices=choices.reading,
        sample=choices.sample,
        seed=choices.seed,
        keeps_missing=True,
    )
    people = open_people(table, asked, engine)
    return prepare_case(
        loaded,
        people,
        sensitive=choices.sensitive,
        metric=metric,
        edits=as_edits(people.frame, words),
        immutable=choices.immutable,
        takes=choices.model_takes,
        loss=choices.loss,
        positive=choices.positive,
        missing=choices.reading.policy,
        eps=parse_budget(choices.eps),
        delta=choices.delta,
        confidence=choices.confidence,
        search=choices.search,
        seed=choices.seed,
        budget=choices.budget,
        tolerance=choices.tolerance or None,
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
    from likewise.core.messages import Texts

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
