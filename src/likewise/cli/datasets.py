"""`likewise datasets`: the bundled data sets, and one of them as a table for a first try."""

from __future__ import annotations

from pathlib import Path

import click

from likewise.cli.options import PATH, option, options, verb
from likewise.cli.output import say
from likewise.core.errors import InputError
from likewise.core.files import atomic_path, check_target

TABLES = {"adult": "load_adult", "german": "load_german", "hiring": "load_hiring_scores"}
LINES = {
    "adult": "UCI Adult: 45,222 people, income above $50k (the paper's Appendix D.1)",
    "german": "UCI German credit: 1,000 people, good or bad credit",
    "hiring": "32,193 scores of one CV by eleven language models, for `likewise audit-texts`",
    "sentiment": "opinion words and names with GloVe vectors (Python: likewise.datasets.load_sentiment)",
    "toy": "the two groups of Figure 1 (Python: likewise.datasets.make_toy)",
}


@verb("datasets")
@click.argument("name", required=False, type=click.Choice(sorted(TABLES)))
@option("-o --output out", "PATH", "Write FILE.csv or FILE.parquet.", PATH)
@options("force")
def command(name: str | None, out: Path | None, force: bool) -> None:
    """List the bundled data sets, or write one with its target as a table.

    Example: likewise datasets adult -o people.csv
    """
    if name is None:
        for key, line in LINES.items():
            say(f"{key:10} {line}")
        return
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"-o takes FILE.csv or FILE.parquet, got {str(out)!r}.")
    if out is not None:
        check_target(out, overwrite=force)
    from likewise import datasets

    data = getattr(datasets, TABLES[name])()
    people = hasattr(data, "target_names")
    table = data.frame.assign(target=[data.target_names[label] for label in data.y]) if people else data
    if out is None:
        click.echo(f"{LINES[name]}\n\n{table.head(5).T.to_string(header=False)}\n\nWrite it with -o FILE.csv")
        return
    with atomic_path(out) as temporary:
        if out.suffix == ".csv":
            table.to_csv(temporary, index=False)
        else:
            table.to_parquet(temporary, index=False)
    told = f"{len(table):,} people to {out}; the target is the column 'target'"
    say(f"Wrote {told if people else f'{len(table):,} scores to {out}'}.")
