"""Transformers that take bias out of rows before anything is trained on them."""

from __future__ import annotations

from likewise.preprocessing.hard_debias import HardDebias
from likewise.preprocessing.project import Project

__all__ = ["HardDebias", "Project"]
