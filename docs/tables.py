"""Put the tables of finished studies into docs/reproduction.md, between their markers.

python docs/tables.py            # after likewise reproduce … -o docs/reproduction
python docs/tables.py --check    # say whether the page is up to date, change nothing
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "reproduction.md"
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def table(folder: Path) -> str:
    """The table of a study without its heading; its figures; or a line that says that there is none yet."""
    written = folder / "table.md"
    if not written.exists():
        return "*Not computed yet.*\n"
    text = re.sub(r"\A# .*\n+", "", written.read_text(encoding="utf-8"))
    figures = [
        f"![{path.stem}]({path.relative_to(HERE).as_posix()})" for path in sorted(folder.glob("*.svg"))
    ]
    return "\n\n".join([text.strip(), *figures]) + "\n"


def filled(page: str, results: Path) -> str:
    """The page with every marked table replaced by what is in the folder of results."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{table(results / m[2])}\n{m[3]}", page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "reproduction")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    before = PAGE.read_text(encoding="utf-8")
    after = filled(before, options.results)
    if options.check:
        sys.exit(None if after == before else f"{PAGE} is not up to date: run python docs/tables.py")
    PAGE.write_text(after, encoding="utf-8")
    print(f"{len(BLOCK.findall(after))} tables in {PAGE}")


if __name__ == "__main__":
    main()
