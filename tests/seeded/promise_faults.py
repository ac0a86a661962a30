"""Faults in what is planned for several promises at once, in what is shared, in what is said to be paid."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from blowfishdb.core.graphs import Explicit
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.laplace import LaplaceOnWorkload
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.service.tasks import CountTask
from tests.seeded.planting import Fault


def _joins_what_was_planned_for_several(original: Any) -> Any:
    def joining(tasks: Any, dataset: Any) -> Any:
        alone = {
            number: replace(task, choice=replace(task.choice, losses=()))
            if isinstance(task, CountTask)
            else task
            for number, task in tasks.items()
        }
        return {number: tasks[number] for number in original(alone, dataset)}

    return joining


def _shares_at_the_price_of_alone(original: Any) -> Any:
    def at(self: Any, task: Any, plan: Any, epsilon: Any) -> Any:
        return replace(original(self, task, plan, epsilon), cost=min(task.cost, epsilon))

    return at


def _one_step_to_each(original: Any) -> Any:
    return lambda standing: (original(standing)[0], 1)


def _exact_by_totals(original: Any) -> Any:
    def laplace(workload: Any, refined: Any, on: Any) -> Any:
        plan = original(workload, refined, on)
        return LaplaceOnWorkload(workload, refined.coarse, tied=0) if plan.free else plan

    return laplace


def _along_edges_whatever_is_known(_: Any) -> Any:
    return lambda self, policy: policy.knowing(None)


def _looked_at_for_today(original: Any) -> Any:
    def adaptively(self: Any, mechanism: Any, epsilon: Any) -> Any:
        today = replace(self, graphs=self.graphs[:1], left=self.left[:1])
        choice = original(today, mechanism, epsilon)
        return replace(choice, losses=(choice.epsilon,) * len(self.graphs))

    return adaptively


def _nobody_moves_inside(_: Any) -> Any:
    return lambda workload, graph: Explicit(workload.inner.size, ())


def _half_an_edge(_: Any) -> Any:
    def scales(self: Any) -> UnitScales:
        first = (np.arange(len(self.edges)) == 0).astype(np.int64)
        return UnitScales((Fraction(1), Fraction(1, 2)), first)

    return scales


def _said_to_be_uncharged(original: Any) -> Any:
    def given_up(self: Any, charge: Any, reason: str) -> bool:
        original(self, charge, reason)
        return bool(charge.amount) and charge.debit == charge.amount

    return given_up


def _debit_of_today(original: Any) -> Any:
    def open_charge(*given: Any, **named: Any) -> Any:
        charge = original(*given, **named)
        return replace(charge, debit=charge.amount)

    return open_charge


def _paid_again(_: Any) -> Any:
    return lambda self: self


def _nobody_leaves_a_table(original: Any) -> Any:
    def onto(self: Any, domain: Any) -> Any:
        seen = original(self, domain)
        return Policy(domain, seen.graph.counted) if seen.hides_presence else seen

    return onto


def _stated_for_one(_: Any) -> Any:
    return lambda self, task, dataset, standing: task


def _all_at_once(_: Any) -> Any:
    return lambda about: [list(itertools.chain.from_iterable(about))]


def _always_public(_: Any) -> Any:
    return lambda refined: True


FAULTS = (
    Fault(
        "shared beside a promise",
        "what was planned for several promises is shared, and loses under the earlier ones what it did alone",
        "_joining",
        _joins_what_was_planned_for_several,
        "looser together",
    ),
    Fault(
        "shared at the old price",
        "a release that others follow from costs no more than it did alone, however little noise it has",
        "Shared._at",
        _shares_at_the_price_of_alone,
        "shared",
    ),
    Fault(
        "a step to each",
        "sums lose as much under every promise as under the one that they are planned for",
        "Standing/nearest",
        _one_step_to_each,
        "crossing sums",
    ),
    Fault(
        "known and alone",
        "noise for records that move together hides one that moves alone",
        "CountTask.along",
        _along_edges_whatever_is_known,
        "known beside",
    ),
    Fault(
        "exact by totals",
        "what known counts make exact is told as if it followed from the totals that a policy leaves public",
        "Choice/_laplace",
        _exact_by_totals,
        "known beside",
    ),
    Fault(
        "looked at for today",
        "what looks at the data is planned for the policy of today, and loses its ε under every promise",
        "SeveralPromises.adaptively",
        _looked_at_for_today,
        "looking beside",
    ),
    Fault(
        "nobody moves inside",
        "rows that satisfy a condition before and after change no answer about it",
        "Filtered/_around",
        _nobody_moves_inside,
        "conditions planned",
    ),
    Fault(
        "half an edge",
        "the first edge of a policy has half the noise that it needs",
        "GraphNoise.scales",
        _half_an_edge,
        "edges planned",
    ),
    Fault(
        "said to be free",
        "a lost answer is said to have cost nothing where an earlier promise paid for it",
        "Service._given_up",
        _said_to_be_uncharged,
        "looser lost",
    ),
    Fault(
        "debit of today",
        "a receipt says what today's policy cost, and not what the account was debited",
        "open_charge",
        _debit_of_today,
        "looser",
    ),
    Fault(
        "paid again",
        "the receipt of an answer that was out before says that it was paid for once more",
        "Receipt.again",
        _paid_again,
        "stored",
    ),
    Fault(
        "nobody leaves a table",
        "rows of one of several tables neither come nor go",
        "Policy.onto",
        _nobody_leaves_a_table,
        "tables present",
    ),
    Fault(
        "stated for one",
        "an ε that is stated holds under the policy of today alone where something is known",
        "Prices._within",
        _stated_for_one,
        "known beside",
    ),
    Fault(
        "all at once",
        "whoever has one value before a refresh has the same one after it",
        "_separate",
        _all_at_once,
        "farther refreshed",
    ),
    Fault(
        "totals whatever is known",
        "how many are in each group is exact, whatever known counts move between them",
        "_totals_are_public",
        _always_public,
        "known groups",
    ),
)
