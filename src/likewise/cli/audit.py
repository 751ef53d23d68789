"""`likewise audit`: is this model unfair to individuals, to whom, by how much; the exit code tells."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likewise.cli.options import (
    EPS,
    SETTINGS,
    Outputs,
    TableChoices,
    example,
    options,
    outputs,
    parse_budget,
    parse_edits,
    repeated_command,
    settings,
    table_options,
    trusting,
    verb,
)
from likewise.cli.output import deliver
from likewise.core.errors import InputError, LikewiseError, NotConvergedError
from likewise.core.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.auditing.case import Case
    from likewise.auditing.partitions.engine import Engine
    from likewise.counterfactuals.study import TwinStudy
    from likewise.data.opening import MemoryFile
    from likewise.evaluation.impact import ImpactTable
    from likewise.models.matching import Matched
    from likewise.models.model_files import LoadedModel
    from likewise.report.provenance import Provenance


@contextmanager
def open_engine(engine: str, map_folder: Path | None, progress: Progress) -> Iterator[Engine | None]:
    """Start or reach what ``--engine`` names."""
    name, _, where = engine.partition(":")
    if name == "local":
        from likewise.auditing.partitions.engine import LocalEngine

        yield None if map_folder is None else LocalEngine()
        return
    from likewise.auditing.partitions.dask import DaskEngine

    workers = int(where) if where.isdigit() else 2
    address = None if where.isdigit() else where or None
    with ExitStack() as opened:
        with progress.stage("Connecting to workers" if address else "Starting workers"):
            dask = opened.enter_context(DaskEngine(address, workers))
        if dask.dashboard is None:
            progress.note("install bokeh to watch the workers on Dask's dashboard.")
        elif not progress.shown:  # else it is shown beside the bar
            progress.note(f"dashboard of {dask.describe()}: {dask.dashboard}")
        yield dask


def _check(choices: AuditChoices, outputs: Outputs, engine: str, explore: bool) -> None:
    """Refuse what does not go together, before anything is read."""
    check_choices(choices)
    name, _, where = engine.partition(":")
    if name not in ("local", "dask") or (name == "local" and where) or where == "0":
        raise InputError(f"--engine must be local, dask, dask:WORKERS or dask:ADDRESS, got {engine!r}.")
    if explore and outputs.get("html") is None:
        raise InputError("--set explore=yes is about the page. Name it: -o FILE.html.")
    if (map_folder := outputs.get("parquet")) is not None:
        from likewise.auditing.partitions.tables import MapFolder

        MapFolder(map_folder)
    if (evidence := outputs.get("folder")) is not None:
        from likewise.report.evidence.folder import check_folder

        check_folder(evidence, overwrite=outputs.force)


# `--set explore=yes`: what a page needs so that its readers can edit people, from the case of the command line.


def check_explorable(case: Case, people: pd.DataFrame) -> None:
    """Raise before any work is done where the page of a case could not be explored."""
    from likewise.report.explore import page_model

    if isinstance(case.frame, Path):
        raise InputError(
            "--set explore=yes puts some of the people into the page, and this table is read part by part. Pass --sample."
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
        sensitive_features=case.sensitive,
        results={name: result},
        places=case.places,
        seed=case.request.random_state,
    )


# Impact ratios of an audited model on the people in memory, or why there are none.


def impact_of(audited: Audited) -> tuple[tuple[ImpactTable, ...], tuple[str, ...]]:
    """Return rates and impact ratios by each sensitive column and each two of them, and what a reader must know."""
    from likewise.auditing.case_evaluation import MAX_GROUPS
    from likewise.evaluation.impact import above_median, impact_tables

    case, people, favourable = audited.case, audited.people, audited.result.favourable
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
    if case.matched.model.loss.regression:
        kind, outcome, selected = "scoring", "predicted above the median", above_median(answers)
    elif favourable is not None:
        kind, outcome, selected = "selection", f"predicted {favourable}", np.asarray(answers) == favourable
    else:
        notes.append(
            "There are no impact ratios: the favourable decision is not known. Name it: --favourable VALUE."
        )
        return (), tuple(notes)
    if not isinstance(case.frame, type(people)):
        notes.append(f"The rates are those of a random sample of {len(people):,} people of the files.")
    return impact_tables(selected, told, groups, kind=kind, outcome=outcome), tuple(notes)  # type: ignore[arg-type]


# Three kinds of twins of the people of an audit: what `--twins` and `--rules` ask for.


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

    if not choices.rules:
        if choices.twins == "consequences":
            raise InputError(
                "--twins consequences needs to know them. Add --rules learned, --rules rules.toml or --rules graph.dot."
            )
        return {}
    from likewise.counterfactuals.edits import Edit

    without: dict[str, str] = {}
    seen = _seen(case)
    for name in seen:
        given = Consequences(**choices.consequences)
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
    given = choices.consequences or {"rules": "learned"}
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
                    consequences=Consequences(**given, random_state=case.request.random_state),
                    matched=MatchedTwins(name, metric=case.metric),
                    tolerance=choices.tolerance if regression else None,
                    confidence=case.request.confidence,
                    random_state=case.request.random_state,
                )
            )
        except LikewiseError as error:
            if choices.rules:
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

    target: str | None
    favourable: str | None
    sensitive: tuple[str, ...]
    immutable: tuple[str, ...]
    reading: TableChoices
    edit: tuple[str, ...]
    eps: str | None
    delta: float | None
    confidence: float
    metric: Path | None
    search: str
    budget_seconds: float | None
    loss: str
    seed: int
    sample: int | None
    model_takes: str
    tolerance: float
    twins: str | None = None
    rules: tuple[str, ...] = ()
    limit: float | None = None

    @property
    def question_one(self) -> bool:
        """Whether counterparts by the sensitive columns alone are all there is to look for."""
        alone = self.metric is None or str(self.metric) == "columns"
        return alone and not self.edit and self.search == "auto" and parse_budget(self.eps or "0") == 0.0

    @property
    def asks_worst_case(self) -> bool:
        """Whether more is asked than what changes when only the sensitive columns do."""
        asked = (self.metric, self.eps, self.delta)
        return not self.question_one or any(one is not None for one in asked)

    @property
    def consequences(self) -> dict[str, Any]:
        """What ``--rules`` names: a graph, rules or both."""
        return {"graph" if name.endswith((".dot", ".gv")) else "rules": name for name in self.rules}


@verb(
    "audit",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise audit model.safetensors people.csv --target target --sensitive sex -o audit.html",
        after="Exit codes: 0 within --limit (or none set), 1 beyond it, 2 bad input, 3 could not be answered: a search did "
        "not converge, or model and table do not belong together.",
    ),
)
@click.argument("model")
@click.argument("table", type=click.Path(path_type=Path))
@options(
    "target_left_out",
    "favourable",
    "sensitive",
    "limit",
    "edit",
    "metric",
    "eps_asked",
    "delta",
    "twins",
    "rules",
)
@table_options
@options("sample", "budget", "seed")
@settings(*SETTINGS)
@outputs("html", "json", "-", "folder", "parquet")
@options("full", "language", "engine", "trust", "quiet", "config")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    table: Path,
    outputs: Outputs,
    explore: bool,
    language: str,
    engine: str,
    trust: Sequence[str],
    diagnose: bool,
    full: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Say whose decision changes when only the sensitive columns do, and in which direction.

    MODEL is a file (likewise's own, ONNX, XGBoost, LightGBM, CatBoost, skops) or package.module:attribute.
    TABLE is CSV, Parquet, Arrow, JSON lines or Excel, with the people in their own units; a folder or a quoted pattern
    of Parquet files ('people/*.parquet') is read part by part.
    """
    choices = AuditChoices(**given)
    _check(choices, outputs, engine, explore)
    progress = Progress(quiet)
    loaded = load(model, trust, progress)
    map_folder = outputs.get("parquet")
    with open_engine(engine, map_folder, progress) as runner:
        audited = run_audit(
            loaded, table, choices, progress, runner, map_folder, diagnose=diagnose, explore=explore
        )
    from likewise import report
    from likewise.core.messages import Texts
    from likewise.core.plain import to_json
    from likewise.models.containers import model_files
    from likewise.report.provenance import Provenance

    result, evaluation = audited.result, audited.extras["evaluation"]
    provenance = Provenance.now(
        tables=[table],
        models=[model, *(model_files(Path(model))[1:] if Path(model).is_file() else ())],
        seed=choices.seed,
        command=repeated_command(ctx),
    )
    extras = audited.extras | {"provenance": provenance}
    page: dict[str, Any] = {
        "title": Texts(language)("page.title.audit_of", name=model),
        "language": language,
        "explore": explore_case(audited.case, audited.people, result, name=model) if explore else None,
    }
    force = outputs.force
    deliver(
        outputs,
        quiet=quiet,
        document=lambda: to_json(report.audit_document(result, name=model, **extras)),
        show=lambda: report.print_audit(
            result,
            full=full,
            language=language,
            evaluation=evaluation,
            twins=extras.get("twins", ()),
            lines=20 - progress.lines - bool(outputs.paths),
        ),
        html=lambda path: report.write_html(result, path, overwrite=force, **page, **extras),
        json=lambda path: report.write_json(result, path, overwrite=force, **extras),
        folder=lambda path: _leave_evidence(ctx, audited, path, provenance, force=force),
    )
    limit = result.headline.limit
    if limit is not None and limit.passed is False and sys.stdout.isatty() and not quiet:
        ctx.exit(1)  # the last line on the screen says why
    _judge(result)


@dataclass(frozen=True, eq=False)
class Audited:
    """An audit that has been run."""

    result: AuditResult
    extras: dict[str, Any]
    case: Case
    people: Any


def load(model: str, trust: Sequence[str], progress: Progress) -> LoadedModel:
    """Load a model file, as far as the user trusts it."""
    from likewise.models.model_files import read_model

    with progress.stage(f"Loading {model}"):
        return read_model(model, **trusting(trust))


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
    from likewise.auditing.auditor import audit_case
    from likewise.auditing.case_evaluation import diagnose_metric, evaluate_case

    with progress.stage(f"Reading {table.name}"):
        case = make_case(loaded, table, choices, engine, maps=map_folder is not None)
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
        found, hidden = diagnose_metric(case.metric, people, asked, choices.seed) if asked else ([], ())
        for why in (*unknown, *hidden):
            progress.note(why)
    extras: dict[str, Any] = {"evaluation": evaluation, "diagnoses": found}
    if choices.twins is not None:
        with progress.stage("Comparing kinds of twins"):
            extras["twins"], unknown = twins_of_case(case, people, choices, without)
        for why in unknown:
            progress.note(why)
    return Audited(result, extras, case, people)


def _leave_evidence(
    ctx: click.Context, audited: Audited, folder: Path, provenance: Provenance, *, force: bool
) -> None:
    from likewise.cli.replay import inputs_of, recorded_options
    from likewise.report.evidence import write_evidence

    options = recorded_options(ctx)
    impact, notes = impact_of(audited)
    write_evidence(
        audited.result,
        folder,
        name=ctx.params["model"],
        evaluation=audited.extras["evaluation"],
        impact=impact,
        impact_notes=notes,
        options=options,
        inputs=inputs_of(ctx.params["model"], ctx.params["table"], options),
        provenance=provenance,
        overwrite=force,
    )


def make_case(
    loaded: LoadedModel,
    table: Path | MemoryFile,
    choices: AuditChoices,
    engine: Engine | None = None,
    *,
    maps: bool = False,
) -> Case:
    """Bring a model and a table together; the unfair map of everybody (`maps`) asks for the worst case."""
    from likewise.auditing.case import prepare_case, read_metric, table_request
    from likewise.auditing.case_evaluation import as_edits
    from likewise.auditing.request import AuditRequest
    from likewise.auditing.sources import open_people

    words = parse_edits(choices.edit)
    metric = read_metric(choices.metric) or "columns"
    asked = table_request(
        loaded,
        metric,
        (*choices.sensitive, *choices.immutable, *words),
        target=choices.target,
        favourable=choices.favourable,
        choices=choices.reading,
        sample=choices.sample,
        seed=choices.seed,
        keeps_missing=True,
    )
    people = open_people(table, asked, engine)
    request = AuditRequest.of(
        metric=metric,
        edits=as_edits(people.frame, words),
        loss=choices.loss,
        eps=parse_budget(choices.eps or ("0" if metric == "columns" else f"{EPS}")),
        delta=choices.delta,
        limit=choices.limit,
        confidence=choices.confidence,
        search=() if choices.question_one else choices.search,
        random_state=choices.seed,
        budget_seconds=choices.budget_seconds,
        tolerance=choices.tolerance or None,
        worst_case=maps or choices.asks_worst_case,
    )
    return prepare_case(
        loaded,
        people,
        request,
        sensitive=choices.sensitive,
        immutable=choices.immutable,
        takes=choices.model_takes,
        favourable=choices.favourable,
        missing=choices.reading.policy,
        source=table.name,
    )


def check_choices(choices: AuditChoices) -> None:
    """Raise where choices are missing or do not go together, before anything is read."""
    parse_budget(choices.eps or "0")
    parse_edits(choices.edit)
    if choices.delta is not None and choices.target is None:
        raise InputError(
            "--delta limits what is added to the mean loss, which needs labels. Name them: --target COLUMN."
        )
    if choices.twins is None and choices.rules:
        raise InputError("--rules says what follows from an attribute, for --twins. Add --twins all.")
    if len(choices.consequences) < len(choices.rules):
        raise InputError("--rules takes one file of rules (.toml, or the word learned) and one graph (.dot).")
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


def _judge(result: AuditResult) -> None:
    result.raise_if_unanswered()
    if result.delta is not None or result.limit is not None:
        result.raise_if_unfair()
    elif result.status != "converged":
        raise NotConvergedError("The audit did not converge: " + "; ".join(result.reasons))
