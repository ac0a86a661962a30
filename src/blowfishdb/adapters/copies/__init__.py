"""Copies of rows: a file is read once, when it is declared, and never again until its curator says so.

Kinds of sources: what is promised about rows staying as they are within one snapshot.

Dialect: how a file of texts is written. Found once, shown to the curator, confirmed, and stored.

Nothing here is used when questions are answered: by then the rows are in a copy that has no dialect.

How large files of rows may be: columns, and what a packed file may unpack to.

Patience: how long a curator's look at rows may take, all in all.

Files that only their owner may read: a workspace, its copies of rows, backups and exports.
"""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self, final

from blowfishdb.core.errors import InvalidInput, SourceCorrupt, TooLarge
from blowfishdb.core.plain import Message


class SourceKind(StrEnum):
    """Whose care it is that the rows stay the same."""

    COPY = "copy"
    FROZEN = "frozen"
    LIVE = "live"

    @classmethod
    def read(cls, text: str) -> SourceKind:
        """A kind by its name."""
        if text not in list(cls):
            raise InvalidInput(f"There is no kind of source '{text}'.", fixes=tuple(cls))
        return cls(text)

    @property
    def words(self) -> str:
        """In words, for the curator."""
        return _WORDS[self]

    @property
    def combined(self) -> bool:
        """Whether stored answers speak of the same rows, so that others follow from them."""
        return self is not SourceKind.LIVE


_WORDS: Final = {
    SourceKind.COPY: "a copy of the rows, kept with its hash: it cannot change until it is refreshed",
    SourceKind.FROZEN: "rows in a database, which whoever runs it leaves as they are until it is refreshed",
    SourceKind.LIVE: "rows in a database that may change at any time: each answer is as of its moment",
}


SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What stands between two values, and how it is called."""
_QUOTES: Final = {'"': "double quotes", "'": "single quotes", "": "nothing"}
_DECIMALS: Final = {".": "a point", ",": "a comma"}
_LINE_ENDS: Final = "\r\n"


@final
@dataclass(frozen=True)
class Dialect(Message):
    """How a file of texts is written: one row on each line, a quote inside quotes written twice.

    ``quote`` is empty where quotes are signs like others; without a ``header`` the columns are called
    column_1, column_2, … With a decimal comma, points between thousands are left out.
    """

    delimiter: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    header: bool = True
    decimal: str = "."

    def __post_init__(self) -> None:
        if not isinstance(self.delimiter, str) or len(self.delimiter) != 1 or self.delimiter in _LINE_ENDS:
            raise InvalidInput("One sign stands between two values.", fixes=tuple(map(repr, SEPARATORS)))
        if self.quote not in _QUOTES or self.quote == self.delimiter:
            raise InvalidInput("Values are quoted by \" or ' or not at all.", fixes=("an empty quote",))
        if self.decimal not in _DECIMALS or (self.decimal == self.delimiter and self.quote == ""):
            raise InvalidInput("Numbers have a decimal point or a decimal comma.", fixes=tuple(_DECIMALS))
        if not isinstance(self.header, bool):
            raise InvalidInput("A file has a line with the names of its columns, or it has none.")
        if not isinstance(self.encoding, str) or not _is_text_encoding(self.encoding):
            raise InvalidInput(
                "There is no such encoding of texts.", fixes=("utf-8", "cp1252", "latin-1", "utf-16")
            )
        object.__setattr__(self, "encoding", self.encoding.lower())

    def describe(self) -> str:
        """In words, for the curator."""
        apart = SEPARATORS.get(self.delimiter, f"the sign {self.delimiter!r}")
        names = "the first line names the columns" if self.header else "no line names the columns"
        return (
            f"values apart by {apart}, quoted by {_QUOTES[self.quote]}, {names}, "
            f"numbers with {_DECIMALS[self.decimal]}, encoded as {self.encoding}"
        )

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Self:
        """A dialect from its plain form; what is not said is as in most files."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(said) - known)
        if unknown:
            raise InvalidInput(f"A dialect has no '{unknown[0]}'.", fixes=tuple(sorted(known)))
        return cls(**said)


def _is_text_encoding(name: str) -> bool:
    try:
        found = codecs.lookup(name)
        return isinstance(" ".encode(found.name), bytes)
    except (LookupError, TypeError, ValueError, AttributeError):
        return False


_COLUMNS: Final = 5_000  # that a source may have
_TIMES: Final = 100  # how often larger than itself a packed file may be; texts pack to a tenth or so
_ALWAYS: Final = 1 << 30  # bytes to which any file may unpack


def check_columns(count: int, place: object) -> None:
    """More columns than anyone declares are a mistake about the delimiter, or meant to keep us busy."""
    if count > _COLUMNS:
        raise SourceCorrupt(
            f"'{place}' has {count:,} columns, and at most {_COLUMNS:,} are read.",
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
    """So many seconds from now; ``fixes`` for whoever looks too long."""

    def __init__(self, seconds: float, fixes: tuple[str, ...] = _FIXES) -> None:
        self._seconds = seconds
        self._fixes = fixes
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left; there are some, or the look is over."""
        found = self._end - time.monotonic()
        if found <= 0:
            raise TooLarge(
                f"Looking at these rows takes longer than {self._seconds:g} seconds.",
                fixes=self._fixes,
            )
        return found

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
