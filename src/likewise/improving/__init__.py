"""One call that chooses: train a small, sensible set of models, compare them fairly, take one by a stated rule.

Examples
--------
>>> from likewise.improving import Rule
>>> Rule(within=0.02).within
0.02
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.improving.candidates import Candidate as Candidate
    from likewise.improving.choosing import improve as improve
    from likewise.improving.improvement import (
        Alternative as Alternative,
        Improvement as Improvement,
        Rule as Rule,
        Unseen as Unseen,
    )
    from likewise.improving.output import write_improvement as write_improvement

__getattr__, __dir__, __all__ = lazy_names(__name__)
