"""Copies of a workspace: backup, restore, delete.

A ledger must never forget a charge, so a copy is either whole and verified or not there at all, and nothing
is ever overwritten. What was charged after a backup is not in it: whoever restores one is told up to where it
remembers, and takes what was spent since then off the budget.

The witness: heads of the books in a file outside the workspace, one on each line, only ever added to.

A line is the number of an event and its hash, nothing else: who reads the file learns neither what happened
nor when. Whoever rolls the workspace back, or rewrites it, has to change this file too; so it belongs on
another disk, or on another machine.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sqlite3
import threading
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
from blowfishdb.adapters.store.values import Head
from blowfishdb.adapters.tokens import end_all_tokens
from blowfishdb.core.errors import BlowfishError, InvalidInput, WorkspaceError

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
    place = Path(path)
    with _opened(place, writable=True) as connection:
        try:
            connection.execute("PRAGMA journal_mode = DELETE").close()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise WorkspaceError(
                f"'{place}' is open elsewhere, so it was not deleted.", fixes=("close it there",)
            ) from None
    place.unlink()
    for ending in _SIDECARS:
        place.with_name(place.name + ending).unlink(missing_ok=True)
    folder = copies_folder(place.resolve())
    if folder.is_dir():
        shutil.rmtree(folder)


# --- files ------------------------------------------------------------------------------------


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file under another name, which gets its own when all went well and is removed otherwise."""
    for place in (path, *(path.with_name(path.name + ending) for ending in _SIDECARS)):
        if place.exists() or place.is_symlink():
            raise WorkspaceError(
                f"There is already a file '{place}', and nothing is overwritten.",
                fixes=("another path", f"move '{place}' away"),
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


_EVERY: Final = 2.0  # seconds between looks at where the books end


@final
class Witness:
    """A file of heads; safe to share between threads and processes of one machine."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def heads(self) -> list[Head]:
        """Every head that was written down, oldest first."""
        try:
            text = self.path.read_text("ascii", errors="replace")
        except FileNotFoundError:
            raise InvalidInput(
                f"There is no witness file '{self.path}'.", fixes=("blowfishdb serve --witness FILE",)
            ) from None
        except OSError as error:
            said = f"The witness file '{self.path}' cannot be read ({error.strerror})."
            raise WorkspaceError(said, fixes=("check its permissions",)) from None
        return list(self._parsed(text))

    def write(self, head: Head) -> None:
        """Write a head down, durably, unless that one or a later one is there."""
        with self._alone() as handle:
            text = os.pread(handle, os.fstat(handle).st_size, 0).decode("ascii", errors="replace")
            last = max((known.number for known in self._parsed(text)), default=0)
            if head.number > last:
                os.ftruncate(handle, text.rfind("\n") + 1)  # a line that a crash cut off
                os.write(handle, f"{head.number}:{head.hash}\n".encode())
                os.fsync(handle)

    def _parsed(self, text: str) -> Iterator[Head]:
        for number, line in enumerate(text.split("\n")[:-1], start=1):  # behind the last break: cut off
            try:
                yield Head.of(line.partition(" ")[0])  # earlier versions wrote a moment behind it
            except InvalidInput:
                if line.strip():
                    raise WorkspaceError(
                        f"Line {number} of the witness file '{self.path}' is not a head: it was changed.",
                        fixes=("compare with another copy of it",),
                    ) from None

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """The file, made for its owner only, while nobody else writes it."""
        try:
            new = not self.path.exists()
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if new:
                    os.fchmod(handle, 0o600)
                    _make_durable(self.path.parent)
                yield handle
            finally:
                os.close(handle)
        except OSError as error:
            raise WorkspaceError(
                f"The witness file '{self.path}' cannot be written ({error.strerror}).",
                fixes=("another path, in a folder that is there and has room",),
            ) from None


def _make_durable(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@final
class Watch:
    """Writes every new head of a ledger into a witness file, until it is ended."""

    def __init__(self, ledger: Ledger, witness: Witness) -> None:
        self._ledger = ledger
        self._witness = witness
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="blowfishdb-witness", daemon=True)

    def start(self) -> None:
        """Begin, if the books extend what was written down before; otherwise refuse."""
        if self._witness.path.exists():
            problems = self._ledger.audit(self._witness.heads()).problems
            if problems:
                raise WorkspaceError(
                    f"The books do not agree with the witness file '{self._witness.path}': {problems[0]}",
                    fixes=("blowfishdb audit --witness FILE", "keep that file, and name a new one"),
                )
        self._witness.write(self._ledger.head())
        self._thread.start()

    def end(self) -> None:
        """Write the last head, and stop."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        last = None
        while True:
            over = self._over.wait(_EVERY)
            try:
                head = self._ledger.head()
                if last is not None and head.number < last.number:
                    said = "The books end before event %s, which the witness file has: they were rolled back."
                    logging.getLogger("uvicorn").error(said, last.number)
                elif head != last:
                    self._witness.write(head)
                    last = head
            except BlowfishError as error:
                logging.getLogger("uvicorn").error("%s", error.message)
            if over:
                return
