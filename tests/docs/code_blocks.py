"""Code blocks of Markdown pages, in order; a comment before a block, ``<!-- not run: why -->``, says that it cannot be run."""

import re
import shlex
from dataclasses import dataclass

FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+?) -->\n)?^```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```$",
    flags=re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line it starts on, and why it is not run where it is not."""

    language: str
    text: str
    line: int
    why_not: str | None

    @property
    def commands(self) -> list[list[str]]:
        """Words of each command of a console block; lines that end in a backslash go on, output is left out."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks_of(page: str) -> list[Block]:
    """All fenced blocks of a page that name a language."""
    return [
        Block(found["language"], found["text"], page[: found.start()].count("\n") + 1, found["why"])
        for found in FENCE.finditer(page)
    ]
