from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture
def shared_file():
    """Path of a file that may not be copied into the package; the test skips where it is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.is_file():
            pytest.skip(f"{name} is not part of the package and was not found beside the checkout")
        return path

    return find
