"""The witness: heads of the books in a file outside the workspace, one on each line, only ever added to.

A line is the number of an event and its hash, nothing else: who reads the file learns neither what happened
nor when. Whoever rolls the workspace back, or rewrites it, has to change this file too; so it belongs on
another disk, or on another machine.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from blowfishdb.adapters.copies import make_durable
from blowfishdb.adapters.store.values import Head
from blowfishdb.core.errors import BlowfishError, InvalidInput, WorkspaceError

if TYPE_CHECKING:
    from blowfishdb.adapters.store.ledger import Ledger

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
            reason = f"The witness file '{self.path}' cannot be read ({error.strerror})."
            raise WorkspaceError(reason, fixes=("check its permissions",)) from None
        return list(self._parsed(text))

    def write(self, head: Head) -> None:
        """Write a head down, durably, unless that one or a later one is there."""
        with self._alone() as handle:
            text = os.pread(handle, os.fstat(handle).st_size, 0).decode("ascii", errors="replace")
            last = max((earlier.number for earlier in self._parsed(text)), default=0)
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
                    make_durable(self.path.parent)
                yield handle
            finally:
                os.close(handle)
        except OSError as error:
            raise WorkspaceError(
                f"The witness file '{self.path}' cannot be written ({error.strerror}).",
                fixes=("another path, in a folder that is there and has room",),
            ) from None


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
                    warning = (
                        "The books end before event %s, which the witness file has: they were rolled back."
                    )
                    logging.getLogger("uvicorn").error(warning, last.number)
                elif head != last:
                    self._witness.write(head)
                    last = head
            except BlowfishError as error:
                logging.getLogger("uvicorn").error("%s", error.message)
            if over:
                return
