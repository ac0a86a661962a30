"""From a CSV file to a compared and exported answer, as someone does it who never did before."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.entrypoints.commands import ROWS, Shell, write_people

PROGRAM = str(Path(sys.executable).with_name("blowfishdb"))
QUESTION = "cumulative(salary, bins=10)"


@pytest.fixture
def newcomer(tmp_path: Path) -> tuple[Path, Shell]:
    """A folder with a file of people, and nothing else."""
    write_people(tmp_path / "people.csv")
    return tmp_path, Shell(tmp_path / "w.blowfish")


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace that knows the people."""
    folder = tmp_path_factory.mktemp("settled")
    write_people(folder / "people.csv")
    Shell(folder / "w.blowfish").must("import", str(folder / "people.csv"), "--name", "people", "--accept")
    return folder


def test_the_whole_way(newcomer: tuple[Path, Shell], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, shell = newcomer
    monkeypatch.chdir(folder)
    # One answer for each column: the id is left out, the others are taken, one with other limits.
    done = shell.must("import", "people.csv", "--name", "people", typed="\nyes\n0:99999\n\n\n")
    assert "taken from the data" in done.err and "--person id" in done.err
    domain = shell.must("schema", "show", "people", "--json").json["domain"]
    assert list(domain) == ["age", "salary", "region", "joined"]
    assert (domain["salary"]["lo"], domain["salary"]["hi"]) == (0, 99_999)

    done = shell.must("policy", "set", "people", "salary", "--hide-within", "1000")
    assert "This hides less" in done.out and "policy publish people" in done.out
    done = shell("policy", "publish", "people", typed="n\n")
    assert done.code == 1 and "Nothing was done" in done.err
    assert shell.must("policy", "show", "people", "--json").json["version"] == 1
    done = shell.must("policy", "publish", "people", typed="y\n")
    assert "What is promised" in done.out and "Published as version 2" in done.out

    quote = shell.must("quote", "people", QUESTION, "--error", "50").out
    assert "QUOTE, free" in quote and "policy dividend" in quote
    assert shell.must("budget", "show", "people", "--json").json["spent"] == "0"

    done = shell("ask", "people", QUESTION, "--error", "50", typed="n\n")
    assert done.code == 1 and shell.must("budget", "show", "people", "--json").json["spent"] == "0"
    done = shell.must("ask", "people", QUESTION, "--error", "50", typed="y\n")
    assert "Receipt" in done.out and "noise interval" in done.out and "Budget" in done.out
    shell.must("ask", "people", QUESTION, "--error", "80", "--mechanism", "laplace", typed="y\n")

    first, second = (line["id"] for line in shell.must("log", "--json").json["answers"])
    assert f"#{first}" in shell.must("show", str(first)).out
    compared = shell.must("compare", str(first), str(second)).out
    assert "differ" in compared and "noise interval" in compared
    shell.must("export", str(first), "--format", "csv")
    (file,) = folder.glob("answer-*.csv")
    rows = list(csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines()))
    assert len(rows) == 10 and float(rows[-1]["value"]) == ROWS

    assert "at most 73 %" in shell.must("explain", "people").out
    done = shell.must("audit", "people")
    assert "verifies" in done.out and "settled" in done.out


def run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    return subprocess.run(
        [PROGRAM, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**clean, **environment},
        check=False,
    )


def test_the_program_is_plain_in_a_pipe(settled: Path) -> None:
    done = run("-w", "w.blowfish", "explain", "people", folder=settled)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout and not set("╭│╰─") & set(done.stdout)
    assert max(map(len, done.stdout.splitlines())) > 100  # sentences are not broken
    wrong = run("-w", "w.blowfish", "show", "77777", folder=settled)
    assert wrong.returncode == 2 and wrong.stdout == ""
    assert "\x1b" not in wrong.stderr and "Traceback" not in wrong.stderr and "try:" in wrong.stderr


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_a_terminal_has_colours_unless_they_are_not_wanted(
    settled: Path, environment: dict[str, str]
) -> None:
    done = run(
        "-w", "w.blowfish", "explain", "people", folder=settled, FORCE_COLOR="1", COLUMNS="80", **environment
    )
    coloured = "\x1b[32m" in done.stdout or "\x1b[34m" in done.stdout
    assert done.returncode == 0 and coloured is not bool(environment)


def test_without_a_workspace_nothing_is_made(tmp_path: Path) -> None:
    done = run("log", folder=tmp_path)
    assert done.returncode == 1 and "There is no workspace" in done.stderr
    assert list(tmp_path.iterdir()) == []
