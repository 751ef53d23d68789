"""The page of a search for a fairer model in a real Chromium: charts to read, narrow and dark, no network, no errors."""

from __future__ import annotations

import importlib.util
import os
import shutil

import numpy as np
import pytest

from likewise.evaluation.measures import Measure
from likewise.improving import Alternative, Improvement, Rule, Unseen, write_improvement

CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
)
DRIVER = shutil.which("chromedriver")
READY = bool(importlib.util.find_spec("selenium") and CHROMIUM and DRIVER)
if not READY and os.environ.get("LIKEWISE_NEEDS_BROWSER"):
    raise RuntimeError("LIKEWISE_NEEDS_BROWSER is set, but selenium, Chromium or chromedriver is not there")
pytestmark = pytest.mark.skipif(not READY, reason="selenium, Chromium or chromedriver is not on this machine")

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
        command="likewise improve people.csv --target y --sensitive sex --out better", notes=("A note.",),
    )  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_readable_anywhere(browser, width, dark, tmp_path):
    write_improvement(improvement(), tmp_path)
    command = browser.execute_cdp_cmd
    command(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    command("Emulation.setEmulatedMedia", {"features": scheme})
    browser.get((tmp_path / "index.html").as_uri())
    ask = browser.execute_script
    assert ask("return document.documentElement.scrollWidth") <= width
    assert ask("return document.querySelectorAll('.chart svg').length") == 4
    assert ask("return document.querySelectorAll('.chart .point').length") == 36
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
    text = browser.find_element("tag name", "main").text
    for words in ("Model 2 with a name", "it diverged", "A note.", "likewise improve people.csv", "inside"):
        assert words in text
    background = ask("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(18, 19, 22)") == dark
    assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    asked = [
        line["message"]
        for line in browser.get_log("performance")
        if "Network.requestWillBeSent" in line["message"]
    ]
    assert not [line for line in asked if '"url":"http' in line]
