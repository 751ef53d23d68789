"""What several rooms of tests share."""

import fcntl
import hashlib
import os
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz"

# LightGBM takes a thread for each core, whatever OMP_NUM_THREADS says, and its threads wait for each other by spinning:
# seconds of CPU for a fit of milliseconds where another test process has the core. Read when a library is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="session", autouse=True)
def loops_are_compiled_once(tmp_path_factory):
    """Let a process that needs a loop which another one is compiling wait for it, and take it from numba's cache."""
    try:
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.dispatcher import Dispatcher
    except ImportError:
        yield
        return
    compile_here, compiling = Dispatcher.compile, set()
    locks = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        locks = locks.parent  # the folder of all processes of this run

    def compile_once(self, signature):
        code = self.py_func.__code__
        name = hashlib.sha256(f"{code.co_filename}:{code.co_firstlineno}".encode()).hexdigest()[:16]
        # One thread of a process at a time; and a function that calls itself already has its file.
        with global_compiler_lock:
            if name in compiling:
                return compile_here(self, signature)
            compiling.add(name)
            try:
                with (locks / f"compiling-{name}").open("w") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    return compile_here(self, signature)
            finally:
                compiling.discard(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", compile_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def fuzz():
    """The benchmark of broken files, whose way to make processes is used: a process of a model file that is started
    takes seconds, one that is forked from a process with the libraries loaded does not. tests/models starts one."""
    from likewise.models.sandbox import process

    started = process.starter[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FUZZ)
        import fuzz_models

        fuzz_models.fork_instead("distributed.nanny", "torch", "likewise.auditing.auditor")
        yield fuzz_models
        process.starter[0] = started


@pytest.fixture
def files_in_this_process(monkeypatch, request):
    """Model files are loaded here: the process of their own is tested in tests/models, and costs seconds each time."""
    if "with_trial" in request.node.name:
        return
    from likewise.models import model_files

    read = model_files.read_model

    def here(source, **choices):
        return read(source, **{**choices, "trust": True})

    def tried(source, **choices):
        return here(source, sidecar=False, **choices)

    monkeypatch.setattr(model_files, "read_model", here)
    for room in ("stored", "model_files"):
        monkeypatch.setattr(f"likewise.models.{room}.read_tried", tried)
