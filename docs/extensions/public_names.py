"""Every public name of the package and the one page it has, from the `__all__` of the package and of its rooms."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PACKAGE = "likewise"


@dataclass(frozen=True)
class PublicName:
    """A name, where it is public, and the page that has its documentation."""

    module: str
    name: str
    value: Any
    home: str

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def has_its_own_page(self) -> bool:
        """False where the page is that of the same object in another place."""
        return self.path == self.home


def rooms() -> list[str]:
    """The package and its subpackages."""
    package = importlib.import_module(PACKAGE)
    inside = [f"{PACKAGE}.{found.name}" for found in pkgutil.iter_modules(package.__path__) if found.ispkg]
    return [PACKAGE, *inside]


def public_names() -> list[PublicName]:
    """All public names, the package's own first; an object that is public twice has the page of the first."""
    homes: dict[int, str] = {}
    return [
        _name(room, name, homes)
        for room in rooms()
        for name in getattr(importlib.import_module(room), "__all__", ())
    ]


def _name(room: str, name: str, homes: dict[int, str]) -> PublicName:
    value = getattr(importlib.import_module(room), name)
    if inspect.ismodule(value):
        return PublicName(room, name, value, value.__name__)
    return PublicName(room, name, value, homes.setdefault(id(value), f"{room}.{name}"))


def own_docstring(value: Any) -> str:
    """What is written about this very object: a class does not borrow from the classes it is made of."""
    text = value.__dict__.get("__doc__") if inspect.isclass(value) else getattr(value, "__doc__", None)
    return inspect.cleandoc(text) if text else ""


def members(cls: type) -> Iterator[str]:
    """Public methods and properties that a class has of this package, in the order of the source."""
    seen: set[str] = set()
    for ancestor in cls.__mro__:
        if not ancestor.__module__.startswith(PACKAGE):
            continue
        for name, value in vars(ancestor).items():
            described = getattr(value, "__doc__", None)
            method = inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
            if method and described and not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name
