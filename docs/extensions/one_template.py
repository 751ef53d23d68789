"""numpydoc's template, read and compiled once for all docstrings of a build instead of once for each."""

from __future__ import annotations

from jinja2 import BaseLoader
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    made: list[SandboxedEnvironment] = []

    def environment(loader: BaseLoader) -> SandboxedEnvironment:
        """The first one: the loaders of one build all read from the same folders."""
        if not made:
            made.append(SandboxedEnvironment(loader=loader))
        return made[0]

    vars(docscrape_sphinx)["SandboxedEnvironment"] = environment
    return {"parallel_read_safe": True, "parallel_write_safe": True}
