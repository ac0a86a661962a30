"""Asking by ε for an answer without a promise: the choice, the quote, the picture without whiskers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from blowfishdb.core.accuracy import NO_PROMISE
from blowfishdb.mechanisms import DATA_DEPENDENT, NAMED
from tests.web.conftest import PageFor
from tests.web.site import Site

ASK = "/datasets/salaries/ask?column=salary&shape=histogram&size=20"


def choose_adaptive(page: Any, address: str = ASK) -> Any:
    """The ask page with ε and adaptive chosen by hand; the quote that follows."""
    page.goto(address)
    by = page.get_by_label("by", exact=True)
    expect(by).to_be_hidden()
    page.get_by_label("As accurate as an ε allows").check()
    page.get_by_label("spend ε").fill("0.2")
    expect(page.locator("#quote .promise")).to_contain_text(re.compile("every (bar|cell) is within"))
    by.select_option("adaptive")
    quote = page.locator("#quote")
    expect(quote.locator(".promise")).to_have_text(NO_PROMISE)
    return quote


def answer(page: Any) -> int:
    page.get_by_role("button", name=re.compile("^Spend 0.2 and answer$")).click()
    page.wait_for_url("**/answers/*")
    return int(page.url.rsplit("/", 1)[1])


def test_an_answer_without_a_promise(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    quote = choose_adaptive(page)
    expect(quote).not_to_contain_text("±")
    before = web.workspace.budget("salaries").spent
    number = answer(page)
    assert (web.workspace.budget("salaries").spent - before).nano == 200_000_000
    expect(page.locator(".lead")).to_have_text(f"{NO_PROMISE} Sampling error is not included.")
    expect(page.locator("#answer .drawing svg .mark-rect.role-mark path")).to_have_count(20)
    expect(page.locator("#answer .drawing svg .mark-rule.role-mark line")).to_have_count(0)
    page.get_by_text("Show as a table").click()
    expect(page.locator("#answer tbody tr")).to_have_count(20)
    expect(page.locator("#answer thead")).not_to_contain_text("noise interval")
    expect(page.locator(".receipt")).to_contain_text("none is promised")
    assert page.get_by_role("link", name=re.compile("^Ask again")).count() == 0
    # asked again it is owned; it stays apart from what is promised
    choose_adaptive(page)
    expect(page.locator("#quote .price")).to_have_text("Already answered")
    # in the log, on the overview, and beside another answer
    page.goto("/answers")
    expect(page.locator("table.log tbody tr:not(.day)").first).to_contain_text("not promised")
    page.goto("/datasets/salaries")
    expect(page.locator("main")).to_contain_text("not promised")
    beside = web.workspace.as_user("analyst")["salaries"].question("histogram(salary, bins=20)")
    other = beside.accurate_to(60).ask().number
    page.goto(f"/compare?a={number}&b={other}")
    expect(page.locator(".lead")).to_have_text("How much of the difference is noise is not known.")
    expect(page.locator(".compared")).to_have_text("Only one of the answers promises an error beforehand.")
    expect(page.locator("#comparison .drawing svg .mark-symbol.role-mark path").first).to_be_visible()


def test_all_mechanisms_can_be_chosen(page_for: PageFor) -> None:
    page = page_for("analyst")
    page.goto(f"{ASK}&by=epsilon&mechanism=dawa")
    by = page.get_by_label("by", exact=True)
    expect(by).to_have_value("dawa")
    offered = by.locator("option").evaluate_all("all => all.map(each => each.value)")
    assert sorted(offered) == sorted((*NAMED, *DATA_DEPENDENT)) and offered[:2] == ["best", "adaptive"]
    expect(page.locator("#quote")).to_contain_text("By “DAWA”")
    by.select_option("laplace")
    expect(page.locator("#quote .promise")).to_contain_text("every bar is within")


@pytest.mark.parametrize("chosen", ["magic", "policy-tree"])
def test_what_cannot_be_used_is_said_instead_of_a_price(page_for: PageFor, chosen: str) -> None:
    """One that does not exist, and one that has nothing to gain where one bin is all that is hidden."""
    page = page_for("analyst", java_script_enabled=False)
    page.goto(f"{ASK}&by=epsilon&mechanism={chosen}")
    expect(page.locator("#quote .alert")).to_contain_text("adaptive")
    assert page.get_by_role("button", name=re.compile("^Spend")).count() == 0


def test_two_columns_without_a_promise(page_for: PageFor) -> None:
    page = page_for("analyst")
    two = "/datasets/salaries/ask?column=salary&shape=two&second=age&size=6&size2=5"
    choose_adaptive(page, two)
    answer(page)
    expect(page.locator("#answer .drawing svg .mark-rect.role-mark path")).to_have_count(30)
    expect(page.locator("#answer .drawing svg .mark-symbol.role-mark path")).to_have_count(0)
