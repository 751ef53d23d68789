"""The smaller forms: tables in the terminal, summaries in notebooks, plots."""

from __future__ import annotations

import io

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import likewise as lw
from likewise.auditing.results.unfair_map import make_unfair_map
from likewise.report import (
    Comparison,
    plot_box,
    plot_curve,
    plot_frontier,
    plot_unfair_map,
    print_audit,
    print_comparison,
)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def printed(function, *args, width=120, **kwargs):
    console = Console(width=width, record=True, color_system=None, file=io.StringIO())
    function(*args, console, **kwargs)
    return console.export_text()


def test_an_audit_in_the_terminal(samples):
    evaluation, result = samples.adult_result()
    names = {0: "poor", 1: "rich"}
    short = printed(print_audit, result, evaluation=evaluation, labels=names, width=80).rstrip().split("\n")
    assert len(short) <= 20
    assert max(map(len, short)) <= 80
    assert " ".join(" ".join(short).split()).endswith(result.headline.sentence)
    text = printed(print_audit, result, full=True, evaluation=evaluation, labels=names)
    flat = " ".join(text.split())
    changed = result.changed.count
    assert f"{changed} of 1,200 people ({changed / 1200:.1%}) would get another decision if only " in flat
    # The annex comes first, and the verdict last.
    assert flat.index("Comparable counterparts within a fair distance of ε = 0.1") < flat.index(
        "All 1,200 people"
    )
    assert f"{result.gap:.3f}" in flat
    assert f"{result.pure_gap:.3f}" in flat
    assert "rich → poor" in flat or "poor → rich" in flat
    assert "S-Con" in flat
    assert result.pure_map.rules[0].conditions[0] in flat


@pytest.mark.parametrize("lines", range(12, 21))
def test_what_does_not_fit_in_the_terminal_is_left_out_by_whole_sentences(samples, lines):
    rng = np.random.default_rng(0)
    towns = [f"Upper Northern Township {letter}" for letter in "ABCDEF"]
    people = pd.DataFrame(
        {"skill": rng.normal(size=300), "town": rng.choice(towns, 300), "age": rng.integers(18, 80, 300)}
    )

    def score(frame):
        return 1 / (1 + np.exp(-frame["skill"] - (frame["town"] == towns[0]) + 0.02 * (frame["age"] - 40)))

    result = lw.audit(score, people, sensitive_features=["town", "age"], limit=0.05)
    whole = " ".join(printed(print_audit, result, width=80, lines=60).split())
    short = printed(print_audit, result, width=80, lines=lines).rstrip().split("\n")
    assert len(short) <= max(lines, 16)
    assert not any(line.endswith("…") for line in short)
    for part in " ".join(line for line in short if "│" not in line).split(". "):
        assert " ".join(part.split()).removesuffix(".") in whole
    drawn = [line for line in short if "→" in line and "│" in line]
    if drawn:
        head = next(line for line in short if "have it, would lose it" in line)
        assert head.split()[:3] == [
            str(len(drawn)),
            "of",
            str((result.effects["lose"] + result.effects["gain"] > 0).sum()),
        ]


def test_brackets_in_data_are_no_markup(samples):
    people = pd.DataFrame({"[bold]a[/bold]": ["[red]x[/red]", "[/nothing]"], "n": [1.0, 2.0]})
    twins = people.iloc[::-1].reset_index(drop=True)
    unfair = make_unfair_map(
        people, twins, label=[0, 1], loss=[0.0, 0.0], twin_loss=[1.0, 1.0], decision=[0, 1],
        twin_decision=[1, 0], squared_distance=[0.0, 0.0],
    )  # fmt: skip
    result = samples.with_worst_case(samples.nasty_result(), pure_map=unfair, reasons=("[i]why[/i]",))
    text = printed(print_audit, result, full=True, width=200)
    assert "[bold]a[/bold]: [red]x[/red] → [/nothing]" in text
    assert "[i]why[/i]" in text


@pytest.mark.parametrize("width", [60, 250])
def test_a_comparison_in_the_terminal(samples, width):
    compared = samples.comparison()
    text = printed(print_comparison, compared, width=width)
    for words in ("baseline", "blind <b>", "S-Con", "GR-Con", "gap at ε = 0.1", "verdict"):
        assert words in text
    assert f"{compared.frame.loc['baseline', 'gap at ε = 0.1']:.3f}" in text
    assert max(len(line) for line in text.splitlines()) <= width


def test_notebook_summaries_stand_alone_and_escape(samples):
    html = samples.nasty_result()._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;/script&gt;&lt;img" in html
    assert "http" not in html
    assert len(html) < 10_000
    assert "Depends on" in html
    compared = samples.comparison()._repr_html_()
    assert "blind &lt;b&gt;" in compared
    assert "blind <b>" not in compared


def test_the_plot_of_effects_has_a_bar_to_either_side(samples):
    _, result = samples.adult_result()
    axes = result.plot()
    lose, gain = ([round(abs(bar.get_width())) for bar in bars] for bars in axes.containers)
    shown = result.effects.head(8)
    assert (lose, gain) == (shown["lose"].tolist(), shown["gain"].tolist())
    assert axes.get_title(loc="left") == str(result.headline.title)
    with pytest.raises(lw.InputError, match="favourable"):
        samples.nasty_result().plot()


def test_the_curve_plot_is_the_curve(samples):
    _, result = samples.adult_result()
    axes = plot_curve({"baseline": result, "blind": samples.adult_result("blind")[1]})
    x, y = axes.lines[0].get_data()
    assert np.allclose(y, result.curve.gap(np.asarray(x)))
    assert axes.get_xlim() == (0, pytest.approx(4 * result.eps))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["baseline", "blind"]
    assert plot_curve(result, max_eps=1.0).get_xlim()[1] == 1.0
    with pytest.raises(lw.InputError, match="max_eps"):
        plot_curve(result, max_eps=0)


def test_the_unfair_map_has_an_arrow_for_each_harmed_person(samples):
    _, result = samples.adult_result()
    axes = plot_unfair_map(result, ("age", "sex"), pure=True, max_people=30)
    arrows = [c for c in axes.collections if type(c).__name__ == "Quiver"]
    assert sum(a.N for a in arrows) == 30
    assert [t.get_text() for t in axes.get_yticklabels()] == ["Female", "Male"]
    assert axes.get_xlabel() == "age"
    moved = list(result.pure_map.changes["column"][:2])
    free = plot_unfair_map(result, pure=True)
    assert [free.get_xlabel(), free.get_ylabel()] == moved
    with pytest.raises(lw.InputError, match="did you mean 'age'"):
        plot_unfair_map(result, ("agee", "sex"))
    with pytest.raises(lw.InputError, match="an AuditResult or an UnfairMap"):
        plot_unfair_map(3)


def test_box_plots_show_medians(samples):
    groups = {"a": [1.0, 2.0, 3.0, np.nan], "b": [5.0]}
    _, ax = plt.subplots()
    axes = plot_box(groups, ylabel="score", ax=ax)
    assert axes is ax
    medians = [line.get_ydata()[0] for line in axes.lines if len(set(line.get_ydata())) == 1]
    assert {2.0, 5.0} <= set(medians)
    with pytest.raises(lw.InputError, match="no finite number in 'a'"):
        plot_box({"a": [np.nan]})


def test_the_frontier_plot(samples):
    compared = samples.comparison()
    axes = plot_frontier(compared)
    assert axes.get_xlabel() == "gap at ε = 0.1"
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"baseline", "blind <b>"}
    _, audit = samples.adult_result()
    with pytest.raises(lw.InputError, match="no entry"):
        plot_frontier(Comparison.of({"a": (None, audit)}))
