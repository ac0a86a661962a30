"""Whoever only looks waits for nobody: a workspace is opened and a price is told while another one writes."""

from __future__ import annotations

import multiprocessing
import os
import pwd
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from blowfishdb.adapters.store.values import State
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import WorkspaceError
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import CHEAP, QUESTION, SETTINGS, client_of, make_workspace

SOON = 20.0  # a writer waits for 60 seconds for its turn


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Somebody has the turn to write, and does not let go."""
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE heads SET seq = seq")
        yield
        connection.execute("ROLLBACK")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make_workspace(tmp_path)


def test_the_first_quote_does_not_wait_for_a_writer(place: Path) -> None:
    with writing(place):
        begin = time.monotonic()
        with Workspace(place, user="analyst") as workspace:
            quote = workspace["salaries"]["age"].histogram(width=20).accurate_to(50).quote()
            assert workspace.verify() == [] and workspace.events() and workspace.answers() == []
        assert quote.epsilon > Epsilon(0) and time.monotonic() - begin < SOON


def test_the_first_quote_of_a_server_does_not_wait_for_a_writer(place: Path) -> None:
    with Workspace(place) as workspace:
        token = Tokens(workspace.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))[0]
    app = create_app(place, settings=SETTINGS, hasher=CHEAP)
    try:
        with writing(place):
            begin = time.monotonic()
            told = client_of(app, token).post("/api/v1/datasets/salaries/quotes", json=QUESTION)
            assert told.status_code == 200 and time.monotonic() - begin < SOON
    finally:
        app.state.server.workspace.close()


def test_what_was_left_unfinished_is_still_ended_on_opening(place: Path) -> None:
    with Workspace(place, user="analyst") as workspace:
        charge = workspace._ledger.reserve("salaries", "analyst", Epsilon("0.1"), "q", {}, reading=True)
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE charges SET changed_at = '2020-01-01T00:00:00.000000+00:00'")
    with Workspace(place) as workspace:
        assert workspace._ledger.charge(charge.id).state is State.LOST


def _read(copy: Path) -> None:
    with Workspace(copy) as workspace:
        found = workspace.audit()
        assert found.problems == () and found.checked["charges and stored answers"] == 1, found
        assert workspace.audit(since=found.head).problems == ()
        assert len(workspace.answers()) == 1 and workspace.store.read_only
        with pytest.raises(WorkspaceError, match="may only be read"):
            workspace.set_budget("salaries", Epsilon(9))


def _read_as_nobody(place: Path, copy: Path) -> None:
    with Workspace(place) as workspace:  # everything is imported while this process may read it
        head = workspace.audit().head
        assert workspace.audit(since=head).problems == () and len(workspace.answers()) == 1
    os.setuid(pwd.getpwnam("nobody").pw_uid)
    _read(copy)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write")
@pytest.mark.parametrize("kept", ["backup", "workspace"])
def test_a_backup_that_may_only_be_read_is_audited(place: Path, kept: str) -> None:
    """By someone who may write neither the file nor its folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / "monday.blowfish"
        with Workspace(place, user="analyst") as workspace:
            workspace["salaries"]["age"].histogram(width=20).spend("0.1").ask()
            assert workspace.audit().problems == () and len(workspace.answers()) == 1
            if kept == "backup":
                workspace.backup(copy)
        if kept == "workspace":  # as it was left, in the mode in which it was written
            shutil.copy(place, copy)
        copy.chmod(0o444)
        folder.chmod(0o555)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply_async(_read_as_nobody, (place, copy)).get(60)
        assert [found.name for found in folder.iterdir()] == ["monday.blowfish"]
        folder.chmod(0o755)
