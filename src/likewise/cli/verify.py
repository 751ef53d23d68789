"""`likewise verify`: over all people who could exist, whose decision cannot depend on the sensitive columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.app import EXIT_INTERRUPTED
from likewise.cli.audit import load
from likewise.cli.options import (
    Outputs,
    TableChoices,
    example,
    option,
    options,
    outputs,
    settings,
    table_options,
    verb,
)
from likewise.cli.output import deliver, json_text
from likewise.core.errors import InputError, NotConvergedError, UnfairError
from likewise.core.progress import Progress, progress_bar

if TYPE_CHECKING:
    from likewise.auditing.inference.sanity import Finding
    from likewise.auditing.verification.verify import Verification
    from likewise.cli.case import People
    from likewise.cli.sources import Settled, Source
    from likewise.models.matching import Matched
    from likewise.models.model_files import LoadedModel


@verb(
    "verify",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise verify model.safetensors people.csv --target target --sensitive sex --budget-seconds 20",
        after="Exit codes: 0 done, or at most --delta of all people can flip; 1 more than that are shown to; 2 bad input; "
        "3 undecided at --delta, or model and table do not belong together; 130 Ctrl-C, which keeps what is proved.",
    ),
)
@click.argument("model")
@click.argument("table", type=click.Path(path_type=Path))
@options("target_left_out", "positive", "sensitive")
@option(
    "--delta",
    type=click.FloatRange(0.0, 1.0),
    metavar="SHARE",
    help="Largest fair share of flips; exit code 1 above it.",
)
@table_options
@options("sample", "proof_budget", "seed")
@settings("model_takes")
@outputs("json", "-", "csv")
@options("language", "trust", "quiet", "config")
def command(
    model: str,
    table: Path,
    target: str | None,
    positive: str | None,
    sensitive: Sequence[str],
    reading: TableChoices,
    budget_seconds: float,
    delta: float | None,
    model_takes: str,
    outputs: Outputs,
    language: str,
    sample: int | None,
    seed: int,
    trust: Sequence[str],
    quiet: bool,
) -> int:
    """Prove for which people the decision cannot depend on the sensitive columns.

    MODEL is a file (likewise's own, ONNX, XGBoost, LightGBM, CatBoost, skops) or package.module:attribute. Shares are
    proved of tree ensembles, ReLU networks and linear models; any other model is asked. TABLE says which people can
    exist: the ranges and categories of its columns. All their combinations are looked at, not only the people in it.
    """
    if not sensitive:
        raise InputError("Which columns should not decide? Name them: --sensitive COLUMN.")
    from likewise import report
    from likewise.cli.case import WIDEST_AUDIT, AuditRequest, plans_of, read_people
    from likewise.cli.sources import settle_gaps
    from likewise.models.matching import model_columns

    progress = Progress(quiet)
    loaded = load(model, trust, progress)
    with progress.stage(f"Reading {table.name}"):
        used, width, encoder = model_columns(loaded)
        asked = AuditRequest(
            target,
            choices=reading,
            needed=tuple(sensitive),
            used=used,
            width=width,
            plans=plans_of(encoder),
            sample=sample,
            seed=seed,
            widest=WIDEST_AUDIT,
        )
        people = read_people(table, asked, keeps_missing=True)
        source = _source(people)
        matched = _match(loaded, source, people.labels, sensitive, positive, model_takes)
        # Missing cells go to the model, are filled or are refused as in `likewise audit`.
        settled = settle_gaps(matched, source, reading.policy, ())
        for note in (*source.notes, matched.note, settled.note):
            if note:
                progress.note(note)
    findings = _findings(settled, people.labels, sensitive, positive)
    found = _verify(matched, settled, source, sensitive, budget_seconds, seed, progress)
    classes = matched.model.known_classes
    document = report.verification_document(
        found, matched.domain, name=model, sensitive=sensitive, classes=classes, findings=findings
    )
    deliver(
        outputs,
        quiet=quiet,
        document=lambda: json_text(document),
        show=lambda: report.print_verification(document, language=language),
        json=lambda path: report.write_verification(document, path),
        csv=lambda path: _write_rows(report.flip_table(found, matched.domain, classes), path),
    )
    _judge(found, delta, findings)
    return EXIT_INTERRUPTED if found.stopped else 0


def _source(people: People) -> Source:
    """The people as `likewise audit` takes them; here a target need not be named."""
    import numpy as np

    from likewise.cli.sources import Source

    frame, labels = people.frame, np.zeros(0) if people.labels is None else people.labels
    return Source(frame, labels, frame, labels, [], people.plans, people.missing, people.notes)


def _match(
    loaded: LoadedModel,
    source: Source,
    labels: Any,
    sensitive: Sequence[str],
    positive: str | None,
    takes: str,
) -> Matched:
    """Bring the model and the table together."""
    from likewise.cli.case import binary_labels, call_classes
    from likewise.models.matching import match_model

    matched = match_model(
        loaded,
        source.filled,
        make_domain=lambda used: source.domain(used, []),
        widen=source.widened,
        needed=sensitive,
        takes=takes,
    )
    if labels is None:
        return matched
    called = binary_labels(labels, positive)
    try:
        return call_classes(matched, list(dict.fromkeys(called.tolist())), positive)
    except InputError:
        if positive is not None:
            raise
        # Whether two decisions differ does not depend on what they are called.
        return matched


def _findings(
    settled: Settled, labels: Any, sensitive: Sequence[str], positive: str | None
) -> tuple[Finding, ...]:
    """What has to be known before any number; by the labels too, if there are some that the model knows."""
    from likewise.auditing.inference.sanity import check_before_verdict
    from likewise.auditing.problem import AuditProblem
    from likewise.cli.case import binary_labels, fit_metric

    matched = settled.matched
    names = [name for name in sensitive if name in matched.columns]
    if not names:
        return ()
    frame = settled.frame[list(matched.columns)]
    metric = fit_metric(frame, names, matched.domain, plain=True).metric_
    decided = matched.decide(frame)
    given = decided if labels is None else binary_labels(labels, positive)
    known = {*(matched.model.classes_ if matched.model.classes_ is not None else ())}
    # Labels of other names say nothing about the decisions.
    given = given if set(given) <= known else decided
    return check_before_verdict(
        AuditProblem.build(matched.model, frame, given, metric=metric, domain=matched.domain)
    )


def _verify(
    matched: Matched,
    settled: Settled,
    source: Source,
    sensitive: Sequence[str],
    seconds: float,
    seed: int,
    progress: Progress,
) -> Verification:
    from likewise.auditing.verification.verify import Verification, shares_of_people, verify

    names = [name for name in sensitive if name in matched.columns]
    if not names:
        # The model has a list of columns, and these are not among them.
        return Verification(1.0, 0.0, 0.0, (1.0, 0.0, 0.0), (), (), 0, 0.0, trivial=True)
    people: Any = settled.frame[list(settled.matched.columns)]
    if settled.gaps is not None:
        # What is proved is about people without missing cells; examples are made of them.
        own = source.frame[list(matched.columns)]
        whole = own.notna().all(axis=1).to_numpy()
        people = source.filled.loc[whole, list(matched.columns)] if whole.any() else None
    with progress_bar(show=progress.shown) as bar:
        bar.start("Proving", total=seconds)

        def told(found: Verification) -> None:
            words = f"Proving: {found.proved:.1%} the same, {found.flips:.2%} flip"
            bar.update(found.seconds, description=words)

        found = verify(
            matched.model,
            matched.domain,
            names,
            people=people,
            encoded=_takes_encoded(matched),
            seconds=seconds,
            random_state=seed,
            progress=told,
        )
    if settled.gaps is None:
        return found
    marked = settled.matched
    everybody = settled.frame[list(marked.columns)]
    return replace(found, people=shares_of_people(marked.model, marked.domain, names, everybody))


def _takes_encoded(matched: Matched) -> bool | None:
    return None if getattr(matched.model, "encoder", None) is not None else not matched.model.takes_frame


def _write_rows(rows: Any, path: Path) -> None:
    from likewise.core.files import atomic_path

    with atomic_path(path) as draft:
        rows.to_csv(draft, index=False)


def _judge(found: Verification, delta: float | None, findings: Sequence[Finding]) -> None:
    against = " ".join(finding.sentence for finding in findings if finding.blocks)
    if against:
        raise NotConvergedError(f"The question could not be answered. {against}")
    if delta is None or found.stopped:
        return
    if found.flips > delta:
        raise UnfairError(
            f"{found.flips:.3%} of all people who could exist are shown to flip, more than --delta {delta:g}."
        )
    if found.flips + found.undecided > delta:
        remedy = (
            f"Nothing could be proved: {found.reason}" if found.reason else "Give it more --budget-seconds."
        )
        raise NotConvergedError(
            f"{found.undecided:.3%} of all people who could exist are undecided, so --delta {delta:g} is neither kept nor "
            f"broken. {remedy}"
        )
