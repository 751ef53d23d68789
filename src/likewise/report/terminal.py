"""Results as tables in the terminal; what comes from data is printed as text, never read as markup."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from likewise.auditing.inference.verdict import Badge, Bracket, gap_words
from likewise.auditing.results.audit_result import AuditResult, WorstCase
from likewise.auditing.results.unfair_map import UnfairMap, differences_in_words, rounded_like, shown_cell
from likewise.core.intervals import Measure
from likewise.core.messages import Message, Texts, contained
from likewise.core.plain import named
from likewise.core.progress import open_console
from likewise.core.text import interval_ends, printable, short_number, value_words
from likewise.evaluation.summary import Evaluation
from likewise.report.comparison import Comparison, comparison_summary
from likewise.report.document import number_rows, numbers_document
from likewise.report.first_words import disadvantage, example_words, favourable_words, reach_words
from likewise.report.templates import effect_words, templates

if TYPE_CHECKING:
    from likewise.counterfactuals.study import TwinStudy

_STYLES: dict[Badge, str] = {
    "depends": "bold red",
    "not_found": "bold blue",
    "independent": "bold blue",
    "not_read": "bold blue",
    "unanswered": "bold yellow",
}
# Readable on white and on black; the words are written out as well, so colour alone says nothing.
_COLOURS: dict[Badge, str] = {
    "depends": "#c2410c",
    "not_found": "#3f6fb0",
    "independent": "#3f6fb0",
    "not_read": "#3f6fb0",
    "unanswered": "#8a6100",
}
# Lines and columns of an audit in short, signs of a bar to either side, and effects that are shown.
_LINES, _WIDTH, _BAR, _EFFECTS = 20, 80, 8, 6
# Columns of a drawn bracket.
_SCALE = 24
_GOOD_WHEN_SMALL = ("gap", "Gap")


def print_audit(
    result: AuditResult,
    console: Console | None = None,
    *,
    full: bool = False,
    language: str = "en",
    evaluation: Evaluation | None = None,
    twins: Sequence[TwinStudy] = (),
    people: int = 5,
    labels: Mapping[Any, str] | None = None,
    lines: int = _LINES,
) -> None:
    """Print an audit in at most 20 lines that end in the verdict.

    Parameters
    ----------
    result : AuditResult
    console : rich.console.Console, optional
        Where to print; standard output by default.
    full : bool, default=False
        Print the annex before: loss, ε, what is proved, the people, `evaluation`.
    language : {"en", "de"}, default="en"
        Of the lines in short.
    evaluation : Evaluation, optional
        Accuracy, studies and group gaps.
    twins : sequence of TwinStudy, optional
        Studies of three kinds of counterparts, printed in any case.
    people : int, default=5
        How many people the annex shows.
    labels : mapping, optional
        Names of the labels and decisions.
    lines : int, default=20
        How many lines there are; what says least is left out.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> table = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> print_audit(lw.audit(score, table, sensitive_features=["sex"]))
    All 4 people of the table. Favourable decision: 1 (assumed).
    <BLANKLINE>
                                     have it, would lose it │ lack it, would gain it
      sex: F → M                                          0 │████████ 1
    <BLANKLINE>
    Get the favourable decision as recorded, by sex: F 50.0%, M 100.0%.
    For example row 1 of the table, counted from 1 (skill 0, sex F) gets “0”; the
    same person with sex M would get “1”.
    Exact for these 4 people: the model was asked with every known value of sex (F,
    M); nothing is estimated. If they are a random sample of a larger group, 0.6% to
    80.6% of its decisions would change (95% confidence interval). Without labels it
    was not checked whether model and table belong together.
    <BLANKLINE>
    Depends on sex: The dependence is to the disadvantage of people recorded as F.
    Of 2 people with sex recorded as F, 1 would gain and 0 would lose the favourable
    decision if recorded as M; of 2 recorded as M, 0 would gain and 0 would lose it
    if recorded as F. Together 1 of 4 people (25.0%) would get another decision if
    only the entry for sex were different.
    """
    out = console or open_console()
    if full:
        _print_annex(result, out, evaluation, people, labels or {})
    for study in twins:
        head, rows = study.table
        out.print(terminal_table(f"Three kinds of counterparts by {study.attribute}", head, rows))
        for words in study.words:
            out.print(Text(f"  {words}.", style="dim"))
        out.print()
    said, verdict = audit_lines(result, labels, language=language, width=min(out.width, 100), lines=lines)
    for line in said:
        out.print(Text(line), soft_wrap=True)
    style = _STYLES[result.headline.badge]
    for number, line in enumerate(verdict):
        out.print(Text(line, style=style if number == 0 else "bold"), soft_wrap=True)


def audit_text(result: AuditResult) -> str:
    """Return an audit in short."""
    lines, verdict = audit_lines(result)
    return "\n".join([*lines, *verdict])


def audit_lines(
    result: AuditResult,
    labels: Mapping[Any, str] | None = None,
    *,
    language: str = "en",
    width: int = _WIDTH,
    lines: int = _LINES,
) -> tuple[list[str], list[str]]:
    """Return an audit in a few lines: scope and findings, who loses and gains, one person, how sure; the verdict apart."""
    say, found, names = Texts(language), result.headline, labels or {}

    def wrapped(*sentences: str, most: int) -> list[str]:
        text = " ".join(say.said(sentence) for sentence in sentences if sentence)
        parts = textwrap.wrap(text, width, break_on_hyphens=False)
        while len(parts) > most:
            # A sentence less, which is better than half of one.
            text, _, rest = text.rpartition(". ")
            if not text:
                cut = textwrap.wrap(rest, width, break_on_hyphens=False)[:most]
                return [*cut[:-1], cut[-1][: width - 2] + " …"]
            parts = textwrap.wrap(f"{text}.", width, break_on_hyphens=False)
        return parts

    first, *more = filter(None, (disadvantage(result), found.sentence))
    verdict = wrapped(Message("first.titled", title=found.title, sentence=first), *more, most=9)
    if found.limit is not None:
        verdict += wrapped(found.limit.sentence, most=2)
    notes = _notes(result)
    top = wrapped(result.scope.words(), favourable_words(result, names), most=2)
    top += [line for note in notes[:2] for line in wrapped(note, most=3)]
    if not result.answered:
        return [*top, ""], verdict
    room = lines - len(top) - len(verdict) - 3
    sure = _gap(result, wrapped)
    sure += wrapped(found.sure, most=min(max(room - len(sure) - 3, 2), 6))
    # What does not fit is left out, never cut in the middle.
    bars = _bars(result, say, width, room - len(sure))
    room -= len(sure) + len(bars)
    example, rates = [list[str](), list[str]()]
    listed = [example_words(result, one, names) for one in result.listed[:1]]
    for part, sentences in ((example, listed), (rates, _rates(result, names))):
        for sentence in sentences:
            said = wrapped(sentence, most=lines)
            if len(said) <= room:
                part += said
                room -= len(said)
    return [*top, "", *bars, *([""] if bars else []), *rates, *example, *sure, ""], verdict


def _gap(result: AuditResult, wrapped: Callable[..., list[str]]) -> list[str]:
    """What the paper's audit found within a tolerance, or against a limit."""
    worst = result.worst_case
    if worst is None or not result.labelled or (worst.eps == 0 and worst.delta is None):
        return []
    bound = result.certificate.bound
    proved = None if bound is None else bound.gap
    end = Message("verdict.open") if proved is None else Message("verdict.proven", gap=proved)
    said = Message("first.gap", eps=result.eps, gap=result.gap, pure=result.pure_gap, open_end=end)
    return wrapped(said, *result.reasons[:1], most=3)


def _notes(result: AuditResult) -> list[str]:
    """What has to be known before any number, if the verdict does not say it already."""
    told = "unread" if result.headline.badge == "not_read" else None
    return [
        finding.sentence
        for finding in result.findings
        if finding.kind != told and finding.sentence != result.headline.sentence
    ]


def _bars(result: AuditResult, say: Texts, width: int, lines: int) -> list[str]:
    """A line for each of the largest effects: people who lose to the left, who gain to the right."""
    table = result.effects
    numbers = table is not None and "change" in table
    if lines < 2 or table is None or not (numbers or (result.favourable is not None and len(table))):
        return []
    left, right = ("lower", "higher") if numbers else ("lose", "gain")
    moved = table[table[left] + table[right] > 0]
    single = moved[moved["attribute"].isin(result.sensitive.attributes if result.sensitive else ())]
    single = single if len(single) else moved
    shown = single.head(min(_EFFECTS, lines - 1))
    if not len(shown):
        return []
    most = max(int(shown[left].max()), int(shown[right].max()), 1)
    # A count of up to seven signs beside a bar.
    side, heads = _BAR + 8, [say(f"effect.{left}"), say(f"effect.{right}")]
    if numbers:
        heads[1] = f"{heads[1].ljust(side - 1)}  {say('effect.average')}"
    room = width - 3 - side - max(side, len(heads[1]) + 1)
    of = say("effect.largest", shown=len(shown), total=len(single)) if len(shown) < len(single) else ""
    drawn = [f"  {of}{heads[0].rjust(room + side - 1 - len(of))} │ {heads[1]}"]
    for _, row in shown.iterrows():
        name = printable(_exchange(row, say))
        name = name if len(name) <= room else name[: room - 1] + "…"
        bars = ["█" * math.ceil(_BAR * row[side] / most) for side in (left, right)]
        counts = [say.number(int(row[side]), "whole") for side in (left, right)]
        before = f"{counts[0]} {bars[0]}" if bars[0] else f"{counts[0]} "
        after = f"{bars[1]} {counts[1]}" if bars[1] else f" {counts[1]}"
        more = f"  {say.number(float(row['change']), 'number')}" if numbers else ""
        drawn.append(f"  {name.ljust(room)}{before.rjust(side)}│{(after.ljust(side) + more).rstrip()}")
    return drawn


def _exchange(row: Any, say: Texts) -> str:
    ends = (effect_words(say, value) or value_words(value) for value in (row["recorded"], row["instead"]))
    return f"{contained(str(row['attribute']))}: {' → '.join(ends)}"


def _rates(result: AuditResult, labels: Mapping[Any, str]) -> list[Message]:
    """How often people with each value get the favourable decision, as they are; attributes with few values."""
    table = result.group_rates
    if table is None or "rate" not in table:
        return []
    said = []
    for attribute, part in table.groupby("attribute", sort=False):
        if len(part) <= _EFFECTS:
            rates = [
                Message("effect.rate", value=value_words(v), rate=r)
                for v, r in zip(part["value"], part["rate"], strict=True)
            ]
            listed = reduce(lambda one, two: Message("effect.listed", one=one, two=two), rates)
            said.append(Message("effect.rates", attribute=str(attribute), rates=listed))
    return said[:2]


def audit_html(result: AuditResult) -> str:
    """Return an audit in short as a small piece of HTML for notebooks; every string is escaped."""
    found, table, after = result.headline, result.effects, [result.headline.sure]
    if result.answered:
        after = [*_rates(result, {}), *after]
    if found.limit is not None:
        after = [found.limit.sentence, *after]
    if result.answered:
        after = [*(example_words(result, one, {}) for one in result.listed[:1]), *after]
    sides = ("lower", "higher") if table is not None and "change" in table else ("lose", "gain")
    rows = [
        {"name": _exchange(row, Texts()), "lose": row[sides[0]], "gain": row[sides[1]]}
        for _, row in (table.head(_EFFECTS).iterrows() if table is not None else ())
        if result.answered and result.favourable is not None
    ]
    page: str = (
        templates("en")
        .get_template("notebook.html.j2")
        .render(
            before=[result.scope.words() + " " + favourable_words(result, {}), *_notes(result)],
            colour=_COLOURS[found.badge],
            title=found.title,
            told=" ".join(filter(None, (disadvantage(result), found.sentence))),
            sides=sides,
            rows=rows,
            after=after,
        )
    )
    return page


def _print_annex(
    result: AuditResult, out: Console, evaluation: Evaluation | None, people: int, labels: Mapping[Any, str]
) -> None:
    """Print loss, ε, what is proved, people with the most added loss, accuracy and group gaps."""
    if result.worst_case is not None:
        _print_worst_case(result, result.worst_case, out, people, labels)
    if evaluation is not None:
        out.print()
        out.print(_evaluation(evaluation))
    for reason in (*result.reasons, *result.left_out):
        out.print(Text.assemble(("note: ", "yellow"), reason))
    out.print()


def _print_worst_case(
    result: AuditResult, worst: WorstCase, out: Console, people: int, labels: Mapping[Any, str]
) -> None:
    for line in (gap_words(result), reach_words(result)[0]):
        if line:
            out.print(Text(line))
    out.print(_numbers(result))
    out.print()
    out.print(_brackets(result))
    shown, where = (
        (worst.pure_map, "at no distance") if worst.pure_gap > 0 else (worst.unfair_map, "within ε")
    )
    if shown.rules:
        out.print()
        out.print(_rules(shown, where))
    if people > 0 and (shown.harm > 0).any():
        out.print()
        out.print(_people(shown, where, people, labels))


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
    out = console or open_console()
    names = comparison.measures
    wide = 16 + 17 * (len(names) + 1) <= out.width
    room = 20 + 25 * len(comparison.entries) <= out.width
    between = "\n" if wide or not room else " "
    cells = {entry.name: _compared(comparison, entry.measures(), between) for entry in comparison.entries}
    names = (*names, "verdict")
    for row, entry in zip(cells.values(), comparison.entries, strict=True):
        row.append(Text(entry.audit.headline.title, style=_STYLES[entry.audit.headline.badge]))
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


def terminal_table(title: str | None, head: Sequence[str], rows: Iterable[Iterable[str]] = ()) -> Table:
    """Return a table: the first column to the left, the others to the right, nothing is read as markup."""
    table = Table(
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        header_style="dim",
    )
    for i, name in enumerate(head):
        table.add_column(Text(name), justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _numbers(result: AuditResult) -> Table:
    head = [f"{result.n:,} people", "value", f"{result.interval.confidence:.0%} interval"]
    return terminal_table(None, head, number_rows(numbers_document(result)))


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
    rows = [
        (
            " and ".join(rule.conditions) or "everybody",
            f"{rule.support:,}",
            short_number(rule.mean_harm),
            f"{rule.lift:.1f}",
        )
        for rule in unfair.rules[:4]
    ]
    head = ["group", "people", "added loss", "× average"]
    table = terminal_table(f"who is affected, counterparts {where}", head, rows)
    table.columns[0].overflow = "fold"
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
    rows = [
        (one.name, short_number(one.value), interval_ends(one.low, one.high)) for one in evaluation.measures
    ]
    return terminal_table(None, head, rows)


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
