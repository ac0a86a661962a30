"""import, schema, policy, tradeoff, budget, users, tokens, copies: what curators and operators type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import blowfishdb as bf
from tests.entrypoints.commands import DOMAIN, Shell, people, write_people


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return people(tmp_path)


# --- import and schema --------------------------------------------------------------------------


def test_import_takes_everything_that_a_source_may_need(tmp_path: Path) -> None:
    source, shell = str(write_people(tmp_path / "people.csv", 200)), Shell(tmp_path / "w.blowfish")
    many = ("--person", "id", "--rows-per-person", "3", "--row-key", "joined", "--accept", "--json")
    facts = shell.must("import", source, "--name", "several", "--table", "people", *many).json
    assert facts["rows_per_person"] == 3 and not {"id", "joined"} & set(facts["domain"])
    view = ("--view", "SELECT age, region FROM people WHERE region = 'west'", "--accept", "--json")
    refused = shell("import", source, "--name", "young", *view)
    assert refused.code == 2 and "already in 'several'" in refused.err
    young = shell.must("import", source, "--name", "young", "--same-rows", "--public", "region", *view).json
    assert list(young["domain"]) == ["age", "region"] and young["public"] == ["region"]
    assert [each["name"] for each in shell.must("datasets", "--json").json["datasets"]] == [
        "several",
        "young",
    ]
    assert "several" in shell.must("datasets").out


def test_limits_are_never_taken_silently(tmp_path: Path) -> None:
    source, shell = str(write_people(tmp_path / "people.csv", 200)), Shell(tmp_path / "w.blowfish")
    done = shell("import", source, "--name", "people", typed="")
    assert done.code == 2 and "--accept" in done.err and "can reveal" in done.err
    assert not (tmp_path / "w.blowfish").exists()
    typed = "no\nmany\n18:99\nno\nno\nno\n"  # a mistake is explained and asked again
    done = shell.must("import", source, "--name", "people", typed=typed)
    assert "not a lowest and a highest value" in done.err
    domain = shell.must("schema", "show", "people", "--json").json["domain"]
    assert list(domain) == ["age"] and domain["age"]["hi"] == 99


def test_columns_from_a_file(shell: Shell, tmp_path: Path) -> None:
    shown = shell.must("schema", "show", "people", "--json")
    again = tmp_path / "again.json"
    again.write_text(shown.out)
    people = str(tmp_path / "people.csv")
    shell.must("import", people, "--name", "again", "--domain", str(again), "--same-rows")
    assert shell.must("schema", "show", "again", "--json").json["domain"] == shown.json["domain"]
    for broken in ("[1, 2]", "age: {kind: integer}", "age: {kind: elephant}", "a: b: c"):
        again.write_text(broken)
        done = shell("import", str(tmp_path / "people.csv"), "--name", "no", "--domain", str(again))
        assert done.code == 2 and "Traceback" not in done.err
    assert shell("import", "x.csv", "--name", "no", "--domain", str(tmp_path / "none.yaml")).code == 2


def test_schema_set_changes_one_column(shell: Shell) -> None:
    def declare(*arguments: str) -> dict[str, object]:
        domain: dict[str, dict[str, object]] = shell.must(
            "schema", "set", "people", *arguments, "--json"
        ).json["domain"]
        return domain[arguments[0]]

    assert declare("salary", "--domain", "0:200000", "--step", "100")["hi"] == 200_000
    assert declare("salary", "--domain", "0..50,000", "--outside", "drop")["outside"] == "drop"
    assert declare("age", "--missing", "value")["missing"] == "value"
    assert declare("age", "--type", "real", "--domain", "0:100", "--step", "0.5")["grid"] == "1/2"
    assert declare("region", "--domain", "north,east,south,west", "--ordered")["ordered"] is True
    assert declare("region", "--unordered")["values"] == ["north", "east", "south", "west"]
    assert declare("joined", "--domain", "2022-01-01..2024-12-31", "--unit", "week")["unit"] == "week"
    assert "salary" in shell.must("schema", "show", "people").out
    for wrong in (("salary", "--domain", "many"), ("salary", "--domain", "a:b"), ("id", "--domain", "0:1")):
        assert shell("schema", "set", "people", *wrong).code == 2
    assert shell("schema", "set", "people", "age", "--type", "date", "--domain", "1:2").code == 2


# --- policy -------------------------------------------------------------------------------------


def sentences(shell: Shell) -> str:
    return " ".join(shell.must("policy", "show", "people", "--draft", "--json").json["sentences"])


def test_every_way_to_hide(shell: Shell, tmp_path: Path) -> None:
    change = ("policy", "set", "people")
    shell.must(*change, "salary", "--hide-within", "5000")
    assert "within 5,000" in sentences(shell)
    shell.must(*change, "joined", "--hide-within", "7 days")
    assert "within 7 days" in sentences(shell)
    shell.must(*change, "age", "--hide-nothing")
    assert "Hide nothing about 'age'" in sentences(shell)
    shell.must(*change, "age", "--hide-all")
    groups = tmp_path / "groups.yaml"
    groups.write_text("coast: [north, west]\nland: [south, east]\n")
    shell.must(*change, "region", "--groups", str(groups))
    assert "north, west; south, east" in sentences(shell)
    shell.must(*change, "--column-by-column", "--hide-presence")
    assert "one by one" in sentences(shell) and "whether someone is in the data" in sentences(shell)
    shell.must(*change, "--whole-record", "--show-presence")
    assert "hidden together" in sentences(shell) and "whether someone" not in sentences(shell)
    assert "age" in shell.must("policy", "show", "people", "age", "--draft").out
    difference = shell.must("policy", "diff", "people", "--json").json
    assert difference["loosens"] is True and difference["same"] is False
    shell.must(*change, "--hide-all")
    assert shell.must("policy", "diff", "people", "--json").json["same"] is True


def test_policies_are_said_one_thing_at_a_time(shell: Shell) -> None:
    for wrong in (
        (),
        ("age", "--hide-all", "--hide-nothing"),
        ("--hide-within", "5"),
        ("age", "--hide-within", "x"),
    ):
        assert shell("policy", "set", "people", *wrong).code == 2
    assert shell("policy", "set", "people", "region", "--groups", "nowhere.yaml").code == 2


def test_policy_files_go_out_and_come_back(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    shell.must("policy", "set", "people", "salary", "--hide-within", "5000")
    shell.must("policy", "export", "people", "--draft", "-o", str(file))
    assert "hide within" in file.read_text()
    assert shell.must("policy", "export", "people", "--draft").out.strip() == file.read_text().strip()
    assert "whole record" in shell.must("policy", "export", "people", "--json").json["yaml"]
    shell.must("policy", "set", "people", "--hide-all")
    assert "within 5,000" in shell.must("policy", "import", "people", str(file)).out
    published = shell.must("policy", "publish", "people", "--yes", "--json").json
    assert published["version"] == 2 and published["guarantee"]["paragraphs"]


def test_publishing_after_spending_says_what_stays_told(shell: Shell) -> None:
    shell.must("ask", "people", "count() where age > 30", "--epsilon", "1", "--yes", "--max-cost", "1")
    shell.must("policy", "set", "people", "age", "--hide-nothing")
    done = shell.must("policy", "publish", "people", "--yes")
    assert "stays told" in done.err
    kinds = [event["kind"] for event in shell.must("audit", "people", "--json").json["events"]]
    assert "policy" in kinds


def test_tradeoff_marks_protection_that_costs_nothing(shell: Shell) -> None:
    base = ("tradeoff", "people", "salary", "--thresholds", "1000,10000,all", "--error", "50")
    table = shell.must(*base, "--query", "cumulative", "--bins", "10")
    assert "★" in table.out and "within 1,000" in table.out and "everything" in table.out
    options = ("--confidence", "0.9", "--each", "--at-epsilon", "0.5", "--mechanism", "laplace", "--json")
    plain = shell.must(*base, "--query", "cumulative(salary, bins=10) where age > 30", *options).json
    assert plain["fixed_epsilon"] == "0.5" and [p["theta"] for p in plain["points"]] == [1000, 10000, None]
    assert all(point["mechanism"].startswith("Laplace") for point in plain["points"])
    assert shell("tradeoff", "people", "salary", "--thresholds", "x", "--error", "50").code == 2


# --- budgets, people, copies --------------------------------------------------------------------


def test_budgets_and_grants(shell: Shell) -> None:
    plain = shell.must("budget", "set", "people", "--epsilon", "2", "--json").json
    assert plain["total"] == "2" and plain["nano_left"] == 2 * 10**9 and plain["grants"] == []
    plain = shell.must("budget", "grant", "people", "--user", "ana", "--epsilon", "0.5", "--json").json
    assert plain["grants"][0]["granted"] == "0.5" and plain["left"] == "0.5"
    shown = shell.must("budget", "show", "people").out
    assert "0 of 2 spent, 2 left" in shown and "You can still spend 0.5" in shown and "ana" in shown
    assert shell("budget", "grant", "people", "--user", "bob", "--epsilon", "1.6").code != 0
    assert shell("budget", "set", "people", "--epsilon", "much").code == 2


def test_users_and_tokens(shell: Shell) -> None:
    assert shell.must("user", "list").out.startswith("Nobody yet")
    added = shell.must(
        "user", "add", "eva", "--role", "analyst", "--json", typed="four random words here\n"
    ).json
    assert added["role"] == "analyst" and added["active"]
    shell.must("user", "add", "robot", "--role", "auditor", "--no-password")
    assert "robot" in shell.must("user", "list").out
    made = shell.must("token", "issue", "robot", "--days", "3", "--label", "nightly", "--json").json
    assert made["token"].startswith("bf_") and made["label"] == "nightly"
    text = shell.must("token", "issue", "robot").out.strip()
    assert text.startswith("bf_") and " " not in text
    assert "nightly" in shell.must("token", "list", "robot").out
    shell.must("token", "revoke", made["id"])
    active = {
        each["id"]: each["active"] for each in shell.must("token", "list", "robot", "--json").json["tokens"]
    }
    assert active[made["id"]] is False and sum(active.values()) == 1
    assert text not in shell.must("token", "list", "robot", "--json").out
    with bf.open(shell.workspace, user="someone") as ws:
        told = [event for event in ws.events() if event.kind == "token"]
        assert {event.analyst for event in told} == {shell.user}
        assert [event.facts.get("account") for event in told] == ["robot", "robot", None]
    shell.must("user", "revoke", "robot")
    states = {user["user"]: user["active"] for user in shell.must("user", "list", "--json").json["users"]}
    assert states == {"eva": True, "robot": False}
    assert shell("user", "add", "eva", "--role", "king").code == 2


def test_copies_and_deletion(shell: Shell, tmp_path: Path) -> None:
    copy, back = tmp_path / "copy.blowfish", tmp_path / "back.blowfish"
    assert shell.must("backup", str(copy), "--json").json["events"] >= 2
    assert "remembers" in shell.must("restore", str(copy), str(back)).out
    assert Shell(back).must("datasets", "--json").json == shell.must("datasets", "--json").json
    assert shell("backup", str(copy)).code == 1  # nothing is overwritten
    assert shell("delete", str(back), typed="n\n").code == 1 and back.exists()
    assert shell("delete", str(back), typed="").code == 2 and back.exists()
    assert shell.must("delete", str(back), "--yes", "--json").json["deleted"] is True
    assert not back.exists() and shell("delete", str(back), "--yes").code == 2


def test_refresh_makes_a_new_snapshot(shell: Shell) -> None:
    assert shell.must("refresh", "people", "--json").json == {"dataset": "people", "snapshot": 2}
    assert "snapshot 3" in shell.must("refresh", "people").out


def test_doctor_looks_at_everything(shell: Shell) -> None:
    report = shell.must("doctor", "--json").json
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert report["ok"] and {states[name] for name in ("python", "packages", "numba", "duckdb")} == {"ok"}
    assert {states[name] for name in ("randomness", "noise", "workspace")} == {"ok"}
    broken = Path(shell.workspace)
    broken.write_bytes(b"not a workspace" * 300)
    failed = shell("doctor")
    assert failed.code == 1 and "fail" in failed.out


def test_the_declared_domain_is_the_one_that_was_written(shell: Shell) -> None:
    plain = json.loads(shell.must("schema", "show", "people", "--json").out)
    assert list(plain["domain"]) == [line.partition(":")[0] for line in DOMAIN.strip().splitlines()]
