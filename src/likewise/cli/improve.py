"""`likewise improve`: search for a fairer model, choose one by a rule and check it; or compare models that are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import (
    COUNT,
    INSIDE,
    PEOPLE,
    Key,
    example,
    option,
    options,
    repeated_command,
    settings,
    verb,
)
from likewise.cli.output import Outputs, announce_plan, deliver, outputs, reporting, say
from likewise.cli.reading import load, parse_budget, provenance_now, read_training_table
from likewise.cli.train import METHODS, train_method
from likewise.core.errors import InputError
from likewise.core.progress import Progress, stop_if_interrupted
from likewise.core.text import join_words

if TYPE_CHECKING:
    from likewise.cli.output import Reporter
    from likewise.counterfactuals.edits import EditParts
    from likewise.data.case import People
    from likewise.data.tabular import TabularDomain
    from likewise.fair_metrics import FairMetric
    from likewise.improving import Improvement
    from likewise.improving.cells import Cell
    from likewise.improving.runner import CellTask, Failure, Plan, StudyProgress
    from likewise.models.matching import Matched

_LEAST = ("changed", "pure", "gap", "group")


@verb(
    "improve",
    epilog=example(
        PEOPLE,
        "likewise improve people.csv --target target --sensitive sex -o better/",
        "likewise improve people.csv --target target --sensitive sex --compare baseline --compare sensr -o compare.html",
        after="Run the same command again after a stop: finished cells are kept, and only the missing ones are computed.",
    ),
)
@options("table", "target", "favourable", "classes", "sensitive", "edit", "metric", "eps", "confidence")
@option("--model", "MODEL", "Your model, compared with the others.")
@option("--compare", "METHOD|MODEL", "Audit a method of `train` or a [NAME=]MODEL instead.", many=True)
@option(
    "--within", None, "The rule: balanced accuracy that may be given up.", click.FloatRange(0.0, 1.0), 0.01
)
@option(
    "--least",
    "MEASURE",
    f"The rule: make {', '.join(_LEAST)} least, in this order.",
    click.Choice(_LEAST),
    many=True,
)
@options("read", "sample", "seed", "jobs")
@settings(
    "search",
    "immutable",
    folds=Key("N", "Of the cross-validation; by default 5, 3 if many.", click.IntRange(min=2)),
    test_share=Key("SHARE", "People put aside, to check the choice on.", INSIDE, 0.2),
    steps=Key("N", "Training steps of compared methods.", COUNT),
)
@outputs(
    "folder",
    "html",
    "json",
    "-",
    then=("language", "trust", "config"),
    folder="The search: page, tables, trainings, the chosen model.",
)
@click.pass_context
def command(
    ctx: click.Context, /, table: Path, compare: Sequence[str], outputs: Outputs, **given: Any
) -> None:
    """Search for a less discriminatory alternative, and document the search.

    Logistic regression and boosted trees, plain and without the sensitive columns, trees whose answers are averaged over
    counterparts, fair trees of several strengths, SenSR, SenSeI, Project, and your model if you name one: each is
    cross-validated on 80% of the people. The rule chooses one (the least unfair within .01 plus a standard error of the
    best balanced accuracy); it is trained on all of them and checked on the other 20%. -o FOLDER/ gets index.html,
    improvement.json, alternatives.csv, the chosen model, and the finished trainings in cells.

    With --compare the named methods are trained on 80% of the people, and all are audited and evaluated on the rest,
    side by side: -o FILE.html, FILE.json or - (JSON on the screen).
    """
    progress = Progress(outputs.quiet)
    folder = outputs.get("folder")
    if compare:
        if folder is not None or given["model"] is not None:
            raise InputError(
                "--compare writes -o FILE.html or FILE.json, and takes models itself: --compare MODEL."
            )
        parse_budget(given["eps"])
        compare_models(table, compare, outputs, progress, given)
        return
    if folder is None or len(outputs.paths) > 1:
        raise InputError("Where should the search be kept? Name one new folder: -o FOLDER/.")
    if not given["sensitive"]:
        raise InputError("Which columns should decisions not depend on? Pass --sensitive COLUMN.")
    from likewise.improving.output import check_improvement_folder, write_improvement

    check_improvement_folder(folder)
    try:
        found = _improved(table, folder, outputs, given, progress)
        stop_if_interrupted()
    except KeyboardInterrupt:
        outputs.say("What was finished is kept. Run the same command to go on.", err=True)
        raise
    found = replace(found, command=repeated_command(ctx))
    models = [] if given["model"] is None else [given["model"]]
    provenance = provenance_now([table], models)
    written = write_improvement(found, folder, language=outputs.language, provenance=provenance)
    if not outputs.quiet:
        _show(found, written)


def _improved(
    table: Path, folder: Path, outputs: Outputs, given: dict[str, Any], progress: Progress
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
            announce_plan(plan, given["jobs"], outputs)
            reporter[0] = stack.enter_context(reporting(len(plan.tasks), outputs, unit="fold"))

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
            replace_other=outputs.force,
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


# `--compare`: several models on one table, audited and evaluated side by side.


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
    table: Path, compared: Sequence[str], outputs: Outputs, progress: Progress, given: dict[str, Any]
) -> None:
    """Train the named methods, load the named models, and audit and evaluate all of them."""
    from likewise.report import Comparison, print_comparison

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
    comparison, made = Comparison.of(entries), provenance_now([table], [*sources.values()])
    deliver(outputs, comparison, show=lambda: print_comparison(comparison), provenance=made)


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
    import numpy as np

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
    from likewise.auditing.case import Case, MatchedPeople
    from likewise.auditing.case_evaluation import evaluate_case
    from likewise.auditing.first_answer import AuditRequest

    people, given = setting.test, setting.given
    with progress.stage(f"Auditing {name}"):
        asked = AuditRequest.of(
            metric=setting.metric,
            eps=parse_budget(given["eps"]),
            confidence=given["confidence"],
            search=setting.search,
            edits=setting.edits,
            random_state=given["seed"],
        )
        case = Case(MatchedPeople(matched, matched, people, people.frame), asked, given["sensitive"])
        result = unbroken(audit_case(case))
        evaluation, unknown = evaluate_case(case)
    for why in unknown:
        progress.note(f"{name}: {why}")
    if evaluation is None:
        raise InputError(f"{name} cannot be compared: {unknown[-1]}")
    return evaluation, result
