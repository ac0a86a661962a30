"""Numbers of thousands of digits, conditions of hundreds of levels, what JSON cannot say: all refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest

import blowfishdb as bf
from blowfishdb.core.domain.predicates import DEEPEST
from blowfishdb.core.errors import BlowfishError, InvalidEpsilon, InvalidPredicate
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.columns import typed_distance
from tests.entrypoints.commands import people
from tests.entrypoints.server import Running, TestClient, running

DATASET = "/api/v1/datasets/salaries"
DIGITS = "9" * 4_000
AMOUNTS = (
    DIGITS,
    "9" * 4_299,
    "1e399",
    "1e400",
    "1e999999999",
    "-1",
    "nan",
    "Infinity",
    "sNaN",
    "1/0",
    "",
    " ",
)
RAW = (
    DIGITS,
    "9" * 5_000,
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    '"\\ud800"',
    '"a\\u0000b"',
    "[]",
    "{}",
    "-1",
)
"""JSON as it travels, some of it beyond what JSON allows."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("huge"), rows=200, budget="50") as found:
        yield found


@pytest.fixture(scope="module")
def curator(here: Running) -> TestClient:
    """A curator to whom a failure of the server is an answer, not an exception."""
    return TestClient(here.app, headers=here.curator.headers, raise_server_exceptions=False)


def refused(response: Any) -> dict[str, Any]:
    """A refusal in words that a person can read, which says that nothing was charged."""
    assert 400 <= response.status_code < 500, (response.status_code, response.text[:500])
    said: dict[str, Any] = response.json()
    assert said["charged"] is False and len(said["detail"]) < 1_000, said["detail"][:200]
    return said


ENTRIES = [
    ("POST", "/quotes", '{"question": "histogram(region)", "epsilon": %s}'),
    ("POST", "/explain", '{"question": "histogram(region)", "epsilon": %s}'),
    ("POST", "/answers", '{"question": "histogram(region)", "epsilon": %s}'),
    ("POST", "/answers", '{"question": "histogram(region)", "error": 50, "max_cost": %s}'),
    ("POST", "/quotes", '{"sql": "SELECT COUNT(*) FROM salaries GROUP BY region", "epsilon": %s}'),
    ("POST", "/tradeoff", '{"question": "histogram(region)", "error": 50, "column": "salary", '
     '"thresholds": [5], "at_epsilon": %s}'),
    ("POST", "/preview", '{"question": "histogram(region)", "stand_in": true, "epsilon": %s}'),
    ("PUT", "/budget", '{"total": %s}'),
    ("PUT", "/grants/analyst", '{"epsilon": %s}'),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body"), ENTRIES, ids=lambda text: str(text)[:40])
def test_an_epsilon_of_any_length_is_a_refusal(
    curator: TestClient, here: Running, method: str, path: str, body: str
) -> None:
    before = len(here.workspace.events())
    for value in [json.dumps(amount) for amount in AMOUNTS] + list(RAW):
        sent = (body % value).encode()
        response = curator.request(
            method, DATASET + path, content=sent, headers={"Content-Type": "application/json"}
        )
        refused(response)
    assert len(here.workspace.events()) == before


@pytest.mark.parametrize("field", ["error", "confidence"])
def test_so_is_an_accuracy(curator: TestClient, field: str) -> None:
    for value in [json.dumps(amount) for amount in AMOUNTS] + list(RAW):
        terms = {"error": "50", "confidence": "0.95", field: value}
        numbers = f'"error": {terms["error"]}, "confidence": {terms["confidence"]}'
        sent = f'{{"question": "histogram(region)", {numbers}}}'
        refused(
            curator.post(
                f"{DATASET}/quotes", content=sent.encode(), headers={"Content-Type": "application/json"}
            )
        )


@pytest.mark.parametrize("value", [DIGITS, "1e400", "nan", "inf", "-1", "sNaN"])
def test_so_it_is_on_pages(here: Running, value: str) -> None:
    browser = here.browser("curator")
    page = TestClient(here.app, cookies=browser.cookies, raise_server_exceptions=False)
    for address in (
        f"/datasets/salaries/policy?confidence={value}",
        f"/datasets/salaries/policy?error={value}",
        f"/datasets/salaries/policy?terms=epsilon&epsilon={value}",
        f"/datasets/salaries/tradeoff?error={value}&confidence={value}",
        f"/datasets/salaries/ask?kind=histogram&column=region&error={value}",
        f"/datasets/salaries/ask?kind=histogram&column=region&confidence={value}",
        f"/datasets/salaries/ask?kind=histogram&column=region&terms=epsilon&epsilon={value}",
        f"/answers?page={value}",
        f"/answers/{value}",
    ):
        assert page.get(address).status_code < 500, address
    sent = {"csrf": _field(browser.get("/datasets/salaries/budget").text)}
    for address, form in (
        ("/datasets/salaries/budget", {"total": value}),
        ("/datasets/salaries/budget/grant", {"user": "analyst", "epsilon": value}),
        ("/datasets/salaries/access/token", {"label": "x", "days": value}),
    ):
        answer = page.post(address, data={**sent, **form}, follow_redirects=False)
        assert answer.status_code < 500, address


LIMITS = [
    {"lo": "1e999999999", "hi": 1, "grid": 1},
    {"lo": 0, "hi": "1e999999999", "grid": 1},
    {"lo": 0, "hi": 1, "grid": "1e-999999999"},
    {"lo": 0, "hi": 1, "grid": "1/0"},
    {"lo": "nan", "hi": 1, "grid": 1},
    {"lo": None, "hi": 1, "grid": 1},
]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_so_are_limits_of_a_column(curator: TestClient, limits: dict[str, Any]) -> None:
    """Without writing out a number of a billion digits."""
    column = {"kind": "real", **limits}
    refused(curator.patch(f"{DATASET}/schema", json={"columns": {"age": column}}))
    new = {"name": "new", "source": "nowhere.csv", "domain": {"age": column}}
    assert "name" not in refused(curator.post("/api/v1/datasets", json=new))["detail"]


def test_so_are_distances(curator: TestClient) -> None:
    ball = {"kind": "ball", "shape": [100_000, 80, 4], "theta": "1e999999999", "power": 2}
    refused(curator.put(f"{DATASET}/policy", json={"graph": ball}))
    days = bf.Date("2020-01-01", "2020-12-31", "day")
    for amount in (DIGITS, "9" * 5_000):
        with pytest.raises(BlowfishError):
            typed_distance(days, f"{amount} days")


def test_decimals_of_a_column_are_those_that_were_sent() -> None:
    column = codec.attribute({"kind": "real", "lo": 0, "hi": 0.3, "grid": 0.1})
    assert column == bf.Real("0", "0.3", "0.1") == codec.attribute(codec.plain(column))


def _field(page: str) -> str:
    return page.split('name="csrf" value="', 1)[1].split('"', 1)[0]


def test_so_it_is_on_the_command_line(tmp_path: Any) -> None:
    shell = people(tmp_path)
    for command in (
        ("budget", "people", "--total", DIGITS),
        ("budget", "people", "--grant", f"ana={DIGITS}"),
        ("quote", "people", "count()", "--epsilon", DIGITS),
        ("quote", "people", "count()", "--error", DIGITS),
        ("quote", "people", "count()", "--error", "50", "--confidence", DIGITS),
        ("ask", "people", "count()", "--error", "50", "--max-cost", DIGITS, "--yes"),
    ):
        done = shell(*command)
        assert done.code not in (0, 1) and "Traceback" not in done.err, (command, done.err)


@pytest.mark.parametrize(
    "value", [DIGITS, 10**5_000, 10**400, 1e300, "1e16", Decimal("sNaN"), float("inf")], ids=lambda _: ""
)
def test_so_it_is_in_python(value: Any) -> None:
    with pytest.raises(InvalidEpsilon) as told:
        bf.Epsilon(value)
    assert len(str(told.value)) < 500


def test_so_are_the_numbers_of_a_question_in_python(here: Running) -> None:
    salaries = here.workspace["salaries"]
    for build in (
        lambda: salaries["region"].histogram().accurate_to(10**400),
        lambda: salaries["region"].histogram().accurate_to(50, confidence=float("inf")),
        lambda: salaries["region"].histogram().accurate_to(50, confidence=10**5_000),
        lambda: salaries["salary"].histogram(width=10**5_000).accurate_to(50).quote(),
        lambda: salaries["salary"].ranges([(0, 10**5_000)]).accurate_to(50).quote(),
        lambda: salaries["salary"].quantiles([10**5_000]).accurate_to(50).quote(),
        lambda: bf.Integer(0, 10**5_000),
    ):
        with pytest.raises(BlowfishError):
            build()


# --- depth ------------------------------------------------------------------------------------


def nested(levels: int, op: str) -> dict[str, Any]:
    """A condition of so many levels above its comparison."""
    found: dict[str, Any] = {"column": "age", "op": ">", "value": 20}
    for level in range(levels):
        beside = {"column": "age", "op": "<", "value": 60 + level % 30}
        joined = ("and", "or")[level % 2] if op == "mixed" else op
        found = {"op": joined, "of": [found] if op == "not" else [found, beside]}
    return found


@pytest.mark.parametrize("op", ["not", "mixed"])
@pytest.mark.parametrize("levels", [65, 75, 100, 300])
def test_a_deep_condition_is_refused_everywhere(curator: TestClient, op: str, levels: int) -> None:
    where = nested(levels, op)
    question = {"kind": "histogram", "columns": [{"name": "region"}], "where": where}
    for path in ("quotes", "explain", "answers", "preview"):
        refused(curator.post(f"{DATASET}/{path}", json={"question": question, "epsilon": "0.01"}))
    batch = [{"dataset": "salaries", "question": question, "epsilon": "0.01"}]
    refused(curator.post("/api/v1/batches", json={"questions": batch}))
    known = {"counts": [{"where": where}]}
    refused(curator.put(f"{DATASET}/policy", json={"columns": {}, "known": known}))


@pytest.mark.parametrize("op", ["not", "mixed"])
def test_one_that_is_not_too_deep_is_answered(curator: TestClient, op: str) -> None:
    question = {"kind": "histogram", "columns": [{"name": "region"}], "where": nested(60, op)}
    answer = curator.post(f"{DATASET}/answers", json={"question": question, "epsilon": "0.01"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "where",
    ["(" * 300 + "age > 30" + ")" * 300, "not " * 300 + "age > 30", "not (" * 300 + "age > 30" + ")" * 300],
    ids=["parentheses", "not", "both"],
)
def test_a_deep_text_is_refused_everywhere(curator: TestClient, here: Running, where: str) -> None:
    for body in (
        {"question": f"histogram(region) where {where}"},
        {"question": {"kind": "histogram", "columns": [{"name": "region"}], "where": where}},
        {"sql": f"SELECT region, COUNT(*) FROM salaries WHERE {where} GROUP BY region"},
    ):
        for path in ("quotes", "answers"):
            refused(curator.post(f"{DATASET}/{path}", json={**body, "epsilon": "0.01"}))
    page = here.browser("analyst").get(f"/datasets/salaries/ask?kind=histogram&where={quote(where)}")
    assert page.status_code == 200


def test_a_deep_condition_is_refused_where_it_is_built() -> None:
    made = bf.col("age") > 20
    for level in range(DEEPEST):
        made = ~made if level % 2 else made & (bf.col("age") < level)
    with pytest.raises(InvalidPredicate, match="nested too deeply"):
        _ = ~made
    wide = made
    for level in range(200):
        wide = bf.col("age") > level if level == 0 else wide & (bf.col("age") > level)
    assert str(wide).count(" and ") == 199


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("levels", [151, 300, 900])
def test_deep_json_is_refused_by_every_body(
    curator: TestClient, here: Running, kind: str, levels: int
) -> None:
    deep: Any = 1
    for _ in range(levels):
        deep = [deep] if kind == "list" else {"a": deep}
    for method, path, body in (
        ("POST", f"{DATASET}/answers", {"question": deep, "epsilon": "0.01"}),
        ("POST", "/api/v1/batches", {"questions": [{"dataset": "salaries", "question": deep, "error": 5}]}),
        ("PUT", f"{DATASET}/policy", {"graph": deep}),
        ("PUT", f"{DATASET}/policy", {"columns": {}, "known": deep}),
        ("POST", "/api/v1/datasets", {"name": "x", "source": "x.csv", "domain": {"a": deep}}),
        ("PATCH", f"{DATASET}/schema", {"columns": {"age": deep}}),
        ("POST", "/api/v1/tokens", {"label": deep}),
    ):
        refused(curator.request(method, path, json=body))


def test_an_address_without_end_is_refused(curator: TestClient) -> None:
    for address in (f"/api/v1/answers/{'9' * 5_000}", f"/api/v1/datasets/{'x' * 5_000}"):
        assert refused(curator.get(address))["status"] == 414
    assert refused(curator.get(f"/api/v1/answers/{'9' * 1_000}"))["status"] == 404
    assert curator.get(f"/answers/{'9' * 5_000}").status_code == 414
