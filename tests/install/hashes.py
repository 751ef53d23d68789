"""Write hashes.txt: the SHA-256 of every file of the versions in constraints.txt that the package index has.

    python tests/install/hashes.py

Of wheels, those for the supported versions of Python on Linux, macOS and Windows. Torch is left out: each kind of machine has
a build of its own from an index of its own, which has no entry in this one.
"""

from __future__ import annotations

import re
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FILE = re.compile(r'href="([^"#]+)#sha256=([0-9a-f]{64})"')
_PYTHON = re.compile(r"py3(?!\d)|cp31[123]-(?!cp31\dt)|-abi3")
_PLATFORM = re.compile(r"any$|manylinux.*(x86_64|aarch64)|macosx|win_amd64")


def line(pin: str) -> str:
    """Return a pinned version with the hashes of its files."""
    name, version = pin.split("==")
    plain = re.sub(r"[-_.]+", "-", name).lower()
    with urllib.request.urlopen(f"https://pypi.org/simple/{plain}/", timeout=120) as answer:
        found = _FILE.findall(answer.read().decode())
    files = [(urllib.parse.unquote(address.rsplit("/", 1)[1]), digest) for address, digest in found]
    chosen = sorted(digest for file, digest in files if is_wanted(file, version))
    if not chosen:
        raise RuntimeError(f"the index has no file of {pin}")
    return " ".join([pin, *(f"--hash=sha256:{digest}" for digest in chosen)])


def is_wanted(file: str, version: str) -> bool:
    if file.endswith((".tar.gz", ".zip")):
        return file.removesuffix(".tar.gz").removesuffix(".zip").endswith(f"-{version}")
    if not file.endswith(".whl"):
        return False
    _, built, *tags = file.removesuffix(".whl").split("-")
    python = "-".join(tags[-3:-1])
    return built == version and bool(_PYTHON.search(python)) and bool(_PLATFORM.search(tags[-1]))


def main() -> None:
    pins = [pin for pin in (ROOT / "constraints.txt").read_text().split("\n") if "==" in pin]
    with ThreadPoolExecutor(6) as workers:
        lines = list(workers.map(line, [pin for pin in pins if not pin.startswith("torch==")]))
    head = "# The files of constraints.txt. Written by tests/install/hashes.py, which says why torch is not here."
    (ROOT / "hashes.txt").write_text("\n".join([head, *lines, ""]))


if __name__ == "__main__":
    main()
