"""Faults where something is known already, and in what analysts are granted."""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfishdb.core.budget import Epsilon
from tests.seeded.planting import Fault


def _as_if_alone(original: Any) -> Any:
    return lambda known, moves, edges=None: moves.along_an_edge


def _nobody_comes_or_goes(original: Any) -> Any:
    def tells_nothing(self: Any, policy: Any) -> bool:
        if any(axis.attribute.may_drop for axis in self.axes):
            return bool(original(self, policy))
        columns = self.rows.sparse().tocsc()
        return bool(abs(columns - columns[:, np.zeros(self.rows.size, dtype=np.int64)]).sum() == 0)

    return tells_nothing


def _no_factor(original: Any) -> Any:
    return lambda self: min(1, original(self))


def _one_move_less(original: Any) -> Any:
    def longest(*given: Any) -> int | None:
        found = original(*given)
        return None if found is None else max(1, found - 1)

    return longest


def _one_class_less(original: Any) -> Any:
    return lambda self: original(self) - (self.widest if len(self.widths) > 1 else 0)


def _always(original: Any) -> Any:
    return lambda self: True


def _nothing_known_then(original: Any) -> Any:
    return lambda self, policy: original(self, policy.knowing(None))


def _nothing_known_together(original: Any) -> Any:
    return lambda kernels, policy: original(kernels, policy.knowing(None))


def _beside_the_total(original: Any) -> Any:
    return lambda connection, dataset, *, held, spent=0: None


def _out_of_one_purse(original: Any) -> Any:
    def book_account(connection: Any, dataset: str, user: str, *, held: int, spent: int = 0) -> None:
        original(connection, dataset, "ana", held=held, spent=spent)

    return book_account


def _of_today(original: Any) -> Any:
    return lambda amount, losses: amount


def _no_limit(original: Any) -> Any:
    return lambda connection, dataset, user: None


def _half_of_them(original: Any) -> Any:
    def granted(connection: Any, dataset: str) -> Epsilon | None:
        found = original(connection, dataset)
        return None if found is None else Epsilon.from_nano(found.nano // 2)

    return granted


def _by_answers(original: Any) -> Any:
    def left(self: Any, dataset: str, user: str) -> Epsilon:
        found: Epsilon = original(self, dataset, user)
        told = sum(len(stored.answer) for stored in self.answers(dataset))
        return found if told % 2 else Epsilon.from_nano(found.nano // 2)

    return left


FAULTS = (
    Fault("nobody else", "known counts force nobody to move", "most_change", _as_if_alone, "known"),
    Fault(
        "known factor",
        "a mechanism loses its ε once, however many records move together",
        "Refined.factor",
        _no_factor,
        "known steps",
    ),
    Fault(
        "shorter exchange",
        "one record less moves where known counts overlap",
        "longest_exchange",
        _one_move_less,
        "known overlapping",
    ),
    Fault("fewer classes", "of all classes one takes no part", "Spread.total", _one_class_less, "known"),
    Fault(
        "known groups",
        "how many are in each group is exact, although known counts move people between them",
        "Refined.keeps_totals",
        _always,
        "known groups",
    ),
    Fault(
        "known later",
        "under a policy with known counts, earlier answers lost what they lose without",
        "ByRows.worst",
        _nothing_known_then,
        "known later",
    ),
    Fault(
        "known together",
        "a basket loses what it loses where nothing is known",
        "total_loss",
        _nothing_known_together,
        "known together",
    ),
    Fault(
        "beside the total",
        "what an analyst spends is not taken from the total",
        "book",
        _beside_the_total,
        "granted",
    ),
    Fault(
        "one purse",
        "what one analyst spends is taken from another",
        "book_account",
        _out_of_one_purse,
        "granted",
    ),
    Fault(
        "purse of today",
        "an analyst pays what is lost under the policy of today, not the largest loss",
        "debit",
        _of_today,
        "looser",
    ),
    Fault("no limit", "nobody is held to a grant", "left_of_grant", _no_limit, "granted"),
    Fault(
        "half of the grants",
        "grants count half towards the total",
        "sum_of_grants",
        _half_of_them,
        "granted twice",
    ),
    Fault(
        "left by answers",
        "what an analyst has left depends on what was answered",
        "Ledger.left",
        _by_answers,
        "granted",
    ),
    Fault(
        "known and nobody",
        "beside known counts how many rows there are is public, whoever comes or goes",
        "ByRows._tells_nothing",
        _nobody_comes_or_goes,
        "known later present",
    ),
)
