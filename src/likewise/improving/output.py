"""The files of an improvement: page, JSON, table, the chosen model in its library's own format."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from likewise._version import __version__
from likewise.core.errors import InputError, MissingExtraError, require
from likewise.core.frames import csv_text
from likewise.core.intervals import Measure
from likewise.core.messages import Texts, check_language
from likewise.core.plain import plain_fields, to_json
from likewise.core.text import once_each
from likewise.improving.figures import ACCURACY, CHANGED, GAP, GROUP_GAP, PURE_GAP
from likewise.improving.improvement import UNFAIRNESS, Alternative, Improvement, Unseen
from likewise.report.page import Answer, render_page, results_table, section
from likewise.report.provenance import Provenance
from likewise.report.writing import check_own_folder, write_text

KIND = "likewise.improvement"
SCHEMA_VERSION = 1
JSON, PAGE, TABLE, MODEL = "improvement.json", "index.html", "alternatives.csv", "model"


def improvement_document(improvement: Improvement, *, provenance: Provenance | None = None) -> dict[str, Any]:
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
                "standard_error": one.error,
                "on_frontier": {name: one.name in names for name, names in fronts.items()},
                "figures": _figures(one.figures),
                "cpu_seconds": round(one.cpu_seconds, 2),
                "warnings": list(one.warnings),
            }
            for one in improvement.alternatives
        ],
        "failed": dict(improvement.failed),
        "unseen": {"chosen": _unseen(improvement.unseen), "reference": _unseen(improvement.reference)},
        "notes": list(improvement.notes),
        "command": improvement.command,
        "provenance": None if provenance is None else provenance.document(),
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
    return {m.name: plain_fields(m, method="interval") for m in measures}


# Accuracy against unfairness as one SVG per kind of unfairness: points, their intervals, the frontier, the choice.

WIDTH, HEIGHT = 560, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 544, 14, 314
_STEPS = tuple(m * 10.0**e for e in range(-4, 3) for m in (1, 2, 5))


class _Axis:
    """Numbers to places, with round ticks."""

    def __init__(self, measures: Sequence[Measure], start: float, end: float, *, from_zero: bool) -> None:
        low, high = min(m.low for m in measures), max(m.high for m in measures)
        if from_zero:
            # A long upper part of an interval must not press all points together.
            high = min(high, 3.0 * max(m.value for m in measures) + 1e-3)
        room = max(0.04 * (high - low), 1e-3)
        self.low, self.high = max(low, 0.0) - room if from_zero else low - room, high + room
        self.start, self.end = start, end

    def place(self, value: float) -> float:
        share = (min(value, self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        step = next(s for s in _STEPS if (self.high - self.low) / s <= 6)
        return [round(n * step, 9) for n in range(int(-(-self.low // step)), int(self.high // step) + 1)]


def frontier_svg(improvement: Improvement, unfairness: str, title: str, texts: Texts) -> str:
    """Return a chart that stands in the page: the fairer, the farther left; the more accurate, the higher."""
    unfair = {one.name: _measure(one, unfairness) for one in improvement.alternatives}
    right = {one.name: _measure(one, ACCURACY) for one in improvement.alternatives}
    across = _Axis([*unfair.values()], LEFT, RIGHT, from_zero=True)
    up = _Axis([*right.values()], BOTTOM, TOP, from_zero=False)
    parts = []
    for value in across.ticks():
        x = across.place(value)
        parts += [
            _line(x, TOP, x, BOTTOM, "tick"),
            _text(x, BOTTOM + 17, texts.number(value, "general"), "middle"),
        ]
    for value in up.ticks():
        y = up.place(value)
        parts += [
            _line(LEFT, y, RIGHT, y, "tick"),
            _text(LEFT - 8, y + 4, texts.number(value, "general"), "end"),
        ]
    axis = texts("improve.axis", name=title)
    parts.append(_text((LEFT + RIGHT) / 2, HEIGHT - 8, axis, "middle", "strong"))
    parts.append(
        f'<text class="strong" transform="translate(14 {(TOP + BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(texts('measure.balanced_accuracy'))}</text>"
    )
    enough = max(m.value for m in right.values()) - improvement.rule.within
    if up.low < enough < up.high:
        y = up.place(enough)
        parts += [_line(LEFT, y, RIGHT, y, "delta")]
        parts += [
            _text(
                RIGHT - 4, y - 5, texts("improve.enough_above", within=improvement.rule.within), "end", "halo"
            )
        ]
    places = {name: (across.place(unfair[name].value), up.place(right[name].value)) for name in unfair}
    steps = " ".join(f"{x},{y}" for x, y in (places[name] for name in improvement.frontier(unfairness)))
    parts.append(f'<polyline class="frontier-line" points="{steps}"/>')
    drawn = []
    for number, one in enumerate(improvement.alternatives, start=1):
        (x, y), m, a = places[one.name], unfair[one.name], right[one.name]
        chosen = one.name == improvement.chosen
        colour = "var(--ok)" if chosen else "var(--s0)" if one.accurate_enough else "var(--s5)"
        said = texts(
            "improve.point", name=one.name, unfairness=title, value=m.value, low=m.low, high=m.high,
            accuracy=a.value, accuracy_low=a.low, accuracy_high=a.high,
        )  # fmt: skip
        whiskers = _line(across.place(m.low), y, across.place(m.high), y)
        whiskers += _line(x, up.place(a.low), x, up.place(a.high))
        ring = (
            f'<circle style="fill:none;stroke:currentColor" cx="{x}" cy="{y}" r="12"/>' if one.linear else ""
        )
        drawn.append(
            f'<g tabindex="0" role="img" aria-label="{escape(said)}" class="point{" is-chosen" * chosen}" '
            f'style="color:{colour}"><title>{escape(said)}</title><g class="interval">{whiskers}</g>'
            f'<circle cx="{x}" cy="{y}" r="{9 if chosen else 8}"/>{ring}{_text(x, y + 4, str(number), "middle", "number")}</g>'
        )
    # The chosen one last, so that no other hides it.
    drawn.sort(key=lambda svg: "is-chosen" in svg.partition('style="')[0])
    said = escape(texts("improve.chart", unfairness=title, chosen=improvement.chosen))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{said}">{"".join([*parts, *drawn])}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    return f'<line{f" class={kind}" if kind else ""} x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    return f'<text x="{x}" y="{y:.1f}" text-anchor="{anchor}"{f" class={kind}" if kind else ""}>{escape(words)}</text>'


def _measure(one: Alternative, name: str) -> Measure:
    if name != GROUP_GAP:
        return next(m for m in one.figures if m.name == name)
    gaps = [m for m in one.figures if m.name.startswith("Gap_RMS ")]
    return max(gaps, key=lambda m: m.value)


# The page.

_FIGURES = {
    ACCURACY: "measure.balanced_accuracy",
    CHANGED: "improve.changed",
    PURE_GAP: "improve.pure_gap",
    GAP: "improve.gap",
    GROUP_GAP: "improve.group_gap",
}


def render_improvement(
    improvement: Improvement, *, language: str = "en", provenance: Provenance | None = None
) -> str:
    """Return an improvement's page."""
    texts = Texts(check_language(language, owner="render_improvement"))
    number = texts.number
    people = f"{number(improvement.n_train + improvement.n_test, 'whole')}"
    return render_page(
        texts("improve.title"),
        [part(improvement, texts) for part in (_unseen_people, _alternatives, _charts)],
        texts=texts,
        answer=_answer(improvement, texts),
        scope=[
            (texts("page.scope.people"), people),
            (texts("improve.scope_unseen"), number(improvement.n_test, "whole")),
        ],
        annex=[_details(improvement, texts)],
        provenance=None if provenance is None else provenance.document(),
    )


def figure_name(name: str, texts: Texts) -> str:
    """How a page calls a figure; symbols such as Gap_RMS stay."""
    return texts(_FIGURES[name]) if name in _FIGURES else name


def _answer(improvement: Improvement, texts: Texts) -> Answer:
    kept = improvement.chosen == improvement.reference.name
    first = improvement.rule.least[0]
    after, before = (
        {m.name: m.value for m in one.figures}.get(first, 0.0)
        for one in (improvement.unseen, improvement.reference)
    )
    chosen = next(one for one in improvement.alternatives if one.name == improvement.chosen)
    warned = [
        texts("first.of_model", name=chosen.name, sentence=f"{line}{f' ({count}×)' if count > 1 else ''}")
        for line, count in once_each(chosen.warnings)
    ]
    return Answer(
        texts("improve.badge_kept" if kept else "improve.badge", chosen=improvement.chosen),
        "good" if not kept and after <= before else "plain",
        [texts.said(improvement.sentence()), texts("improve.rule", rule=improvement.rule.words())],
        warnings=[*(texts.said(note) for note in improvement.notes), *warned],
        sure=[texts("improve.unseen_lede", people=improvement.n_test, level=improvement.confidence)],
        not_shown=[texts("improve.not_shown"), texts("improve.not_shown_others")],
        next_steps=[texts("improve.next_audit"), texts("improve.next_compare")],
    )


def _charts(improvement: Improvement, texts: Texts) -> str:
    """Accuracy against what people feel: changed decisions, and differences between groups if there are any."""
    grouped = any(name.startswith("Gap_RMS ") for name in improvement.measures)
    kinds = [
        (CHANGED, texts("improve.changed")),
        *([(GROUP_GAP, texts("improve.group_gap"))] if grouped else []),
    ]
    drawn = "".join(
        f'<div class="chart">{frontier_svg(improvement, kind, title, texts)}</div>' for kind, title in kinds
    )
    lede = texts("improve.frontier_lede")
    return section(texts("improve.frontier"), f'<div class="charts">{drawn}</div>', id="frontier", lede=lede)


def _alternatives(improvement: Improvement, texts: Texts) -> str:
    rows = []
    for number, one in enumerate(improvement.alternatives, start=1):
        chosen = one.name == improvement.chosen
        tag = f' <span class="tag">{escape(texts("improve.chosen"))}</span>' if chosen else ""
        cells = "".join(_cell(m, texts) for m in one.figures)
        enough = texts("setting_value.yes" if one.accurate_enough else "setting_value.no")
        rows.append(
            f'<tr{" class=chosen" if chosen else ""}><th scope="row">{number}. {escape(one.name)}{tag}'
            f'<span class="small">{escape(texts.said(one.note))}</span>{_warned(one.warnings)}</th>{cells}'
            f'<td class="right">{escape(enough)}</td><td class="right">{texts.number(one.cpu_seconds, "whole")}</td></tr>'
        )
    failed = "".join(
        f"<p>{texts.rich('improve.failed', name=name, reason=reason)}</p>"
        for name, reason in improvement.failed.items()
    )
    title = texts("improve.all")
    figures = (figure_name(name, texts) for name in improvement.measures)
    heads = [texts("improve.model"), *figures, texts("improve.accurate_enough"), texts("improve.cpu")]
    people, folds, level = improvement.n_train, improvement.folds, improvement.confidence
    lede = texts("improve.all_lede", people=people, folds=folds, level=level)
    return section(title, results_table(title, heads, rows) + failed, id="all", lede=lede)


def _warned(lines: Sequence[str]) -> str:
    """What trainings warned about, each kind once: folds differ in the figures."""
    return "".join(
        f'<span class="small">{escape(line)}{f" ({count}×)" if count > 1 else ""}</span>'
        for line, count in once_each(lines)
    )


def _unseen_people(improvement: Improvement, texts: Texts) -> str:
    announced = {m.name: m for m in improvement.unseen.announced}
    before = {m.name: m for m in improvement.reference.figures}
    rows = []
    for m in improvement.unseen.figures:
        outside = m.name in improvement.unseen.surprises
        said = texts("improve.outside" if outside else "improve.inside")
        interval = texts("page.interval", low=announced[m.name].low, high=announced[m.name].high)
        rows.append(
            f'<tr><th scope="row">{escape(figure_name(m.name, texts))}</th>{_cell(m, texts)}<td class="right">{escape(interval)}</td>'
            f'<td class="right {"bad" if outside else "good"}">{escape(said)}</td>{_cell(before[m.name], texts)}</tr>'
        )
    title = texts("improve.unseen")
    heads = [
        texts("improve.figure"), improvement.chosen, texts("improve.announced"), texts("improve.as_announced"),
        improvement.reference.name,
    ]  # fmt: skip
    return section(title, results_table(title, heads, rows), id="unseen")


def _details(improvement: Improvement, texts: Texts) -> str:
    terms = "".join(
        f"<dt>{escape(texts(f'improve.terms.{term}.name'))}</dt><dd>{escape(texts(f'improve.terms.{term}.words'))}</dd>"
        for term in ("changed", "pure_gap", "gap", "rms")
    )
    minutes = sum(one.cpu_seconds for one in improvement.alternatives) / 60
    made = escape(texts("improve.made", minutes=float(f"{minutes:.2g}")))
    body = f'<dl class="facts">{terms}</dl><p>{made}</p>'
    return section(texts("improve.details"), body, id="details", level=3)


def _cell(m: Measure, texts: Texts) -> str:
    interval = texts("page.interval", low=m.low, high=m.high)
    return f'<td class="right">{texts.number(m.value)}<br><span class="small">{escape(interval)}</span></td>'


def check_improvement_folder(folder: str | os.PathLike[str]) -> None:
    """Raise if files cannot be written, or would replace files that no search wrote."""
    check_own_folder(Path(folder), JSON, KIND, others=(PAGE, TABLE), by="`improve`", option="-o")


def write_improvement(
    improvement: Improvement,
    folder: str | os.PathLike[str],
    *,
    language: str = "en",
    provenance: Provenance | None = None,
) -> tuple[Path, ...]:
    """Write an improvement: ``index.html``, ``improvement.json``, ``alternatives.csv`` and the chosen model.

    Parameters
    ----------
    improvement : Improvement
    folder : path-like
        Made if it does not exist; files of an earlier search in it are replaced.
    language : {"en", "de"}, default="en"
        Of the page.
    provenance : Provenance, optional
        When, of which files, by which command; by default the time, the versions and the improvement's command.

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
    known = provenance or Provenance.now(command=improvement.command or None)
    texts = {
        JSON: to_json(improvement_document(improvement, provenance=known)),
        PAGE: render_improvement(improvement, language=language, provenance=known),
        TABLE: csv_text(improvement.frame, index="model"),
    }
    for name, text in texts.items():
        write_text(where / name, text)
    written = tuple(where / name for name in texts)
    target = where / f"{MODEL}{improvement.suffix}"
    try:
        if hasattr(improvement.model, "save"):
            improvement.model.save(target)
        elif target.suffix == ".skops":
            require("skops.io", extra="skops", why="Writing a scikit-learn model").dump(
                improvement.model, target
            )
        else:
            return written
    except (InputError, MissingExtraError) as error:
        warnings.warn(f"The chosen model was not written: {error}", UserWarning, stacklevel=2)
        return written
    return (*written, target)
