"""`likewise compare`: several models on one table: how accurate, how fair, and which of them nobody beats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likewise.cli.options import example, options, parse_budget, parse_edits, repeated_command, table_options
from likewise.cli.output import check_outputs
from likewise.cli.train import METHODS
from likewise.core.errors import InputError

if TYPE_CHECKING:
    from likewise.cli.output import Progress
    from likewise.counterfactuals.edits import EditParts
    from likewise.data.case import People
    from likewise.data.tabular import TabularDomain
    from likewise.fair_metrics import FairMetric
    from likewise.models.matching import Matched
    from likewise.report.provenance import Provenance

DEFAULT = ("baseline", "project", "sensr")
TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Setting:
    """What all compared models share."""

    train: People
    test: People
    domain: TabularDomain
    metric: FairMetric
    sensitive: tuple[str, ...]
    edits: EditParts
    eps: float | Mapping[str, float]
    confidence: float
    search: str
    loss: str
    seed: int


@click.command(
    "compare",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise compare people.csv --target target --sensitive sex --html compare.html",
    ),
)
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--method",
    "methods",
    type=click.Choice(sorted(METHODS)),
    multiple=True,
    help="Method to train. Repeatable; baseline, project and sensr by default.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]MODEL",
    help="Trained model to compare too. Repeatable.",
)
@options(
    "target", "positive", "classes", "sensitive", "immutable", "edit", "eps", "confidence", "metric", "search",
)  # fmt: skip
@table_options
@click.option("--steps", type=click.IntRange(min=1), help="Training steps; by default the method's own.")
@options(
    "json",
    "html",
    "language",
    "seed",
    "sample",
    "allow_pickle",
    "trust",
    "trust_type",
    "quiet",
    "force",
    "config",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    table: Path,
    methods: tuple[str, ...],
    models: tuple[str, ...],
    steps: int | None,
    json_file: str | None,
    html_file: Path | None,
    language: str,
    allow_pickle: bool,
    trust: bool,
    trust_type: Sequence[str],
    quiet: bool,
    force: bool,
    **given: Any,
) -> None:
    """Train several methods on 80% of a table, audit and evaluate all on the rest, side by side."""
    check_outputs([html_file, None if json_file in (None, "-") else Path(str(json_file))], force=force)
    if given["metric"] is None and not given["sensitive"]:
        raise InputError("Who is comparable with whom? Pass --sensitive COLUMN or --metric FILE.")
    parse_budget(given["eps"])
    from likewise.cli.output import Progress
    from likewise.models.model_files import read_model
    from likewise.report import Comparison
    from likewise.report.provenance import Provenance

    progress = Progress(quiet)
    ready = {}
    for text in models:
        name, source = _named(text)
        with progress.stage(f"Loading {source}"):
            ready[name] = read_model(source, allow_pickle=allow_pickle, trusted=trust_type, trust=trust)
    with progress.stage(f"Reading {table.name}"):
        setting = _setting(table, given, progress)
    compared = {}
    chosen = methods or (() if models else DEFAULT)
    for name in dict.fromkeys(chosen):
        compared[METHODS[name].title] = _train(name, setting, steps, progress)
    for name, loaded in ready.items():
        compared[name] = _match(loaded, setting, given)
    setting = _searched_alike(setting, compared, progress)
    entries = {name: _measure(name, matched, setting, progress) for name, matched in compared.items()}
    provenance = Provenance.now(
        tables=[table],
        models=[_named(text)[1] for text in models],
        seed=given["seed"],
        command=repeated_command(ctx),
    )
    show_comparison(
        Comparison.of(entries),
        json_file,
        html_file,
        quiet=quiet,
        force=force,
        language=language,
        provenance=provenance,
    )


def _named(text: str) -> tuple[str, str]:
    name, equals, source = text.partition("=")
    return (name, source) if equals and source and name else (Path(text).name, text)


def _setting(table: Path, given: dict[str, Any], progress: Progress) -> Setting:
    from likewise.auditing.case import build_metric, read_metric, table_request
    from likewise.auditing.case_evaluation import as_edits
    from likewise.data.case import read_people
    from likewise.data.target import check_classes, leakage_notes

    edits = parse_edits(given["edit"])
    metric = read_metric(given["metric"])
    asked = table_request(
        None,
        metric,
        (*given["sensitive"], *given["immutable"], *edits),
        target=given["target"],
        positive=given["positive"],
        choices=given["reading"],
        sample=given["sample"],
        seed=given["seed"],
    )
    people = read_people(table, asked)
    for note in people.notes:
        progress.note(note)
    labels = np.asarray(people.labels)
    check_classes(labels, given["target"], accepted=given["classes"])
    for note in leakage_notes(people.frame, labels, given["target"]):
        progress.note(note)
    train, test = _split(people, given["seed"])
    # Of all people, so that nobody in the test part has a category never seen; no label is used.
    domain: Any = people.domain(immutable=given["immutable"])
    return Setting(
        train,
        test,
        domain,
        build_metric(metric, train.frame, given["sensitive"], domain),
        tuple(given["sensitive"]),
        as_edits(people.frame, edits),
        parse_budget(given["eps"]),
        given["confidence"],
        given["search"],
        "cross_entropy",
        given["seed"],
    )


def _split(people: People, seed: int) -> tuple[People, People]:
    """Cut the people in two, class by class."""
    from likewise.data.target import chosen_by_class

    assert people.labels is not None
    counts = {label: int((people.labels == label).sum()) for label in dict.fromkeys(people.labels.tolist())}
    for label, count in counts.items():
        if count < 5:
            raise InputError(
                f"The target's value {label!r} occurs {count} times; a comparison needs 5 or more."
            )
    held = chosen_by_class(people.labels, TEST_SHARE, seed)
    return people.take(np.flatnonzero(~held)), people.take(np.flatnonzero(held))


def _train(name: str, setting: Setting, steps: int | None, progress: Progress) -> Matched:
    from likewise.cli.train import train_method
    from likewise.models import as_model
    from likewise.models.matching import Matched

    if METHODS[name].needs == "attributes" and not setting.sensitive:
        raise InputError(f"--method {name} needs the sensitive columns: --sensitive COLUMN.")
    with progress.stage(f"Training {METHODS[name].title}", spinner=False):
        estimator = train_method(
            name,
            setting.train.frame,
            setting.train.labels,
            domain=setting.domain,
            metric=setting.metric,
            sensitive=setting.sensitive,
            progress=progress.shown,
            seed=setting.seed,
            **({} if steps is None else {"n_steps": steps}),
        )
    return Matched(as_model(estimator), setting.domain, tuple(setting.test.frame.columns))


def _match(loaded: Any, setting: Setting, given: dict[str, Any]) -> Matched:
    from likewise.auditing.case import match_people
    from likewise.counterfactuals.edits import edited_columns

    found = match_people(
        loaded,
        setting.test,
        immutable=given["immutable"],
        needed=(*setting.sensitive, *edited_columns(setting.edits), *given["immutable"]),
        metric=setting.metric,
        domain=setting.domain,
        loss="cross_entropy",
        positive=given["positive"],
    )
    return found.matched


def _searched_alike(setting: Setting, compared: Mapping[str, Matched], progress: Progress) -> Setting:
    """Search all models by the same means: gaps found along gradients and gaps found without are not alike."""
    from likewise.models import DifferentiableModel

    without = [name for name, one in compared.items() if not isinstance(one.model, DifferentiableModel)]
    if setting.search != "auto" or len(without) in (0, len(compared)):
        return setting
    progress.note(
        f"{without[0]} has no gradient, so all models are searched among candidates, and their gaps compare."
    )
    return replace(setting, search="candidates")


def _measure(name: str, matched: Matched, setting: Setting, progress: Progress) -> tuple[Any, Any]:
    from likewise.auditing.case import Case, audit_case, unbroken
    from likewise.auditing.case_evaluation import evaluate_case

    people = setting.test
    with progress.stage(f"Auditing {name}"):
        case = Case(
            matched,
            people.frame,
            people.labels,
            setting.metric,
            setting.sensitive,
            setting.edits,
            setting.eps,
            confidence=setting.confidence,
            search=setting.search,
            seed=setting.seed,
            people=people.frame,
            labels=people.labels,
        )
        result = unbroken(audit_case(case))
        evaluation, unknown = evaluate_case(case)
    for why in unknown:
        progress.note(f"{name}: {why}")
    if evaluation is None:
        raise InputError(f"{name} cannot be compared: {unknown[-1]}")
    return evaluation, result


def show_comparison(
    comparison: Any,
    json_file: str | None,
    html_file: Path | None,
    *,
    quiet: bool,
    force: bool,
    title: str | None = None,
    labels: Mapping[Any, str] | None = None,
    diagnoses: Sequence[Any] = (),
    explore: Mapping[str, Any] | None = None,
    language: str = "en",
    provenance: Provenance | None = None,
) -> None:
    """Write a comparison where it was asked for, and print its table."""
    from likewise import report

    said: dict[str, Any] = {"labels": labels, "diagnoses": diagnoses, "provenance": provenance}
    if html_file is not None:
        page: dict[str, Any] = {"title": title, "language": language, "explore": explore}
        report.write_html(comparison, html_file, overwrite=force, **page, **said)
    if json_file == "-":
        document = report.comparison_document(comparison, **said)
        click.echo(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
        return
    if json_file is not None:
        report.write_json(comparison, json_file, overwrite=force, **said)
    if quiet:
        return
    report.print_comparison(comparison, labels=labels)
    for path in (html_file, json_file):
        if path is not None:
            click.echo(f"Wrote {path}")
