"""`likewise person` and `likewise recourse`: what would change a decision, and whether it costs counterparts the same."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.app import EXIT_INTERRUPTED
from likewise.cli.options import (
    COUNT,
    FILE,
    POSITIVE,
    TRAINED,
    F,
    Key,
    example,
    limit_option,
    option,
    options,
    settings,
    verb,
)
from likewise.cli.output import Outputs, deliver_answer, outputs
from likewise.cli.reading import match_files
from likewise.core.errors import InputError
from likewise.core.progress import Progress

if TYPE_CHECKING:
    from likewise.explaining.situation import Situation

_COST = Key(
    "HOW",
    "Cost of changing a number: range (of the middle 80%) or percentile (people passed).",
    click.Choice(["range", "percentile"]),
    "range",
)


def _change_options(seconds: float) -> Callable[[F], F]:
    """Return the options that say what can be changed, and how long a change is looked for."""
    added = (
        option(
            "--rules",
            "FILE",
            "Combinations that are impossible: FILE.toml, learned from the table, or none.",
            default="learned",
        ),
        option("--fixed", "COLUMN", "Column that cannot be changed.", many=True),
        option("--only-up", "COLUMN", "Number that can only rise, such as age.", many=True),
        option("--only-down", "COLUMN", "Number that can only fall.", many=True),
        option("--budget-seconds", "N", "CPU time of each least change.", POSITIVE, seconds),
    )
    return lambda function: functools.reduce(lambda found, add: add(found), reversed(added), function)


def _situation(
    model: str, table: Path, given: Mapping[str, Any], progress: Progress, *, owner: str
) -> Situation:
    """Bring a model file and a table together with what can be changed."""
    from likewise.explaining.engine import Effort
    from likewise.explaining.situation import ExplanationRequest, situation_of

    said: dict[str, Any] = {}
    for flag, word in (("fixed", "fixed"), ("only_up", "up"), ("only_down", "down")):
        for name in given[flag]:
            if name in said:
                raise InputError(f"Column {name!r} is named twice by --fixed, --only-up or --only-down.")
            said[name] = word
    favourable = given["favourable"]
    met = match_files(model, table, given, progress, favourable=favourable if given["target"] else None)
    rules: Any = {"learned": "learned", "none": None}.get(given["rules"], Path(given["rules"]))
    effort = Effort(10_000_000, given["budget_seconds"])
    asked = ExplanationRequest(favourable, said or None, rules, given["cost"], effort, given["seed"])
    return situation_of(met, given["sensitive"], asked, owner=owner)


@verb(
    "person",
    epilog=example(
        *TRAINED,
        "likewise person model.safetensors people.csv --row 17 --target target --favourable good --sensitive sex -o letter.html",
        after="Exit codes: 0 done; 2 bad input. --columns FILE may say of each column: actionable, direction, step, cost.",
    ),
)
@options("model", "table")
@option("--row", "N", "The person: line or row of the table, as an audit names it.", required=True)
@options("target_left_out", "favourable", "sensitive")
@_change_options(10.0)
@option("--alternatives", "N", "Further changes that are listed.", click.IntRange(0, 20), 3)
@option("--reason-codes", "FILE", 'Words for reasons: hours = "Too few hours".', FILE)
@options("read", "seed")
@settings("model_takes", cost=_COST)
@outputs("html", "json", "-", then=("language", "trust", "config"))
def command(
    model: str,
    table: Path,
    row: str,
    alternatives: int,
    reason_codes: Path | None,
    outputs: Outputs,
    **given: Any,
) -> None:
    """Explain one person's decision, and what would change it.

    MODEL is a file or package.module:attribute, TABLE holds the people. The least change that gives the favourable decision
    is proved for tree ensembles, linear models and ReLU networks; any other model is asked. The page is a letter of one sheet
    about this person alone.
    """
    from likewise.explaining.person import explain_person

    progress = Progress(outputs.quiet)
    situation = _situation(model, table, given, progress, owner="person")
    with progress.stage("Looking for the least change"):
        place: Any = int(row) if row.lstrip("-").isdigit() else row
        found = explain_person(situation, place, alternatives=alternatives, reason_codes=reason_codes)
    deliver_answer(outputs, found, model, table)


@verb(
    "recourse",
    epilog=example(
        *TRAINED,
        "likewise recourse model.safetensors people.csv --target target --favourable good --sensitive sex --sample 20",
        after="Exit codes: 0 done, or within --limit; 1 beyond it; 2 bad input; 130 Ctrl-C, which keeps what was found. "
        "--keep FOLDER keeps finished parts: the same command goes on there, and --part 2/8 does the second eighth.",
    ),
)
@options("model", "table", "target_left_out", "favourable", "sensitive")
@limit_option("Largest share of refused people whose least change may differ by over 5%: 1%.")
@_change_options(2.0)
@option("--sample", "N", "N refused people at random instead of all.", COUNT)
@option("--keep", "FOLDER", "Keep finished parts there.", click.Path(path_type=Path, file_okay=False))
@option("--part", "K/N", "Only the K-th of N shares of the people.")
@options("read", "seed")
@settings("model_takes", "confidence", cost=_COST)
@outputs(
    "html",
    "json",
    "-",
    "csv",
    then=("language", "trust", "config"),
    csv="The refused people, each with their least change.",
)
def recourse(
    model: str,
    table: Path,
    limit: float | None,
    sample: int | None,
    keep: Path | None,
    part: str | None,
    confidence: float,
    outputs: Outputs,
    **given: Any,
) -> int:
    """Find the least change that gives each refused person the favourable decision, and whether counterparts need the same.

    MODEL and TABLE as in `likewise person`. For every refused person the least change is found, and that of the same person
    under every other value of the sensitive columns.
    """
    from likewise.explaining.burden import recourse_of

    if limit is not None and not given["sensitive"]:
        raise InputError("--limit compares people with their counterparts: name a column with --sensitive.")
    progress = Progress(outputs.quiet)
    situation = _situation(model, table, given, progress, owner="recourse")
    found = recourse_of(
        situation,
        sample=sample,
        confidence=confidence,
        folder=keep,
        part=None if part is None else _part(part),
        progress=progress.shown,
    )
    deliver_answer(outputs, found, model, table, rows=found.people, partial=found.stopped)
    if found.stopped:
        return EXIT_INTERRUPTED
    if limit is not None:
        found.raise_if_unfair(limit)
    return 0


def _part(text: str) -> tuple[int, int]:
    first, slash, second = text.partition("/")
    if not slash or not first.isdigit() or not second.isdigit():
        raise InputError(f"--part must be K/N, such as 2/8, got {text!r}.")
    return int(first), int(second)
