"""Ctrl-C before the libraries of the command are loaded: a word and exit code 130, and nothing to clean up."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # what `signal` wraps, which takes as long to load as Python to start
import os
import sys


def _stop(number: int, frame: object) -> None:
    os.write(2, b"Stopped.\n")
    os._exit(128 + number)


def _is_command() -> bool:
    """Whether this process is `likewise` or `python -m likewise`, of which Python has not found the module yet."""
    program = sys.argv[0] if sys.argv else ""
    name = os.path.splitext(os.path.basename(program))[0]  # noqa: PTH119, PTH122 - pathlib takes longer to load
    return program in sys.orig_argv and (
        name == "likewise" or (program == "-m" and "likewise" in sys.orig_argv)
    )


# A library leaves signals alone.
if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _stop)
