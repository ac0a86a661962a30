"""Files that only their owner may read: a workspace, its copies of rows, backups and exports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

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
