"""What a statement may cost: nothing, unless a ``max_cost`` allows it, and never more than the caps leave.

A ``max_cost`` is said by the statement (``WITH MAX_COST 0.2``), the connection, the account or the dataset.
Caps hold for a connection and for an account in one day; what is spent is counted before it is spent, in one
transaction, so that connections that ask at the same time do not both take what is left for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, final

from blowfishdb.adapters.store.once import Scratch
from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.pgwire.errors import NO_BUDGET, Refusal
from blowfishdb.entrypoints.pgwire.settings import Settings
from blowfishdb.show.words import enough, loss

_OWNER: Final = "spent by"


@final
@dataclass
class Purse:
    """What one connection spends in the name of an account."""

    user: str
    scratch: Scratch
    settings: Settings
    spent: int = 0
    """By this connection, in nano-ε."""
    _day: str = ""
    """On which what was counted last was counted."""

    def allowed(self, statement: str | None, dataset: dict[str, str]) -> Epsilon | None:
        """What a statement may cost by what was said; None if nobody said anything."""
        said = statement if statement is not None else self.settings.ours("max_cost", dataset)
        return Epsilon(said) if said else None

    def hold(self, price: Epsilon, caps: Sequence[str]) -> None:
        """Count a price before it is spent, or refuse it because a cap would be exceeded.

        ``caps`` are those for a day that others than this connection have set.
        """
        connection = [Epsilon(cap).nano for cap in self.settings.cap("connection_cap")]
        if connection and self.spent + price.nano > min(connection):
            raise _capped("connection", price, min(connection), self.spent)
        most = min((Epsilon(cap).nano for cap in (*self.settings.cap("daily_cap"), *caps)), default=None)
        self._day = _today()
        if self.scratch.add(f"{_OWNER} {self.user}", self._day, price.nano, most) is None:
            assert most is not None
            raise _capped("account today", price, most, self.today())
        self.spent += price.nano

    def give_back(self, amount: Epsilon) -> None:
        """What was counted and not spent; midnight may have passed since."""
        if amount:
            self.scratch.add(f"{_OWNER} {self.user}", self._day, -amount.nano)
            self.spent -= amount.nano

    def today(self) -> int:
        """What the account has spent through this door since midnight (UTC), in nano-ε."""
        return spent_today(self.scratch, self.user)


def spent_today(scratch: Scratch, user: str) -> int:
    """What an account has spent through the door for database clients since midnight (UTC), in nano-ε."""
    return int(scratch.get(f"{_OWNER} {user}", _today()) or 0)


def _today() -> str:
    return f"wire {datetime.now(UTC):%Y-%m-%d}"


def not_allowed(price: Epsilon, allowed: Epsilon | None) -> Refusal:
    """The refusal of what costs more than was allowed, with the statement that allows it."""
    least = enough(price)
    allow = f"Try: SET blowfishdb.max_cost = '{least}';"
    once = f"  or: the statement WITH MAX_COST {least}, for this once"
    hint = f"{allow}\n{once}\n  or: a larger error; EXPLAIN gives the price, for nothing"
    if allowed is None:
        words = f"This answer costs ε {loss(price)}, and nothing allows this connection to spend it."
    else:
        words = f"This answer costs ε {loss(price)}, more than the max_cost of {allowed}."
    return Refusal(NO_BUDGET, words, detail="Nothing was charged.", hint=hint)


def limit_words(price: Epsilon, allowed: Epsilon | None) -> str:
    """What a statement may cost, and what to type where that is too little."""
    if allowed is not None and price <= allowed:
        return str(allowed)
    allow = f"SET blowfishdb.max_cost = '{enough(price)}'; allows it"
    return f"not set, so nothing is spent; {allow}" if allowed is None else f"{allowed}, too little; {allow}"


def _capped(whose: str, price: Epsilon, most: int, spent: int) -> Refusal:
    cap, gone = Epsilon.from_nano(most), Epsilon.from_nano(spent)
    name = "connection_cap" if whose == "connection" else "daily_cap"
    return Refusal(
        NO_BUDGET,
        f"This answer costs ε {loss(price)}, and the {whose} has spent ε {loss(gone)} of the {cap} that "
        f"blowfishdb.{name} allows.",
        detail="Nothing was charged.",
        hint="Answers that are out already stay free. A larger error costs less.",
    )
