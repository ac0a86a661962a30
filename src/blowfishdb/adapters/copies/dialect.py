"""Dialect: how a file of texts is written. Found once, shown to the curator, confirmed, and stored.

Nothing here is used when questions are answered: by then the rows are in a copy that has no dialect.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Self, final

from blowfishdb.core.errors import InvalidInput

SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What stands between two values, and how it is called."""
_QUOTES: Final = {'"': "double quotes", "'": "single quotes", "": "nothing"}
_DECIMALS: Final = {".": "a point", ",": "a comma"}
_LINE_ENDS: Final = "\r\n"


@final
@dataclass(frozen=True)
class Dialect:
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

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return asdict(self)

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
