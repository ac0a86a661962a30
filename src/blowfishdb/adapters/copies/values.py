"""What is said about where rows come from: how a file is written, what a copy holds, whether rows may change.

Dialect: how a file of texts is written. Found once, shown to the curator, confirmed, and stored. It is not
used when questions are answered: by then the rows are in a copy that has no dialect.

Kinds of sources: what is promised about rows staying as they are within one snapshot.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final, Self, final

from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.plain import Message

SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What stands between two values, and how it is called."""


_QUOTES: Final = {'"': "double quotes", "'": "single quotes", "": "nothing"}


_DECIMALS: Final = {".": "a point", ",": "a comma"}


_LINE_ENDS: Final = "\r\n"


@final
@dataclass(frozen=True)
class Dialect(Message):
    """How a file of texts is written: one row on each line, a quote inside quotes written twice. Of a file of
    Excel it names the ``sheet``, and nothing but ``header`` matters besides.

    ``quote`` is empty where quotes are signs like others; without a ``header`` the columns are called
    column_1, column_2, … With a decimal comma, points between thousands are left out.
    """

    delimiter: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    header: bool = True
    decimal: str = "."
    sheet: str = ""

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
        if not isinstance(self.sheet, str):
            raise InvalidInput("A sheet is called by its name.", fixes=("'Sheet1'",))
        object.__setattr__(self, "encoding", self.encoding.lower())

    def describe(self) -> str:
        """In words, for the curator."""
        if self.sheet:
            names = "its first row names the columns" if self.header else "no row names the columns"
            return f"the sheet '{self.sheet}' of a file of Excel, {names}"
        apart = SEPARATORS.get(self.delimiter, f"the sign {self.delimiter!r}")
        names = "the first line names the columns" if self.header else "no line names the columns"
        return (
            f"values apart by {apart}, quoted by {_QUOTES[self.quote]}, {names}, "
            f"numbers with {_DECIMALS[self.decimal]}, encoded as {self.encoding}"
        )

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Self:
        """A dialect from its plain form; what is not said is as in most files."""
        names = {field.name for field in fields(cls)}
        unknown = sorted(set(said) - names)
        if unknown:
            raise InvalidInput(f"A dialect has no '{unknown[0]}'.", fixes=tuple(sorted(names)))
        return cls(**said)


def _is_text_encoding(name: str) -> bool:
    try:
        codec = codecs.lookup(name)
        return isinstance(" ".encode(codec.name), bytes)
    except (LookupError, TypeError, ValueError, AttributeError):
        return False


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


@final
@dataclass(frozen=True)
class RowsCopy(Message):
    """A copy of the rows of a dataset: its place in the folder, its SHA-256, and how much it holds.

    How many rows there are may be hidden, so this is for the curator.
    """

    file: str
    sha256: str
    rows: int
    bytes: int
    taken: str


@final
@dataclass(frozen=True)
class SourceFacts(Message):
    """Where the rows of a dataset come from, how a file was read, and the copy that answers come from.

    For the curator: a copy knows how many rows there are, which may be hidden.
    """

    _said = ("kind_in_words", "read_as")

    dataset: str
    kind: SourceKind
    location: str
    """Without a password; empty for a table that was in memory."""
    snapshot: int
    dialect: Dialect | None = None
    copy: RowsCopy | None = None

    def describe(self) -> str:
        """In words."""
        words = [f"{self.dataset}: {self.kind.words}."]
        if self.location:
            words.append(f"From {self.location}.")
        if self.dialect is not None:
            words.append(f"Read as {self.dialect.describe()}.")
        if self.copy is not None:
            words.append(
                f"{self.copy.rows:,} rows, {self.copy.bytes:,} bytes, taken {self.copy.taken}, "
                f"SHA-256 {self.copy.sha256}."
            )
        return " ".join(words)

    @property
    def kind_in_words(self) -> str:
        """Where answers come from."""
        return self.kind.words

    @property
    def read_as(self) -> str | None:
        """How the file was read, in words."""
        return None if self.dialect is None else self.dialect.describe()


@final
@dataclass(frozen=True)
class Holdings(Message):
    """The sources of all datasets, and how many bytes their copies take of those they may."""

    sources: tuple[SourceFacts, ...]
    used: int
    quota: int


@final
@dataclass(frozen=True)
class SourceRows(Message):
    """Which rows of a source are meant, whose they are and how they are read, as a curator says it."""

    table: str | None = None
    view: str | None = None
    person: str | None = None
    rows_per_person: int = 1
    row_key: str | None = None
    kind: SourceKind | None = None
    dialect: Dialect | None = None
    public: tuple[str, ...] = ()
    rows_vary: bool | None = None
    same_rows: bool = False
    tables: Mapping[str, Any] | None = None
    """Several tables that belong together by keys, in the plain form of ``Tables``."""
    opened: bool = True
    """Not opened: nobody can ask about it before a policy is published."""
