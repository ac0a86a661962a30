"""Heads outside the workspace: what was rolled back or rewritten is seen by whoever kept one."""

from __future__ import annotations

import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from blowfishdb.adapters.store.values import Head
from blowfishdb.adapters.store.witness import Witness
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, WorkspaceError
from blowfishdb.entrypoints.doctor import State, checks
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.commands import Shell
from tests.entrypoints.server import CHEAP, SETTINGS, client_of, make_workspace

A, B = "a" * 64, "b" * 64


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make_workspace(tmp_path)


def ask(place: Path, width: int) -> str:
    with Workspace(place, user="analyst") as workspace:
        return workspace["salaries"]["age"].histogram(width=width).spend("0.1").ask().receipt.head


def test_a_head_that_was_kept_is_extended(place: Path) -> None:
    with Workspace(place) as workspace:
        head = workspace.head()
        assert workspace.audit(since=str(head)).problems == ()
    receipt = ask(place, 20)
    with Workspace(place) as workspace:
        assert workspace.head().number > head.number
        for kept in (head, str(head), receipt):
            assert workspace.audit(since=kept).problems == ()
        for text in ("", "5", "5:abc", "x:" + A, f"5:{A}x"):
            with pytest.raises(InvalidInput, match="not a head"):
                workspace.audit(since=text)
        other = workspace.audit(since=Head(head.number, B)).problems
        assert len(other) == 1 and "do not extend a head" in other[0]


def test_a_store_that_was_rolled_back_is_found_by_the_head_of_a_receipt(place: Path, tmp_path: Path) -> None:
    shutil.copy(place, tmp_path / "yesterday")
    kept = ask(place, 20)
    shutil.copy(tmp_path / "yesterday", place)
    with Workspace(place) as workspace:
        assert workspace.verify() == [] and workspace.budget("salaries").spent == Epsilon(0)
        (said,) = workspace.audit(since=kept).problems
        assert "rolled back" in said
    ask(place, 25)
    ask(place, 30)
    with Workspace(place) as workspace:  # as many events again, but others
        assert workspace.verify() == []
        (said,) = workspace.audit(since=kept).problems
        assert "do not extend" in said


def test_a_witness_is_for_its_owner_and_written_once_for_each_head(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "heads")
    with pytest.raises(InvalidInput, match="no witness file"):
        witness.heads()
    with ThreadPoolExecutor(8) as pool:  # as several workers do, each with its own file handle
        for number in range(1, 21):
            list(pool.map(Witness(tmp_path / "heads").write, [Head(number, A)] * 8))
    assert [head.number for head in witness.heads()] == list(range(1, 21))
    assert stat.S_IMODE((tmp_path / "heads").stat().st_mode) == 0o600
    assert (tmp_path / "heads").read_text() == "".join(f"{number}:{A}\n" for number in range(1, 21))
    witness.write(Head(3, B))
    assert len(witness.heads()) == 20
    with (tmp_path / "heads").open("a") as file:
        file.write("21:aaaa")  # cut off by a crash
    assert len(witness.heads()) == 20
    witness.write(Head(21, A))
    assert [head.number for head in witness.heads()] == list(range(1, 22))
    with (tmp_path / "heads").open("a") as file:
        file.write("22:aaaa\n")
    with pytest.raises(WorkspaceError, match="Line 22 of the witness file"):
        witness.heads()


def test_a_witness_of_an_earlier_version_has_moments(tmp_path: Path) -> None:
    (tmp_path / "heads").write_text(f"7:{A} 2026-01-01T00:00:00.000000+00:00\n")
    Witness(tmp_path / "heads").write(Head(8, B))
    assert Witness(tmp_path / "heads").heads() == [Head(7, A), Head(8, B)]


def test_a_witness_that_has_no_room_says_so() -> None:
    with pytest.raises(WorkspaceError, match=r"'/dev/full' cannot be written"):
        Witness("/dev/full").write(Head(1, A))


def test_a_server_writes_heads_and_refuses_books_that_do_not_extend_them(place: Path, tmp_path: Path) -> None:
    heads = tmp_path / "elsewhere" / "heads"
    heads.parent.mkdir()
    settings = replace(SETTINGS, witness=str(heads))
    shutil.copy(place, tmp_path / "yesterday")
    with client_of(create_app(place, settings=settings, hasher=CHEAP)):
        ask(place, 20)  # by another process, as far as the server knows
    with Workspace(place) as workspace:
        assert Witness(heads).heads()[-1].is_of(workspace.head().hash)
        audited = workspace.audit(witness=heads)
        assert audited.problems == () and audited.witnessed == len(Witness(heads).heads())
    found = [check for check in checks(str(place), heads) if check.name == "workspace"]
    assert found[0].state is State.OK and "heads of the witness file" in found[0].found
    shutil.copy(tmp_path / "yesterday", place)
    with Workspace(place) as workspace:
        assert any("rolled back" in said for said in workspace.audit(witness=heads).problems)
    found = [check for check in checks(str(place), heads) if check.name == "workspace"]
    assert found[0].state is State.FAIL and "rolled back" in found[0].found
    with pytest.raises(WorkspaceError, match="rolled back"):
        create_app(place, settings=settings, hasher=CHEAP)


def test_heads_on_the_command_line(place: Path, tmp_path: Path) -> None:
    shell = Shell(place)
    head = shell.must("audit", "--head").out.strip()
    assert Head.of(head)
    said = shell.must("audit", "--since", head).out
    assert "The books extend the head" in " ".join(said.split()) and "Checked:" in said
    Witness(tmp_path / "heads").write(Head(10**6, A))
    done = shell("audit", "--witness", str(tmp_path / "heads"))
    assert done.code == 1 and "rolled back" in " ".join(done.out.split())
