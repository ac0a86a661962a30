"""What is known, in sentences, and what it does to everybody's privacy and to the noise."""

from __future__ import annotations

from blowfishdb.core.constraints.bound import most_records
from blowfishdb.core.constraints.declared import Marginal, Reading, table_bins
from blowfishdb.core.constraints.under_policy import on_common_boxes
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.policy import Policy

_FEW = 6  # how many known counts are listed one by one


def known_sentences(policy: Policy) -> tuple[str, ...]:
    """Everything that is known, and then its effect; nothing where nothing is known."""
    known = policy.constraints
    if known is None:
        return ()
    said = [f"Known to everyone: {_table(table, policy.domain)}." for table in known.marginals[:_FEW]]
    conditions = [(str(count.where), count.answer) for count in known.counts]
    conditions += [(str(box.where), box.answer) for box in known.ranges]
    for condition, answer in conditions[:_FEW]:
        given = "" if answer is None else f", namely {answer:,}"
        said.append(f"Known to everyone: how many rows have {condition}{given}.")
    more = max(0, len(known.marginals) - _FEW) + max(0, len(conditions) - _FEW)
    if more:
        said.append(f"Known to everyone: {more:,} more counts or tables.")
    return (*said, effect(policy))


def _table(table: Marginal, domain: Domain) -> str:
    rows = 1
    for bins in table_bins(table, domain).values():
        rows *= bins.count
    names = ", ".join(f"'{name}'" for name in table.columns)
    each = "value" if len(table.columns) == 1 else "combination"
    return f"how many rows there are for each {each} of {names} ({rows:,} counts)"


def effect(policy: Policy) -> str:
    """What the known counts do, in one or two sentences."""
    records = _records(policy)
    if records is None:
        return (
            "These counts overlap in a way that no proof covers, so questions are refused under this policy "
            "until they are fewer, coarser, or do not overlap."
        )
    if records == 1:
        return (
            "No hidden difference changes any of these counts, so answers cost what they cost without them."
        )
    edge = policy.constraints is not None and policy.constraints.reading is Reading.EDGE
    how = " and each of them may change only as the policy says" if edge else ""
    return (
        f"Nobody can change without others changing too: up to {records:,} records are hidden together{how}. "
        f"For the same promise a histogram needs up to {records:,} times the noise."
    )


def _records(policy: Policy) -> int | None:
    if policy.constraints is None:
        return 1
    try:
        known, graph, _ = on_common_boxes(policy, {})
        return most_records(known, graph)
    except TooLarge:
        return None
