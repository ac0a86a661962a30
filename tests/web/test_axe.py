"""Every page is usable by everyone: no finding of axe, in either theme; and nothing scrolls sideways."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.pages import PAGES, Page
from tests.web.site import Site

ONLY_COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""The themes differ in colours only."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_axe_finds_nothing_in_either_theme_and_everything_fits_a_telephone(
    page: Page, page_for: PageFor, web: Site
) -> None:
    window = page_for(page.role, color_scheme="light", reduced_motion="reduce")
    page.show(window, web)
    expect(window.locator("h1")).to_have_count(1)
    light = Axe().run(window)
    assert light.violations_count == 0, light.generate_report()
    window.emulate_media(color_scheme="dark")
    expect(window.locator(".drawing:not([data-drawn=dark])")).to_have_count(0)
    dark = Axe().run(window, options=ONLY_COLOURS)
    assert dark.violations_count == 0, dark.generate_report()
    window.set_viewport_size({"width": 390, "height": 844})
    assert window.evaluate("document.documentElement.scrollWidth") <= 390
