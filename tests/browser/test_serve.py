"""The server in a real Chromium: a visitor who asks a black box, and an audit of an uploaded table."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from likewise.serving import FrameAuditor, Limits, start_server
from likewise.serving.app import Application
from likewise.serving.server import RunningServer

SEX = "explore-10"


@dataclass
class Link:
    url: str

    def as_uri(self):
        return self.url


@pytest.fixture
def patient(browser, monkeypatch):
    """The browser of all tests, which waits longer: a server and a model answer in their own time."""

    def wait(condition):
        until = time.monotonic() + 60
        while not condition():
            if time.monotonic() > until:
                raise AssertionError("it did not happen within the wait: " + browser.one("main").text[:600])
            time.sleep(0.05)

    monkeypatch.setattr(browser, "wait", wait)
    browser.driver.get_log("browser")
    browser.driver.get_log("performance")
    return browser


@pytest.fixture(scope="module")
def people():
    import likewise as lw

    data = lw.datasets.load_adult()
    return data.frame_test.iloc[:200].reset_index(drop=True), data.y_test[:200]


def black_box(frame):
    """Learning, hours, and 1.5 for men."""
    score = 0.5 * (frame["education-num"] - 10) + 0.03 * (frame["hours-per-week"] - 40)
    return 1 / (1 + np.exp(-(score + 1.5 * (frame["sex"] == "Male") - 1).to_numpy(dtype=float)))


@pytest.fixture(scope="module")
def server(people):
    from likewise.fair_metrics import ExpertSubspace

    metric = ExpertSubspace(["sex"]).fit(people[0]).metric_
    with start_server(
        black_box, *people, sensitive_features=["sex"], metric=metric, eps=0.0, name="black box"
    ) as running:
        yield running


def shown(browser, selector):
    """Text in one call: what the server's answer replaces between two calls would be stale."""
    return browser.js(
        "const found = document.querySelector(arguments[0]); return found ? found.innerText : ''", selector
    )


def quiet(browser):
    """No error in the console, and no request but to the server itself."""
    assert browser.driver.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.driver.get_log("performance")]
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def test_a_visitor_asks_a_black_box(patient, server, people):
    browser = patient
    from selenium.webdriver.common.keys import Keys

    browser.show(Link(server.link))
    home = f"http://127.0.0.1:{server.secrets.port}/"
    assert browser.driver.current_url == home  # the token has left the address
    assert server.secrets.token not in browser.js("return document.cookie")
    browser.wait(lambda: browser.all(".outcome"))
    first = browser.one("#people tbody tr")
    number = int(first.get_attribute("data-person"))
    document = json.loads(browser.js("return document.getElementById('data').textContent"))
    row = next(one for one in document["summary"]["people"] if one["person"] == number)
    first.find_element("css selector", ".try").click()
    browser.wait(lambda: shown(browser, ".outcome-decision") == str(row["decision"]))
    browser.one(f"#{SEX}").send_keys(row["change"]["sex"])
    browser.wait(lambda: browser.all(".outcome.is-flipped"))
    assert shown(browser, ".outcome-decision").startswith(str(row["instead"]))
    age = browser.one("#explore-0")
    age.send_keys(Keys.ARROW_UP * 3)
    twin = people[0].iloc[[number]].assign(sex=row["change"]["sex"])
    chance = black_box(twin.assign(age=twin["age"] + 3))[0]
    browser.wait(lambda: f"{100 * chance:.1f}%" in shown(browser, ".outcome-chance"))
    age.send_keys(Keys.CONTROL + "a")
    age.send_keys("200")
    browser.wait(lambda: browser.one(".explore-refused").is_displayed())
    assert "age cannot be above" in shown(browser, ".explore-refused")
    asked = quiet(browser)
    assert {url for url in asked if not url.startswith("data:")} == {
        server.link, home, f"{home}api/audits/0/score"
    }  # fmt: skip


def test_another_page_of_this_machine_cannot_ask(patient, server, tmp_path):
    browser = patient
    # The browser has the cookie; a page from elsewhere, here a file, still gets nothing.
    (tmp_path / "foreign.html").write_text("<title>foreign</title>", encoding="utf-8")
    browser.driver.get((tmp_path / "foreign.html").as_uri())
    said = browser.driver.execute_async_script(
        """const done = arguments[arguments.length - 1];
        fetch(arguments[0], { credentials: "include" }).then(() => done("answered"), () => done("refused"));""",
        f"http://127.0.0.1:{server.secrets.port}/",
    )
    assert said == "refused"
    browser.driver.get_log("browser")


class Slow:
    """A black box that waits, so that an audit can be watched and cancelled."""

    def __init__(self):
        self.go = threading.Event()

    def __call__(self, frame):
        self.go.wait(20)
        return black_box(frame)


@pytest.fixture(scope="module")
def desk(people):
    box = Slow()
    auditor = FrameAuditor(box, "slow box", eps=0.0)
    running = RunningServer(
        lambda secrets: Application(
            secrets, name="slow box", auditor=auditor, known={"sensitive": ["sex"]}, limits=Limits()
        )
    )
    with running:
        yield running, box
        box.go.set()


@pytest.fixture
def table(people, tmp_path):
    frame, y = people
    frame.iloc[:60].assign(income=y[:60]).to_csv(tmp_path / "my people.csv", index=False)
    return tmp_path / "my people.csv"


def choose_table(browser, table):
    from selenium.webdriver.support.ui import Select

    browser.one("#file").send_keys(str(table))
    browser.wait(lambda: "60 people, 12 columns" in shown(browser, "#read-said"))
    Select(browser.one("#target")).select_by_value("income")
    assert [box.get_attribute("value") for box in browser.all("#sensitive input:checked")] == ["sex"]


def test_an_uploaded_table_is_audited_cancelled_and_audited_again(patient, desk, table):
    browser = patient
    running, box = desk
    browser.driver.get_log("browser")
    browser.driver.get(running.link)
    browser.wait(lambda: browser.all("#file"))
    choose_table(browser, table)
    browser.one("#start").click()
    browser.wait(lambda: browser.one("#job").is_displayed())
    browser.wait(lambda: "my people.csv" in shown(browser, "#job-stage"))
    assert browser.one("#job-bar").is_displayed()
    assert "so far" in shown(browser, "#job-time")
    browser.one("#cancel").click()
    browser.wait(lambda: "Cancelling" in shown(browser, "#job-stage"))
    # While it ends, nothing else begins.
    said = browser.driver.execute_async_script(
        """const done = arguments[1], token = JSON.parse(document.getElementById("data").textContent).token;
        fetch("/api/jobs", { method: "POST", headers: { "Content-Type": "application/json", "X-Likewise-Token": token },
          body: JSON.stringify({ table: arguments[0], target: "income", sensitive: ["sex"] }) })
          .then((answer) => answer.json().then((said) => done([answer.status, said.error])));""",
        1,
    )
    assert said == [409, "An audit is running. Wait for its end, or cancel it."]
    box.go.set()
    browser.wait(lambda: "Cancelled" in shown(browser, "#job-stage"))
    assert not browser.one("#open").is_displayed()
    browser.driver.get_log("browser")  # the refusal above
    browser.one("#start").click()
    browser.wait(lambda: browser.one("#open").is_displayed())
    browser.one("#open").click()
    browser.wait(lambda: browser.all(".outcome"))
    assert shown(browser, "h1") == "Audit of slow box on my people.csv"
    assert browser.driver.current_url.endswith("/audits/1")
    browser.one(".elsewhere a").click()
    browser.wait(lambda: browser.all("#kept-head"))
    assert browser.driver.get_log("browser") == []


def test_the_desk_is_readable_anywhere(patient, desk, table):
    browser = patient
    for width in (1400, 400):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.driver.get(desk[0].link)
        browser.wait(lambda: browser.all("#file"))
        choose_table(browser, table)
        assert browser.js("return document.documentElement.scrollWidth") <= width
    names = browser.js(
        """return [...document.querySelectorAll("input, select")].filter((one) => one.offsetParent)
          .every((one) => one.labels.length > 0)"""
    )
    assert names


def test_what_is_no_table_is_refused_and_the_next_table_clears_it(patient, desk, table, tmp_path):
    browser = patient
    browser.driver.get(desk[0].link)
    browser.wait(lambda: browser.all("#file"))
    junk = {
        "no.csv": (b"%PDF-1.7 <script>alert(1)</script>", "a PDF document"),
        "junk.csv": (b"hello\nworld", "table of people"),
    }
    for name, (data, why) in junk.items():
        (tmp_path / name).write_bytes(data)
        browser.one("#file").send_keys(str(tmp_path / name))
        browser.wait(lambda words=why: words in shown(browser, "#read-said"))
        assert "is-wrong" in browser.one("#read-said").get_attribute("class")
        assert not browser.one("#question").is_displayed()
    choose_table(browser, table)
    assert "is-wrong" not in browser.one("#read-said").get_attribute("class")
    assert not browser.one("#job").is_displayed()
    assert browser.one("#sample").get_attribute("placeholder") == "all"
    browser.driver.get_log("browser")
