"""The ask page when things are not as hoped: too dear, owned, exhausted, changed, held, wrong, sent twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import expect

import blowfishdb as bf
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.budget import Epsilon
from tests.entrypoints.server import DOMAIN
from tests.web.conftest import PageFor
from tests.web.site import Site

ASK = "/datasets/salaries/ask"


@contextmanager
def budget(web: Site, total: Epsilon) -> Iterator[None]:
    """For a while, the dataset may lose only so much."""
    before = web.workspace.budget("salaries").total
    web.workspace.set_budget("salaries", total)
    try:
        yield
    finally:
        web.workspace.set_budget("salaries", before)


def spent(web: Site) -> Epsilon:
    return web.workspace.budget("salaries").spent


def test_what_does_not_fit_says_what_does(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    with budget(web, spent(web) + Epsilon("0.05")):
        page.goto(f"{ASK}?column=age&shape=histogram&size=20&error=50")
        quote = page.locator("#quote")
        expect(quote.get_by_role("alert")).to_contain_text(re.compile(r"Needs 0\.\d+, 0\.05 left\."))
        expect(quote.get_by_role("button")).to_have_count(0)
        expect(quote).to_contain_text("ask the curator for more")
        fits = quote.locator(".fits a")
        assert fits.first.inner_text().startswith("±")
        fits.first.click()
        button = page.locator("#spend button[type=submit]")
        expect(button).to_have_text(re.compile(r"^Spend 0\.0\d+ and answer$"))
        assert float(page.get_by_label("within ±").input_value()) > 50
        button.click()
        page.wait_for_url("**/answers/*")


def test_the_price_and_its_button_are_whole_on_a_telephone(page_for: PageFor) -> None:
    page = page_for("analyst", viewport={"width": 390, "height": 800})
    page.goto(f"{ASK}?error=40")
    button = page.locator("#spend button[type=submit]")
    expect(button).to_have_text(re.compile(r"^Spend 0\.\d+ and answer$"))
    box = button.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_an_answer_that_is_owned_is_free(page_for: PageFor, web: Site) -> None:
    page, before = page_for("analyst"), spent(web)
    page.goto(f"{ASK}?error=50")
    expect(page.locator("#quote")).to_contain_text("Already answered")
    page.get_by_role("button", name="Show it, free").click()
    page.wait_for_url(f"**/answers/{web.answers[0]}")
    assert spent(web) == before


def test_what_the_policy_does_not_hide_is_exact_and_free(page_for: PageFor) -> None:
    page = page_for("analyst")
    page.goto(f"{ASK}?shape=count")
    page.get_by_role("button", name="Show it, free").click()
    page.wait_for_url("**/answers/*")
    expect(page.locator(".lead")).to_have_text("Exact: the policy does not hide this.")


def test_an_exhausted_budget(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    with budget(web, spent(web)):
        page.goto(f"{ASK}?error=12")
        expect(page.locator("#quote [role=alert]")).to_contain_text("Nothing is left of what you may spend")
        expect(page.locator(".meter.exhausted")).to_be_visible()
        expect(page.locator("#spend")).to_have_count(0)
        page.get_by_role("link", name="answer that is already stored").click()
        expect(page.locator("table.log tbody tr:not(.day)").nth(2)).to_be_attached()


def test_a_policy_that_was_changed_since_the_quote(page_for: PageFor, web: Site) -> None:
    page, before = page_for("analyst"), spent(web)
    page.goto(f"{ASK}?error=45")
    old = page.locator("#spend button[type=submit]").inner_text().split()[1]
    salaries = web.workspace.as_user("curator")["salaries"]
    published = salaries.policy
    graph = bf.graphs.Threshold(DOMAIN["salary"].size, DOMAIN["salary"].threshold(50_000))
    salaries.publish(bf.Policy.by_column(DOMAIN, {"salary": graph}), confirm=True)
    try:
        page.locator("#spend button[type=submit]").click()
        changed = page.locator("#quote [role=alert]")
        expect(changed).to_contain_text("The policy was changed since the quote. Nothing was charged.")
        expect(changed).to_contain_text(f"ε {old}. Now, under version")
        expect(changed).to_contain_text("50,000")
        assert spent(web) == before
        button = page.locator("#spend button[type=submit]")
        assert float(button.inner_text().split()[1]) > float(old)
        button.click()
        page.wait_for_url("**/answers/*")
        assert spent(web) > before
    finally:
        salaries.publish(published, confirm=True, withdraw=True)


def test_a_question_whose_fate_is_unknown(page_for: PageFor, web: Site) -> None:
    page, ledger = page_for("analyst"), Ledger(web.workspace.store)
    charge = ledger.reserve("salaries", "analyst", Epsilon("0.118"), "lost", {"by": "test"}, reading=True)
    try:
        page.goto(ASK)
        expect(page.locator(".alert.warn")).to_contain_text("Status unknown; 0.118 held.")
        other = page_for("curator")
        other.goto(ASK)
        expect(other.locator(".alert.warn")).to_have_count(0)
    finally:
        ledger.lose(charge, "test")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("column=region&shape=cumulative", "'cumulative' is asked of columns whose values have an order."),
        ("column=wage", "There is no column 'wage' here."),
        ("shape=two&second=salary", "Two columns are needed"),
        ("shape=nonsense", "A question begins with"),
    ],
)
def test_what_cannot_be_asked_is_said_and_costs_nothing(
    query: str, said: str, web: Site, analyst: httpx.Client
) -> None:
    before = spent(web)
    page = analyst.get(f"{ASK}?{query}")
    assert page.status_code == 200
    shown = page.text.split('<div id="quote"')[1]
    assert said in shown.replace("&#39;", "'") and "Nothing was charged." in shown
    assert 'id="spend"' not in shown and spent(web) == before


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ("where=age+is+old", "where", "a condition compares a column with constants"),
        ("error=many", "error", "“many” is no number"),
        ("error=-5", "error", "a positive number of people"),
        ("cut=width&size=0", "size", "A bin must be wider than zero"),
        ("by=epsilon&epsilon=0", "epsilon", "0 is too small"),
    ],
)
def test_what_cannot_be_read_is_said_at_its_field_and_costs_nothing(
    query: str, field: str, said: str, web: Site, analyst: httpx.Client
) -> None:
    before = spent(web)
    page = analyst.get(f"{ASK}?{query}")
    assert page.status_code == 200
    form, quote = page.text.split('<div id="quote"')
    assert said in form.split(f'id="wrong-{field}"')[1].split("</div>")[0]
    assert "One field cannot be read" in quote and "Nothing was charged." in quote
    assert 'id="spend"' not in quote and spent(web) == before


def test_a_form_that_is_sent_twice_is_charged_once(web: Site, analyst: httpx.Client) -> None:
    before = spent(web)
    fields = _fields(analyst, f"{ASK}?error=31")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: analyst.post(f"{ASK}?error=31", data=fields), range(4)))
    places = {answer.headers["location"] for answer in answers}
    assert {answer.status_code for answer in answers} == {303} and len(places) == 1
    price = web.workspace.answer(int(places.pop().rsplit("/", 1)[1])).receipt.epsilon
    assert price and spent(web) - before == price


def test_a_form_must_be_ours(web: Site, analyst: httpx.Client) -> None:
    before = spent(web)
    fields = _fields(analyst, f"{ASK}?error=29")
    assert analyst.post(ASK, data={**fields, "csrf": "guessed"}).status_code == 403
    other = analyst.post(ASK, data={**fields, "quote_id": "guessed"})
    assert other.status_code == 422 and "This is not a quote of yours" in other.text
    assert analyst.post(ASK, data={**fields, "key": ""}).status_code == 422
    assert spent(web) == before


def test_who_may_ask(page_for: PageFor, web: Site) -> None:
    page = page_for("auditor")
    assert page.goto(ASK).status == 403
    assert page.goto("/datasets/nothing/ask").status == 403
    page = page_for(None)
    page.goto(ASK)
    assert "/signin?next=" in page.url


@pytest.fixture
def analyst(web: Site) -> Iterator[httpx.Client]:
    """A browser without a screen."""
    cookies = {web.cookie: web.secret("analyst")}
    with httpx.Client(base_url=web.address, cookies=cookies, timeout=30) as client:
        yield client


def _fields(client: httpx.Client, address: str) -> dict[str, str]:
    form = client.get(address).text.split('id="spend"')[1].split("</form>")[0]
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
