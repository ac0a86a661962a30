"""The demonstration, as a newcomer runs it: without a terminal, again, and in front of one."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from blowfishdb.adapters.copies import is_private
from blowfishdb.adapters.tokens import Role
from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints import demo
from blowfishdb.entrypoints.demo import sign_in
from blowfishdb.entrypoints.demo_data import (
    CHECKINS,
    PEOPLE,
    checkin_domain,
    checkins,
    salaries,
    salary_domain,
)
from blowfishdb.show.terminal import console
from blowfishdb.workspace.embedded import Workspace

PROGRAM = [sys.executable, "-c", "from blowfishdb.entrypoints.cli import app; app()"]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "CI"},
    "COLUMNS": "100",
    "PYTHONWARNINGS": "error",
}


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True, env=ENVIRONMENT, check=False
    )


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("newcomer")
    return folder, run("demo", cwd=folder)


def test_without_a_terminal_it_checks_itself_and_ends(first) -> None:
    _, done = first
    assert done.returncode == 0, done.stderr
    for words in ("QUOTE", "policy dividend", "noise interval", "Receipt", "Budget", "left", "verifies"):
        assert words in done.stdout
    assert "█" in done.stdout and "already paid for" in done.stdout and "affordable 8 times" in done.stdout
    assert "\x1b[" not in done.stdout  # plain when piped


def test_nobody_else_may_read_what_it_made(first) -> None:
    folder, _ = first
    made = [place for place in folder.rglob("*") if place.suffix in (".parquet", ".blowfish")]
    assert len(made) == 5 and all(map(is_private, made))  # rows, their copies, and the workspace


def test_it_tells_the_address_the_accounts_and_three_things_to_try(first) -> None:
    _, done = first
    assert "http://127.0.0.1:8787/" in done.stdout
    for role, password in demo.PASSWORDS.items():
        assert re.search(rf"^{role.value} +{password} ", done.stdout, re.MULTILINE)
    assert [line[:2] for line in done.stdout.splitlines()[-3:]] == ["1.", "2.", "3."]


def test_the_check_leaves_the_demonstration_as_it_was(first) -> None:
    folder, _ = first
    with Workspace(folder / "demo" / demo.WORKSPACE) as workspace:
        assert workspace.datasets() == ["checkins", "salaries"] and not workspace.answers()
        versions = {name: workspace.facts(name).policy_version for name in workspace.datasets()}
        assert versions == {"checkins": 2, "salaries": 1}  # one opens with a policy, one hides everything
        assert not any(workspace.budget(name).spent for name in workspace.datasets())


def test_a_second_run_continues_and_reset_starts_over(first) -> None:
    folder, _ = first
    with Workspace(folder / "demo" / demo.WORKSPACE, user="analyst") as workspace:
        workspace["salaries"]["age"].histogram(width=10).spend("0.9").ask()
    (folder / "demo" / "mine.txt").write_text("not the demonstration's")
    demo.prepare(folder / "demo", console())
    with Workspace(folder / "demo" / demo.WORKSPACE) as workspace:
        assert len(workspace.answers()) == 1
    copies = folder / "demo" / f"{demo.WORKSPACE}.copies"
    copies.mkdir(exist_ok=True)
    (copies / "adult.parquet").write_text("rows of a file that somebody imported")
    demo.clear(folder / "demo")
    assert [file.name for file in (folder / "demo").iterdir()] == ["mine.txt"]
    demo.prepare(folder / "demo", console())
    with Workspace(folder / "demo" / demo.WORKSPACE) as workspace:
        assert not workspace.answers()


def test_an_unfinished_beginning_is_finished(first) -> None:
    folder, _ = first
    (folder / "demo" / demo.WORKSPACE).unlink()
    (folder / "demo" / "checkins.parquet").rename(folder / "demo" / "checkins.part")
    demo.prepare(folder / "demo", console())
    with Workspace(folder / "demo" / demo.WORKSPACE) as workspace:
        assert workspace["checkins"].count().spend(1).ask().values.tolist() == [CHECKINS]


def test_in_front_of_a_terminal_it_serves_until_interrupted(first) -> None:
    folder, _ = first
    keyboard, screen = pty.openpty()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = f"""
from pathlib import Path
from blowfishdb.entrypoints import demo
from blowfishdb.show.terminal import console
demo.run(Path("demo"), console(), port={port})
"""
        process = subprocess.Popen(
            [sys.executable, "-c", code], cwd=folder, env=ENVIRONMENT, stdout=screen, stderr=screen
        )
        os.close(screen)
        shown = read_until(keyboard, "Ctrl-C")
        try:
            assert f"Port {port} is taken" in shown
            found = re.search(r"http://127\.0\.0\.1:(\d+)", shown)
            assert found is not None and int(found.group(1)) != port
            for role in Role:
                with sign_in(found.group(), role) as remote:
                    assert remote.user == role.value and "checkins" in remote
            playing = httpx.post(f"{found.group()}/api/v1/session/demo", json={"role": "auditor"})
            assert playing.json()["user"] == "auditor"
        finally:
            process.send_signal(signal.SIGINT)
        assert "Stopped" in read_until(keyboard, "starts over")
        assert process.wait(30) == 0
    assert '"/api/v1/tokens"' in (folder / "demo" / "server.log").read_text()


def read_until(terminal: int, words: str) -> str:
    """What a program shows, until it says ``words`` or ends."""
    shown, until = "", time.monotonic() + 120
    while words not in shown and time.monotonic() < until:
        try:
            shown += os.read(terminal, 4_096).decode(errors="replace")
        except OSError:
            break
    assert words in shown, shown
    return shown


def test_it_listens_to_this_machine_only(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="this machine only"):
        demo.run(tmp_path, console(), host="0.0.0.0")
    assert not list(tmp_path.iterdir())


def test_a_broken_folder_is_explained_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / demo.WORKSPACE).write_bytes(b"not a ledger" * 500)
    for sample in demo.SAMPLES:
        sample.file(tmp_path / "demo").touch()  # rows are not needed to find out
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and demo.WORKSPACE in done.stderr


def test_help_and_version() -> None:
    assert "demo" in run("--help", cwd=Path.cwd()).stdout
    assert run("--version", cwd=Path.cwd()).stdout.strip()


@pytest.mark.parametrize("make, domain", [(salaries, salary_domain()), (checkins, checkin_domain())])
def test_the_rows_are_the_same_every_time_and_within_their_domain(make, domain) -> None:
    one, other = make(20_000), make(20_000)
    assert all((one[name] == other[name]).all() for name in one)
    assert list(one) == list(domain.names)
    for name in domain:
        assert (domain[name].encode(one[name]) >= 0).all()


def test_salaries_are_plausible() -> None:
    one = salaries(20_000)
    men, women = (one["salary"][one["sex"] == sex].mean() for sex in ("male", "female"))
    assert men > women and 30_000 < one["salary"].mean() < 70_000 and PEOPLE == 500_000


def test_check_ins_are_on_land_and_their_district_follows_from_their_place() -> None:
    one = checkins(50_000)
    places = {}
    for east, north, district in zip(one["east"], one["north"], one["district"], strict=True):
        assert places.setdefault((int(east), int(north)), district) == district
    assert one["east"].min() >= 5  # the sea
    assert set(one["district"]) == set(checkin_domain()["district"].values)
    busiest = [(one["hour"][one["district"] == d] >= 18).mean() for d in ("old town", "farmland")]
    assert busiest[0] > 2 * busiest[1]
