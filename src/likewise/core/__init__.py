"""Foundations with no fairness in them: linear algebra of subspaces, errors, input checks, randomness.

Examples
--------
>>> from likewise.core.errors import bad_parameter
>>> print(bad_parameter("audit", "eps", allowed="0 or more", got=-1))
audit: 'eps' must be 0 or more, got -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.core.errors import (
        FormatError as FormatError,
        InputError as InputError,
        LikewiseError as LikewiseError,
        MissingExtraError as MissingExtraError,
        ModelError as ModelError,
        NotAskedError as NotAskedError,
        NotConvergedError as NotConvergedError,
        UnfairError as UnfairError,
    )
    from likewise.core.subspace import Subspace as Subspace

__getattr__, __dir__, __all__ = lazy_names(__name__)
