"""Kinds of sources: what is promised about rows staying as they are within one snapshot."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from blowfishdb.core.errors import InvalidInput


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
