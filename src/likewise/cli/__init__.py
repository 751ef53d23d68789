"""The command line: one file per verb; parse, call, print."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any, NoReturn

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
    # Ctrl-C while the libraries load: there is nothing to clean up, and a traceback helps nobody.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    from likewise.cli import app

    app.main(arguments)


def _stop(number: int, frame: Any) -> NoReturn:
    os.write(2, b"Stopped.\n")
    os._exit(128 + number)
