"""The API reference: a page for every public name, written before Sphinx reads anything.

Names come from `__all__`, so that a new one has its page without anybody writing it. A name that is public in
two places has one page, and every other way to write it (``likewise.auditing.audit``, the module it lives in) links there.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from pathlib import Path
from typing import Any

from docutils import nodes
from public_names import PACKAGE, PublicName, members, own_docstring, public_names, rooms
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

FOLDER = "api"


def page_of(name: PublicName) -> str:
    """The text of one name's page."""
    kind = "class" if inspect.isclass(name.value) else "function" if callable(name.value) else "data"
    lines = [name.name, "=" * len(name.name), "", f"*in* :mod:`{name.module}`", ""]
    lines += [f".. currentmodule:: {name.module}", "", f".. auto{kind}:: {name.name}"]
    if kind == "class" and (listed := list(members(name.value))):
        lines += [f"   :members: {', '.join(listed)}", "   :member-order: bysource"]
    if kind == "data":
        lines += ["   :no-value:", "", f"An example is on the page of :mod:`{name.module}`."]
    lines += ["", f".. minigallery:: {name.path}", "   :add-heading: In the gallery", ""]
    return "\n".join(lines)


def page_of_room(room: str, names: list[PublicName]) -> str:
    """The text of a room's page: what it is, and a line for each of its names."""
    here = [name for name in names if name.module == room and not inspect.ismodule(name.value)]
    own = [name for name in here if name.has_its_own_page]
    lines = [room, "=" * len(room), "", f".. automodule:: {room}", "   :no-members:", ""]
    if not here:
        return "\n".join(lines)
    lines += [".. list-table::", "   :widths: 35 65", "   :class: names", ""]
    for name in sorted(here, key=lambda name: name.name.lower()):
        lines += [f"   * - :py:obj:`{name.name} <{name.home}>`", f"     - {summary(name.value)}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    lines += [f"   names/{name.path}" for name in own]
    return "\n".join([*lines, ""])


def summary(value: Any) -> str:
    """The first sentence of what is written about an object."""
    first = " ".join(own_docstring(value).partition("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".") + "." if first and not isinstance(value, str | dict) else ""


def page_of_all(found: list[str]) -> str:
    """The text of the reference's first page."""
    return "\n".join(
        [
            "API reference",
            "=============",
            "",
            "Every public name, with an example that is run by the tests. Names of :mod:`likewise` itself are what most",
            "people need; its rooms have the rest. Old names keep working for one release, with a warning.",
            "",
            ".. toctree::",
            "   :maxdepth: 1",
            "",
            *(f"   {room}" for room in found),
            "",
        ]
    )


def write_pages(app: Sphinx) -> None:
    """Write the pages that changed; remove those of names that are gone."""
    folder = Path(app.srcdir) / FOLDER
    names, found = public_names(), rooms()
    pages = {folder / "index.rst": page_of_all(found)}
    pages |= {folder / f"{room}.rst": page_of_room(room, names) for room in found}
    pages |= {
        folder / "names" / f"{name.path}.rst": page_of(name)
        for name in names
        if name.has_its_own_page and not inspect.ismodule(name.value)
    }
    (folder / "names").mkdir(parents=True, exist_ok=True)
    for path in set(folder.rglob("*.rst")) - set(pages):
        path.unlink()
    for path, text in pages.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    app.env.likewise_homes = {id(name.value): name.home for name in names}  # type: ignore[attr-defined]


def home_of(app: Sphinx, target: str) -> str | None:
    """The path under which an object has its page, from any path that leads to it."""
    homes: dict[int, str] = app.env.likewise_homes  # type: ignore[attr-defined]
    names = [target] if target.startswith(f"{PACKAGE}.") else [f"{PACKAGE}.{target}"]
    for name in names:
        value = _follow(name)
        if value is not None and id(value) in homes:
            return homes[id(value)]
    return None


@functools.cache  # most words in backticks are no names, and an import that fails looks through every folder
def _follow(path: str) -> Any:
    """What a dotted path leads to, or None."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part, None)
        return value
    return None


def resolve(app: Sphinx, env: Any, node: nodes.Element, contnode: nodes.Element) -> nodes.Element | None:
    """Link another way to write a public name to its page. A word in single backticks may be no name at all."""
    if node.get("refdomain") != "py":
        return None
    home = home_of(app, node["reftarget"])
    objects = env.domains["py"].objects
    if home in objects:
        entry = objects[home]
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, home)
    return contnode if node.get("likewise_word") else None


def word(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()
):
    """The role of single backticks in docstrings: code, and a link where it is the name of something."""
    from sphinx import addnodes

    node = addnodes.pending_xref(
        rawtext, refdomain="py", reftype="obj", reftarget=text, refexplicit=False, refwarn=False,
        likewise_word=True,
    )  # fmt: skip
    env = inliner.document.settings.env
    node["py:module"], node["py:class"] = env.ref_context.get("py:module"), env.ref_context.get("py:class")
    node["refdoc"] = env.docname
    node += nodes.literal(text, text, classes=["xref", "py"])
    return [node], []


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("word", word)
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
