"""What a release carries: the wheel's contents and metadata, versions that agree, a citation that can be read.

The wheel is put together by the build backend in this process, which takes a second; that it installs and runs in an
empty environment is `make release-check`.
"""

import email
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import likewise

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a copy of what the build needs, so that the tree stays as it is."""
    place = tmp_path_factory.mktemp("build")
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, place)
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    code = "from setuptools import build_meta; print(build_meta.build_wheel('out'))"
    (place / "out").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    (found,) = (place / "out").glob("*.whl")
    return zipfile.ZipFile(found)


def test_the_wheel_is_small_and_holds_every_file_of_the_package_and_nothing_else(wheel):
    source = ROOT / "src"
    own = {
        path.relative_to(source).as_posix()
        for path in (source / "likewise").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == own
    # 5.7 MB: 2.1 word vectors, 1.5 names and places by race; an upload that forgets to compress is larger.
    assert sum(one.compress_size for one in wheel.infolist()) < 6_000_000


def test_the_metadata_say_what_is_supported_and_needed(wheel):
    (name,) = (one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
    told = email.message_from_bytes(wheel.read(name))
    assert told["Version"] == likewise.__version__
    assert told["Requires-Python"] == ">=3.11"
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(
        told.get_all("Classifier")
    )
    base = [one for one in told.get_all("Requires-Dist") if "extra ==" not in one]
    assert sorted(one.split(">")[0] for one in base) == [
        "click", "jinja2", "narwhals", "numpy", "pandas", "pyarrow", "rich", "safetensors", "scikit-learn", "scipy",
    ]  # fmt: skip
    (entry,) = (one for one in wheel.namelist() if one.endswith("entry_points.txt"))
    points = wheel.read(entry).decode()
    assert "likewise = likewise.cli:main" in points
    assert "likewise.integrations.pytest_plugin = likewise.integrations.pytest_plugin" in points


def test_hashes_are_of_the_pinned_versions():
    pinned, hashed = (
        [line.split() for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if "==" in line]
        for name in ("constraints.txt", "hashes.txt")
    )
    assert [words[0] for words in hashed] == [pin for (pin,) in pinned if not pin.startswith("torch==")]
    assert all(
        len(words) > 1 and all(word.startswith("--hash=sha256:") for word in words[1:]) for words in hashed
    )


def test_all_brings_every_extra_that_is_for_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"all", "dev", "docs", "bench"}
    (everything,) = project["optional-dependencies"]["all"]
    assert set(everything.removeprefix("likewise[").removesuffix("]").split(",")) == extras


def test_the_citation_is_of_this_version_and_names_the_paper():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    assert cited["version"] == likewise.__version__
    assert [one["family-names"] for one in cited["references"][0]["authors"]] == ["Yurochkin", "Bower", "Sun"]


@pytest.mark.parametrize(
    "page", ["SECURITY.md", "docs/releases.md", "docs/evidence.md", "docs/integrations.md"]
)
def test_commands_and_files_that_the_pages_name_exist(page):
    import re

    from likewise.cli.app import VERBS

    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    for line in re.findall(r"^make ([a-z -]+?)(?:\s+#|$)", text, flags=re.MULTILINE):
        assert set(line.split()) <= targets, line
    for verb in re.findall(r"^likewise ([a-z-]+) ", text, flags=re.MULTILINE):
        assert verb in VERBS
    for linked in re.findall(r"\]\((?!http)([^)]+)\)", text):
        assert ((ROOT / page).parent / linked).exists(), linked
