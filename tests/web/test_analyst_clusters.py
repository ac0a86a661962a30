"""Clusters on the ask page and on the page of their answer: the form, the picture, the table."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from blowfishdb.core.accuracy import NO_PROMISE
from tests.web.conftest import PageFor
from tests.web.site import Site

CIRCLES = "#answer .drawing svg .mark-symbol.role-mark path"
BOXES = "#answer .drawing svg .mark-rect.role-mark path"


def choose(page: Any, *, more: str, k: str, epsilon: str) -> None:
    """The ask page with clusters chosen by hand, up to its quote."""
    page.goto("/datasets/salaries/ask")
    page.get_by_label("Shape").select_option("clusters")
    expect(page.get_by_label("Within an error")).to_be_hidden()
    expect(page.get_by_label("How many or how wide", exact=True)).to_be_hidden()
    page.get_by_label("Other columns", exact=True).fill(more)
    page.get_by_label("How many clusters").fill(k)
    page.get_by_label("spend ε").fill(epsilon)
    quote = page.locator("#quote")
    expect(quote.locator(".asked")).to_have_text(re.compile(f"^{k} clusters of salary"))
    expect(quote.locator(".promise")).to_have_text(NO_PROMISE)
    expect(quote).not_to_contain_text("dividend")
    expect(page.get_by_role("button", name=f"Spend {epsilon} and answer")).to_be_visible()


def answered(page: Any, epsilon: str) -> None:
    page.get_by_role("button", name=f"Spend {epsilon} and answer").click()
    page.wait_for_url("**/answers/*")


def test_clusters_from_the_form_to_the_picture(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    choose(page, more="age", k="3", epsilon="0.2")
    answered(page, "0.2")
    expect(page.locator("h1")).to_contain_text("3 clusters of salary and age")
    expect(page.locator(CIRCLES)).to_have_count(3)
    expect(page.locator(BOXES)).to_have_count(0)  # nobody has asked for a histogram of both yet
    expect(page.locator("#answer .drawing svg")).to_contain_text("80,000")  # the declared limits
    page.get_by_text("Show as a table").click()
    expect(page.locator("#answer tbody tr")).to_have_count(3)
    expect(page.locator("#answer thead")).to_contain_text("salary")
    assert page.get_by_text("Show the raw release").count() == 0
    assert page.get_by_label("Compare with").count() == 1  # any two answers stand side by side
    address = page.url
    both = web.workspace.as_user("analyst")["salaries"].question("histogram(salary(bins=8), age(bins=5))")
    number = both.spend("0.3").ask().number
    page.goto(address)
    expect(page.locator(BOXES)).to_have_count(40)
    expect(page.locator(CIRCLES)).to_have_count(3)
    expect(page.locator("#answer .drawing svg")).to_contain_text(f"people in answer #{number}")
    page.goto("/answers")
    expect(page.locator("table.log tbody")).to_contain_text("3 clusters of salary and age")


@pytest.mark.thorough
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page_for: PageFor, web: Site, theme: str) -> None:
    """One column has its sizes as heights; the form and the answer fit a telephone."""
    page = page_for("analyst", color_scheme=theme, reduced_motion="reduce")
    epsilon = {"light": "0.11", "dark": "0.12"}[theme]
    choose(page, more="", k="4", epsilon=epsilon)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1280, "height": 800})
    answered(page, epsilon)
    expect(page.locator(CIRCLES)).to_have_count(4)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_cannot_be_asked_is_said_without_javascript(page_for: PageFor) -> None:
    page = page_for("analyst", java_script_enabled=False)
    page.goto("/datasets/salaries/ask?shape=clusters&column=region&k=3")
    expect(page.locator("#quote .alert")).to_contain_text("columns of numbers")
    expect(page.get_by_role("link", name="Histogram instead")).to_be_visible()
    page.goto("/datasets/salaries/ask?shape=clusters&column=age&k=300")
    expect(page.locator("#wrong-k")).to_contain_text("Between 1 and 64")
    page.goto("/datasets/salaries/ask?shape=clusters&column=age&k=3&way=kmeans-rounds&epsilon=0.1")
    expect(page.locator("#quote")).to_contain_text("k-means in rounds")
