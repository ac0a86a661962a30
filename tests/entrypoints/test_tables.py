"""Several tables through every door: command line, API, client, and the form of the Import page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy import codec
from blowfishdb.workspace.remote import Remote
from tests.entrypoints.commands import Shell
from tests.entrypoints.server import Running, ok, running
from tests.pgwire.door import door_of

PLAIN: dict[str, Any] = {
    "people": {"kind": "people", "key": "id"},
    "orders": {"kind": "child", "of": "people", "by": "person", "key": "number", "rows_per_person": 3},
    "regions": {"kind": "lookup", "of": "people", "by": "region", "key": "code"},
}
COLUMNS: dict[str, Any] = {
    "people.age": {"kind": "integer", "lo": 18, "hi": 90, "step": 1, "missing": "public", "outside": "clamp"},
    "regions.name": {"kind": "category", "values": ["north", "south"], "missing": "public"},
    "orders.amount": {"kind": "integer", "lo": 0, "hi": 99, "step": 1},
}
FILE = """
tables:
  people: {kind: people, key: id}
  orders: {kind: child, of: people, by: person, key: number, rows_per_person: 3}
  regions: {kind: lookup, of: people, by: region, key: code}
"""


def make_shop(folder: Path) -> Path:
    """400 people, and 2,000 orders, of which some are nobody's who is in the table."""
    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE people AS SELECT i AS id, 20 + i % 60 AS age, ['n', 's'][1 + i % 2] AS region "
            "FROM range(400) t(i)"
        )
        made.execute(
            "CREATE TABLE orders AS SELECT i AS number, i % 410 AS person, i * 7 % 100 AS amount "
            "FROM range(2000) t(i)"
        )
        made.execute("CREATE TABLE regions AS SELECT 'n' AS code, 'north' AS name UNION SELECT 's', 'south'")
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("tables")) as found:
        make_shop(found.folder)
        yield found


def test_over_the_api_and_by_the_client(server: Running) -> None:
    curator, analyst = server.as_role("curator"), server.as_role("analyst")
    where = {"source": str(server.folder / "shop.duckdb"), "tables": PLAIN}
    proposed = ok(curator.post("/api/v1/datasets/proposal", json=where))
    assert [column["name"] for column in proposed["columns"]] == [
        *list(COLUMNS)[:1],
        "orders.amount",
        "regions.name",
    ]
    assert [column["some_missing"] for column in proposed["columns"]] == [True, False, True]
    wrong = {**where, "name": "shop", "domain": COLUMNS, "table": "people"}
    assert curator.post("/api/v1/datasets", json=wrong).status_code == 422
    unkeyed = {**where, "name": "shop", "domain": {**COLUMNS, "people.id": COLUMNS["people.age"]}}
    assert "is a key" in curator.post("/api/v1/datasets", json=unkeyed).json()["detail"]
    shown = ok(curator.post("/api/v1/datasets", json={**where, "name": "shop", "domain": COLUMNS}), 201)
    assert [table["name"] for table in shown["tables"]] == ["people", "orders"]
    assert shown["keys"] == [["orders.person", "people.id"], ["people.region", "regions.code"]]
    ok(curator.put("/api/v1/datasets/shop/budget", json={"total": "20"}))
    assert ok(analyst.get("/api/v1/datasets/shop.orders"))["rows_per_person"] == 3
    text = "SELECT regions.name, AVG(orders.amount) FROM orders GROUP BY regions.name WITH EPSILON 1"
    asked = ok(analyst.post("/api/v1/datasets/shop/answers", json={"sql": text}))
    assert asked["receipt"]["dataset"] == "shop.orders" and asked["receipt"]["epsilon"] == "0.999999999"
    total = ok(
        analyst.post(
            "/api/v1/datasets/shop/quotes", json={"sql": "SELECT COUNT(*) FROM orders WITH EPSILON 1"}
        )
    )
    taken = ok(analyst.post("/api/v1/datasets/shop/answers", json={"quote_id": total["quote_id"]}))
    assert total["dataset"] == taken["receipt"]["dataset"] == "shop.orders"
    short = {"question": "histogram(people.age, width=10)", "epsilon": "1"}
    assert ok(analyst.post("/api/v1/datasets/shop.orders/quotes", json=short))["dataset"] == "shop.orders"
    assert ok(analyst.post("/api/v1/datasets/shop/quotes", json=short))["dataset"] == "shop.people"
    assert curator.put("/api/v1/datasets/shop.orders/budget", json={"total": "9"}).status_code == 422
    token = str(analyst.headers["Authorization"]).removeprefix("Bearer ")
    with Remote("http://testserver", token, transport=analyst._transport) as client:
        shop = client["shop"]
        assert shop.table("orders").count().spend(1).ask().values.tolist() == [1230]
        answer = shop.by("regions.name").mean("orders.amount").spend(1).ask()
        assert answer.receipt.cost == bf.Epsilon(0)  # the same question as in SQL
        assert client.answers("shop")[-1].receipt.dataset == "shop.orders"


def test_the_form_of_the_import_page(server: Running) -> None:
    browser = server.browser("curator")
    page = browser.get("/import").text
    token = re.findall(r'name="csrf" value="([^"]*)"', page)[0]
    assert "Several tables that belong together by keys" in page
    typed = {"source": str(server.folder / "shop.duckdb"), "name": "typed", "csrf": token}
    for at, (name, said) in enumerate(PLAIN.items()):
        typed |= {
            f"called-t{at}": name, f"is-t{at}": said["kind"], f"of-t{at}": said.get("of", ""),
            f"by-t{at}": said.get("by", ""), f"key-t{at}": said["key"],
            f"rows-t{at}": str(said.get("rows_per_person", "")),
        }  # fmt: skip
    again = browser.post("/import/columns", data={**typed, "rows-t1": ""})
    assert "how many rows of &#39;orders&#39; count" in again.text and 'value="orders"' in again.text
    columns = browser.post("/import/columns", data=typed)
    assert columns.status_code == 200 and "orders.amount" in columns.text
    assert "Column that says whose row it is" not in columns.text
    fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', columns.text))
    fields = {name: html.unescape(value) for name, value in fields.items() if name != "same_rows"}
    for name in re.findall(r'<select[^>]*name="([^"]+)"', columns.text):
        part = columns.text.partition(f'name="{name}"')[2].partition("</select>")[0]
        chosen = re.search(r'value="([^"]*)" selected', part) or re.search(r'value="([^"]*)"', part)
        fields[name] = "" if chosen is None else chosen[1]
    for name, held in re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>([^<]*)</textarea>', columns.text):
        fields[name] = html.unescape(held)
    fields |= {f"confirmed-{n}": "1" for n in range(3)} | {f"use-{n}": "1" for n in range(3)}
    done = browser.post("/import", data={**fields, "same_rows": "1"}, follow_redirects=False)
    assert done.status_code == 303, re.findall(r'class="[^"]*problem[^"]*"[^>]*>([^<]*)<', done.text)
    assert server.workspace["typed"].schema["regions.name"].value_count == 2
    typed_in = server.workspace["typed"]
    assert [table.name for table in typed_in.tables] == ["people", "orders"]
    typed_in.publish(typed_in.policy)  # opens it
    shown = browser.get("/datasets/typed")
    assert shown.status_code == 200 and "typed.orders" in shown.text
    for name in ("typed", "typed.orders", "typed.people"):
        for part in ("", "/ask", "/policy", "/budget", "/audit", "/rows", "/access"):
            assert browser.get(f"/datasets/{name}{part}").status_code < 500, f"{name}{part}"
        assert browser.get(f"/datasets/{name}/ask").status_code == 200
    server.workspace.set_budget("typed", bf.Epsilon(9))
    for typed_sql in (
        "SELECT COUNT(*) FROM orders WHERE amount > 50",
        "SELECT SUM(amount) FROM typed.orders",
    ):
        asked = {"mode": "sql", "sql": f"{typed_sql} WITH EPSILON 1"}
        answers = browser.get("/datasets/typed/ask", params=asked).text
        fields = dict(re.findall(r'name="(quote_id|key|csrf)" value="([^"]*)"', answers))
        assert "key" in fields, re.findall(r'class="alert.*?</div>', answers, flags=re.DOTALL)
        done = browser.post("/datasets/typed/ask", data=fields, follow_redirects=False)
        assert done.status_code == 303, re.findall(r'class="alert.*?</div>', done.text, flags=re.DOTALL)
        assert server.workspace.answers("typed")[-1].receipt.dataset == "typed.orders"


def test_at_the_command_line(tmp_path: Path) -> None:
    path, shell = make_shop(tmp_path), Shell(tmp_path / "w.blowfish")
    (tmp_path / "shop.yaml").write_text(FILE)
    done = shell.must(
        "import", str(path), "--name", "shop", "--tables", str(tmp_path / "shop.yaml"), "--accept"
    )
    assert "has 3 columns" in done.out
    shell.must("budget", "set", "shop", "--epsilon", "9")
    asked = shell.must(
        "sql", "SELECT AVG(amount) FROM shop.orders WITH EPSILON 1", "--yes", "--max-cost", "1", "--json"
    )
    assert asked.json["receipt"]["dataset"] == "shop.orders"
    told = shell.must("quote", "shop.orders", "histogram(regions.name)", "--epsilon", "1", "--json")
    assert (told.json["dataset"], told.json["exact"]) == ("shop.orders", False)
    shell.must("policy", "set", "shop", "people.age", "--hide-within", "5")
    refused = shell("policy", "set", "shop.orders", "people.age", "--hide-within", "5")
    assert refused.code and "one table of 'shop'" in refused.err
    (tmp_path / "wrong.yaml").write_text("tables: {people: {kind: people}}")
    wrong = shell("import", str(path), "--name", "w", "--tables", str(tmp_path / "wrong.yaml"), "--accept")
    assert "needs 'key'" in wrong.err


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"orders": PLAIN["orders"]}, "row for each person"),
        ({**PLAIN, "orders": {**PLAIN["orders"], "of": "nobody"}}, "no table here"),
        ({**PLAIN, "orders": {**PLAIN["orders"], "of": "regions"}}, "about nobody"),
        ({**PLAIN, "orders": {**PLAIN["orders"], "of": "orders"}}, "itself"),
        ({**PLAIN, "a b": PLAIN["regions"]}, "letters, digits and _"),
        ({**PLAIN, "orders": {**PLAIN["orders"], "rows_per_person": 0}}, "At least one row"),
        ({**PLAIN, "orders": {**PLAIN["orders"], "key": "person"}}, "cannot tell"),
        ({**PLAIN, "more": {"kind": "people", "key": "id"}}, "Exactly one"),
        ({**PLAIN, "again": {**PLAIN["orders"], "table": "orders"}}, "the same table"),
        ({**PLAIN, "regions": {**PLAIN["regions"], "color": "red"}}, "has no 'color'"),
        ({**PLAIN, "regions": {"kind": "lookup", "of": "people"}}, "needs 'by' and 'key'"),
        ({**PLAIN, "regions": {"kind": "view"}}, "needs a kind"),
    ],
)
def test_what_cannot_be_declared(tables: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        bf.Tables.from_plain(tables)


def test_columns_are_those_of_tables_and_no_keys() -> None:
    tables = bf.Tables.from_plain(PLAIN)
    age = bf.Integer(0, 9)
    for column, words in (
        ("age", "none of the tables"),
        ("people.id", "is a key"),
        ("orders.person", "is a key"),
        ("orders.number", "is a key"),
        ("regions.code", "is a key"),
    ):
        with pytest.raises(InvalidInput, match=words):
            tables.check(bf.Domain.of({column: age}))
    tables.check(bf.Domain.of({"people.region": age}))
    with pytest.raises(InvalidInput, match="looked up in 'regions'"):
        tables.check(bf.Domain.of({"people.region": age, "regions.name": age}))
    assert bf.Tables.from_plain(tables.to_plain()) == tables


def test_for_clients_of_postgresql(server: Running) -> None:
    source, domain = server.folder / "shop.duckdb", codec.domain(COLUMNS)
    tables = bf.Tables.from_plain(PLAIN)
    server.workspace.add_dataset("wired", source, domain=domain, tables=tables, same_rows=True)
    asked = (
        "SELECT r.name, COUNT(*) FROM wired.orders o LEFT JOIN wired.people p ON o.person = p.id "
        "LEFT JOIN wired.regions r ON p.region = r.code GROUP BY r.name WITH ERROR 100 WITH MAX_COST 0.5"
    )
    with door_of(server) as there, there.connect() as connection:
        listed = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.views"
        ).fetchall()
        assert {("wired", "people"), ("wired", "orders")} <= set(listed) and ("wired", "wired") not in listed
        seen = "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) AND relname = 'orders'"
        assert connection.execute(seen).fetchall() == []  # other datasets have a table of that name
        assert [row[0] for row in connection.execute(asked).fetchall()] == ["north", "south", None]
        whole = (
            "SELECT COUNT(*) FROM wired.orders WHERE wired.orders.amount >= 0 WITH ERROR 100 WITH MAX_COST 1"
        )
        told = connection.execute(whole).fetchone()
        assert connection.execute(whole.replace("wired.orders.amount", "amount")).fetchone() == told
        with pytest.raises(psycopg.errors.UndefinedTable):  # which of them?
            connection.execute("SELECT COUNT(*) FROM orders WITH ERROR 100")
    assert server.workspace.answers("wired")[-1].receipt.dataset == "wired.orders"


def test_synthetic_rows_of_one_table(server: Running) -> None:
    source, domain = server.folder / "shop.duckdb", codec.domain(COLUMNS)
    tables = bf.Tables.from_plain(PLAIN)
    workspace = server.workspace
    orders = workspace.add_dataset("made", source, domain=domain, tables=tables, same_rows=True).table(
        "orders"
    )
    assert orders.count().spend(1).ask().values.tolist() == [1230]
    columns = ["regions.name", "people.age"]
    assert orders.synthesize(epsilon="0.3", columns=columns).quote().epsilon == bf.Epsilon("0.3")
    orders.synthesize(epsilon="0.3", columns=columns).ask()
    assert workspace.budget("made").spent == bf.Epsilon("0.3")
    assert workspace.verify() == []
