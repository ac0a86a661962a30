"""Exit codes, problems as JSON, prompts that nobody answers, and workspaces behind a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from blowfishdb.core import errors
from blowfishdb.entrypoints.cli.session import exit_code, problem
from tests.entrypoints.commands import Shell, people

QUESTION = ("people", "histogram(age, bins=4)")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    made = people(tmp_path_factory.mktemp("failures"))
    made.must("budget", "set", "people", "--epsilon", "0.5")
    return made


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("ask", *QUESTION), 2),
        (("ask", *QUESTION, "--error", "5", "--epsilon", "1"), 2),
        (("ask", *QUESTION, "--error", "50", "--yes"), 2),
        (("sql", "people", "SELECT COUNT(*) FROM people WITH ERROR 5", "--yes"), 2),
        (("ask", "nothing", "count()", "--error", "5"), 2),
        (("quote", "people", "histogram(height)", "--error", "5"), 2),
        (("quote", "people", "what now", "--error", "5"), 2),
        (("sql", "people", "SELECT * FROM people", "--error", "5"), 2),
        (("quote", *QUESTION, "--error", "50", "--mechanism", "magic"), 2),
        (("compare", "1", "9999"), 2),
        (("export", "1"), 2),
        (("export", "9999", "--format", "csv"), 2),
        (("ask", *QUESTION, "--error", "2", "--yes", "--max-cost", "0.01"), 3),
        (("ask", *QUESTION, "--error", "2", "--yes", "--max-cost", "90"), 3),
        (("quote", *QUESTION, "--error", "0.0000001", "--mechanism", "hierarchical"), 5),
    ],
)
def test_exit_codes_and_problems(shell: Shell, arguments: tuple[str, ...], code: int) -> None:
    done = shell(*arguments)
    assert done.code == code and done.err and "Traceback" not in done.err
    assert "QUOTE" in done.out or done.out == ""
    told = shell(*arguments, "--json")
    assert told.code == code and told.out == ""
    found = told.problem
    assert found["exit_code"] == code and found["charged"] is False
    assert found["type"].startswith("urn:blowfishdb:problem:") and isinstance(found["fixes"], list)
    assert shell.must("budget", "show", "people", "--json").json["spent"] == "0"


def test_a_change_that_is_not_allowed_is_4(shell: Shell) -> None:
    shell.must("ask", "people", "count() where age > 80", "--epsilon", "0.01", "--yes", "--max-cost", "0.01")
    done = shell("schema", "set", "people", "age", "--domain", "0:99")
    assert done.code == 4 and "already asked" in done.err
    kept = shell.must("audit", "all", "--json").json
    assert kept["verified"] and kept["problems"] == []
    shell.must("budget", "set", "people", "--epsilon", "0.5")


def test_every_class_of_error_has_its_code() -> None:
    codes = {
        errors.InvalidInput: 2,
        errors.UnknownDataset: 2,
        errors.UnsupportedSql: 2,
        errors.BudgetExhausted: 3,
        errors.MaxCostExceeded: 3,
        errors.NotAllowed: 4,
        errors.NotSignedIn: 4,
        errors.PolicyConflict: 4,
        errors.NotProven: 4,
        errors.NoGuarantee: 4,
        errors.Infeasible: 5,
        errors.AnswerInProgress: 1,
        errors.SourceError: 1,
        errors.WorkspaceError: 1,
    }
    for kind, code in codes.items():
        assert exit_code(kind("no")) == code, kind
    assert exit_code(errors.TooManyAttempts("no", wait=3)) == 4
    assert problem(errors.MaxCostExceeded("no", fixes=("less",)))["type"].endswith(":max-cost-exceeded")


@pytest.mark.parametrize("arguments", [("frobnicate",), ("quote",), ("quote", "people", "count()", "--wide")])
def test_usage_is_explained(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell(*arguments).code == 2
    told = shell(*arguments, "--json")
    assert told.code == 2 and told.problem["exit_code"] == 2


def test_nobody_there_to_confirm(shell: Shell) -> None:
    done = shell("ask", *QUESTION, "--error", "150", typed="")
    assert done.code == 2 and "--max-cost" in done.err
    assert shell("policy", "publish", "people", typed="").code == 2


def test_a_price_that_is_not_affordable_is_not_even_asked_about(shell: Shell) -> None:
    done = shell("ask", *QUESTION, "--error", "2", typed="y\n")
    assert done.code == 3 and "Spend" not in done.err and "try: ±" in done.err


def test_what_needs_the_file_says_so_when_given_a_server(tmp_path: Path) -> None:
    remote = Shell("http://127.0.0.1:9")
    for arguments in (
        ("user", "list"),
        ("user", "add", "x", "--role", "analyst"),
        ("user", "revoke", "x"),
        ("token", "issue", "x"),
        ("token", "list", "x"),
        ("token", "revoke", "x"),
        ("backup", str(tmp_path / "b")),
        ("serve",),
    ):
        done = remote(*arguments)
        assert done.code == 2 and "not a server" in done.err, arguments
    assert remote("import", "x.csv", "--name", "x", "--accept").code == 2


def test_a_server_asks_who_you_are(tmp_path: Path) -> None:
    remote = Shell("http://127.0.0.1:9")
    done = remote("datasets")
    assert done.code == 2 and "BLOWFISHDB_TOKEN" in done.err
    assert remote("--token-file", str(tmp_path / "none"), "datasets").code == 2
    file = tmp_path / "token"
    file.write_text("bf_0\n")
    unreachable = remote("--token-file", str(file), "datasets")
    assert unreachable.code == 1 and "Traceback" not in unreachable.err
    assert remote("datasets", BLOWFISHDB_TOKEN="bf_0").code == 1


def test_the_same_commands_through_a_server(tmp_path: Path) -> None:
    from blowfishdb.entrypoints.demo import serving
    from blowfishdb.entrypoints.server.app import create_app
    from blowfishdb.entrypoints.server.server import Settings

    here = people(tmp_path)
    tokens = {}
    for name, role in (("cora", "curator"), ("ana", "analyst")):
        here.must("user", "add", name, "--role", role, "--no-password")
        tokens[name] = here.must("token", "issue", name).out.strip()
    with serving(create_app(here.workspace, settings=Settings(warm_up=False))) as address:

        def remote(user: str, *arguments: str) -> tuple[int, str]:
            done = Shell(address)(*arguments, BLOWFISHDB_TOKEN=tokens[user])
            return done.code, done.out + done.err

        assert remote("cora", "policy", "set", "people", "salary", "--hide-within", "5000")[0] == 0
        assert remote("cora", "policy", "publish", "people", "--yes")[0] == 0
        code, shown = remote("ana", "ask", *QUESTION, "--error", "50", "--yes", "--max-cost", "5")
        assert code == 0 and "Receipt" in shown, shown
        assert "histogram of age" in remote("ana", "log", "--mine")[1]
        assert "You can still spend" in remote("ana", "budget", "show", "people")[1]
        assert remote("ana", "policy", "publish", "people", "--yes")[0] == 4
        assert "What is promised" in remote("cora", "explain", "people")[1]
