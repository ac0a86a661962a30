"""Policies that no sentence about a single column can say: kept, explained, and edited as a file."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.domain import Domain
from blowfishdb.language.policy_file import read_policy
from tests.web.conftest import PageFor
from tests.web.site import Site

POLICY = "/datasets/salaries/policy"


CUBE = """\
blowfishdb: policy/1
dataset: cube
hide: columns together
areas:
  - {columns: [x, y, z], hide within cells: "5"}
"""


@pytest.fixture
def cube(web: Site) -> None:
    """A draft with an area over three columns."""
    if "cube" not in web.workspace:
        file = web.folder / "cube.csv"
        file.write_text("x,y,z\n" + "\n".join(f"{i % 9},{i % 7},{i % 8}" for i in range(90)))
        domain = Domain(x=Integer(0, 9), y=Integer(0, 9), z=Integer(0, 9))
        web.workspace.add_dataset("cube", file, domain=domain)
    domain = web.workspace.facts("cube").domain
    web.workspace.save_draft("cube", read_policy(CUBE, domain, dataset="cube"))


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_an_area_is_edited_as_a_file(page_for: PageFor, web: Site, cube: None, scripts: bool) -> None:
    page = page_for("curator", java_script_enabled=scripts)
    page.goto("/datasets/cube/policy")
    expect(page.locator("#whole")).to_contain_text("speaks about several columns at once")
    expect(page.get_by_label("Which values of x")).to_have_count(0)
    page.get_by_role("link", name="Edit it as a file").click()
    box = page.get_by_label("YAML")
    expect(box).to_be_in_viewport()
    typed = box.input_value()
    assert "hide within: 5}" in typed
    box.fill(typed.replace("hide within: 5}", "hide within: 7}"))
    page.get_by_role("button", name="Keep as the draft").click()
    expect(page.get_by_role("status").filter(has_text="Draft saved")).to_be_visible()
    expect(page.locator("#whole")).to_contain_text("within 7 of each other")
    assert "at most 7 apart" in web.workspace.draft("cube").graph.describe()


def test_an_area_is_left_column_by_column(page_for: PageFor, cube: None) -> None:
    page = page_for("curator")
    page.goto("/datasets/cube/policy")
    page.get_by_role("link", name="Start again, column by column").click()
    expect(page.locator("#whole")).to_have_count(0)
    expect(page.get_by_label("Which values of x")).to_have_value("everything")
    page.get_by_role("link", name="Undo").click()
    expect(page.locator("#whole")).to_be_visible()


def test_what_is_wrong_in_a_file_is_said_above_it(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto(POLICY + "?records=together&hide.salary=within&within.salary=3000&column=age")
    page.get_by_text("The policy as a file").click()
    box = page.get_by_label("YAML")
    assert "salary: {hide within: 3000}" in box.input_value()
    box.fill("blowfishdb: policy/1\ndataset: salaries\nhide: nothing at all\n")
    page.get_by_role("button", name="Keep as the draft").click()
    expect(page.locator("#file .alert.bad")).to_be_visible()
    expect(box).to_have_value("blowfishdb: policy/1\ndataset: salaries\nhide: nothing at all")
    expect(page.get_by_label("Distance in salary")).to_have_value("3000")  # nothing else is lost either
    assert web.workspace.draft("salaries").separable


def test_the_file_follows_the_sentences_until_it_is_edited(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(POLICY)
    page.get_by_text("The policy as a file").click()
    box, distance = page.get_by_label("YAML"), page.get_by_label("Distance in salary")
    distance.fill("2000")
    distance.press("Tab")
    expect(box).to_have_value(re.compile("salary: {hide within: 2000}"))
    box.fill("of my own")
    distance.fill("4000")
    distance.press("Tab")
    expect(page.locator("#change-live")).to_contain_text("within 4,000 of each other")
    expect(box).to_have_value("of my own")
