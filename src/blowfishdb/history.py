"""What answers so far have lost, under whichever policy: the price of changing one's mind (REUSE §3).

Answers that are out keep following the policy of their day. A new policy is therefore first charged for all
of them: what they lose between two values that the new policy hides.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from blowfishdb.adapters.ledger import Charge, Ledger, State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.policy import Policy
from blowfishdb.core.protection import at_most, certainty
from blowfishdb.core.reuse import StoredRelease
from blowfishdb.core.reuse.rows import stacked
from blowfishdb.mechanisms.given import FROM_KNOWN
from blowfishdb.mechanisms.losses import ByDistance, ByRows, Kernel, Loss, Tightest
from blowfishdb.mechanisms.total_loss import total_loss

FROM_STORED: Final = "From stored answers"
"""The mechanism of answers that follow from others by arithmetic, and lose nothing more."""
_LOSE_NOTHING: Final = (FROM_STORED, FROM_KNOWN)


@final
@dataclass(frozen=True, eq=False)
class History:
    """The kernels of everything that was ever answered about a dataset."""

    kernels: tuple[Kernel, ...]
    rows: tuple[int, ...]
    """For each kernel, which rows it is about: those with the same number are about the same."""
    last_charge: int
    paid: Epsilon
    """What was charged for it and cannot be given back."""

    def under(self, policy: Policy) -> Past:
        """What it lost between values that ``policy`` hides.

        A person may have one value in some rows and another in later ones, so losses are added up pair by
        pair only where answers are about the same rows.
        """
        about: dict[int, list[Kernel]] = defaultdict(list)
        for rows, kernel in zip(self.rows, self.kernels, strict=True):
            about[rows].append(kernel)
        return _in_all([Past.of(tuple(kernels), policy) for kernels in about.values() or [()]])


@final
@dataclass(frozen=True)
class Past:
    """What earlier answers lost under a policy, and in which columns most."""

    loss: Loss
    columns: tuple[str, ...]

    @classmethod
    def of(cls, kernels: tuple[Kernel, ...], policy: Policy) -> Past:
        """What releases lost between values that ``policy`` hides."""
        worst = total_loss(kernels, policy)
        return cls(worst.loss, worst.columns)

    @property
    def epsilon(self) -> Epsilon | None:
        """The loss as the ledger counts it, rounded up; None if it is infinite."""
        return None if math.isinf(self.loss) else Epsilon.from_nano(math.ceil(Fraction(self.loss) * 10**9))

    @property
    def sentence(self) -> str:
        """For the curator, and for everyone who reads the guarantee."""
        where = f" in {', '.join(map(repr, self.columns))}" if self.columns else ""
        if self.epsilon is None:
            return (
                f"Counting all answers so far, an attacker may be certain between two values{where} that "
                "this policy hides: an earlier answer told them apart exactly, or nothing is proven about it."
            )
        if not self.epsilon:
            return "No answer so far tells apart what this policy hides."
        sure = at_most(certainty(float(self.epsilon)))
        return (
            f"Counting all answers so far, an attacker can be {sure} between two values{where} that this "
            f"policy hides (a loss of ε {self.epsilon:.3g})."
        )

    def to_plain(self) -> dict[str, Any]:
        """For the record: JSON-ready data, with null for an infinite loss."""
        epsilon = None if self.epsilon is None else str(self.epsilon)
        return {"epsilon": epsilon, "columns": list(self.columns), "sentence": self.sentence}

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Past:
        """From its plain form."""
        loss = math.inf if said["epsilon"] is None else Epsilon(said["epsilon"]).fraction
        return cls(loss, tuple(said["columns"]))


def _in_all(pasts: Sequence[Past]) -> Past:
    """What releases about other and other rows of the same people lost, one after the other."""
    most = max(pasts, key=lambda past: past.loss)
    losses = [past.loss for past in pasts]
    return Past(most.loss if math.isinf(most.loss) else sum(losses, Fraction(0)), most.columns)


def history(
    ledger: Ledger, dataset: str, policies: Callable[[int], Policy | None], *, people: int, lasting: bool
) -> History:
    """Every charge as what it lost; ``policies`` by version, ``people``: the rows that one person can be in.

    ``lasting``: rows stay as they are within a snapshot; otherwise each answer is about rows of its own.

    Charges without an answer count too, under way or lost, at the most that they could tell.
    """
    answers = {stored.charge.id: stored.answer for stored in ledger.answers(dataset)}
    charges = ledger.charges(dataset)
    told = [
        charge
        for charge in charges
        if charge.state is not State.VOID and charge.detail.get("mechanism") not in _LOSE_NOTHING
    ]
    kernels = tuple(_kernel(charge, answers.get(charge.id), policies, people) for charge in told)
    rows = tuple(charge.detail["snapshot"] if lasting else charge.id for charge in told)
    paid = (c.amount for c in charges if c.state not in (State.VOID, State.RESERVED))
    return History(kernels, rows, max((c.id for c in charges), default=0), sum(paid, Epsilon(0)))


def _kernel(
    charge: Charge, answer: str | None, policies: Callable[[int], Policy | None], people: int
) -> Kernel:
    policy = policies(charge.detail["policy_version"])
    assert policy is not None  # no version is ever deleted
    bound = ByDistance(policy, Epsilon(charge.detail.get("alone", charge.amount)))  # in a basket it paid less
    plain = None if answer is None else json.loads(answer)["release"]
    return bound if plain is None else Tightest((measured({**plain, "number": charge.id}, people), bound))


def measured(plain: dict[str, object], people: int) -> ByRows:
    """The kernel of rows with noise of their own, and of exact ones, from their plain form."""
    release = StoredRelease.from_plain(plain)
    if release.used is None or not release.used.count:
        return ByRows(release.axes, release.rows, release.distinct, release.which, people)
    exact = np.full(release.used.count, len(release.distinct))
    rows = stacked(release.rows, release.used)
    which = np.concatenate((release.which, exact))
    return ByRows(release.axes, rows, (*release.distinct, Fraction(0)), which, people)
