"""Each flow by mouse, by keyboard and without scripts, on telephone, tablet and desk, light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.hands import WAYS, Walker, Way
from tests.web.site import Site

Flow = Callable[[Walker, Site], None]


def a_visitor_attacks_a_made_up_person(one: Walker, web: Site) -> None:
    one.go("/")
    one.press("link", "Help")
    one.press("link", "Attack me")
    one.choose("Whom", one.page.get_by_label("Whom").locator("option").nth(4).inner_text())
    one.press("button", "Attack with noise")
    one.sees("The promise allows at most 73 %.")
    one.press("button", "Take the noise away")
    one.sees("Caught")


def an_analyst_asks(one: Walker, web: Site) -> None:
    one.go("/datasets")
    one.press("link", "Ask")
    one.choose("Column", "age")
    one.choose("Shape", "histogram")
    one.fill("within ±", "70")
    if one.way.hand == "plain":
        one.press("button", "Get a quote")
    expect(one.page.locator("#quote")).to_contain_text("within 70 people")
    one.press("button", re.compile("^Spend 0|^Show it"))
    one.page.wait_for_url("**/answers/*")
    one.sees("Histogram of age")


def an_analyst_names_splits_and_compares(one: Walker, web: Site) -> None:
    first, second = web.answers[0], web.answers[1]
    one.go(f"/answers/{first}")
    one.fill("Name", f"Pay, seen by {one.way}")
    one.press("button", "Keep")
    one.sees("Name and note are kept.")
    one.press("link", re.compile("^region$"))
    expect(one.page.locator("#quote")).to_contain_text("region")
    one.go("/answers")
    one.tick(f"Tick answer {first}")
    one.tick(f"Tick answer {second}")
    one.press("button", "Compare")
    one.sees("different bins")


def an_analyst_plans_and_pays_once(one: Walker, web: Site) -> None:
    for query in ("column=age&shape=histogram&error=60", "column=age&shape=cumulative&error=60"):
        one.go(f"/datasets/salaries/ask?{query}")
        one.press("button", "Put it on the plan")
        one.page.wait_for_url("**/plan")
    one.fill("Title of the page of all answers", f"Ages, seen by {one.way}")
    one.press("button", re.compile("answer all$|^Show all"))
    one.page.wait_for_url("**/dashboards/*")
    expect(one.page.locator(".board section")).to_have_count(2)


def an_analyst_asks_for_more(one: Walker, web: Site) -> None:
    one.go("/requests?dataset=salaries")
    one.fill("What you need more of salaries for", "The yearly report needs ±20.")
    one.press("button", "Send to the curator")
    one.sees("The curator has it.")


def a_curator_chooses_a_distance(one: Walker, web: Site) -> None:
    one.go("/datasets/salaries/tradeoff")
    one.fill("Distances to try", "1,000, 20,000")
    one.press("button", "Compare")
    one.press("link", "within 20,000")
    one.press("link", "Use this policy")
    one.sees("within 20,000 of each other")
    price = one.page.locator("#price-live")
    expect(price).to_be_in_viewport(ratio=0.95)
    expect(price).to_contain_text(
        re.compile(r"costs ε [\d.]+ under this policy, ε [\d.]+ under the published")
    )
    one.press("button", "Save draft")
    one.sees("Draft saved")
    one.press("button", "Back to the published policy")
    one.sees("Back to the published policy")


def an_auditor_looks_at_one_person(one: Walker, web: Site) -> None:
    one.go("/datasets")
    one.press("link", "Audit")
    one.choose("asked by", "analyst")
    one.press("button", "Show these")
    expect(one.page).to_have_url(re.compile("asker=analyst"))
    one.sees("Answers, one row each")


FLOWS: Final[tuple[tuple[str | None, Flow], ...]] = (
    (None, a_visitor_attacks_a_made_up_person),
    ("analyst", an_analyst_asks),
    ("analyst", an_analyst_names_splits_and_compares),
    ("analyst", an_analyst_plans_and_pays_once),
    ("analyst", an_analyst_asks_for_more),
    ("curator", a_curator_chooses_a_distance),
    ("auditor", an_auditor_looks_at_one_person),
)


def _walks() -> Iterator[object]:
    """All flows in all ways; each of them in one way on a tablet, by one hand after another."""
    tablets = [way for way in WAYS if way.width == 768]
    for number, (role, flow) in enumerate(FLOWS):
        for way in WAYS:
            marks = () if way == tablets[number % len(tablets)] else (pytest.mark.thorough,)
            yield pytest.param(role, flow, way, id=f"{flow.__name__}-{way}", marks=marks)


@pytest.mark.parametrize(("role", "flow", "way"), [*_walks()])
def test_every_flow_in_every_way(
    page_for: PageFor, web: Site, role: str | None, flow: Flow, way: Way
) -> None:
    one = Walker(page_for(role, **way.options), way)
    flow(one, web)
    if way.hand == "keys":
        found = Axe().run(one.page)
        assert found.violations_count == 0, found.generate_report()
