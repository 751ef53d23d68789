"""`likewise audit-texts`: what edits of texts did to scores, above what placebos did; scored now, or recorded."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import COUNT, PATH, POSITIVE, Key, example, flag, option, options, settings, verb
from likewise.cli.output import Outputs, deliver, outputs, say
from likewise.cli.reading import provenance_now
from likewise.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.text.score_audit import ScoreAudits

_FROM_0 = click.IntRange(min=0)
_MOST_LISTED = 10
# What is set for recorded scores, and for a scorer.
RECORDED = {
    "variant": Key("COLUMN", "Recorded scores: how the text was edited.", default="variant"),
    "score": Key("COLUMN", "Recorded scores: the number.", default="score"),
    "baseline": Key("VARIANT", "Recorded scores: the variant without an edit.", default="baseline"),
    "placebo": Key("VARIANT*", "Recorded scores: variants that change nothing.", default=(), many=True),
    "decision": Key("COLUMN", "Recorded scores: what was decided."),
    "level": Key(
        "SHARE",
        "Recorded scores: of the tests.",
        click.FloatRange(0, 0.5, min_open=True, max_open=True),
        0.05,
    ),
}
SCORED = {
    "repeats": Key("N", "Scores of each text.", COUNT, 1),
    "favourable": Key("LABEL", "Counts as 1 if the scorer answers labels."),
    "threshold": Key("NUMBER", "A score at least this large is decided yes.", float),
    "name": Key("NAME", "Of the scorer, in the cache."),
    "version": Key("TEXT", "Of the scorer; change it when the scorer changes.", default=""),
    "rate": Key("NUMBER", "Calls per second at most.", POSITIVE),
    "retries": Key("N", "Of a call that fails.", _FROM_0, 6),
}


@verb(
    "audit-texts",
    epilog=example(
        "likewise datasets hiring -o scores.csv",
        "likewise audit-texts scores.csv --unit job --by model",
        "likewise audit-texts letters.csv --text letter --scorer judge.py:score --cache replies.db --dry-run",
        after="Exit codes: 0 no effect shown, 1 an effect shown, 2 bad input, 3 stopped by the cap or the server.",
    ),
)
@options("table")
@option("--unit", "COLUMN", "Recorded scores: column of what was scored, a text or a job.")
@option("--text column", "COLUMN", "Column of the texts to be edited and scored.")
@option("--scorer", "FILE.py:NAME", "Function of one text; the file is run.")
@option("--names", "RACE-GENDER", "Swap first names: black-female, white.", many=True)
@option("--term terms", "FAMILY_VALUE:A=B", "Replace a word: religion_mosque:church=mosque.", many=True)
@option("--by", "COLUMN", "Audit groups or models one by one.")
@option("--cluster", "COLUMN", "What units share.  [default: each unit its own]")
@option("--margin", "NUMBER", "A shift below this does not matter.", POSITIVE)
@option("--cache", "FILE", "Replies that are kept.", PATH)
@option("--max-calls", "N", "Stop before more calls than this.", _FROM_0)
@flag("--offline", "Answer from the cache alone.")
@flag("--dry-run", "Count the calls, and call nothing.")
@options("seed")
@settings(**RECORDED, **SCORED)
@outputs("html", "json", "-", then=["config"])
def command(
    table: Path,
    unit: str | None,
    column: str | None,
    scorer: str | None,
    outputs: Outputs,
    dry_run: bool,
    **given: Any,
) -> None:
    """Audit whether scores of texts depend on edits that should not matter, beyond what placebo edits change.

    With --text and --scorer the texts of TABLE are edited and scored. With --unit TABLE holds recorded scores: one row
    per score, with columns variant and score; edits are called FAMILY_VALUE, placebos placebo_*.
    """
    from likewise.data.table_files import read_table

    if (unit is None) == (column is None) or (column is None) != (scorer is None):
        raise InputError(
            "Pass --unit COLUMN for recorded scores, or --text COLUMN and --scorer FILE.py:NAME."
        )
    frame = read_table(table).frame
    if unit is not None:
        from likewise.text.score_audit import audit_scores

        chosen = {name: given[name] for name in (*RECORDED, "by", "cluster", "margin")}
        chosen["placebo"] = chosen["placebo"] or ("placebo_*",)
        found = audit_scores(frame, unit=unit, random_state=given["seed"], **chosen)
        _show(found, outputs, f"Scores in {table.name}")
    elif dry_run:
        from likewise.text import plan_texts

        texts = _texts(frame, str(column))
        plan = plan_texts(texts, edits=_edits(given["names"], given["terms"]), repeats=given["repeats"])
        unchanged = int((plan.edited["changes"] == 0).sum())
        say(f"{plan.n_calls} calls for {len(texts)} texts (replies in the cache are not called again).")
        say(f"{unchanged} of {len(plan.edited)} edits change nothing in their text and are not scored.")
        _show_left_out(plan.edited)
    else:
        result = _scored(frame, str(column), str(scorer), given)
        if not outputs.quiet and not outputs.screen:
            say(f"{result.calls} calls, {result.replayed} replies from the cache.")
            _show_left_out(result.edited)
        _show(result.audits, outputs, f"Texts in {table.name}")


def _show(result: ScoreAudits, outputs: Outputs, title: str) -> None:
    """Write and print a paired audit, and raise if an effect is shown."""
    made = provenance_now([click.get_current_context().params["table"]])
    deliver(outputs, result, title=title, provenance=made)
    result.raise_if_unfair()


def _texts(frame: pd.DataFrame, column: str) -> list[str]:
    from likewise.core.frames import check_columns

    check_columns(frame, [column], owner="audit-texts")
    texts = frame[column].dropna().astype(str).tolist()
    if len(texts) < len(frame):
        raise InputError(f"{column!r} has empty cells. Fill them or leave the rows out.")
    return texts


def _show_left_out(edited: pd.DataFrame) -> None:
    """List the texts that an edit left out because something in them cannot be told."""
    doubtful = edited[edited["why"].str.startswith("doubtful")].drop_duplicates(["text", "why"])
    if len(doubtful):
        say(f"{doubtful['text'].nunique()} texts were left out as doubtful:")
    for row in doubtful.head(_MOST_LISTED).itertuples():
        say(f"  text {row.text} ({row.variant}): {str(row.why).removeprefix('doubtful: ')}")
    if len(doubtful) > _MOST_LISTED:
        say(f"  and {len(doubtful) - _MOST_LISTED} more (TextAudit.edited lists all)")


def _scored(frame: pd.DataFrame, column: str, scorer: str, given: dict[str, Any]) -> Any:
    from likewise.core.frames import check_columns
    from likewise.text import CallLimits, audit_texts

    shared = {key: given[key] for key in ("cluster", "by") if given[key] is not None}
    check_columns(frame, shared.values(), owner="audit-texts")
    values = {key: frame[name].tolist() for key, name in shared.items()}
    texts = _texts(frame, column)
    return audit_texts(
        load_scorer(scorer),
        texts,
        edits=_edits(given["names"], given["terms"]),
        clusters=values.get("cluster"),
        groups=values.get("by"),
        name=given["name"] or scorer,
        limits=CallLimits(given["max_calls"], given["rate"], given["retries"]),
        random_state=given["seed"],
        **{
            key: given[key]
            for key in ("repeats", "favourable", "threshold", "margin", "cache", "version", "offline")
        },
    )


def load_scorer(source: str) -> Any:
    """Run a Python file and return the function (or model) it defines: ``judge.py:score``."""
    file, colon, name = source.rpartition(":")
    path = Path(file)
    if not colon or not name.isidentifier() or path.suffix != ".py":
        raise InputError(f"--scorer must be FILE.py:NAME, such as judge.py:score, got {source!r}.")
    if not path.is_file():
        raise InputError(f"--scorer: there is no file {file!r}. Check the path.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"--scorer: {path.name} failed ({type(error).__name__}: {error}).") from error
    if not hasattr(module, name):
        raise InputError(f"--scorer: {path.name} defines no {name!r}.")
    return getattr(module, name)


def _edits(names: Sequence[str], terms: Sequence[str]) -> list[Any]:
    """Read ``black-female`` and ``religion_mosque:church=mosque`` as edits."""
    from likewise.text import NameSwap, TermSwap, default_edits
    from likewise.text.name_lists import GENDERS, RACES

    edits: list[Any] = []
    for group in names:
        words = group.split("-")
        races, genders = ([word for word in words if word in known] for known in (RACES, GENDERS))
        if len(races) > 1 or len(genders) > 1 or len(races) + len(genders) != len(words):
            raise InputError(
                f"--names must be a race, a gender or both, such as black-female, got {group!r}."
            )
        edits.append(NameSwap(race=next(iter(races), None), gender=next(iter(genders), None)))
    replaced: dict[str, dict[str, str]] = {}
    for term in terms:
        name, colon, pair = term.partition(":")
        old, equals, new = pair.partition("=")
        if not (name and colon and old and equals and new):
            raise InputError(
                f"--term must be FAMILY_VALUE:A=B, such as religion_mosque:church=mosque, got {term!r}."
            )
        replaced.setdefault(name, {})[old] = new
    edits += [TermSwap(name, pairs) for name, pairs in replaced.items()]
    return edits or list(default_edits())
