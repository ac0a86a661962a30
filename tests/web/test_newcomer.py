"""From the front door to a first private answer by what is offered, in few steps and without one error."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from blowfishdb.adapters.accounts import Accounts
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import CHEAP, PASSWORD, ROLES
from tests.entrypoints.server import SETTINGS as REAL
from tests.web.conftest import PageFor
from tests.web.hands import WAYS, Way
from tests.web.newcomer import Newcomer, from_the_door_to_an_answer
from tests.web.site import Site, site

MOST_STEPS = 25


def make_nothing(folder: Path) -> Path:
    """A workspace with its users and nothing else."""
    place = folder / "new.blowfish"
    with Workspace(place, user="curator") as workspace:
        accounts = Accounts(workspace.store, hasher=CHEAP)
        for name, role in ROLES.items():
            accounts.add(name, role, PASSWORD)
    return place


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("newcomer")
    with site(folder, settings=REAL, make=make_nothing, questions=()) as running:
        yield running


def adults(folder: Path, name: str) -> Path:
    """A file like those that people have: numbers, texts with spaces, a rare value."""
    drawn = random.Random(name)
    lines = ["age,work,weight,sex,hours,income"]
    for number in range(600):
        work = "Never-worked" if number == 7 else drawn.choice(["Private", "State gov", "?"])
        income = ">50K" if drawn.random() < 0.3 else "<=50K"
        lines.append(
            f"{drawn.randint(17, 90)},{work},{drawn.randint(12_285, 99_705)},"
            f"{drawn.choice(['Male', 'Female'])},{drawn.randint(1, 99)},{income}"
        )
    file = folder / f"{name}.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


TRIED = (Way("mouse", 390, "light"), Way("plain", 768, "dark"))
"""The others are tried by audits."""


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, id=str(way), marks=() if way in TRIED else pytest.mark.thorough)
        for way in dict.fromkeys((*TRIED, *WAYS))
    ],
)
def test_a_newcomer_gets_an_answer_in_few_steps(
    page_for: PageFor, web: Site, tmp_path: Path, way: Way
) -> None:
    name = f"adults-{way}"
    newcomer = Newcomer(page_for(None, **way.options), way=way)
    from_the_door_to_an_answer(newcomer, adults(tmp_path, name))
    assert len(newcomer.steps) <= MOST_STEPS, newcomer.steps
    facts = web.workspace.facts(name)
    assert (facts.standing, facts.policy_version, facts.face.owner) == ("open", 2, "curator")
    (answer,) = web.workspace.answers(name)
    assert answer.receipt.epsilon.nano > 0
    assert answer.receipt.question.startswith("cumulative of age")  # not of the weight with the most values
    assert web.workspace.source(name).location == ""  # nothing of the file is kept but the copy
    assert list(web.folder.glob("*.copies/upload-*")) == []


def test_an_analyst_waits_until_it_is_open(page_for: PageFor, web: Site, tmp_path: Path) -> None:
    curator = page_for("curator")
    curator.goto("/import")
    curator.get_by_label("Choose a file").set_input_files(adults(tmp_path, "waiting"))
    curator.get_by_role("button", name="Send it").click()
    curator.get_by_label("Confirm all").check()
    curator.get_by_role("button", name="Declare the dataset").click()
    expect(curator.get_by_role("heading", level=1)).to_have_text("What must stay hidden in waiting?")
    analyst = page_for("analyst")
    analyst.goto("/datasets/waiting")
    expect(analyst.locator(".standing")).to_have_text("not open yet")
    expect(analyst.get_by_role("link", name="Ask a question")).to_have_count(0)
    analyst.goto("/datasets/waiting/ask")
    expect(analyst.locator("main")).to_contain_text("not open yet")


def test_a_column_can_be_corrected_before_anything_is_asked(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto("/datasets/waiting/columns")
    page.get_by_label("Highest of hours").fill("$ 120")
    page.get_by_role("button", name="Declare the columns anew").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What must stay hidden in waiting?")
    assert str(web.workspace.facts("waiting").domain["hours"].describe()).count("120")
    page.goto("/datasets/adults-mouse-390-light/columns")
    expect(page.locator("main")).to_contain_text("Questions were asked, so the columns stay as they are.")


def test_a_dataset_introduces_itself_and_is_listed_if_its_curator_says_so(
    page_for: PageFor, web: Site
) -> None:
    visitor = page_for(None)
    visitor.goto("/")
    expect(visitor.locator("main")).to_contain_text(
        "No curator of this server has made a promise public yet."
    )
    page = page_for("curator")
    page.goto("/datasets/adults-mouse-390-light/about")
    page.get_by_label("Title", exact=True).fill("Adults of 1994")
    page.get_by_label("Whom to write to").fill("census@example.org")
    page.get_by_label("Show its promise on the front page").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Adults of 1994")
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask about Adults of 1994")
    visitor.reload()
    listed = visitor.locator(".promises li")
    expect(listed).to_contain_text("at most 73 % sure")
    expect(listed).to_contain_text("census@example.org")
    listed.get_by_role("link", name="Adults of 1994").click()
    expect(visitor.get_by_role("heading", level=1)).to_contain_text("Adults of 1994")


def test_a_closed_dataset_takes_no_questions(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto("/datasets/adults-mouse-390-light/about")
    page.get_by_role("button", name="Close it").click()
    expect(page.locator(".standing")).to_have_text("closed")
    page.goto("/datasets/adults-mouse-390-light/ask")
    expect(page.locator("main")).to_contain_text("closed to new questions")
    page.goto("/datasets/adults-mouse-390-light/about")
    page.get_by_role("button", name="Open it again").click()
    expect(page.locator(".standing")).to_have_text("open")


@pytest.mark.parametrize("name", ["sheet.xlsx", "empty.csv"])
def test_a_file_that_cannot_be_used_is_told_at_its_field(
    page_for: PageFor, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.write_bytes(b"" if name == "empty.csv" else b"PK")
    page = page_for("curator")
    page.goto("/import")
    page.get_by_label("Choose a file").set_input_files(file)
    page.get_by_role("button", name="Send it").click()
    expect(page.locator("#wrong-file")).to_be_visible()
    assert page.get_by_label("Choose a file").get_attribute("aria-invalid") == "true"


def test_the_arrow_keys_walk_through_many_columns(page_for: PageFor, web: Site, tmp_path: Path) -> None:
    names = [f"q{number:03}" for number in range(30)]
    rows = [",".join(str((row * 7 + column) % 40) for column in range(30)) for row in range(60)]
    file = tmp_path / "wide.csv"
    file.write_text("\n".join([",".join(names), *rows]) + "\n")
    page: Any = page_for("curator", viewport={"width": 1440, "height": 1000})
    page.goto("/import")
    page.get_by_label("Choose a file").set_input_files(file)
    page.get_by_role("button", name="Send it").click()
    expect(page.locator("tr.column")).to_have_count(30)
    height = page.locator(".dense").evaluate("table => table.scrollHeight")
    assert height <= 33 * 31, "a hundred columns fit three screens and a bit"
    page.get_by_label("q000: these limits").focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(page.locator("#confirmed-count")).to_have_text("2 of 30 confirmed")
    page.get_by_label("Confirm all").check()
    expect(page.locator("#confirmed-count")).to_have_text("30 of 30 confirmed")
