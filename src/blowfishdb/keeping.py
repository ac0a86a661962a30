"""Earlier promises that are still kept: what a new answer may cost so that it fits under each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from blowfishdb.core import codec
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BudgetExhausted, PolicyConflict
from blowfishdb.core.policy import Policy
from blowfishdb.core.policy_words import sentences
from blowfishdb.messages import Quote, UnderPromise


@final
@dataclass(frozen=True)
class Kept:
    """An earlier policy that is still promised, and what may still be lost under it."""

    version: int
    policy: Policy
    total: Epsilon
    remaining: Epsilon

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "version": self.version,
            "policy": codec.plain(self.policy),
            "sentences": list(sentences(self.policy)),
            "total": str(self.total),
            "remaining": str(self.remaining),
        }

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Kept:
        """From its plain form."""
        policy = codec.policy(said["policy"])
        return cls(said["version"], policy, Epsilon(said["total"]), Epsilon(said["remaining"]))


def room_for(cost: Epsilon, left: Epsilon, kept: Sequence[UnderPromise]) -> Epsilon:
    """What may be spent in the way that costs ``cost``: within the budget, and within every kept promise.

    A release with as many times the noise loses as many times less under each of them.
    """
    for promise in kept:
        if promise.epsilon is None:
            return Epsilon(0)
        if promise.epsilon > promise.remaining:
            most = cost.nano * promise.remaining.nano // promise.epsilon.nano
            left = min(left, Epsilon.from_nano(max(0, most - 1)))  # losses are rounded up
    return left


def told_apart(version: int) -> PolicyConflict:
    return PolicyConflict(
        f"This answer would tell apart exactly what version {version} of the policy hides, and that version "
        "is still promised. Nothing was charged.",
        fixes=("ask the curator to withdraw the earlier promise",),
    )


def check_promises(quotes: Sequence[Quote]) -> None:
    """Questions fit together under every promise that is still kept, before any of them is answered."""
    needed: dict[tuple[str, int], Epsilon] = defaultdict(lambda: Epsilon(0))
    for quote in quotes:
        for promise in quote.promises:
            if promise.epsilon is None:
                raise told_apart(promise.version)
            here = quote.dataset, promise.version
            needed[here] += promise.epsilon
            if needed[here] > promise.remaining:
                raise BudgetExhausted(
                    f"Policy version {promise.version} of '{quote.dataset}' is still promised. Under it "
                    f"these questions may cost {needed[here]:.3g}, but only {promise.remaining:.3g} is left.",
                    needed=needed[here],
                    left=promise.remaining,
                    fixes=("fewer questions at once", "larger errors", "ask the curator to withdraw it"),
                )
