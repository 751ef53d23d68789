"""One Chromium that all tests of pages share, and what is missing where there is none."""

from __future__ import annotations

import base64
import importlib.util
import io
import os
import shutil
import time

CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
)
DRIVER = shutil.which("chromedriver")
MISSING = [
    name
    for name, found in {
        "the Python package selenium": importlib.util.find_spec("selenium"),
        "Chromium (Debian: chromium)": CHROMIUM,
        "chromedriver (Debian: chromium-driver)": DRIVER,
    }.items()
    if not found
]
if MISSING and os.environ.get("LIKEWISE_NEEDS_BROWSER"):
    raise RuntimeError(f"LIKEWISE_NEEDS_BROWSER is set, but there is no {', no '.join(MISSING)}")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


class Browser:
    """One Chromium with a few short words for what the tests do."""

    def __init__(self, profile):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))

    def show(self, path, *, width=1280, height=900, dark=False, media=""):
        command = self.driver.execute_cdp_cmd
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        command("Emulation.setDeviceMetricsOverride", size)
        self.paint(dark=dark, media=media)
        self.driver.get(path.as_uri())
        self.wait(lambda: self.js("return !document.documentElement.classList.contains('no-js')"))

    def paint(self, *, dark=False, media=""):
        """The page that is open, or the next one, light or dark, on a screen or on paper."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def js(self, code, *args):
        return self.driver.execute_script(code, *args)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        """Texts as the document has them, in one call."""
        return self.js(
            "return [...document.querySelectorAll(arguments[0])].map(n => n.textContent)", selector
        )

    def wait(self, condition):
        for _ in range(100):
            if condition():
                return
            time.sleep(0.02)
        raise AssertionError("it did not happen within the wait")

    def picture(self):
        from PIL import Image

        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
