"""The first lines of a process that runs a model file of another library: limits first, libraries after.

Run as a program (``python -P confined.py LIMITS``) with nothing imported but what Python brings: a network of its own
can only be had before any library has started threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

_NEW_NETWORK, _NEW_USER, _NO_NEW_PRIVILEGES = 0x40000000, 0x10000000, 38


def confine(limits: Mapping[str, Any]) -> list[str]:
    """Limit this process for good."""
    held = ["network"] if _leave_network() else []
    _be_killed_first()
    with contextlib.suppress(ImportError):  # no such limits on this system
        import resource

        memory = int(limits["memory"])
        # Address space holds libraries and the reserve of every thread besides.
        space = 2 * memory + (4 + (os.cpu_count() or 1) // 4) * 2**30
        data = _limit(resource, "RLIMIT_DATA", memory)
        if _limit(resource, "RLIMIT_AS", space) or data:
            held.append("memory")
        if _limit(resource, "RLIMIT_FSIZE", 0):
            held.append("files")
        _limit(resource, "RLIMIT_CORE", 0)
    return held


def allow_seconds(seconds: float) -> None:
    """Let this process compute for so long from now, should whoever asked be gone and not stop it."""
    with contextlib.suppress(ImportError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = used.ru_utime + used.ru_stime
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        wanted = int(spent + seconds * (os.cpu_count() or 1)) + 2
        if hard == resource.RLIM_INFINITY or wanted < hard:
            resource.setrlimit(resource.RLIMIT_CPU, (wanted, hard))


def _limit(resource: Any, name: str, value: int) -> bool:
    """Lower a limit, never raise one; False where the system does not know it."""
    kind = getattr(resource, name, None)
    if kind is None:
        return False
    hard = resource.getrlimit(kind)[1]
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (wanted, wanted))
    except (ValueError, OSError):
        return False
    return True


def _leave_network() -> bool:
    """Move to a network namespace without any connection, where the system lets a process do that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        system = ctypes.CDLL(None, use_errno=True)
        system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        # An administrator may do it at once, others as users of a namespace of their own.
        return any(system.unshare(flags) == 0 for flags in (_NEW_NETWORK, _NEW_NETWORK | _NEW_USER))
    except (OSError, AttributeError):
        return False


def _be_killed_first() -> None:
    """If memory runs out all the same, let the system end this process before any other."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("1000")


def main() -> None:
    """Confine this process, then answer questions until nobody asks any more."""
    # Ctrl-C is for whoever asks, who ends this process too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    held = confine(json.loads(sys.argv[1]))
    questions, answers = os.dup(0), os.dup(1)
    # Libraries print; what they print must not get among the answers.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for taken in (0, 1):
        os.dup2(nowhere, taken)
    from likewise.models.sandbox.child import serve

    serve(questions, answers, held)


if __name__ == "__main__":
    main()
