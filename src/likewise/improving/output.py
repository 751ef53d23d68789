"""The files of an improvement: page, JSON, table, the chosen model in its library's own format."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from likewise._version import __version__
from likewise.core.errors import InputError, MissingExtraError
from likewise.core.files import atomic_path
from likewise.core.intervals import Measure
from likewise.core.messages import Texts, check_language
from likewise.core.text import once_each
from likewise.improving.figures import ACCURACY, CHANGED, GAP, GROUP_GAP, PURE_GAP, group_gap
from likewise.improving.improvement import UNFAIRNESS, Alternative, Improvement, Unseen

# An improvement as plain values: the search for a less discriminatory alternative, documented.


KIND = "likewise.improvement"
SCHEMA_VERSION = 1


def improvement_document(improvement: Improvement) -> dict[str, Any]:
    """Return an improvement as JSON values, every alternative included."""
    fronts = {name: improvement.frontier(name) for name in UNFAIRNESS}
    rule = improvement.rule
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "sentence": improvement.sentence(),
        "rule": {
            "text": str(rule),
            "within": rule.within,
            "of": ACCURACY,
            "least": list(rule.least),
            "alike": rule.alike,
        },
        "chosen": improvement.chosen,
        "eps": improvement.eps,
        "confidence": improvement.confidence,
        "people": {"train": improvement.n_train, "test": improvement.n_test, "folds": improvement.folds},
        "alternatives": [
            {
                "name": one.name,
                "note": one.note,
                "chosen": one.name == improvement.chosen,
                "accurate_enough": one.accurate_enough,
                "on_frontier": {name: one.name in names for name, names in fronts.items()},
                "figures": _figures(one.figures),
                "cpu_seconds": round(one.cpu_seconds, 2),
                "warnings": list(one.warnings),
            }
            for one in improvement.alternatives
        ],
        "failed": dict(improvement.failed),
        "unseen": {
            "chosen": _unseen(improvement.unseen),
            "reference": _unseen(improvement.reference),
        },
        "notes": list(improvement.notes),
        "command": improvement.command,
        "version": __version__,
    }


def _unseen(unseen: Unseen) -> dict[str, Any]:
    return {
        "name": unseen.name,
        "figures": _figures(unseen.figures),
        "announced": _figures(unseen.announced),
        "surprises": list(unseen.surprises),
    }


def _figures(measures: Sequence[Measure]) -> dict[str, Any]:
    return {
        m.name: {
            "value": _number(m.value),
            "low": _number(m.low),
            "high": _number(m.high),
            "interval": m.method,
        }
        for m in measures
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# Accuracy against unfairness as one SVG per kind of unfairness: points, their intervals, the frontier, the
# choice.


WIDTH, HEIGHT = 560, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 46


def frontier_svg(improvement: Improvement, unfairness: str, title: str, texts: Texts) -> str:
    """Return a chart that stands in the page: the fairer, the farther left; the more accurate, the higher."""
    points = [(one, _measure(one, unfairness), _measure(one, ACCURACY)) for one in improvement.alternatives]
    across = _Axis.around([m for _, m, _ in points], LEFT, WIDTH - RIGHT, floor=0.0)
    up = _Axis.around([m for *_, m in points], HEIGHT - BOTTOM, TOP)
    parts = [_grid(across, up, title, texts)]
    best = max(m.value for *_, m in points) - improvement.rule.within
    if up.low < best < up.high:
        y, enough = up.place(best), escape(texts("improve.enough_above"))
        parts.append(f'<line class="delta" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT - 4}" y="{y - 5:.1f}" text-anchor="end" class="halo">{enough}</text>'
        )
    order = improvement.frontier(unfairness)
    by_name = {one.name: (across.place(m.value), up.place(a.value)) for one, m, a in points}
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in (by_name[name] for name in order))
    parts.append(f'<polyline class="frontier-line" points="{steps}"/>')
    drawn = [
        (
            one.name == improvement.chosen,
            _point(number, one, m, a, across, up, one.name == improvement.chosen, title, texts),
        )
        for number, (one, m, a) in enumerate(points, start=1)
    ]
    # The chosen one last, so that no other hides it.
    parts += [svg for _, svg in sorted(drawn, key=lambda pair: pair[0])]
    said = escape(texts("improve.chart", unfairness=title, chosen=improvement.chosen))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{said}">{"".join(parts)}</svg>'


class _Axis:
    """Numbers to places, with round ticks."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    @classmethod
    def around(cls, measures: list[Measure], start: float, end: float, floor: float | None = None) -> _Axis:
        low, high = min(m.low for m in measures), max(m.high for m in measures)
        if floor is not None:
            # A long upper part of an interval must not press all points together.
            high = min(high, 3.0 * max(m.value for m in measures) + 1e-3)
        room = max(0.04 * (high - low), 1e-3)
        low = low - room if floor is None else max(low - room, floor - room)
        return cls(low, high + room, start, end)

    def place(self, value: float) -> float:
        return self.start + (min(value, self.high) - self.low) / (self.high - self.low) * (
            self.end - self.start
        )

    def ticks(self) -> list[float]:
        step = next(s for s in _STEPS if (self.high - self.low) / s <= 6)
        first = int(-(-self.low // step))
        return [n * step for n in range(first, int(self.high // step) + 1)]


_STEPS = tuple(m * 10.0**e for e in range(-4, 3) for m in (1, 2, 5))


def _measure(one: Alternative, name: str) -> Measure:
    if name != GROUP_GAP:
        return next(m for m in one.figures if m.name == name)
    gaps = [m for m in one.figures if m.name.startswith("Gap_RMS ")]
    return max(gaps, key=lambda m: m.value)


def _grid(across: _Axis, up: _Axis, title: str, texts: Texts) -> str:
    parts = []
    for value in across.ticks():
        x = across.place(value)
        parts.append(f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{texts.number(round(value, 9), "general")}</text>'
        )
    for value in up.ticks():
        y = up.place(value)
        parts.append(f'<line class="tick" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{texts.number(round(value, 9), "general")}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="strong" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(texts("improve.axis", name=title))}</text>'
    )
    parts.append(
        f'<text class="strong" transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(texts('measure.balanced_accuracy'))}</text>"
    )
    return "".join(parts)


def _point(
    number: int,
    one: Alternative,
    unfair: Measure,
    right: Measure,
    across: _Axis,
    up: _Axis,
    chosen: bool,
    title: str,
    texts: Texts,
) -> str:
    x, y = across.place(unfair.value), up.place(right.value)
    colour = "var(--ok)" if chosen else "var(--s0)" if one.accurate_enough else "var(--s5)"
    said = texts(
        "improve.point",
        name=one.name,
        accuracy=right.value,
        accuracy_low=right.low,
        accuracy_high=right.high,
        unfairness=title,
        value=unfair.value,
        low=unfair.low,
        high=unfair.high,
    )
    whiskers = (
        f'<line x1="{across.place(unfair.low):.1f}" x2="{across.place(unfair.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.place(right.low):.1f}" y2="{up.place(right.high):.1f}"/>'
    )
    return (
        f'<g tabindex="0" role="img" aria-label="{escape(said)}" class="point{" is-chosen" if chosen else ""}" style="color:{colour}"><title>{escape(said)}</title>'
        f'<g class="interval">{whiskers}</g><circle cx="{x:.1f}" cy="{y:.1f}" r="{9 if chosen else 8}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" class="number">{number}</text></g>'
    )


# An improvement as one page that stands on its own: no network, no script, everything that comes from data
# escaped.


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
    """Return an improvement's page."""
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
{_unseen_page(improvement, texts)}
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


def _unseen_page(improvement: Improvement, texts: Texts) -> str:
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


JSON, PAGE, TABLE, MODEL = "improvement.json", "index.html", "alternatives.csv", "model"


def check_improvement_folder(folder: str | os.PathLike[str]) -> None:
    """Raise where files cannot be written, or would replace files that no search wrote."""
    where = Path(folder)
    for parent in (where, *where.parents):
        if parent.exists() and not parent.is_dir():
            raise InputError(f"{parent} is a file, not a folder. Choose another -o.")
    ours = where / JSON
    if ours.exists():
        try:
            known = json.loads(ours.read_text(encoding="utf-8")).get("kind") == KIND
        except (ValueError, AttributeError):
            known = False
        if not known:
            raise InputError(f"{ours} was not written by `improve`. Choose another -o.")
        return
    taken = [name for name in (PAGE, TABLE) if (where / name).exists()]
    if taken:
        raise InputError(f"{where / taken[0]} was not written by `improve`. Choose another -o.")


def write_improvement(
    improvement: Improvement, folder: str | os.PathLike[str], *, language: str = "en"
) -> tuple[Path, ...]:
    """Write an improvement: ``index.html``, ``improvement.json``, ``alternatives.csv`` and the chosen model.

    Parameters
    ----------
    improvement : Improvement
    folder : path-like
        Made where it is not there; files of an earlier search in it are replaced.
    language : {"en", "de"}, default="en"
        Of the page.

    Returns
    -------
    tuple of Path
        What was written. A model that cannot be written without pickle is left out.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from likewise.improving import improve
    >>> from likewise.improving.candidates import BoostingCandidate
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame(random.normal(size=(200, 2)), columns=["skill", "talk"])
    >>> people["sex"] = random.choice(["F", "M"], 200)
    >>> hired = (people["skill"] + (people["sex"] == "M") > 0.5).astype(int)
    >>> few = {"n_estimators": 10, "max_depth": 2}
    >>> plain = BoostingCandidate("plain", "", blind=False, choices=few)
    >>> blind = BoostingCandidate("blind", "", choices=few)
    >>> import tempfile
    >>> result = improve(people, hired, sensitive_features=["sex"], candidates=[plain, blind], folds=2)
    >>> [path.name for path in write_improvement(result, tempfile.mkdtemp())]
    ['improvement.json', 'index.html', 'alternatives.csv', 'model.ubj']
    """
    where = Path(folder)
    check_improvement_folder(where)
    where.mkdir(parents=True, exist_ok=True)
    document = json.dumps(improvement_document(improvement), ensure_ascii=False, allow_nan=False, indent=1)
    texts = {
        JSON: document + "\n",
        PAGE: render_improvement(improvement, language=language),
        TABLE: improvement.frame.to_csv(index_label="model"),
    }
    written = []
    for name, text in texts.items():
        with atomic_path(where / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
        written.append(where / name)
    return (*written, *_write_model(improvement, where / f"{MODEL}{improvement.suffix}"))


def _write_model(improvement: Improvement, target: Path) -> tuple[Path, ...]:
    if not hasattr(improvement.model, "save"):
        return ()
    try:
        improvement.model.save(target)
    except (InputError, MissingExtraError) as error:
        warnings.warn(f"The chosen model was not written: {error}", UserWarning, stacklevel=3)
        return ()
    return (target,)
