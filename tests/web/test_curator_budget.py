"""The budget page: totals, grants that sum to at most the total, and a warning only where protection weakens."""

from __future__ import annotations

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
    assert "This weakens the promise" in page.locator(".alert.warn").inner_text()
    assert web.workspace.budget("salaries").total == Epsilon(5)
    page.get_by_label("I want to allow this.").check()
    page.get_by_role("button", name="Set total").click()
    assert "now ε 6" in page.locator(".alert.good").inner_text()
    assert web.workspace.budget("salaries").total == Epsilon(6)
    page.get_by_label("New total ε").fill("1")
    page.get_by_role("button", name="Set total").click()
    assert "now ε 1" in page.locator(".alert.good").inner_text()
    assert page.locator(".alert.warn").count() == 0
    assert "at most 73 % sure" in page.locator("main").inner_text()


def test_trying_a_total_changes_nothing(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(BUDGET)
    page.get_by_label("See what another total would promise").fill("0.5")
    page.get_by_role("button", name="Show", exact=True).click()
    assert "What ε 0.5 promises (not set)" in page.locator("main").inner_text()
    assert "at most 62 % sure" in page.locator(".verdict").inner_text()
    assert page.locator(".alert.warn").count() == 0
    assert web.workspace.budget("salaries").total == Epsilon(1)


def test_refusals_are_said_where_they_were_typed(page_for: PageFor) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(BUDGET)
    page.get_by_label("New total ε").fill("0.01")
    page.get_by_role("button", name="Set total").click()
    assert "a budget of at least" in page.locator(".alert.bad").inner_text()
    assert page.get_by_label("New total ε").input_value() == "0.01"
    page.get_by_label("New total ε").fill("much")
    page.get_by_role("button", name="Set total").click()
    assert "'much' is not a number" in page.locator(".alert.bad").inner_text()


def test_grants_sum_to_at_most_the_total(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(BUDGET)
    page.get_by_label("New grant for analyst").fill("0.6")
    page.get_by_role("button", name="Grant").first.click()
    assert "analyst may spend up to ε 0.6" in page.locator(".alert.good").inner_text()
    page.get_by_label("Let", exact=True).select_option("curator")
    page.get_by_label("spend up to ε").fill("0.5")
    page.get_by_role("button", name="Grant").last.click()
    refusal = page.locator("#grants .alert.bad").inner_text()
    assert "would exceed its budget" in refusal and "a grant of at most 0.4" in refusal
    assert page.get_by_label("spend up to ε").input_value() == "0.5"
    page.get_by_label("spend up to ε").fill("0.4")
    page.get_by_role("button", name="Grant").last.click()
    assert {g.user: g.granted for g in web.workspace.grants("salaries")} == {
        "analyst": Epsilon("0.6"),
        "curator": Epsilon("0.4"),
    }
    assert "ε 0 can still be granted" in page.locator("#grants").inner_text()


def test_auditors_read_and_cannot_change(page_for: PageFor) -> None:
    page = page_for("auditor")
    page.goto(BUDGET)
    assert "Who may spend how much" in page.locator("main").inner_text()
    assert page.get_by_role("button", name="Set total").count() == 0
    assert page.get_by_role("button", name="Grant").count() == 0
    secret = page.locator("input[name=csrf]").first.input_value()
    refused = page.request.post(BUDGET, form={"total": "9", "csrf": secret, "weaken": "1"})
    assert refused.status == 403
    assert page_for("analyst").goto(BUDGET).status == 403
