"""Transformers that take bias out of rows before anything is trained on them.

Examples
--------
>>> from likewise.preprocessing import Project
>>> from likewise.core.subspace import Subspace
>>> Project(Subspace.from_directions([[1.0, 0.0]])).fit_transform([[3.0, 4.0]])
array([[0., 4.]])
"""

from __future__ import annotations

from likewise.preprocessing.hard_debias import HardDebias
from likewise.preprocessing.project import Project

__all__ = ["HardDebias", "Project"]
