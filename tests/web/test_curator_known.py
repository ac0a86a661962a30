"""What the world already knows, on the policy page: added, pasted, removed, checked, with its effect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import blowfishdb as bf
from blowfishdb.core.constraints import Constraints
from tests.web.conftest import PageFor
from tests.web.site import Site

POLICY = "/datasets/salaries/policy"
REGIONS = "region,count\nnorth,750\nsouth,750\neast,750\nwest,751\n"


@pytest.fixture(autouse=True)
def fresh(web: Site) -> Iterator[None]:
    yield
    web.workspace.save_draft("salaries", web.workspace.facts("salaries").policy)


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_a_known_count_is_added(page_for: PageFor, web: Site, scripts: bool) -> None:
    page = page_for("curator", java_script_enabled=scripts)
    page.goto(POLICY + "?records=together&hide.salary=within&within.salary=3000&column=age&data=made-up")
    page.get_by_text("What the world already knows").click()
    page.get_by_label("Or write the condition").fill("age >= 65")
    page.get_by_label("Namely").fill("1,200")
    page.get_by_label("Or write the condition").press("Enter")  # the first button adds, and removes nothing
    expect(page.locator(".known-things li")).to_have_count(1)
    expect(page.locator(".known-things")).to_contain_text("How many rows have age >= 65, namely 1,200.")
    expect(page.locator("#known-effect")).to_contain_text("records are hidden together")
    expect(page.get_by_label("Distance in salary")).to_have_value("3000")  # nothing else is lost
    draft = web.workspace.draft("salaries").constraints
    assert draft is not None and draft.counts[0].answer == 1_200


def test_known_tables_are_added_read_and_removed(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(POLICY + "?data=made-up")
    page.get_by_text("What the world already knows").click()
    page.locator("#known").get_by_label("region").check()
    page.get_by_role("button", name="Add the table").click()
    expect(page.locator(".known-things")).to_contain_text("each value of 'region'")
    expect(page.locator("#known-effect")).to_contain_text("one person's move may force others to move")
    expect(page.locator("#file")).to_contain_text("tables:")
    page.get_by_text("Who may change when").click()
    page.get_by_label("only as the policy says").check()
    page.get_by_role("button", name="Read it so").click()
    expect(page.locator("#known-effect")).to_contain_text("each of them may change only as the policy says")
    page.get_by_role("button", name="Remove number 1").click()
    expect(page.locator("#known")).to_contain_text("Nothing so far")
    assert web.workspace.draft("salaries").constraints is None


def test_a_pasted_table_is_compared_with_the_data(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(POLICY + "?data=made-up")
    page.get_by_text("What the world already knows").click()
    page.get_by_label("Or paste the table itself").fill(REGIONS.replace("751", "many"))
    page.get_by_role("button", name="Add this table").click()
    expect(page.locator("#known .alert.bad")).to_contain_text("whole number")
    expect(page.get_by_label("Or paste the table itself")).to_have_value(
        REGIONS.replace("751", "many").strip()
    )
    page.get_by_label("Or paste the table itself").fill(REGIONS)
    page.get_by_role("button", name="Add this table").click()
    expect(page.locator(".known-things")).to_contain_text("(4 counts, with their values)")
    looks = sum(event.kind == "preview" for event in web.workspace.events("salaries"))
    page.get_by_role("button", name="Compare with the data").click()
    expect(page.locator("#known-checked")).to_contain_text("'region' west: declared 751, counted 750.")
    assert "750" not in page.url
    assert sum(event.kind == "preview" for event in web.workspace.events("salaries")) > looks


def test_known_counts_survive_editing_and_publishing(page_for: PageFor, web: Site) -> None:
    known = Constraints(marginals=["region"])
    before = web.workspace.facts("salaries").policy
    web.workspace.save_draft("salaries", before.knowing(known))
    page = page_for("curator", java_script_enabled=False)
    page.goto(POLICY + "?records=together&hide.salary=within&within.salary=2000&data=made-up")
    expect(page.locator("#change-live")).to_contain_text("What everyone knows already was")
    page.get_by_role("link", name="Review and publish …").click()
    expect(page.locator("h1")).to_contain_text("Publish this policy?")
    for box in page.locator("form input[type=checkbox][required]").all():
        box.check()
    page.get_by_role("button", name="Publish version").click()
    expect(page.locator("h1")).to_contain_text("What is promised")
    assert web.workspace.facts("salaries").policy.constraints == known
    web.workspace.publish("salaries", before, confirm=True, withdraw=True)


def test_refused_counts_say_so_and_nothing_else_breaks(page_for: PageFor, web: Site) -> None:
    both = Constraints(marginals=["region", "age"], counts=[bf.col("salary") >= 50_000])
    web.workspace.save_draft("salaries", web.workspace.facts("salaries").policy.knowing(both))
    page = page_for("curator", color_scheme="light")
    page.goto(POLICY)
    expect(page.locator("#known-effect")).to_contain_text("no proof covers")
    expect(page.locator("#answers-live")).to_contain_text("overlap")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
