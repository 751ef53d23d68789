"""An audit as the command line asks for it: its choices, the case that they make, and the run; for `audit`, `serve`, `replay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likewise.cli.options import EPS, TWINS, TableChoices
from likewise.cli.reading import parse_budget, parse_edits
from likewise.core.errors import InputError, LikewiseError
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
    twins: tuple[str, ...] = ()
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
        """What ``--twins`` says of consequences: a graph, rules or both."""
        said = [name for name in self.twins if name not in TWINS]
        return {"graph" if name.endswith((".dot", ".gv")) else "rules": name for name in said}

    @property
    def questions(self) -> list[str]:
        """Kinds of twins to compare: those that are named, or all."""
        named = [name for name in TWINS[:-1] if name in self.twins]
        return named if named and "all" not in self.twins else [*TWINS[:-1]]


def check_choices(choices: AuditChoices) -> None:
    """Raise if choices are missing or do not go together, before anything is read."""
    parse_budget(choices.eps or "0")
    parse_edits(choices.edit)
    if choices.delta is not None and choices.target is None:
        raise InputError(
            "--delta limits what is added to the mean loss, which needs labels. Name them: --target COLUMN."
        )
    for word in choices.twins:
        if word not in (*TWINS, "learned") and not word.endswith((".toml", ".dot", ".gv")):
            raise InputError(
                f"--twins takes {', '.join(TWINS)}, FILE.toml, FILE.dot or learned, got {word!r}."
            )
    if len(choices.consequences) < len({*choices.twins} - {*TWINS}):
        raise InputError("--twins takes one file of rules (.toml, or the word learned) and one graph (.dot).")
    if choices.twins and not choices.sensitive:
        raise InputError("--twins needs to know what twins differ in. Name it: --sensitive COLUMN.")
    if choices.metric is None and not choices.sensitive:
        raise InputError(
            "Who is comparable with whom? Name the columns that decisions should not depend on (--sensitive COLUMN), or pass a "
            "metric (--metric FILE)."
        )
    both = [name for name in choices.sensitive if name in choices.immutable]
    if both:
        raise InputError(
            f"Column {both[0]!r} is both sensitive and immutable, so no twin could differ in it. Choose one."
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
    from likewise.auditing.first_answer import AuditRequest
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
        missing=choices.reading.missing,
        source=table.name,
    )


@dataclass(frozen=True, eq=False)
class Audited:
    """An audit that has been run."""

    result: AuditResult
    extras: dict[str, Any]
    case: Case


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
        for note in case.notes:
            progress.note(note)
        if explore:
            check_explorable(case)
        without = check_twins(case, choices) if choices.twins else {}
    with progress.stage("Auditing", spinner=False):
        result = audit_case(
            case, target=choices.target, progress=progress.searches, engine=engine, map_folder=map_folder
        )
    with progress.stage("Evaluating"):
        evaluation, unknown = evaluate_case(case)
        asked = case.sensitive if diagnose else ()
        found, hidden = diagnose_metric(case.metric, case.people, asked, choices.seed) if asked else ([], ())
        for why in (*unknown, *hidden):
            progress.note(why)
    extras: dict[str, Any] = {"evaluation": evaluation, "diagnoses": found}
    if choices.twins:
        with progress.stage("Comparing kinds of twins"):
            extras["twins"], unknown = twins_of_case(case, choices, without)
        for why in unknown:
            progress.note(why)
    return Audited(result, extras, case)


def check_explorable(case: Case) -> None:
    """Raise before any work is done if the page of a case could not be explored (``--set explore=yes``)."""
    from likewise.report.explore import page_model

    if case.table is not None:
        raise InputError(
            "--set explore=yes puts some of the people into the page, and this table is read part by part. Pass --sample."
        )
    page_model(case.matched.model, case.matched.domain, _seen_of(case))


def _seen_of(case: Case) -> pd.DataFrame:
    """The people, with the columns that the model looks at."""
    return case.people[list(case.matched.columns)]


# Impact ratios of an audited model on the people in memory, or why there are none.


def impact_of(audited: Audited) -> tuple[tuple[ImpactTable, ...], tuple[str, ...]]:
    """Return rates and impact ratios by each sensitive column and each two of them, and what a reader must know."""
    from likewise.auditing.case_evaluation import MAX_GROUPS
    from likewise.evaluation.impact import above_median, impact_tables

    case, favourable = audited.case, audited.result.favourable
    people = case.people
    groups = [name for name in case.sensitive if 2 <= case.told[name].nunique() <= MAX_GROUPS]
    notes = [
        f"Impact ratios by {name} are left out: it has {case.told[name].nunique():,} values."
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
            "Impact ratios are left out: the favourable decision is not known. Name it: --favourable VALUE."
        )
        return (), tuple(notes)
    if case.table is not None:
        notes.append(f"The rates are those of a random sample of {len(people):,} people of the files.")
    return impact_tables(selected, case.told, groups, kind=kind, outcome=outcome), tuple(notes)  # type: ignore[arg-type]


# Three kinds of counterparts of the people of an audit: what `--twins` asks for.


class _Asked:
    """A matched model as twins ask it: tables in, decisions and, if it has them, probabilities out."""

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


def check_twins(case: Case, choices: AuditChoices) -> dict[str, str]:
    """Read graph and rules before the audit is run, and raise if they fit no sensitive column."""
    from likewise.counterfactuals.causal.consequences import Consequences

    if not choices.consequences:
        if choices.questions == ["consequences"]:
            raise InputError(
                "--twins consequences needs to know them. Add --twins learned, --twins rules.toml or --twins graph.dot."
            )
        return {}
    from likewise.counterfactuals.edits import Edit

    without: dict[str, str] = {}
    seen = _seen(case)
    for name in seen:
        given = Consequences(**choices.consequences)
        try:
            given.maker(Edit(name)).check(_seen_of(case))
        except LikewiseError as error:
            if len(without) == len(seen) - 1:
                raise
            without[name] = str(error)
    return without


def twins_of_case(
    case: Case, choices: AuditChoices, without: Mapping[str, str]
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
        asked = [
            question for question in choices.questions if question != "consequences" or name not in without
        ]
        if not asked:
            continue
        try:
            studies.append(
                twin_study(
                    model,
                    _seen_of(case),
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
            if choices.consequences:
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


# What is recorded of an audit, so that it can be repeated.

# Files that a model is made of besides the one that is named.
PART = "part of the model "
# Options that a repetition takes over. None of them lets a file run code, writes a file or opens a connection.
REPEATED = (
    "target", "favourable", "sensitive", "edit", "metric", "limit", "eps", "delta", "twins", "columns", "read", "sample",
    "seed", "set",
)  # fmt: skip


def recorded_options(ctx: click.Context) -> dict[str, list[str]]:
    """Return the options of an audit as text, by their long names."""
    found: dict[str, list[str]] = {}
    for name in REPEATED:
        value = ctx.params[name]
        if value is not None and value != ():
            found[name] = [str(one) for one in (value if isinstance(value, tuple) else [value])]
    return found


def rule_files(options: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the files of rules and graphs that ``--twins`` names."""
    return [word for word in options.get("twins", ()) if word not in (*TWINS, "learned")]


def inputs_of(
    model: str, table: Path, options: Mapping[str, Sequence[str]], config: str | None = None
) -> dict[str, dict[str, str | None]]:
    """Return what an audit reads: the path of each file as it was given, and its SHA-256."""
    from likewise.models.containers import model_files
    from likewise.report.provenance import hash_of

    paths = {"model": model, "table": str(table)}
    if Path(model).is_file():
        # By their names: a model that has moved is the same one if all of it has.
        parts = model_files(Path(model))
        paths |= {f"{PART}{name}": str(part) for name, part in parts.items() if part != Path(model)}
    paths |= {name: options[name][-1] for name in ("metric", "columns") if name in options}
    paths |= {} if config is None else {"config": config}
    paths |= {f"file of rules {path}": path for path in rule_files(options)}
    return {name: {"path": path, "sha256": hash_of(path)} for name, path in paths.items()}
