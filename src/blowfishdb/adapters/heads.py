"""Heads: the number and the hash of an event, to be kept outside the workspace.

Each hash covers everything before it, so whoever kept a head can later be shown that the books extend it, and
sees at once if they were rolled back or rewritten. A head tells nothing about what happened: events are
salted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, final

from blowfishdb.core.errors import InvalidInput

_SHOWN: Final = 40  # hexadecimal digits: 160 bits, as much as nobody can make two histories for
_TEXT: Final = re.compile(r"(\d{1,18}):([0-9a-f]{40,64})")


@final
@dataclass(frozen=True)
class Head:
    """An event by its number and its hash, or the first digits of it."""

    number: int
    hash: str

    @classmethod
    def of(cls, text: object) -> Self:
        """A head as it was printed; spaces around it do not matter."""
        said = _TEXT.fullmatch(text.strip().lower()) if isinstance(text, str) else None
        if said is None:
            raise InvalidInput(
                "This is not a head: the number of an event, a colon, and 40 or more digits of its hash.",
                fixes=("the whole line that audit --head printed",),
            )
        return cls(int(said[1]), said[2])

    def is_of(self, hash_: str) -> bool:
        """Whether an event with this hash is meant."""
        return hash_.startswith(self.hash)

    def __str__(self) -> str:
        return f"{self.number}:{self.hash[:_SHOWN]}"


@final
@dataclass(frozen=True)
class Audited:
    """What an audit found: problems in words, and how many of what were looked at."""

    problems: tuple[str, ...]
    checked: Mapping[str, int]
    head: Head
    since: str | None = None
    """From which moment on facts outside the ledger are on record; None if that is so from the beginning."""
    witnessed: int | None = None
    """How many heads of a witness file the books were compared with; None without such a file."""

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "verified": not self.problems,
            "problems": list(self.problems),
            "checked": dict(self.checked),
            "head": str(self.head),
            "covered_since": self.since,
            "witnessed": self.witnessed,
        }

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Self:
        """From its plain form."""
        return cls(
            tuple(said["problems"]),
            dict(said["checked"]),
            Head.of(said["head"]),
            said["covered_since"],
            said["witnessed"],
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was looked at, in words."""
        counted = ", ".join(f"{number:,} {what}" for what, number in self.checked.items())
        said = [f"Checked: {counted}."]
        if self.since is not None:
            said.append(
                "Declarations, policies, accounts, tokens and kept responses are on record since "
                f"{self.since}, when the workspace was upgraded; what was changed before that cannot be seen."
            )
        if self.witnessed is not None:
            said.append(f"Compared with {self.witnessed:,} heads of the witness file.")
        return tuple(said)
