"""The page of a search for a fairer model in a real Chromium: charts to read, narrow and dark, no network, no errors."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.core.intervals import Measure
from likewise.improving import Alternative, Improvement, Rule, Unseen, write_improvement

NAMES = ("balanced accuracy", "changed decisions", "pure gap", "gap at ε", "Gap_RMS sex")


def figures(*values):
    return tuple(Measure(n, v, max(v - 0.02, 0.0), v + 0.02) for n, v in zip(NAMES, values, strict=True))


def improvement():
    random = np.random.default_rng(0)
    alternatives = tuple(
        Alternative(
            f"Model {i} with a name of some length",
            "What it does. " * 4,
            figures(*(random.random(5) * 0.1 + [0.8, 0, 0, 0.2, 0])),
            i % 2 == 0,
        )
        for i in range(9)
    )
    unseen = Unseen(alternatives[2].name, figures(0.85, 0, 0, 0.2, 0.05), figures(0.86, 0, 0, 0.21, 0.09))
    return Improvement(
        alternatives, Rule(), unseen.name, None, unseen, unseen, {"SenSR": "it diverged"}, 0.1, 0.95, 800, 200, 5,
        command="likewise improve people.csv --target y --sensitive sex -o better/", notes=("A note.",),
    )  # fmt: skip


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_readable_anywhere(browser, width, dark, tmp_path):
    write_improvement(improvement(), tmp_path)
    browser.driver.get_log("browser")
    browser.driver.get_log("performance")
    browser.show(tmp_path / "index.html", width=width, dark=dark)
    ask = browser.js
    assert ask("return document.documentElement.scrollWidth") <= width
    assert ask("return document.querySelectorAll('.chart svg').length") == 2
    assert ask("return document.querySelectorAll('.chart .point').length") == 18
    # every point lies inside of its chart, the chosen one is drawn last, and each says its numbers
    inside = """return [...document.querySelectorAll('.chart svg')].every(svg => {
        const box = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('circle')].every(c => {
            const p = c.getBoundingClientRect();
            return p.left >= box.left && p.right <= box.right && p.top >= box.top && p.bottom <= box.bottom;
        });
    })"""
    assert ask(inside)
    assert ask(
        "return [...document.querySelectorAll('.chart svg')].every(s => s.lastElementChild.matches('.is-chosen'))"
    )
    assert ask("return document.querySelector('.point title').textContent").startswith("Model 0")
    ask("document.getElementById('annex').open = true")
    text = browser.one("body").text
    for words in ("Model 2 with a name", "it diverged", "A note.", "likewise improve people.csv", "inside"):
        assert words in text
    background = ask("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(18, 19, 22)") == dark
    assert not [line for line in browser.driver.get_log("browser") if line["level"] == "SEVERE"]
    asked = [
        line["message"]
        for line in browser.driver.get_log("performance")
        if "Network.requestWillBeSent" in line["message"]
    ]
    assert not [line for line in asked if '"url":"http' in line]
