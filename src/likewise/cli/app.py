"""The `likewise` command: verbs load when called, mistakes become one message and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

import click

from likewise._version import __version__
from likewise.cli.launching import first_speaks
from likewise.cli.warnings_shown import ShownWarnings
from likewise.core.errors import LikewiseError, NotConvergedError, UnfairError
from likewise.core.launch import launched

__all__ = ["EXIT_BAD_INPUT", "EXIT_NOT_CONVERGED", "EXIT_UNFAIR", "cli", "main"]

EXIT_UNFAIR = 1
EXIT_BAD_INPUT = 2
EXIT_NOT_CONVERGED = 3
EXIT_INTERRUPTED = 130

# Environment variable that shows the traceback of an unforeseen error.
TRACEBACK = "LIKEWISE_TRACEBACK"

# Verb: (module that defines a click command named `command`, one line for `likewise --help`).
VERBS = {
    "demo": ("likewise.cli.demo", "Adult: a plain network and SenSR, audited, on one page."),
    "inspect": ("likewise.cli.inspect", "Show how the columns of a table will be read."),
    "audit": ("likewise.cli.audit", "Audit a model for unequal treatment of comparable people."),
    "audit-scores": ("likewise.cli.audit_scores", "Audit recorded scores of edited texts, above the noise."),
    "audit-texts": ("likewise.cli.audit_texts", "Audit a scorer of texts by swapped names, above the noise."),
    "serve": ("likewise.cli.serve", "Serve the page with the model behind it; audit tables in the browser."),
    "replay": ("likewise.cli.replay", "Repeat an audit from its evidence and compare the figures."),
    "verify": ("likewise.cli.verify", "Prove for which people a decision cannot depend on a column."),
    "train": ("likewise.cli.train", "Train a model that treats comparable people alike."),
    "improve": ("likewise.cli.improve", "Search for a fairer model, choose one by a rule, check it."),
    "learn-metric": ("likewise.cli.learn_metric", "Learn who is comparable with whom."),
    "compare": ("likewise.cli.compare", "Train, audit and compare several models."),
    "reproduce": ("likewise.cli.reproduce", "The paper's tables and figures, ours beside them."),
    "datasets": ("likewise.cli.datasets", "List the bundled data sets, or write one as a table."),
    "version": ("likewise.cli.version", "Show the versions that matter in a bug report."),
}


class LazyGroup(click.Group):
    """A click group that imports a verb's module when the verb is called, so that `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs, in the order of the table above."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(VERBS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`likewise COMMAND --help` shows an example that works.",
)
@click.version_option(__version__, prog_name="likewise")
def cli() -> None:
    """Individual fairness: people who are alike in everything that should matter are treated likewise."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Exit codes: 0 fine, 1 unfair at the asked level, 2 bad input, 3 a search did not converge, 130 Ctrl-C.

    Examples
    --------
    >>> try:
    ...     main(["datasets"])
    ... except SystemExit as end:
    ...     print(end.code)
    adult      UCI Adult: 45,222 people, income above $50k (the paper's Appendix D.1)
    german     UCI German credit: 1,000 people, good or bad credit
    hiring     32,193 scores of one CV by eleven language models, for `likewise audit-scores`
    sentiment  opinion words and names with GloVe vectors (Python: likewise.datasets.load_sentiment)
    toy        the two groups of Figure 1 (Python: likewise.datasets.make_toy)
    0
    """
    shown = ShownWarnings()
    warnings.showwarning = shown
    with first_speaks(arguments) as heard:
        try:
            _run(arguments, heard)
        finally:
            for line in shown.repeated():
                click.echo(f"Note: {line}.", err=True)


def _run(arguments: Sequence[str] | None, heard: TextIO) -> None:
    try:
        code = cli.main(args=arguments, prog_name="likewise", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_BAD_INPUT)
    except UnfairError as error:
        click.echo(f"Unfair (shown): {error}", err=True)
        sys.exit(EXIT_UNFAIR)
    except NotConvergedError as error:
        click.echo(f"Not converged: {error}", err=True)
        sys.exit(EXIT_NOT_CONVERGED)
    except (LikewiseError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except MemoryError:
        click.echo("Error: there is not enough memory. Take fewer people: --sample 10000.", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        launch = launched()
        click.echo(
            f"{f'Rank {launch.rank}: ' if launch.several else ''}Error: something unforeseen happened "
            f"({type(error).__name__}: {error}). Set {TRACEBACK}=1 to see where, and please report it.",
            file=heard,
        )
        sys.exit(EXIT_BAD_INPUT)
    sys.exit(code if isinstance(code, int) else 0)
