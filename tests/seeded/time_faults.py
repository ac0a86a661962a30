"""Faults in what answers lose together and in time: kernels, sums of losses, history, what is carried."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from blowfishdb.adapters.store.values import State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.graphs import Apex, Cone
from blowfishdb.mechanisms.losses import ByDistance, ByRows, Tightest
from tests.seeded.planting import Fault


def _without(*names: str) -> Any:
    """Charges in some states are forgotten by the past."""

    class Ledger:
        def __init__(self, ledger: Any) -> None:
            self.ledger = ledger

        def charges(self, dataset: str) -> Any:
            kept = [charge for charge in self.ledger.charges(dataset) if charge.state.value not in names]
            return kept if "free" not in names else [charge for charge in kept if charge.amount]

        def __getattr__(self, name: str) -> Any:
            return getattr(self.ledger, name)

    def replaced(original: Any) -> Any:
        def history(ledger: Any, dataset: str, *given: Any, **named: Any) -> Any:
            newest = max((charge.id for charge in ledger.charges(dataset)), default=0)
            return replace(original(Ledger(ledger), dataset, *given, **named), last_charge=newest)

        return history

    return replaced


def _worst_of_one_row(original: Any) -> Any:
    return lambda self, policy: original(replace(self, rows_per_person=1), policy)


def _losses_of_one_row(original: Any) -> Any:
    return lambda self, kernel, pairs: original(self, replace(kernel, rows_per_person=1), pairs)


def _dropped_at_no_distance(original: Any) -> Any:
    def worst(self: ByDistance, policy: Any) -> Any:
        from blowfishdb.core.graphs.inclusion import stretch

        found = original(self, policy)
        nothing = not math.isinf(found) and not stretch(self.policy.graph, policy.graph)
        return 0 * self.epsilon.fraction if nothing else found

    return worst


def _dearest(original: Any) -> Any:
    return lambda losses: max(losses, default=0)


def _same_rows(original: Any) -> Any:
    return lambda self, policy: original(replace(self, rows=(0,) * len(self.kernels)), policy)


def _first_move(original: Any) -> Any:
    def total(kernels: Any, policy: Any) -> Any:
        found = original(kernels, policy)
        return replace(found, loss=min(found.loss, original(kernels[:1], policy).loss))

    return total


def _alone_is_paid(original: Any) -> Any:
    def kernel(charge: Any, answer: Any, policies: Any, rows_per_person: int) -> Any:
        detail = {key: value for key, value in charge.detail.items() if key != "alone"}
        return original(replace(charge, detail=detail), answer, policies, rows_per_person)

    return kernel


def _as_paid(original: Any) -> Any:
    def kernel(charge: Any, answer: Any, policies: Any, rows_per_person: int) -> Any:
        found = original(charge, answer, policies, rows_per_person)
        policy = policies(charge.detail["policy_version"])
        return Tightest((found, ByDistance(policy, charge.amount)))

    return kernel


def _totals_forgotten(original: Any) -> Any:
    def measured(plain: Any, rows_per_person: int) -> ByRows:
        found = original(plain, rows_per_person)
        noisy = np.flatnonzero(found.weights)
        if not noisy.size:
            return found
        from blowfishdb.mechanisms.reuse.stored import rows_of

        return replace(found, rows=rows_of(found.rows.sparse()[noisy]), which=found.which[noisy])

    return measured


def _never_alone(original: Any) -> Any:
    def pairs(self: Any, declared: Any, *, some_dropped: bool) -> Any:
        found = original(self, declared, some_dropped=some_dropped)
        return found if found is None or not some_dropped else found[found[:, 0] != found[:, 1]]

    return pairs


def _one_side_dropped(original: Any) -> Any:
    return lambda self: (sides for sides in original(self) if not any(sides))


def _endless_is_free(original: Any) -> Any:
    def due(self: Any, dataset: Any, kernel: Any, alone: Epsilon) -> Epsilon:
        if self._kernels[dataset.name]:
            self._kernels[dataset.name].append(kernel)
            return Epsilon.from_nano(alone.nano // 2)
        return original(self, dataset, kernel, alone)

    return due


def _nothing_carried(original: Any) -> Any:
    return lambda facts: Epsilon(0)


def _kept_from_nothing(original: Any) -> Any:
    def publish(self: Any, dataset: str, by: str, body: str, facts: Any, **named: Any) -> Any:
        found = original(self, dataset, by, body, facts, **named)
        if named["keep"]:
            from blowfishdb.adapters.store.tables import promises

            with self._store.writing() as connection:
                connection.execute(promises.update().where(promises.c.dataset == dataset).values(spent=0))
        return found

    return publish


def _paid_twice(original: Any) -> Any:
    def history(*given: Any, **named: Any) -> Any:
        found = original(*given, **named)
        return replace(found, paid=found.paid + found.paid)

    return history


def _outside_is_inside(original: Any) -> Any:
    def rows(workload: Any, graph: Any) -> Any:
        outside = isinstance(graph, Cone) and graph.apex is Apex.OUTSIDE
        return original(workload, graph.base if outside else graph)

    return rows


def _whole_epsilon(original: Any) -> Any:
    def price(self: Any, problem: Any, request: Any, standing: Any) -> Any:
        return original(self, problem, request, replace(standing, rows_per_person=1))

    return price


def _newest_only(original: Any) -> Any:
    return lambda connection, dataset: original(connection, dataset)[-1:]


def _quoted_for_nothing(original: Any) -> Any:
    def promises(self: Any, dataset: Any, ready: Any) -> Any:
        return tuple(
            replace(one, epsilon=min(one.epsilon, one.remaining))
            for one in original(self, dataset, ready)
            if one.epsilon
        )

    return promises


def _bound_of_one_row(original: Any) -> Any:
    def kernel(plan: Any, epsilon: Any, axes: Any, policy: Any, rows_per_person: int, bounds: Any) -> Any:
        found = original(plan, epsilon, axes, policy, rows_per_person, bounds)
        return Tightest((found, ByDistance(policy, epsilon)))

    return kernel


def _lost_is_void(original: Any) -> Any:
    def enter(connection: Any, row: Any, to: Any, at: str, **named: Any) -> Any:
        from blowfishdb.adapters.store.charges import book, book_account

        found = original(connection, row, to, at, **named)
        if to is State.LOST and row.amount:
            book(connection, row.dataset, held=0, spent=-row.amount)
            book_account(connection, row.dataset, row.analyst, held=0, spent=-row.amount)
        return found

    return enter


FAULTS = (
    Fault(
        "worst of a row",
        "the past of an answer counts one row of a person",
        "ByRows.worst",
        _worst_of_one_row,
        "people in time",
    ),
    Fault(
        "pairs of a row",
        "answers of a basket are paired up for one row of a person",
        "_Common._losses",
        _losses_of_one_row,
        "people together",
    ),
    Fault(
        "bound of a row",
        "the bound of a kernel is that of one row",
        "kernel_of",
        _bound_of_one_row,
        "people together",
    ),
    Fault(
        "price of a row",
        "what a person loses is priced for one row",
        "Planner.price",
        _whole_epsilon,
        "people",
    ),
    Fault(
        "no distance",
        "whoever is dropped is at no distance",
        "ByDistance.worst",
        _dropped_at_no_distance,
        "dropping without edges",
    ),
    Fault("dearest", "answers lose what the dearest does", "summed/added", _dearest, "farther lost together"),
    Fault(
        "refresh forgotten",
        "answers before and after a refresh are about the same values",
        "History.under",
        _same_rows,
        "farther refreshed",
    ),
    Fault(
        "first release",
        "only the first release has lost anything",
        "total_loss",
        _first_move,
        "farther twice",
    ),
    Fault(
        "alone is paid",
        "a lost answer of a basket lost what it had paid",
        "history/_kernel",
        _alone_is_paid,
        "farther lost together",
    ),
    Fault(
        "as paid",
        "an answer lost no more than was paid for it",
        "history/_kernel",
        _as_paid,
        "farther baskets",
    ),
    Fault(
        "free is past",
        "an answer that cost nothing lost nothing",
        "history",
        _without("free"),
        "exact once",
    ),
    Fault(
        "under way is past", "a question under way loses nothing", "history", _without("reading"), "overtaken"
    ),
    Fault(
        "totals forgotten",
        "exact numbers that were released are forgotten",
        "history/measured",
        _totals_forgotten,
        "exact once",
    ),
    Fault(
        "never alone",
        "nobody is dropped by one column while the others stay",
        "_Common._pairs",
        _never_alone,
        "dropping without edges",
    ),
    Fault(
        "nobody dropped",
        "two rows are never counted by different answers",
        "_Common.dropped",
        _one_side_dropped,
        "together dropping",
    ),
    Fault(
        "second half",
        "the second question of a basket pays half",
        "Basket.due",
        _endless_is_free,
        "together",
    ),
    Fault(
        "nothing carried",
        "what was lost before a policy is not carried over",
        "carried_by",
        _nothing_carried,
        "farther",
    ),
    Fault(
        "kept from nothing",
        "a promise that is kept begins as if nothing was lost",
        "Policies.publish",
        _kept_from_nothing,
        "looser",
    ),
    Fault("paid twice", "what was paid counts twice against the past", "history", _paid_twice, "farther"),
    Fault(
        "exact outside",
        "totals are exact although a column drops rows",
        "unchanging_rows",
        _outside_is_inside,
        "dropping",
    ),
    Fault(
        "newest promise",
        "of several promises the newest alone is kept",
        "active_promises",
        _newest_only,
        "looser twice",
    ),
    Fault("lost is returned", "what was lost while reading is given back", "enter", _lost_is_void, "lost"),
)
