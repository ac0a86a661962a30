"""The demonstration, as a newcomer runs it: without a terminal, twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from blowfishdb.adapters.synthetic import PEOPLE, salaries, salary_domain


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from blowfishdb.entrypoints.cli import app; app()", *arguments]
    environment = {**os.environ, "COLUMNS": "100", "PYTHONWARNINGS": "error"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("newcomer")
    return folder, run("demo", cwd=folder)


def test_it_shows_quote_answer_receipt_and_budget(first) -> None:
    _, done = first
    assert done.returncode == 0, done.stderr
    for words in ("QUOTE", "policy dividend", "noise interval", "Receipt", "Budget", "left", "verifies"):
        assert words in done.stdout
    assert "█" in done.stdout and "already paid for" in done.stdout
    assert "\x1b[" not in done.stdout  # plain when piped


def test_a_second_run_costs_nothing(first) -> None:
    folder, done = first
    spent = [line for line in done.stdout.splitlines() if line.startswith("Budget")][-1]
    again = run("demo", cwd=folder)
    assert again.returncode == 0
    assert {line for line in again.stdout.splitlines() if line.startswith("Budget")} == {spent}


def test_reset_starts_over(first) -> None:
    folder, _ = first
    done = run("demo", "--reset", cwd=folder)
    assert done.returncode == 0 and "affordable 8 times" in done.stdout


def test_a_broken_folder_is_explained_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "demo.blowfish").write_bytes(b"not a ledger" * 500)
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and "demo.blowfish" in done.stderr


def test_help_and_version() -> None:
    assert "demo" in run("--help", cwd=Path.cwd()).stdout
    assert run("--version", cwd=Path.cwd()).stdout.strip()


def test_the_people_are_the_same_every_time_and_within_their_domain() -> None:
    one, other = salaries(20_000), salaries(20_000)
    assert all((one[name] == other[name]).all() for name in one)
    domain = salary_domain()
    assert list(one) == list(domain.names) and PEOPLE == 500_000
    for name in domain:
        assert (domain[name].encode(one[name]) >= 0).all()
    men, women = (one["salary"][one["sex"] == sex].mean() for sex in ("male", "female"))
    assert men > women and 30_000 < one["salary"].mean() < 70_000
