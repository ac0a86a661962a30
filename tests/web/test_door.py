"""The front door: five still pictures that the planner stands behind, without signing in or scripts."""

from __future__ import annotations

import json

import pytest
from benchmarks import door
from playwright.sync_api import expect

from blowfishdb.entrypoints.server.web.door import FILE
from tests.web.conftest import PageFor

STORED = json.loads(FILE.read_text())


@pytest.mark.parametrize("number", [0, 2])
def test_what_a_visitor_is_told_is_what_the_planner_says(number: int) -> None:
    still = STORED["stills"][number]
    told = door.facts(still["distance"], door.plan(still["distance"]))
    assert told == {key: still[key] for key in told}


def test_the_pictures_are_of_people_who_do_not_exist() -> None:
    assert STORED["truth"] == door.truth().tolist()
    for still in STORED["stills"]:
        off = [abs(bar - true) for bar, true in zip(still["bars"], STORED["truth"], strict=True)]
        assert max(off) <= 2 * still["error"]


@pytest.mark.parametrize("scripts", [True, False])
def test_the_sentence_moves_price_and_protection_together(page_for: PageFor, scripts: bool) -> None:
    page = page_for(None, java_script_enabled=scripts)
    assert page.goto("/").status == 200
    shown = page.locator(".still:visible")
    expect(shown).to_have_count(1)
    page.get_by_label("within $1,000 of each other").check()
    expect(shown).to_contain_text("over 99.9")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("within $10,000 of each other")).to_be_checked()
    expect(shown).to_contain_text("88")
    page.get_by_role("link", name="Help").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Help")
    page.get_by_role("link", name="Ten minutes as analyst").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ten minutes as analyst")
