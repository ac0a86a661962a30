"""Mistakes stand at their field, in its units, beside what was typed; numbers are read as they are."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidEpsilon
from blowfishdb.entrypoints.server.web.ask_draft import Draft
from blowfishdb.entrypoints.server.web.ask_fields import mistakes, read_draft
from blowfishdb.entrypoints.server.web.typed import number_text, privacy_loss
from tests.web.conftest import PageFor
from tests.web.site import Site

ASK = "/datasets/salaries/ask"
SPEND = re.compile("^Spend 0")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("0.5", "0.5"), ("0,125", "0.125"), ("ε 1,250", "1.25"), (" ε 2 ", "2"), ("1,250.5", None), ("", None)],
)
def test_a_comma_in_an_epsilon_is_never_between_thousands(typed: str, meant: str | None) -> None:
    if meant is None:
        with pytest.raises(InvalidEpsilon):
            privacy_loss(typed)
    else:
        assert privacy_loss(typed) == Epsilon(meant)


def test_other_numbers_are_read_as_people_write_them() -> None:
    typed = ("$10,000", "1 000 €", "±50", "0,125", "1.234,5", "-3", "0,5")
    assert [number_text(each) for each in typed] == ["10000", "1000", "50", "0.125", "1234.5", "-3", "0.5"]


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ({"error": "5x"}, {"error": "“5x” is no number: say how far off it may be, in people."}),
        (
            {"shape": "mean", "error": ""},
            {"error": "Nothing is typed here: say how far off it may be, in units"},
        ),
        ({"confidence": "100 %"}, {"confidence": "more than 0 and less than 100"}),
        (
            {"where": "salry > 3", "size": "x"},
            {"where": "There is no column 'salry'", "size": "no number of bins"},
        ),
        ({"cut": "width", "size": "wide"}, {"size": "“wide” is no width."}),
        ({"shape": "clusters", "k": "two"}, {"k": "“two” is no number of clusters."}),
        ({"shape": "ranges", "ranges": "a..b"}, {"ranges": "There is no column 'a'"}),
        ({"by": "epsilon", "epsilon": "much"}, {"epsilon": "'much' is not a number"}),
        ({"mode": "sql", "sql": "SELEC 1"}, {"sql": "A question begins with SELECT"}),
        ({"column": "region"}, {}),  # no field is at fault: the shape and the column do not go together
        ({"error": "$1,000", "where": "salary >= $10,000"}, None),
        ({"shape": "ranges", "ranges": "0..9,999, 10,000..19,999"}, None),
        ({"confidence": "97,5", "cut": "width", "size": "$5,000"}, None),
    ],
)
def test_every_field_that_cannot_be_read_is_found(
    web: Site, typed: dict[str, str], wrong: dict[str, str] | None
) -> None:
    source = web.workspace.as_user("analyst")["salaries"]
    draft = Draft.read(typed, source.schema)
    if wrong is None:
        read_draft(draft, source)
        return
    found = mistakes(draft, source)
    assert found.keys() == wrong.keys()
    for name, words in wrong.items():
        assert words in found[name].message


def test_a_mistake_comes_to_its_field_while_typing_and_goes_with_it(page_for: PageFor) -> None:
    page = page_for("analyst")
    page.goto(f"{ASK}?error=44")
    error, where = page.get_by_label("within ±"), page.get_by_label("Only rows where")
    error.fill("4o")
    expect(page.locator("#wrong-error")).to_contain_text("“4o” is no number")
    expect(error).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name=SPEND)).to_have_count(0)
    where.fill("salry > 3")
    expect(page.locator("#wrong-where")).to_contain_text("There is no column 'salry'")
    expect(page.locator("#quote")).to_contain_text("2 fields cannot be read")
    page.locator("#quote").get_by_role("link", name="only rows where").press("Enter")
    expect(where).to_be_focused()
    where.fill("salary > $3,000")
    error.fill("44,5")
    expect(page.get_by_role("button", name=SPEND)).to_be_enabled()
    expect(page.locator(".mistake:not(:empty)")).to_have_count(0)
    expect(error).not_to_have_attribute("aria-invalid", "true")


def test_without_a_script_it_stands_there_too(page_for: PageFor) -> None:
    page = page_for("analyst", java_script_enabled=False)
    page.goto(ASK)
    page.get_by_label("within ±").fill("some")
    page.get_by_role("button", name="Get a quote").click()
    expect(page.locator("#wrong-error")).to_contain_text("“some” is no number")
    expect(page.get_by_label("within ±")).to_have_value("some")


def test_grants_and_tokens_keep_what_was_typed_beside_what_is_wrong(page_for: PageFor) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto("/datasets/salaries/budget")
    page.get_by_label("New grant for analyst").fill("a bit")
    page.locator("tr", has_text="analyst").get_by_role("button", name="Grant").click()
    expect(page.locator("tr", has_text="analyst").locator(".mistake")).to_contain_text("is not a number")
    expect(page.get_by_label("New grant for analyst")).to_have_value("a bit")
    page.get_by_label("See what another total").fill("lots")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#wrong-try-total")).to_contain_text("is not a number")
    page.goto("/datasets/salaries/access")
    page.get_by_label("Days").fill("forever")
    page.get_by_label("What for").fill("nightly")
    page.get_by_role("button", name="Make a token").click()
    expect(page.locator("#wrong-days")).to_contain_text("up to 3,650 days")
    expect(page.get_by_label("What for")).to_have_value("nightly")
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_label("Password", exact=True).fill("short")
    page.get_by_role("button", name="Let in").click()
    expect(page.locator("#wrong-password")).to_contain_text("A password has")
    expect(page.get_by_label("Name", exact=True)).to_have_value("ada")


def test_a_request_is_settled_with_a_number(page_for: PageFor, web: Site) -> None:
    web.workspace.desk.request("salaries", "analyst", "For the report.")
    page = page_for("curator", java_script_enabled=False)
    page.goto("/requests")
    page.get_by_label("May spend in all").fill("four")
    page.get_by_label("Reply").fill("Until June")
    page.get_by_role("button", name="Grant it").click()
    expect(page.locator(".request .mistake")).to_contain_text("'four' is not a number")
    expect(page.get_by_label("Reply")).to_have_value("Until June")
    page.get_by_label("May spend in all").fill("0,75")
    page.get_by_role("button", name="Grant it").click()
    expect(page.locator(".alert.good")).to_contain_text("analyst may spend up to ε 0.75 in all")


def test_a_head_and_ticks_are_judged_where_they_are(page_for: PageFor) -> None:
    page = page_for("auditor", java_script_enabled=False)
    page.goto("/datasets/salaries/audit")
    page.get_by_label("A head that was kept").fill("7:beef")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#wrong-since")).to_contain_text("✗")
    expect(page.get_by_label("A head that was kept")).to_have_value("7:beef")
    analyst = page_for("analyst", java_script_enabled=False)
    analyst.goto("/answers")
    analyst.get_by_role("button", name="On one page").click()
    expect(analyst.get_by_role("heading", level=1)).to_have_text("Answers")
    expect(analyst.get_by_role("alert")).to_contain_text("1 to 50 answers")
    analyst.get_by_role("button", name="Export").click()
    expect(analyst.get_by_role("alert")).to_contain_text("Tick the answers to export")


def test_a_name_that_is_too_long_is_not_lost(page_for: PageFor, web: Site) -> None:
    page = page_for("analyst")
    page.goto(f"/answers/{web.answers[0]}")
    page.locator("#field-name").evaluate("field => field.removeAttribute('maxlength')")
    page.get_by_label("Name", exact=True).fill("x" * 121)
    page.get_by_label("Note", exact=True).fill("kept")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("#wrong-name")).to_contain_text("at most 120 characters")
    expect(page.get_by_label("Note", exact=True)).to_have_value("kept")
