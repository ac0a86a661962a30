"""Importing: limits are proposed, every one must be confirmed, and whatever is wrong is said where it is."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from blowfishdb.core.domain.attributes import Boolean, Category, Integer
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from tests.entrypoints.server import DOMAIN, make_data
from tests.web.conftest import PageFor
from tests.web.site import Site


def to_columns(page: Any, web: Site, *, name: str = "") -> None:
    """From the first page to the second."""
    page.goto("/import")
    page.get_by_label("File or database address").fill(str(web.folder / "people.csv"))
    page.get_by_label("Name of the dataset").fill(name)
    page.get_by_role("button", name="Look at the columns", exact=True).click()


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
    income = page.locator("tr.column", has_text="income")
    income.get_by_label("Lowest").fill("0")
    income.get_by_label("Highest").fill("99,999")
    income.get_by_label("In steps of").fill("1")
    confirm_all(page)
    page.get_by_label("Column that says whose row it is").select_option("person_id")
    page.get_by_label("Rows per person, at most").fill("2")
    page.get_by_role("button", name="Declare the dataset").click()
    if not scripts:  # the rows are in the dataset of the run before
        expect(page.locator(".alert.bad")).to_contain_text("already in 'people True'")
        page.get_by_label("These rows are in another dataset too").check()
        page.get_by_role("button", name="Declare the dataset").click()
    expect(page.locator("h1")).to_have_text(f"What must stay hidden in {name}?")
    facts = web.workspace.facts(name)
    assert facts.rows_per_person == 2
    assert facts.domain.names == ("income", "joined", "team", "remote")
    assert facts.domain["income"] == Integer(0, 99_999)
    assert isinstance(facts.domain["joined"], Date)
    assert facts.domain["team"] == Category(["blue", "green", "red"], missing="none")
    assert facts.domain["remote"] == Boolean()


def test_limits_that_were_not_confirmed_declare_nothing(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web, name="unconfirmed")
    page.locator("tr.column", has_text="joined").get_by_label("These limits").check()
    page.get_by_role("button", name="Declare the dataset").click()
    expect(page.get_by_role("alert")).to_contain_text("2 columns still need attention.")
    wrong = page.locator("tr.column.wrong")
    assert [each.locator(".mono").inner_text() for each in wrong.all()] == ["income", "team"]
    assert page.locator("tr.column", has_text="joined").get_by_label("These limits").is_checked()
    assert "unconfirmed" not in web.workspace


def test_what_was_typed_stays_where_something_is_wrong(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web)
    expect(page.get_by_label("Name of the dataset")).to_have_value("people")
    income = page.locator("tr.column", has_text="income")
    income.get_by_label("Highest").fill("many")
    confirm_all(page)
    page.get_by_role("button", name="Declare the dataset").click()
    expect(page.locator("tr.column.wrong")).to_contain_text("'many' is not a whole number.")
    assert income.get_by_label("Highest").input_value() == "many"
    income.get_by_label("Highest").fill("1")
    page.get_by_role("button", name="Declare the dataset").click()
    expect(page.locator("tr.column.wrong")).to_have_count(1)


def test_a_column_without_limits_is_named(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web)
    page.locator("tr.column", has_text="income").get_by_label("Lowest").fill("")
    confirm_all(page)
    page.get_by_role("button", name="Declare the dataset").click()
    expect(page.locator("tr.column.wrong")).to_contain_text("'income' has no limits")


def test_the_second_page_is_marked_as_true_data_and_warns(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web)
    expect(page.get_by_role("note")).to_have_text("CURATOR VIEW – TRUE DATA")
    expect(page.locator(".alert.warn")).to_contain_text("can reveal its extreme and rare values")
    identifier = page.locator("tr.column", has_text="person_id")
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
    page.goto("/import")
    page.get_by_label("File or database address").fill(source)
    page.get_by_role("button", name="Look at the columns", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text(said)
    assert page.get_by_label("File or database address").input_value() == source


def test_a_name_is_given_once(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    to_columns(page, web, name="salaries")
    expect(page.get_by_role("alert")).to_contain_text("There is already a dataset 'salaries'")


@pytest.mark.parametrize("role", ["analyst", "auditor"])
def test_only_curators_import(page_for: PageFor, role: str) -> None:
    page = page_for(role)
    assert page.goto("/import").status == 403
    page.goto("/datasets")
    expect(page.get_by_role("link", name="Import data")).to_have_count(0)


def test_a_dataset_may_be_called_new(page_for: PageFor, web: Site) -> None:
    (web.folder / "new").mkdir()
    rows = make_data(web.folder / "new", 100)
    web.workspace.add_dataset("new", rows, domain=DOMAIN, table="salaries")
    page = page_for("curator")
    page.goto("/datasets")
    page.get_by_role("link", name="new", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("new")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_file_that_holds_the_rows_of_another_now_needs_a_word(
    page_for: PageFor, web: Site, scripts: bool
) -> None:
    names, domain = [f"{which} {scripts}" for which in ("first", "second")], Domain(age=Integer(0, 99))
    files = [web.folder / f"{name}.csv" for name in names]
    for name, file, rows in zip(names, files, ("31", "32"), strict=True):
        file.write_text(f"age\n{rows}\n{int(scripts)}\n")
        web.workspace.add_dataset(name, file, domain=domain)
    files[1].write_text(files[0].read_text())
    page = page_for("curator", java_script_enabled=scripts)
    page.goto(f"/datasets/{quote(names[1])}")
    page.get_by_role("button", name="Begin a new snapshot").click()
    expect(page.locator(".alert.bad")).to_contain_text(f"already in '{names[0]}'")
    page.get_by_label("These rows are in another dataset too").check()
    page.get_by_role("button", name="Read the file again").click()
    expect(page.get_by_role("status")).to_contain_text("belong to snapshot 2")
    assert names[0] in " ".join(web.workspace[names[1]].guarantee().about)
