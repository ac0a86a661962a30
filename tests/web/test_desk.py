"""What follows an answer: names, cards, plans, dashboards and requests, clicked through as people do."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.site import Site


def test_an_answer_is_named_edited_split_and_typed_elsewhere(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst", java_script_enabled=False)
    number = web.answers[2]
    page.goto(f"/answers/{number}")
    page.get_by_label("Name", exact=True).fill("Where people live")
    page.get_by_label("Note", exact=True).fill("For the report")
    page.get_by_role("button", name="Keep").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"#{number} Where people live")
    expect(page.locator("main")).to_contain_text("For the report")
    expect(page.locator("#typed-1")).to_contain_text("question('histogram(region)').accurate_to(50")
    assert "SELECT region, COUNT(*) FROM salaries GROUP BY region" in (
        page.locator("#typed-3").text_content() or ""
    )
    page.get_by_role("link", name="Edit the question").click()
    expect(page.locator("#quote")).to_contain_text("Already answered")
    page.goto(f"/answers/{number}")
    page.get_by_role("link", name="age", exact=True).click()
    expect(page.locator("#quote .asked")).to_contain_text("region (4 bins)")
    page.goto("/answers?q=report")
    expect(page.locator("table.log tbody tr:not(.day)")).to_have_count(1)
    expect(page.locator("table.log")).to_contain_text("Where people live")
    page.goto("/answers?sort=old")
    expect(page.locator("table.log .what").first).to_contain_text(f"#{web.answers[0]} ")
    expect(page.locator("table.log .thumb svg")).to_have_count(3)


def test_the_small_picture_of_an_answer_covers_no_words(page_for: PageFor) -> None:
    page = page_for("analyst", viewport={"width": 768, "height": 900})
    page.goto("/answers")
    row = page.locator("table.log tbody tr:not(.day)").first
    picture = row.locator(".thumb svg").bounding_box()
    words = [cell.bounding_box() for cell in row.locator("td[data-label]").all()]
    assert words and all(box["x"] + box["width"] <= picture["x"] for box in words)


def test_what_one_can_do_next_stands_right_below_an_answer(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst", viewport={"width": 768, "height": 900})
    page.goto(f"/answers/{web.answers[0]}")
    headings = page.locator("main h2").all_inner_texts()
    assert headings == ["Values", "What next", "Receipt", "Take it with you", "Name and note", "Share"]
    tops = [panel.bounding_box()["y"] for panel in page.locator("main .panel").all()]
    assert tops == sorted(tops)
    page.set_viewport_size({"width": 1440, "height": 900})
    values, after = (page.locator(part).bounding_box() for part in ("main .panel >> nth=0", ".panel.next"))
    assert after["y"] == values["y"] and after["x"] > values["x"]


def test_one_number_can_be_edited_and_an_exact_one_says_so(page_for: PageFor, web: Site) -> None:
    salaries = web.workspace.as_user("analyst")["salaries"]
    counted = salaries.question("count() where age >= 40").accurate_to(50).ask()
    page = page_for("analyst")
    page.goto(f"/answers/{counted.number}")
    expect(page.locator(".receipt")).to_contain_text("±50, 95 %; fresh noise")
    page.get_by_role("link", name="Edit the question").click()
    expect(page.locator("#quote .asked")).to_have_text("Number of rows where age >= 40")
    expect(page.locator("#quote")).to_contain_text("Already answered")
    page.goto(f"/answers/{salaries.count().spend(1).ask(max_cost=0).number}")
    expect(page.locator(".receipt dd", has_text="exact")).to_have_text("exact")


def test_two_answers_that_cannot_be_compared_stand_side_by_side(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    page.goto(f"/compare?a={web.answers[0]}&b={web.answers[2]}")
    expect(page.locator(".board figure.chart .drawing[data-drawn]")).to_have_count(2)
    expect(page.get_by_role("alert")).to_contain_text("different columns")


def test_a_card_is_for_whoever_has_its_address_until_it_is_ended(page_for: PageFor, web: Site) -> None:
    analyst, number = page_for("analyst", java_script_enabled=False), web.answers[0]
    analyst.goto(f"/answers/{number}")
    expect(analyst.get_by_role("button", name="Make a card")).to_have_count(0)
    curator = page_for("curator", java_script_enabled=False)
    curator.goto("/datasets/salaries/cards")
    curator.get_by_role("button", name="Allow cards").click()
    analyst.reload()
    analyst.get_by_role("button", name="Make a card").click()
    analyst.wait_for_url("**/cards/*")
    nobody = page_for(None)
    nobody.goto(analyst.url)
    expect(nobody.locator("figure.chart .drawing[data-drawn]")).to_have_count(1)
    shown = nobody.locator("main").inner_text()
    assert "every bar is within 50 people" in shown and f"no. {number}" in shown
    assert not re.search(r"\banalyst\b|\bcurator\b|left for you", shown)
    picture = nobody.request.get(f"{analyst.url}.svg")
    assert picture.status == 200 and picture.headers["cross-origin-resource-policy"] == "cross-origin"
    nobody.get_by_role("link", name="Does it match the books?").click()
    expect(nobody.get_by_role("heading", level=1)).to_have_text("It matches the books")
    nobody.get_by_label("Fingerprint").fill("0" * 64)
    nobody.get_by_role("button", name="Compare").click()
    expect(nobody.get_by_role("heading", level=1)).to_have_text("It does not match the books")
    curator.goto("/datasets/salaries/cards")
    curator.get_by_role("button", name=f"End the card of answer {number}").click()
    assert nobody.request.get(analyst.url).status == 404
    assert nobody.request.get(f"{analyst.url}.svg").status == 404


def test_a_plan_is_priced_together_paid_once_and_stands_on_one_page(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    for query in ("column=age&shape=histogram&error=60", "column=age&shape=cumulative&error=60", "error=45"):
        page.goto(f"/datasets/salaries/ask?{query}")
        page.get_by_role("button", name="Put it on the plan").click()
        page.wait_for_url("**/plan")
    expect(page.locator(".lead")).to_contain_text("one by one")
    page.get_by_role("button", name="Drop cumulative of salary").click()
    expect(page.locator("table.plan tbody tr")).to_have_count(2)
    before = web.workspace.budget("salaries").spent.nano
    button = page.get_by_role("button", name=re.compile(r"^Spend 0\.\d+ and answer all$"))
    price = float(button.inner_text().split()[1])
    page.get_by_label("Title of the page").fill("Ages")
    button.click()
    page.wait_for_url("**/dashboards/*")
    assert abs((web.workspace.budget("salaries").spent.nano - before) / 1e9 - price) < 0.0005
    expect(page.get_by_role("heading", level=1)).to_have_text("Ages")
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".board figure.chart .drawing[data-drawn=dark]")).to_have_count(2)
    page.emulate_media(media="print")  # paper is light
    look = "element => getComputedStyle(element)"
    assert page.locator(".board .panel").first.evaluate(f"{look}.backgroundColor") == "rgb(255, 255, 255)"
    assert "invert(1)" in page.locator(".board .drawing svg").first.evaluate(f"{look}.filter")
    page.emulate_media(media="screen", color_scheme="light")
    auditor = page_for("auditor", java_script_enabled=False)
    auditor.goto(page.url)
    expect(auditor.locator(".board section")).to_have_count(2)
    page.goto("/plan")
    expect(page.locator("main")).to_contain_text("Nothing is planned yet")


def test_more_is_asked_for_and_granted(page_for: PageFor, web: Site) -> None:
    analyst, curator = page_for("analyst", java_script_enabled=False), page_for("curator")
    analyst.goto("/requests?dataset=salaries")
    analyst.get_by_label("What you need more of salaries for").fill("The yearly report needs ±20.")
    analyst.get_by_role("button", name="Send to the curator").click()
    expect(analyst.locator("main")).to_contain_text("The curator has it.")
    curator.goto("/datasets")
    curator.get_by_role("link", name="Requests (1)").click()
    expect(curator.locator("blockquote")).to_have_text("The yearly report needs ±20.")
    expect(curator.locator(".request")).to_contain_text("only those who have one can spend")
    curator.get_by_label("May spend in all").fill("4")
    curator.get_by_label("Reply").fill("Until June")
    curator.get_by_role("button", name="Grant it").click()
    expect(curator.locator("main")).to_contain_text("Nobody is waiting")
    expect(curator.locator(".meters")).to_contain_text("0 left for you without a grant")
    expect(curator.locator(".meters")).not_to_contain_text("nothing is left")
    analyst.goto("/requests")
    expect(analyst.locator("main")).to_contain_text("Until June")
    analyst.goto("/datasets/salaries/ask")
    meter = analyst.locator(".dataset-bar .meter")
    expect(meter.locator("svg")).to_have_count(2)
    expect(meter).to_contain_text(re.compile(r"yours\s+ε .* of 4 spent\s+everyone’s"))


def test_the_old_price_goes_at_once_and_the_button_with_it(page_for: PageFor) -> None:
    page = page_for("analyst")
    page.goto("/datasets/salaries/ask?error=44")
    expect(page.get_by_role("button", name=re.compile("^Spend 0"))).to_be_enabled()
    page.route("**/ask?*", lambda _: None)  # a server that does not answer
    page.get_by_label("within ±").fill("43")
    expect(page.locator("#quote .price")).to_have_text("Pricing …")
    expect(page.locator("#spend button[type=submit]")).to_be_disabled()
    page.unroute_all(behavior="ignoreErrors")


def test_choosing_a_column_without_an_order_asks_for_its_bars(page_for: PageFor) -> None:
    page = page_for("analyst")
    page.goto("/datasets/salaries/ask?column=region")
    expect(page.locator("#quote .asked")).to_have_text("Histogram of region (4 bins)")
    page.get_by_label("Column", exact=True).select_option("age")
    page.get_by_label("Shape").select_option("quantiles")
    expect(page.locator("#quote .asked")).to_contain_text("of age")
    page.get_by_label("Column", exact=True).select_option("region")
    expect(page.get_by_label("Shape")).to_have_value("histogram")
    expect(page.locator("#quote .asked")).to_have_text("Histogram of region (4 bins)")


def test_a_session_that_ends_at_paying_keeps_the_question(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    page.goto("/datasets/salaries/ask?error=43&column=age&shape=histogram")
    button = page.get_by_role("button", name=re.compile("^Spend 0"))
    expect(button).to_be_enabled()
    page.context.clear_cookies()
    button.click()
    page.wait_for_url("**/signin?next=*")
    page.get_by_label("Name").fill("analyst")
    page.get_by_label("Password").fill("four random words here")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/ask?*")
    expect(page.get_by_label("within ±")).to_have_value("43")
    expect(page.get_by_label("Shape")).to_have_value("histogram")


def test_a_made_up_person_is_attacked_with_and_without_noise(page_for: PageFor) -> None:
    page = page_for(None, java_script_enabled=False)
    page.goto("/help")
    page.get_by_role("link", name="Attack me").click()
    page.get_by_label("Whom").select_option("5")
    page.get_by_role("button", name="Attack with noise").click()
    expect(page.get_by_role("status")).to_contain_text("The promise allows at most 73 %.")
    page.get_by_role("button", name="Take the noise away").click()
    expect(page.get_by_role("heading", name="Caught")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("100 % sure of 46,000 after one answer")
