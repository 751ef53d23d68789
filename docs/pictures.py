"""Make the pictures of the README and the documentation: the demo in a terminal, and an audit's page.

Needs Chromium and chromedriver (Debian: ``apt-get install chromium chromium-driver``) and the extras dev and report.

    python docs/pictures.py            # audits an XGBoost on Adult, runs `likewise demo`, writes docs/pictures/*
    python docs/pictures.py page.html  # takes the pictures of a page that is there already
"""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).parent / "pictures"
COLUMNS = 92
# The first combination of sex and race for which the decision is another one.
TRY = "document.querySelector('.explore-block .try').click()"
# Width, height, dark, and what is looked at.
SHOTS = {
    "page": (1400, 900, False, "body"),
    "page-dark": (1400, 900, True, "body"),
    "page-narrow": (400, 900, False, "body"),
    "people": (1400, 620, False, "#people"),
    "explore": (1400, 900, False, ".explore"),
    "explore-narrow": (400, 900, False, ".explore"),
}
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


def demo(page: Path) -> None:
    """Run the demo and draw what it prints."""
    from rich.console import Console
    from rich.text import Text

    command = [sys.executable, "-m", "likewise", "demo", "-o", str(page)]
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text("$ likewise demo", style="bold"))
    console.print(Text.from_ansi(done.stdout.replace(str(page), page.name)))
    # Without the web fonts that rich names: a picture asks nothing of the network either.
    drawing = re.sub(
        r"@font-face \{.*?\}|<!--.*?-->", "", console.export_svg(title="likewise"), flags=re.DOTALL
    )
    (FOLDER / "terminal.svg").write_text(drawing, encoding="utf-8")


def audit(page: Path) -> None:
    """Audit an XGBoost on the 9,045 people of Adult's test table, as the command line does by default."""
    import numpy as np
    import pandas as pd
    from xgboost import XGBClassifier

    import likewise as lw
    from likewise.report import write_html
    from likewise.report.explore import explore_document

    data = lw.datasets.load_adult()
    words = [name for name in data.frame if data.frame[name].dtype.kind not in "if"]
    known = {name: pd.CategoricalDtype(sorted(data.frame[name].unique())) for name in words}
    train, test = data.frame_train.astype(known), data.frame_test.astype(known).reset_index(drop=True)
    fitted = XGBClassifier(
        n_estimators=200, max_depth=5, learning_rate=0.1, enable_categorical=True, n_jobs=1, random_state=0
    ).fit(train, data.y_train)
    labels = dict(enumerate(data.target_names))
    result = lw.audit(fitted, test, data.y_test, sensitive_features=["sex", "race"], favourable=1)
    domain = lw.TabularDomain.from_frame(test)
    explore = explore_document(
        domain, test, np.asarray(data.y_test), models={"income": fitted}, sensitive_features=["sex", "race"],
        results={"income": result}, labels=labels,
    )  # fmt: skip
    write_html(result, page, title="Audit of an income model", labels=labels, explore=explore)


def photograph(page: Path) -> None:
    """Take pictures of a page: first screen in light, dark and narrow, the people, the panel, and a printed sheet."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        sys.exit("pictures need Chromium and chromedriver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(chromedriver))
        try:
            for name, (width, height, dark, where) in SHOTS.items():
                _shoot(driver, page, name, where, width=width, height=height, dark=dark)
            printed = driver.execute_cdp_cmd(
                "Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True}
            )
            sheet = Path(profile) / "page.pdf"
            sheet.write_bytes(base64.b64decode(printed["data"]))
            _shoot(driver, sheet, "page-print", "body", width=794, height=1123, dark=False)
        finally:
            driver.quit()


def _shoot(driver: object, page: Path, name: str, where: str, *, width: int, height: int, dark: bool) -> None:
    command = driver.execute_cdp_cmd  # type: ignore[attr-defined]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    command("Emulation.setDeviceMetricsOverride", size)
    features = [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    command("Emulation.setEmulatedMedia", {"features": features})
    driver.get("about:blank")  # else a page that is there already stays as it was left
    driver.get(f"{page.resolve().as_uri()}#toolbar=0&navpanes=0&view=FitH")  # type: ignore[attr-defined]
    if where == ".explore":
        driver.execute_script(TRY)  # type: ignore[attr-defined]
    driver.execute_script("document.querySelector(arguments[0]).scrollIntoView()", where)  # type: ignore[attr-defined]
    time.sleep(3.0 if page.suffix == ".pdf" else 0.5)  # the viewer; answers of the model inside the page
    shot = command("Page.captureScreenshot", {"format": "png"})
    (FOLDER / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def main() -> None:
    """Make all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "audit.html"
        if len(sys.argv) < 2:
            audit(page)
            demo(Path(folder) / "likewise-demo.html")
        photograph(page)


if __name__ == "__main__":
    main()
