"""`likewise person`: one person's decision: what would change it, why, and whether that is the same for counterparts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.audit import load
from likewise.cli.options import (
    Key,
    Outputs,
    TableChoices,
    example,
    option,
    options,
    outputs,
    repeated_command,
    settings,
    table_options,
    verb,
)
from likewise.cli.output import deliver
from likewise.core.errors import InputError
from likewise.core.plain import to_json
from likewise.core.progress import Progress

if TYPE_CHECKING:
    from likewise.explaining.situation import Situation

COST = Key(
    "HOW",
    "What numbers cost: range (of the middle 80%) or percentile (people passed).",
    click.Choice(["range", "percentile"]),
    "range",
)


def situation_of_files(
    model: str,
    table: Path,
    *,
    target: str | None,
    favourable: str | None,
    sensitive: Sequence[str],
    fixed: Sequence[str],
    only_up: Sequence[str],
    only_down: Sequence[str],
    rules: str,
    cost: str,
    reading: TableChoices,
    model_takes: str,
    seconds: float,
    seed: int,
    trust: Sequence[str],
    progress: Progress,
    owner: str,
) -> Situation:
    """Bring a model file and a table together, as `likewise verify` does."""
    from likewise.auditing.case import match_people, table_request
    from likewise.data.case import read_people
    from likewise.explaining.engine import Effort
    from likewise.explaining.situation import Asked, situation_of

    said: dict[str, Any] = {}
    for names, word in ((fixed, "fixed"), (only_up, "up"), (only_down, "down")):
        for name in names:
            if name in said:
                raise InputError(f"Column {name!r} is named twice by --fixed, --only-up or --only-down.")
            said[name] = word
    loaded = load(model, trust, progress)
    with progress.stage(f"Reading {table.name}"):
        request = table_request(
            loaded, None, sensitive, target=target, favourable=favourable, choices=reading, keeps_missing=True
        )
        met = match_people(
            loaded,
            read_people(table, request),
            needed=sensitive,
            takes=model_takes,
            loss="cross_entropy",
            favourable=favourable if target else None,
            missing=reading.policy,
            lenient=True,
        )
        for note in met.notes:
            progress.note(note)
    chosen: Any = {"learned": "learned", "none": None}.get(rules, Path(rules))
    wanted: Any = cost
    asked = Asked(favourable, said or None, chosen, wanted, Effort(10_000_000, seconds), seed)
    return situation_of(met, sensitive, asked, owner=owner)


def change_options(function: Any) -> Any:
    """Add the options that say what can be changed."""
    for flag, help_ in (
        ("--only-down", "Number that can only fall. Repeatable."),
        ("--only-up", "Number that can only rise, such as age. Repeatable."),
        ("--fixed", "Column that cannot be changed. Repeatable."),
    ):
        function = option(flag, multiple=True, metavar="COLUMN", help=help_)(function)
    return option(
        "--rules",
        default="learned",
        show_default=True,
        metavar="FILE",
        help="What nobody can be: FILE.toml, learned from the table, or none.",
    )(function)


@verb(
    "person",
    epilog=example(
        "likewise datasets german -o people.csv",
        "likewise train people.csv --target target --sensitive sex -o model.safetensors",
        "likewise person model.safetensors people.csv --row 17 --target target --favourable good --sensitive sex -o letter.html",
        after="Exit codes: 0 done; 2 bad input. --columns FILE may say of each column: actionable, direction, step, cost.",
    ),
)
@click.argument("model")
@click.argument("table", type=click.Path(path_type=Path))
@option(
    "--row", required=True, metavar="N", help="The person: line or row of the table, as an audit names it."
)
@options("target_left_out", "favourable", "sensitive")
@change_options
@option(
    "--alternatives",
    type=click.IntRange(0, 20),
    default=3,
    show_default=True,
    metavar="N",
    help="Further ways.",
)
@option(
    "--reason-codes",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help='Words for reasons: hours = "Too few hours".',
)
@table_options
@option(
    "--budget-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="N",
    help="CPU time of each least change.",
)
@options("seed")
@settings("model_takes", cost=COST)
@outputs("html", "json", "-")
@options("language", "trust", "quiet", "config")
def command(
    model: str,
    table: Path,
    row: str,
    target: str | None,
    favourable: str | None,
    sensitive: Sequence[str],
    rules: str,
    fixed: Sequence[str],
    only_up: Sequence[str],
    only_down: Sequence[str],
    alternatives: int,
    reason_codes: Path | None,
    reading: TableChoices,
    budget_seconds: float,
    seed: int,
    model_takes: str,
    cost: str,
    outputs: Outputs,
    language: str,
    trust: Sequence[str],
    quiet: bool,
) -> int:
    """Explain one person's decision, and what would change it.

    MODEL is a file or package.module:attribute, TABLE holds the people. The least change that gives the favourable decision
    is proved for tree ensembles, linear models and ReLU networks; any other model is asked. The page is a letter of one sheet
    about this person alone.
    """
    from likewise import report
    from likewise.explaining.person import explain_person

    progress = Progress(quiet)
    situation = situation_of_files(
        model,
        table,
        target=target,
        favourable=favourable,
        sensitive=sensitive,
        fixed=fixed,
        only_up=only_up,
        only_down=only_down,
        rules=rules,
        cost=cost,
        reading=reading,
        model_takes=model_takes,
        seconds=budget_seconds,
        seed=seed,
        trust=trust,
        progress=progress,
        owner="person",
    )
    with progress.stage("Looking for the least change"):
        place: Any = int(row) if row.lstrip("-").isdigit() else row
        found = explain_person(situation, place, alternatives=alternatives, reason_codes=reason_codes)
    provenance = report.Provenance.now(
        tables=[table], models=[model], seed=seed, command=repeated_command(click.get_current_context())
    )
    document = report.person_document(found, name=model, source=table.name, provenance=provenance)
    deliver(
        outputs,
        quiet=quiet,
        document=lambda: to_json(document),
        show=lambda: report.print_person(document, language=language),
        html=lambda path: report.write(
            document, path, form="html", language=language, overwrite=outputs.force
        ),
        json=lambda path: report.write(document, path, form="json", overwrite=outputs.force),
    )
    return 0
