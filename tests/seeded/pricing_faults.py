"""Faults in what an answer loses: sensitivities, projections, kernels, and what answers lose together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.graphs import Apex, Cone, Explicit
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.losses import ByRows
from blowfishdb.mechanisms.reuse.stored import rows_of
from tests.seeded.planting import Fault, Replacement


def _changed(change: Any) -> Replacement:
    """A fault that spoils what the function returns; ``change`` sees the result, then the arguments."""

    def replaced(original: Any) -> Any:
        def spoilt(*given: Any, **named: Any) -> Any:
            return change(original(*given, **named), *given, **named)

        return spoilt

    return replaced


def _one_less(found: int, *_: object) -> int:
    return max(1, found - 1) if found else found


def _only_asked_columns_drop(found: Any, question: Any, policy: Policy) -> Any:
    asked = any(axis.attribute.may_drop for axis in question.axes)
    outside = isinstance(found.graph, Cone) and found.graph.apex is Apex.OUTSIDE
    return replace(found, graph=found.graph.base) if outside and not asked else found


def _nothing_drops(found: Any, *_: object) -> Any:
    outside = isinstance(found.graph, Cone) and found.graph.apex is Apex.OUTSIDE
    return replace(found, graph=found.graph.base) if outside else found


def _per_row(found: Any, *_: object, **__: object) -> Any:
    return replace(found, cost=found.choice.loss)


def _kernel_of_one_row(original: Any) -> Any:
    return lambda plan, epsilon, axes, policy, rows_per_person, bounds: original(
        plan, epsilon, axes, policy, 1, bounds
    )


def _past_of_one_row(original: Any) -> Any:
    def history(ledger: Any, dataset: Any, policies: Any, *, rows_per_person: int, **how: Any) -> Any:
        return original(ledger, dataset, policies, rows_per_person=1, **how)

    return history


def _backwards(settled: Any, *_: Any) -> Any:
    return replace(settled, groups=settled.groups[::-1])


def _paid_alone(original: Any) -> Any:
    def due(self: Any, dataset: Any, kernel: Any, alone: Epsilon) -> Epsilon:
        more = original(self, dataset, kernel, alone)
        self._paid[dataset.name] += alone - more
        return more

    return due


def _free_members_forgotten(original: Any) -> Any:
    def due(self: Any, dataset: Any, kernel: Any, alone: Epsilon) -> Epsilon:
        more = original(self, dataset, kernel, alone)
        if not more:
            self._kernels[dataset.name].pop()
        return more

    return due


def _half(original: Any) -> Any:
    def spoilt(*given: Any) -> Any:
        found = original(*given)
        return found if found is None or found == float("inf") else found / 2

    return spoilt


def _uncounted_is_free(original: Any) -> Any:
    def spoilt(*given: Any) -> Any:
        noisy, exact = original(*given)
        return np.zeros_like(noisy), np.zeros_like(exact)

    return spoilt


def _without_outside(found: Any, *_: object) -> Any:
    return found.base if isinstance(found, Cone) and found.apex is Apex.OUTSIDE else found


def _presence_moves_nothing(original: Any) -> Any:
    def moves(policy: Policy) -> Any:
        shown = policy.graph.base if isinstance(policy.graph, Cone) else policy.graph
        return original(Policy(policy.domain, shown, policy.constraints))

    return moves


def _apex_without_edges(original: Any) -> Any:
    return lambda self: self.base.edge_blocks()


def _totals_though_people_come_and_go(original: Any) -> Any:
    return lambda graph: original(graph.base if isinstance(graph, Cone) and graph.absent else graph)


def _exact_though_people_come_and_go(original: Any) -> Any:
    return lambda workload, graph: original(
        workload, graph.base if isinstance(graph, Cone) and graph.absent else graph
    )


def _one_step(original: Any) -> Any:
    return lambda self, policy: min(original(self, policy), self.epsilon.fraction)


def _rounded_down(original: Any) -> Any:
    def past(losses: Any) -> Any:
        found = original(losses)
        if found.epsilon is None:
            return found
        return replace(found, epsilon=Epsilon.from_nano(found.epsilon.nano // 10**8 * 10**8))

    return past


def _first_column_only(original: Any) -> Any:
    return lambda policy: original(policy)[:1]


def _no_edges(original: Any) -> Any:
    return lambda self, bins: Explicit(bins.count, ())


def _shorter(found: Any, *_: object) -> Any:
    from blowfishdb.core.graphs import Threshold

    if not isinstance(found, Threshold):
        return found
    return Threshold(found.size, found.theta - 1) if found.theta > 1 else Explicit(found.size, ())


def _totals_lose_nothing(original: Any) -> Any:
    return lambda self: original(self)[:0]


def _missing_is_public(original: Any) -> Any:
    from blowfishdb.core.graphs.general import Apart

    return lambda attribute, graph: Apart(graph) if attribute.has_missing_cell else graph


def _exact_rows_lose_nothing(original: Any) -> Any:
    def worst(self: ByRows, policy: Policy) -> Any:
        noisy = np.flatnonzero(self.weights)
        if noisy.size == self.which.size or not noisy.size:
            return original(self, policy) if noisy.size else Fraction(0)
        rows = rows_of(self.rows.sparse()[noisy])
        return original(replace(self, rows=rows, which=self.which[noisy]), policy)

    return worst


FAULTS = (
    Fault(
        "sensitivity",
        "a sensitivity is one too small",
        "LaplaceOnWorkload.sensitivity",
        _changed(_one_less),
        "alone",
    ),
    Fault(
        "cells",
        "moving a row changes one cell, not two",
        "LaplaceOnCells.sensitivity",
        lambda _: lambda self: 1,
        "cells",
    ),
    Fault(
        "where drops",
        "a column that drops rows and is only in WHERE drops none",
        "project",
        _changed(_only_asked_columns_drop),
        "conditions",
    ),
    Fault("drops", "a row that is dropped was never there", "project", _changed(_nothing_drops), "dropping"),
    Fault(
        "per row",
        "an answer is charged for one row of a person",
        "Planner.price",
        _changed(_per_row),
        "people",
    ),
    Fault(
        "kernel of a row",
        "a basket loses what one row of a person does",
        "kernel_of",
        _kernel_of_one_row,
        "people together",
    ),
    Fault(
        "past of a row",
        "the past counts one row of a person",
        "history",
        _past_of_one_row,
        "people in time",
    ),
    Fault(
        "paid alone",
        "what the first question of a basket would cost alone counts as paid",
        "Basket.due",
        _paid_alone,
        "basket",
    ),
    Fault(
        "free members",
        "a member of a basket that paid nothing is forgotten",
        "Basket.due",
        _free_members_forgotten,
        "basket",
    ),
    Fault(
        "made in another order",
        "releases of a basket are made in another order than they were charged in",
        "Settled.of",
        _changed(_backwards),
        "basket lost",
    ),
    Fault(
        "half together", "releases lose half of what they lose together", "pairwise_loss", _half, "together"
    ),
    Fault(
        "uncounted",
        "who is counted by one of two answers only loses nothing there",
        "_Common._uncounted",
        _uncounted_is_free,
        "together dropping",
    ),
    Fault(
        "kernel without outside",
        "a kernel knows no rows outside",
        "ByRows._graph",
        _changed(_without_outside),
        "in time dropping",
    ),
    Fault(
        "presence one at a time",
        "with columns one at a time nobody comes or goes",
        "moves_at_once",
        _presence_moves_nothing,
        "together present",
    ),
    Fault(
        "apex", "nobody is joined to no record", "Cone.edge_blocks", _apex_without_edges, "together present"
    ),
    Fault(
        "totals of the absent",
        "totals are public although people come and go",
        "invariant_components",
        _totals_though_people_come_and_go,
        "present",
    ),
    Fault(
        "exact and absent",
        "answers are exact although people come and go",
        "unchanging_rows",
        _exact_though_people_come_and_go,
        "present",
    ),
    Fault("one step", "any two values are one step apart", "ByDistance.worst", _one_step, "farther"),
    Fault("rounded down", "losses are rounded down", "past_loss/_past", _rounded_down, "farther odd"),
    Fault(
        "first column",
        "one at a time, only the first column moves",
        "moves_at_once",
        _first_column_only,
        "together",
    ),
    Fault(
        "projected edges", "a policy over bins has no edges", "PolicyGraph.project_edges", _no_edges, "alone"
    ),
    Fault(
        "shorter line",
        "wider bins hide shorter distances",
        "Threshold.project_in_closed_form",
        _changed(_shorter),
        "lines",
    ),
    Fault(
        "totals used",
        "exact totals that a decoder used lose nothing later",
        "ReleasedRows.used",
        _totals_lose_nothing,
        "crossing",
    ),
    Fault(
        "missing",
        "who has no value is public, declared or not",
        "with_missing",
        _missing_is_public,
        "missing",
    ),
    Fault(
        "exact rows",
        "exact answers lose nothing under a later policy",
        "ByRows.worst",
        _exact_rows_lose_nothing,
        "exact once",
    ),
)
