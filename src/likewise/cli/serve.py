"""`likewise serve`: the page of an audit with the model behind it, on this machine, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.case import AuditChoices, check_choices, run_audit
from likewise.cli.options import PATH, TRAINED, example, flag, option, options, settings, verb
from likewise.cli.reading import load
from likewise.core.errors import InputError
from likewise.core.progress import Progress, was_interrupted
from likewise.core.text import printable

if TYPE_CHECKING:
    from likewise.auditing.worst_case import OnProgress
    from likewise.data.opening import MemoryFile
    from likewise.models.model_files import LoadedModel
    from likewise.serving.audits import Audited, Question


@verb(
    "serve",
    epilog=example(
        *TRAINED,
        "likewise serve model.safetensors people.csv --target target --sensitive sex",
        after="The server listens on 127.0.0.1 alone and writes nothing. Exit codes: 0 ended by Ctrl-C, 2 bad input.",
    ),
)
@options("model")
@click.argument("table", type=PATH, required=False)
@options("target_left_out", "favourable", "sensitive", "limit", "edit")
@options("metric", "eps_asked", "read", "sample", "seed")
@settings("search", "budget_seconds", "loss", "immutable", "model_takes")
@option(
    "--port",
    None,
    "Port of 127.0.0.1.  [default: a free one]",
    click.IntRange(0, 65_535),
    0,
    show_default=False,
)
@flag("--open opens", "Open the link in the browser.")
@option("--uploads/--no-uploads", None, "Whether tables can be audited in the browser.", default=True)
@option("--max-upload", "MB", "Size of an uploaded table.", click.IntRange(1, 1024), 64)
@options("language", "trust", "quiet", "config")
def command(
    model: str,
    table: Path | None,
    port: int,
    opens: bool,
    uploads: bool,
    max_upload: int,
    trust: Sequence[str],
    quiet: bool,
    language: str,
    target: str | None,
    **given: Any,
) -> None:
    """Serve an audit's page with the model behind it: edit a person, see the decision; audit further tables.

    MODEL and TABLE are as in `likewise audit`. The audit is made first; then a link is shown, which works in a browser on
    this machine. Without TABLE it begins with the page on which a table is uploaded.
    """
    from likewise.core.errors import require

    for module in ("starlette", "uvicorn"):
        require(module, extra="serve", why="Serving a model")
    choices = AuditChoices(target=target, tolerance=0.0, delta=None, confidence=0.95, **given)
    _check(choices, table, uploads)
    from likewise.auditing.auditor import unbroken
    from likewise.serving import Application, Limits
    from likewise.serving.audits import one_caller
    from likewise.serving.server import run_server

    progress = Progress(quiet)
    loaded = load(model, trust, progress)
    loaded = replace(loaded, native=one_caller(loaded.native))
    auditor = CommandAuditor(loaded, model, choices)
    title = f"Audit of {Path(model).name}"
    audited = None if table is None else auditor.audit(table, choices, progress, title)
    if audited is not None:
        unbroken(audited.result)
    limits = Limits(upload_bytes=max_upload * 2**20)
    known = {"target": target, "favourable": choices.favourable, "sensitive": list(choices.sensitive)}

    def say(link: str) -> None:
        click.echo(
            f"Serving {printable(model)}: {link}\nThe link works on this machine alone. Ctrl-C ends the server."
        )
        if opens:
            import webbrowser

            webbrowser.open(link)

    run_server(
        lambda secrets: Application(
            secrets,
            name=Path(model).name,
            audited=audited,
            auditor=auditor if uploads else None,
            known=known,
            limits=limits,
            language=language,
        ),
        port=port,
        say=say,
    )
    was_interrupted(forget=True)
    if not quiet:
        click.echo("Ended.", err=True)


@dataclass(frozen=True, eq=False)
class CommandAuditor:
    """Audits the model of the command line on a table; see `likewise.serving.audits.TableAuditor`."""

    loaded: LoadedModel
    name: str
    choices: AuditChoices

    @property
    def columns(self) -> Sequence[str] | None:
        """Columns that the model reads, if it says so."""
        from likewise.models.matching import model_columns

        return model_columns(self.loaded)[0]

    def __call__(self, table: MemoryFile, question: Question, on_progress: OnProgress) -> Audited:
        """Audit an uploaded table: everybody in it, or the sample that was asked for."""
        choices = replace(
            self.choices,
            target=question.target,
            favourable=question.favourable,
            sensitive=question.sensitive,
            sample=question.sample,
            limit=question.limit,
        )
        check_choices(choices)
        title = f"Audit of {Path(self.name).name} on {table.name}"
        return self.audit(table, choices, CallbackProgress(on_progress), title)

    def audit(
        self, table: Path | MemoryFile, choices: AuditChoices, progress: Progress, title: str
    ) -> Audited:
        """Audit a table, as `likewise audit` does."""
        from likewise.report.provenance import Provenance
        from likewise.serving.audits import Audited, hashed

        found = run_audit(self.loaded, table, choices, progress)
        if found.case.table is not None:
            raise InputError(
                f"{table.name} has more people than a page can be about. Take fewer: --sample 10000."
            )
        made = replace(Provenance.now(models=[self.name], seed=choices.seed), tables=(hashed(table),))
        notes = tuple(progress.notes) if isinstance(progress, CallbackProgress) else ()
        return Audited(title, found.result, found.case, found.extras["evaluation"], made, notes)


class CallbackProgress(Progress):
    """Stages of an audit, passed to a function; see `likewise.auditing.worst_case.OnProgress`."""

    def __init__(self, on_progress: OnProgress) -> None:
        super().__init__(quiet=True)
        self._on_progress = on_progress
        self.notes: list[str] = []

    @property
    def searches(self) -> bool | OnProgress:
        """What is called while searching."""
        return lambda search, share: self._on_progress(f"Searching ({search})", share)

    def stage(self, title: str, *, spinner: bool = True) -> Any:
        """Say that a stage begins."""
        self._on_progress(title, None)
        return super().stage(title, spinner=spinner)

    def note(self, text: str) -> None:
        """Keep what the user should know."""
        self.notes.append(text)


def _check(choices: AuditChoices, table: Path | None, uploads: bool) -> None:
    if table is None:
        if not uploads:
            raise InputError("Without a table and without uploads there is nothing to serve. Name a TABLE.")
        return
    check_choices(choices)
