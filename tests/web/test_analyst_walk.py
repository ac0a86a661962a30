"""The second demonstration of the paper, click by click; and again by keyboard, and without JavaScript."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.site import Site


def number_of(page: Any) -> int:
    """The number of the answer that is shown."""
    found = re.search(r"/answers/(\d+)", page.url)
    assert found is not None, page.url
    return int(found[1])


def spent(web: Site) -> int:
    return web.workspace.budget("salaries").spent.nano


def test_the_analyst_of_the_paper(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    # a dataset, an attribute, a query type, a granularity
    page.goto("/datasets")
    page.get_by_role("link", name="salaries").first.click()
    page.get_by_role("link", name="Ask", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask about salaries")
    page.get_by_label("Column", exact=True).select_option("age")
    page.get_by_label("Shape").select_option("histogram")
    page.get_by_label("Bins", exact=True).select_option("width")
    page.get_by_label("How many or how wide", exact=True).fill("10")
    # α and β, and the price of them before anything is spent
    page.get_by_label("within ±").fill("60")
    page.get_by_label("per cent of the time").fill("90")
    quote = page.locator("#quote")
    expect(quote).to_contain_text("Histogram of age (8 bins)")
    expect(quote).to_contain_text("In 90 of 100 runs every bar is within 60 people of the truth.")
    expect(quote).to_contain_text("policy dividend")
    before = spent(web)
    button = page.get_by_role("button", name=re.compile(r"^Spend 0\.\d+ and answer$"))
    price = float(button.inner_text().split()[1])
    button.click()
    # the noisy plot with its whiskers, in words and as a table
    page.wait_for_url("**/answers/*")
    first = number_of(page)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"#{first} Histogram of age (8 bins)")
    expect(page.locator(".lead")).to_have_text(
        "In 90 of 100 runs every bar is within 60 people of the truth. Sampling error is not included."
    )
    expect(page.locator("#answer .drawing svg .mark-rule.role-mark line")).to_have_count(8 + 1)  # the legend
    page.get_by_text("Show as a table").click()
    expect(page.locator("#answer tbody tr")).to_have_count(8)
    expect(page.locator("#answer thead")).to_contain_text("noise interval")
    # what remains
    paid = spent(web) - before
    assert abs(paid / 1e9 - price) < 0.0005
    left = page.locator(".meter b").last.inner_text()
    assert abs(float(left) - float(web.workspace.as_user("analyst").left("salaries"))) < 0.01
    # the same question, more accurately
    page.get_by_role("link", name=re.compile(r"^(Sharpen to|Ask again within) ±30 for ε 0\.\d+$")).click()
    expect(quote).to_contain_text("In 90 of 100 runs every bar is within 30 people of the truth.")
    page.get_by_role("button", name=re.compile("^Spend")).click()
    page.wait_for_url("**/answers/*")
    second = number_of(page)
    # the table of all prior answers, two of them side by side
    page.get_by_role("link", name="All answers").click()
    expect(page.get_by_role("button", name="Compare")).to_be_disabled()
    expect(page.locator("table.log tbody tr:not(.day)").nth(4)).to_be_attached()
    for number in (first, second):
        page.get_by_label(f"Tick answer {number}", exact=True).check()
    expect(page.locator("#ticked")).to_have_text("2 selected.")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").click()
    with zipfile.ZipFile(waiting.value.path()) as archive:
        assert sorted(archive.namelist()) == sorted(f"salaries-{n}.csv" for n in (first, second))
        rows = list(csv.DictReader(io.StringIO(archive.read(f"salaries-{first}.csv").decode("utf-8-sig"))))
    assert [row["age"] for row in rows][:2] == ["18–27", "28–37"] and len(rows) == 8
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?*")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare ±30 and ±60")
    expect(page.locator(".compared")).to_contain_text(
        "In 80 of 100 runs the true difference lies in its noise interval, everywhere at once."
    )
    expect(page.locator("#comparison .drawing svg").first).to_be_visible()


def test_everything_by_keyboard(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    page.goto("/datasets/salaries/ask?column=age&shape=histogram&cut=bins&size=4")

    def tab_to(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"{selector} cannot be reached by the keyboard")

    tab_to(".skip")
    tab_to("#field-shape")
    page.keyboard.type("cum")
    tab_to("#field-error")
    page.keyboard.press("Control+A")
    page.keyboard.type("77")
    expect(page.locator("#quote")).to_contain_text("Cumulative of age (4 bins)")
    expect(page.locator("#quote")).to_contain_text("within 77 people")
    tab_to("#spend button[type=submit]")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/answers/*")
    tab_to("#answer summary")
    page.keyboard.press("Enter")
    expect(page.locator("#answer tbody tr")).to_have_count(4)


def test_everything_without_javascript(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst", java_script_enabled=False)
    page.goto("/datasets/salaries/ask")
    page.get_by_label("Column", exact=True).select_option("region")
    page.get_by_label("Shape").select_option("histogram")
    page.get_by_label("within ±").fill("25")
    page.get_by_role("button", name="Get a quote").click()
    expect(page.locator("#quote")).to_contain_text("Histogram of region (4 bins)")
    page.get_by_role("link", name="How it would be answered").click()
    expect(page.locator("#quote .explain")).to_contain_text("Sensitivity")
    page.locator("#spend button[type=submit]").click()
    number = number_of(page)
    picture = page.locator("noscript img")
    address = picture.get_attribute("src")
    assert page.request.get(address).headers["content-type"].startswith("image/svg+xml")
    page.get_by_role("link", name="Show the raw release").click()
    assert page.url.endswith("?raw=1")
    expect(page.locator("#answer thead")).to_contain_text("raw release")
    page.goto("/answers?q=region")
    ticks = page.locator("input[name=pick]")
    expect(ticks.nth(1)).to_be_attached()
    ticks.nth(0).check()
    ticks.nth(1).check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".lead")).to_contain_text("the noise allows")
    page.goto(f"/answers/{number}")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="PARQUET").click()
    assert Path(waiting.value.path()).read_bytes()[:4] == b"PAR1"


def test_the_sql_box(page_for: PageFor) -> None:
    page = page_for("analyst")
    page.goto("/datasets/salaries/ask")
    page.get_by_label("SQL", exact=True).check()
    expect(page.locator("#quote")).to_contain_text("Histogram of salary")
    box = page.get_by_label("A SELECT about salaries")
    box.fill("EXPLAIN SELECT region, COUNT(*) FROM salaries WHERE age >= 40 GROUP BY region WITH ERROR 70")
    expect(page.locator("#quote .explain")).to_contain_text("Laplace")
    box.fill("SELECT region, COUNT(*) FROM salaries WHERE age >= 40 GROUP BY region WITH ERROR 70")
    expect(page.locator("#quote .explain")).to_have_count(0)
    expect(page.locator("#quote")).to_contain_text("where age >= 40")
    page.get_by_role("button", name=re.compile("^Spend")).click()
    page.wait_for_url("**/answers/*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("where age >= 40")
    page.goto("/datasets/salaries/ask?mode=sql")
    box.fill("DELETE FROM salaries")
    expect(page.locator("#wrong-sql")).to_contain_text("A question begins with SELECT")
    # what stands in the form is not lost by looking at the SQL
    page.get_by_label("Form", exact=True).check()
    expect(page.locator("#quote")).to_contain_text("Cumulative of salary (20 bins)")
    page.get_by_label("SQL", exact=True).check()
    expect(box).to_have_value("DELETE FROM salaries")
