"""The command line: one file per verb; parse, call, print."""

from likewise.cli.app import main

__all__ = ["main"]
