"""The command under torchrun: one process speaks, all leave with the same exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from likewise.core.launch import alone, launched

__all__ = ["agreeing", "first_speaks", "grouped"]

# What several processes do together. Anything else the first does by itself.
TOGETHER = ("train",)


@contextmanager
def first_speaks(arguments: Sequence[str] | None) -> Iterator[TextIO]:
    """Run the command so that only the first process is heard; give the stream for what any of them must tell.

    A verb that one process does is left to the first; the others exit with 0.

    Parameters
    ----------
    arguments : sequence of str, optional
        Of the command; default: those of the process.
    """
    launch, stderr = launched(), sys.stderr
    if not launch.several:
        yield stderr
        return
    words = sys.argv[1:] if arguments is None else arguments
    shared = any(word in TOGETHER for word in words[:1])
    if not shared and not launch.first:
        sys.exit(0)
    with ExitStack() as stack:
        if not shared:
            stack.enter_context(alone())
        elif not launch.first:
            nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(redirect_stdout(nowhere))
            stack.enter_context(redirect_stderr(nowhere))
        yield stderr


@contextmanager
def grouped() -> Iterator[None]:
    """Run a block in the process group of those who were started together, if any."""
    if not launched().several:
        yield
        return
    from likewise.training.ranks import joined

    with joined():
        try:
            yield
        except BaseException:
            # When one process has failed torchrun ends the others, which are about to say why and to end by themselves.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise


@contextmanager
def agreeing() -> Iterator[None]:
    """Run a block whose error on one process is raised on all of them."""
    if not launched().several:
        yield
        return
    from likewise.training.ranks import current_ranks

    with current_ranks().agree():
        yield
