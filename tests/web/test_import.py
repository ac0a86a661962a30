"""Importing: limits are proposed, every one must be confirmed, and whatever is wrong is said where it is."""

from __future__ import annotations

from typing import Any

import pytest

from blowfishdb.core.attributes import Boolean, Category, Integer
from blowfishdb.core.dates import Date
from tests.web.conftest import PageFor
from tests.web.site import Site


def to_columns(page: Any, web: Site, *, name: str = "") -> None:
    """From the first page to the second."""
    page.goto("/datasets/new")
    page.get_by_label("File or database address").fill(str(web.folder / "people.csv"))
    page.get_by_label("Name of the dataset").fill(name)
    page.get_by_role("button", name="Look at the columns").click()


def confirm_all(page: Any) -> None:
    """Tick whatever has to be confirmed."""
    for box in page.get_by_label("These limits may be known to everybody").all():
        if box.is_visible():
            box.check()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_file_becomes_a_dataset(page_for: PageFor, web: Site, scripts: bool) -> None:
    page = page_for("curator", java_script_enabled=scripts)
    name = f"people {scripts}"
    to_columns(page, web, name=name)
    income = page.locator("fieldset", has_text="income")
    income.get_by_label("Lowest").fill("0")
    income.get_by_label("Highest").fill("99,999")
    income.get_by_label("In steps of").fill("1")
    confirm_all(page)
    page.get_by_label("Column that says whose row it is").select_option("person_id")
    page.get_by_label("Rows per person, at most").fill("2")
    page.get_by_role("button", name="Declare the dataset").click()
    assert page.locator("h1").inner_text() == name
    facts = web.workspace.facts(name)
    assert facts.rows_per_person == 2
    assert facts.domain.names == ("income", "joined", "team", "remote")
    assert facts.domain["income"] == Integer(0, 99_999)
    assert isinstance(facts.domain["joined"], Date)
    assert facts.domain["team"] == Category(["blue", "green", "red"])
    assert facts.domain["remote"] == Boolean()


def test_limits_that_were_not_confirmed_declare_nothing(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web, name="unconfirmed")
    page.locator("fieldset", has_text="joined").get_by_label("These limits").check()
    page.get_by_role("button", name="Declare the dataset").click()
    assert "2 columns still need attention." in page.get_by_role("alert").inner_text()
    wrong = page.locator(".column.wrong")
    assert [each.locator("legend .mono").inner_text() for each in wrong.all()] == ["income", "team"]
    assert page.locator("fieldset", has_text="joined").get_by_label("These limits").is_checked()
    assert "unconfirmed" not in web.workspace


def test_what_was_typed_stays_where_something_is_wrong(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web)
    assert page.get_by_label("Name of the dataset").input_value() == "people"
    income = page.locator("fieldset", has_text="income")
    income.get_by_label("Highest").fill("many")
    confirm_all(page)
    page.get_by_role("button", name="Declare the dataset").click()
    assert "'many' is not a whole number." in page.locator(".column.wrong").inner_text()
    assert income.get_by_label("Highest").input_value() == "many"
    income.get_by_label("Highest").fill("1")
    page.get_by_role("button", name="Declare the dataset").click()
    assert page.locator(".column.wrong").count() == 1


def test_a_column_without_limits_is_named(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web)
    page.locator("fieldset", has_text="income").get_by_label("Lowest").fill("")
    confirm_all(page)
    page.get_by_role("button", name="Declare the dataset").click()
    assert "'income' has no limits" in page.locator(".column.wrong").inner_text()


def test_the_second_page_is_marked_as_true_data_and_warns(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web)
    assert page.get_by_role("note").inner_text() == "CURATOR VIEW – TRUE DATA"
    assert "can reveal its extreme and rare values" in page.locator(".alert.warn").inner_text()
    identifier = page.locator("fieldset", has_text="person_id")
    assert not identifier.get_by_label("Use this column").is_checked()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nowhere.csv", "nowhere.csv"),
        ("postgresql://127.0.0.1:1/none", "cannot be reached"),
        ("mailto:you", "mailto"),
    ],
)
def test_a_source_that_cannot_be_used_is_told_on_the_first_page(
    page_for: PageFor, source: str, said: str
) -> None:
    page = page_for("curator")
    page.goto("/datasets/new")
    page.get_by_label("File or database address").fill(source)
    page.get_by_role("button", name="Look at the columns").click()
    assert said in page.get_by_role("alert").inner_text()
    assert page.get_by_label("File or database address").input_value() == source


def test_a_name_is_given_once(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web, name="salaries")
    assert "There is already a dataset 'salaries'" in page.get_by_role("alert").inner_text()


@pytest.mark.parametrize("role", ["analyst", "auditor"])
def test_only_curators_import(page_for: PageFor, role: str) -> None:
    page = page_for(role)
    assert page.goto("/datasets/new").status == 403
    page.goto("/datasets")
    assert page.get_by_role("link", name="Import data").count() == 0
