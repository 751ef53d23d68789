"""The parent's handle of a sandboxed process: starts it, sends requests, and ends it at a timeout or when it is unused."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from likewise.core.errors import FormatError, InputError, LikewiseError, MissingExtraError, ModelError
from likewise.core.progress import blocked_interrupts, deferred_interrupts
from likewise.core.text import COMMAND_LINE, on_command_line, option
from likewise.models.sandbox.messages import MEMORY, SECONDS, Array, Limits, receive, send

_ERRORS: dict[str, type[LikewiseError]] = {
    "InputError": InputError,
    "FormatError": FormatError,
    "ModelError": ModelError,
    "MissingExtraError": MissingExtraError,
}
_MAX_SENTENCE = 2_000


def _trust() -> str:
    return f"If you made the file yourself, run it in this process ({option('this_process')})"


# Starts a process: what has its `kill` and `wait`, and the pipes to write questions to and to read answers from.
Starter = Callable[[Limits, Sequence[str], Sequence[str]], tuple[Any, BinaryIO, BinaryIO]]


# Variables that libraries need: where they are, how they compute, in which language and zone. Keys and tokens stay here.
_VARIABLES = (
    "HOME",
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "SYSTEMROOT",
    "VIRTUAL_ENV",
)
_PREFIXES = ("LC_", "OMP_", "KMP_", "MKL_", "OPENBLAS_", "PYTHON", "LIKEWISE_")


def start_process(
    limits: Limits, paths: Sequence[str] = (), files: Sequence[str] = ()
) -> tuple[Any, BinaryIO, BinaryIO]:
    """Start a confined process and return it with the pipes to write questions to and to read answers from."""
    command, environment = _program({"memory": limits.memory, "files": list(files)}, paths)
    with blocked_interrupts():
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
    assert process.stdin is not None
    assert process.stdout is not None
    return process, process.stdin, process.stdout  # type: ignore[return-value]


def _program(limits: dict[str, Any], paths: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """The program of a confined process, and its environment."""
    # -P: nothing in the current folder may pose as a library.
    program = str(Path(__file__).with_name("confined.py"))
    package = str(Path(__file__).parents[3])
    found = [package, *paths, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        name: value for name, value in os.environ.items() if name in _VARIABLES or name.startswith(_PREFIXES)
    }
    # Libraries must not start processes of their own there.
    if on_command_line():
        environment[COMMAND_LINE] = "1"  # its messages name options too
    environment |= {"PYTHONPATH": os.pathsep.join(found), "JOBLIB_MULTIPROCESSING": "0"}
    return [sys.executable, "-P", program, json.dumps(limits)], environment


def held_here() -> list[str]:
    """Return which limits this system holds the process of a model file to."""
    command, environment = _program({"memory": Limits().memory, "probe": True})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    return [str(word) for word in json.loads(done.stdout)] if done.returncode == 0 else []


# Replaced if many files are tried and a process is forked instead of started.
starter: list[Starter] = [start_process]


class Child:
    """A process that runs one model file."""

    def __init__(
        self, name: str, label: str, limits: Limits, paths: Sequence[str] = (), files: Sequence[str] = ()
    ) -> None:
        self.name, self.label, self.limits = name, label, limits
        self.handle, self._questions, self._answers = starter[0](limits, paths, files)
        for pipe in (self._questions, self._answers):
            # A megabyte at a time, if the system can do that.
            with contextlib.suppress(ImportError, OSError, AttributeError):
                import fcntl

                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, 2**20)
        self._lock = threading.Lock()
        self.over: str | None = None
        self.exhausted = self.killed = self.may_restart = False
        self.owner = os.getpid()
        self._end = weakref.finalize(self, _end, self.handle, self._questions, self._answers, self.owner)

    def ask(
        self, text: dict[str, Any], arrays: Sequence[Array] = (), *, most: int = 0
    ) -> tuple[dict[str, Any], list[Array]]:
        """Ask a question and return the answer."""
        # SIGINT is delivered between two questions, so that a caller that keeps partial results can go on asking.
        with self._lock, deferred_interrupts():
            if self.over is not None:
                raise ModelError(self.over)
            late = threading.Event()
            watch = threading.Timer(self.limits.seconds, self._stop, [late])
            watch.daemon = True
            watch.start()
            try:
                send(self._questions, {**text, "seconds": self.limits.seconds}, arrays)
                answer, found = receive(self._answers, most=most)
            except (OSError, EOFError, ValueError) as error:
                watch.cancel()
                raise ModelError(self._give_up(late, error)) from error
            except BaseException:
                # Half a question was asked (Ctrl-C twice, no memory): nobody could tell the answers apart any more.
                self._end()
                self.over = f"{self.name} was stopped in the middle of an answer. Load it again."
                raise
            finally:
                watch.cancel()
        return self._checked(answer), found

    def close(self) -> None:
        """End the process."""
        self._end()

    def _stop(self, late: threading.Event) -> None:
        late.set()
        self.handle.kill()

    def _checked(self, answer: dict[str, Any]) -> dict[str, Any]:
        for said in list(answer.get("warnings") or [])[:20]:
            warnings.warn(f"{self.name}: {str(said)[:_MAX_SENTENCE]}", UserWarning, stacklevel=4)
        wrong = answer.get("error")
        if wrong is None:
            return answer
        message = str(answer.get("message"))[:_MAX_SENTENCE]
        # onnxruntime says so in its own words, and not only while it answers: also while it loads.
        if wrong == "MemoryError" or "bad_alloc" in message:
            self.exhausted = True
            raise ModelError(self._too_much())
        kind = _ERRORS.get(str(wrong), ModelError)
        if kind is ModelError and not message.startswith(self.name):
            message = f"{self.name}: {message}"
        raise kind(message)

    def _give_up(self, late: threading.Event, error: Exception) -> str:
        """End the process and return the reason, which is repeated for every later question."""
        answered = isinstance(error, FormatError)
        # A process that crashed is given the time to end by itself, so that its exit code is known.
        code = None if answered else _code(self.handle)
        self._end()
        if late.is_set():
            self.over = f"{self.name} did not answer within {self.limits.seconds:g} s and was stopped. {_trust()}, or set {SECONDS}."
        elif answered:
            self.over = (
                f"{self.name} is a damaged {self.label} model: {error}. Save the model again. {_trust()}."
            )
        elif code is not None and _signal(code) == "SIGKILL" and self.exhausted:
            self.over = self._too_much()
        elif code is not None and _signal(code) in ("SIGKILL", "SIGTERM"):
            self.over, self.killed, self.may_restart = self._was_killed(), True, True
        else:
            how, self.may_restart = (
                "" if code is None else f" ({_signal(code)})",
                code is not None and code < 0,
            )
            self.over = (
                f"{self.name} is a damaged {self.label} model: it crashed the process that ran it{how}. "
                f"Save the model again. {_trust()}."
            )
        return self.over

    def _was_killed(self) -> str:
        return (
            f"{self.name}: the process that runs it was killed, by somebody or because the system has no memory left. "
            f"It may have {self.limits.gigabytes:g} GB ({MEMORY}). Ask again."
        )

    def _too_much(self) -> str:
        return (
            f"{self.name} needs more than the {self.limits.gigabytes:g} GB of memory that a model file may use, and was "
            f"stopped. {_trust()}, or set {MEMORY}."
        )


def _end(handle: Any, questions: BinaryIO, answers: BinaryIO, owner: int) -> None:
    if os.getpid() != owner:
        return
    handle.kill()
    for pipe in (questions, answers):
        with contextlib.suppress(OSError):
            pipe.close()
    _code(handle)


def _code(handle: Any) -> int | None:
    """Wait for the end of a process; its exit code, negative for a signal, or None if it goes on."""
    try:
        code: int | None = handle.wait(5.0)
    except subprocess.TimeoutExpired:
        return None
    return code


def _signal(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
