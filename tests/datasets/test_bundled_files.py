from __future__ import annotations

from importlib.resources import files
from pathlib import Path

NOTICE = Path(__file__).resolve().parents[2] / "NOTICE"


def bundled() -> set[str]:
    return {entry.name for entry in files("likewise.datasets").joinpath("data").iterdir()}


def test_every_bundled_file_has_its_source_and_licence_in_the_notice():
    text = NOTICE.read_text()
    assert bundled()
    assert [name for name in sorted(bundled()) if name not in text] == []


def test_files_without_a_licence_are_not_bundled():
    assert not [name for name in bundled() if "google" in name or "nyc" in name]
