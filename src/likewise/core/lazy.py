"""Names of a package that load when first used, so that importing the package stays cheap."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from likewise.core.renaming import warn_renamed

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, str], renamed: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package whose names live in its modules (PEP 562).

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    homes : mapping of str to str
        Name to the module below the package that defines it; an empty string is a subpackage of that name.

    renamed : mapping of str to str
        Old name to new name: the old one gives the new one with a `DeprecationWarning`, where the package has it.

    Returns
    -------
    getattr, dir : callables
        To be assigned to ``__getattr__`` and ``__dir__`` of the package.

    Examples
    --------
    >>> get, names = lazy_names("likewise.core", {"Subspace": "subspace"})
    >>> get("Subspace").__name__, names()
    ('Subspace', ['Subspace'])
    """

    def get(name: str) -> Any:
        new = renamed.get(name)
        if new is not None and (new in homes or hasattr(sys.modules[package], new)):
            warn_renamed(f"{package}.{name}", f"{package}.{new}")
            return getattr(sys.modules[package], new)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not homes[name]:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*homes, *getattr(sys.modules[package], "__all__", ())})
