"""Choosing a plan where something is known, so that one hidden move may force other records to move.

Two ways are proven (docs/proofs/constraints.md). Any mechanism that is private along every edge loses at most
a factor more (Corollary 7). Noise on the answers or on the cells can be calibrated to what neighbours really
differ by (Theorems 2 to 5), which is never more and often less. The cheaper one is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, final

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.constraints.under_policy import Refined
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import Explicit, Full, PolicyGraph
from blowfishdb.core.workloads import Histogram, Workload
from blowfishdb.mechanisms.best import Best, Choice
from blowfishdb.mechanisms.data_dependent import DataDependentMechanism
from blowfishdb.mechanisms.laplace import LaplaceOnCells, LaplaceOnWorkload
from blowfishdb.mechanisms.plan import Plan

On = Literal["workload", "cells"]

_HOPELESS = 16.0  # times the squared error: at this ratio no shape of the noise makes up for it
_DIRECT: dict[str | None, tuple[On, ...]] = {
    None: ("workload", "cells"),
    "best": ("workload", "cells"),
    "laplace": ("workload",),
    "laplace-cells": ("cells",),
}


@final
@dataclass(frozen=True, eq=False)
class Tied:
    """Questions over cells of which something is known, and the mechanism that was asked for, if any."""

    workload: Workload
    refined: Refined
    name: str | None = None

    def for_accuracy(self, mechanism: Best, accuracy: Accuracy) -> Choice:
        """The plan that meets ``accuracy`` at the least loss."""
        refusals: list[NotProven | TooLarge] = []
        found: list[Choice] = []
        try:
            graph, factor = self._edge_by_edge()
            if not factor:
                return self._exactly()
            found.append(replace(mechanism.for_accuracy(self.workload, graph, accuracy), factor=factor))
        except (NotProven, TooLarge) as refusal:
            refusals.append(refusal)
        for plan in self._calibrated(refusals):
            if all(plan.unit_error <= _HOPELESS * _error(choice) for choice in found):
                found.append(Choice(plan, plan.epsilon_at(accuracy), calibrated=True))
        if not found:
            raise _foremost(refusals)
        return min(found, key=lambda choice: choice.loss)

    def for_epsilon(self, mechanism: Best | DataDependentMechanism, epsilon: Epsilon) -> Choice:
        """The plan with the least squared error that loses ``epsilon``; exact answers cost nothing."""
        refusals: list[NotProven | TooLarge] = []
        found: list[Choice] = []
        try:
            graph, factor = self._edge_by_edge()
            if not factor:
                return self._exactly()
            share = positive(Epsilon.from_nano(epsilon.nano // factor))
            if isinstance(mechanism, DataDependentMechanism):
                plan = mechanism.plan(self.workload, graph)
                return Choice(plan, Epsilon(0) if plan.free else share, factor=factor)
            found.append(replace(mechanism.for_epsilon(self.workload, graph, share), factor=factor))
        except (NotProven, TooLarge) as refusal:
            refusals.append(refusal)
        found += [
            Choice(direct, Epsilon(0) if direct.free else epsilon, calibrated=True)
            for direct in self._calibrated(refusals)
        ]
        if not found:
            raise _foremost(refusals)
        return min(found, key=_error)

    def _exactly(self) -> Choice:
        """Nothing that stays hidden changes any cell, as if the policy hid nothing about them."""
        nothing = Explicit(self.workload.size, ())
        return Choice(LaplaceOnWorkload(self.workload, nothing), Epsilon(0), calibrated=True)

    def _edge_by_edge(self) -> tuple[PolicyGraph, int]:
        """The graph along whose edges a mechanism has to be private, and what it loses in multiples of ε."""
        graph, factor = self.refined.coarse, self.refined.factor
        if factor and not _totals_are_public(self.refined):
            raise NotProven(
                "Known counts let records move between groups that the policy keeps apart, so how many are "
                "in each group is not exact, and mechanisms that take it to be are not proven here.",
                fixes=("leave out the mechanism", "mechanism laplace", 'reading="edge", which hides less'),
            )
        return graph, factor

    def _calibrated(self, refusals: list[NotProven | TooLarge]) -> list[Plan]:
        """Noise for what neighbours really differ by; why there is none goes to ``refusals``."""
        found: list[Plan] = []
        for on in _DIRECT.get(self.name, ()):
            if on == "cells" and isinstance(self.workload, Histogram) and found:
                continue  # the same noise under another name
            try:
                plan = _laplace(self.workload, self.refined, on)
                plan.unit_error  # noqa: B018 - a plan whose error is out of reach is refused here
                found.append(plan)
            except (NotProven, TooLarge) as refusal:
                refusals.append(refusal)
        return found


@lru_cache(maxsize=64)
def _laplace(workload: Workload, refined: Refined, on: On) -> Plan:
    coarse = refined.coarse
    graph = coarse if _totals_are_public(refined) else Full(workload.size)
    if on == "cells":
        return LaplaceOnCells(workload, graph, tied=int(refined.histogram))
    scaled = refined.sensitivity(workload) * workload.denominator
    return LaplaceOnWorkload(workload, graph, tied=int(scaled))


def _totals_are_public(refined: Refined) -> bool:
    """Whether the total of every component over the cells is the same for all neighbours."""
    return refined.coarse.absent or refined.coarse.components().count == 1 or refined.keeps_totals


def _error(choice: Choice) -> float:
    """The squared error at a loss of 1, in the continuous limit."""
    assert isinstance(choice.plan, Plan)
    return choice.plan.unit_error * choice.factor**2


def _foremost(refusals: list[NotProven | TooLarge]) -> NotProven | TooLarge:
    """What is not proven says more than what is too large."""
    return next((refusal for refusal in refusals if isinstance(refusal, NotProven)), refusals[0])
