"""Standing: all that is promised about a dataset at once, which every plan has to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.losses import ByDistance
from blowfishdb.messages.policies import EarlierPolicy

_NOTHING = Epsilon(0)


@final
@dataclass(frozen=True, eq=False)
class Standing:
    """All that is promised about a dataset: the policy of today, and earlier ones that are kept."""

    policy: Policy
    rows_per_person: int = 1
    left: Epsilon = _NOTHING
    """What may still be lost under the policy of today."""
    kept: tuple[EarlierPolicy, ...] = ()

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Every one, that of today first."""
        return (self.policy, *(one.policy for one in self.kept))

    @property
    def remaining(self) -> tuple[Epsilon, ...]:
        """What may still be lost under each."""
        return (self.left, *(one.remaining for one in self.kept))

    @property
    def several(self) -> bool:
        """Whether plans are made for several promises at once.

        Where something is known records move together, and what that costs elsewhere is not proven.
        """
        return bool(self.kept) and all(policy.constraints is None for policy in self.policies)

    def without(self, version: int) -> Standing:
        """As if an earlier promise were withdrawn."""
        return replace(self, kept=tuple(one for one in self.kept if one.version != version))


def nearest(standing: Standing) -> tuple[Policy, int]:
    """The policy from which no other that is promised is far, and the most steps that one hides.

    That of today where none reaches all others: what an answer would tell apart there is refused.
    """
    reached = []
    for policy in standing.policies if standing.several else ():
        steps = max(ByDistance(policy, Epsilon(1)).worst(other) for other in standing.policies)
        if not math.isinf(steps):
            reached.append((max(1, int(steps)), policy))
    steps, policy = min(reached, key=lambda entry: entry[0], default=(1, standing.policy))
    return policy, steps
