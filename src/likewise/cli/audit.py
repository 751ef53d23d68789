"""`likewise audit`: is this model unfair to individuals, to whom, by how much; the exit code tells."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.case import (
    AuditChoices,
    Audited,
    check_choices,
    impact_of,
    inputs_of,
    recorded_options,
    run_audit,
)
from likewise.cli.options import CONFIG, SETTINGS, TRAINED, example, options, settings, verb
from likewise.cli.output import Outputs, deliver, outputs
from likewise.cli.reading import load, provenance_now
from likewise.core.errors import InputError, NotConvergedError
from likewise.core.progress import Progress

if TYPE_CHECKING:
    from likewise.auditing import AuditResult
    from likewise.auditing.partitions.engine import Engine
    from likewise.report.provenance import Provenance


@contextmanager
def open_engine(engine: Engine, map_folder: Path | None, progress: Progress) -> Iterator[Engine | None]:
    """Start or reach what ``--set engine`` names; None for this process."""
    from likewise.auditing.partitions.engine import LocalEngine

    if isinstance(engine, LocalEngine):
        yield None if map_folder is None else engine
        return
    with ExitStack() as opened:
        with progress.stage("Reaching workers"):
            dask = opened.enter_context(engine)
        if dask.dashboard is None:
            progress.note("install bokeh to watch the workers on Dask's dashboard.")
        elif not progress.shown:  # else it is shown beside the bar
            progress.note(f"dashboard of {dask.describe()}: {dask.dashboard}")
        yield dask


def _check(choices: AuditChoices, outputs: Outputs, engine: str, explore: bool) -> Engine:
    """Refuse what does not go together, before anything is read; return the engine."""
    from likewise.auditing.partitions.engine import read_engine

    check_choices(choices)
    found = read_engine(engine, owner="--set")
    if explore and outputs.get("html") is None:
        raise InputError("--set explore=yes is about the page. Name it: -o FILE.html.")
    if (map_folder := outputs.get("parquet")) is not None:
        from likewise.auditing.partitions.tables import MapFolder

        MapFolder(map_folder)
    if (evidence := outputs.get("folder")) is not None:
        from likewise.report.evidence.folder import check_folder

        check_folder(evidence, overwrite=outputs.force)
    return found


@verb(
    "audit",
    epilog=example(
        *TRAINED,
        "likewise audit model.safetensors people.csv --target target --sensitive sex -o audit.html",
        after="Exit codes: 0 within --limit (or none set), 1 beyond it, 2 bad input, 3 could not be answered: a search did "
        "not converge, or model and table do not belong together.",
    ),
)
@options("model", "table", "target_left_out", "favourable", "sensitive", "limit", "edit")
@options("metric", "eps_asked", "delta", "twins", "read", "sample", "seed")
@settings(*SETTINGS)
@outputs(
    *("html", "json", "csv", "-", "folder", "parquet"),
    then=("full", "language", "trust", "sign", "config"),
    csv="The people whose decision would change.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    table: Path,
    outputs: Outputs,
    explore: bool,
    engine: str,
    trust: Sequence[str],
    sign: Path | None,
    diagnose: bool,
    full: bool,
    **given: Any,
) -> None:
    """Say whose decision changes when only the sensitive columns do, and in which direction.

    MODEL is a file (likewise's own, ONNX, XGBoost, LightGBM, CatBoost, skops) or package.module:attribute.
    TABLE is CSV, Parquet, Arrow, JSON lines or Excel, with the people in their own units; a folder or a quoted pattern
    of Parquet files ('people/*.parquet') is read part by part.
    """
    choices = AuditChoices(**given)
    found = _check(choices, outputs, engine, explore)
    if sign is not None:
        from likewise.report.evidence.signing import Signer

        Signer(sign)  # before the work
        if "folder" not in outputs.paths:
            raise InputError("--sign signs a folder of evidence. Add -o FOLDER/.")
    progress = Progress(outputs.quiet)
    loaded = load(model, trust, progress)
    map_folder = outputs.get("parquet")
    with open_engine(found, map_folder, progress) as runner:
        audited = run_audit(
            loaded, table, choices, progress, runner, map_folder, diagnose=diagnose, explore=explore
        )
    from likewise import report
    from likewise.core.messages import Texts
    from likewise.models.containers import model_files
    from likewise.report.explore import explore_case

    result, evaluation = audited.result, audited.extras["evaluation"]
    files = model_files(Path(model)).values() if Path(model).is_file() else [model]
    provenance = provenance_now([table], [*map(str, files)])
    extras = audited.extras | {"provenance": provenance}
    force, language = outputs.force, outputs.language
    deliver(
        outputs,
        result,
        title=Texts(language)("page.title.audit_of", name=Path(model).name),
        explore=explore_case(audited.case, result, name=model) if explore else None,
        show=lambda: report.print_audit(
            result,
            full=full,
            language=language,
            evaluation=evaluation,
            twins=extras.get("twins", ()),
            lines=20 - progress.lines - bool(outputs.paths),
        ),
        writers={
            "csv": lambda path: result.save(path, overwrite=force),
            "folder": lambda path: _leave_evidence(ctx, audited, path, provenance, force=force),
        },
        **extras,
    )
    limit = result.headline.limit
    if limit is not None and not limit.passed and sys.stdout.isatty() and not outputs.quiet:
        ctx.exit(1 if limit.passed is False else 3)  # the last line on the screen says why
    _judge(result)


def _leave_evidence(
    ctx: click.Context, audited: Audited, folder: Path, provenance: Provenance, *, force: bool
) -> None:
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
        inputs=inputs_of(ctx.params["model"], ctx.params["table"], options, ctx.meta.get(CONFIG)),
        provenance=provenance,
        overwrite=force,
        sign=ctx.params["sign"],
    )


def _judge(result: AuditResult) -> None:
    result.raise_if_unanswered()
    if result.delta is not None or result.limit is not None:
        result.raise_if_unfair()
    elif result.status != "converged":
        raise NotConvergedError("The audit did not converge: " + "; ".join(result.reasons))
