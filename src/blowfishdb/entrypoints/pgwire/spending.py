"""What a statement may cost: nothing, unless a ``max_cost`` allows it, and never more than the caps leave.

A ``max_cost`` is said by the statement (``WITH MAX_COST 0.2``), the connection, the account or the dataset.
Caps hold for a connection and for an account in one day; what is spent is counted before it is spent, in one
transaction, so that connections that ask at the same time do not both take what is left for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, final

from blowfishdb.adapters.store.once import Scratch
from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.pgwire.errors import NO_BUDGET, Refusal
from blowfishdb.entrypoints.pgwire.settings import Settings
from blowfishdb.show.words import loss

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

    def allowed(self, statement: str | None, dataset: dict[str, str]) -> Epsilon | None:
        """What a statement may cost by what was said; None if nobody said anything."""
        said = statement if statement is not None else self.settings.ours("max_cost", dataset)
        return Epsilon(said) if said else None

    def hold(self, price: Epsilon, dataset: dict[str, str]) -> None:
        """Count a price before it is spent, or refuse it because a cap would be exceeded."""
        connection = [Epsilon(cap).nano for cap in self.settings.cap("connection_cap")]
        if connection and self.spent + price.nano > min(connection):
            raise _capped("connection", price, min(connection), self.spent)
        daily = [Epsilon(cap).nano for cap in self.settings.cap("daily_cap")]
        daily += [Epsilon(dataset["daily_cap"]).nano] if dataset.get("daily_cap") else []
        most = min(daily, default=None)
        if self.scratch.add(f"{_OWNER} {self.user}", _today(), price.nano, most) is None:
            assert most is not None
            raise _capped("account today", price, most, self.today())
        self.spent += price.nano

    def give_back(self, amount: Epsilon) -> None:
        """What was counted and not spent."""
        if amount:
            self.scratch.add(f"{_OWNER} {self.user}", _today(), -amount.nano)
            self.spent -= amount.nano

    def today(self) -> int:
        """What the account has spent through this door since midnight (UTC), in nano-ε."""
        return int(self.scratch.get(f"{_OWNER} {self.user}", _today()) or 0)


def _today() -> str:
    return f"wire {datetime.now(UTC):%Y-%m-%d}"


def not_allowed(price: Epsilon, allowed: Epsilon | None) -> Refusal:
    """The refusal of what costs more than was allowed, with the statement that allows it."""
    enough = _rounded_up(price)
    allow = f"Try: SET blowfishdb.max_cost = '{enough}';"
    once = f"  or: the statement WITH MAX_COST {enough}, for this once"
    hint = f"{allow}\n{once}\n  or: a larger error; EXPLAIN gives the price, for nothing"
    if allowed is None:
        words = f"This answer costs ε {loss(price)}, and nothing allows this connection to spend it."
    else:
        words = f"This answer costs ε {loss(price)}, more than the max_cost of {allowed}."
    return Refusal(NO_BUDGET, words, detail="Nothing was charged.", hint=hint)


def _rounded_up(price: Epsilon) -> str:
    """A price in three digits that is not below it."""
    step = 10 ** max(len(str(price.nano)) - 3, 0)
    return str(Epsilon.from_nano(-(-price.nano // step) * step))


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
