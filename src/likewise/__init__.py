"""likewise: individual fairness in machine learning.

Learn who is comparable with whom, audit any model for unequal treatment of comparable people, certify what
was found, and train models that pass. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from likewise._api import HOMES
from likewise._version import __version__
from likewise.core.lazy import lazy_names

__all__ = ["__version__", *sorted(HOMES)]

__getattr__, __dir__ = lazy_names(__name__, HOMES)
