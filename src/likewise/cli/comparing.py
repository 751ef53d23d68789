"""`likewise improve --compare`: several models on one table, audited and evaluated side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likewise.cli.audit import load
from likewise.cli.improve import read_training_table
from likewise.cli.options import Outputs, parse_budget, repeated_command
from likewise.cli.output import deliver
from likewise.cli.train import METHODS
from likewise.core.errors import InputError
from likewise.core.progress import Progress

if TYPE_CHECKING:
    from likewise.counterfactuals.edits import EditParts
    from likewise.data.case import People
    from likewise.data.tabular import TabularDomain
    from likewise.fair_metrics import FairMetric
    from likewise.models.matching import Matched
    from likewise.report.provenance import Provenance

TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Setting:
    """What all compared models share."""

    train: People
    test: People
    domain: TabularDomain
    metric: FairMetric
    edits: EditParts
    search: str
    given: Mapping[str, Any]


def compare_models(
    ctx: click.Context,
    table: Path,
    compared: Sequence[str],
    outputs: Outputs,
    progress: Progress,
    given: dict[str, Any],
    *,
    quiet: bool,
) -> None:
    """Train the named methods, load the named models, and audit and evaluate all of them."""
    from likewise.report import Comparison
    from likewise.report.provenance import Provenance

    if given["metric"] is None and not given["sensitive"]:
        raise InputError("Who is comparable with whom? Pass --sensitive COLUMN or --metric FILE.")
    methods = [name for name in dict.fromkeys(compared) if name in METHODS]
    sources = dict(_named(text) for text in compared if text not in METHODS)
    loaded = {name: load(source, given["trust"], progress) for name, source in sources.items()}
    setting = _setting(table, given, progress)
    models = {METHODS[name].title: _train(name, setting, progress) for name in methods}
    models |= {name: _match(one, setting) for name, one in loaded.items()}
    setting = _searched_alike(setting, models, progress)
    entries = {name: _measure(name, matched, setting, progress) for name, matched in models.items()}
    command = repeated_command(ctx)
    provenance = Provenance.now(
        tables=[table], models=[*sources.values()], seed=given["seed"], command=command
    )
    show_comparison(
        Comparison.of(entries), outputs, quiet=quiet, language=given["language"], provenance=provenance
    )


def _named(text: str) -> tuple[str, str]:
    name, equals, source = text.partition("=")
    return (name, source) if equals and source and name else (Path(text).name, text)


def _setting(table: Path, given: dict[str, Any], progress: Progress) -> Setting:
    from likewise.auditing.case import build_metric

    people, asked, edits = read_training_table(table, given, progress)
    train, test = _split(people, given["seed"])
    # Of all people, so that nobody in the test part has a category never seen; no label is used.
    domain: Any = people.domain(immutable=given["immutable"])
    metric = build_metric(asked, train.frame, given["sensitive"], domain)
    return Setting(train, test, domain, metric, edits, given["search"], given)


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


def _train(name: str, setting: Setting, progress: Progress) -> Matched:
    from likewise.cli.train import train_method
    from likewise.models import as_model
    from likewise.models.matching import Matched

    given = setting.given
    if METHODS[name].needs == "attributes" and not given["sensitive"]:
        raise InputError(f"--compare {name} needs the sensitive columns: --sensitive COLUMN.")
    with progress.stage(f"Training {METHODS[name].title}", spinner=False):
        estimator = train_method(
            name,
            setting.train.frame,
            setting.train.labels,
            domain=setting.domain,
            metric=setting.metric,
            sensitive=given["sensitive"],
            progress=progress.shown,
            seed=given["seed"],
            **({} if given["steps"] is None else {"n_steps": given["steps"]}),
        )
    return Matched(as_model(estimator), setting.domain, tuple(setting.test.frame.columns))


def _match(loaded: Any, setting: Setting) -> Matched:
    from likewise.auditing.case import match_people
    from likewise.counterfactuals.edits import edited_columns

    given = setting.given
    return match_people(
        loaded,
        setting.test,
        immutable=given["immutable"],
        needed=(*given["sensitive"], *edited_columns(setting.edits), *given["immutable"]),
        metric=setting.metric,
        domain=setting.domain,
        loss="cross_entropy",
        favourable=given["favourable"],
    ).matched


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
    from likewise.auditing.auditor import audit_case, unbroken
    from likewise.auditing.case import Case
    from likewise.auditing.case_evaluation import evaluate_case
    from likewise.auditing.request import AuditRequest

    people, given = setting.test, setting.given
    with progress.stage(f"Auditing {name}"):
        asked = AuditRequest.of(
            metric=setting.metric,
            eps=parse_budget(given["eps"]),
            confidence=given["confidence"],
            search=setting.search,
            random_state=given["seed"],
        )
        case = Case(
            matched,
            people.frame,
            people.labels,
            given["sensitive"],
            asked,
            setting.edits,
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
    outputs: Outputs,
    *,
    quiet: bool,
    title: str | None = None,
    labels: Mapping[Any, str] | None = None,
    explore: Mapping[str, Any] | None = None,
    language: str = "en",
    provenance: Provenance | None = None,
) -> None:
    """Write a comparison as it was asked for, and print its table."""
    from likewise import report
    from likewise.core.plain import to_json

    said: dict[str, Any] = {"labels": labels, "provenance": provenance}
    page: dict[str, Any] = {"title": title, "language": language, "explore": explore}
    force = outputs.force
    deliver(
        outputs,
        quiet=quiet,
        document=lambda: to_json(report.comparison_document(comparison, **said)),
        show=lambda: report.print_comparison(comparison, labels=labels),
        html=lambda path: report.write_html(comparison, path, overwrite=force, **page, **said),
        json=lambda path: report.write_json(comparison, path, overwrite=force, **said),
    )
