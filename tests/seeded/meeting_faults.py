"""Faults where two things meet: rows per person, dropping columns, hidden presence, lost charges, promises
that are kept, baskets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from blowfishdb.adapters.store.charges import read_charge
from blowfishdb.adapters.store.tables import accounts, charges
from blowfishdb.adapters.store.values import State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.graphs import Apex, Cone
from blowfishdb.mechanisms.losses import ByDistance
from blowfishdb.mechanisms.reuse.stored import rows_of
from tests.seeded.planting import Fault


def _first_column_drops(original: Any) -> Any:
    def graph(self: Any, policy: Any) -> Any:
        over = original(self, policy)
        outside = isinstance(over, Cone) and over.apex is Apex.OUTSIDE
        return over.base if outside and not self.axes[0].attribute.may_drop else over

    return graph


def _nobody_in_pairs(original: Any) -> Any:
    def pairs(self: Any, declared: Any, *, some_dropped: bool) -> Any:
        edges = original(self, declared, some_dropped=some_dropped)
        if edges is None or some_dropped or not self.policy.hides_presence:
            return edges
        boxes = int(np.prod([self.boxes[name].count for name in declared]))
        return edges[(edges < boxes).all(axis=1)]

    return pairs


def _nobody_changes_nothing(original: Any) -> Any:
    def changes(kernel: Any, chosen: Any, weights: Any, pairs: Any) -> Any:
        change = original(kernel, chosen, weights, pairs)
        change[(pairs >= kernel.rows.size).any(axis=1)] = 0
        return change

    return changes


def _lost_is_given_back(original: Any) -> Any:
    def end_losses(connection: Any, dataset: str, charge: int, *, spent: bool) -> None:
        lost = read_charge(connection, charge).state == State.LOST.value
        original(connection, dataset, charge, spent=spent and not lost)

    return end_losses


def _uncounted_of_one_row(original: Any) -> Any:
    def uncounted(self: Any, *given: Any) -> Any:
        noisy, exact = original(self, *given)
        return noisy // max(kernel.rows_per_person for kernel in self.kernels), exact

    return uncounted


def _presence_of_one_row(original: Any) -> Any:
    def worst(self: Any, policy: Any) -> Any:
        loss = original(self, policy)
        hides = policy.hides_presence and loss != float("inf")
        return loss / self.rows_per_person if hides else loss

    return worst


def _without_nobody(original: Any) -> Any:
    def graph(self: Any, policy: Any) -> Any:
        over = original(self, policy)
        return over.base if isinstance(over, Cone) and over.absent else over

    return graph


def _lost_of_one_row(original: Any) -> Any:
    def kernel(charge: Any, answer: Any, policies: Any, rows_per_person: int) -> Any:
        lost = original(charge, answer, policies, rows_per_person)
        if answer is not None or not isinstance(lost, ByDistance):
            return lost
        return replace(lost, epsilon=Epsilon.from_nano(lost.epsilon.nano // rows_per_person))

    return kernel


def _back_into_the_purse(original: Any) -> Any:
    def enter(connection: Any, row: Any, to: Any, at: str, **named: Any) -> Any:
        entered = original(connection, row, to, at, **named)
        if to is State.LOST:
            mine = (accounts.c.dataset == row.dataset) & (accounts.c.analyst == row.analyst)
            less = {"spent": accounts.c.spent - row.amount}
            connection.execute(accounts.update().where(mine).values(less))
        return entered

    return enter


def _kept_of_one_row(original: Any) -> Any:
    def promises(self: Any, dataset: Any, *given: Any) -> Any:
        rows = dataset.rows_per_person
        return tuple(
            one if one.epsilon is None else replace(one, epsilon=Epsilon.from_nano(one.epsilon.nano // rows))
            for one in original(self, dataset, *given)
        )

    return promises


def _lost_binds_nobody(original: Any) -> Any:
    def publish(self: Any, dataset: str, by: str, body: str, facts: Any, **named: Any) -> Any:
        with self._store.reading() as connection:
            states = connection.execute(charges.select().where(charges.c.dataset == dataset)).all()
        if all(row.state == State.LOST.value for row in states):
            named["keep"] = False
        return original(self, dataset, by, body, facts, **named)

    return publish


def _of_today_alone(original: Any) -> Any:
    def lost(plan: Any, graphs: Any, axes: Any) -> Any:
        return original(plan, graphs[:1], axes) * len(graphs)

    return lost


def _totals_of_today(original: Any) -> Any:
    """Only what has noise counts; and only where the plan's own policy tells no two apart for certain."""

    def lost(rows: Any, own: Any, graph: Any) -> Any:
        if rows is None:
            return original(rows, own, graph)
        noisy = np.flatnonzero(rows.weights)
        if not noisy.size:
            return 0
        kept = replace(rows, rows=rows_of(rows.rows.sparse()[noisy]), which=rows.which[noisy])
        return min(original(rows, own, graph), kept.over(graph))

    return lost


def _stated_for_today(original: Any) -> Any:
    def most(self: Any, plan: Any) -> Any:
        today = replace(self, graphs=self.graphs[:1], left=self.left[:1])
        return None if original(self, plan) is None else original(today, plan)

    return most


def _one_side_is_both(original: Any) -> Any:
    def keeps(promised: Any, needed: Any) -> bool:
        return bool(original(replace(promised, one_sided=False), needed))

    return keeps


def _measured_is_seen(original: Any) -> Any:
    def observation(self: Any, measured: Any, counts: Any) -> Any:
        seen = original(self, measured, counts)
        return replace(seen, measured=self.published(measured, seen.totals))

    return observation


FAULTS = (
    Fault(
        "promises of today",
        "an answer loses under every promise what it does under that of today",
        "lost_per_epsilon",
        _of_today_alone,
        "crossing",
    ),
    Fault(
        "totals of today",
        "exact totals of today's policy are used although an earlier promise hides them",
        "_lost_over",
        _totals_of_today,
        "crossing",
    ),
    Fault(
        "stated for today",
        "an ε that is stated holds under the policy of today alone",
        "SeveralPromises._most",
        _stated_for_today,
        "crossing",
    ),
    Fault(
        "first column drops",
        "a kernel knows rows outside by its first column only, not by one in WHERE",
        "ByRows._graph",
        _first_column_drops,
        "conditions together dropping",
    ),
    Fault(
        "nobody in pairs",
        "answers of a basket are not paired up for who comes or goes",
        "_Common._pairs",
        _nobody_in_pairs,
        "present without edges",
    ),
    Fault(
        "nobody changes nothing",
        "who comes or goes changes no answer of a basket",
        "total_loss/_changes",
        _nobody_changes_nothing,
        "present without edges",
    ),
    Fault(
        "lost and kept",
        "what a lost answer cost under a kept promise is given back",
        "end_losses",
        _lost_is_given_back,
        "looser lost",
    ),
    Fault(
        "uncounted of a row",
        "who is counted by one of two answers loses there what one row of a person does",
        "_Common._uncounted",
        _uncounted_of_one_row,
        "people together dropping",
    ),
    Fault(
        "presence of a row",
        "where presence is hidden, the past counts one row of a person",
        "ByRows.worst",
        _presence_of_one_row,
        "people present in time",
    ),
    Fault(
        "kernel without nobody",
        "a kernel knows nobody who comes or goes",
        "ByRows._graph",
        _without_nobody,
        "present in time",
    ),
    Fault(
        "lost of a row",
        "a lost answer lost what one row of a person does",
        "history/_kernel",
        _lost_of_one_row,
        "people lost",
    ),
    Fault(
        "lost purse",
        "what was lost while reading is given back to who asked",
        "enter",
        _back_into_the_purse,
        "granted lost",
    ),
    Fault(
        "kept of a row",
        "an answer costs under a kept promise what one row of a person does",
        "Prices._under_promises",
        _kept_of_one_row,
        "people looser",
    ),
    Fault(
        "lost binds nobody",
        "a policy under which every answer was lost binds no longer once it is loosened",
        "Policies.publish",
        _lost_binds_nobody,
        "looser after a loss",
    ),
    Fault(
        "behind exact answers",
        "the true counts that an exact answer was computed from are kept beside it",
        "Plan._observation",
        _measured_is_seen,
        "cells",
    ),
    Fault(
        "one side for both",
        "counts that are close on one side are going to answer for both, and what is quoted is not enough",
        "_keeps",
        _one_side_is_both,
        "picked together",
    ),
)
