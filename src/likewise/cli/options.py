"""Options that several verbs share, each defined once."""

from __future__ import annotations

import difflib
import functools
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from likewise.core.errors import InputError
from likewise.core.messages import LANGUAGES
from likewise.data.opening import TableChoices as TableChoices

# Options from a TOML file: its values become the defaults of the options, and unknown keys are refused.


_NOT_IN_FILES = {"config", "help"}


def config_option(function: Any) -> Any:
    """Add ``--config FILE`` to a verb."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_read,
        help="Read options from a TOML file: keys as the options without dashes in front, for all verbs or "
        "under [audit], [train], … The command line wins.",
    )(function)


def _read(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    if not path.is_file():
        raise InputError(f"--config: there is no file {str(path)!r}.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"--config: {path.name} is no TOML file: {error}.") from error
    ctx.default_map = {**(ctx.default_map or {}), **_defaults(ctx, values, path.name)}


def _defaults(ctx: click.Context, values: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the file's values for one verb, once every key has been recognised."""
    verb = str(ctx.info_name)
    names = _names(ctx.command)
    shared = {key: value for key, value in values.items() if not isinstance(value, dict)}
    sections = {key: value for key, value in values.items() if isinstance(value, dict)}
    group = ctx.parent.command if ctx.parent is not None else None
    verbs = group.list_commands(ctx) if isinstance(group, click.Group) else [verb]
    _refuse(sections, verbs, file, "section")
    _refuse(shared, {*names, *(key for name in verbs for key in _names_of(ctx, group, name))}, file, "key")
    own = sections.get(verb, {})
    _refuse(own, names, f"{file} [{verb}]", "key")
    found = {**{key: value for key, value in shared.items() if _plain(key) in names}, **own}
    return {names[_plain(key)]: _value(value, key, file) for key, value in found.items()}


def _names(command: click.Command) -> dict[str, str]:
    """What an option or argument is called in a file, and what click calls it."""
    found: dict[str, str] = {}
    for parameter in command.params:
        written = [option[2:] for option in parameter.opts if option.startswith("--")]
        key = written[0] if written else parameter.name
        if key and parameter.name and key not in _NOT_IN_FILES:
            found[_plain(key)] = parameter.name
    return found


def _names_of(ctx: click.Context, group: click.Command | None, verb: str) -> dict[str, str]:
    command = group.get_command(ctx, verb) if isinstance(group, click.Group) else None
    return {} if command is None else _names(command)


def _refuse(found: Iterable[str], known: Iterable[str], file: str, what: str) -> None:
    names = {_plain(name) for name in known}
    for key in found:
        if _plain(key) not in names:
            close = difflib.get_close_matches(_plain(key), sorted(names), n=1)
            hint = f" Did you mean {close[0].replace('_', '-')!r}?" if close else ""
            raise InputError(f"--config: {file} has an unknown {what} {key!r}.{hint}")


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _value(value: Any, key: str, file: str) -> Any:
    """Return a value as click takes it from the command line."""
    if isinstance(value, (list, tuple)):
        return [_value(item, key, file) for item in value]
    if isinstance(value, bool | int | float | str):
        return value
    raise InputError(f"--config: {file}: {key!r} must be text, a number, true, false or a list of these.")


# The command line that finds the same again, for pages and files to say.


# What changes where and how it is said, and not what is found.
_NOT_REPEATED = {"quiet", "force", "jobs", "config"}


def repeated_command(ctx: click.Context) -> str:
    """Return the command line that finds the same again: every choice that is no default, as it was typed."""
    words = ["likewise", str(ctx.info_name)]
    for parameter in ctx.command.params:
        value: Any = ctx.params.get(str(parameter.name))
        if parameter.name in _NOT_REPEATED or value in (None, (), False) or value == parameter.default:
            continue
        if isinstance(parameter, click.Argument):
            words.append(str(value))
            continue
        option = max(parameter.opts, key=len)
        for one in value if isinstance(value, tuple) else (value,):
            words += [option] if one is True else [option, str(one)]
    return shlex.join(words)


# Options about a table that every verb shares: how the file is read, and what its columns are.


def _columns(flag: str, text: str) -> Callable[[Any], Any]:
    return click.option(flag, multiple=True, metavar="COLUMN", help=f"{text} Repeatable.")


_OPTIONS = (
    _columns("--ignore", "Column to leave out, such as an id."),
    _columns("--only", "Take these columns and no others."),
    _columns("--keep", "Take this column although it looks like an id, dates or text."),
    _columns("--categorical", "Column of codes: its numbers are categories."),
    _columns("--integer", "Column of counts: its numbers stay whole, and are no codes."),
    click.option(
        "--columns",
        type=click.Path(path_type=Path, dir_okay=False),
        help="What the columns are, in a file that `likewise inspect` wrote.",
    ),
    click.option(
        "--missing",
        type=click.Choice(["auto", "keep", "drop", "category", "impute"]),
        default="auto",
        show_default=True,
        help="Missing cells: keep them (for a model that takes them), drop these people, make them a category, or "
        "impute the median or most frequent value. auto keeps them where the model takes them, and else imputes.",
    ),
    click.option("--drop-missing", is_flag=True, help="The same as --missing drop."),
    click.option("--encoding", help="Of a text file: latin-1, cp1252, …  [default: UTF-8]"),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="What stands before decimals in a text file.  [default: seen from the cells]",
    ),
    click.option(
        "--header/--no-header", default=None, help="Whether the first line of a text file names the columns."
    ),
    click.option(
        "--doubled",
        type=click.Choice(["drop", "number"]),
        default="drop",
        show_default=True,
        help="Columns of the same name: drop identical copies, or number them all.",
    ),
)


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about a table to a verb, which gets them as one `TableChoices` called `reading`."""

    @functools.wraps(function)
    def verb(**given: Any) -> Any:
        own = {field.name: given.pop(field.name) for field in fields(TableChoices)}
        return function(reading=TableChoices(**own), **given)

    wrapped: Callable[..., Any] = verb
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


F = TypeVar("F", bound=Callable[..., Any])

EPS = 0.1
_FILE = click.Path(path_type=Path)
_SHARE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)

_OPTIONS_OPTIONS: dict[str, Callable[[Any], Any]] = {
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
            function = _OPTIONS_OPTIONS[name](function)
        return function

    return add


def example(*lines: str, after: str = "") -> str:
    """Return the end of a verb's help: an example that works as it stands, and what follows it."""
    # The first character tells click not to wrap these lines.
    shown = "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
    return f"{shown}\n\n{after}" if after else shown


def parse_edits(edits: Sequence[str]) -> dict[str, list[str]]:
    """Read ``relationship:Husband=Wife`` as a column with the values its twins exchange."""
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
    """Read ``--eps``: a number, or columns with an amount each in their own units."""
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
