"""Options that several verbs share, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from likewise.cli.config import config_option
from likewise.core.errors import InputError
from likewise.texts import LANGUAGES

__all__ = ["EPS", "example", "options", "parse_budget", "parse_edits"]

F = TypeVar("F", bound=Callable[..., Any])

EPS = 0.1
_FILE = click.Path(path_type=Path)
_SHARE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)

_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "target": click.option("--target", required=True, help="Column that the model predicts."),
    "target_left_out": click.option("--target", help="Column that the model predicts; it is left out."),
    "positive": click.option(
        "--positive", help="Value of the target that counts as 1, all others as 0; or a limit: '>=10'."
    ),
    "classes": click.option(
        "--classes", is_flag=True, help="Take each number of the target as a class, however many there are."
    ),
    "sensitive": click.option(
        "--sensitive", multiple=True, metavar="COLUMN", help="Column that should not decide. Repeatable."
    ),
    "immutable": click.option(
        "--immutable", multiple=True, metavar="COLUMN", help="Column that no twin may differ in. Repeatable."
    ),
    "edit": click.option(
        "--edit",
        multiple=True,
        metavar="COLUMN:A=B",
        help="Twins that differ so: relationship:Husband=Wife. Repeatable.",
    ),
    "twins": click.option(
        "--twins",
        type=click.Choice(["attribute", "consequences", "matched", "all"]),
        help="Also ask what becomes of people when only the attribute changes, its consequences with it, or beside comparable people.",
    ),
    "graph": click.option(
        "--graph", type=_FILE, metavar="FILE", help="DOT file: which columns follow from which, for --twins."
    ),
    "rules": click.option(
        "--rules",
        metavar="FILE",
        help="TOML file of rules that twins keep to, or the word learned, for --twins.",
    ),
    "eps": click.option(
        "--eps",
        default=f"{EPS}",
        show_default=True,
        metavar="EPS",
        help="Budget: a mean squared fair distance, or in the table's units: age=2,hours-per-week=5.",
    ),
    "delta": click.option(
        "--delta", type=click.FloatRange(min=0), help="Gap that is still fair; above it the exit code is 1."
    ),
    "confidence": click.option(
        "--confidence", type=_SHARE, default=0.95, show_default=True, help="Of intervals, tests and bounds."
    ),
    "metric": click.option(
        "--metric",
        type=_FILE,
        metavar="FILE",
        help="Fair metric that `likewise learn-metric` wrote, or the word columns: just the sensitive columns are free.",
    ),
    "search": click.option(
        "--search",
        type=click.Choice(["auto", "candidates", "gradient", "domain", "exact"]),
        default="auto",
        show_default=True,
        help="How worst cases are looked for.",
    ),
    "budget": click.option(
        "--budget",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="How long to search. [default: until it has settled]",
    ),
    "loss": click.option(
        "--loss",
        type=click.Choice(["auto", "cross_entropy", "hinge", "zero_one", "squared"]),
        default="auto",
        show_default=True,
        help="What a prediction costs; auto is cross_entropy, and squared for a model that predicts numbers.",
    ),
    "tolerance": click.option(
        "--tolerance",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        help="For a model that predicts numbers: predictions that differ by no more are the same decision.",
    ),
    "json": click.option(
        "--json", "json_file", metavar="FILE", help="Write the result as JSON; - prints it."
    ),
    "html": click.option(
        "--html", "html_file", type=_FILE, help="Write the page here: one file, no network."
    ),
    "explore": click.option(
        "--explore",
        is_flag=True,
        help="Let readers of --html edit people and see the decision. The model and rows of people are inside the page then.",
    ),
    "language": click.option(
        "--language",
        type=click.Choice(LANGUAGES),
        default="en",
        show_default=True,
        help="Of the page; columns, values and JSON stay as they are.",
    ),
    "evidence": click.option(
        "--evidence",
        "evidence_folder",
        type=_FILE,
        metavar="DIR",
        help="Write evidence for others to this new folder: model card, JUnit, SARIF, CSV tables, impact ratios, and "
        "evidence.json, which `likewise replay` repeats.",
    ),
    "seed": click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
    "sample": click.option(
        "--sample", type=click.IntRange(min=2), help="Take so many people at random instead of all."
    ),
    "engine": click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
        help="Where Parquet files are worked on: in this process, or by Dask workers. The numbers are the same.",
    ),
    "scheduler": click.option(
        "--scheduler", metavar="ADDRESS", help="Dask scheduler to use, such as tcp://10.0.0.5:8786."
    ),
    "workers": click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Dask workers to start on this machine, where no scheduler is named.  [default: 2]",
    ),
    "map": click.option(
        "--map",
        "map_folder",
        type=_FILE,
        help="Write everybody beside their worst twin to this new folder, as Parquet files.",
    ),
    "diagnose": click.option(
        "--diagnose", is_flag=True, help="Also show how well the metric hides each sensitive column (slower)."
    ),
    "allow_pickle": click.option(
        "--allow-pickle", is_flag=True, help="Load pickle, joblib, TorchScript, .pt2: they can run any code."
    ),
    "trust": click.option(
        "--trust",
        is_flag=True,
        help="Run the model file in this process: no limits, and it may crash the command.",
    ),
    "trust_type": click.option(
        "--trust-type", multiple=True, metavar="TYPE", help="Type in a skops file to trust. Repeatable."
    ),
    "quiet": click.option(
        "-q", "--quiet", is_flag=True, help="No progress and no table; the exit code tells."
    ),
    "force": click.option("--force", is_flag=True, help="Replace files that exist."),
    "config": config_option,
}


def options(*names: str) -> Callable[[F], F]:
    """Add shared options to a verb, in this order in its help."""

    def add(function: F) -> F:
        for name in reversed(names):
            function = _OPTIONS[name](function)
        return function

    return add


def example(*lines: str, after: str = "") -> str:
    """Return the end of a verb's help: an example that works as it stands, and what follows it.

    Examples
    --------
    >>> example("likewise version").splitlines()[1:]
    ['Example:', '  likewise version']
    """
    # The first character tells click not to wrap these lines.
    shown = "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
    return f"{shown}\n\n{after}" if after else shown


def parse_edits(edits: Sequence[str]) -> dict[str, list[str]]:
    """Read ``relationship:Husband=Wife`` as a column with the values its twins exchange.

    Examples
    --------
    >>> parse_edits(["relationship:Husband=Wife", "sex:F=M=X"])
    {'relationship': ['Husband', 'Wife'], 'sex': ['F', 'M', 'X']}
    """
    found: dict[str, list[str]] = {}
    for edit in edits:
        column, colon, rest = edit.partition(":")
        values = [value.strip() for value in rest.split("=")]
        if not colon or not column or len(values) < 2 or not all(values):
            raise InputError(
                f"--edit must be COLUMN:A=B, such as relationship:Husband=Wife, got {edit!r}. "
                "Quote it if it contains spaces."
            )
        found.setdefault(column.strip(), []).extend(
            v for v in values if v not in found.get(column.strip(), [])
        )
    return found


def parse_budget(text: str) -> float | dict[str, float]:
    """Read ``--eps``: a number, or columns with an amount each in their own units.

    Examples
    --------
    >>> parse_budget("0.1"), parse_budget("age=2, hours-per-week=5")
    (0.1, {'age': 2.0, 'hours-per-week': 5.0})
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if number >= 0 and number != float("inf"):
        return number
    units: dict[str, float] = {}
    for part in text.split(","):
        column, equals, amount = part.rpartition("=")
        try:
            units[column.strip()] = float(amount)
        except ValueError:
            equals = ""
        if not equals or not column.strip():
            raise InputError(
                f"--eps must be a number >= 0, or columns with amounts such as age=2,hours-per-week=5, got {text!r}."
            )
    return units
