"""CURATOR VIEW, TRUE DATA: what the curator is shown of the rows, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from blowfishdb.core.plain import Message
from blowfishdb.core.questions.kinds import Reading
from blowfishdb.messages.answers import Answer


@final
@dataclass(frozen=True, eq=False)
class Preview(Message):
    """CURATOR VIEW, TRUE DATA: what the answer is, and what an analyst could be told."""

    _said = ("watermark",)

    truth: Reading
    noisy: Answer
    stand_in: bool

    def __repr__(self) -> str:
        return f"<Preview of {self.noisy.receipt.question}>"

    @property
    def watermark(self) -> str:
        """What stands across every picture of it."""
        return "made-up data" if self.stand_in else "CURATOR VIEW, TRUE DATA"


@final
@dataclass(frozen=True)
class Unsatisfied(Message):
    """A declared count that the data does not satisfy."""

    what: str
    declared: int
    true: int


@final
@dataclass(frozen=True)
class KnownCheck(Message):
    """CURATOR VIEW, TRUE DATA: how many declared counts were looked at, and which are wrong."""

    _said = ("sentences",)

    checked: int
    wrong: tuple[Unsatisfied, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in words."""
        if not self.checked:
            return ("Nothing is declared with an answer, so there is nothing to check.",)
        if not self.wrong:
            return (f"The data satisfies all {self.checked:,} declared counts.",)
        first = f"The data does not satisfy {len(self.wrong):,} of {self.checked:,} declared counts."
        return (first, *(f"{w.what}: declared {w.declared:,}, counted {w.true:,}." for w in self.wrong))
