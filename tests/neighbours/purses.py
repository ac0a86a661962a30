"""Who paid for what: what was lost by the questions of each analyst is in that analyst's account."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.neighbours.losing import Loss, added
from tests.neighbours.watching import Released

if TYPE_CHECKING:
    from tests.neighbours.living import Side


@dataclass
class Purse:
    """What one analyst asked under one policy, and paid for it."""

    paid: Fraction = Fraction(0)
    loss: Loss = Fraction(0)
    """Between the two databases."""
    releases: list[Released] = field(default_factory=list)


@dataclass
class Purses:
    """Of every analyst, under every policy."""

    _purses: dict[tuple[str, int], Purse] = field(default_factory=lambda: defaultdict(Purse))
    _before: dict[str, Fraction] = field(default_factory=dict)
    _now: dict[str, Fraction] = field(default_factory=dict)
    _asked: tuple[str, int] | None = None

    def asked(self, name: str, version: int, released: list[Released], loss: Loss) -> None:
        """What came out of a question or a basket."""
        purse = self._purses[name, version]
        purse.releases += released
        purse.loss = added([purse.loss, loss])
        self._asked = name, version

    def look(self, side: Side) -> None:
        """What is in the books by now; what became more was paid by whoever asked last."""
        accounts = side.workspace.grants(side.dataset.name)
        self._before = self._now
        self._now = {account.user: (account.spent + account.held).fraction for account in accounts}
        if self._asked is not None:
            self._purses[self._asked].paid += self._more(self._asked[0])
        self._asked = None

    def _more(self, name: str) -> Fraction:
        return self._now.get(name, Fraction(0)) - self._before.get(name, Fraction(0))

    def check(self, side: Side, step: Any) -> None:
        """Accounts add up to what the dataset lost, or more where earlier promises lose more than that.

        And nobody spent more than was granted.
        """
        budget, accounts = side.workspace.budget(side.dataset.name), side.workspace.grants(side.dataset.name)
        spent = (budget.spent + budget.held).fraction
        paid, promised = sum(self._now.values()), side.workspace.facts(side.dataset.name).policy_version > 1
        assert paid == spent or (promised and paid > spent), (
            f"accounts of {self._now}, spent {spent}, at {step}"
        )
        granted = {account.user: account.granted for account in accounts}
        if not any(granted.values()):
            return
        given = sum((amount.fraction for amount in granted.values() if amount), Fraction(0))
        assert given <= budget.total.fraction, f"granted {given} of {budget.total}, at {step}"
        for name, used in self._now.items():
            amount = granted[name]
            most = Fraction(0) if amount is None else amount.fraction
            assert used <= most or not self._more(name), f"{name} spent {used} of {most}, at {step}"

    def under(self, version: int) -> dict[str, Purse]:
        """Of all who asked under a version."""
        return {name: purse for (name, under), purse in self._purses.items() if under == version}
