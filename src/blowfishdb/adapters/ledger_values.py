"""What a ledger speaks of: budgets, grants, charges, stored answers, and the events that made them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, final

from blowfishdb.core.budget import Epsilon

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
class Budget:
    """What a dataset may lose in total, has lost, and holds for questions under way."""

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
class Promise:
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
class Grant:
    """What one analyst may spend (None: as much as the dataset has), has spent, and holds."""

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
    head: str = field(default="", compare=False)
    """Where the books ended when it was reserved; known to the process that reserved it."""


@final
@dataclass(frozen=True)
class StoredAnswer:
    """A settled charge and what was released for it, as JSON."""

    charge: Charge
    answer: str


@final
@dataclass(frozen=True)
class Event:
    """One event of the chain: a budget, a grant, a published policy, or the state that a charge entered."""

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
