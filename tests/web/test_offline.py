"""Nothing leaves the machine, and nothing true reaches an analyst.

That a window asks no other host and logs no error is checked by ``page_for`` for every test of pages; here
every page is opened once more, over data whose true counts can be told from everything else on a page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import blowfishdb as bf
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import CHEAP, PASSWORD, ROLES
from tests.web.conftest import PageFor
from tests.web.pages import PAGES, Page
from tests.web.site import Site, site

REGIONS = {"north": 7919, "south": 6101, "east": 8317, "west": 9433}
"""Primes, so that no other number on a page is one of them by accident."""
LARGEST = 98_731
DOMAIN = bf.Domain(salary=bf.Integer(0, 99_999), age=bf.Integer(18, 97), region=bf.Category(tuple(REGIONS)))
BINS = 20
CUTS = 2 * BINS
"""Noise tells some of the counts by accident; twice as many leave enough that it did not."""
FOR_ANALYSTS = [page for page in PAGES if page.role in (None, "analyst")]


def make(folder: Path) -> Path:
    """A workspace like the others', with distinctive rows."""
    path, place = folder / "salaries.duckdb", folder / "server.blowfish"
    with duckdb.connect(str(path)) as connection:
        parts = " UNION ALL ".join(
            f"SELECT (i * 7919 % {LARGEST + 1})::INT AS salary, (18 + i % 80)::INT AS age, "
            f"'{region}' AS region FROM range({count}) t(i)"
            for region, count in REGIONS.items()
        )
        connection.execute(f"CREATE TABLE salaries AS {parts}")
    with Workspace(place, user="curator") as workspace:
        salaries = workspace.add_dataset("salaries", path, domain=DOMAIN, table="salaries")
        salary = DOMAIN["salary"]
        graph = bf.graphs.Threshold(salary.size, salary.threshold(1_000))
        salaries.publish(bf.Policy.by_column(DOMAIN, {"salary": graph}))
        salaries.budget.set("5")
        for name, role in ROLES.items():
            Accounts(workspace.store, hasher=CHEAP).add(name, role, PASSWORD)
    return place


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """In place of the usual one."""
    with site(tmp_path_factory.mktemp("offline"), make=make) as running:
        yield running


@pytest.fixture(scope="module")
def true_numbers(web: Site) -> set[int]:
    """Counts at many limits, and the largest value, unless noise told one of them by accident."""
    with duckdb.connect(str(web.folder / "salaries.duckdb"), read_only=True) as connection:
        width = 100_000 // CUTS
        below = [
            connection.execute(f"SELECT count(*) FROM salaries WHERE salary < {end}").fetchone()
            for end in range(width, 100_000, width)
        ]
    counts = {*REGIONS.values(), LARGEST, *(found[0] for found in below if found)}
    released = {number for answer in web.workspace.answers() for number in _released(answer)}
    secret = {count for count in counts if count > 1_000} - released
    assert len(secret) >= BINS  # otherwise this would test little
    return secret


def _released(answer: Any) -> set[int]:
    """The numbers of an answer and of its noise intervals, which a true one may equal by accident."""
    numbers = {round(value) for part in (answer.values, answer.raw) for value in part}
    return numbers | {round(value + side * answer.alpha) for value in answer.values for side in (-1, 1)}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=() if number % 3 == 0 else pytest.mark.thorough)
        for number, page in enumerate(FOR_ANALYSTS)
    ],
)
def test_no_true_number_is_on_a_page_for_analysts(
    page: Page, page_for: PageFor, web: Site, true_numbers: set[int]
) -> None:
    window = page_for(page.role)
    texts: list[str] = []
    window.on("response", lambda response: texts.append(_text(response)))
    page.show(window, web)
    shown = "\n".join(texts)
    assert "<h1>" in shown
    assert whole_numbers(shown) & true_numbers == set()


def test_the_search_would_find_a_true_number(web: Site) -> None:
    salaries = web.workspace["salaries"]
    preview = salaries.preview(salaries.question("histogram(region)").accurate_to(50))
    assert whole_numbers(json.dumps(preview.to_plain())) >= set(REGIONS.values())
    assert whole_numbers("<td>7,919</td>[1,8317.0,2]") >= {7919, 8317}


def whole_numbers(text: str) -> set[int]:
    """Every whole number in a text, with and without commas between its thousands."""
    plain = re.findall(r"(?<![\w.])(\d+)(?:\.0+)?(?!\w|\.\d)", text)
    grouped = re.findall(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?!\w|\.\d)", text)
    return {int(number.replace(",", "")) for number in (*plain, *grouped)}


def _text(response: Any) -> str:
    """What the server sent, charts and all; a redirect and a library have nothing to look through."""
    kind = response.headers.get("content-type", "")
    moved = 300 <= response.status < 400
    return str(response.text()) if not moved and kind.startswith(("text/html", "application/")) else ""
