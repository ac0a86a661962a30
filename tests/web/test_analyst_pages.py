"""The log, single answers, comparisons and the public guarantee."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.site import Site, site


def test_the_log_is_filtered_and_names_nobody_to_an_analyst(page_for: PageFor, web: Site) -> None:
    mine = web.workspace.as_user("curator")["salaries"]
    other = mine.question("histogram(age, bins=3)").accurate_to(300).ask()
    page = page_for("analyst")
    page.goto("/answers")
    rows = page.locator("table.log tbody tr:not(.day)")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text(f"#{other.number} histogram of age (3 bins)")
    assert "curator" not in page.locator("table.log").inner_text()
    page.get_by_label("Filter by words").fill("age 300")
    page.get_by_role("button", name="Filter").click()
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="Show all").click()
    expect(rows).to_have_count(4)
    page.goto(f"/answers/{other.number}")
    expect(page.locator(".receipt")).not_to_contain_text("Asked by")
    assert (
        "curator" not in page.locator("main").inner_text()
        and "SELECT" not in page.locator("main").inner_text()
    )
    auditor = page_for("auditor")
    auditor.goto("/answers")
    expect(auditor.locator("table.log")).to_contain_text("curator")
    auditor.goto(f"/answers/{other.number}")
    expect(auditor.locator(".receipt")).to_contain_text("curator")
    expect(auditor.get_by_role("link", name="Ask something else")).to_have_count(0)


def test_the_raw_release_is_one_click_away(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    page.goto(f"/answers/{web.answers[2]}")
    expect(page.locator("#answer .drawing")).to_have_attribute("data-drawn", "light")
    expect(page.locator("#answer svg .mark-symbol path")).to_have_count(0)
    page.get_by_role("link", name="Show the raw release").click()
    expect(page.locator("#answer svg .mark-symbol path")).to_have_count(4 + 1)  # the legend
    page.get_by_text("Show as a table").click()
    answer = web.workspace.answer(web.answers[2])
    cells = page.locator("#answer tbody tr td:nth-child(4)").all_inner_texts()
    assert [float(cell.replace(",", "")) for cell in cells] == [round(float(v)) for v in answer.raw]


def test_a_receipt_can_be_printed(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    page.goto(f"/answers/{web.answers[0]}")
    page.emulate_media(media="print")
    expect(page.locator(".receipt")).to_be_visible()
    for hidden in (".top", ".next", ".files"):
        expect(page.locator(hidden)).to_be_hidden()


def test_two_answers_about_different_bins_are_not_compared(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    first, second, _ = web.answers[:3]
    assert page.goto(f"/compare?a={first}&b={second}").status == 422
    expect(page.get_by_role("alert")).to_contain_text("cut 'salary' into different bins")
    expect(page.get_by_role("alert")).not_to_contain_text("charged")  # comparing never costs anything
    page.get_by_label("Second").select_option(str(first))
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".lead")).to_have_text("No bar differs by more than the noise allows.")


def test_one_answer_is_not_enough_to_compare(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    page.goto(f"/compare?a={web.answers[0]}")
    expect(page.get_by_role("heading", name="Choose two answers")).to_be_visible()
    expect(page.get_by_label("First")).to_have_value(str(web.answers[0]))
    picks = "&".join(f"pick={number}" for number in web.answers[:3])
    assert page.goto(f"/compare?{picks}").status == 422
    assert page.goto("/compare?a=99999").status == 404
    assert page.goto("/answers/99999").status == 404
    assert page.goto("/answers/export").status == 422


def test_differences_are_marked_by_shape(page_for: PageFor, web: Site) -> None:
    salaries = web.workspace.as_user("analyst")["salaries"]
    everyone = salaries.question("histogram(age, width=20)").accurate_to(40).ask()
    few = salaries.question("histogram(age, width=20) where salary < 20000").accurate_to(40).ask()
    page = page_for("analyst")
    page.goto(f"/compare?a={everyone.number}&b={few.number}")
    expect(page.locator(".lead")).to_have_text(
        re.compile(r"^\d of 4 bars differ by more than the noise allows\.$")
    )
    expect(page.locator(".compared")).to_contain_text("Filled diamonds")
    page.get_by_text("Show as a table").click()
    expect(page.locator("#comparison thead")).to_contain_text("more than noise")


def test_the_guarantee_is_for_everyone_and_tells_nothing_else(page_for: PageFor, web: Site) -> None:
    page = page_for(None)
    assert page.goto("/datasets/salaries/guarantee").status == 200
    page.get_by_text("Every sentence of it").click()
    main = page.locator("main").inner_text()
    assert "Suppose an attacker knows everything about everyone else" in main
    assert "within 1,000 of each other" in main and "Not hidden: how many rows there are." in main
    assert "Assumes one row per person." in main and "Policy version 2" in main
    expect(page.locator(".clause strong").first).to_have_text(re.compile(r"%$"))
    expect(page.locator("figure.chart")).to_have_count(0)  # with this budget all of it is near certainty
    source = page.content()
    for secret in ("duckdb", str(web.folder), "curator", "SELECT"):
        assert secret not in source, secret
    assert page.goto("/datasets/nothing/guarantee").status == 404
    assert "salaries" not in page.locator("main").inner_text()
    page.goto("/answers")
    assert "/signin" in page.url


def test_nothing_asked_yet(browser: object, tmp_path: Path) -> None:
    with site(tmp_path, questions=()) as fresh:
        context = browser.new_context(base_url=fresh.address)  # type: ignore[attr-defined]
        context.add_cookies([{"name": fresh.cookie, "value": fresh.secret("analyst"), "url": fresh.address}])
        page = context.new_page()
        page.goto("/answers")
        expect(page.get_by_role("heading", name="No answers yet")).to_be_visible()
        page.goto("/compare")
        expect(page.get_by_role("heading", name="Nothing to compare yet")).to_be_visible()
        page.goto("/answers?dataset=salaries")
        page.get_by_role("link", name="Ask about salaries").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Ask about salaries")
        context.close()


def test_a_change_fetches_the_quote_and_nothing_around_it(page_for: PageFor) -> None:
    page = page_for("analyst")
    page.goto("/datasets/salaries/ask")
    part = page.request.get("/datasets/salaries/ask?error=23", headers={"Part": "quote"}).text()
    assert "Spend" in part and "<html" not in part and 'id="ask"' not in part
    with page.expect_response(lambda answer: "error=24" in answer.url) as waiting:
        page.get_by_label("within ±").fill("24")
    assert len(waiting.value.text()) < len(page.content()) / 2
    expect(page.locator("#quote .promise")).to_contain_text("within 24 people")


@pytest.mark.parametrize(
    ("query", "said"),
    [("error=23", "Spend"), ("error=0.5", "What fits"), ("column=region&shape=cumulative", "Why")],
)
def test_on_a_telephone_the_price_is_always_in_sight(page_for: PageFor, query: str, said: str) -> None:
    page = page_for("analyst", viewport={"width": 390, "height": 700})
    page.goto(f"/datasets/salaries/ask?{query}")
    expect(page.locator(".quote .bar")).to_be_in_viewport()
    expect(page.locator(".quote .bar")).to_contain_text(said)
    footer = page.locator("footer")
    footer.scroll_into_view_if_needed()
    page.mouse.wheel(0, 10_000)
    expect(footer).to_be_in_viewport(ratio=0.9)


def test_a_receipt_names_the_policy_in_words(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    page.goto(f"/answers/{web.answers[0]}")
    words = "Hide which of two values of 'salary' someone has when they are within 1,000 of each other."
    expect(page.locator(".receipt")).to_contain_text(words)
    page.goto("/datasets/salaries/ask?error=70")
    page.get_by_text("What policy version 2 hides").click()
    expect(page.locator("#quote")).to_contain_text(words)


def test_a_question_is_tried_on_made_up_rows(page_for: PageFor, web: Site) -> None:
    page, before = page_for("analyst"), len(web.workspace.answers())
    page.goto("/datasets/salaries/ask?column=salary&shape=cumulative&cut=bins&size=10&error=50")
    page.get_by_role("link", name="Try it on made-up rows").click()
    page.wait_for_selector("h1:has-text('Made-up rows: cumulative of salary')")
    expect(page.get_by_text("Made-up rows, about nobody.")).to_be_visible()
    expect(page.locator("figure svg").first).to_be_visible()
    page.get_by_role("link", name="Back to the question").click()
    page.wait_for_selector("#quote-title")
    assert len(web.workspace.answers()) == before
