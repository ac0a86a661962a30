"""Files that may be read: a pipe or a device could keep whoever opens it waiting for good."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from blowfishdb.core.errors import SourceError

_MOST_FILES = 100_000


def check_file(path: Path) -> None:
    """Refuse pipes, sockets and devices, also inside a folder, before anything is opened."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            raise SourceError("No file has a name as long as that.", fixes=("check the path",)) from None
        return  # whoever opens it says that it is not there
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise _not_a_file(path)
    if stat.S_ISDIR(kind):
        _check_folder(path)


def is_there(path: Path) -> bool:
    """Whether there is something; a text that is longer than any path, such as an address, names nothing."""
    try:
        return path.exists()
    except OSError:
        return False


def _check_folder(path: Path) -> None:
    seen = 0
    for folder, _, names in os.walk(path):
        for name in names:
            seen += 1
            inside = Path(folder) / name
            if seen > _MOST_FILES:
                raise SourceError(f"'{path}' holds more than {_MOST_FILES:,} files.", fixes=("fewer files",))
            if name.endswith(".parquet") and inside.exists() and not inside.is_file():
                raise _not_a_file(inside)


def _not_a_file(path: Path) -> SourceError:
    return SourceError(
        f"'{path}' is a pipe, a socket or a device, and not a file.", fixes=("a file with the rows",)
    )
