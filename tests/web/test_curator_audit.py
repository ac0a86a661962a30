"""The audit page: the chain is checked while you wait, events are filtered, everything can be taken along."""

from __future__ import annotations

import csv
import io
import json

from playwright.sync_api import expect
from sqlalchemy import text

from tests.web.conftest import PageFor
from tests.web.site import Site

AUDIT = "/datasets/salaries/audit"


def test_an_auditor_reads_filters_and_takes_along(page_for: PageFor, web: Site) -> None:
    page = page_for("auditor")
    page.goto(AUDIT)
    events = web.workspace.events("salaries")
    expect(page.locator("main")).to_contain_text("The books add up.")
    expect(page.locator("table.events tbody tr")).to_have_count(len(events))
    assert "answered 3" in " ".join(page.get_by_role("row", name="answered").first.inner_text().split())
    page.get_by_label("What", exact=True).select_option("settled")
    page.get_by_label("by", exact=True).select_option("analyst")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("table.events tbody tr")).to_have_count(3)
    expect(
        page.locator("table.events").get_by_role("link", name="cumulative of salary (20 bins)")
    ).to_have_count(1)
    page.get_by_role("link", name="Show all").click()
    with page.expect_download() as as_json:
        page.get_by_role("link", name="Download JSON").click()
    books = json.loads(as_json.value.path().read_text())
    assert books["verified"] and [e["hash"] for e in books["events"]] == [e.hash for e in events]
    with page.expect_download() as as_csv:
        page.get_by_role("link", name="Download CSV").click()
    rows = list(csv.DictReader(io.StringIO(as_csv.value.path().read_text())))
    assert [row["hash"] for row in rows] == [e.hash for e in events]


def test_each_answer_is_one_row_with_what_it_went_through(page_for: PageFor, web: Site) -> None:
    page = page_for("auditor", java_script_enabled=False)
    page.goto(AUDIT)
    rows = page.locator("table.charges tbody tr")
    expect(rows).to_have_count(3)
    rows.first.get_by_text("3 events").click()
    expect(rows.first.locator("ol li")).to_have_count(3)
    expect(rows.first.locator("ol")).to_contain_text("charge reserved")
    command = page.locator("#verify").inner_text()
    assert command.endswith(f"audit --since {web.workspace.head()}")
    expect(page.locator("#spending")).to_contain_text("all of it by analyst")
    page.get_by_label("Outcome").select_option("lost")
    page.get_by_role("button", name="Show these").click()
    expect(page.locator("#answers")).to_contain_text("Nothing was charged that fits.")


def test_hashes_are_short_and_copied_whole(page_for: PageFor, web: Site) -> None:
    page = page_for("curator", permissions=["clipboard-read", "clipboard-write"])
    page.goto(AUDIT)
    last = web.workspace.events("salaries")[-1]
    expect(page.locator("table.events tbody tr").first).to_contain_text(f"{last.hash[:10]}…")
    page.get_by_role("button", name=f"Copy the hash of event {last.seq}", exact=True).click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == last.hash


def test_a_filter_that_fits_nothing_says_so(page_for: PageFor) -> None:
    page = page_for("auditor", java_script_enabled=False)
    page.goto(f"{AUDIT}?kind=lost&page=99")
    expect(page.locator("main")).to_contain_text("No event is of this kind.")
    page.get_by_role("link", name="Show all events").click()
    expect(page.locator("table.events tbody tr").nth(3)).to_be_attached()


def test_analysts_do_not_see_the_books(page_for: PageFor) -> None:
    page = page_for("analyst")
    for path in (AUDIT, f"{AUDIT}.json", f"{AUDIT}.csv"):
        assert page.request.get(path).status == 403


def test_books_that_were_changed_are_found_out(page_for: PageFor, web: Site) -> None:
    with web.workspace.store.writing() as connection:
        connection.execute(text("UPDATE events SET amount = amount + 1 WHERE seq = 3"))
    page = page_for("auditor")
    page.goto(AUDIT)
    expect(page.get_by_role("alert")).to_contain_text("The books do not add up.")
