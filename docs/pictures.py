"""Make the pictures of the README: the demo in a terminal, and its page in light and in dark.

Needs Chromium and chromedriver (Debian: ``apt-get install chromium chromium-driver``) and the extras dev and report.

    python docs/pictures.py            # runs `likewise demo`, then writes docs/pictures/*
    python docs/pictures.py demo.html  # takes the pictures of a page that is there already
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


def photograph(page: Path) -> None:
    """Take pictures of a page: its top, the people and their twins in dark, the panel to try a person in, wide and narrow."""
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
            _shoot(driver, page, "page", "body", dark=False, height=1180)
            _shoot(driver, page, "people", "#a0-people", dark=True, height=760)
            _shoot(driver, page, "explore", ".explore", height=960, width=1400, before=TRY)
            _shoot(driver, page, "explore-narrow", ".explore", height=900, width=400, before=TRY)
        finally:
            driver.quit()


def _shoot(
    driver: object,
    page: Path,
    name: str,
    where: str,
    *,
    height: int,
    width: int = 1200,
    dark: bool = False,
    before: str = "",
) -> None:
    command = driver.execute_cdp_cmd  # type: ignore[attr-defined]
    size = {"width": width, "height": height, "deviceScaleFactor": 1.5, "mobile": False}
    command("Emulation.setDeviceMetricsOverride", size)
    features = [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    command("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.resolve().as_uri())  # type: ignore[attr-defined]
    driver.execute_script(before)  # type: ignore[attr-defined]
    driver.execute_script("document.querySelector(arguments[0]).scrollIntoView()", where)  # type: ignore[attr-defined]
    time.sleep(0.5)  # charts are drawn once the page knows its width
    shot = command("Page.captureScreenshot", {"format": "png"})
    (FOLDER / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def main() -> None:
    """Make all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "likewise-demo.html"
        if len(sys.argv) < 2:
            demo(page)
        photograph(page)


if __name__ == "__main__":
    main()
