"""Copies of rows: a file is read once, when it is declared, and never again until its curator says so.

Only their values are read elsewhere (``values``); the folder that holds them is in ``folder``.

How large files of rows may be: columns, and what a packed file may unpack to.

Patience: how long a curator's look at rows may take, all in all.

Files that only their owner may read: a workspace, its copies of rows, backups and exports.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, final

from blowfishdb.core.errors import SourceCorrupt, TooLarge

_COLUMNS: Final = 5_000  # that a source may have
_TIMES: Final = 100  # how often larger than itself a packed file may be; texts pack to a tenth or so
_ALWAYS: Final = 1 << 30  # bytes to which any file may unpack


def check_columns(count: int, where: object) -> None:
    """More columns than anyone declares are a mistake about the delimiter, or meant to keep us busy."""
    if count > _COLUMNS:
        raise SourceCorrupt(
            f"'{where}' has {count:,} columns, and at most {_COLUMNS:,} are read.",
            fixes=(
                "a source with the columns that are asked about",
                "another delimiter, for a file of texts",
            ),
        )


def credible(file: Path) -> int:
    """The bytes that a packed file may hold."""
    return max(_ALWAYS, _TIMES * file.stat().st_size)


_FIXES: Final = ("declare the columns without a proposal", "blowfishdb import, where the rows are")


@final
class Patience:
    """So many seconds from now; ``fixes`` for whoever looks too long, or is ``doing`` something else."""

    def __init__(
        self, seconds: float, fixes: tuple[str, ...] = _FIXES, *, doing: str = "Looking at these rows"
    ) -> None:
        self._seconds = seconds
        self._fixes = fixes
        self._doing = doing
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left; there are some, or the look is over."""
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TooLarge(
                f"{self._doing} takes longer than {self._seconds:g} seconds.",
                fixes=self._fixes,
            )
        return seconds

    @property
    def hurried(self) -> bool:
        """Whether half of the time is gone."""
        return self._end - time.monotonic() < self._seconds / 2

    def check(self) -> None:
        """Go on only while there is time."""
        _ = self.left


FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700


def private_file(path: Path) -> None:
    """Make an empty file that others can neither read nor write; one that is there stays as it is."""
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY, FILE_MODE))


def private_folder(path: Path) -> None:
    """Make a folder that others cannot look into; one that is there stays as it is."""
    path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)


def is_private(path: Path) -> bool:
    """Whether nobody but its owner may do anything with a file or folder."""
    return path.stat().st_mode & 0o077 == 0


def make_private(path: Path) -> None:
    """Take from everyone but its owner what they may do with a file or folder."""
    path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)


def make_durable(path: Path) -> None:
    """Have a file or folder on disk before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
