"""The plan board: how close each question has to be is set there, and all is fitted to what may be spent."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from blowfishdb.core.budget import Epsilon
from blowfishdb.workspace.embedded import Workspace
from tests.web.conftest import PageFor
from tests.web.site import Site

SPEND = re.compile(r"^Spend 0\.\d+ and answer all$")
QUERIES = ("column=age&shape=histogram&error=60", "column=age&shape=cumulative&error=80")


@pytest.fixture
def analyst(web: Site) -> Iterator[Workspace]:
    web.workspace.desk.keep_plan("analyst", [])
    yield web.workspace.as_user("analyst")
    web.workspace.desk.keep_plan("analyst", [])


def put(page: object, *queries: str) -> None:
    for query in queries:
        page.goto(f"/datasets/salaries/ask?{query}")  # type: ignore[attr-defined]
        page.get_by_role("button", name="Put it on the plan").click()  # type: ignore[attr-defined]
        page.wait_for_url("**/plan")  # type: ignore[attr-defined]


def errors(analyst: Workspace) -> list[float]:
    return [each.asked["error"] for each in analyst.desk.plan("analyst")]


def test_what_matters_is_set_on_the_board_and_priced_at_once(page_for: PageFor, analyst: Workspace) -> None:
    page = page_for("analyst")
    put(page, *QUERIES)
    first = page.get_by_label("± of histogram of age")
    button = page.get_by_role("button", name=SPEND)
    before = float(button.inner_text().split()[1])
    first.fill("$ 1,000")
    expect(button).not_to_have_text(f"Spend {before} and answer all")
    expect(button).to_be_enabled()
    assert float(button.inner_text().split()[1]) < before
    expect(first).to_be_focused()
    assert errors(analyst) == [1000.0, 80.0]
    first.fill("close")
    expect(page.locator("#wrong-close-0")).to_contain_text("“close” is no error")
    expect(first).to_have_value("close")
    assert errors(analyst) == [1000.0, 80.0]
    first.fill("90")
    expect(page.locator("#wrong-close-0")).to_be_empty()
    page.get_by_role("link", name="Edit histogram of age").click()
    expect(page.get_by_label("within ±")).to_have_value("90")


def test_the_old_joint_price_goes_at_once(page_for: PageFor, analyst: Workspace) -> None:
    page = page_for("analyst")
    put(page, QUERIES[0])
    page.route("**/plan/set", lambda _: None)  # a server that does not answer
    page.get_by_label("± of histogram of age").fill("61")
    expect(page.locator(".joint")).to_have_text("Pricing …")
    expect(page.locator("#pay button")).to_be_disabled()
    page.unroute_all(behavior="ignoreErrors")


def test_without_a_script_a_plan_is_fitted_to_what_may_be_spent(
    page_for: PageFor, analyst: Workspace, web: Site
) -> None:
    page = page_for("analyst", java_script_enabled=False)
    put(page, *QUERIES)
    page.get_by_label("All of it for at most").fill("0,05")
    page.get_by_role("button", name="Fit the plan to it").click()
    expect(page.locator(".alert.good")).to_contain_text("at most ε 0.05")
    price = float(page.get_by_role("button", name=SPEND).inner_text().split()[1])
    assert 0.045 <= price <= 0.05
    first, second = errors(analyst)
    assert first > 60
    assert second / first == pytest.approx(80 / 60, rel=0.02)
    page.get_by_label("± of histogram of age").fill("40")
    page.get_by_role("button", name="Price it anew").click()
    assert errors(analyst)[0] == 40.0
    page.get_by_label("All of it for at most").fill("little")
    page.get_by_role("button", name="Fit the plan to it").click()
    expect(page.locator("#wrong-spend")).to_contain_text("is not a number")
    assert web.workspace.budget("salaries").spent < Epsilon(1)


def test_a_statement_brings_its_error_to_the_board(page_for: PageFor, analyst: Workspace) -> None:
    page = page_for("analyst", java_script_enabled=False)
    statement = "SELECT+COUNT(*)+FROM+salaries+WHERE+age+>+30+WITH+ERROR+70+CONFIDENCE+0.9"
    put(page, f"mode=sql&sql={statement}", "column=age&shape=histogram&by=epsilon&epsilon=0.2")
    expect(page.locator("#close-0")).to_have_value("70")
    expect(page.locator("#close-1")).to_have_value("0.2")
    page.locator("#close-0").fill("75")
    page.locator("#close-1").fill("0,1")
    page.get_by_role("button", name="Price it anew").click()
    planned = analyst.desk.plan("analyst")
    assert (planned[0].asked["error"], planned[0].asked["confidence"]) == (75.0, 0.9)
    assert planned[1].asked["epsilon"] == "0.1"
    page.get_by_role("link", name=re.compile("^Edit")).first.click()
    expect(page.get_by_label("within ±")).to_have_value("75")
