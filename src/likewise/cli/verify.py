"""`likewise verify`: over all people who could exist, whose decision cannot depend on the sensitive columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import TableChoices, example, options, repeated_command, table_options
from likewise.cli.output import check_outputs
from likewise.core.errors import InputError, NotConvergedError, UnfairError
from likewise.core.messages import LANGUAGES

if TYPE_CHECKING:
    from likewise.auditing.inference.sanity import Finding
    from likewise.auditing.verification.verify import Verification

EXIT_INTERRUPTED = 130


@click.command(
    "verify",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise verify model.safetensors people.csv --target target --sensitive sex --seconds 20",
        after="Exit codes: 0 done, or at most --delta of all people can flip; 1 more than that are shown to; 2 bad input; "
        "3 undecided at --delta, or model and table do not belong together; 130 Ctrl-C, which keeps what is proved.",
    ),
)
@click.argument("model")
@click.argument("table", type=click.Path(path_type=Path))
@options("target_left_out", "positive", "sensitive")
@table_options
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="CPU time to prove in; more of it leaves less undecided.",
)
@click.option(
    "--delta",
    type=click.FloatRange(0.0, 1.0),
    help="Share of all people who could exist that may flip; the exit code says whether it is kept.",
)
@click.option(
    "--model-takes",
    type=click.Choice(["auto", "table", "encoded"]),
    default="auto",
    show_default=True,
    help="Whether the model takes the table itself or encoded numbers, where that cannot be seen.",
)
@options("json")
@click.option(
    "-o", "--out", "out", type=click.Path(path_type=Path), help="Write rows that flip here, in pairs, as CSV."
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    default="en",
    show_default=True,
    help="Of what is printed; columns, values and JSON stay as they are.",
)
@options("sample", "seed", "allow_pickle", "trust", "trust_type", "quiet", "force", "config")
def command(
    model: str,
    table: Path,
    target: str | None,
    positive: str | None,
    sensitive: Sequence[str],
    reading: TableChoices,
    seconds: float,
    delta: float | None,
    model_takes: str,
    json_file: str | None,
    out: Path | None,
    language: str,
    sample: int | None,
    seed: int,
    allow_pickle: bool,
    trust: bool,
    trust_type: Sequence[str],
    quiet: bool,
    force: bool,
) -> int:
    """Prove for which people the decision cannot depend on the sensitive columns.

    MODEL is a file (likewise's own, ONNX, XGBoost, LightGBM, CatBoost, skops) or package.module:attribute. Shares are
    proved of tree ensembles, ReLU networks and linear models; any other model is asked. TABLE says which people can
    exist: the ranges and categories of its columns. All their combinations are looked at, not only the people in it.
    """
    if not sensitive:
        raise InputError("Which columns should not decide? Name them: --sensitive COLUMN.")
    check_outputs([None if json_file in (None, "-") else Path(str(json_file)), out], force=force)
    from likewise import report
    from likewise.auditing.case import match_people, table_request
    from likewise.auditing.verification.table import findings_of, verify_people
    from likewise.cli.output import Progress
    from likewise.data.case import read_people
    from likewise.models.model_files import read_model

    progress = Progress(quiet)
    with progress.stage(f"Loading {model}"):
        loaded = read_model(model, allow_pickle=allow_pickle, trusted=trust_type, trust=trust)
    with progress.stage(f"Reading {table.name}"):
        asked = table_request(
            loaded,
            None,
            sensitive,
            target=target,
            positive=positive,
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
            positive=positive,
            missing=reading.policy,
            lenient=True,
        )
        for note in met.notes:
            progress.note(note)
    findings = findings_of(met, sensitive)
    with _bar(seconds, progress.shown) as told:
        found = verify_people(met, sensitive, seconds=seconds, random_state=seed, progress=told)
    matched = met.plain
    classes = matched.model.known_classes
    provenance = report.Provenance.now(
        tables=[table], models=[model], seed=seed, command=repeated_command(click.get_current_context())
    )
    document = report.verification_document(
        found,
        matched.domain,
        name=model,
        sensitive=sensitive,
        classes=classes,
        findings=findings,
        provenance=provenance,
    )
    if json_file == "-":
        from likewise.core.plain import to_json

        click.echo(to_json(document), nl=False)
    elif json_file is not None:
        report.write(document, json_file, form="json", overwrite=True)
    if out is not None:
        _write_rows(report.flip_table(found, matched.domain, classes), out)
    if json_file != "-" and not quiet:
        report.print_verification(document, language=language)
        for path in (json_file, out):
            if path is not None:
                click.echo(f"Wrote {path}")
    _judge(found, delta, findings)
    return EXIT_INTERRUPTED if found.stopped else 0


@contextmanager
def _bar(seconds: float, shown: bool) -> Iterator[Callable[[Verification], None] | None]:
    """A bar with the time left and what is proved by now, where a person looks on."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True, highlight=False), transient=True) as bar:
        task = bar.add_task("Proving", total=seconds)

        def told(found: Verification) -> None:
            words = f"Proving: {found.proved:.1%} the same, {found.flips:.2%} flip"
            bar.update(task, completed=found.seconds, description=words)

        yield told


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
        remedy = f"Nothing could be proved: {found.reason}" if found.reason else "Give it more --seconds."
        raise NotConvergedError(
            f"{found.undecided:.3%} of all people who could exist are undecided, so --delta {delta:g} is neither kept nor "
            f"broken. {remedy}"
        )
