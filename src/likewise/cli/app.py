"""The `likewise` command: verbs load when called, mistakes become one message and an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import platform
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TextIO

import click

from likewise._version import __version__
from likewise.core.errors import LikewiseError, NotConvergedError, UnfairError, installed_versions
from likewise.core.launch import alone, launched
from likewise.core.progress import (
    ClosedOutputError,
    noted_interrupts,
    printable_streams,
    was_interrupted,
    write_error,
)
from likewise.core.text import command_line, printable, without_numbers

# The command under torchrun: one process prints, all exit with the same code.


# What several processes do together. Anything else the first does by itself.
TOGETHER = ("train",)


@contextmanager
def on_first_process(arguments: Sequence[str] | None) -> Iterator[TextIO]:
    """Run the command so that only the first process prints; give the stream for the errors of all of them.

    A verb that one process does is left to the first; the others exit with 0.
    """
    launch, stderr = launched(), sys.stderr
    if not launch.several:
        yield stderr
        return
    words = sys.argv[1:] if arguments is None else arguments
    shared = any(word in TOGETHER for word in words[:1])
    if not shared and not launch.first:
        sys.exit(0)
    with ExitStack() as stack:
        if not shared:
            stack.enter_context(alone())
        elif not launch.first:
            nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(redirect_stdout(nowhere))
            stack.enter_context(redirect_stderr(nowhere))
        yield stderr


@contextmanager
def grouped() -> Iterator[None]:
    """Run a block in the process group of those who were started together, if any."""
    if not launched().several:
        yield
        return
    from likewise.training.distributed import joined

    with joined():
        try:
            yield
        except BaseException:
            # When one process has failed torchrun ends the others, which are about to say why and to end by themselves.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise


@contextmanager
def agreeing() -> Iterator[None]:
    """Run a block whose error on one process is raised on all of them."""
    if not launched().several:
        yield
        return
    from likewise.training.distributed import current_ranks

    with current_ranks().agree():
        yield


# Warnings of libraries as a person reads them: each once, how often it came, and what the command line can
# do.


_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning)
_REMEDIES = {
    "ConvergenceWarning": "Leave out columns with very many values or very large numbers (--read ignore=COLUMN), or take more "
    "people; `likewise inspect` shows the columns."
}
# What stands in messages for those who write Python, and the option that does the same.
_OPTIONS = {
    "'eps'": "--eps",
    "'n_steps'": "--steps",
    "'hidden_layer_sizes'": "--hidden",
    "metric=ExpertSubspace([...])": "--metric columns",
}


class ShownWarnings:
    """Replaces `warnings.showwarning`: a warning is shown the first time, and counted after that.

    Warnings that differ only in their numbers are the same.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Show what the user should know in one line; what only developers care about not at all."""
        if issubclass(category, _HIDDEN):
            return
        kind = without_numbers(str(message))
        self._counts[kind] += 1
        if self._counts[kind] == 1:
            remedy = _REMEDIES.get(category.__name__, "")
            said = str(message) if not remedy else f"{str(message).split('. ')[0].rstrip('.')}. {remedy}"
            write_error(f"Warning: {_with_options(said)}")

    def repeated(self) -> tuple[str, ...]:
        """Return a line for each warning that came more than once."""
        return tuple(
            f"a warning came {count:,} times in all: {kind.split('. ')[0][:120].rstrip('.')}"
            for kind, count in self._counts.items()
            if count > 1
        )


def _with_options(said: str) -> str:
    """A message in words of the command that runs, as far as it has options for what it says."""
    context = click.get_current_context(silent=True)
    known = {name for option in context.command.params for name in option.opts} if context else set()
    for words, option in _OPTIONS.items():
        if option.split()[0] in known:
            said = said.replace(words, option)
    return said


EXIT_UNFAIR = 1
EXIT_BAD_INPUT = 2
EXIT_NOT_CONVERGED = 3
EXIT_INTERRUPTED = 130
EXIT_CLOSED_OUTPUT = 141

_FULL = "the disk is full, so not everything could be written. Make room, and run the command again."

# Environment variable that shows the traceback of an unforeseen error.
TRACEBACK = "LIKEWISE_TRACEBACK"

# Verb: (module that defines it as `command`, or module:name; one line for `likewise --help`).
VERBS = {
    "demo": ("demo", "Compare a plain network and SenSR on Adult, on one page."),
    "inspect": ("inspect", "Show how the columns of a table will be read."),
    "audit": ("audit", "Audit a model for unequal treatment of comparable people."),
    "audit-texts": ("audit_texts", "Audit scores of texts by swapped names, above the noise."),
    "verify": ("verify", "Prove whose decision cannot depend on a column."),
    "person": ("person", "Explain one person's decision, and what would change it."),
    "recourse": ("person:recourse", "Find what refused people would have to change."),
    "proxies": ("proxies", "Find columns that stand in for an attribute, in the table or not."),
    "serve": ("serve", "Serve the page with the model behind it, in the browser."),
    "replay": ("replay", "Repeat an audit from its evidence and compare the figures."),
    "train": ("train", "Train a model that treats comparable people alike."),
    "improve": ("improve", "Search for a fairer model and check it, or compare models."),
    "learn-metric": ("learn_metric", "Learn who is comparable with whom."),
    "reproduce": ("reproduce", "Reproduce the paper's tables and figures."),
    "datasets": ("datasets", "List the bundled data sets, or write one as a table."),
}
VERSIONS = (
    "torch",
    "scikit-learn",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "xgboost-cpu",
    "lightgbm",
    "onnxruntime",
)


class LazyGroup(click.Group):
    """A click group that imports a verb's module when the verb is called, so that `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs, in the order of the table above."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one verb."""
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"likewise.cli.{module}"), name or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


def _show_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    click.echo(f"likewise {__version__}")
    if ctx.params.get("verbose"):
        click.echo(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
        found = installed_versions(VERSIONS)
        for name in VERSIONS:
            click.echo(f"{name} {found.get(name, 'not installed')}")
        from likewise.models.sandbox.process import held_here

        held = held_here()
        absent = [
            word
            for word in ("memory", "files", "network", "privileges", "paths", "calls")
            if word not in held
        ]
        click.echo(
            f"limits of model files here: {', '.join(['time', *held])}; absent: {', '.join(absent) or 'none'}"
        )
    ctx.exit()


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`likewise COMMAND --help` shows an example that works.",
)
@click.option("--verbose", is_flag=True, is_eager=True, help="With --version: what a bug report needs.")
@click.option("--version", is_flag=True, expose_value=False, callback=_show_version, help="Show the version.")
def cli(verbose: bool) -> None:
    """Individual fairness: people who are alike in everything that should matter are treated likewise."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Exit codes: 0 fine, 1 unfair at the asked level, 2 bad input, 3 a search did not converge, 130 Ctrl-C, 141 nobody
    reads the output any more (``| head``).

    Examples
    --------
    >>> try:
    ...     main(["datasets"])
    ... except SystemExit as end:
    ...     print(end.code)
    adult      UCI Adult: 45,222 people, income above $50k (the paper's Appendix D.1)
    german     UCI German credit: 1,000 people, good or bad credit
    hiring     32,193 scores of one CV by eleven language models, for `likewise audit-texts`
    sentiment  opinion words and names with GloVe vectors (Python: likewise.datasets.load_sentiment)
    toy        the two groups of Figure 1 (Python: likewise.datasets.make_toy)
    0
    """
    shown = ShownWarnings()
    warnings.showwarning = shown
    try:
        with noted_interrupts(), printable_streams(), on_first_process(arguments) as stderr:
            try:
                code = _run(arguments, stderr)
            finally:
                for line in shown.repeated():
                    write_error(f"Note: {line}.")
            # After Ctrl-C no code is a verdict, whatever the verb came to.
            code = EXIT_INTERRUPTED if was_interrupted() else code
            if code == EXIT_INTERRUPTED:
                write_error("Stopped.")
            sys.stdout.flush()
    except KeyboardInterrupt:
        write_error("Stopped.")
        code = EXIT_INTERRUPTED
    except ClosedOutputError as error:
        code = EXIT_CLOSED_OUTPUT
        if not isinstance(error.__cause__, BrokenPipeError):
            code = EXIT_BAD_INPUT
            with suppress(OSError, ClosedOutputError):
                write_error(f"Error: {_said_of(error.__cause__)}")
        # What is left in the buffers has no reader; Python would say so when it ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, BrokenPipeError):
                os.dup2(nowhere, stream.fileno())
    sys.exit(code)


def _said_of(error: BaseException | None) -> str:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return _FULL if full else str(error)


def _run(arguments: Sequence[str] | None, stderr: TextIO) -> int:
    try:
        with command_line():
            code = cli.main(args=arguments, prog_name="likewise", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"{error.ctx.get_usage()}\n", err=True)
        write_error(f"Error: {error.format_message()}")
        return EXIT_BAD_INPUT
    except (UnfairError, NotConvergedError) as error:
        write_error(str(error))
        return EXIT_UNFAIR if isinstance(error, UnfairError) else EXIT_NOT_CONVERGED
    except (LikewiseError, OSError) as error:
        write_error(f"Error: {_said_of(error)}")
        return EXIT_BAD_INPUT
    except MemoryError:
        write_error("Error: there is not enough memory. Take fewer people: --sample 10000.")
        return EXIT_BAD_INPUT
    except ClosedOutputError:
        raise
    except Exception as error:
        if was_interrupted():  # an error that the interruption caused
            return EXIT_INTERRUPTED
        if os.environ.get(TRACEBACK):
            raise
        launch = launched()
        click.echo(
            f"{f'Rank {launch.rank}: ' if launch.several else ''}Error: something unforeseen happened "
            f"({type(error).__name__}: {printable(str(error))}). Set {TRACEBACK}=1 to see where, and please report it.",
            file=stderr,
        )
        return EXIT_BAD_INPUT
    return code if isinstance(code, int) else 0
