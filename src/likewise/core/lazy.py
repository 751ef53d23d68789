"""Names of a package that load when first used, so that importing the package stays cheap."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from likewise.core.errors import MissingExtraError


def lazy_names(package: str, *eager: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package (PEP 562).

    The package lists its names once, as imports below ``if TYPE_CHECKING``: type checkers read them there, and so does
    this function.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    *eager : str
        Public names that the package defines itself.

    Returns
    -------
    getattr, dir, all

    Examples
    --------
    >>> get, _, names = lazy_names("likewise.mitigation")
    >>> names
    ['GraphSmoothing', 'HardDebias', 'Project', 'TwinConsensus']
    >>> get("Project").__name__
    'Project'
    """
    # Name to the module and attribute that the package imports below ``if TYPE_CHECKING``.
    homes: dict[str, tuple[str, str]] = {}
    for block in ast.parse(pkgutil.get_data(package, "__init__.py") or b"").body:
        if isinstance(block, ast.If):
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    homes |= {name.asname or name.name: (line.module, name.name) for name in line.names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes[name]
        if module == package:
            return importlib.import_module(f"{package}.{attribute}")
        try:
            home = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtraError(
                f"{name} needs 'torch', which is not installed. Run: pip install 'likewise[torch]'"
            ) from error
        value = getattr(home, attribute)
        setattr(sys.modules[package], name, value)
        return value

    # Subpackages are attributes, but not part of what a package offers by name.
    public = sorted({*eager, *(name for name, (module, _) in homes.items() if module != package)})
    return get, lambda: public, public
