"""The entry point of the sandboxed process: it applies its limits before it imports any library.

Run as a program (``python -P confined.py LIMITS``) with nothing imported but what Python brings: a network of its own
can only be had before any library has started threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any

_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000


# What libraries look at besides themselves: processors, memory, time zone, random numbers.
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/localtime", "/proc/cpuinfo", "/proc/meminfo",
    "/proc/stat", "/proc/self", "/proc/sys/vm", "/sys/devices/system", "/sys/fs/cgroup", "/dev/urandom", "/dev/random",
)  # fmt: skip


def confine(limits: Mapping[str, Any]) -> list[str]:
    """Limit this process for good; return which limits the system holds it to.

    Of these "paths" (the model's files and the libraries, nothing else), "calls" (no programs, processes, sockets) and
    "privileges" only if the kernel is a Linux that has them.
    """
    held = ["network"] if _leave_network() else []
    # If memory runs out all the same, the system ends this process before any other.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("1000")
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
    libraries = [path for path in (*sys.path, sys.prefix, sys.base_prefix) if path]
    paths = (*_SYSTEM, *libraries, *_mapped(), *limits.get("files", ()))
    parts = {
        "privileges": drop_privileges,
        "paths": lambda: confine_paths(paths, [os.devnull]),
        "calls": filter_calls,
    }
    return held + [name for name, hold in parts.items() if hold()]


def _mapped() -> set[str]:
    """Folders of the libraries that are loaded, wherever Python was installed."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:  # noqa: PTH123
        found = {line.split(maxsplit=5)[-1].strip() for line in file if "/" in line}
        return {os.path.dirname(path) for path in found if ".so" in path}  # noqa: PTH120
    return set()


def allow_seconds(seconds: float) -> None:
    """Let this process compute for so long from now, in case the process that asked has ended and cannot stop it."""
    with contextlib.suppress(ImportError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = used.ru_utime + used.ru_stime
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        wanted = int(spent + seconds * (os.cpu_count() or 1)) + 2
        if hard == resource.RLIM_INFINITY or wanted < hard:
            resource.setrlimit(resource.RLIMIT_CPU, (wanted, hard))


def _limit(resource: Any, name: str, value: int) -> bool:
    """Lower a limit, never raise one; False if the system does not know it."""
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
    """Move to a network namespace without any connection, if the system lets a process do that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        system = ctypes.CDLL(None, use_errno=True)
        system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        # An administrator may do it at once, others as users of a namespace of their own.
        return any(system.unshare(flags) == 0 for flags in (_NEW_NETWORK, _NEW_NETWORK | _NEW_USER))
    except (OSError, AttributeError):
        return False


# What the kernel of Linux holds a process to for good; each function says whether it does.

_NO_NEW_PRIVILEGES, _DROP_BOUND, _SECCOMP = 38, 24, 22
# Files of any owner can still be read, if paths allow it: a model file may belong to another user.
_READ_ANY = 2


def _library() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def drop_privileges() -> bool:
    """Give up every capability, so that an administrator's process can undo none of its limits."""
    system = _library()
    if system is None or system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    for number in range(64):
        if number != _READ_ANY:
            system.prctl(_DROP_BOUND, number, 0, 0, 0)
    header = struct.pack("Ii", 0x20080522, 0)
    kept = 1 << _READ_ANY if os.geteuid() == 0 else 0
    data = struct.pack("6I", kept, kept, 0, 0, 0, 0)
    return bool(system.capset(header, data) == 0)


# Landlock, which Linux has since 5.13; the syscalls have the same numbers everywhere.

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
# Rights on files by version: up to making symbolic links, then moving, truncating, and asking devices.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def confine_paths(readable: Iterable[str], writable: Iterable[str] = ()) -> bool:
    """Let this process open these files and folders and nothing else; run no program; connect to nothing."""
    system = _library()
    version = -1 if system is None else system.syscall(_CREATE, None, 0, 1)
    if system is None or version < 1:
        return False
    files = (1 << _RIGHTS[min(version, 5)]) - 1
    attributes = struct.pack("QQQ", files, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = system.syscall(_CREATE, attributes, size, 0)
    if ruleset < 0:
        return False
    for paths, rights in ((readable, _READ_FILE), (writable, _READ_FILE | _WRITE_FILE)):
        for path in paths:
            try:
                handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            allowed = rights | (_READ_DIR if os.path.isdir(path) else 0)  # noqa: PTH112
            system.syscall(_ADD, ruleset, 1, struct.pack("=Qi", allowed, handle), 0)
            os.close(handle)
    held = system.syscall(_RESTRICT, ruleset, 0) == 0
    os.close(ruleset)
    return bool(held)


# A filter of system calls: those that a model does not need fail with "not permitted".

# Programs, other processes, sockets, memory and queues that processes share, changes of files and of what is noted about them,
# files without a path, and ways around the filter; by machine.
_REFUSED = {
    "x86_64": (
        0xC000003E,
        "59 322 57 58 101 310 311 41 53 62 424 434 76 82 264 316 83 258 84 87 263 86 265 88 266 90 91 268 452 92 93 260 165 "
        "272 308 425 248 249 250 321 298 323 200 129 297 438 440 141 132 235 261 280 188 189 190 463 197 198 199 466 133 259 303 304 "
        "29 30 31 64 65 66 220 68 69 70 71 240 241",
    ),
    "aarch64": (
        0xC00000B7,
        "221 281 117 270 271 198 199 129 424 434 45 38 276 34 35 37 36 52 53 452 54 55 40 97 268 425 217 218 219 280 241 282 "
        "130 138 240 438 440 140 88 5 6 7 463 14 15 16 466 33 264 265 194 195 196 190 191 192 193 186 187 188 189 180 181",
    ),
}
# What depends on an argument: a thread is a clone with its flag; signals and limits of this process; no signals for others
# by way of a handle (F_SETOWN, F_SETOWN_EX).
_CLONE, _TGKILL, _PRLIMIT, _FCNTL = (
    {"x86_64": one, "aarch64": other} for one, other in ((56, 220), (234, 131), (302, 261), (72, 25))
)
_THREAD, _OWNER, _CLONE3 = 0x10000, 0x8, 435
_ALLOW, _REFUSE, _UNKNOWN, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


def filter_calls() -> bool:
    """Refuse system calls that run programs, start processes, open sockets or change what is in folders."""
    system, machine = _library(), platform.machine()
    if system is None or machine not in _REFUSED or sys.maxsize < 2**32:
        return False
    architecture, numbers = _REFUSED[machine]

    def line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    load, equal, any_bit, end = 0x20, 0x15, 0x45, 0x06
    program = [line(load, 4), line(equal, architecture, 1, 0), line(end, _KILL), line(load, 0)]
    # Another machine's numbers on the same one (x32).
    program += [line(0x35, 0x40000000, 0, 1), line(end, _REFUSE)]
    for number in map(int, numbers.split()):
        program += [line(equal, number, 0, 1), line(end, _REFUSE)]
    # Without clone3 libraries use clone, whose flags can be read.
    program += [line(equal, _CLONE3, 0, 1), line(end, _UNKNOWN)]
    for call, argument, test, value, ends in (
        (_CLONE, 0, any_bit, _THREAD, (_ALLOW, _REFUSE)),
        (_TGKILL, 0, equal, os.getpid(), (_ALLOW, _REFUSE)),
        (_PRLIMIT, 0, equal, 0, (_ALLOW, _REFUSE)),
        (_FCNTL, 1, any_bit, _OWNER, (_REFUSE, _ALLOW)),
    ):
        program += [line(equal, call[machine], 0, 4), line(load, 16 + 8 * argument)]
        program += [line(test, value, 0, 1), *(line(end, one) for one in ends)]
    program.append(line(end, _ALLOW))
    text = ctypes.create_string_buffer(b"".join(program))
    filter_ = struct.pack("HxxxxxxP", len(program), ctypes.addressof(text))
    system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(system.prctl(_SECCOMP, 2, filter_, 0, 0) == 0)


def main() -> None:
    """Confine this process, then answer questions until nobody asks any more."""
    # SIGINT is handled by the process that asks, which ends this one too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limits = json.loads(sys.argv[1])
    held = confine(limits)
    if limits.get("probe"):
        sys.stdout.write(json.dumps(held))
        return
    questions, answers = os.dup(0), os.dup(1)
    # Libraries print; what they print must not get among the answers.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for taken in (0, 1):
        os.dup2(nowhere, taken)
    from likewise.models.sandbox.child import serve

    serve(questions, answers, held)


if __name__ == "__main__":
    main()
