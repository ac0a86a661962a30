"""Someone who knows only psql: connects, looks around, is refused kindly, asks, sees the cost, runs out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pgwire.door import PSQL, Opened, opened

pytestmark = pytest.mark.skipif(PSQL is None, reason="no psql: apt-get install postgresql-client")
BY_REGION = "SELECT region, COUNT(*) FROM salaries GROUP BY region WITH ERROR 50"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(tmp_path_factory.mktemp("psql"), budget="0.4") as made:
        yield made


def test_datasets_are_found_as_schemas_with_a_view(there: Opened) -> None:
    listed, shown = there.psql("\\d"), there.psql("\\d salaries", "\\d+ salaries.salaries")
    assert " salaries | salaries | view | blowfishdb" in listed.stdout, listed.stderr
    assert 'View "salaries.salaries"' in shown.stdout
    assert "private: rows are counted, and never shown" in shown.stdout
    assert " salary | integer |           | not null |" in shown.stdout, shown.stderr
    assert " region | text    |           | not null |" in shown.stdout
    assert "categories north, south, east, west" in shown.stdout
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("\\dt", ""),
        ("\\dv", "salaries"),
        ("\\dv+", "Private: rows are counted, never shown."),
        ("\\dv salaries.*", "salaries"),
        ("\\sv salaries", "salaries"),
        ("\\dn", "salaries"),
        ("\\dn+", "public"),
        ("\\l", "blowfishdb"),
        ("\\l+", "blowfishdb"),
        ("\\du", "analyst"),
        ("\\dp", "salaries"),
        ("\\df", "(0 rows)"),
        ("\\di", ""),
        ("\\dT", "(0 rows)"),
        ("\\db", "pg_default"),
        ("\\dx", "(0 rows)"),
        ("\\d sal*", "View"),
        ("\\conninfo", "analyst"),
        ("\\encoding", "UTF8"),
    ],
)
def test_what_psql_looks_up_is_answered(there: Opened, command: str, says: str) -> None:
    said = there.psql(command)
    assert said.returncode == 0 and "ERROR" not in said.stderr, said.stderr
    assert says in said.stdout


def test_columns_are_listed_in_their_order_and_under_their_names(there: Opened) -> None:
    wanted = ["count", "count_low", "count_high", "as_of"]
    listed = ", ".join(f"('{name}', '20'::oid, -1)" for name in wanted)
    with there.connect() as connection:
        typed = 'name AS "Column", pg_catalog.format_type(tp, tpm)'
        asked = f"SELECT {typed} FROM (VALUES {listed}) s(name, tp, tpm)"
        rows = connection.execute(asked.encode()).fetchall()  # as psql asks for \gdesc
        assert rows == [(name, "bigint") for name in wanted]
        described = connection.execute("SELECT now(), version(), current_user, 1 + 1 AS two").description
        assert described is not None
        assert [column.name for column in described] == ["now", "version", "current_user", "two"]
        kept = connection.execute("SELECT CURRENT_TIMESTAMP").description
        assert kept is not None and kept[0].name == "current_timestamp"


def test_nobody_else_is_listed(there: Opened) -> None:
    assert "curator" not in there.psql("\\du").stdout


def test_a_walk_through_until_the_budget_is_gone(there: Opened) -> None:
    rows = there.psql("SELECT * FROM salaries")
    assert "ERROR:  Rows are never shown; they are counted." in rows.stderr
    assert "Try: SELECT COUNT(*) FROM salaries" in rows.stderr

    unsaid = there.psql("SELECT region, COUNT(*) FROM salaries GROUP BY region")
    assert "does not say how accurate" in unsaid.stderr and "WITH ERROR 50" in unsaid.stderr

    priced = there.psql(BY_REGION)
    assert "This answer costs ε 0.151, and nothing allows this connection to spend it." in priced.stderr
    assert "SET blowfishdb.max_cost = '0.152';" in priced.stderr
    assert there.spent() == "0"

    first = there.psql("SET blowfishdb.max_cost = '0.152'", BY_REGION)
    assert "In 95 of 100 runs every bar is within 50 people of the truth." in first.stderr
    assert "This cost ε 0.151 (receipt " in first.stderr and "ε 0.249 is left" in first.stderr
    assert "(4 rows)" in first.stdout

    again = there.psql(BY_REGION)
    assert "This cost nothing (receipt " in again.stderr
    assert again.stdout.splitlines()[:4] == first.stdout.splitlines()[1:5]

    older = "SELECT COUNT(*) FROM salaries WHERE age >= 40 WITH ERROR 50 WITH MAX_COST 0.1"
    bars = there.psql("SET blowfishdb.intervals = on", older)
    assert " count | count_low | count_high |" in bars.stdout, bars.stderr

    mean = there.psql("SELECT AVG(salary) FROM salaries WITH ERROR 1000 WITH MAX_COST 0.1")
    assert "avg" in mean.stdout, mean.stderr

    gone = there.psql(
        "SET blowfishdb.max_cost = '5'", "SELECT COUNT(*) FROM salaries WHERE age < 30 WITH ERROR 5"
    )
    assert "The budget of 'salaries' does not reach" in gone.stderr
    assert "Answers that are out already stay free." in gone.stderr
    assert "HINT:  Try:" in gone.stderr
    assert "(4 rows)" in there.psql(BY_REGION).stdout


def test_explain_is_the_quote_and_free(there: Opened) -> None:
    before = there.spent()
    said = there.psql("EXPLAIN SELECT BIN(age, 10), COUNT(*) FROM salaries GROUP BY 1 WITH ERROR 100")
    assert "Sensitivity" in said.stdout and "Cost         ε" in said.stdout, said.stderr
    as_json = there.psql("EXPLAIN (FORMAT JSON) SELECT COUNT(*) FROM salaries WHERE age < 50 WITH ERROR 100")
    assert '"nano_epsilon"' in as_json.stdout, as_json.stderr
    assert there.spent() == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO salaries VALUES (1, 2, 'north')",
        "UPDATE salaries SET age = 1",
        "DELETE FROM salaries",
        "DROP TABLE salaries",
        "CREATE TABLE t (a int)",
        "LISTEN news",
        "COPY salaries TO STDOUT",
        "COPY salaries FROM STDIN",
        "COPY (SELECT 1) TO '/tmp/x'",
        "SELECT pg_sleep(100)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM pg_class, salaries",
        "SELECT salary FROM salaries LIMIT 1",
        "SELECT DISTINCT region FROM salaries",
        "SELECT MIN(salary) FROM salaries",
        "SELECT nothing FROM nowhere",
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM salaries WITH ERROR 50",
        "SET blowfishdb.error = 'many'",
        "SET ROLE curator",
        "SELECT 'open",
        "$$",
    ],
)
def test_what_is_refused_says_why_and_costs_nothing(there: Opened, statement: str) -> None:
    before = there.spent()
    said = there.psql(statement)
    assert "ERROR:" in said.stderr, said.stdout
    assert "went wrong inside" not in said.stderr
    assert there.spent() == before


def test_an_answer_can_be_copied(there: Opened) -> None:
    said = there.psql(f"COPY ({BY_REGION}) TO STDOUT WITH (FORMAT csv, HEADER)")
    lines = said.stdout.splitlines()
    assert lines[0] == "region,count" and len(lines) == 5, said.stderr


def test_policies_and_guarantees_are_shown(there: Opened) -> None:
    assert "Hide which value of 'age' someone has." in there.psql("SHOW POLICY").stdout
    assert "salaries" in there.psql("SHOW GUARANTEE salaries").stdout
    assert "0.4" in there.psql("SHOW blowfishdb.budget").stdout
    assert "blowfishdb.max_cost" in there.psql("SHOW ALL").stdout


def test_a_wrong_password_is_refused(there: Opened) -> None:
    wrong = there.url().replace(there.passwords["analyst"], "bfw_wrong")
    import subprocess

    said = subprocess.run(
        [str(PSQL), "-X", wrong, "-c", "SELECT 1"], capture_output=True, text=True, check=False
    )
    assert 'password authentication failed for user "analyst"' in said.stderr
