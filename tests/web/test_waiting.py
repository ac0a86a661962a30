"""A long answer: its page says what is happening, and it can be given up."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.service.service import Service
from tests.web.conftest import PageFor
from tests.web.site import Site

SPEND = re.compile("^Spend 0")


def held(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, *, before: bool) -> threading.Event:
    """A step that goes on (``before`` it is made, or after) when the event is set."""
    go_on, step = threading.Event(), getattr(owner, name)

    def slow(*given: Any, **named: Any) -> Any:
        if before:
            go_on.wait(60)
            return step(*given, **named)
        made = step(*given, **named)
        go_on.wait(60)
        return made

    monkeypatch.setattr(owner, name, slow)
    return go_on


def test_a_long_answer_can_be_given_up_for_nothing_before_rows_are_read(
    page_for: PageFor, web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_for("analyst")
    page.goto("/datasets/salaries/ask?error=42&column=age&shape=histogram")
    before, button = web.workspace.budget("salaries").spent, page.get_by_role("button", name=SPEND)
    expect(button).to_be_enabled()
    go_on = held(monkeypatch, Service, "_made", before=True)
    try:  # while a page is being left it can be heard, and not be touched: it presses its button itself
        page.evaluate("setTimeout(() => document.querySelector('.underway button').click(), 3000)")
        with page.expect_response("**/asking/stop") as stopped, page.expect_response("**/asking") as told:
            button.click(no_wait_after=True)
        assert told.value.status == 200
        assert stopped.value.status == 202
    finally:
        go_on.set()
    said = page.locator("main")
    expect(said).to_contain_text("cancelled before the data was read. Nothing was charged.")
    expect(page.get_by_label("within ±")).to_have_value("42")
    assert web.workspace.budget("salaries").spent == before


def test_a_long_answer_says_that_rows_are_being_read(
    page_for: PageFor, web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_for("analyst")
    page.goto("/datasets/salaries/ask?error=41&column=age&shape=histogram")
    button = page.get_by_role("button", name=SPEND)
    expect(button).to_be_enabled()
    go_on = held(monkeypatch, Ledger, "reserve_all", before=False)
    try:
        with page.expect_response("**/asking"):
            button.click(no_wait_after=True)
        asked, reading = f"{web.address}/datasets/salaries/asking", {"words": "Rows are being read."}
        until = time.monotonic() + 30  # it may have been planned still when the page asked
        while (told := page.context.request.get(asked).json()) != reading and time.monotonic() < until:
            time.sleep(0.1)
        assert told == reading
    finally:
        go_on.set()
    page.wait_for_url("**/answers/*")


def test_nothing_is_said_to_others_about_a_question(page_for: PageFor, web: Site) -> None:
    page = page_for("auditor")
    assert page.request.get(f"{web.address}/datasets/salaries/asking").status == 403
    page = page_for("analyst")
    assert page.request.get(f"{web.address}/datasets/salaries/asking").json().keys() == {"words"}
