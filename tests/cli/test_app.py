"""The real command, run as a person would run it."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pandas as pd
import pytest


def likewise(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "likewise", *arguments], capture_output=True, text=True, check=False
    )


def test_help_lists_the_verbs_without_torch():
    code = (
        "import sys, time, json\n"
        "from likewise.cli.app import cli\n"
        "try:\n    cli.main(['--help'], prog_name='likewise')\n"
        "except SystemExit: pass\n"
        "print(json.dumps({'cpu': time.process_time(), 'heavy': [m for m in ('torch', 'sklearn', 'pandas') if m in sys.modules]}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *help_lines, last = done.stdout.splitlines()
    result = json.loads(last)
    assert result["heavy"] == []
    assert result["cpu"] < 0.5
    from likewise.cli.app import VERBS

    verbs = {
        "demo",
        "inspect",
        "audit",
        "audit-texts",
        "replay",
        "verify",
        "person",
        "recourse",
        "proxies",
        "train",
        "improve",
        "learn-metric",
        "reproduce",
        "serve",
        "datasets",
    }
    assert verbs == set(VERBS)
    for verb in VERBS:
        assert any(line.strip().startswith(verb) for line in help_lines)


def test_every_verb_shows_an_example(run):
    from likewise.cli.app import VERBS

    for verb in VERBS:
        done = run(verb, "--help")
        assert done.code == 0, done.err
        assert "Example" in done.out, verb


def test_every_example_has_arguments_that_its_verb_takes():
    from likewise.cli.app import VERBS, cli

    lines = []
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        text = f"{command.epilog or ''}\n{command.help}"
        found = re.findall(r"likewise ([a-z-]+ .*|[a-z-]+)$", text, flags=re.MULTILINE)
        assert found, verb
        lines += found
    for line in lines:
        verb, *arguments = shlex.split(line)
        cli.get_command(click.Context(cli), verb).make_context(verb, arguments, resilient_parsing=False)


def test_an_unforeseen_error_is_one_message_unless_asked_for_more(monkeypatch, capsys):
    from likewise.cli import app

    def broken(*arguments, **options):
        raise RuntimeError("a bug")

    monkeypatch.setattr(app.cli, "main", broken)
    with pytest.raises(SystemExit) as ended:
        app.main(["datasets"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("Error: something unforeseen happened (RuntimeError: a bug).")
    monkeypatch.setenv(app.TRACEBACK, "1")
    with pytest.raises(RuntimeError, match="a bug"):
        app.main(["datasets"])


def test_advice_is_in_the_words_of_the_command_that_runs(capsys):
    from likewise.cli.app import ShownWarnings, cli

    said = UserWarning("Lower 'eps', try more 'n_steps', or free the columns: metric=ExpertSubspace([...]).")
    for verb, shown in (
        ("train", "Lower --eps, try more --steps, or free the columns: --metric columns."),
        ("datasets", str(said)),
    ):
        command = cli.get_command(click.Context(cli), verb)
        with click.Context(command, info_name=verb):
            ShownWarnings()(said, UserWarning, "a.py", 1)
        assert capsys.readouterr().err == f"Warning: {shown}\n"


def test_the_version_and_what_a_bug_report_needs(run):
    from likewise import __version__

    assert run("--version").out == f"likewise {__version__}\n"
    shown = run("--version", "--verbose").out.splitlines()
    assert shown[0] == f"likewise {__version__}"
    assert any(line.startswith("torch ") for line in shown)


def test_the_help_of_an_audit_fits_and_has_few_options(monkeypatch, run):
    monkeypatch.setenv("COLUMNS", "80")
    help_ = run("audit", "--help").out
    options = help_.split("Options:\n")[1].split("\n\n")[0].splitlines()
    assert sum(line.startswith("  -") for line in options) <= 25
    assert all(len(line) <= 80 for line in options)


def test_a_data_set_becomes_a_file_and_is_not_overwritten(tmp_path):
    target = tmp_path / "german.csv"
    done = likewise("datasets", "german", "-o", str(target))
    assert done.returncode == 0, done.stderr
    assert pd.read_csv(target).shape[0] == 1000
    before = target.read_bytes()
    again = likewise("datasets", "german", "-o", str(target))
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["datasets", "mars"], "mars"),
        (["datasets", "german", "-o", "x.docx"], ".parquet"),
        (["datasets", "german", "-o", "no/such/folder/x.csv"], "no/such/folder"),
        (["nothing"], "No such command"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_two(arguments, message):
    done = likewise(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_messages_outside_of_the_command_line_name_no_option_of_it():
    """Whoever writes Python reads parameters; `option` finds the words for both."""
    import ast

    import likewise

    rooms = Path(likewise.__file__).parent
    written = re.compile(r"(?<![\w`])--[a-z]")
    found = []
    for path in sorted(rooms.rglob("*.py")):
        # `core/text.py` has the words for both; the notes of `learn-metric`, `--columns` and `--edit` come from files and
        # words that only the command line takes; a table of a study says by which command it was made.
        if path.parent.name == "cli" or path.name in ("text.py", "queue.py", "pytest_plugin.py"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        plain = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in plain:
                found += [f"{path.name}: {node.value}"] if written.search(node.value) else []
    only_there = (
        "--metric",
        "--columns",
        "--edit: ",
        "--seeds",
        "var(--",
        "# How likewise reads",
    )
    assert [one for one in found if not any(words in one for words in only_there)] == []
    for language in ("en", "de"):
        assert not written.search((rooms / "core" / f"{language}.toml").read_text(encoding="utf-8"))
