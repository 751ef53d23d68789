"""The command line: one file per verb; parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code; see `likewise.cli.app.main`.

    Examples
    --------
    >>> try:
    ...     main(["--version"])
    ... except SystemExit as end:
    ...     print(end.code)
    likewise ...
    0
    """
    from likewise.cli import app

    app.main(arguments)
