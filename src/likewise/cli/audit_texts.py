"""`likewise audit-texts`: score texts, their edits and placebos, and judge what moved above the noise."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import example, options, repeated_command
from likewise.cli.output import check_outputs
from likewise.core.errors import InputError

if TYPE_CHECKING:
    from likewise.text.score_audit import ScoreAudits

# What the verbs on scores of text write and print, and the code they leave with.


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
    from likewise import report
    from likewise.core.plain import to_json

    ctx = click.get_current_context()
    provenance = report.Provenance.now(
        tables=[ctx.params["table"]], seed=ctx.params["seed"], command=repeated_command(ctx)
    )
    document = report.score_document(result, provenance=provenance)
    if html_file is not None:
        report.write(document, html_file, title=title, form="html", overwrite=force)
    if json_file == "-":
        click.echo(to_json(document), nl=False)
    else:
        if json_file is not None:
            report.write(document, json_file, form="json", overwrite=force)
        if not quiet:
            report.print_scores(result)
            for path in (html_file, json_file):
                if path is not None:
                    click.echo(f"Wrote {path}")
    result.raise_if_unfair()


# A scorer of texts from a Python file: `judge.py:score`.


def load_scorer(source: str) -> Any:
    """Run a Python file and return the function (or model) it defines."""
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


@click.command(
    "audit-texts",
    epilog=example(
        "likewise audit-texts letters.csv --text letter --scorer judge.py:score --cache replies.db --dry-run",
        after="Exit codes: 0 no effect shown, 1 an effect shown, 2 bad input, 3 stopped by the cap or the server.",
    ),
)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--text", "column", required=True, help="Column of the texts.")
@click.option(
    "--scorer", required=True, metavar="FILE.py:NAME", help="Function of one text; the file is run."
)
@click.option(
    "--names",
    multiple=True,
    metavar="RACE-GENDER",
    help="Swap first names to this group: black-female, white, male. Repeatable; the four groups by default.",
)
@click.option(
    "--term",
    "terms",
    multiple=True,
    metavar="FAMILY_VALUE:A=B",
    help="Replace a word: religion_mosque:church=mosque. Repeatable.",
)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Scores of each text."
)
@click.option("--cluster", help="Column of what texts share.  [default: each text its own]")
@click.option("--by", help="Column of groups of texts to audit one by one.")
@click.option("--positive", help="Label that counts as 1, where the scorer answers labels.")
@click.option("--threshold", type=float, help="A score at least this large is decided yes.")
@click.option(
    "--margin", type=click.FloatRange(min=0, min_open=True), help="A shift below this does not matter."
)
@click.option(
    "--cache", type=click.Path(path_type=Path), help="File of replies: stopped runs go on, done ones replay."
)
@click.option("--name", help="Of the scorer, in the cache.  [default: what --scorer says]")
@click.option("--scorer-version", default="", help="Change it when the scorer changes.")
@click.option("--max-calls", type=click.IntRange(min=0), help="Stop before more calls than this.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Calls per second at most.")
@click.option("--retries", type=click.IntRange(min=0), default=6, show_default=True)
@click.option("--offline", is_flag=True, help="Answer from the cache alone.")
@click.option("--dry-run", is_flag=True, help="Say how many calls it would take, and call nothing.")
@options("json", "html", "seed", "quiet", "force", "config")
def command(
    table: Path,
    column: str,
    scorer: str,
    json_file: str | None,
    html_file: Path | None,
    quiet: bool,
    force: bool,
    dry_run: bool,
    **given: Any,
) -> None:
    """Audit a scorer of texts by edits that should not matter, above what placebos do."""
    check_outputs([html_file, None if json_file in (None, "-") else Path(str(json_file))], force=force)
    from likewise.core.frames import check_columns
    from likewise.data.table_files import read_table
    from likewise.text import CallLimits, audit_texts, plan_texts

    frame = read_table(table).frame
    shared = {key: given[key] for key in ("cluster", "by") if given[key] is not None}
    check_columns(frame, [column, *shared.values()], owner="audit-texts")
    texts = frame[column].dropna().astype(str).tolist()
    if len(texts) < len(frame):
        raise InputError(f"{column!r} has empty cells. Fill them or leave the rows out.")
    edits = _edits(given["names"], given["terms"])
    plan = plan_texts(texts, edits=edits, repeats=given["repeats"])
    if dry_run:
        unchanged = int((plan.edited["changes"] == 0).sum())
        click.echo(
            f"{plan.n_calls} calls for {len(texts)} texts (replies in the cache are not called again)."
        )
        click.echo(
            f"{unchanged} of {len(plan.edited)} edits change nothing in their text and are not scored."
        )
        return
    result = audit_texts(
        load_scorer(scorer),
        texts,
        edits=edits,
        repeats=given["repeats"],
        clusters=frame[shared["cluster"]].tolist() if "cluster" in shared else None,
        groups=frame[shared["by"]].tolist() if "by" in shared else None,
        positive=given["positive"],
        threshold=given["threshold"],
        margin=given["margin"],
        cache=given["cache"],
        name=given["name"] or scorer,
        version=given["scorer_version"],
        limits=CallLimits(given["max_calls"], given["rate"], given["retries"]),
        offline=given["offline"],
        random_state=given["seed"],
    )
    if not quiet and json_file != "-":
        click.echo(f"{result.calls} calls, {result.replayed} replies from the cache.")
    show_scores(result.audits, json_file, html_file, title=f"Texts in {table.name}", quiet=quiet, force=force)


def _edits(names: Sequence[str], terms: Sequence[str]) -> list[Any]:
    """Read ``black-female`` and ``religion_mosque:church=mosque`` as edits."""
    from likewise.text import NameSwap, TermSwap, default_edits
    from likewise.text.name_swap import GENDERS, RACES

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
