"""The promise as one table: each column, what is hidden of it, how sure anyone can be, and beyond that.

The guarantee, the publish page and the budget page show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.protection import percent
from blowfishdb.core.policy.statements import Clause, Guarantee
from blowfishdb.entrypoints.server.web.policy_form import ColumnRuleForm

_MOST_BEYOND: Final = 2


@final
@dataclass(frozen=True)
class PromiseRow:
    """One line of the table."""

    column: str
    hidden: str
    sure: str
    beyond: str


@final
@dataclass(frozen=True)
class PromiseTable:
    """The whole table, and how sure anyone can be at most between values that are hidden."""

    rows: tuple[PromiseRow, ...]
    sure: str


def promise_table(policy: Policy, promised: Guarantee) -> PromiseTable:
    """What is promised about a policy, column by column."""
    rows = tuple(_row(policy, clause) for clause in promised.clauses)
    most = max((clause.certainty for clause in promised.clauses if clause.certainty), default=None)
    return PromiseTable(rows, "" if most is None else percent(most))


def _row(policy: Policy, clause: Clause) -> PromiseRow:
    alone = len(clause.columns) == 1
    everything = len(clause.columns) == len(policy.domain.names) and not alone
    if alone:
        hidden = ColumnRuleForm.of(policy, clause.columns[0]).in_short
    else:
        hidden = "hidden entirely" if clause.certainty and not clause.limits else "hidden as one area"
    beyond = "; ".join(f"{apart}: {sure}" for apart, sure in _told_apart(clause))
    sure = "not hidden" if clause.certainty is None else percent(clause.certainty)
    named = "the whole record" if everything else ", ".join(clause.columns)
    return PromiseRow(named, hidden, sure, beyond)


def _told_apart(clause: Clause) -> list[tuple[str, str]]:
    """How sure anyone can be of values that are farther apart, as far as the number still changes."""
    told: list[tuple[str, str]] = []
    for limit in clause.limits[:_MOST_BEYOND]:
        sure = percent(limit.certainty)
        if not told or told[-1][1] != sure:
            told.append((limit.apart, sure))
    return told
