"""The documentation's own modules, which Sphinx finds beside `docs/conf.py`."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="session", autouse=True)
def _documentation_can_be_imported():
    sys.path.insert(0, str(DOCS / "extensions"))
    yield
    sys.path.remove(str(DOCS / "extensions"))
