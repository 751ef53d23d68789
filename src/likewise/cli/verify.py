"""`likewise verify`: over all people who could exist, whose decision cannot depend on the sensitive columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    repeated_command,
    settings,
    table_options,
    verb,
)
from likewise.cli.output import deliver
from likewise.core.errors import InputError, NotConvergedError, UnfairError
from likewise.core.plain import to_json
from likewise.core.progress import Progress, progress_bar

if TYPE_CHECKING:
    from likewise.auditing.verification.verify import Verification


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
@options("target_left_out", "favourable", "sensitive")
@option(
    "--delta",
    type=click.FloatRange(0.0, 1.0),
    metavar="SHARE",
    help="Largest fair share of flips; exit code 1 above it.",
)
@table_options
@options("sample", "proof_budget", "seed")
@settings("model_takes")
@outputs("html", "json", "-", "csv")
@options("language", "trust", "quiet", "config")
def command(
    model: str,
    table: Path,
    target: str | None,
    favourable: str | None,
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
    from likewise.auditing.case import match_people, table_request
    from likewise.auditing.verification.verify import verify_people
    from likewise.data.case import read_people

    progress = Progress(quiet)
    loaded = load(model, trust, progress)
    with progress.stage(f"Reading {table.name}"):
        asked = table_request(
            loaded,
            None,
            sensitive,
            target=target,
            favourable=favourable,
            choices=reading,
            sample=sample,
            seed=seed,
            keeps_missing=True,
        )
        met = match_people(
            loaded,
            read_people(table, asked),
            needed=sensitive,
            takes=model_takes,
            loss="cross_entropy",
            favourable=favourable,
            missing=reading.policy,
            lenient=True,
        )
        for note in met.notes:
            progress.note(note)
    with progress_bar(show=progress.shown) as bar:
        bar.start("Proving", total=budget_seconds)

        def told(found: Verification) -> None:
            words = f"Proving: {found.proved:.1%} the same, {found.flips:.2%} flip"
            bar.update(found.seconds, description=words)

        found = verify_people(met, sensitive, seconds=budget_seconds, random_state=seed, progress=told)
    from likewise.core.frames import csv_text
    from likewise.report.writing import write_text

    provenance = report.Provenance.now(
        tables=[table], models=[model], seed=seed, command=repeated_command(click.get_current_context())
    )
    document = report.verification_document(found, name=model, source=table.name, provenance=provenance)
    deliver(
        outputs,
        quiet=quiet,
        document=lambda: to_json(document),
        show=lambda: report.print_verification(document, language=language),
        html=lambda path: report.write(
            document, path, form="html", language=language, overwrite=outputs.force
        ),
        json=lambda path: report.write(document, path, form="json", overwrite=outputs.force),
        csv=lambda path: write_text(path, csv_text(found.examples)),
        partial=found.stopped,
    )
    _judge(found, delta)
    return EXIT_INTERRUPTED if found.stopped else 0


def _judge(found: Verification, delta: float | None) -> None:
    against = " ".join(finding.sentence for finding in found.findings if finding.blocks)
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
