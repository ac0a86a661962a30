"""Every door says what is promised in the same words: Python, notebook, terminal, charts, exports, REST,
pages."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from blowfishdb.core.accuracy import NO_PROMISE
from blowfishdb.core.questions.form import KINDS
from blowfishdb.core.questions.kinds import (
    Above,
    Count,
    Cumulative,
    Histogram,
    Kind,
    Quantiles,
    Ranges,
    Sum,
    Top,
)
from blowfishdb.core.questions.promise import EXACT
from blowfishdb.entrypoints.server.web.ask_draft import Draft
from blowfishdb.show import terminal
from blowfishdb.show.charts import answer_chart
from blowfishdb.show.exports import export
from blowfishdb.show.tables import answer_table
from tests.entrypoints.server import DOMAIN, Running, ok, running

API = "/api/v1/datasets/salaries"
RUNS = "In 95 of 100 runs"

SAID: dict[str, tuple[str, dict[str, Any], str]] = {
    "histogram": (
        "histogram(age, bins=4)",
        {"error": 40},
        f"{RUNS} every bar is within 40 people of the truth.",
    ),
    "each": (
        "histogram(age, bins=5)",
        {"error": 40, "each": True},
        f"{RUNS} each bar is within 40 people of the truth.",
    ),
    "cumulative": (
        "cumulative(salary, bins=10)",
        {"error": 40.5, "confidence": 0.9},
        "In 90 of 100 runs every bar is within 40.5 people of the truth.",
    ),
    "ranges": (
        "ranges(salary, 0..9999)",
        {"error": 45},
        f"{RUNS} every bar is within 45 people of the truth.",
    ),
    "quantiles": (
        "median(salary)",
        {"error": 60},
        f"{RUNS} every quantile lies in its noise interval, with ranks off by at most 60 people.",
    ),
    "count": (
        "count() where age >= 30",
        {"error": 50},
        f"{RUNS} the number is within 50 people of the truth.",
    ),
    "count, exact": ("count()", {"epsilon": "1"}, EXACT),
    "sum": ("sum(age)", {"error": 5_000}, f"{RUNS} the sum is within 5,000 of the truth."),
    "mean": ("mean(age)", {"error": 1.5}, f"{RUNS} the mean is within 1.5 of the truth."),
    "top": (
        "top(region, 2)",
        {"error": 80},
        f"{RUNS} no bin is listed that is more than 80 people short of the last place, and none is missed "
        "that is more than 80 above it.",
    ),
    "above": (
        "above(region, 100)",
        {"error": 40},
        f"{RUNS} no bin is listed that is more than 40 people below the limit, and none is missed that is "
        "more than 40 above it.",
    ),
    "partition": (
        "partition(age, 2, bins=4)",
        {"error": 90},
        f"{RUNS} the number of people in every part is within 90 of the truth.",
    ),
    "clusters": ("clusters(age, k=2)", {"epsilon": "1"}, NO_PROMISE),
    "aggregates": (
        "mean(age), count() by region",
        {"epsilon": "1"},
        f"{RUNS} every true value lies in its noise interval.",
    ),
    "aggregates, each": (
        "stddev(age) by region where salary >= 10000",
        {"epsilon": "2"},
        f"{RUNS} every true value lies in its noise interval.",
    ),
    "aggregates, a mean": (
        "mean(age) by region for groups of 100",
        {"error": 5, "confidence": 0.9},
        "In 90 of 100 runs the mean of every group of 100 or more rows is within 5 of the truth. "
        "In 90 of 100 runs every true value lies in its noise interval.",
    ),
    "aggregates, a sum": (
        "sum(age) by region",
        {"error": 4_000},
        f"{RUNS} every number is within 4,000 of the truth. {RUNS} every true value lies in its noise "
        "interval.",
    ),
    "counts": (
        "counts(age < 30 as young, salary > 50000 as rich) by region",
        {"error": 45},
        f"{RUNS} every number is within 45 people of the truth.",
    ),
    "marginals": (
        "marginals(age, region, 1)",
        {"error": 60},
        f"{RUNS} every bar is within 60 people of the truth.",
    ),
    "ranges, rectangles": (
        "ranges(age, salary, (20..29, 0..9999))",
        {"error": 55},
        f"{RUNS} every bar is within 55 people of the truth.",
    ),
    "cumulative, of groups": (
        "cumulative(salary, bins=5) by region",
        {"error": 70},
        f"{RUNS} every cell is within 70 people of the truth.",
    ),
    "adaptive": ("histogram(salary, bins=20)", {"epsilon": "1", "mechanism": "adaptive"}, NO_PROMISE),
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("voice"), budget="1000") as found:
        ok(found.analyst.post(f"{API}/answers", json={"question": "count()", "epsilon": "0.5"}))
        yield found


def plain(text: str) -> str:
    """Words on one line, without marks."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("│", " ").split())


def in_terminal(shown: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(shown)
    return plain(out.getvalue())


def test_every_kind_is_asked() -> None:
    asked = {name.partition(",")[0] for name in SAID}
    assert set(KINDS) <= asked


def test_a_kind_speaks_for_itself() -> None:
    kinds: tuple[Kind, ...] = (
        Histogram(),
        Cumulative(),
        Ranges(((0, 1),)),
        Quantiles((0.5,)),
        Count(),
        Sum(),
        Sum(7, mean=True),
        Top(1),
        Above(2),
    )
    for kind in kinds:
        question, terms, said = SAID[kind.name]
        promised = kind.promise(terms["error"], 0.1 if "confidence" in terms else 0.05, True)
        assert promised == said, question
        assert kind.promise(None, None, False) == NO_PROMISE


@pytest.mark.parametrize("name", SAID)
def test_every_door_prints_the_same_sentence(here: Running, name: str) -> None:
    question, terms, said = SAID[name]
    body = {"question": question, **terms}
    quoted = ok(here.analyst.post(f"{API}/quotes", json=body))
    asking = here.workspace["salaries"].question(question)
    assert quoted["promise"] == said and quoted["kind"] == asking.form.kind
    asking = (
        asking.spend(terms["epsilon"])
        if "epsilon" in terms
        else asking.accurate_to(
            terms["error"], confidence=terms.get("confidence", 0.95), each=terms.get("each", False)
        )
    )
    quote = asking.using(terms.get("mechanism")).quote()
    for words in (str(quote), plain(quote._repr_html_()), in_terminal(terminal.quote_panel(quote))):
        assert said in words
    told = ok(here.analyst.post(f"{API}/answers", json=body))
    assert told["promise"] == said
    answer = here.workspace.answer(told["id"])
    assert answer.promise == said
    for words in (
        plain(answer._repr_html_()),
        in_terminal(terminal.answer_chart(answer)),
        answer_table(answer).caption,
        plain(" ".join(_strings(answer_chart(answer).to_dict()["title"]))),
        plain(export(answer, "html").body.decode()),
    ):
        assert said in words, words
    assert json.loads(export(answer, "json").body)["promise"] == said
    with pa.ipc.open_file(export(answer, "arrow").body) as file:
        assert file.schema.metadata[b"blowfishdb.accuracy"].decode() == said
    listed = ok(here.analyst.get("/api/v1/answers?dataset=salaries"))["answers"]
    assert said in [line["promise"] for line in listed if line["id"] == answer.number]
    browser = here.browser("analyst")
    assert said in plain(browser.get(f"/answers/{answer.number}").text)
    again = Draft.again(answer, DOMAIN)
    if again is None:
        return
    typed, _ = again.asked(DOMAIN, "salaries")
    priced = ok(here.analyst.post(f"{API}/quotes", json=typed.model_dump(exclude_none=True)))
    page = browser.get(f"/datasets/salaries/ask{again.address()}").text
    assert f'<p class="promise">{html.escape(priced["promise"])}</p>' in page


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [part for each in value.values() for part in _strings(each)]
    if isinstance(value, list):
        return [part for each in value for part in _strings(each)]
    return [value] if isinstance(value, str) else []
