"""The budget page: totals, grants that sum to at most the total, a warning only where protection weakens."""

from __future__ import annotations

from playwright.sync_api import expect

from blowfishdb.core.budget import Epsilon
from tests.web.conftest import PageFor
from tests.web.site import Site

BUDGET = "/datasets/salaries/budget"


def test_more_is_confirmed_and_less_is_not(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto(BUDGET)
    page.locator("#budget .drawing[data-drawn]").wait_for()
    page.get_by_label("New total ε").fill("6")
    page.get_by_role("button", name="Set total").click()
    expect(page.locator(".alert.warn")).to_contain_text("This weakens the promise")
    assert web.workspace.budget("salaries").total == Epsilon(5)
    page.get_by_label("I want to allow this.").check()
    page.get_by_role("button", name="Set total").click()
    expect(page.locator(".alert.good")).to_contain_text("now ε 6")
    assert web.workspace.budget("salaries").total == Epsilon(6)
    page.get_by_label("New total ε").fill("1")
    page.get_by_role("button", name="Set total").click()
    expect(page.locator(".alert.good")).to_contain_text("now ε 1")
    expect(page.locator(".alert.warn")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("at most 73 % sure")


def test_trying_a_total_changes_nothing(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(BUDGET)
    page.get_by_label("See what another total would promise").fill("0.5")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_text("What ε 0.5 promises (not set)").wait_for()
    expect(page.locator(".verdict")).to_contain_text("at most 62 % sure")
    expect(page.locator(".alert.warn")).to_have_count(0)
    assert web.workspace.budget("salaries").total == Epsilon(1)


def test_refusals_are_said_where_they_were_typed(page_for: PageFor) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(BUDGET)
    page.get_by_label("New total ε").fill("0.01")
    page.get_by_role("button", name="Set total").click()
    expect(page.locator("#wrong-total")).to_contain_text("a budget of at least")
    expect(page.get_by_label("New total ε")).to_have_value("0.01")
    page.get_by_label("New total ε").fill("much")
    page.get_by_role("button", name="Set total").click()
    expect(page.locator("#wrong-total")).to_contain_text("'much' is not a number")


def test_grants_sum_to_at_most_the_total(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(BUDGET)
    page.get_by_label("New grant for analyst").fill("0.6")
    page.get_by_role("button", name="Grant").first.click()
    expect(page.locator(".alert.good")).to_contain_text("analyst may spend up to ε 0.6")
    page.get_by_label("Let", exact=True).select_option("curator")
    page.get_by_label("spend up to ε").fill("0.5")
    page.get_by_role("button", name="Grant").last.click()
    refusal = page.locator("#grants .mistake:not(:empty)").inner_text()
    assert "would exceed its budget" in refusal and "a grant of at most 0.4" in refusal
    expect(page.get_by_label("spend up to ε")).to_have_value("0.5")
    page.get_by_label("spend up to ε").fill("0.4")
    page.get_by_role("button", name="Grant").last.click()
    expect(page.locator("#grants")).to_contain_text("ε 0 can still be granted")
    assert {g.user: g.granted for g in web.workspace.grants("salaries")} == {
        "analyst": Epsilon("0.6"),
        "curator": Epsilon("0.4"),
    }


def test_auditors_read_and_cannot_change(page_for: PageFor) -> None:
    page = page_for("auditor")
    page.goto(BUDGET)
    expect(page.locator("main")).to_contain_text("Who may spend how much")
    expect(page.get_by_role("button", name="Set total")).to_have_count(0)
    expect(page.get_by_role("button", name="Grant")).to_have_count(0)
    secret = page.locator("input[name=csrf]").first.input_value()
    refused = page.request.post(BUDGET, form={"total": "9", "csrf": secret, "weaken": "1"})
    assert refused.status == 403
    assert page_for("analyst").goto(BUDGET).status == 403
