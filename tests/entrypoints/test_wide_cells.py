"""Sums and means over cells of several values: every door says how values count, and what holds."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

import blowfishdb as bf
from blowfishdb.show import terminal
from blowfishdb.show.charts import answer_chart
from blowfishdb.show.exports import export
from blowfishdb.show.tables import answer_table

from .commands import people
from .server import Running, ok, running

API = "/api/v1/datasets/pays"
PAYS = [7 * k % 1_000 for k in range(400)]
NOTE = (
    "pay: a value counts as the middle of its cell of 100, so it may be 49.5 off; "
    "the error of the {} includes that."
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("wide"), budget="100") as found:
        domain = bf.Domain(pay=bf.Integer(0, 999, step=100), level=bf.Integer(0, 3))
        rows = pa.table({"pay": PAYS, "level": [k % 4 for k in range(400)]})
        pays = found.workspace.add_dataset("pays", rows, domain=domain)
        hidden = {"pay": bf.graphs.Threshold(10, 1), "level": bf.graphs.Explicit(4, [])}
        pays.publish(bf.Policy.by_column(domain, hidden))
        pays.budget.set(100)
        yield found


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("│", " ").split())


def in_terminal(shown: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=240).print(shown)
    return plain(out.getvalue())


@pytest.mark.parametrize(
    ("question", "kind", "error", "truth"),
    [
        ("sum(pay)", "sum", 25_000, sum(PAYS)),
        ("mean(pay)", "mean", 60, sum(PAYS) / 400),
        ("mean(pay) where level = 2", "mean", 70, sum(PAYS[2::4]) / 100),
    ],
)
def test_every_door_says_how_values_count(
    here: Running, question: str, kind: str, error: float, truth: float
) -> None:
    said, note = f"In 95 of 100 runs the {kind} is within {error:,} of the truth.", NOTE.format(kind)
    body = {"question": question, "error": error}
    refused = here.analyst.post(f"{API}/quotes", json=body)
    if refused.status_code != 200:
        problem = refused.json()
        assert problem["type"].endswith("not-counted"), problem
        count = problem["fixes"][0].removeprefix("ask for ").partition(" first")[0]
        ok(here.analyst.post(f"{API}/answers", json={"question": count, "epsilon": "1"}))
    quoted = ok(here.analyst.post(f"{API}/quotes", json=body))
    assert quoted["promise"] == said and quoted["notes"][0] == note and quoted["exact"] is False
    asking = here.workspace["pays"].question(question).accurate_to(error)
    quote = asking.quote()
    for words in (plain(quote._repr_html_()), in_terminal(terminal.quote_panel(quote))):
        assert said in words and note in words
    told = ok(here.analyst.post(f"{API}/answers", json=body))
    assert told["promise"] == said and told["notes"][0] == note
    assert told["low"][0] <= truth <= told["high"][0]
    assert told["high"][0] - told["low"][0] == pytest.approx(2 * error)
    answer = here.workspace.answer(told["id"])
    for words in (
        plain(answer._repr_html_()),
        in_terminal(terminal.answer_chart(answer)),
        answer_table(answer).caption,
        plain(export(answer, "html").body.decode()),
        plain(export(answer, "csv").body.decode()),
    ):
        assert note in words, words
    assert "middle of its cell" in json.dumps(answer_chart(answer).to_dict()["title"])
    assert json.loads(export(answer, "json").body)["notes"][0] == note
    browser = here.browser("analyst")
    page = plain(browser.get(f"/answers/{told['id']}").text)
    assert said in page and note in page
    shape, _, where = question.partition(" where ")
    address = f"/datasets/pays/ask?column=pay&shape={kind}&error={error + 1}&where={where}"
    page = plain(browser.get(address).text)
    assert f"within {error:,} of the truth" in page and note in page, shape  # as closely as it is answered


@pytest.mark.parametrize(("question", "off"), [("sum(pay)", "19,800"), ("mean(pay)", "49.5")])
def test_an_error_smaller_than_the_cells_is_refused_everywhere(
    here: Running, question: str, off: str
) -> None:
    ok(here.analyst.post(f"{API}/answers", json={"question": "count()", "epsilon": "1"}))
    body = {"question": question, "error": float(off.replace(",", ""))}
    for door in ("quotes", "answers"):
        problem = ok(here.analyst.post(f"{API}/{door}", json=body), 422)
        assert f"may be {off} off without any noise" in problem["detail"]
        assert problem["fixes"][0] == f"allow an error of more than {off}"
    kind = question.partition("(")[0]
    page = plain(here.browser("analyst").get(f"/datasets/pays/ask?column=pay&shape={kind}&error=1").text)
    assert f"may be {off} off without any noise" in page and f"allow an error of more than {off}" in page


def test_an_answer_page_does_not_lead_to_an_error_that_is_refused(here: Running) -> None:
    browser = here.browser("analyst")
    for question, error, leads in (("mean(pay)", 90, False), ("mean(level)", 0.5, True)):
        told = ok(here.analyst.post(f"{API}/answers", json={"question": question, "error": error}))
        page = browser.get(f"/answers/{told['id']}").text
        assert (f"error={error / 2:g}" in page) is leads


def test_the_command_line_counts_first_and_says_how_values_count(tmp_path: Path) -> None:
    shell = people(tmp_path)
    asked = ("ask", "people", "mean(salary)", "--error", "900", "--yes", "--max-cost", "90")
    shown = " ".join(shell.must(*asked).out.replace("│", " ").split())
    assert "within 900 of the truth" in shown
    assert "a value counts as the middle of its cell of 1,000, so it may be 499.5 off" in shown
    refused = shell("ask", "people", "mean(salary)", "--error", "400", "--yes", "--max-cost", "90")
    assert refused.code and "allow an error of more than 499.5" in " ".join(refused.err.split())
