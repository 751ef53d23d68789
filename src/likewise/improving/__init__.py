"""One call that chooses: train a small, sensible set of models, compare them fairly, take one by a stated rule.

Examples
--------
>>> from likewise.improving import Rule
>>> Rule(within=0.02).within
0.02
"""

from __future__ import annotations

from likewise.improving.candidate import Candidate
from likewise.improving.choosing import improve
from likewise.improving.improvement import Alternative, Improvement, Unseen
from likewise.improving.output import write_improvement
from likewise.improving.rule import Rule

__all__ = ["Alternative", "Candidate", "Improvement", "Rule", "Unseen", "improve", "write_improvement"]
