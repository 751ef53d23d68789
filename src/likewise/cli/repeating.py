"""The command line that finds the same again, for pages and files to say."""

from __future__ import annotations

import shlex
from typing import Any

import click

__all__ = ["repeated_command"]

# What changes where and how it is said, and not what is found.
_NOT_REPEATED = {"quiet", "force", "jobs", "config"}


def repeated_command(ctx: click.Context) -> str:
    """Return the command line that finds the same again: every choice that is no default, as it was typed.

    Parameters
    ----------
    ctx : click.Context
        Of the verb.
    """
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
