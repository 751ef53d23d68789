"""Files of the generator, written when a test asks for one."""

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("troublesome", Path(__file__).with_name("troublesome.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
troublesome = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(troublesome)


@pytest.fixture(scope="session")
def trouble(tmp_path_factory):
    """A function from the name of a trouble to a file that has it."""
    folder = tmp_path_factory.mktemp("troubles")

    def make(name: str) -> Path:
        path = folder / f"{name}.csv"
        if not path.exists():
            troublesome.TROUBLES[name](path)
        return path

    return make


@pytest.fixture(scope="session")
def published():
    """A function from the name of a published table to its file."""

    def find(name: str) -> Path:
        path = troublesome.PUBLISHED / name
        if not path.is_file():
            pytest.skip(f"{name} is not kept beside the repository; LIKEWISE_TABLES names its folder")
        return path

    return find


@pytest.fixture(scope="session")
def people():
    return troublesome.people


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in this process; what it said, and its exit code."""
    from likewise.cli.app import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "unforeseen" not in err, err
        assert "Traceback" not in err, err
        return int(ended.value.code or 0), out, err

    return call
