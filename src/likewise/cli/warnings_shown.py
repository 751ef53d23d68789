"""Warnings of libraries as a person reads them: each once, how often it came, and what the command line can do."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

import click

from likewise.core.text import without_numbers

__all__ = ["ShownWarnings"]

_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning)
_REMEDIES = {
    "ConvergenceWarning": "Leave out columns with very many values or very large numbers (--ignore), or take more "
    "people; `likewise inspect` shows the columns.",
}
# What stands in messages for those who write Python, and the option that does the same.
_OPTIONS = {
    "'eps'": "--eps",
    "'n_steps'": "--steps",
    "'hidden_layer_sizes'": "--hidden",
    "metric=ExpertSubspace([...])": "--metric columns",
}


class ShownWarnings:
    """What stands in for `warnings.showwarning`: a warning is shown when it first comes, and counted after that.

    Warnings that differ only in their numbers are the same.

    Examples
    --------
    >>> shown = ShownWarnings()
    >>> for loss in (0.25, 0.5):
    ...     shown(UserWarning(f"loss {loss} is large"), UserWarning, "a.py", 1)
    >>> shown.repeated()
    ('a warning came 2 times in all: loss … is large',)
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
            click.echo(f"Warning: {_with_options(said)}", err=True)

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
