from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load(name: str, path: Path) -> ModuleType:
    """Import a file of helpers once."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    return load("likewise_report_samples", Path(__file__).parents[1] / "report" / "samples.py")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One Chromium for all tests of pages; skipped, with what is missing, where there is none."""
    chromium = load("likewise_chromium", Path(__file__).with_name("chromium.py"))
    if chromium.MISSING:
        pytest.skip(f"not on this machine: {', '.join(chromium.MISSING)}")
    opened = chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.driver.quit()
