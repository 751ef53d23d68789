"""Processes of model files are forked here from one that has the libraries loaded: starting one takes seconds."""

import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz"


@pytest.fixture(scope="module")
def fuzz():
    """The benchmark of broken files; while it is in use its way to make processes is."""
    from likewise.models.isolated import process

    started = process.starter[0]
    sys.path.insert(0, str(FUZZ))
    try:
        import fuzz_models

        fuzz_models.fork_instead()
        yield fuzz_models
    finally:
        process.starter[0] = started
        sys.path.remove(str(FUZZ))
