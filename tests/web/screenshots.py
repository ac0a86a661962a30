"""Pictures of every page, in both themes and three widths: ``python -m tests.web.screenshots [NAME]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.web.pages import PAGES, Page
from tests.web.site import ARGUMENTS, CHROMIUM, Site, site

FOLDER = Path("build/screenshots")
THEMES = ("light", "dark")
WIDTHS = (1440, 768, 390)
_HEIGHT = """Math.max(document.documentElement.scrollHeight,
    320 + (document.querySelector(".pane-right")?.scrollHeight ?? 0))"""
"""Of the page, with all of a pane that scrolls by itself."""


def take(browser: Any, running: Site, page: Page, theme: str) -> list[str]:
    """One page in one theme, in every width; names those that can be scrolled sideways."""
    context = browser.new_context(base_url=running.address, color_scheme=theme)
    if page.role is not None:
        secret = running.secret(page.role)
        context.add_cookies([{"name": running.cookie, "value": secret, "url": running.address}])
    window = context.new_page()
    wide = []
    for width in WIDTHS:
        window.set_viewport_size({"width": width, "height": 900})
        page.show(window, running)
        height = max(900, window.evaluate(_HEIGHT))
        window.set_viewport_size({"width": width, "height": height})  # what sticks to an edge stays there
        file = FOLDER / f"{page.name}-{theme}-{width}.png"
        window.screenshot(path=file, full_page=True)
        if window.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(file.name)
    context.close()
    return wide


def main(part: str = "") -> int:
    """All of them, or those whose name contains ``part``; 1 if one is wider than its window."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wide: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        site(Path(folder)) as running,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for page in PAGES:
            if part in page.name:
                for theme in THEMES:
                    wide += take(browser, running, page, theme)
        browser.close()
    sys.stdout.write(f"Pictures are in {FOLDER}.\n")
    sys.stdout.writelines(f"Wider than its window: {name}\n" for name in wide)
    return 1 if wide else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:2]))
