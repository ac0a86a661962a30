"""Every page is usable by everyone: no finding of axe, in either theme; and nothing scrolls sideways.

One window shows them all: to start another takes a browser as long as to show a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.base import AxeResults
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.web.conftest import sign_in
from tests.web.pages import PAGES, Page
from tests.web.settling import PATIENCE
from tests.web.site import Site, Watched

ONLY_COLOURS = {
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
    "resultTypes": ["violations"],
}
"""The themes differ in colours only."""


@pytest.fixture(scope="module")
def shown(web: Site, browser: Any) -> Iterator[Watched]:
    """The window."""
    context = browser.new_context(base_url=web.address, reduced_motion="reduce")
    window = context.new_page()
    window.set_default_timeout(PATIENCE)
    yield Watched(window, web.address)
    context.close()


FIRST = {"signin", "datasets-analyst", "import-columns", "overview-curator", "ask", "answers", "answer"} | {
    "compare",
    "guarantee",
    "policy-draft",
    "tradeoff",
    "budget",
    "audit",
    "not-found",
}
"""A page of each kind; audits look at all of them."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=() if page.name in FIRST else pytest.mark.thorough)
        for page in PAGES
    ],
)
def test_axe_finds_nothing_in_either_theme_and_everything_fits_a_telephone(
    page: Page, shown: Watched, web: Site
) -> None:
    window = shown.page
    shown.problems.clear()
    window.emulate_media(color_scheme="light")
    window.set_viewport_size({"width": 1280, "height": 720})
    sign_in(window.context, web, page.role)
    page.show(window, web)
    expect(window.locator("h1")).to_have_count(1)
    light = Axe().run(window)
    assert light.violations_count == 0, light.generate_report()
    window.emulate_media(color_scheme="dark")
    expect(window.locator(".drawing:not([data-drawn=dark])")).to_have_count(0)
    dark = AxeResults(window.evaluate("options => axe.run(options)", ONLY_COLOURS))
    assert dark.violations_count == 0, dark.generate_report()
    window.set_viewport_size({"width": 390, "height": 844})
    assert window.evaluate("document.documentElement.scrollWidth") <= 390
    assert shown.problems == []
