"""Files that are sent from a curator's own machine: of Excel, and anew when the rows have changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.test_sheets import workbook
from tests.web.conftest import PageFor
from tests.web.site import Site

ROWS = [(30_000 + 250 * i, ["red", "green"][i % 2]) for i in range(80)]


def send(page: Any, file: Path, button: str) -> None:
    """Choose a file and send it."""
    page.locator("input[type=file]").set_input_files(file)
    if page.url.endswith("/rows") or page.locator("h1").inner_text() == "Import data":
        page.get_by_role("button", name=button).click()


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_a_sheet_of_excel_becomes_a_dataset_and_is_sent_anew(
    page_for: PageFor, web: Site, scripts: bool
) -> None:
    name = f"staff {scripts}"
    names, rows = ("pay", "team"), [(pay + scripts, team) for pay, team in ROWS]
    file = workbook(web.folder / f"{name}.xlsx", notes=[["about"], ["x"]], rows=[names, *rows])
    page = page_for("curator", java_script_enabled=scripts)
    page.goto("/import")
    send(page, file, "Send it and look at the columns")
    page.get_by_text("How the file is read").click()
    page.get_by_label("Sheet").select_option("rows")
    page.get_by_role("button", name="Read it again").click()
    expect(page.locator("tr.column")).to_have_count(2)
    expect(page.get_by_text("the sheet 'rows' of a file of Excel")).to_be_visible()
    page.get_by_text("How the file is read").click()
    expect(page.locator(".first-rows tbody tr").first.locator("td")).to_have_text([str(rows[0][0]), "red"])
    page.get_by_label("Confirm all").check()
    page.get_by_label("Name of the dataset").fill(name)
    page.get_by_role("button", name="Declare the dataset").click()
    expect(page.locator("h1")).to_have_text(f"What must stay hidden in {name}?")
    assert web.workspace.source(name).copy.rows == len(rows)

    page.goto(f"/datasets/{quote(name)}")
    page.get_by_role("link", name="Send the file again").click()
    workbook(file, others=[names, *rows])
    send(page, file, "Send it and begin a new snapshot")
    expect(page.locator(".alert.bad")).to_contain_text("no sheet 'rows'")
    assert web.workspace.facts(name).snapshot == 1
    workbook(file, rows=[names, *rows, *rows[:3]])
    page.goto(f"/datasets/{quote(name)}/rows")
    send(page, file, "Send it and begin a new snapshot")
    expect(page.get_by_role("status")).to_contain_text("belong to snapshot 2")
    assert web.workspace.source(name).copy.rows == len(rows) + 3


def test_a_file_of_another_kind_is_not_read_in_another_way(page_for: PageFor, web: Site) -> None:
    csv = web.folder / "plain.csv"
    csv.write_text("age\n" + "\n".join(str(20 + i % 50) for i in range(100)))
    source = web.workspace.receive(csv.name, [csv.read_bytes()], most=10**6)
    from blowfishdb import Domain, Integer

    web.workspace.add_dataset("plain", source, domain=Domain(age=Integer(0, 99)))
    page = page_for("curator")
    page.goto("/datasets/plain/rows")
    send(page, workbook(web.folder / "plain.xlsx", s=[["age"], [30]]), "Send it and begin a new snapshot")
    expect(page.locator(".alert.bad")).to_contain_text("of another kind")
    assert web.workspace.facts("plain").snapshot == 1


def test_a_hundred_columns_fit_three_screens_and_the_arrow_keys_go_through_them(
    page_for: PageFor, web: Site
) -> None:
    kinds = ("{0}", "2020-01-{1:02}", "{1}.5", "name {1}", "{2}")
    file = web.folder / "wide.csv"
    rows = [
        ",".join(kinds[at % 5].format(1_000 + i % 40, 1 + i % 20, i % 2 == 0) for at in range(100))
        for i in range(120)
    ]
    file.write_text("\n".join([",".join(f"column_{at}" for at in range(100)), *rows]))
    page = page_for("curator")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/import")
    page.get_by_label("File or database address").fill(str(file))
    page.get_by_role("button", name="Look at the columns", exact=True).click()
    expect(page.locator("tr.column")).to_have_count(100)
    assert page.locator(".dense tbody").bounding_box()["height"] <= 3 * 900
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 1440
    expect(page.locator("#confirmed-count")).to_have_text("0 of 80 confirmed")
    page.get_by_label("column_0: these limits").focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(page.locator("#confirmed-count")).to_have_text("2 of 80 confirmed")
    page.get_by_label("Confirm all").check()
    expect(page.locator("#confirmed-count")).to_have_text("80 of 80 confirmed")
