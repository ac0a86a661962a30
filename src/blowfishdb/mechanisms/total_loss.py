"""What several releases lost together under a policy, and in which columns most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from blowfishdb.core.graphs import Explicit, PolicyGraph, Product
from blowfishdb.core.policy import Policy
from blowfishdb.core.policy_parts import parts_of
from blowfishdb.mechanisms.losses import ByRows, Kernel, Loss, Tightest
from blowfishdb.mechanisms.pairwise_loss import pairwise_loss


@final
@dataclass(frozen=True)
class Worst:
    """What a policy has lost, and where: the columns whose values are told apart best."""

    loss: Loss
    columns: tuple[str, ...]


def total_loss(kernels: Sequence[Kernel], policy: Policy) -> Worst:
    """What all releases together lost under ``policy``.

    Largest losses are added up over the moves that can happen together: of all columns at once under a joint
    policy, of one column at a time otherwise. Where edges can be listed, releases whose rows are known are
    added up edge by edge instead. So it is exact for one release, and never too small.
    """
    found = []
    for columns, moving in _moves(policy):
        apart = _added(kernel.worst(moving) for kernel in kernels)
        known = [rows for kernel in kernels if (rows := known_rows(kernel)) is not None]
        if len(known) > 1:
            others = [kernel.worst(moving) for kernel in kernels if known_rows(kernel) is None]
            together = pairwise_loss(known, moving)
            apart = apart if together is None else min(apart, _added([together, *others]))
        found.append(Worst(apart, columns))
    return max(found, key=lambda worst: worst.loss)


def _added(losses: Iterable[Loss]) -> Loss:
    listed = list(losses)
    return math.inf if any(math.isinf(loss) for loss in listed) else sum(listed, Fraction(0))


def known_rows(kernel: Kernel) -> ByRows | None:
    """The rows of a release, if they are known."""
    if isinstance(kernel, Tightest):
        return next((view for view in kernel.views if isinstance(view, ByRows)), None)
    return kernel if isinstance(kernel, ByRows) else None


def _moves(policy: Policy) -> list[tuple[tuple[str, ...], Policy]]:
    """The policy taken apart into what may move at once."""
    found = parts_of(policy)
    tied = policy.constraints is not None  # records move together, across columns
    if tied or found.joint or found.hides_presence or len(found.parts) == 1:
        return [(policy.domain.names, policy)]
    still = [Explicit(part.graph.size, ()) for part in found.parts]
    moves = []
    for place, part in enumerate(found.parts):
        factors: list[PolicyGraph] = [*still]
        factors[place] = part.graph
        moves.append((part.columns, Policy(policy.domain, Product(*factors, joint=False))))
    return moves
