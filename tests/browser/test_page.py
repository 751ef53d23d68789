"""The page in a real Chromium: sorting, searching, pointing, narrow and dark, without network or errors."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest

from likewise.core.text import printable
from likewise.report import Comparison, audit_document, write_html

PEOPLE = "#people"


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


def rows(browser):
    """The rows of people that are shown, as lists of text."""
    return browser.js(
        """return [...document.querySelectorAll(arguments[0])].filter(r => !r.hidden).map(r => [...r.cells].map(c => c.innerText))""",
        f"{PEOPLE} tbody tr",
    )


def count(browser):
    return int(browser.one(f"{PEOPLE} .people-count").text.split()[-1])


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
    assert [url for url in asked if not url.startswith(("file:", "data:", "chrome:"))] == []
    assert {url for url in asked if url.startswith("file:")} == {(pages / page).as_uri()}


def test_people_to_review_first_come_first_ten_at_a_time(audit_page, samples):
    listed = audit_document(samples.adult_result()[1])["summary"]["people"]
    found = rows(audit_page)
    assert len(found) == 10
    assert [row[1] for row in found] == ["would gain it"] * 10
    assert {row["direction"] for row in listed[:10]} == {"gain"}
    assert count(audit_page) == len(listed)
    audit_page.all(f"{PEOPLE} .tools button")[1].click()
    assert not {tuple(row) for row in found} & {tuple(row) for row in rows(audit_page)}
    assert audit_page.one(f"{PEOPLE} .people-count").text.startswith("11 to 20 of")


def test_people_are_searched_and_filtered(audit_page, samples):
    listed = audit_document(samples.adult_result()[1])["summary"]["people"]
    type_into_search(audit_page, "Sales")
    wanted = [row for row in listed if "Sales" in row["cells"].values()]
    assert count(audit_page) == len(wanted) > 0
    assert all("Sales" in row for row in rows(audit_page))
    type_into_search(audit_page, "no such words")
    assert count(audit_page) == 0
    type_into_search(audit_page, "")
    audit_page.js(
        "const s = document.querySelector(arguments[0]); s.value = 'gain'; s.dispatchEvent(new Event('change'))",
        f"{PEOPLE} select",
    )
    assert count(audit_page) == sum(row["direction"] == "gain" for row in listed)
    assert {row[1] for row in rows(audit_page)} == {"would gain it"}


def test_a_default_audit_is_four_screens_at_most_and_its_annex_is_folded(audit_page):
    size = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    audit_page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    top = "return document.querySelector(arguments[0]).getBoundingClientRect()[arguments[1]] + scrollY"
    assert audit_page.js(top, "#annex", "top") <= 4 * 900
    assert audit_page.js(top, "#answer", "bottom") <= 900
    assert not audit_page.one("#computed").is_displayed()
    sizes = audit_page.js(
        """document.getElementById('annex').open = true;
        return [...new Set([...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
          && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())).map(e => getComputedStyle(e).fontSize))]"""
    )
    assert len(sizes) <= 5


def sheets(page):
    """How many sheets of paper a page is printed on."""
    done = page.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    return int(re.search(rb"/Count (\d+)", base64.b64decode(done["data"]))[1])


def test_six_printed_sheets_at_most_stand_before_the_annex_and_the_answer_is_on_the_first(audit_page):
    whole = sheets(audit_page)
    audit_page.js("document.getElementById('annex').remove()")
    assert sheets(audit_page) <= 6
    assert sheets(audit_page) < whole
    audit_page.js(
        "for (const card of document.querySelectorAll('main > :not(#answer), .foot')) card.remove()"
    )
    assert sheets(audit_page) == 1


def test_the_printed_page_has_page_numbers_its_annex_and_lines_to_sign(audit_page, tmp_path):
    import shutil
    import subprocess

    done = audit_page.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    (tmp_path / "page.pdf").write_bytes(base64.b64decode(done["data"]))
    if shutil.which("pdftotext") is None:
        pytest.skip("not on this machine: pdftotext (Debian: poppler-utils)")
    said = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "page.pdf", "-"], capture_output=True, text=True
    ).stdout
    sheets = said.rstrip("\f").split("\f")
    annex = next(i for i, sheet in enumerate(sheets) if "Annex:" in sheet)
    assert annex <= 6
    assert f"1/{len(sheets)}" in sheets[0].replace(" ", "")
    assert "Signature" in "".join(sheets[:annex])
    assert "How it was computed" in "".join(sheets[annex:])


def test_markup_from_data_is_shown_as_text(browser, pages, samples):
    browser.show(pages / "nasty.html")
    assert browser.js("return window.harmed === undefined")
    assert browser.js("return document.images.length") == 0
    names = {printable(name) for name in (samples.SCRIPT, samples.QUOTES, samples.SNOW)}
    assert names <= set(browser.text(f"{PEOPLE} thead th"))
    assert browser.one("h1").text == samples.SCRIPT
    assert any(samples.CLOSER in text for text in browser.text(f"{PEOPLE} td"))
    type_into_search(browser, samples.CLOSER)
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
        "sex\x1b[2J\n\U000e0001",
        "hours ",
    ]
    assert audit_page.js("return arguments[0].map(window.likewise.contained)", words) == [
        *map(contained, words)
    ]
    assert contained(contained("a מין 3")) == contained("a מין 3")
    assert contained("hours ") == contained(contained("hours ")) == "“hours ”"
    assert contained("\u202e68.5%") == "\\u202e68.5%"


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
    for details in browser.all("details"):
        browser.js("arguments[0].open = true", details)
    assert browser.js("return document.documentElement.scrollWidth") <= 400
    # A label that does not break lies over its value.
    kept = "return [...document.querySelectorAll('.stack td')].map(td => getComputedStyle(td, '::before').whiteSpace)"
    assert set(browser.js(kept)) <= {"normal"}
    # Groups stay a table: one figure of all groups is on one line, however many groups there are.
    lines = browser.js(
        """return [...document.querySelectorAll('.rates')].map(table => [...table.tBodies[0].rows].map(
          row => [...row.cells].map(cell => cell.getBoundingClientRect().top)))"""
    )
    assert all(row == group[0] for group in lines for row in group)
    assert page == "comparison.html" or lines
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
        return ['.sentence', '.lede', '.people td', '.lost', 'mark', '.badge', '.scope dt', '.loses', '.gains'].map(s => {
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


def test_the_numbers_can_be_saved(audit_page, samples, tmp_path):
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    audit_page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    audit_page.one("#save-data").click()
    audit_page.wait(lambda: (tmp_path / "audit.json").exists())
    saved = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert saved["numbers"]["gap"]["value"] == samples.adult_result()[1].gap


def test_print_leaves_the_controls_out_and_shows_every_model(browser, pages):
    browser.show(pages / "comparison.html", media="print", width=720, dark=True)
    assert not any(part.is_displayed() for part in browser.all(".tools > :not(.people-count), .button"))
    # How many of the people are printed.
    assert all(part.is_displayed() for part in browser.all(".people-count"))
    assert all(browser.one(f"#model-{i}").is_displayed() for i in (0, 1))
    assert browser.one(".sign-off").is_displayed()
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.js("return document.documentElement.scrollWidth") <= 720
