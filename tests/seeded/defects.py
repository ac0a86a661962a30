"""Defects that were there once, put back: the harness finds each of them again."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.mechanisms.linear.cost import invariant_components
from tests.seeded.planting import Fault


def _comments(original: Any) -> Any:
    """A line that begins with a hash is taken for a comment, unless no other line is left."""

    def rows(self: Any, *, header: bool) -> Any:
        every = list(original(self, header=header))
        return iter([row for row in every if not row[0].startswith("#")] or every)

    return rows


def _every_total(original: Any) -> Any:
    """Every total that a policy leaves public is stored, shown or not."""

    def shown(self: Any, seen: Any) -> Any:
        components = invariant_components(self.plan.graph)
        if components is None or seen.totals is None:
            return original(self, seen)
        labels = components.assignment()
        ones = np.ones(labels.size, dtype=np.int64)
        shape = (components.count, labels.size)
        rows = csr_array((ones, (labels, np.arange(labels.size))), shape=shape)
        return rows, np.asarray(seen.totals)

    return shown


def _dropped_nowhere(original: Any) -> Any:
    return lambda self: ()


def _nothing_hidden_is_free(original: Any) -> Any:
    def loss(kernels: Any, policy: Any) -> Any:
        return original(kernels, policy) if policy.graph.edge_count else 0

    return loss


def _collated(original: Any) -> Any:
    return lambda column, texts: (column.ref, texts)


def _confirmed_by_itself(original: Any) -> Any:
    def publish(self: Any, name: str, policy: Any, by: str, *, confirm: bool, withdraw: bool) -> Any:
        return original(self, name, policy, by, confirm=True, withdraw=withdraw)

    return publish


def _past_within_the_budget(original: Any) -> Any:
    def used(self: Any) -> Any:
        found = original(self)
        return found if found <= self.total else self.spent + self.held

    return used


def _any_rows_will_do(original: Any) -> Any:
    return lambda self, policy: None


def _no_column_decides(original: Any) -> Any:
    return lambda self: []


def _twice_without_a_word(original: Any) -> Any:
    return lambda others, confirmed: None


FAULTS = (
    Fault(
        "csv comments",
        "a line of a CSV file that begins with # is a comment",
        "_Lines.rows",
        _comments,
        "csv",
    ),
    Fault(
        "totals nobody was shown",
        "totals that no answer shows become free answers",
        "ReleasedRows.shown",
        _every_total,
        "told later",
    ),
    Fault(
        "batches and drops",
        "a row that one column drops is counted nowhere",
        "_Common._dropping",
        _dropped_nowhere,
        "together dropping",
    ),
    Fault(
        "batches without edges",
        "a batch under a policy without edges is free",
        "pairwise_loss",
        _nothing_hidden_is_free,
        "dropping without edges",
    ),
    Fault(
        "tightening in silence",
        "a policy that hides what was told is published without a word",
        "Publishing.publish",
        _confirmed_by_itself,
        "in time",
    ),
    Fault(
        "a past that is too large",
        "what was lost is forgotten where it is more than the budget",
        "Budget.used",
        _past_within_the_budget,
        "small budgets",
    ),
    Fault(
        "rows that come and go",
        "a view that filters by a hidden column may have a public number of rows",
        "RowRules.check",
        _any_rows_will_do,
        "views",
    ),
    Fault(
        "whose rows",
        "a declared, hidden column may say whose row it is",
        "Source._ids",
        _no_column_decides,
        "told",
    ),
    Fault(
        "rows twice",
        "the same rows get a second budget under another name",
        "check_shared",
        _twice_without_a_word,
        "again",
    ),
    Fault(
        "collations",
        "texts are compared as the database compares them",
        "encode/_texts",
        _collated,
        "collated",
    ),
)
