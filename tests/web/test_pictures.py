"""Charts without JavaScript: pictures that are made when they are looked at, for those who saw the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.site import Site, site


@pytest.mark.parametrize(
    ("role", "path", "charts"),
    [
        ("analyst", "/answers/{a}", 1),
        ("analyst", "/compare?a={a}&b={a}", 1),
        ("curator", "/datasets/salaries/policy", 3),
        ("curator", "/datasets/salaries/tradeoff?point=within+10%2C000", 3),
        ("curator", "/datasets/salaries/budget", 1),
    ],
)
def test_every_chart_is_a_picture(
    page_for: PageFor, web: Site, role: str | None, path: str, charts: int
) -> None:
    page = page_for(role, java_script_enabled=False)
    page.goto(path.format(a=web.answers[0]), wait_until="domcontentloaded")  # not for the pictures
    check_pictures(page, charts)


def test_a_guarantee_has_a_chart_where_there_is_something_to_see(browser: Any, tmp_path: Path) -> None:
    with site(tmp_path, questions=()) as fresh:
        fresh.workspace["salaries"].budget.set("1")
        context = browser.new_context(base_url=fresh.address, java_script_enabled=False)
        page = context.new_page()
        page.goto("/datasets/salaries/guarantee", wait_until="domcontentloaded")
        check_pictures(page, 1)
        context.close()


def check_pictures(page: Any, charts: int) -> None:
    pictures = page.locator("figure.chart noscript img")
    expect(pictures).to_have_count(charts)
    expect(page.get_by_text("Drawing the chart")).to_have_count(charts)
    expect(page.get_by_text("Drawing the chart").first).to_be_hidden()
    for picture in pictures.all():
        answer = page.request.get(picture.get_attribute("src"))
        assert answer.ok and answer.headers["content-type"] == "image/svg+xml"
        assert "<svg " in answer.text() and len(picture.get_attribute("alt")) > 20


def test_a_picture_follows_the_theme(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst", java_script_enabled=False)
    page.goto(f"/answers/{web.answers[0]}")
    light = page.locator("noscript img").get_attribute("src")
    dark = page.locator("noscript source").get_attribute("srcset")
    assert "#14191f" in page.request.get(dark).text() and "#14191f" not in page.request.get(light).text()
    page.get_by_role("button", name="Dark theme").click()
    expect(page.locator("noscript source")).to_have_count(0)
    assert page.locator("noscript img").get_attribute("src").endswith("&dark=true")


def test_a_picture_is_for_the_one_who_saw_its_page(page_for: PageFor) -> None:
    curator = page_for("curator", java_script_enabled=False)
    curator.goto("/datasets/salaries/policy")
    address = curator.locator("#answers noscript img").get_attribute("src")
    for other in ("analyst", None):
        refused = page_for(other).request.get(address)
        assert refused.status == 404 and "no such picture for you" in refused.text()
    assert curator.request.get(address).ok


def test_nothing_is_pictured_where_scripts_run(page_for: PageFor) -> None:
    page = page_for("curator")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/datasets/salaries/policy")
    expect(page.locator("#answers .drawing[data-drawn] svg")).to_be_visible()
    page.get_by_label("Distance in salary").fill("20000")
    page.get_by_label("Distance in salary").press("Tab")
    expect(page.locator("#change-live")).to_contain_text("within 20,000 of each other")
    expect(page.locator("#answers .drawing[data-drawn] svg")).to_be_visible()
    assert not [address for address in asked if "/pictures" in address]
