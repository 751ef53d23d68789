"""`likewise recourse`: what the favourable decision would cost everybody who is refused, and their counterparts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from likewise.cli.app import EXIT_INTERRUPTED
from likewise.cli.options import (
    Outputs,
    TableChoices,
    example,
    option,
    options,
    outputs,
    parse_share,
    repeated_command,
    settings,
    table_options,
    verb,
)
from likewise.cli.output import deliver
from likewise.cli.person import COST, change_options, situation_of_files
from likewise.core.errors import InputError, UnfairError
from likewise.core.messages import Texts
from likewise.core.plain import to_json
from likewise.core.progress import Progress


@verb(
    "recourse",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise recourse model.safetensors people.csv --target target --favourable good --sensitive sex --sample 20",
        after="Exit codes: 0 done, or within --limit; 1 beyond it; 2 bad input; 130 Ctrl-C, which keeps what was found. "
        "--keep FOLDER keeps finished parts: the same command goes on there, and --part 2/8 does the second eighth.",
    ),
)
@click.argument("model")
@click.argument("table", type=click.Path(path_type=Path))
@options("target_left_out", "favourable", "sensitive")
@option(
    "--limit",
    metavar="SHARE",
    callback=lambda ctx, parameter, word: parse_share(word),
    help="Refused people whose counterpart may pay over 5% more or less: 1%. Exit code 1 above it.",
)
@change_options
@option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="N refused people at random instead of all."
)
@option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep finished parts there.",
)
@option("--part", metavar="K/N", help="Only the K-th of N shares of the people.")
@table_options
@option(
    "--budget-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="N",
    help="CPU time of each least change.",
)
@options("seed")
@settings("model_takes", "confidence", cost=COST)
@outputs("html", "json", "-", "csv")
@options("language", "trust", "quiet", "config")
def command(
    model: str,
    table: Path,
    target: str | None,
    favourable: str | None,
    sensitive: Sequence[str],
    limit: float | None,
    rules: str,
    fixed: Sequence[str],
    only_up: Sequence[str],
    only_down: Sequence[str],
    sample: int | None,
    keep: Path | None,
    part: str | None,
    reading: TableChoices,
    budget_seconds: float,
    seed: int,
    model_takes: str,
    confidence: float,
    cost: str,
    outputs: Outputs,
    language: str,
    trust: Sequence[str],
    quiet: bool,
) -> int:
    """Find what the favourable decision would cost everybody who is refused, and whether counterparts pay the same.

    MODEL and TABLE as in `likewise person`. For every refused person the least change is found, and that of the same person
    under every other value of the sensitive columns.
    """
    from likewise import report
    from likewise.core.frames import csv_text
    from likewise.explaining.burden import recourse_of
    from likewise.report.writing import write_text

    progress = Progress(quiet)
    situation = situation_of_files(
        model,
        table,
        target=target,
        favourable=favourable,
        sensitive=sensitive,
        fixed=fixed,
        only_up=only_up,
        only_down=only_down,
        rules=rules,
        cost=cost,
        reading=reading,
        model_takes=model_takes,
        seconds=budget_seconds,
        seed=seed,
        trust=trust,
        progress=progress,
        owner="recourse",
    )
    found = recourse_of(
        situation,
        sample=sample,
        confidence=confidence,
        folder=keep,
        part=None if part is None else _part(part),
        progress=progress.shown,
    )
    provenance = report.Provenance.now(
        tables=[table], models=[model], seed=seed, command=repeated_command(click.get_current_context())
    )
    document = report.recourse_document(found, name=model, source=table.name, provenance=provenance)
    deliver(
        outputs,
        quiet=quiet,
        partial=found.stopped,
        document=lambda: to_json(document),
        show=lambda: report.print_recourse(document, language=language),
        html=lambda path: report.write(
            document, path, form="html", language=language, overwrite=outputs.force
        ),
        json=lambda path: report.write(document, path, form="json", overwrite=outputs.force),
        csv=lambda path: write_text(path, csv_text(found.people)),
    )
    if found.stopped:
        return EXIT_INTERRUPTED
    if limit is not None and found.looked and found.unequal.value > limit:
        raise UnfairError(Texts(language)("recourse.limit", share=found.unequal.value, limit=limit))
    return 0


def _part(text: str) -> tuple[int, int]:
    first, slash, second = text.partition("/")
    if not slash or not first.isdigit() or not second.isdigit():
        raise InputError(f"--part must be K/N, such as 2/8, got {text!r}.")
    return int(first), int(second)
