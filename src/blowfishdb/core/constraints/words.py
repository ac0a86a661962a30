"""What is known, in sentences, and what it does to everybody's privacy and to the noise."""

from __future__ import annotations

from blowfishdb.core.constraints.bound import most_records
from blowfishdb.core.constraints.declared import Marginal, Reading, table_bins
from blowfishdb.core.constraints.under_policy import over_classes
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.policy import Policy

_FEW = 6  # how many known counts are listed one by one


def known_sentences(policy: Policy) -> tuple[str, ...]:
    """Everything that is known, and then its effect; nothing where nothing is known."""
    if policy.constraints is None:
        return ()
    things = known_things(policy)
    said = [f"Known to everyone: {thing}." for thing in things[:_FEW]]
    if len(things) > _FEW:
        said.append(f"Known to everyone: {len(things) - _FEW:,} more counts or tables.")
    return (*said, effect(policy))


def known_things(policy: Policy) -> tuple[str, ...]:
    """Everything that is known, one by one: tables, then counts, then ranges."""
    known = policy.constraints
    if known is None:
        return ()
    conditions = [(str(count.where), count.answer) for count in known.counts]
    conditions += [(str(box.where), box.answer) for box in known.ranges]
    tables = [_table(table, policy.domain) for table in known.marginals]
    return (*tables, *(_condition(condition, answer) for condition, answer in conditions))


def _condition(condition: str, answer: int | None) -> str:
    return f"how many rows have {condition}{'' if answer is None else f', namely {answer:,}'}"


def _table(table: Marginal, domain: Domain) -> str:
    rows = 1
    for bins in table_bins(table, domain).values():
        rows *= bins.count
    names = ", ".join(f"'{name}'" for name in table.columns)
    each = "value" if len(table.columns) == 1 else "combination"
    given = "" if table.answers is None else ", with their values"
    return f"how many rows there are for each {each} of {names} ({rows:,} counts{given})"


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
        found = over_classes(policy)
    except TooLarge:
        return None
    return None if found.edges is None else most_records(found.known, found.graph, found.edges)
