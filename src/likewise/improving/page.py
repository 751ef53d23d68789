"""An improvement as one page that stands on its own: no network, no script, everything that comes from data escaped."""

from __future__ import annotations

from html import escape
from importlib import resources

from likewise._version import __version__
from likewise.evaluation.measures import Measure
from likewise.improving.figures import ACCURACY, CHANGED, GAP, GROUP_GAP, PURE_GAP, group_gap
from likewise.improving.frontier_chart import frontier_svg
from likewise.improving.improvement import Improvement

__all__ = ["render_improvement"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_CSS = """
.wrap { width: min(84rem, 100%); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1.25rem; }
.chart { min-height: 0; }
.chart .interval line { stroke: currentColor; stroke-width: 1.5; opacity: .35; }
.chart circle { fill: currentColor; stroke: var(--card); stroke-width: 1.5; }
.chart .is-chosen circle { stroke: var(--ink); stroke-width: 2.5; }
.chart .number { fill: var(--card); font-size: 10px; font-weight: 700; }
.results { width: 100%; font-size: .9rem; }
.results th, .results td { padding: .5rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; vertical-align: top; }
.results th:first-child, .results td.words { text-align: left; } .results tbody th { white-space: normal; min-width: 12rem; font-weight: 500; }
.results .small { display: block; font-weight: 400; color: var(--muted); }
.results .chosen th, .results .chosen td { background: var(--faint); } .results .chosen th { font-weight: 700; }
.tag { color: var(--ok); border: 1px solid currentColor; border-radius: 1rem; padding: 0 .55rem; font-size: .76rem; font-weight: 600; }
.inside { color: var(--ok); } .outside { color: var(--harm); font-weight: 600; }
pre.scroll { white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def render_improvement(improvement: Improvement, *, title: str = "A fairer model, chosen") -> str:
    """Return an improvement's page.

    Parameters
    ----------
    improvement : Improvement
    title : str
        Heading.

    Returns
    -------
    str
        HTML.
    """
    css = (resources.files("likewise.report") / "assets" / "page.css").read_text(encoding="utf-8") + _CSS
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<title>{escape(title)}</title>
<style>{css}</style>
</head>
<body>
<header class="top"><div class="wrap"><p class="mark">likewise<span>improve</span></p><h1>{escape(title)}</h1></div></header>
<main class="wrap">
{_short(improvement)}
{_charts(improvement)}
{_alternatives(improvement)}
{_unseen(improvement)}
{_details(improvement)}
</main>
<footer class="wrap foot"><span>{_made(improvement)}</span><span>likewise {escape(__version__)}</span></footer>
</body>
</html>
"""


def _short(improvement: Improvement) -> str:
    after = {m.name: m for m in improvement.unseen.figures}
    before = {m.name: m for m in improvement.reference.figures}
    tiles = [
        (ACCURACY, after[ACCURACY].value, before[ACCURACY].value, ".3f"),
        (CHANGED, after[CHANGED].value, before[CHANGED].value, ".1%"),
        (PURE_GAP, after[PURE_GAP].value, before[PURE_GAP].value, ".3f"),
        (f"gap at ε = {improvement.eps:g}", after[GAP].value, before[GAP].value, ".3f"),
    ]
    if _has_groups(improvement):
        gaps = (group_gap(improvement.unseen.figures), group_gap(improvement.reference.figures))
        tiles.append(("largest group gap", *gaps, ".3f"))
    shown = "".join(
        f'<div class="tile"><p class="tile-name">{escape(name.capitalize())}</p><p class="tile-number">{new:{form}}</p>'
        f'<p class="tile-more">“{escape(improvement.reference.name)}”: {old:{form}}</p></div>'
        for name, new, old, form in tiles
    )
    return (
        '<section class="card verdict is-comparison" aria-labelledby="short"><h2 id="short" class="badge">'
        f'<span aria-hidden="true">→</span> {escape(improvement.chosen)}</h2>'
        f'<p class="sentence">{escape(improvement.sentence())}</p><div class="tiles">{shown}</div>'
        f'<p class="lede">The rule: {escape(str(improvement.rule))}.</p></section>'
    )


def _charts(improvement: Improvement) -> str:
    kinds = [
        (GAP, f"gap at ε = {improvement.eps:g}"),
        (PURE_GAP, "pure gap, ε = 0"),
        (CHANGED, "changed decisions"),
    ]
    if _has_groups(improvement):
        kinds.append((GROUP_GAP, "largest group gap"))
    drawn = "".join(
        f'<div class="chart">{frontier_svg(improvement, kind, title)}</div>' for kind, title in kinds
    )
    return (
        '<section class="card" aria-labelledby="frontier"><h2 id="frontier">Accuracy and fairness</h2>'
        '<p class="lede">Each number is a model of the table below; lines are its intervals. The dashed line joins those that '
        "no other beats in both. Green: chosen; blue: accurate enough for the rule; grey: not.</p>"
        f'<div class="charts">{drawn}</div></section>'
    )


def _alternatives(improvement: Improvement) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in improvement.measures)
    rows = []
    for number, one in enumerate(improvement.alternatives, start=1):
        chosen = one.name == improvement.chosen
        tag = ' <span class="tag">chosen</span>' if chosen else ""
        cells = "".join(_cell(m) for m in one.figures)
        told = "".join(f'<span class="small">Warned: {escape(line)}</span>' for line in one.warnings)
        rows.append(
            f'<tr{" class=chosen" if chosen else ""}><th scope="row">{number}. {escape(one.name)}{tag}'
            f'<span class="small">{escape(one.note)}</span>{told}</th>{cells}'
            f"<td>{'yes' if one.accurate_enough else 'no'}</td><td>{one.cpu_seconds:,.0f}</td></tr>"
        )
    failed = "".join(
        f"<p><strong>{escape(name)}</strong> could not be computed: {escape(reason)}</p>"
        for name, reason in improvement.failed.items()
    )
    return (
        '<section class="card" aria-labelledby="all"><h2 id="all">All alternatives</h2>'
        f'<p class="lede">Cross-validated on {improvement.n_train:,} training people in {improvement.folds} folds: each was '
        f"judged by a model that had not seen them. Small: {improvement.confidence:.0%} confidence intervals.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="All alternatives"><table class="results"><thead><tr>'
        f'<th scope="col">Model</th>{heads}<th scope="col">accurate enough</th><th scope="col">CPU s</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{failed}</section>"
    )


def _unseen(improvement: Improvement) -> str:
    announced = {m.name: m for m in improvement.unseen.announced}
    before = {m.name: m for m in improvement.reference.figures}
    rows = []
    for m in improvement.unseen.figures:
        expected = announced[m.name]
        outside = m.name in improvement.unseen.surprises
        word = '<td class="outside">outside</td>' if outside else '<td class="inside">inside</td>'
        rows.append(
            f'<tr><th scope="row">{escape(m.name)}</th>{_cell(m)}<td>{expected.low:.3f} to {expected.high:.3f}</td>{word}'
            f"{_cell(before[m.name])}</tr>"
        )
    return (
        '<section class="card" aria-labelledby="unseen"><h2 id="unseen">People never seen</h2>'
        f'<p class="lede">{improvement.n_test:,} people were put aside before anything was trained. What the chosen model would '
        f"show on them was announced first: the intervals hold together with {improvement.confidence:.0%} probability.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="People never seen"><table class="results"><thead><tr>'
        f'<th scope="col">Figure</th><th scope="col">{escape(improvement.chosen)}</th><th scope="col">announced</th>'
        f'<th scope="col"></th><th scope="col">{escape(improvement.reference.name)}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _details(improvement: Improvement) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in improvement.notes)
    command = f'<pre class="scroll">{escape(improvement.command)}</pre>' if improvement.command else ""
    again = f"<h3>To repeat it</h3>{command}" if command else ""
    return f"""<section class="card" aria-labelledby="details"><h2 id="details">How to read this</h2>
<dl class="terms">
<dt>Changed decisions</dt><dd>Share of people of whom some twin, who differs in the sensitive columns and edits alone, is decided otherwise.</dd>
<dt>Pure gap</dt><dd>What the mean loss rises by when everybody is treated as their worst twin at no fair distance.</dd>
<dt>Gap at ε</dt><dd>The same within a mean squared fair distance of ε, honest differences between people a little apart included; an estimate from below, over the people and twins looked at.</dd>
<dt>Gap_RMS</dt><dd>Differences between groups in the rate of right decisions, class by class, as a root mean square; of more than two groups the largest pair.</dd>
</dl>
<ul>{notes}</ul>{again}</section>"""


def _has_groups(improvement: Improvement) -> bool:
    return any(name.startswith("Gap_RMS ") for name in improvement.measures)


def _cell(m: Measure) -> str:
    return f'<td>{m.value:.3f}<span class="small">{m.low:.3f} to {m.high:.3f}</span></td>'


def _made(improvement: Improvement) -> str:
    minutes = sum(one.cpu_seconds for one in improvement.alternatives) / 60
    return f"{minutes:.1f} CPU minutes of cross-validation."
