"""The version of likewise, in one place."""

__version__ = "0.1.0"
