"""What concerns tests and doctests alike: what collecting costs, and that Ctrl-C is heard."""

import contextlib
import gc
import signal
import sys
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

# With it jsonschema builds forty parsers when it is imported, for addresses that no schema here has.
sys.modules.setdefault("rfc3987_syntax", None)

# Lightning takes two seconds to load: its example is run beside the tests that use it.
collect_ignore = ["src/likewise/integrations/lightning_module.py"]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage meanwhile, and look for none among it later: everything that is imported stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        # It asks, once, who refers to an object; what is frozen does not answer.
        with contextlib.suppress(ImportError):
            import hypothesis  # noqa: F401
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path):
    """Look for doctests only in files that have one: looking imports the file, and every name a package offers."""
    collectors = yield
    if not collectors or ">>> " in file_path.read_text(encoding="utf-8"):
        return collectors
    return [found for found in collectors if not isinstance(found, DoctestModule)]


def pytest_configure():
    """Look for garbage seldom, and hear Ctrl-C also in the background of a shell, which switches it off there."""
    gc.set_threshold(20_000, 20, 20)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
