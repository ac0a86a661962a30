"""Groups by chips, groups of numbers, places and picked counts on the policy page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from blowfishdb.core.graphs import Grid
from blowfishdb.core.policy.policy import parts_of
from tests.web.conftest import PageFor
from tests.web.site import Site

POLICY = "/datasets/salaries/policy"
GROUPS = f"{POLICY}?records=together&hide.region=everything&hide.age=everything&column=region"


@pytest.fixture(autouse=True)
def fresh(web: Site) -> Iterator[None]:
    yield
    web.workspace.save_draft("salaries", web.workspace.facts("salaries").policy)


def test_values_are_dragged_into_groups(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(GROUPS)
    page.get_by_label("Which values of region").select_option("groups")
    text, chips = page.get_by_label("Groups of region"), page.locator(".board .chip")
    expect(chips).to_have_count(4)  # all in one group: the choice alone is no error
    expect(page.locator(".about .alert.bad")).to_have_count(0)
    first = [chip.inner_text() for chip in chips.all()]
    page.locator(".board").evaluate("board => board.scrollIntoView({block: 'center'})")
    chips.first.drag_to(page.locator(".board .group.new"))
    expect(page.locator(".board .group:not(.new)")).to_have_count(2)
    expect(text).to_have_value("; ".join(first[1:]) + "\n" + first[0])
    expect(page.locator("#graph-live")).to_contain_text("the same group")
    text.fill("; ".join(first[:2]) + "\n" + "; ".join(first[2:]))  # the text way, and the chips follow
    expect(page.locator(".board .group").nth(1).locator(".chip")).to_have_text(first[2:])
    assert Axe().run(page).violations_count == 0


def test_values_are_moved_by_the_arrow_keys(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(GROUPS)
    page.get_by_label("Which values of region").select_option("groups")
    value = page.locator(".board .chip").nth(1).inner_text()
    page.locator(".board .chip").nth(1).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".board .group:not(.new)").nth(1)).to_contain_text(value)
    expect(page.locator(".board .chip", has_text=value)).to_be_focused()
    expect(page.get_by_text(f"{value} is in a group of its own.")).to_be_attached()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".board .group:not(.new)")).to_have_count(1)
    page.locator(".board .chip", has_text=value).click()  # as a finger does
    expect(page.locator(".board .chip", has_text=value)).to_have_attribute("aria-pressed", "true")
    page.locator(".board .group.new").click()
    expect(page.locator(".board .group:not(.new)").nth(1)).to_contain_text(value)


def test_groups_of_numbers_show_their_bounds(page_for: PageFor) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(f"{POLICY}?records=together&hide.age=width&width.age=40&column=age")
    said = "2 groups: 18 to 57; 58 to 97. They begin at 18, the lowest value."
    expect(page.locator(".bounds", has_text="groups")).to_have_text(said)


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_two_columns_are_hidden_as_a_place(page_for: PageFor, web: Site, scripts: bool) -> None:
    page = page_for("curator", java_script_enabled=scripts)
    page.goto(f"{POLICY}?column=age")
    page.get_by_label("Two columns are a place").select_option("salary")
    if not scripts:
        page.get_by_role("button", name="Update").click()
    within = page.get_by_label("Cells within which places are hidden")
    expect(within).to_have_value("5")
    page.wait_for_load_state()
    within.fill("3")
    if scripts:
        within.press("Tab")
    else:
        page.get_by_role("button", name="Update").click()
    expect(page.locator("#place-map")).to_contain_text("any of 25 of 8,000,000 places")
    expect(page.locator("#place-map svg")).to_be_visible()
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("status").filter(has_text="Draft saved")).to_be_visible()
    page.wait_for_load_state()
    area = parts_of(web.workspace.draft("salaries")).parts[0].graph
    assert isinstance(area, Grid) and area.theta == 3
    expect(page.get_by_label("Two columns are a place")).to_have_value("salary")
    page.get_by_label("Two columns are a place").select_option("")
    if not scripts:
        page.get_by_role("button", name="Update").click()
    expect(page.locator("#place-map svg")).to_have_count(0)
    expect(page.get_by_label("Distance in salary")).to_be_attached()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_known_count_is_picked(page_for: PageFor, web: Site, scripts: bool) -> None:
    page = page_for("curator", java_script_enabled=scripts)
    page.goto(f"{POLICY}?column=age")
    page.get_by_text("What the world already knows").click()
    page.get_by_label("Column of the known count", exact=True).select_option("age")
    page.get_by_label("How its value is compared").select_option("is at least")
    page.get_by_label("Value of the known count", exact=True).fill("65")
    page.get_by_label("Second column of the known count").select_option("region")
    page.get_by_label("How its second value is compared").select_option("is one of")
    page.get_by_label("Second value of the known count").fill("North, south")
    page.get_by_label("Namely").fill("700")
    page.get_by_role("button", name="Add the count").click()
    expect(page.locator(".known-things li")).to_have_count(1)
    known = web.workspace.draft("salaries").constraints
    assert known is not None and known.counts[0].answer == 700
    expect(page.locator(".known-things")).to_contain_text("age >= 65")
    expect(page.locator(".known-things")).to_contain_text("north")


def test_what_cannot_be_picked_is_said_and_stays(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(f"{POLICY}?column=age")
    page.get_by_text("What the world already knows").click()
    page.get_by_label("Column of the known count", exact=True).select_option("region")
    page.get_by_label("Value of the known count", exact=True).fill("it's nowhere")
    page.get_by_role("button", name="Add the count").click()
    expect(page.locator("#known .alert.bad")).to_be_visible()
    expect(page.get_by_label("Value of the known count", exact=True)).to_have_value("it's nowhere")
    assert web.workspace.draft("salaries").constraints is None
