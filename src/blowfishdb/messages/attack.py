"""What came of an attack on a made-up person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.plain import Message
from blowfishdb.core.policy.protection import percent


@final
@dataclass(frozen=True)
class Attack(Message):
    """What an attacker makes of all answers so far: how sure of the true salary after each, and at most."""

    _said = ("guess", "sentence")
    _nano = True

    person: int
    salary: int
    other: int
    """The salary that the attacker thinks as likely beforehand."""
    noisy: bool
    epsilon: Epsilon
    """What all answers cost together."""
    sure: tuple[float, ...]
    """Of the truth, after no answer, one, two …; below ½ the attacker leans to what is wrong."""
    most: tuple[float, ...]
    """What the promise allows after each."""

    @property
    def guess(self) -> int:
        """Which of the two the attacker says in the end."""
        return self.salary if self.sure[-1] >= 0.5 else self.other

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        sure, count = self.sure[-1], len(self.sure) - 1
        believed = percent(max(sure, 1 - sure))
        if not self.noisy:
            return (
                f"Without noise the attacker is {believed} sure of {self.guess:,} after one answer: caught."
            )
        answers = f"{count} answer{'' if count == 1 else 's'}"
        right = "right" if self.guess == self.salary else "wrong"
        return (
            f"After {answers} the attacker is {believed} sure of {self.guess:,}, which is {right}. "
            f"The promise allows at most {percent(self.most[-1])}."
        )
