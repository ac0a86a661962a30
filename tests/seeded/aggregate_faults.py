"""Faults in aggregates: what hides sums, means and variances in groups, and what they say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.seeded.planting import Fault


def _nobody_leaves(original: Any) -> Any:
    def crossing(part: Any, graph: Any) -> int:
        found = original(part, graph)
        return found if found == 2 else 0

    return crossing


def _nobody_changes_groups(original: Any) -> Any:
    return lambda part, graph: min(1, original(part, graph))


def _distance_alone(original: Any) -> Any:
    """The trap of sums: a distance bounds them only as long as no row can come or go."""

    def rows(measures: Iterable[Any], width: int, crossing: int, reach: int, *more: Any, **how: Any) -> Any:
        found = original(measures, width, crossing, reach, *more, **how)
        return replace(found, change=min(found.change, max(1, 2 * reach)))

    return rows


def _counts_are_exact(original: Any) -> Any:
    def noisy(self: Any) -> Any:
        return original(self) & (np.arange(original(self).size) > 0)

    return noisy


def _paid_per_row(original: Any) -> Any:
    def price(problem: Any, request: Any, standing: Any) -> Any:
        found = original(problem, request, standing)
        return replace(found, cost=found.epsilon)

    return price


def _half_as_wide(original: Any) -> Any:
    return lambda weights, scale, beta: original(weights, scale, beta) / 4


FAULTS = (
    Fault(
        "sums of who leaves",
        "rows that come and go change no sum of a group",
        "project_aggregates/_crossing",
        _nobody_leaves,
        "aggregates present",
    ),
    Fault(
        "sums of who moves",
        "a row that changes its group changes the sums of one",
        "project_aggregates/_crossing",
        _nobody_changes_groups,
        "aggregates",
    ),
    Fault(
        "distance alone",
        "a distance bounds the sum of a group",
        "sum_rows",
        _distance_alone,
        "aggregates",
    ),
    Fault(
        "counts beside means",
        "the first sum of a group is exact",
        "AggregateProblem.noisy",
        _counts_are_exact,
        "aggregates",
    ),
    Fault(
        "sums per row",
        "whoever is in several rows pays for one",
        "price_aggregates",
        _paid_per_row,
        "aggregates of people",
    ),
    Fault(
        "narrow combinations",
        "noise intervals of combined sums are a quarter as wide",
        "half_width",
        _half_as_wide,
        "aggregates",
    ),
)
