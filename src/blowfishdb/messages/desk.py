"""What people keep beside answers: names and notes, cards for others, dashboards, plans, requests for more.

None of it changes what an answer says or costs, and none of it holds a number that was not released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.plain import Message

LONGEST_NAME: Final = 120
LONGEST_NOTE: Final = 2_000
LONGEST_REASON: Final = 500
MOST_PLANNED: Final = 50


@final
@dataclass(frozen=True)
class Label(Message):
    """What an answer is called, and what was noted about it."""

    name: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if len(self.name) > LONGEST_NAME or "\n" in self.name:
            raise InvalidInput(f"A name is one line of at most {LONGEST_NAME} characters.")
        if len(self.note) > LONGEST_NOTE:
            raise InvalidInput(f"A note has at most {LONGEST_NOTE:,} characters.")


@final
@dataclass(frozen=True)
class Card(Message):
    """An answer that whoever has the address may see, without an account, until it is ended."""

    id: str
    answer: int
    dataset: str
    by: str
    made: str
    ended: str | None = None


@final
@dataclass(frozen=True)
class BudgetRequest(Message):
    """Somebody asks the curator for more, in a sentence; what became of it."""

    id: str
    dataset: str
    user: str
    reason: str
    at: str
    state: str = "open"
    """``open``, ``granted`` or ``declined``."""
    reply: str = ""

    def __post_init__(self) -> None:
        if not self.reason.strip() or len(self.reason) > LONGEST_REASON:
            raise InvalidInput(
                f"A request says what it is for, in at most {LONGEST_REASON} characters.",
                fixes=("one sentence",),
            )


@final
@dataclass(frozen=True)
class Planned(Message):
    """A question on somebody's plan: as the interface takes it, and where its form is."""

    dataset: str
    asked: dict[str, Any]
    address: str = ""


@final
@dataclass(frozen=True)
class Dashboard(Message):
    """Answers on one page, for those who may see them."""

    id: str
    title: str
    answers: tuple[int, ...]
    by: str
    made: str

    def __post_init__(self) -> None:
        if not self.title.strip() or len(self.title) > LONGEST_NAME:
            raise InvalidInput(f"A dashboard has a title of at most {LONGEST_NAME} characters.")
        if not 1 <= len(self.answers) <= MOST_PLANNED:
            raise InvalidInput(f"A dashboard has 1 to {MOST_PLANNED} answers.")
