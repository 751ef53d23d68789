"""`likewise audit-scores`: what edits did to recorded scores, above what placebos did."""

from __future__ import annotations

from pathlib import Path

import click

from likewise.cli.options import example, options
from likewise.cli.output import check_outputs


@click.command(
    "audit-scores",
    epilog=example(
        "likewise datasets hiring -o scores.csv",
        'likewise audit-scores scores.csv --unit job --variant variant --baseline baseline --placebo "placebo_*" '
        "--score score --by model",
        after="Exit codes: 0 no effect shown, 1 an effect shown, 2 bad input.",
    ),
)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--unit", required=True, help="Column of what was scored: a text, a job.")
@click.option("--variant", default="variant", show_default=True, help="Column of how it was edited.")
@click.option("--score", default="score", show_default=True, help="Column of the number.")
@click.option("--baseline", default="baseline", show_default=True, help="The variant that is no edit.")
@click.option(
    "--placebo",
    multiple=True,
    default=("placebo_*",),
    show_default=True,
    help="Variants that should change nothing; * is any letters. Repeatable.",
)
@click.option("--by", help="Column of models or groups to audit one by one.")
@click.option("--cluster", help="Column of what units share.  [default: each unit its own]")
@click.option("--decision", help="Column of what was decided.")
@click.option(
    "--margin", type=click.FloatRange(min=0, min_open=True), help="A shift below this does not matter."
)
@click.option(
    "--level", type=click.FloatRange(0, 0.5, min_open=True, max_open=True), default=0.05, show_default=True
)
@options("json", "html", "seed", "quiet", "force", "config")
def command(
    table: Path,
    unit: str,
    variant: str,
    score: str,
    baseline: str,
    placebo: tuple[str, ...],
    by: str | None,
    cluster: str | None,
    decision: str | None,
    margin: float | None,
    level: float,
    json_file: str | None,
    html_file: Path | None,
    seed: int,
    quiet: bool,
    force: bool,
) -> None:
    """Audit a table of scores: one row per score, edits in families called FAMILY_VALUE."""
    check_outputs([html_file, None if json_file in (None, "-") else Path(str(json_file))], force=force)
    from likewise.cli.audit_texts import show_scores
    from likewise.data.table_files import read_table
    from likewise.text.score_audit import audit_scores

    result = audit_scores(
        read_table(table).frame,
        unit=unit,
        variant=variant,
        score=score,
        baseline=baseline,
        placebo=placebo,
        by=by,
        cluster=cluster,
        decision=decision,
        margin=margin,
        level=level,
        random_state=seed,
    )
    show_scores(result, json_file, html_file, title=f"Scores in {table.name}", quiet=quiet, force=force)
