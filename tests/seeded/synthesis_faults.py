"""Faults in synthetic tables."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.seeded.planting import Fault


def _half(original: Any) -> Any:
    return lambda nano, sensitivity=1: original(nano, sensitivity) / 2


def _ended_by_scores(original: Any) -> Any:
    """Nothing is left once the best of the true scores is small."""

    def chosen(self: Any, candidates: Any, rows: Any, true: Any, *more: Any) -> Any:
        tables = ((true[pair], self.layout.tabulated(rows, pair)) for pair in candidates)
        if min(int(abs(table - drawn).sum()) // 2 for table, drawn in tables) < 1:
            self._left = lambda: [Fraction(0)]
        return original(self, candidates, rows, true, *more)

    return chosen


def _one_cell(original: Any) -> Any:
    return lambda self, columns: min(1, original(self, columns))


def _public(original: Any) -> Any:
    return lambda policy, axis: False


def _without_choices(original: Any) -> Any:
    return lambda self, rows_per_person: original(replace(self, choices=()), rows_per_person)


FAULTS = (
    Fault(
        "half the noise of a choice",
        "a table is chosen with half the noise that its loss needs",
        "selection_scale",
        _half,
        "made up",
    ),
    Fault(
        "an end by true scores",
        "rounds end when the model is near to the true tables",
        "_Measuring._chosen",
        _ended_by_scores,
        "made up",
    ),
    Fault(
        "one cell of a table",
        "a row that moves changes one cell of a table, not two",
        "Moves.cells",
        _one_cell,
        "made up",
    ),
    Fault(
        "hidden rows kept",
        "rows of hidden columns may be kept as they are",
        "tells",
        _public,
        "made up and kept",
    ),
    Fault(
        "choices forgotten",
        "the past knows the tables of a synthesis, and not the choices among them",
        "SyntheticTable.kernels",
        _without_choices,
        "made up in time",
    ),
)
