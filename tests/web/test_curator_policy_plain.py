"""The policy page without JavaScript: sentences, drafts, errors and the confirmation are plain forms."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.site import Site

POLICY = "/datasets/salaries/policy"


def test_update_save_and_forget_a_draft(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(POLICY)
    expect(page.get_by_label("Distance in salary")).to_have_value("1,000")
    page.get_by_label("Distance in salary").fill("5,000")
    page.get_by_role("button", name="Update").click()
    expect(page.locator("#change-live")).to_contain_text("within 5,000 of each other")
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator(".alert.good")).to_contain_text("Draft saved")
    page.goto(POLICY)
    expect(page.get_by_label("Distance in salary")).to_have_value("5,000")
    assert web.workspace.facts("salaries").policy_version == 2  # nobody else sees the draft
    page.get_by_role("button", name="Back to the published policy").click()
    expect(page.get_by_label("Distance in salary")).to_have_value("1,000")


def test_what_is_wrong_is_said_beside_the_sentence(page_for: PageFor) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(POLICY)
    page.get_by_label("Distance in salary").fill("far")
    page.locator("details.about", has_text="region").locator("summary").click()
    page.get_by_label("Which values of region").select_option("groups")
    page.get_by_label("Groups of region").fill("north, south")
    page.get_by_role("button", name="Update").click()
    said = page.locator(".about .alert.bad")
    expect(said).to_have_count(2)
    alerts = said.all_inner_texts()
    assert "must be a number" in alerts[0] and "such as 1,000" in alerts[0]
    assert "without a group: east, west" in alerts[1]
    expect(page.get_by_label("Distance in salary")).to_have_value("far")  # nothing typed is lost
    expect(page.get_by_label("Groups of region")).to_have_value("north, south")
    expect(page.get_by_role("link", name="Review and publish …")).to_have_count(0)
    page.get_by_label("Groups of region").fill("north, south\neast, west")
    page.get_by_label("Distance in salary").fill("500")
    page.get_by_role("button", name="Update").click()
    expect(page.locator(".about .alert.bad")).to_have_count(0)
    expect(page.locator("#graph-live")).to_contain_text("the same group (north, south; east, west)")


def test_publishing_needs_every_box_and_names_what_becomes_exact(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(POLICY + "?records=together&hide.salary=everything&hide.age=nothing&hide.region=everything")
    page.get_by_role("link", name="Review and publish …").click()
    exact = "how many rows are in each of the 80 groups of 'age'"
    expect(page.locator("form").last).to_contain_text(exact)
    page.eval_on_selector_all("input[required]", "all => all.forEach(each => each.required = false)")
    page.get_by_role("button", name="Publish version 3").click()
    expect(page.locator(".alert.bad")).to_contain_text("Tick every box")
    assert web.workspace.facts("salaries").policy_version == 2
    page.get_by_label("I want this to be exact and free").check()
    page.get_by_label("I have read what changes").check()
    page.get_by_role("button", name="Publish version 3").click()
    assert page.url.endswith("/guarantee")
    assert web.workspace.facts("salaries").policy_version == 3
    expect(page.locator("main")).to_contain_text(exact)
    page.goto(POLICY + "?column=age&ask=histogram&bins=8")
    expect(page.locator("#price-live")).to_contain_text("the answer is free")


def test_a_policy_that_was_published_meanwhile_is_not_overwritten_unread(
    page_for: PageFor, web: Site
) -> None:
    page = page_for("curator", java_script_enabled=False)
    version = web.workspace.facts("salaries").policy_version
    page.goto(POLICY + "/publish?records=together&hide.salary=within&within.salary=700")
    page.get_by_label("I have read what changes").check()
    web.workspace["salaries"].publish(web.workspace["salaries"].hiding_within("salary", 300), confirm=True)
    page.get_by_role("button", name=f"Publish version {version + 1}").click()
    expect(page.locator(".alert.bad")).to_contain_text("Another policy was published")
    expect(page.locator("main")).to_contain_text("within 300 of each other. Now")
    assert web.workspace.facts("salaries").policy_version == version + 1


def test_only_curators_see_true_data(page_for: PageFor) -> None:
    for role in ("analyst", "auditor"):
        page = page_for(role)
        for path in ("/policy", "/policy/publish", "/tradeoff", "/access"):
            assert page.goto(f"/datasets/salaries{path}").status == 403


@pytest.mark.parametrize("scripts", [True, False])
def test_what_is_wrong_with_the_question_is_said_at_its_fields(page_for: PageFor, scripts: bool) -> None:
    page = page_for("curator", java_script_enabled=scripts)
    page.goto(POLICY)
    page.get_by_label("Round bins, at most").fill("many")
    page.get_by_label("Largest error").fill("near")
    page.get_by_role("button", name="Draw again").click()
    expect(page.locator("#wrong-bins")).to_contain_text("The number of bins is a whole number")
    expect(page.locator("#wrong-error")).to_contain_text("The error is a number.")
    expect(page.locator("#wrong-confidence")).to_be_empty()
    for label, wrong in (("Round bins, at most", "true"), ("Largest error", "true")):
        expect(page.get_by_label(label)).to_have_attribute("aria-invalid", wrong)
    expect(page.locator("#price-live")).to_contain_text("No price")
    expect(page.locator("main .alert.bad")).to_have_count(0)
    page.get_by_label("Round bins, at most").fill("10")
    page.get_by_label("Largest error").fill("60")
    page.get_by_role("button", name="Draw again").click()
    expect(page.locator("#price-live")).to_contain_text("costs ε")
    expect(page.locator("#wrong-bins")).to_be_empty()
    expect(page.locator("#field-bins[aria-invalid=true]")).to_have_count(0)
