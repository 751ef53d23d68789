"""`likewise verify`: over all people who could exist, whose decision cannot depend on the sensitive columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.app import EXIT_INTERRUPTED
from likewise.cli.options import TRAINED, example, option, options, settings, verb
from likewise.cli.output import Outputs, deliver_answer, outputs
from likewise.cli.reading import match_files
from likewise.core.errors import InputError, NotConvergedError, UnfairError
from likewise.core.progress import Progress, progress_bar

if TYPE_CHECKING:
    from likewise.auditing.verification.verify import Verification


@verb(
    "verify",
    epilog=example(
        *TRAINED,
        "likewise verify model.safetensors people.csv --target target --sensitive sex --budget-seconds 20",
        after="Exit codes: 0 done, or at most --delta of all people can flip; 1 more than that are shown to; 2 bad input; "
        "3 undecided at --delta, or model and table do not belong together; 130 Ctrl-C, which keeps what is proved.",
    ),
)
@options("model", "table", "target_left_out", "favourable", "sensitive")
@option(
    "--delta", "SHARE", "Largest share of all people whose decision may change.", click.FloatRange(0.0, 1.0)
)
@options("read", "sample", "proof_budget", "seed")
@settings("model_takes")
@outputs(
    "html",
    "json",
    "-",
    "csv",
    then=("language", "trust", "config"),
    csv="Rows whose decision changes, in pairs.",
)
def command(
    model: str,
    table: Path,
    budget_seconds: float,
    delta: float | None,
    outputs: Outputs,
    sample: int | None,
    **given: Any,
) -> int:
    """Prove for which people the decision cannot depend on the sensitive columns.

    MODEL is a file (likewise's own, ONNX, XGBoost, LightGBM, CatBoost, skops) or package.module:attribute. Shares are
    proved for tree ensembles, ReLU networks and linear models; other models are asked about random rows. TABLE says which people can
    exist: the ranges and categories of its columns. All their combinations are looked at, not only the people in it.
    """
    if not given["sensitive"]:
        raise InputError("Which columns should decisions not depend on? Name them: --sensitive COLUMN.")
    from likewise.auditing.verification.verify import verify_people

    progress = Progress(outputs.quiet)
    met = match_files(model, table, given, progress, favourable=given["favourable"], sample=sample)
    with progress_bar(show=progress.shown) as bar:
        bar.start("Proving", total=budget_seconds)

        def told(found: Verification) -> None:
            words = f"Proving: {found.proved:.1%} the same, {found.flips:.2%} flip"
            bar.update(found.seconds, description=words)

        found = verify_people(
            met, given["sensitive"], seconds=budget_seconds, random_state=given["seed"], progress=told
        )
    deliver_answer(outputs, found, model, table, rows=found.examples, partial=found.stopped)
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
