"""An improvement as one page that stands on its own: no network, no script, everything that comes from data escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources

from likewise._version import __version__
from likewise.core.text import once_each
from likewise.evaluation.measures import Measure
from likewise.improving.figures import ACCURACY, CHANGED, GAP, GROUP_GAP, PURE_GAP, group_gap
from likewise.improving.frontier_chart import frontier_svg
from likewise.improving.improvement import Improvement
from likewise.texts import Texts, check_language

__all__ = ["figure_name", "render_improvement"]

_FIGURES = {
    ACCURACY: "measure.balanced_accuracy",
    CHANGED: "improve.changed",
    PURE_GAP: "improve.pure_gap",
    GAP: "improve.gap",
    GROUP_GAP: "improve.group_gap",
}
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
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
.results .small { display: block; font-weight: 400; color: var(--muted); } .results summary { cursor: pointer; }
.results .chosen th, .results .chosen td { background: var(--faint); } .results .chosen th { font-weight: 700; }
.tag { color: var(--ok); border: 1px solid currentColor; border-radius: 1rem; padding: 0 .55rem; font-size: .76rem; font-weight: 600; }
.inside { color: var(--ok); } .outside { color: var(--harm); font-weight: 600; }
pre.scroll { white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def render_improvement(improvement: Improvement, *, title: str | None = None, language: str = "en") -> str:
    """Return an improvement's page.

    Parameters
    ----------
    improvement : Improvement
    title : str, optional
        Heading.
    language : {"en", "de"}, default="en"
        Names of models, columns and values stay as they are.

    Returns
    -------
    str
        HTML.
    """
    texts = Texts(check_language(language, owner="render_improvement"))
    css = (resources.files("likewise.report") / "assets" / "page.css").read_text(encoding="utf-8") + _CSS
    heading = escape(title or texts("improve.title"))
    return f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<title>{heading}</title>
<link rel="icon" href="data:,">
<style>{css}</style>
</head>
<body>
<a class="skip" href="#main">{escape(texts("page.skip"))}</a>
<header class="top"><div class="wrap"><p class="mark">likewise <span>{escape(texts("page.mark"))}</span></p><h1>{heading}</h1></div></header>
<main id="main" class="wrap" tabindex="-1">
{_short(improvement, texts)}
{_charts(improvement, texts)}
{_alternatives(improvement, texts)}
{_unseen(improvement, texts)}
{_details(improvement, texts)}
</main>
<footer class="wrap foot"><span>{escape(_made(improvement, texts))}</span><span>likewise {escape(__version__)}</span></footer>
</body>
</html>
"""


def figure_name(name: str, texts: Texts) -> str:
    """How a page calls a figure; symbols such as Gap_RMS stay."""
    key = _FIGURES.get(name)
    return name if key is None else texts(key)


def _short(improvement: Improvement, texts: Texts) -> str:
    after = {m.name: m for m in improvement.unseen.figures}
    before = {m.name: m for m in improvement.reference.figures}
    tiles = [
        (figure_name(name, texts), after[name].value, before[name].value, form)
        for name, form in ((CHANGED, "percent"), (ACCURACY, "number"), (PURE_GAP, "number"))
    ]
    tiles.append(
        (texts("improve.gap_at", eps=improvement.eps), after[GAP].value, before[GAP].value, "number")
    )
    if _has_groups(improvement):
        gaps = (group_gap(improvement.unseen.figures), group_gap(improvement.reference.figures))
        tiles.append((texts("improve.group_gap"), *gaps, "number"))
    shown = "".join(
        f'<div class="tile"><p class="tile-name">{escape(name[:1].upper() + name[1:])}</p>'
        f'<p class="tile-number">{texts.number(new, form)}</p>'
        f'<p class="tile-more">{escape(_of(improvement.reference.name, texts.number(old, form), texts))}</p></div>'
        for name, new, old, form in tiles
    )
    return (
        '<section class="card verdict is-comparison" aria-labelledby="short"><h2 id="short" class="badge">'
        f'<span aria-hidden="true">→</span> {escape(improvement.chosen)}</h2>'
        f'<p class="sentence">{escape(texts.said(improvement.sentence()))}</p><div class="tiles">{shown}</div>'
        f'<p class="lede">{escape(texts("improve.rule", rule=improvement.rule.words()))}</p></section>'
    )


def _charts(improvement: Improvement, texts: Texts) -> str:
    kinds = [
        (CHANGED, texts("improve.changed")),
        (GAP, texts("improve.gap_at", eps=improvement.eps)),
        (PURE_GAP, texts("improve.pure_gap")),
    ]
    if _has_groups(improvement):
        kinds.append((GROUP_GAP, texts("improve.group_gap")))
    drawn = "".join(
        f'<div class="chart">{frontier_svg(improvement, kind, title, texts)}</div>' for kind, title in kinds
    )
    return (
        f'<section class="card" aria-labelledby="frontier"><h2 id="frontier">{escape(texts("improve.frontier"))}</h2>'
        f'<p class="lede">{escape(texts("improve.frontier_lede"))}</p>'
        f'<div class="charts">{drawn}</div></section>'
    )


def _alternatives(improvement: Improvement, texts: Texts) -> str:
    heads = _heads([figure_name(name, texts) for name in improvement.measures])
    rows = []
    for number, one in enumerate(improvement.alternatives, start=1):
        chosen = one.name == improvement.chosen
        tag = f' <span class="tag">{escape(texts("improve.chosen"))}</span>' if chosen else ""
        cells = "".join(_cell(m, texts) for m in one.figures)
        told = _warned(one.warnings, texts)
        enough = texts("setting_value.yes") if one.accurate_enough else texts("setting_value.no")
        rows.append(
            f'<tr{" class=chosen" if chosen else ""}><th scope="row">{number}. {escape(one.name)}{tag}'
            f'<span class="small">{escape(texts.said(one.note))}</span>{told}</th>{cells}'
            f"<td>{escape(enough)}</td><td>{texts.number(one.cpu_seconds, 'whole')}</td></tr>"
        )
    failed = "".join(
        f"<p>{texts.rich('improve.failed', name=name, reason=reason)}</p>"
        for name, reason in improvement.failed.items()
    )
    title = texts("improve.all")
    lede = texts(
        "improve.all_lede", people=improvement.n_train, folds=improvement.folds, level=improvement.confidence
    )
    end = _heads([texts("improve.accurate_enough"), texts("improve.cpu")])
    return (
        f'<section class="card" aria-labelledby="all"><h2 id="all">{escape(title)}</h2><p class="lede">{escape(lede)}</p>'
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(title)}"><table class="results"><thead><tr>'
        f"{_heads([texts('improve.model')])}{heads}{end}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>{failed}</section>"
    )


def _warned(lines: Sequence[str], texts: Texts) -> str:
    """What trainings warned about, each kind once: folds differ in the figures."""
    kinds = once_each(lines)
    if not kinds:
        return ""
    shown = "".join(
        f'<span class="small">{escape(line)}{f" ({count}×)" if count > 1 else ""}</span>'
        for line, count in kinds
    )
    summary = escape(texts("improve.warned", n=len(kinds)))
    return f'<details class="small"><summary>{summary}</summary>{shown}</details>'


def _unseen(improvement: Improvement, texts: Texts) -> str:
    announced = {m.name: m for m in improvement.unseen.announced}
    before = {m.name: m for m in improvement.reference.figures}
    rows = []
    for m in improvement.unseen.figures:
        expected = announced[m.name]
        outside = m.name in improvement.unseen.surprises
        said = texts("improve.outside") if outside else texts("improve.inside")
        word = f'<td class="{"outside" if outside else "inside"}">{escape(said)}</td>'
        interval = texts("page.interval", low=expected.low, high=expected.high)
        rows.append(
            f'<tr><th scope="row">{escape(figure_name(m.name, texts))}</th>{_cell(m, texts)}<td>{escape(interval)}</td>{word}'
            f"{_cell(before[m.name], texts)}</tr>"
        )
    title = texts("improve.unseen")
    lede = texts("improve.unseen_lede", people=improvement.n_test, level=improvement.confidence)
    heads = _heads(
        [
            texts("improve.figure"),
            improvement.chosen,
            texts("improve.announced"),
            texts("improve.as_announced"),
            improvement.reference.name,
        ]
    )
    return (
        f'<section class="card" aria-labelledby="unseen"><h2 id="unseen">{escape(title)}</h2>'
        f'<p class="lede">{escape(lede)}</p>'
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(title)}"><table class="results"><thead><tr>'
        f"{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _details(improvement: Improvement, texts: Texts) -> str:
    notes = "".join(f"<li>{escape(texts.said(note))}</li>" for note in improvement.notes)
    again = ""
    if improvement.command:
        again = (
            f'<h3 id="again">{escape(texts("improve.repeat"))}</h3><pre class="scroll" tabindex="0" role="region" '
            f'aria-labelledby="again">{escape(improvement.command)}</pre>'
        )
    terms = "".join(
        f"<dt>{escape(texts(f'improve.terms.{term}.name'))}</dt><dd>{escape(texts(f'improve.terms.{term}.words'))}</dd>"
        for term in ("changed", "pure_gap", "gap", "rms")
    )
    return (
        f'<section class="card" aria-labelledby="details"><h2 id="details">{escape(texts("improve.details"))}</h2>'
        f'<dl class="terms">{terms}</dl><ul>{notes}</ul>{again}</section>'
    )


def _of(model: str, sentence: str, texts: Texts) -> str:
    return texts("first.of_model", name=model, sentence=sentence)


def _has_groups(improvement: Improvement) -> bool:
    return any(name.startswith("Gap_RMS ") for name in improvement.measures)


def _heads(names: Sequence[str]) -> str:
    return "".join(f'<th scope="col">{escape(name)}</th>' for name in names)


def _cell(m: Measure, texts: Texts) -> str:
    interval = texts("page.interval", low=m.low, high=m.high)
    return f'<td>{texts.number(m.value)}<span class="small">{escape(interval)}</span></td>'


def _made(improvement: Improvement, texts: Texts) -> str:
    minutes = sum(one.cpu_seconds for one in improvement.alternatives) / 60
    return texts("improve.made", minutes=float(f"{minutes:.2g}"))
