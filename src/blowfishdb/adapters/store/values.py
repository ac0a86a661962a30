"""What a ledger speaks of: budgets, grants, charges, stored answers, and the events that made them.

Heads: the number and the hash of an event, to be kept outside the workspace.

Each hash covers everything before it, so whoever kept a head can later be shown that the books extend it, and
sees at once if they were rolled back or rewritten. A head tells nothing about what happened: events are
salted.

Time, passed in: nothing depends on a clock that never goes back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, Self, final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.plain import Message

NOTHING: Final = Epsilon(0)


class State(Enum):
    """Where a charge stands."""

    RESERVED = "reserved"
    READING = "reading"
    SETTLED = "settled"
    LOST = "lost"
    VOID = "void"

    def follows(self, state: State, amount: int) -> bool:
        """Whether it can be entered from ``state``; no row need be read for an answer that costs nothing."""
        unread = self is State.SETTLED and state is State.RESERVED and not amount
        return _BEFORE.get(self) is state or unread

    @property
    def held(self) -> bool:
        """Whether the amount is set aside."""
        return self in (State.RESERVED, State.READING)

    @property
    def spent(self) -> bool:
        """Whether the amount is gone for good."""
        return self in (State.SETTLED, State.LOST)


_BEFORE: dict[State, State] = {
    State.READING: State.RESERVED,
    State.VOID: State.RESERVED,
    State.SETTLED: State.READING,
    State.LOST: State.READING,
}


@final
@dataclass(frozen=True)
class Budget(Message):
    """What a dataset may lose in total, has lost, and holds for questions under way."""

    _said = ("remaining",)
    _nano = True

    dataset: str
    total: Epsilon
    spent: Epsilon
    held: Epsilon
    carried: Epsilon = NOTHING
    """What answers under earlier policies lost under this one, above what was spent on them."""

    @property
    def used(self) -> Epsilon:
        """What is spent, held for questions under way, or lost by answers under earlier policies."""
        return self.spent + self.held + self.carried

    @property
    def remaining(self) -> Epsilon:
        """What can still be reserved; nothing while the past is larger than the total."""
        return self.total - self.used if self.total > self.used else NOTHING


@final
@dataclass(frozen=True)
class PolicyBalance:
    """An earlier policy that is still kept: new answers have to fit under it too."""

    dataset: str
    version: int
    total: Epsilon
    spent: Epsilon
    held: Epsilon

    @property
    def remaining(self) -> Epsilon:
        """What may still be lost under it."""
        used = self.spent + self.held
        return self.total - used if self.total > used else NOTHING


@final
@dataclass(frozen=True)
class Grant(Message):
    """What one analyst may spend (None: as much as the dataset has), has spent, and holds."""

    _nano = True

    dataset: str
    user: str
    granted: Epsilon | None
    spent: Epsilon
    held: Epsilon


@final
@dataclass(frozen=True)
class RequestKey:
    """The key that a request was sent under, what was asked by its digest, and which part of a batch it is.

    A key belongs to one user and one request; under it every part is charged once, whatever happens.
    """

    text: str
    asked: str
    part: int = 0

    def digest(self, user: str) -> str:
        """How the ledger knows the key of a user."""
        return hashlib.sha256(f"{len(user)} {user} {self.text}".encode()).hexdigest()


@final
@dataclass(frozen=True)
class Charge:
    """One entry of the ledger."""

    id: int
    dataset: str
    user: str
    amount: Epsilon
    question: str
    detail: Mapping[str, Any]
    state: State
    reserved_at: datetime
    changed_at: datetime
    reason: str | None = None
    refines: int | None = None
    """The charge whose release this one makes more accurate."""
    head: str = field(default="", compare=False)
    """Where the books ended when it was reserved; known to the process that reserved it."""
    debit: Epsilon = field(default=NOTHING, compare=False)
    """What the account of the user pays: the largest loss under any promise; known to the same process."""


@final
@dataclass(frozen=True)
class Reservation:
    """What is to be held for one question, and under which conditions."""

    dataset: str
    user: str
    amount: Epsilon
    question: str
    """By its name, which all that must have the same answer share."""
    detail: Mapping[str, object]
    once: bool = False
    """Whether it is refused while the same question is being answered, so that nobody pays for it twice."""
    version: int | None = None
    """The policy that the amount was computed for."""
    declared: int | None = None
    """The version of the declaration whose rows are going to be read."""
    losses: Mapping[int, Epsilon] = field(default_factory=dict)
    """What the answer costs under each earlier policy that is still kept."""
    key: RequestKey | None = None
    """Under which every part of a request is charged once for ever."""
    refines: int | None = None
    """The charge whose release is going to be made more accurate: refused for one that was, or is being."""


@final
@dataclass(frozen=True)
class StoredAnswer:
    """A settled charge and what was released for it, as JSON."""

    charge: Charge
    answer: str


@final
@dataclass(frozen=True)
class Answered:
    """How many answers there are, how many of them cost something, and what these cost."""

    count: int = 0
    paid: int = 0
    spent: Epsilon = NOTHING


@final
@dataclass(frozen=True)
class Event(Message):
    """One event of the chain: a budget, a grant, a published policy, or the state that a charge entered."""

    _nano = True

    seq: int
    at: datetime
    kind: str
    dataset: str
    analyst: str
    charge: int | None
    amount: Epsilon
    facts: Mapping[str, Any]
    hash: str
    salt: str = ""
    """Part of what is hashed, so that nothing can be guessed from the hash alone."""
    sealed: tuple[Mapping[str, Any], ...] = ()
    """Seals of what was changed outside the ledger: declarations, policies, accounts, tokens, responses."""


@final
@dataclass(frozen=True)
class EventPage:
    """Some events, the newest first; how many there are in all, and on which of how many pages these are."""

    events: tuple[Event, ...]
    count: int
    number: int
    pages: int


@final
@dataclass(frozen=True)
class ChargePage:
    """Some charges, the newest first, each with its events in order; how many there are, and which page."""

    charges: tuple[tuple[Charge, tuple[Event, ...]], ...]
    count: int
    number: int
    pages: int


@final
@dataclass(frozen=True)
class Spent:
    """What one of those who ask has spent on a day."""

    day: str
    analyst: str
    amount: Epsilon


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
        match = _TEXT.fullmatch(text.strip().lower()) if isinstance(text, str) else None
        if match is None:
            raise InvalidInput(
                "This is not a head: the number of an event, a colon, and 40 or more digits of its hash.",
                fixes=("the whole line that audit --head printed",),
            )
        return cls(int(match[1]), match[2])

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
        sentences = [f"Checked: {counted}."]
        if self.since is not None:
            sentences.append(
                "Declarations, policies, accounts, tokens and kept responses are on record since "
                f"{self.since}, when the workspace was upgraded; what was changed before that cannot be seen."
            )
        if self.witnessed is not None:
            sentences.append(f"Compared with {self.witnessed:,} heads of the witness file.")
        return tuple(sentences)


Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)


def stamp(clock: Clock) -> str:
    """A moment as it is stored."""
    return clock().astimezone(UTC).isoformat(timespec="microseconds")
