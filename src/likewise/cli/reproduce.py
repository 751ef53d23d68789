"""`likewise reproduce`: the paper's tables and figures, ours beside them; a run that was stopped goes on."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import COUNT, PATH, example, flag, option, options, verb
from likewise.cli.output import Outputs, announce_plan, reporting, say

if TYPE_CHECKING:
    from likewise.experiments.study import Study, StudyTable
    from likewise.improving.runner import Failure, Plan

STUDIES = ("toy", "sentiment", "adult")
SEEDS, QUICK_SEEDS = 10, 2
EXIT_FAILED = 3
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@verb(
    "reproduce",
    epilog=example(
        "likewise reproduce toy -o reproduction",
        "likewise reproduce adult --seeds 3 --method Baseline --method SenSR",
        after="Run the same command again after a stop: finished cells are kept, and only the missing ones are computed.",
    ),
)
@click.argument("study", type=click.Choice([*STUDIES, "sentences", "all"]))
@option(
    "--seeds",
    None,
    f"Seeds (and splits) 0 to SEEDS - 1.  [default: {SEEDS}; {QUICK_SEEDS} with --quick]",
    COUNT,
)
@option("--method methods", "NAME", "Only this method.", many=True)
@flag("--quick", "A small trial of the same programs; its figures mean nothing.")
@option("-o --output out", "FOLDER", "Folder; each study has its own in it.", PATH, Path("reproduction"))
@options("jobs")
@option("--vectors", None, "Sentiment: word vectors. Default: the bundled GloVe.", _FILE)
@option("--names", None, "Sentiment: first names to learn from. Default: the bundled list.", _FILE)
@option(
    "--steps",
    None,
    "Sentiment: updates of every method; the paper's are 4000.  [default: 200; 30 with --quick]",
    COUNT,
)
@flag("--tables only_tables", "Compute nothing; write what is finished.")
@flag("--force", "Compute cells again that were made with other settings.")
@options("quiet")
def command(
    study: str,
    seeds: int | None,
    methods: tuple[str, ...],
    quick: bool,
    out: Path,
    jobs: int,
    vectors: Path | None,
    names: Path | None,
    steps: int | None,
    only_tables: bool,
    **said: Any,
) -> int:
    """Reproduce the paper's experiments: Figure 1 (toy), Table 1 (sentiment), Tables 2, 4 and 5 (adult).

    `sentences` is beside the paper: sentiment of sentences with names in context; `all` leaves it out.

    Writes OUT/<study>/ with table.csv, cells.csv, results.json, table.md, index.html and figures, and keeps every
    finished (method, seed) in OUT/<study>/cells.jsonl. The exit code is 3 if a cell could not be computed.
    """
    outputs = Outputs({}, **said)
    count = seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS
    chosen = _studies(study, quick, {"vectors": vectors, "names": names, "n_steps": steps})
    from likewise.experiments.output import check_folder, write_results
    from likewise.improving.cells import Store
    from likewise.improving.runner import plan_run, run_plan

    stores = [(one, Store(out / one.name, one)) for one in chosen]
    for _, store in stores:
        check_folder(store.folder)
    failures: tuple[Failure, ...] = ()
    if not only_tables:
        plan = plan_run(stores, count, methods, replace_other=outputs.force)
        announce_plan(plan, jobs, outputs)
        try:
            with reporting(len(plan.tasks), outputs) as report:
                failures = run_plan(plan, jobs=jobs, report=report)
        except KeyboardInterrupt:
            _show_stop(plan, outputs)
            raise
    for _, store in stores:
        table, notes = write_results(store, count)
        if not outputs.quiet:
            left = [f"{method} ({n} {'seed' if n == 1 else 'seeds'})" for method, n in table.missing.items()]
            unfinished = [f"Not finished: {', '.join(left)}."] if left else []
            _show(table, store.folder, (*notes, *unfinished))
    for failure in failures:
        task = failure.task
        say(f"Failed: {task.study.name}, {task.method}, seed {task.seed}: {failure.reason}", err=True)
    return EXIT_FAILED if failures else 0


def _studies(which: str, quick: bool, words: dict[str, Any]) -> list[Study]:
    """The studies asked for; `words` are choices that only the sentiment study has."""
    wanted = STUDIES if which == "all" else (which,)
    if "sentiment" not in wanted and any(choice is not None for choice in words.values()):
        raise click.UsageError("--vectors, --names and --steps are for the sentiment study.")
    found: list[Study] = []
    for name in wanted:
        module = importlib.import_module(f"likewise.experiments.{name}")
        choices = words if name == "sentiment" else {}
        found.append(getattr(module, f"{name.capitalize()}Study")(quick=quick, **choices))
    return found


def _show_stop(plan: Plan, outputs: Outputs) -> None:
    kept = (plan.stores[task.study.name].find([task.method], [task.seed]).cells for task in plan.tasks)
    done = sum(map(bool, kept))
    said = f"{done} of {len(plan.tasks)} cells were finished and are kept. Run the same command to go on."
    outputs.say(said, err=True)


def _show(table: StudyTable, folder: Path, notes: tuple[str, ...]) -> None:
    from likewise.core.text import text_table

    click.echo(f"\n{table.study.title}")
    if table.rows:
        rows = []
        for row in table.rows:
            rows.append([row.method, *(f"{entry.ours} {entry.mark or ' '}" for entry in row.entries)])
            if any(entry.theirs for entry in row.entries):
                rows.append(["  paper", *(f"{entry.theirs or '-'}  " for entry in row.entries)])
        click.echo(text_table(["", *(f"{measure.title}  " for measure in table.study.measures)], rows))
    for note in notes:
        click.echo(note)
    say(f"Written to {folder}: open {folder / 'index.html'}")
