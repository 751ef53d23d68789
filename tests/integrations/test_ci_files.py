"""The GitHub Action and the pre-commit hooks: valid, and every option they pass is one the command takes."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]


def verb(name):
    from likewise.cli.app import cli

    return cli.get_command(click.Context(cli), name)


@pytest.fixture(scope="module")
def action():
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def test_the_action_is_a_composite_one_whose_inputs_are_all_used_and_none_is_run_as_code(action):
    assert set(action) == {"name", "description", "inputs", "outputs", "runs"}
    assert action["runs"]["using"] == "composite"
    steps = action["runs"]["steps"]
    assert all(step["shell"] == "bash" for step in steps)
    used = {
        name
        for step in steps
        for value in step["env"].values()
        for name in re.findall(r"inputs\.(\w+)", value)
    }
    assert used == set(action["inputs"])
    for step in steps:
        assert "${{" not in step["run"]
        assert set(re.findall(r"\$\{?([A-Z]+)\b", step["run"])) <= {*step["env"], "GITHUB_OUTPUT"}
    written = set(re.findall(r'echo "(\w+)=', steps[1]["run"]))
    assert written == set(action["outputs"])


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_what_the_action_passes_is_what_the_command_takes(action, tmp_path):
    step = action["runs"]["steps"][1]
    stub = tmp_path / "likewise"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > said.txt\n', encoding="utf-8")
    stub.chmod(0o755)
    given = {
        "MODEL": "my model.onnx", "TABLE": "people.csv", "TARGET": "$(touch harmed)", "SENSITIVE": "sex\nmarital status\n",
        "FAVOURABLE": ">50K", "LIMIT": "1%", "EPS": "0", "DELTA": "0.05", "CONFIG": "", "EVIDENCE": "out",
    }  # fmt: skip
    assert set(given) == set(step["env"])
    environment = {
        **given,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    subprocess.run(["bash", "-euo", "pipefail", "-c", step["run"]], check=True, cwd=tmp_path, env=environment)
    name, *arguments = (tmp_path / "said.txt").read_text(encoding="utf-8").splitlines()
    with verb(name).make_context(name, arguments) as context:
        found = context.params
    assert (found["model"], str(found["table"]), found["target"]) == (
        "my model.onnx",
        "people.csv",
        "$(touch harmed)",
    )
    assert found["sensitive"] == ("sex", "marital status")
    assert (found["eps"], found["delta"], found["output"]) == ("0", 0.05, ("out/",))
    assert found["limit"] in ("1%", 0.01)
    assert not (tmp_path / "harmed").exists()
    assert (tmp_path / "output").read_text(encoding="utf-8") == "evidence=out\nsarif=out/audit.sarif\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_line_end_in_the_name_of_the_evidence_writes_no_other_output(action, end, tmp_path):
    step = action["runs"]["steps"][1]
    given = dict.fromkeys(step["env"], "") | {"EVIDENCE": f"out{end}sarif=/etc/passwd"}
    environment = {**given, "PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(tmp_path / "output")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", step["run"]],
        check=False,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
    )
    assert (done.returncode, (tmp_path / "output").exists()) == (2, False)


def test_the_workflow_puts_nothing_of_others_into_a_command():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert not any("${{" in step.get("run", "") for step in steps)
    assert workflow["permissions"] == {"contents": "read"}


def test_extras_of_the_action_exist(action):
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(action["inputs"]["extras"]["default"].split(",")) <= set(project["optional-dependencies"])


def test_the_hooks_have_what_pre_commit_asks_for_and_call_verbs_that_exist():
    from likewise.cli.app import VERBS

    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    stages = {
        "commit-msg",
        "post-checkout",
        "pre-commit",
        "pre-merge-commit",
        "pre-push",
        "pre-rebase",
        "manual",
    }
    keys = {
        "id",
        "name",
        "description",
        "entry",
        "language",
        "pass_filenames",
        "files",
        "always_run",
        "stages",
    }
    for hook in hooks:
        assert {"id", "name", "entry", "language"} <= set(hook) <= keys
        command, name = hook["entry"].split()
        assert command == "likewise"
        assert name in VERBS
        assert hook["language"] == "python"
        assert set(hook["stages"]) <= stages
        assert re.compile(hook.get("files", ""))
