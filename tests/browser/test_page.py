"""The page in a real Chromium: sorting, searching, pointing, narrow and dark, without network or errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from likewise.report import Comparison, audit_document, write_html

PEOPLE = "#a0-people"


@pytest.fixture(scope="module")
def pages(samples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    evaluation, result = samples.adult_result()
    write_html(result, folder / "audit.html", evaluation=evaluation, diagnoses=["a diagnosis"])
    write_html(samples.nasty_result(), folder / "nasty.html", title=samples.SCRIPT)
    write_html(samples.comparison(), folder / "comparison.html")
    write_html(samples.still_result(), folder / "still.html")
    write_html(Comparison.of({"still": (None, samples.still_result())}), folder / "alone.html")
    return folder


@pytest.fixture
def audit_page(browser, pages):
    browser.show(pages / "audit.html")
    return browser


def column(browser, name):
    """The person's own values in one column of the people table, top to bottom."""
    heads = browser.text(f"{PEOPLE} .persons thead button")
    cells = f"{PEOPLE} .persons tr.person > :nth-child({heads.index(name) + 1})"
    return [text.split("→")[0] for text in browser.text(cells)]


def click_head(browser, name):
    heads = browser.text(f"{PEOPLE} .persons thead button")
    browser.all(f"{PEOPLE} .persons thead button")[heads.index(name)].click()
    return browser.all(f"{PEOPLE} .persons thead th")[heads.index(name)].get_attribute("aria-sort")


def count(browser):
    return int(browser.one(f"{PEOPLE} .people-count").text.split()[0])


def type_into_search(browser, words):
    from selenium.webdriver.common.keys import Keys

    box = browser.one(f"{PEOPLE} input[type=search]")
    box.send_keys(Keys.CONTROL + "a")  # one call each, or the control key stays down
    box.send_keys(Keys.BACKSPACE + words)


@pytest.mark.parametrize("page", ["audit.html", "nasty.html", "comparison.html", "still.html", "alone.html"])
def test_no_errors_and_no_network(browser, pages, page):
    browser.driver.get_log("browser")
    browser.driver.get_log("performance")
    browser.show(pages / page)
    assert browser.driver.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.driver.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert asked, "the log of requests must at least hold the page itself"
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert {url for url in asked if url.startswith("file:")} == {(pages / page).as_uri()}


def test_people_are_sorted_by_a_click_on_the_header(audit_page, samples):
    rows = audit_document(samples.adult_result()[1])["maps"][0]["people"]
    ages = [row["cells"][rows["columns"].index("age")] for row in rows["rows"]]
    assert click_head(audit_page, "age") == "ascending"
    assert [int(age) for age in column(audit_page, "age")] == sorted(ages)[:25]
    assert click_head(audit_page, "age") == "descending"
    assert [int(age) for age in column(audit_page, "age")] == sorted(ages, reverse=True)[:25]
    assert click_head(audit_page, "Added loss") == "descending"
    harms = [float(text) for text in column(audit_page, "Added loss")]
    assert harms == sorted(harms, reverse=True)


def test_people_whose_decision_changes_come_first(audit_page, samples):
    changed = [t for t in audit_page.text(f"{PEOPLE} .persons tr.person > :nth-child(3)") if "same" not in t]
    assert len(changed) == min(25, int(samples.adult_result()[1].pure_map.flipped.sum()))


def test_people_are_searched_and_filtered(audit_page, samples):
    rows = audit_document(samples.adult_result()[1])["maps"][0]["people"]
    total = len(rows["rows"])
    assert count(audit_page) == total
    type_into_search(audit_page, "occupation:sales")
    job = rows["columns"].index("occupation")
    assert count(audit_page) == sum(row["cells"][job] == "Sales" for row in rows["rows"])
    assert set(column(audit_page, "occupation")) == {"Sales"}
    type_into_search(audit_page, "no such words")
    assert audit_page.one(f"{PEOPLE} .nobody").text.startswith("Nobody matches")
    type_into_search(audit_page, "")
    audit_page.one(f"{PEOPLE} input[type=checkbox]").click()
    changed = [row for row in rows["rows"] if row["decision"] != row["twin_decision"]]
    assert count(audit_page) == len(changed) < total
    audit_page.one(f"{PEOPLE} input[type=checkbox]").click()
    audit_page.js(
        "const s = document.querySelector(arguments[0]); s.value = 'sex'; s.dispatchEvent(new Event('change'))",
        f"{PEOPLE} select",
    )
    assert count(audit_page) == sum("sex" in row["twin"] for row in rows["rows"])
    assert all("→" in t for t in audit_page.text(f"{PEOPLE} .persons td[data-label='sex']"))


def test_pages_of_people_are_turned(audit_page):
    first = column(audit_page, "Row")
    audit_page.all(f"{PEOPLE} .pages button")[1].click()
    second = column(audit_page, "Row")
    assert not set(first) & set(second)
    assert "Page 2 of" in audit_page.one(f"{PEOPLE} .pages span").text


def test_a_person_and_the_twin_side_by_side_by_keyboard(audit_page, samples):
    from selenium.webdriver.common.keys import Keys

    opener = audit_page.one(f"{PEOPLE} .open")
    number = int(column(audit_page, "Row")[0].replace("Row", ""))
    opener.send_keys(Keys.ENTER)
    table = f"{PEOPLE} .twins tbody"
    _, result = samples.adult_result()
    person, twin = result.pure_map.people.iloc[number], result.pure_map.twins.iloc[number]
    names = audit_page.text(f"{table} th")[2:]
    assert names == list(person.index)
    assert audit_page.text(f"{table} td:nth-child(2)")[2:] == [str(v) for v in person]
    assert audit_page.text(f"{table} td:nth-child(3)")[2:] == [str(v) for v in twin]
    marked = audit_page.text(f"{table} tr.differs:not(.outcome) th")
    assert marked == [name for name in names if person[name] != twin[name]]
    assert audit_page.js("return document.activeElement.getAttribute('aria-expanded')") == "true"


def test_the_curve_is_read_by_pointing_and_by_keys(audit_page, samples):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    _, result = samples.adult_result()
    chart = audit_page.one("[data-curve=a0]")
    said = audit_page.one("[data-readout=a0]")
    assert f"{result.gap:.3f}" in said.text
    ActionChains(audit_page.driver).move_to_element_with_offset(chart, 100, 20).perform()
    eps = float(chart.get_attribute("aria-valuenow"))
    assert 0 < eps < 4 * result.eps
    assert f"ε = {eps:.3f}" in said.text
    assert f"gap {result.curve.gap(eps):.3f}" in said.text
    chart.send_keys(Keys.HOME)
    assert f"gap {result.pure_gap:.3f}" in said.text
    chart.send_keys(Keys.ARROW_RIGHT * 5)
    assert float(chart.get_attribute("aria-valuenow")) == pytest.approx(0.2 * result.eps)
    audit_page.one("[data-range=a0] [data-to=all]").click()
    chart.send_keys(Keys.END)
    assert float(chart.get_attribute("aria-valuenow")) == pytest.approx(result.curve.eps[-1], rel=1e-3)
    assert audit_page.one("[data-range=a0] [data-to=all]").get_attribute("aria-pressed") == "true"


def test_the_switch_changes_every_section(audit_page):
    shown = "#a0 .map:not([hidden])"
    before = {e.get_attribute("data-map") for e in audit_page.all(shown)}
    audit_page.one("#a0-who .switch [data-map=budget]").click()
    after = {e.get_attribute("data-map") for e in audit_page.all(shown)}
    assert (before, after) == ({"free"}, {"budget"})
    assert "Distance²" in audit_page.text(f"{PEOPLE} .persons thead button")
    pressed = audit_page.all(".switch[data-audit] [aria-pressed=true]")
    assert {button.get_attribute("data-map") for button in pressed} == {"budget"}


def test_markup_from_data_is_shown_as_text(browser, pages, samples):
    browser.show(pages / "nasty.html")
    assert browser.js("return window.harmed === undefined")
    assert browser.js("return document.images.length") == 0
    heads = browser.text(f"{PEOPLE} .persons thead button")
    assert {samples.SCRIPT, samples.QUOTES, samples.SNOW} <= set(heads)
    assert browser.one("h1").text == samples.SCRIPT
    assert any(samples.CLOSER in text for text in browser.text(f"{PEOPLE} .persons td"))
    browser.one(f"{PEOPLE} .open").click()
    assert samples.QUOTES in browser.text(f"{PEOPLE} .twins th")
    type_into_search(browser, f"{samples.QUOTES}:M")
    assert count(browser) > 0
    assert browser.js("return window.harmed === undefined")


def test_words_from_the_right_turn_nothing_else_around(audit_page):
    from likewise.core.messages import contained

    words = [
        "sex",
        "naïve",
        "מין",
        "a מין 3",
        "\u202e68.5%",
        "\u2069\u202eمين\u2068",
        contained("מין") + " 3 → 4",
        "🙂",
    ]
    assert audit_page.js("return arguments[0].map(window.likewise.contained)", words) == [
        *map(contained, words)
    ]
    assert contained(contained("a מין 3")) == contained("a מין 3")
    assert contained("\u202e68.5%") == "68.5%"


def test_scripts_that_are_not_ours_do_not_run(audit_page):
    audit_page.js(
        "const s = document.createElement('script'); s.textContent = 'window.harmed = 1'; document.body.append(s)"
    )
    assert audit_page.js("return window.harmed === undefined")
    audit_page.driver.get_log("browser")  # the refusal is logged, which is right


@pytest.mark.parametrize("page", ["audit.html", "nasty.html", "comparison.html"])
def test_400_pixels_need_no_sideways_scrolling(browser, pages, page, tmp_path):
    browser.show(pages / page, width=1400, height=800)
    assert browser.js("return document.documentElement.scrollWidth") <= 1400
    browser.show(pages / page, width=400, height=800)
    assert browser.js("return document.documentElement.scrollWidth") <= 400
    browser.one(f"{PEOPLE} .open").send_keys("\n")
    for details in browser.all("details"):
        browser.js("arguments[0].open = true", details)
    assert browser.js("return document.documentElement.scrollWidth") <= 400
    picture = browser.picture()
    picture.save(tmp_path / "narrow.png")
    assert picture.size == (400, 800)
    assert len(np.unique(np.asarray(picture).reshape(-1, 3), axis=0)) > 20  # something is drawn


def luminance(colour):
    values = np.array([int(v) for v in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(values <= 0.03928, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_are_readable(browser, pages, dark, tmp_path):
    browser.show(pages / "audit.html", dark=dark)
    found = browser.js(
        """const colour = (s, p) => getComputedStyle(document.querySelector(s))[p];
        return ['.sentence', '.lede', '.tile-more', '.persons td', '.flip', 'mark', '.badge', '.contents a'].map(s => {
          let place = document.querySelector(s), back = 'rgba(0, 0, 0, 0)';
          const ink = getComputedStyle(place).color;
          while (place && back === 'rgba(0, 0, 0, 0)') { back = getComputedStyle(place).backgroundColor; place = place.parentElement; }
          return [s, ink, back];
        });"""
    )
    for selector, ink, back in found:
        if "color(" in back:  # a mixed colour, nearly that of the page
            back = browser.js("return getComputedStyle(document.body).backgroundColor")
        light, deep = sorted([luminance(ink), luminance(back)], reverse=True)
        assert (light + 0.05) / (deep + 0.05) >= 4.5, (selector, ink, back)
    picture = browser.picture()
    picture.save(tmp_path / "page.png")
    brightness = np.asarray(picture).mean()
    assert brightness < 80 if dark else brightness > 180


def test_models_are_reached_by_tabs_and_points(browser, pages, samples):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.show(pages / "comparison.html")
    panels = browser.all("[role=tabpanel]")
    assert [panel.is_displayed() for panel in panels] == [True, False]
    browser.one("#tab-0").send_keys(Keys.ARROW_RIGHT)
    assert [panel.is_displayed() for panel in panels] == [False, True]
    browser.wait(lambda: browser.all("[data-curve=a1] svg"))
    point = browser.one("[data-frontier] g[data-model='baseline'] circle")
    ActionChains(browser.driver).move_to_element(point).perform()
    value = samples.comparison().frame.loc["baseline", "gap at ε = 0"]
    assert f"gap {value:.3f}" in browser.one("[data-frontier-readout]").text
    browser.one("[data-frontier-switch] [data-map=budget]").click()
    browser.js("document.querySelector(\"[data-frontier] g[tabindex='0']\").focus()")
    value = samples.comparison().frame.loc["baseline", "gap at ε = 0.1"]
    assert f"gap {value:.3f}" in browser.one("[data-frontier-readout]").text


def test_the_numbers_can_be_saved(audit_page, samples, tmp_path):
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    audit_page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    audit_page.one("#save-data").click()
    audit_page.wait(lambda: (tmp_path / "audit.json").exists())
    saved = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert saved["numbers"]["gap"]["value"] == samples.adult_result()[1].gap


def test_print_leaves_the_controls_out_and_shows_every_model(browser, pages):
    browser.show(pages / "comparison.html", media="print", width=720, dark=True)
    for selector in (".contents", ".people-tools", ".switch", ".tabs"):
        assert not any(part.is_displayed() for part in browser.all(selector))
    assert all(panel.is_displayed() for panel in browser.all("[role=tabpanel]"))
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.js("return document.documentElement.scrollWidth") <= 720
