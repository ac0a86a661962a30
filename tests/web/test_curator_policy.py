"""The policy page in a browser: the first demonstration of the BlowfishDB paper, click by click."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.site import Site

POLICY = "/datasets/salaries/policy"
STRICT = "?records=together&hide.salary=everything&hide.age=everything&hide.region=everything"


def _drawn(page: Any, chart: str) -> None:
    page.locator(f"#{chart} .drawing[data-drawn] svg").wait_for()


def _followed(page: Any) -> None:
    """The page shows what the sentences say now."""
    page.locator("#status", has_text="The page shows").wait_for(state="attached")


def _cost(page: Any) -> float:
    found = re.search(r"costs ε ([\d.]+)", page.locator("#price-live").inner_text())
    assert found, "no price on the page"
    return float(found[1])


def test_the_papers_first_demonstration_click_by_click(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto(POLICY + STRICT + "&data=true")  # the default of a new dataset: differential privacy
    expect(page.locator("#banner")).to_contain_text("CURATOR VIEW – TRUE DATA")

    # an attribute and a query type: the true answer as bars, and a noisy draw on the same axes beside it
    with page.expect_navigation():
        page.get_by_label("Column", exact=True).select_option("salary")
    page.get_by_label("Question", exact=True).select_option("histogram")
    _followed(page)
    _drawn(page, "answers")
    words = page.locator("#answers .drawing").text_content()
    assert "True answer" in words and "Noisy, one draw" in words and "noisy − true" in words
    panels = json.loads(page.locator("#answers script.wide").text_content())["vconcat"][0]["hconcat"]
    axes = [panel["layer"][0]["encoding"]["y"]["scale"] for panel in panels]
    assert axes[0] == axes[1] and axes[0]["domain"][1] > 0
    page.locator("#answers summary").click()
    expect(page.locator("#answers tbody tr")).to_have_count(20)

    # the policy: a complete graph, 20·19/2 pairs
    _drawn(page, "graph")
    expect(page.locator("#graph")).to_contain_text("190 pairs of values are hidden among 20 values")
    complete = _cost(page)

    # relax it: the graph, the price and the promise follow
    page.get_by_label("Which values of salary are hidden from each other").select_option("within")
    page.get_by_label("Distance in salary").fill("1,000")
    page.get_by_label("Distance in salary").press("Tab")
    _followed(page)
    _drawn(page, "graph")
    expect(page.locator("#graph")).to_contain_text("19 pairs of values are hidden among 20 values")
    expect(page.locator("#change-live")).to_contain_text("both hide exactly the same")
    page.get_by_label("Question", exact=True).select_option("cumulative")
    _followed(page)
    relaxed = _cost(page)
    assert relaxed < complete

    # a set of thresholds, a line chart, a point of it, the noisy answer under that policy
    page.get_by_role("link", name="Compare distances for this question").click()
    page.get_by_label("Distances to try").fill("1,000, 10,000, 50,000, everything")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/tradeoff?*distances*")
    _drawn(page, "tradeoff")
    expect(page.locator("table.points tbody tr")).to_have_count(4)
    point = page.locator("#tradeoff .mark-symbol path[aria-label*='within 10,000']").first
    point.click(force=True)
    page.wait_for_url("**point=within+10%2C000*")
    _drawn(page, "answers")
    _drawn(page, "graph")
    expect(page.locator("main")).to_contain_text("CURATOR VIEW – TRUE DATA")

    # publish it: the promise, the difference, a confirmation; then the guarantee says so to everybody
    page.get_by_role("link", name="Use this policy").click()
    expect(page.get_by_label("Distance in salary")).to_have_value("10,000")
    before = web.workspace.facts("salaries").policy_version
    page.get_by_role("link", name="Review and publish …").click()
    expect(page.locator("main")).to_contain_text("within 10,000 of each other")
    expect(page.locator("main")).to_contain_text("stays spent")
    page.get_by_label("I have read what changes").check()
    page.get_by_role("button", name=f"Publish version {before + 1}").click()
    page.wait_for_url("**/guarantee")
    expect(page.locator("main")).to_contain_text("within 10,000 of each other")
    assert web.workspace.facts("salaries").policy_version == before + 1
    assert web.workspace.verify() == []
    anyone = page_for(None)
    anyone.goto("/datasets/salaries/guarantee")
    expect(anyone.locator("main")).to_contain_text("within 10,000 of each other")


def test_going_back_and_the_undo_link_both_undo(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(POLICY + STRICT + "&column=region")
    choice = page.get_by_label("Which values of region are hidden from each other")
    choice.select_option("nothing")
    _followed(page)
    expect(page.locator("#graph-live")).to_contain_text("Hide nothing about 'region'.")
    page.get_by_role("link", name="Undo").click()
    assert choice.input_value() == "everything"
    choice.select_option("nothing")
    _followed(page)
    page.go_back()
    page.locator("#graph-live", has_not_text="Hide nothing").wait_for()
    assert choice.input_value() == "everything"


def test_probe_and_made_up_data(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto(POLICY + "?records=together&hide.salary=within&within.salary=1000&data=made-up")
    expect(page.locator("#banner")).to_contain_text("MADE-UP DATA")
    looks = sum(event.kind == "preview" for event in web.workspace.events("salaries"))
    page.get_by_label("One value of salary").fill("40,000")
    page.get_by_label("Another value of salary").fill("40,500")
    page.get_by_role("button", name="Probe").click()
    page.get_by_text("40,000 or 40,500? At most 99.3 % sure (was 50 %).").wait_for()
    assert sum(event.kind == "preview" for event in web.workspace.events("salaries")) == looks
    page.get_by_label("true data", exact=True).check()
    page.locator("#banner .true-data").wait_for()
    assert sum(event.kind == "preview" for event in web.workspace.events("salaries")) == looks + 1


def test_the_whole_flow_by_keyboard_alone(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto(POLICY + STRICT + "&data=made-up")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")

    def reach(name: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            if name in page.evaluate(
                "(e => e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent || '')"
                "(document.activeElement)"
            ):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"nobody sees where '{name}' is"
                return
        raise AssertionError(f"'{name}' cannot be reached by keyboard")

    reach("Which values of salary")
    page.keyboard.type("within")
    reach("Distance in salary")
    page.keyboard.type("2000")
    page.keyboard.press("Enter")
    _followed(page)
    expect(page.locator("#change-live")).to_contain_text("within 2,000 of each other")
    reach("Review and publish")
    page.keyboard.press("Enter")
    page.wait_for_url("**/policy/publish?*")
    before = web.workspace.facts("salaries").policy_version
    reach("I have read what changes")
    page.keyboard.press("Space")
    reach("Publish version")
    page.keyboard.press("Enter")
    page.wait_for_url("**/guarantee")
    assert web.workspace.facts("salaries").policy_version == before + 1
    expect(page.locator("main")).to_contain_text("within 2,000 of each other")


@pytest.mark.parametrize(("width", "scripts"), [(390, False), (768, True), (1440, False)])
def test_the_price_stays_in_sight_wherever_one_is_on_the_page(
    page_for: PageFor, width: int, scripts: bool
) -> None:
    page = page_for("curator", java_script_enabled=scripts, viewport={"width": width, "height": 700})
    page.goto(POLICY + STRICT, wait_until="domcontentloaded")
    price, foot = page.locator("#price-live"), page.locator("footer")
    for _ in range(4):
        expect(price).to_be_in_viewport(ratio=0.99)
        expect(price).to_contain_text(re.compile(r"salary \(20 bins\) costs ε [\d.]+ under this policy, ε"))
        page.mouse.wheel(0, 1_500)
    foot.scroll_into_view_if_needed()
    page.mouse.wheel(0, 10_000)
    expect(foot).to_be_in_viewport(ratio=0.9)
    assert price.bounding_box()["y"] + price.bounding_box()["height"] <= foot.bounding_box()["y"]


def test_the_old_price_goes_at_once(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(POLICY + STRICT)
    price = page.locator("#price-live")
    page.route("**/policy?*", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.get_by_label("Largest error").fill("70")
    page.get_by_label("Largest error").press("Tab")
    expect(price).to_have_text("Pricing …")
    expect(price).to_contain_text("costs ε")
    page.route("**/policy?*", lambda route: route.abort())
    page.get_by_label("Largest error").fill("80")
    page.get_by_label("Largest error").press("Tab")
    expect(price).to_contain_text("the server did not answer")
