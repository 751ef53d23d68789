"""Options that several verbs share, each defined once, and how their values are read."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from likewise.core.errors import InputError, did_you_mean
from likewise.core.files import read_toml
from likewise.core.messages import LANGUAGES
from likewise.core.text import join_words
from likewise.data.opening import TableChoices as TableChoices

F = TypeVar("F", bound=Callable[..., Any])


class Option(click.Option):
    """An option whose values may be explained in a section of their own below the options."""

    def __init__(self, *given: Any, legend: Mapping[str, str] | None = None, **choices: Any) -> None:
        shown = choices.get("default") is not None
        super().__init__(*given, **{"show_default": shown, **choices})
        self.legend = legend or {}

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what stands in brackets after the help: not the range, which a mistake names."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class Verb(click.Command):
    """A command that explains values of its options below them."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and then the values of those that have a legend."""
        super().format_options(ctx, formatter)
        for option in self.params:
            if isinstance(option, Option) and option.legend:
                with formatter.section(f"Values of {option.opts[0]}"):
                    formatter.write_dl([*option.legend.items()])


verb = functools.partial(click.command, cls=Verb)
# Values that many options take. A share inside is neither none nor all.
PATH, FILE = click.Path(path_type=Path), click.Path(path_type=Path, dir_okay=False)
COUNT, POSITIVE = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)
INSIDE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)


def option(
    flags: str,
    metavar: str | None,
    help: str,
    type: Any = None,
    default: Any = None,
    *,
    many: bool = False,
    **more: Any,
) -> Callable[[F], F]:
    """Return an option: its flags, what its value is called, what it does; of `many` the verb gets all values."""
    said: dict[str, Any] = {
        "metavar": metavar,
        "help": f"{help} Repeatable." if many else help,
        "type": type,
        "default": default,
    }
    known = {name: value for name, value in said.items() if value is not None}
    return click.option(*flags.split(), cls=Option, multiple=many, **known, **more)


def flag(flags: str, help: str, **more: Any) -> Callable[[F], F]:
    """Return an option without a value."""
    return click.option(*flags.split(), cls=Option, is_flag=True, help=help, **more)


# --config: the values of a TOML file become the defaults of the options, and unknown keys are refused.


# Where a context keeps the path, for the evidence.
CONFIG = "likewise.config"


def _read_config(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    values = read_toml(path, owner="--config")
    ctx.default_map = {**(ctx.default_map or {}), **_defaults(ctx, values, path.name)}
    ctx.meta[CONFIG] = str(path)


def _defaults(ctx: click.Context, values: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the file's values for one verb, once every key has been recognised."""
    name, known = str(ctx.info_name), _parameters(ctx.command)
    shared = {key: value for key, value in values.items() if not isinstance(value, dict)}
    sections = {key: value for key, value in values.items() if isinstance(value, dict)}
    group = ctx.parent.command if ctx.parent is not None else None
    verbs = {name: ctx.command}
    if isinstance(group, click.Group):
        verbs |= {one: found for one in group.list_commands(ctx) if (found := group.get_command(ctx, one))}
    _refuse(sections, verbs, file, "section")
    _refuse(shared, {key for command in verbs.values() for key in _parameters(command)}, file, "key")
    own = sections.get(name, {})
    _refuse(own, known, f"{file} [{name}]", "key")
    defaults = {}
    for key, value in {**shared, **own}.items():
        if (parameter := known.get(_plain(key))) is not None:
            many = getattr(parameter, "multiple", False) and not isinstance(value, list)
            defaults[str(parameter.name)] = _value([value] if many else value, key, file)
    return defaults


def _parameters(command: click.Command) -> dict[str, click.Parameter]:
    """Return options and arguments by what they are called in a file."""
    found: dict[str, click.Parameter] = {}
    for parameter in command.params:
        written = [option[2:] for option in parameter.opts if option.startswith("--")]
        key = written[0] if written else str(parameter.name)
        if key not in ("config", "help"):
            found[_plain(key)] = parameter
    return found


def _refuse(found: Iterable[str], known: Iterable[str], file: str, what: str) -> None:
    names = sorted(name.replace("_", "-") for name in known)
    for key in found:
        word = key.replace("_", "-")
        if word not in names:
            raise InputError(f"--config: {file} has an unknown {what} {key!r}{did_you_mean(word, names)}.")


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _value(value: Any, key: str, file: str) -> Any:
    """Return a value as click takes it from the command line."""
    if isinstance(value, list):
        return [_value(item, key, file) for item in value]
    if isinstance(value, bool | int | float | str):
        return value
    raise InputError(f"--config: {file}: {key!r} must be text, a number, true, false or a list of these.")


def repeated_command(ctx: click.Context) -> str:
    """Return the command line that finds the same again: every choice that is not a default, as it was typed."""
    words = ["likewise", str(ctx.info_name)]
    for parameter in ctx.command.params:
        value: Any = ctx.params.get(str(parameter.name))
        skipped = parameter.name in ("quiet", "force", "jobs", "config")
        if skipped or value in (None, (), False) or value == parameter.default:
            continue
        if isinstance(parameter, click.Argument):
            words.append(str(value))
            continue
        option = max(parameter.opts, key=len)
        for one in value if isinstance(value, tuple) else (value,):
            words += [option] if one is True else [option, str(one)]
    return shlex.join(words)


# --read and --set: KEY=VALUE, of which each verb knows some.


@dataclass(frozen=True)
class Key:
    """One KEY of ``--read`` or ``--set``."""

    shown: str
    help: str
    type: Any = str
    default: Any = None
    many: bool = False


def _choice(help_: str, default: str, *others: str) -> Key:
    words = [default, *others]
    return Key("HOW", f"{help_}: {join_words(words, 'or')}.", click.Choice(words), default)


def _columns(help_: str) -> Key:
    return Key("COLUMN", help_, default=(), many=True)


READ = {
    "ignore": _columns("Leave this column out, such as an id."),
    "only": _columns("Take these columns and no others."),
    "keep": _columns("Take it although it looks like an id or text."),
    "categorical": _columns("Its numbers are codes, kept with leading zeros."),
    "integer": _columns("Its numbers are counts, not codes."),
    "missing": _choice("Missing cells", "auto", "keep", "drop", "category", "impute"),
    "empty": Key("VALUE", "Cells with this value are missing ones: ?, -1.", default=(), many=True),
    "encoding": Key("NAME", "Of a text file: latin-1, cp1252."),
    "decimal": Key(".|,", "Decimal mark of a text file.", click.Choice([".", ","])),
    "header": Key("yes|no", "Whether the first line names the columns.", bool),
    "doubled": _choice("Columns of the same name", "drop", "number"),
}
SETTINGS = {
    "search": _choice("Search", "auto", "candidates", "gradient", "domain", "exact"),
    "loss": _choice("Loss", "auto", "cross_entropy", "hinge", "zero_one", "squared"),
    "budget_seconds": Key("N", "Time limit of the search.", POSITIVE),
    "engine": Key(
        "WHERE", "Where it is computed: local, dask, dask:WORKERS or dask:ADDRESS.", default="local"
    ),
    "tolerance": Key("NUMBER", "Predictions this close are the same decision.", click.FloatRange(min=0), 0.0),
    "confidence": Key("SHARE", "Of intervals and bounds.", INSIDE, 0.95),
    "immutable": _columns("No counterpart may differ in it."),
    "model_takes": _choice("Columns or encoded numbers", "auto", "table", "encoded"),
    "explore": Key("yes", "Put model and people into the page, to try edits.", bool, False),
    "diagnose": Key("yes", "Show how well the metric hides each sensitive column.", bool, False),
}


def parse_keys(words: Sequence[str], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` words; keys that are not named have their defaults."""
    found = {name: key.default for name, key in keys.items()}
    for word in words:
        name, equals, text = word.partition("=")
        name = _plain(name.strip())
        if name not in keys:
            hint = did_you_mean(name, keys)
            raise click.BadParameter(f"there is no key {name!r}{hint}. Its keys: {', '.join(keys)}.")
        if not equals or not text:
            raise click.BadParameter(f"write {name}={keys[name].shown}, got {word!r}.")
        try:
            value = click.types.convert_type(keys[name].type).convert(text, None, None)
        except click.BadParameter as error:
            raise click.BadParameter(f"{name}: {error.message}") from error
        found[name] = (*found[name], value) if keys[name].many else value
    return found


def _keyed(name: str, keys: Mapping[str, Key], help_: str) -> Callable[[Any], Any]:
    def check(ctx: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
        try:
            parse_keys(words, keys)
        except click.BadParameter as error:
            raise click.BadParameter(error.message, ctx, parameter) from error
        return words

    legend = {f"{name}={key.shown}": key.help for name, key in keys.items()}
    return option(name, "KEY=VALUE", help_, many=True, callback=check, legend=legend)


def settings(*names: str, **own: Key) -> Callable[[F], F]:
    """Add ``--set KEY=VALUE`` to a verb, which gets each key as an argument."""
    keys = {**{name: SETTINGS[name] for name in names}, **own}

    def add(function: F) -> F:
        @functools.wraps(function)
        def verb(**given: Any) -> Any:
            return function(**parse_keys(given.pop("set"), keys), **given)

        return _keyed("--set", keys, "Rarely needed settings; see below.")(verb)  # type: ignore[no-any-return]

    return add


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about a table to a verb, which gets them as one `TableChoices` called `reading`."""

    @functools.wraps(function)
    def verb(**given: Any) -> Any:
        columns, read = given.pop("columns"), given.pop("read")
        return function(reading=TableChoices(columns=columns, **parse_keys(read, READ)), **given)

    wrapped: Callable[..., Any] = _keyed("--read", READ, "How the table is read; see below.")(verb)
    return options("columns")(wrapped)


# --trust: what a model file may do.


def _check_trust(ctx: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if word not in ("pickle", "process") and "." not in word:
            raise click.BadParameter(f"{word!r} is not pickle, process or a package.Type.", ctx, parameter)
    return words


def trusting(words: Sequence[str]) -> dict[str, Any]:
    """Return ``--trust`` as `read_model` takes it."""
    types = [word for word in words if word not in ("pickle", "process")]
    return {"allow_pickle": "pickle" in words, "trust": "process" in words, "trusted": types}


# --limit: a share of decisions.


def limit_option(help_: str) -> Callable[[F], F]:
    """Return the option ``--limit SHARE``, whose value is a share."""
    return option("--limit", "SHARE", help_, callback=lambda ctx, parameter, word: _share(word))


def _share(text: str | None) -> float | None:
    """Read ``--limit``: a percentage, or a number from 0 to below 1."""
    if text is None:
        return None
    word = str(text).strip()
    try:
        share = float(word[:-1]) / 100 if word.endswith("%") else float(word)
    except ValueError:
        share = -1.0
    # A bare 1 means 1% to most who write it, and would let everything pass.
    if not 0.0 <= share <= 1.0 or (share == 1.0 and not word.endswith("%")):
        raise InputError(f"--limit must be a share of the decisions such as 1% or 0.01, got {text!r}.")
    return share


EPS = 0.1
TWINS = ("attribute", "consequences", "matched", "all")
_SHARED: dict[str, Callable[[Any], Any]] = {
    "model": click.argument("model"),
    "table": click.argument("table", type=PATH),
    "read": table_options,
    "target": option("--target", "COLUMN", "Column that the model predicts.", required=True),
    "target_left_out": option("--target", "COLUMN", "Column that the model predicts, if the table has it."),
    "favourable": option(
        "--favourable", "VALUE", "The decision that people want, a value of the target; or '>=10'."
    ),
    "classes": flag("--classes", "Take each number of the target as a class."),
    "sensitive": option("--sensitive", "COLUMN", "Column that decisions should not depend on.", many=True),
    "edit": option("--edit", "COLUMN:A=B", "Values to exchange: role:Husband=Wife.", many=True),
    "metric": option(
        "--metric", "FILE", "Who is comparable: a file of learn-metric, or learned, or columns.", PATH
    ),
    "eps": option("--eps", "EPS", "Tolerated distance, or age=2,hours=5.", default=f"{EPS}"),
    "eps_asked": option("--eps", "EPS", "Also people this far apart, or age=2,hours=5."),
    "limit": limit_option("Largest share of decisions that may change: 1%."),
    "full": flag("--full", "Print also the loss, ε and what is proved."),
    "delta": option(
        "--delta", "GAP", "Largest gap allowed at ε; exit code 1 above it.", click.FloatRange(min=0)
    ),
    "confidence": option("--confidence", "SHARE", "Of intervals and bounds.", INSIDE, 0.95),
    "twins": option(
        "--twins",
        "KIND|FILE",
        f"Realistic counterparts: {', '.join(TWINS)}; what follows from an attribute: FILE.toml, FILE.dot (a graph) or learned.",
        many=True,
    ),
    "columns": option("--columns", "FILE", "How the columns are read: a file of `likewise inspect`.", FILE),
    "sample": option("--sample", "N", "Take N people at random instead of all.", click.IntRange(min=2)),
    "proof_budget": option("--budget-seconds", "N", "CPU time of the proof.", POSITIVE, 60.0),
    "seed": option("--seed", "N", "The same seed gives the same result.", click.IntRange(min=0), 0),
    "jobs": option("--jobs", "N", "Trainings at a time.", COUNT, 2),
    "language": option("--language", None, "Language of page and terminal.", click.Choice(LANGUAGES), "en"),
    "trust": option(
        "--trust",
        "LEVEL",
        "What a model file may do; see below.",
        many=True,
        callback=_check_trust,
        legend={
            "pickle": "Load pickle, joblib, TorchScript, .pt2: they can run any code.",
            "process": "Run the file in this process, without a sandbox.",
            "package.Type": "Load this type from a skops file.",
        },
    ),
    "sign": option("--sign", "KEY", "", PATH, hidden=True),  # told beside the folder that it signs
    "force": flag("--force", "Replace files that exist."),
    "quiet": flag("-q --quiet", "Print nothing; the exit code gives the outcome."),
    "config": option(
        "--config",
        "FILE",
        "TOML file of options, for all verbs or by [verb].",
        FILE,
        is_eager=True,
        expose_value=False,
        callback=_read_config,
    ),
}


def options(*names: str) -> Callable[[F], F]:
    """Add shared options to a verb, in this order in its help."""

    def add(function: F) -> F:
        for name in reversed(names):
            function = _SHARED[name](function)
        return function

    return add


# What an example begins with: people, and a model of theirs.
PEOPLE = "likewise datasets german -o people.csv"
TRAINED = (PEOPLE, "likewise train people.csv --target target --sensitive sex -o model.safetensors")


def example(*lines: str, after: str = "") -> str:
    """Return the end of a verb's help: an example that works as it stands, and what follows it."""
    # The first character tells click not to wrap these lines.
    shown = "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
    return f"{shown}\n\n{after}" if after else shown
