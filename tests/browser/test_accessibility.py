"""axe-core finds nothing in any page, light and dark, wide and narrow; all of it is reached by keyboard."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

from likewise.improving import write_improvement
from likewise.models import as_model
from likewise.report import Provenance, write_html

ROOT = Path(__file__).parents[2]
AXE = Path(os.environ.get("LIKEWISE_AXE", ROOT / "node_modules" / "axe-core" / "axe.min.js"))
FOUND = """const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ["violations"], ...arguments[0] }).then(found => done(found.violations
  .map(v => [v.id, v.nodes.map(n => n.html.slice(0, 120))])));"""
# The dark page differs from the light one in nothing but colours (below); these are the rules about them.
OF_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
# Of rows that are made of the same elements, attributes and classes two stay: axe would say the same of every one.
FEW_ROWS = """const shape = row => [row, ...row.querySelectorAll("*")].map(e => e.tagName + [...e.attributes].map(
  a => a.name + (a.name === "class" ? a.value : ""))).join();
for (const body of document.querySelectorAll("tbody")) {
  const seen = {};
  for (const row of [...body.rows]) if ((seen[shape(row)] = (seen[shape(row)] || 0) + 1) > 2) row.remove();
}"""


def nothing_found(browser):
    """Nothing in the page as it stands, which is light, and nothing about its colours once it is dark."""
    ask = browser.driver.execute_async_script
    assert ask(FOUND, {}) == []
    light = browser.js("return getComputedStyle(document.body).backgroundColor")
    browser.paint(dark=True)
    assert browser.js("return getComputedStyle(document.body).backgroundColor") != light
    assert ask(FOUND, OF_COLOURS) == []
    browser.paint()


def pages_of():
    """The tests of the pages, which make one of every kind."""
    spec = importlib.util.spec_from_file_location(
        "likewise_pages", ROOT / "tests" / "report" / "test_pages.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def improvement():
    name = "likewise_improvement_page"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, Path(__file__).with_name("test_improvement_page.py")
        )
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name].improvement()


def panel(samples):
    """What the page needs so that a person of the table can be tried in it."""
    from sklearn.linear_model import LogisticRegression

    from likewise.report.explore import explore_document

    data, people, y, _ = samples.adult()
    fitted = LogisticRegression(max_iter=200).fit(data.X_train.to_numpy()[:2000], data.y_train[:2000])
    return explore_document(
        data.domain,
        people[:200],
        y[:200],
        models={"m": as_model(fitted)},
        sensitive_features=["sex", "race"],
    )


@pytest.fixture(scope="module")
def pages(samples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    evaluation, result = samples.adult_result()
    told = {"provenance": Provenance.now(seed=0, command="likewise audit model.onnx people.csv")}
    write_html(result, folder / "audit.html", evaluation=evaluation, diagnoses=["a diagnosis"], **told)
    write_html(result, folder / "explore.html", explore=panel(samples), **told)
    write_html(samples.comparison(), folder / "comparison.html", language="de", **told)
    write_improvement(improvement(), folder / "improvement")
    (folder / "improvement" / "index.html").rename(folder / "improvement.html")
    kinds = pages_of()
    for kind in ("scores", "verification"):
        (folder / f"{kind}.html").write_text(getattr(kinds, f"{kind}_page")(), encoding="utf-8")
    return folder


@pytest.mark.skipif(
    not AXE.is_file(), reason=f"no axe-core at {AXE}: `make browser` installs it where npm is"
)
@pytest.mark.parametrize("page", ["audit", "comparison", "improvement", "explore", "scores", "verification"])
@pytest.mark.parametrize("width", [1400, 400])
def test_axe_finds_nothing(browser, pages, page, width):
    browser.show(pages / f"{page}.html", width=width)
    browser.js("for (const d of document.querySelectorAll('details')) d.open = true")
    browser.js(FEW_ROWS)
    browser.js(AXE.read_text(encoding="utf-8"))
    nothing_found(browser)


@pytest.mark.parametrize("page", ["audit", "comparison", "improvement", "explore", "scores", "verification"])
def test_everything_that_can_be_clicked_is_reached_by_the_tab_key_and_shows_it(browser, pages, page):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.show(pages / f"{page}.html", width=1400, height=900)
    wanted = browser.js(
        """const seen = e => e.checkVisibility() && !e.disabled && e.tabIndex >= 0;
        const all = [...document.querySelectorAll('a, button, input, select, summary, [tabindex]')].filter(seen);
        all.forEach((e, i) => e.dataset.stop = i);
        return all.length;"""
    )
    browser.js(
        """document.activeElement.blur();
        window.reached = [];
        document.addEventListener('focusin', () => {
          const e = document.activeElement, s = getComputedStyle(e);
          const ring = e.matches('g') ? getComputedStyle(e.querySelector('circle')).stroke : s.outlineStyle;
          window.reached.push([e.dataset.stop ?? null, ring, e.outerHTML.slice(0, 80)]);
        });"""
    )
    ActionChains(browser.driver, duration=0).send_keys(Keys.TAB * (wanted + 5)).perform()
    found = browser.js("return window.reached")
    reached = {stop for stop, _, _ in found}
    plain = [name for _, outline, name in found if outline in ("none", "")]
    assert reached == {str(i) for i in range(wanted)}
    assert plain == []


@pytest.mark.parametrize("page", ["audit", "comparison", "improvement", "explore", "scores", "verification"])
def test_the_dark_page_differs_from_the_light_one_in_colours_only(pages, page):
    text = (pages / f"{page}.html").read_text(encoding="utf-8")
    colour = r"--[a-z0-9-]+: (?:#[0-9a-f]{3,8}|none);|color-scheme: dark;"
    blocks = re.findall(
        rf"@media \(prefers-color-scheme: dark\) {{\s*:root {{(?:\s*(?:{colour}))+\s*}}\s*}}", text
    )
    assert len(blocks) == text.count("prefers-color-scheme") == 1


def test_nothing_moves_where_motion_is_not_wanted(browser, pages):
    browser.show(pages / "audit.html")  # with prefers-reduced-motion: reduce
    moving = browser.js(
        """return [...document.querySelectorAll('*')].filter(e => ['', '::before', '::after'].some(part => {
          const s = getComputedStyle(e, part || null);
          return s.transitionDuration.split(', ').some(t => t !== '0s') || s.animationName !== 'none';
        })).map(e => e.outerHTML.slice(0, 80));"""
    )
    assert moving == []
    assert browser.js("return getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_charts_have_names_and_values_for_those_who_do_not_see_them(browser, pages):
    browser.show(pages / "improvement.html")
    charts = browser.js(
        """return [...document.querySelectorAll('.chart svg')].map(svg => [svg.getAttribute('aria-label') || '',
          [...svg.querySelectorAll('g[role=img]')].map(g => g.getAttribute('aria-label'))]);"""
    )
    assert charts
    assert all(label and points and all(points) for label, points in charts)
