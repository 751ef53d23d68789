"""Options from a TOML file: its values become the defaults of the options, and unknown keys are refused."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from likewise.core.errors import InputError

__all__ = ["config_option"]

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
