"""Templates of pages, compiled once in a process: that takes longer than writing a page with them."""

from __future__ import annotations

from functools import cache
from types import CodeType

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket


class CompiledTemplates(BytecodeCache):
    """What was compiled, by the template's name and text."""

    def __init__(self) -> None:
        self._code: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give what is there, if anything."""
        bucket.code = self._code.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled just now."""
        self._code[bucket.key, bucket.checksum] = bucket.code


@cache
def compiled_templates(language: str) -> CompiledTemplates:
    """Return those of one language: what a filter makes of a constant is compiled in, so they are not shared."""
    return CompiledTemplates()
