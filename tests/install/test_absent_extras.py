"""Without an extra the command works as far as it can, and says before any work what to install."""

import sys

import pytest

from likewise.core.errors import MissingExtraError


def test_a_page_without_jinja_is_refused_before_work(monkeypatch, tmp_path):
    from likewise.cli.output import check_outputs

    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'likewise\[report\]'"):
        check_outputs([tmp_path / "audit.html"], force=False)
    check_outputs([tmp_path / "audit.json"], force=False)


def test_the_demo_without_jinja_goes_on_without_a_page_and_says_so(monkeypatch, tmp_path, capsys):
    from likewise.cli import demo

    class EnoughSeenError(Exception):
        pass

    def stop(*given, **choices):
        raise EnoughSeenError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("likewise.cli.demo.is_installed", lambda module: False)
    monkeypatch.setattr("likewise.datasets.load_adult", stop)
    with pytest.raises(EnoughSeenError):
        demo.command.main([], standalone_mode=False)
    assert "pip install 'likewise[report]'" in capsys.readouterr().err.replace("\n", " ")
