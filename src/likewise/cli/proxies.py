"""`likewise proxies`: which columns stand in for an attribute, and what separates groups that the table does not have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import example, option, options, settings, verb
from likewise.cli.output import Outputs, deliver_answer, outputs
from likewise.cli.reading import match_files
from likewise.core.errors import InputError
from likewise.core.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

    from likewise.data.case import People


@verb(
    "proxies",
    epilog=example(
        "likewise datasets adult -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise proxies model.safetensors people.csv --target target --sensitive sex -o proxies.html",
        after="With names instead of a column: --groups-from bifsg:surname,first,zip (or bisg:surname,zip, or sex:first). "
        "These tables are of the United States. Exit codes: 0 done; 2 bad input.",
    ),
)
@options("model", "table", "target_left_out", "favourable", "sensitive")
@option("--groups-from", "HOW:COLUMNS", "Groups by probability: bisg:surname,zip, for example.")
@option("--known", "COLUMN", "With --groups-from: the group of a random sample, else empty.")
@option("--reference", "GROUP", "Group that the others are compared with; else the largest.")
@option("--legitimate", "COLUMN", "Column that decisions may depend on.", many=True)
@option("--pairs", "N", "Pairs of columns that are tested together.", click.IntRange(0, 50), 6)
@options("read", "seed")
@settings("model_takes", "confidence")
@outputs("html", "json", "-", "csv", then=("language", "trust", "config"), csv="The columns and pairs.")
def command(
    model: str,
    table: Path,
    groups_from: str | None,
    known: str | None,
    reference: str | None,
    legitimate: tuple[str, ...],
    pairs: int,
    confidence: float,
    outputs: Outputs,
    **given: Any,
) -> None:
    """Find the columns that stand in for an attribute, in the table or known by probability.

    MODEL is a file or package.module:attribute, TABLE holds the people. For every column: how well the attribute can be told
    from it, how many decisions change without the part that tells it, and what it is needed for. With --groups-from also the
    rates of the groups, with bounds that assume nothing. No name is written anywhere.
    """
    from likewise.auditing.case import table_model
    from likewise.core.frames import with_columns
    from likewise.proxies import disparity_bounds, group_probabilities, proxy_test
    from likewise.report import ProxyFindings

    sensitive = given["sensitive"]
    if len(sensitive) + (groups_from is not None) != 1:
        raise InputError("Name one attribute: --sensitive COLUMN once, or --groups-from HOW:COLUMNS.")
    if known and groups_from is None:
        raise InputError("--known goes with --groups-from.")
    if reference and groups_from is None:
        raise InputError("--reference goes with --groups-from.")
    if groups_from is not None and not given["favourable"]:
        raise InputError("--groups-from compares rates of a decision: name it with --favourable VALUE.")
    names = groups_from.partition(":")[2].split(",") if groups_from else []
    apart = [name.strip() for name in [*names, *([known] if known else [])]]
    progress = Progress(outputs.quiet)
    reading, favourable = given["reading"], given["favourable"] if given["target"] else None
    ignored = replace(reading, ignore=(*reading.ignore, known)) if known else reading
    met = match_files(model, table, {**given, "reading": ignored}, progress, favourable=favourable)
    decider, frame = table_model(met.matched), met.frame
    looked = [name for name in met.plain.columns if name not in apart]
    probabilities = disparity = None
    if groups_from is None:
        name = sensitive[0]
        attribute: Any = name
        if name not in frame.columns:
            frame = with_columns(frame, {name: met.people.frame[name].to_numpy()})
        absent = met.people.frame[name].isna().to_numpy()
        if absent.any():
            frame = with_columns(frame, {name: met.people.frame[name].astype(object).to_numpy()})
    else:
        own = _columns_apart(table, reading, apart, met.people)
        probabilities = group_probabilities(own, groups_from)
        labels = own[known] if known else None
        decided = decider.predict(frame)
        with progress.stage("Comparing groups"):
            disparity = disparity_bounds(
                decided,
                probabilities,
                y=met.people.labels,
                favourable=given["favourable"],
                reference=reference,
                known=labels,
                confidence=confidence,
            )
        attribute = probabilities
    with progress.stage("Testing columns"):
        found = proxy_test(
            decider,
            frame,
            attribute,
            y=met.people.labels,
            legitimate=legitimate,
            columns=[name for name in looked if name not in {*legitimate, *sensitive}],
            pairs=pairs,
            confidence=confidence,
            random_state=given["seed"],
        )
    findings = ProxyFindings(found, disparity, probabilities)
    deliver_answer(outputs, findings, model, table, rows=found.table)


def _columns_apart(table: Path, reading: Any, names: list[str], people: People) -> pd.DataFrame:
    """Names and places as they are in the file, of the people that the model was asked about."""
    from likewise.core.frames import check_columns
    from likewise.data.table_files import read_table

    whole = read_table(table, reading).frame
    check_columns(whole, names, owner="proxies", name=table.name)
    rows = whole[names]
    rows = rows if people.positions is None else rows.iloc[people.positions]
    return rows.reset_index(drop=True)
