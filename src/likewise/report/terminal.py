"""Results as tables in the terminal; what comes from data is printed as text, never read as markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from likewise.auditing.inference.verdict import Bracket, Kind, give_verdict
from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.results.effects import effects_words
from likewise.auditing.results.unfair_map import UnfairMap, differences_in_words, rounded_like, shown_cell
from likewise.core.intervals import Measure
from likewise.core.plain import named
from likewise.core.text import interval_ends, short_number
from likewise.evaluation.summary import Evaluation
from likewise.report.comparison import Comparison, comparison_summary
from likewise.report.document import number_rows, numbers_document
from likewise.report.first_words import first_words, reach_words

if TYPE_CHECKING:
    from likewise.counterfactuals.study import TwinStudy

_STYLES: dict[Kind, str] = {
    "fair": "bold green",
    "trivial": "bold blue",
    "unfair": "bold red",
    "undecided": "bold yellow",
    "unanswered": "bold yellow",
    "not converged": "bold yellow",
    "no limit": "bold blue",
}
# Columns of a drawn bracket.
_SCALE = 24
_GOOD_WHEN_SMALL = ("gap", "Gap")
_MOST_RULES = 6


def print_audit(
    result: AuditResult,
    console: Console | None = None,
    *,
    evaluation: Evaluation | None = None,
    twins: Sequence[TwinStudy] = (),
    people: int = 5,
    labels: Mapping[Any, str] | None = None,
) -> None:
    """Print an audit: whose decisions change, the verdict, the numbers, and the people with the most added loss.

    Parameters
    ----------
    result : AuditResult
    console : rich.console.Console, optional
        Where to print; standard output by default.
    evaluation : Evaluation, optional
        Accuracy, studies and group gaps to print below.
    twins : sequence of TwinStudy, optional
        Studies of three kinds of counterparts to print below.
    people : int, default=5
        How many people to show.
    labels : mapping, optional
        Names of the labels and decisions.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from rich.console import Console
    >>> import likewise as lw
    >>> from likewise.auditing.auditor import audit
    >>> from likewise.models import as_model
    >>> table = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(table).metric_
    >>> result = audit(as_model(score, takes_frame=True), table, [0, 1, 1, 1], metric=metric, eps=0.0, delta=0.1)
    >>> console = Console(width=100, record=True, quiet=True)
    >>> print_audit(result, console)
    """
    out = open_console(console)
    verdict = give_verdict(result)
    first, *more = first_words(result, labels)
    out.print(Text.assemble((verdict.title, _STYLES[verdict.kind]), ": ", (first, "bold")))
    effects = effects_words(result.exchanges, result.favourable) if result.answered else []
    for line in (*effects, *more, verdict.sentence, reach_words(result)[0]):
        if line:
            out.print(Text(line))
    out.print()
    out.print(_numbers(result))
    out.print()
    out.print(_brackets(result))
    shown, where = (
        (result.pure_map, "at no distance") if result.pure_gap > 0 else (result.unfair_map, "within ε")
    )
    if shown.rules:
        out.print()
        out.print(_rules(shown, where))
    if people > 0 and (shown.harm > 0).any():
        out.print()
        out.print(_people(shown, where, people, labels or {}))
    if evaluation is not None:
        out.print()
        out.print(_evaluation(evaluation))
    for study in twins:
        out.print()
        out.print(_twins_table(study))
        for words in _twins_words(study):
            out.print(Text(f"  {words}.", style="dim"))
    for reason in (*result.reasons, *result.left_out):
        out.print(Text.assemble(("note: ", "yellow"), reason))


def print_comparison(
    comparison: Comparison, console: Console | None = None, *, labels: Mapping[Any, str] | None = None
) -> None:
    """Print a comparison: whose decisions change, then one row per model, each number with its interval, the best of each column bold.

    Parameters
    ----------
    comparison : Comparison
    console : rich.console.Console, optional
        Where to print; standard output by default. Measures become rows if it is too narrow for columns.
    labels : mapping, optional
        Names of the decisions.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> import io
    >>> from rich.console import Console
    >>> from likewise.report import Comparison, ComparisonEntry
    >>> page = io.StringIO()
    >>> print_comparison(Comparison((ComparisonEntry("score", None, result),)), Console(file=page, width=100))
    >>> "gap at ε = 0" in page.getvalue()
    True
    """
    out = open_console(console)
    names = comparison.measures
    wide = 16 + 17 * (len(names) + 1) <= out.width
    room = 20 + 25 * len(comparison.entries) <= out.width
    between = "\n" if wide or not room else " "
    cells = {entry.name: _compared(comparison, entry.measures(), between) for entry in comparison.entries}
    verdicts = [give_verdict(entry.audit) for entry in comparison.entries]
    if any(verdict.kind != "no limit" for verdict in verdicts):
        names = (*names, "verdict")
        for row, verdict in zip(cells.values(), verdicts, strict=True):
            row.append(Text(verdict.title, style=_STYLES[verdict.kind]))
    if wide:
        table = terminal_table(None, ["model", *names])
        for name, row in cells.items():
            table.add_row(Text(name, style="bold"), *row)
    else:
        table = terminal_table(None, ["", *cells])
        for i, measure in enumerate(names):
            table.add_row(Text(measure), *(row[i] for row in cells.values()))
    for sentence in comparison_summary(comparison, labels)["sentences"]:
        out.print(Text(sentence))
    out.print(table)
    out.print(Text(comparison.sentence()))


def open_console(console: Console | None) -> Console:
    """Return the console to print on; standard output if none is given."""
    return console or Console(highlight=False)


def terminal_table(title: str | None, head: Sequence[str]) -> Table:
    """Return an empty table: the first column to the left, the others to the right, titles never read as markup."""
    table = Table(
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        header_style="dim",
    )
    for i, name in enumerate(head):
        table.add_column(Text(name), justify="left" if i == 0 else "right")
    return table


def _numbers(result: AuditResult) -> Table:
    head = [f"{result.n:,} people", "value", f"{result.interval.confidence:.0%} interval"]
    table = terminal_table(None, head)
    for row in number_rows(numbers_document(result)):
        table.add_row(*map(Text, row))
    return table


def _brackets(result: AuditResult) -> Table:
    """What is attained and what is proved, drawn to scale: ├──┤ if both are known, ├╌╌▸ if nothing is proved."""
    table = terminal_table("shown ├──┤ proved", ["", "0" + " " * (_SCALE - 1), "the truth is"])
    table.columns[1].justify = table.columns[2].justify = "left"
    for bracket in result.brackets:
        same = [one for one in result.brackets if one.quantity == bracket.quantity]
        ends = [end for one in same for end in (one.lower, one.upper) if end is not None]
        # A little room beyond the largest, so that an end that nothing bounds is seen to be open.
        most = 1.0 if bracket.quantity == "changed" else 1.1 * max(*ends, 1e-12)
        style = "green" if bracket.upper is not None else "yellow"
        table.add_row(Text(bracket.name), Text(_drawn(bracket, most), style=style), str(bracket))
    return table


def _drawn(bracket: Bracket, most: float) -> str:
    def place(end: float) -> int:
        return round((_SCALE - 1) * min(max(end / most, 0.0), 1.0))

    low = place(bracket.lower)
    if bracket.upper is None:
        return " " * low + "├" + "╌" * (_SCALE - 2 - low) + "▸" * (low < _SCALE - 1)
    width = place(bracket.upper) - low
    return " " * low + ("├" + "─" * (width - 1) + "┤" if width else "┃")


def _rules(unfair: UnfairMap, where: str) -> Table:
    table = terminal_table(
        f"who is affected, counterparts {where}", ["group", "people", "added loss", "× average"]
    )
    table.columns[0].overflow = "fold"
    for rule in unfair.rules[:4]:
        who = Text(" and ".join(rule.conditions) or "everybody")
        table.add_row(who, f"{rule.support:,}", short_number(rule.mean_harm), f"{rule.lift:.1f}")
    return table


def _people(unfair: UnfairMap, where: str, k: int, labels: Mapping[Any, str]) -> Table:
    # Changed decisions first, as on the page.
    harm = unfair.harm
    order = np.lexsort((-harm, ~unfair.flipped))
    affected = int((harm > 0).sum())
    chosen = order[harm[order] > 0][:k]
    title = f"{len(chosen)} of {affected:,} affected people, counterparts {where}"
    table = terminal_table(title, ["row", "decision", "added loss", "what differs"])
    table.columns[3].justify, table.columns[3].overflow = "left", "fold"
    twins = rounded_like(unfair.twins, unfair.people)
    for i in chosen:
        outcome = unfair.outcomes.iloc[i]
        changes = differences_in_words(
            {name: unfair.people[name].iloc[i] for name in unfair.people.columns},
            {name: twins[name].iloc[i] for name in twins.columns},
        )
        before, after = (_decision(outcome[key], labels) for key in ("decision", "twin_decision"))
        decision = Text(f"{before} → {after}", style="red") if before != after else Text(f"{before} (same)")
        table.add_row(str(outcome["person"]), decision, short_number(float(outcome["harm"])), Text(changes))
    return table


def _decision(value: Any, labels: Mapping[Any, str]) -> str:
    """A decision by its name; a predicted number with as many digits as people read."""
    shown = named(value, labels)
    broken = isinstance(shown, float) and not shown.is_integer()
    return short_number(shown) if broken else shown_cell(shown)


def _evaluation(evaluation: Evaluation) -> Table:
    head = [f"{evaluation.n_people:,} people", "value", f"{evaluation.confidence:.0%} interval"]
    table = terminal_table(None, head)
    for one in evaluation.measures:
        table.add_row(Text(one.name), short_number(one.value), interval_ends(one.low, one.high))
    return table


def _twins_table(study: TwinStudy) -> Table:
    """A study of three kinds of counterparts."""
    head = [
        "counterparts differ in",
        "people",
        "decision changes",
        "change of score",
        "plausible",
        "only here",
    ]
    table = terminal_table(f"Three kinds of counterparts by {study.attribute}", head)
    for answer in study.answers:
        several = len(answer.effects) > 1
        table.add_row(
            Text(str(answer.words)),
            f"{answer.n:,}",
            _with_ends(answer.changed, ".1%"),
            "" if several else _with_ends(answer.effects[0], "+.3f"),
            f"{answer.validity.value:.1%}" if answer.n_twins else "n/a",
            f"{len(study.only_under[answer.question]):,}",
        )
        for effect in answer.effects if several else ():
            table.add_row(Text(f"  {effect.name}", style="dim"), "", "", _with_ends(effect, "+.3f"))
        for group in answer.groups:
            name = Text(f"  of {study.attribute} = {group.group}", style="dim")
            changes = (_with_ends(group.changed, ".1%"), _with_ends(group.change, "+.3f"))
            table.add_row(name, f"{group.n:,}", *changes)
    return table


def _twins_words(study: TwinStudy) -> list[str]:
    """What was measured, the rules, and who was not compared."""
    first, rest = study.values[0], ", ".join(str(value) for value in study.values[1:])
    words = [
        f"change of score: the mean with {rest} less that with {first}; by group, the counterparts' less the people's "
        f"own (score: {study.score})",
    ]
    if study.moved:
        words.append(f"columns that follow along the graph: {', '.join(study.moved)}")
    if study.rules:
        more = f"; and {len(study.rules) - _MOST_RULES} more" if len(study.rules) > _MOST_RULES else ""
        words.append(f"rules that counterparts keep to: {'; '.join(study.rules[:_MOST_RULES])}{more}")
    for answer in study.answers:
        about = [f"{count:,} counterparts not compared: {why}" for why, count in answer.dropped.items()]
        about += [*map(str, answer.notes), f"intervals {answer.interval}"]
        words.append(f"{answer.words}: {'; '.join(about)}")
    return words


def _with_ends(measure: Measure, form: str) -> Text:
    if np.isnan(measure.value):
        return Text("n/a")
    ends = "" if np.isnan(measure.low) else f" [{measure.low:{form}}, {measure.high:{form}}]"
    return Text(f"{measure.value:{form}}{ends}")


def _compared(comparison: Comparison, measures: Mapping[str, Measure], between: str) -> list[RenderableType]:
    cells: list[RenderableType] = []
    values = comparison.frame
    for name in comparison.measures:
        measure = measures.get(name)
        if measure is None:
            cells.append(Text("–"))
            continue
        column = values[name].dropna()
        best = column.min() if name.startswith(_GOOD_WHEN_SMALL) else column.max()
        style = "bold" if measure.value == best and column.nunique() > 1 else ""
        interval = f"{between}[{short_number(measure.low)}, {short_number(measure.high)}]"
        cells.append(Text.assemble((short_number(measure.value), style), (interval, "dim")))
    return cells
