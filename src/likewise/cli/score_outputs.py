"""What the verbs on scores of text write and print, and the code they leave with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from likewise.text.score_audit import ScoreAudits

__all__ = ["show_scores"]


def show_scores(
    result: ScoreAudits,
    json_file: str | None,
    html_file: Path | None,
    *,
    title: str,
    quiet: bool,
    force: bool,
) -> None:
    """Write a paired audit where it was asked for, print its table, and raise where an effect is shown."""
    from likewise.report import score_report

    if html_file is not None:
        score_report.write_scores_html(result, html_file, title=title, overwrite=force)
    if json_file == "-":
        click.echo(score_report.scores_text(result))
    else:
        if json_file is not None:
            score_report.write_scores_json(result, json_file, overwrite=force)
        if not quiet:
            score_report.print_scores(result)
            for path in (html_file, json_file):
                if path is not None:
                    click.echo(f"Wrote {path}")
    result.raise_if_unfair()
