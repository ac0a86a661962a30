"""Copies of a workspace: backup, restore, delete.

A ledger must never forget a charge, so a copy is either whole and verified or not there at all, and nothing
is ever overwritten. What was charged after a backup is not in it: whoever restores one is told up to where it
remembers, and takes what was spent since then off the budget.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final
from urllib.parse import quote

from sqlalchemy import select

from blowfishdb.adapters.copies import make_durable, private_file
from blowfishdb.adapters.copies.folder import copies_folder
from blowfishdb.adapters.store.database import Store, explain
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.tables import events, meta
from blowfishdb.adapters.tokens import end_all_tokens
from blowfishdb.core.errors import InvalidInput, WorkspaceError

_SIDECARS: Final = ("-wal", "-shm", "-journal")


@final
@dataclass(frozen=True)
class Copy:
    """A verified copy: how many events it remembers, and when the last of them happened (ISO, UTC)."""

    path: Path
    events: int
    until: str | None


def backup(store: Store, path: str | Path) -> Copy:
    """Copy an open workspace to a new file, as it is at one moment, while others go on writing."""
    if not store.sqlite:
        raise InvalidInput(
            f"The workspace {store.name} is not a file, so its own database makes the backup.",
            fixes=(f"pg_dump --format=custom --file='{path}' with the address of the workspace",),
        )
    with _new_file(Path(path)) as part:
        with store.reading() as connection, explain(str(path)), closing(sqlite3.connect(part)) as copy:
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            source.backup(copy)
        return _verified(part, Path(path))


def restore(path: str | Path, into: str | Path) -> Copy:
    """Make a workspace from a backup, in a place where there is none; refuse one that does not add up.

    Questions that were under way when the backup was made count as answered: they may have been, afterwards.
    Nobody stays signed in, since tokens may have been revoked afterwards too; the same is true of users, so
    whoever restores a workspace looks through its users.
    """
    _check_file(path, "pg_restore")
    _check_file(into, "pg_restore")
    with _new_file(Path(into)) as part:
        with _opened(Path(path)) as source, closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
        with closing(Ledger.open(part)) as ledger:
            _check_books(ledger, Path(path))
            ledger.recover(restored=True)
            end_all_tokens(ledger.store)
        return _verified(part, Path(into))


def delete(path: str | Path) -> None:
    """Remove a workspace for good, with the copies of its rows and everything that it knows to be spent."""
    _check_file(path, "dropdb")
    file = Path(path)
    with _opened(file, writable=True) as connection:
        try:
            connection.execute("PRAGMA journal_mode = DELETE").close()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise WorkspaceError(
                f"'{file}' is open elsewhere, so it was not deleted.", fixes=("close it there",)
            ) from None
    file.unlink()
    for ending in _SIDECARS:
        file.with_name(file.name + ending).unlink(missing_ok=True)
    folder = copies_folder(file.resolve())
    if folder.is_dir():
        shutil.rmtree(folder)


# --- files ------------------------------------------------------------------------------------


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file under another name, which gets its own when all went well and is removed otherwise."""
    for file in (path, *(path.with_name(path.name + ending) for ending in _SIDECARS)):
        if file.exists() or file.is_symlink():
            raise WorkspaceError(
                f"There is already a file '{file}', and nothing is overwritten.",
                fixes=("another path", f"move '{file}' away"),
            )
    if not path.parent.is_dir():
        raise WorkspaceError(f"There is no folder '{path.parent}'.", fixes=("create it",))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        private_file(part)
        yield part
        make_durable(part)
        os.link(part, path)  # unlike a rename, this fails if the file has come to be meanwhile
        make_durable(path.parent)
    except FileExistsError:
        raise WorkspaceError(
            f"A file '{path}' appeared meanwhile, and nothing is overwritten.", fixes=("another path",)
        ) from None
    finally:
        for ending in ("", *_SIDECARS):
            with suppress(OSError):
                part.with_name(part.name + ending).unlink(missing_ok=True)


def _check_file(path: str | Path, tool: str) -> None:
    if isinstance(path, str) and "://" in path:
        raise InvalidInput(
            "A workspace at an address lives in a database of its own, which has its own tools for this.",
            fixes=(f"{tool}, as the owner of that database",),
        )


@contextmanager
def _opened(path: Path, *, writable: bool = False) -> Iterator[sqlite3.Connection]:
    """A workspace file as it is, without making or upgrading anything."""
    if not path.is_file():
        raise WorkspaceError(f"There is no file '{path}'.", fixes=("check the path and the working folder",))
    address = f"file:{quote(str(path.resolve()))}?mode={'rw' if writable else 'ro'}"
    with explain(str(path)), closing(sqlite3.connect(address, uri=True, timeout=1)) as connection:
        tables = "SELECT count(*) FROM sqlite_master WHERE name IN (?, ?)"
        if connection.execute(tables, (meta.name, events.name)).fetchone() != (2,):
            raise WorkspaceError(
                f"'{path}' is not a workspace. Nothing was changed.", fixes=("check the path",)
            )
        yield connection


# --- books ------------------------------------------------------------------------------------


def _check_books(ledger: Ledger, path: Path) -> None:
    problems = ledger.verify()
    if problems:
        shown = " ".join(problems[:3])
        raise WorkspaceError(
            f"The books in '{path}' do not add up, so it cannot be trusted with a budget: {shown}",
            fixes=("another backup",),
        )


def _verified(part: Path, path: Path) -> Copy:
    newest = select(events.c.seq, events.c.at).order_by(events.c.seq.desc()).limit(1)
    with closing(Store.open(part)) as store:
        _check_books(Ledger(store), path)
        with store.reading() as connection:
            last = connection.execute(newest).one_or_none()
    with explain(str(path)), closing(sqlite3.connect(part)) as copy:
        copy.execute(
            "PRAGMA journal_mode = DELETE"
        ).close()  # one file, readable where nothing can be written
    return Copy(path, last.seq if last else 0, last.at if last else None)
