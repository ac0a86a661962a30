"""Wire passwords and defaults by REST: issued once, working at the door, ended while connected."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from tests.entrypoints.commands import Shell
from tests.pgwire.door import Opened, opened

ACCESS = "/datasets/salaries/access"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(tmp_path_factory.mktemp("letting in")) as found:
        yield found


def connect(there: Opened, user: str, password: str) -> psycopg.Connection:
    return psycopg.connect(
        host="127.0.0.1", port=there.port, user=user, password=password, dbname="blowfishdb", autocommit=True
    )


def test_my_own_password_and_settings(there: Opened) -> None:
    analyst = there.web.analyst
    made = analyst.post("/api/v1/wire")
    assert made.status_code == 201 and made.json()["user"] == "analyst"
    password = made.json()["password"]
    known = analyst.get("/api/v1/wire").json()
    nothing = {"defaults": {}, "highest_cap": None, "spent_today": "0"}
    assert known == {"user": "analyst", "active": True, **nothing}
    assert password not in analyst.get("/api/v1/wire").text
    refused = analyst.patch("/api/v1/wire", json={"max_cost": "0.2"})
    assert refused.status_code == 422 and "needs a cap for each day" in refused.text
    changed = analyst.patch("/api/v1/wire", json={"max_cost": "0.2", "daily_cap": "1", "error": "500"})
    assert changed.json()["defaults"] == {"max_cost": "0.2", "daily_cap": "1", "error": "500"}
    with connect(there, "analyst", password) as connection:
        assert connection.execute("SHOW blowfishdb.max_cost").fetchone() == ("0.2",)
        connection.execute("SELECT COUNT(*) FROM salaries WHERE age >= 33").fetchone()
        assert float(analyst.get("/api/v1/wire").json()["spent_today"]) > 0
        assert analyst.delete("/api/v1/wire").status_code == 204
        with pytest.raises(psycopg.errors.AdminShutdown):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        connect(there, "analyst", password)
    assert not analyst.get("/api/v1/wire").json()["active"]
    assert analyst.patch("/api/v1/wire", json={"reset": True}).json()["defaults"] == {}


def test_a_curator_for_somebody_else_and_for_a_dataset(there: Opened) -> None:
    curator, analyst = there.web.curator, there.web.analyst
    password = curator.post("/api/v1/users/auditor/wire").json()["password"]
    curator.patch("/api/v1/users/auditor/wire", json={"intervals": "on"})
    with connect(there, "auditor", password) as connection:
        assert connection.execute("SHOW blowfishdb.intervals").fetchone() == ("on",)
    assert curator.get("/api/v1/users/auditor/wire").json()["active"]
    assert curator.delete("/api/v1/users/auditor/wire").status_code == 204
    with pytest.raises(psycopg.OperationalError):
        connect(there, "auditor", password)
    assert curator.post("/api/v1/users/nobody-there/wire").status_code == 404
    wanted = {"dataset": "salaries", "defaults": {"error": "700"}}
    assert curator.patch("/api/v1/datasets/salaries/wire", json={"error": "700"}).json() == wanted
    assert analyst.get("/api/v1/datasets/salaries/wire").json() == wanted
    curator.patch("/api/v1/datasets/salaries/wire", json={"error": ""})
    assert analyst.get("/api/v1/datasets/salaries/wire").json()["defaults"] == {}


def test_the_cap_of_a_curator_is_a_ceiling(there: Opened) -> None:
    """Set by REST, at the command line and on the page; lowered by its user, and never raised."""
    curator, analyst = there.web.curator, there.web.analyst

    def cap(value: str) -> httpx.Response:
        return analyst.patch("/api/v1/wire", json={"daily_cap": value})

    assert cap("2").json()["defaults"] == {"daily_cap": "2"}  # nobody has set one: as they like
    curator.patch("/api/v1/users/analyst/wire", json={"daily_cap": "0.5"})
    for value in ("0.500000001", "2", "1e3"):
        refused = cap(value)
        assert refused.status_code == 403, refused.text
        assert "set the cap for a day to ε 0.5: it can be lowered here, and not raised" in refused.text
    assert analyst.patch("/api/v1/wire", json={"daily_cap": "3", "reset": True}).status_code == 403
    assert cap("0.2").json()["defaults"] == {"daily_cap": "0.2"}
    assert cap("").json()["defaults"] == {"daily_cap": "0.5"}  # taken back: the curator's
    kept = analyst.patch("/api/v1/wire", json={"reset": True, "max_cost": "0.1"}).json()
    assert kept["defaults"] == {"max_cost": "0.1", "daily_cap": "0.5"} and kept["highest_cap"] == "0.5"

    shell = Shell(there.web.folder / "server.blowfish", "curator")
    shell.must("wire", "defaults", "analyst", "--daily-cap", "0.3")
    assert cap("0.4").status_code == 403 and cap("0.25").status_code == 200

    page, form = there.web.browser("curator"), {"user": "analyst", "error": "9", "max_cost": "0.1"}
    form["csrf"] = re.findall(r'name="csrf" value="([^"]*)"', page.get(ACCESS).text)[0]
    done = page.post(f"{ACCESS}/wire/defaults", data={**form, "daily_cap": "0.3"})
    assert "now begin with these settings" in done.text, done.text
    known = analyst.get("/api/v1/wire").json()
    assert known["highest_cap"] == "0.3" and known["defaults"]["daily_cap"] == "0.25"  # left as it was
    page.post(f"{ACCESS}/wire/defaults", data={**form, "daily_cap": "0.2"})
    assert cap("0.3").status_code == 403 and cap("0.2").status_code == 200
    assert "which its user can lower but not raise" in page.get(ACCESS).text

    curator.patch("/api/v1/users/analyst/wire", json={"reset": True})
    assert cap("5").status_code == 200
    cap("")


def test_a_lower_cap_holds_for_connections_that_are_open(there: Opened) -> None:
    curator = there.web.curator
    password = curator.post("/api/v1/users/analyst/wire").json()["password"]
    with connect(there, "analyst", password) as connection:
        connection.execute("SET blowfishdb.max_cost = '1'")
        connection.execute("SET blowfishdb.daily_cap = '4'")
        curator.patch("/api/v1/users/analyst/wire", json={"daily_cap": "0.000001"})
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="daily_cap"):
            connection.execute("SELECT COUNT(*) FROM salaries WHERE age >= 34 WITH ERROR 50")
        curator.patch("/api/v1/users/analyst/wire", json={"reset": True})
        connection.execute("SELECT COUNT(*) FROM salaries WHERE age >= 34 WITH ERROR 50")
