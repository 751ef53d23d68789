"""An audit that can be repeated: its options as plain text, the files it read with their hashes, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from likewise.cli.table_options import TableChoices
from likewise.core.errors import InputError

__all__ = ["arguments_of", "inputs_of", "recorded_options"]

# Options that name files which the audit reads.
_READ = ("metric", "columns", "graph", "rules")


def recorded_options(
    command: click.Command, values: Mapping[str, Any], names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the options of a run as text, by their long names.

    Parameters
    ----------
    command : click.Command
    values : mapping
        What click made of each parameter, defaults too.
    names : sequence of str
        Parameters that say what is looked at; those of a `TableChoices` go along.

    Returns
    -------
    dict of str to list of str
    """
    found: dict[str, list[str]] = {}
    for option in _options(command, names).values():
        value = values.get(str(option.name))
        if value is None or value == ():
            continue
        many = value if option.multiple else [value]
        found[_long(option)] = [str(one).lower() if isinstance(one, bool) else str(one) for one in many]
    return found


def arguments_of(
    command: click.Command, options: Mapping[str, Sequence[str]], names: Sequence[str]
) -> list[str]:
    """Return recorded options as the command line takes them; one that is not among `names` is refused.

    Examples
    --------
    >>> verb = click.Command("audit", params=[click.Option(["--eps"]), click.Option(["--trust"], is_flag=True)])
    >>> arguments_of(verb, {"eps": ["0.1"]}, ["eps"])
    ['--eps=0.1']
    >>> arguments_of(verb, {"trust": ["true"]}, ["eps"])
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: The evidence asks for the option '--trust', which a replay never takes from a file.
    """
    known = _options(command, names)
    found = []
    for name, values in options.items():
        if name not in known:
            raise InputError(
                f"The evidence asks for the option '--{name}', which a replay never takes from a file."
            )
        option = known[name]
        if not option.is_flag:
            found += [f"--{name}={value}" for value in values]
            continue
        wanted = bool(values) and values[-1] == "true"
        flags = option.opts if wanted else option.secondary_opts
        found += [flag for flag in flags if flag.startswith("--")][:1]
    return found


def inputs_of(
    model: str, table: Path, options: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, str | None]]:
    """Return what an audit reads: the path of each file as it was given, and its SHA-256.

    Parameters
    ----------
    model : str
        A file, or an import path, which has no hash.
    table : Path
    options : mapping
        Of `recorded_options`.
    """
    from likewise.models.sidecars import sidecar_path
    from likewise.report.provenance import hash_of

    paths = {"model": model, "table": str(table)}
    if sidecar_path(model).is_file():
        paths["model description"] = str(sidecar_path(model))
    paths |= {name: options[name][-1] for name in _READ if name in options}
    return {name: {"path": path, "sha256": hash_of(path)} for name, path in paths.items()}


def _options(command: click.Command, names: Sequence[str]) -> dict[str, click.Option]:
    wanted = {*names, *(field.name for field in fields(TableChoices))}
    return {
        _long(option): option
        for option in command.params
        if isinstance(option, click.Option) and option.name in wanted
    }


def _long(option: click.Option) -> str:
    return next(flag[2:] for flag in option.opts if flag.startswith("--"))
