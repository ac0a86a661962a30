"""What a curator is told about where rows are, and about what is kept of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from blowfishdb.adapters.copies.dialect import Dialect
from blowfishdb.adapters.copies.folder import RowsCopy
from blowfishdb.adapters.copies.kind import SourceKind


@final
@dataclass(frozen=True)
class SourceFacts:
    """Where the rows of a dataset come from, how a file was read, and the copy that answers come from.

    For the curator: a copy knows how many rows there are, which may be hidden.
    """

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

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "dataset": self.dataset,
            "kind": self.kind.value,
            "kind_in_words": self.kind.words,
            "location": self.location,
            "snapshot": self.snapshot,
            "dialect": None if self.dialect is None else self.dialect.to_plain(),
            "read_as": None if self.dialect is None else self.dialect.describe(),
            "copy": None if self.copy is None else self.copy.to_plain(),
        }

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Self:
        """Facts from their plain form."""
        return cls(
            said["dataset"],
            SourceKind(said["kind"]),
            said["location"],
            said["snapshot"],
            None if said["dialect"] is None else Dialect.from_plain(said["dialect"]),
            None if said["copy"] is None else RowsCopy.from_plain(said["copy"]),
        )


@final
@dataclass(frozen=True)
class Holdings:
    """The sources of all datasets, and how many bytes their copies take of those they may."""

    sources: tuple[SourceFacts, ...]
    used: int
    quota: int

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "sources": [source.to_plain() for source in self.sources],
            "used": self.used,
            "quota": self.quota,
        }

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Self:
        """Holdings from their plain form."""
        return cls(tuple(map(SourceFacts.from_plain, said["sources"])), said["used"], said["quota"])
