"""`likewise version`: the versions that matter in a bug report."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import click

from likewise._version import __version__

SHOWN = [
    "torch",
    "scikit-learn",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "xgboost-cpu",
    "lightgbm",
    "onnxruntime",
]


@click.command("version")
def command() -> None:
    """Show the versions that matter in a bug report.

    Example: likewise version
    """
    click.echo(f"likewise {__version__}")
    click.echo(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in SHOWN:
        try:
            click.echo(f"{name} {version(name)}")
        except PackageNotFoundError:
            click.echo(f"{name} not installed")
