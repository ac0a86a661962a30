"""An order, a limit and a condition on groups through every door: shown as asked, stored whole."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from rich.console import Console

from blowfishdb.core.questions.arrangement import PARTS
from blowfishdb.show import terminal
from blowfishdb.show.exports import export
from tests.entrypoints.server import Running, ok, running

API = "/api/v1/datasets/salaries"
SQL = (
    "SELECT region, AVG(age) AS m, COUNT(*) FROM salaries GROUP BY region "
    "HAVING COUNT(*) > 10 ORDER BY m DESC LIMIT 2"
)
TERMS = " WITH EPSILON 2"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("arranged"), budget="1000") as found:
        yield found


def test_over_http_it_is_shown_as_asked_and_stored_whole(here: Running) -> None:
    typed = here.workspace["salaries"].sql(SQL)
    key = {"Idempotency-Key": "an order"}
    sent = {"question": typed.form.to_plain(), "epsilon": "2"}
    first = ok(here.analyst.post(f"{API}/answers", json=sent, headers=key))
    again = ok(here.analyst.post(f"{API}/answers", json=sent, headers=key))
    by_sql = ok(here.analyst.post(f"{API}/answers", json={"sql": SQL + TERMS}))
    assert first == again and by_sql["values"] == first["values"] and by_sql["labels"] == first["labels"]
    assert len(first["labels"][0]) == 2 and "noisy" in " ".join(first["notes"])
    stored = ok(here.analyst.get(f"/api/v1/answers/{first['id']}"))
    assert len(stored["labels"][0]) == 4 and "arrangement" not in stored["form"]
    wrong = {
        "question": {**sent["question"], "arrangement": {"order": [{"column": "salary"}]}},
        "epsilon": "2",
    }
    assert here.analyst.post(f"{API}/quotes", json=wrong).status_code == 422


def test_every_part_of_an_arrangement_is_described_and_taken(here: Running) -> None:
    schemas = ok(here.analyst.get("/api/openapi.json"))["components"]["schemas"]
    described = schemas["QuestionBody"]["properties"]["question"]["description"]
    _, _, behind = described.partition("an arrangement of ")
    assert PARTS and all(part in behind for part in PARTS)
    question = {"kind": "histogram", "columns": ["region"], "where": "region in ('north', 'east')"}
    sides = {"kind": "histogram", "columns": ["region", {"name": "age", "edges": [18, 58]}]}
    for asked, arrangement, wanted in (
        (question, {}, [["north", "south", "east", "west"]]),
        (question, {"possible": True}, [["north", "east"]]),
        (question, {"possible": True, "limit": 1, "offset": 1}, [["east"]]),
        (
            question,
            {"possible": False, "order": [{"column": "region", "missing_first": True}], "limit": 1},
            [["east"]],
        ),
        (sides, {"across": ["age"]}, [["north", "south", "east", "west"], ["18–57", "58–97"]]),
        (
            sides,
            {
                "across": ["region", "age"],
                "show": [{"name": "gap", "number": {"sign": "-", "left": {"told": 7}, "right": {"told": 0}}}],
            },
            [["gap"]],
        ),
    ):
        sent = {"question": {**asked, "arrangement": arrangement}, "epsilon": "2"}
        assert ok(here.analyst.post(f"{API}/answers", json=sent))["labels"] == wanted
    for wrong in ({"possible": "yes"}, {"across": ["salary"]}, {"across": "age"}, {"beside": ["age"]}):
        sent = {"question": {**sides, "arrangement": wrong}, "epsilon": "2"}
        assert here.analyst.post(f"{API}/quotes", json=sent).status_code == 422


def test_a_page_shows_it_as_asked(here: Running) -> None:
    browser = here.browser("analyst")
    page = browser.get(f"/datasets/salaries/ask?{urlencode({'mode': 'sql', 'sql': SQL + TERMS})}")
    fields = dict(re.findall(r'name="(quote_id|key|csrf)" value="([^"]*)"', page.text))
    done = browser.post("/datasets/salaries/ask", data=fields, follow_redirects=False)
    assert done.status_code == 303 and "asked=" in done.headers["location"]
    shown = browser.get(done.headers["location"]).text
    whole = browser.get(done.headers["location"].partition("?")[0]).text
    assert "Show the whole answer" in shown and "2 of 4 groups" in shown
    assert (
        len(
            re.findall(
                r"<td[^>]*>(?:north|south|east|west)</td>|<th[^>]*>(?:north|south|east|west)</th>", shown
            )
        )
        == 2
    )
    assert "2 of 4 groups" not in whole
    other = browser.get(done.headers["location"].replace("mean", "sum"))
    assert other.status_code == 200 and "2 of 4 groups" not in other.text  # the order of another question
    assert browser.get(done.headers["location"].partition("?")[0] + "?asked=nonsense").status_code == 422


def test_a_terminal_and_files_show_it_as_asked(here: Running) -> None:
    answer = here.workspace["salaries"].sql(SQL + TERMS).ask()
    out = io.StringIO()
    Console(file=out, width=120).print(terminal.answer_chart(answer))
    names = answer.labels[0]
    assert out.getvalue().index(names[0]) < out.getvalue().index(names[1])
    assert "2 of 4 groups" in out.getvalue()
    assert export(answer, "csv").body.decode("utf-8-sig").count("\r\n") == 1 + 4
    several = here.workspace["salaries"].question(
        "histogram(age(bins=3), region) order by count() desc limit 5"
    )
    listed = several.accurate_to(40).ask()
    out = io.StringIO()
    Console(file=out, width=120).print(terminal.answer_chart(listed))
    assert out.getvalue().count("–") >= 5 and len(listed.columns()["region"]) == 5
    assert export(listed, "svg").body and export(listed, "html").body
