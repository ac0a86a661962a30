"""A policy in sentences: what each column hides, and what changes from one policy to the next.

What is known, in sentences, and what it does to everybody's privacy and to the noise.
"""

from __future__ import annotations

from functools import lru_cache

from blowfishdb.core.constraints.bound import most_records
from blowfishdb.core.constraints.declared import Marginal, Reading, table_bins
from blowfishdb.core.constraints.under_policy import keeps_component_totals, over_classes
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, TooLarge
from blowfishdb.core.graphs import Grid, Partitioned, PolicyGraph
from blowfishdb.core.graphs.inclusion import includes
from blowfishdb.core.policy.columns import (
    ColumnRule,
    Hides,
    current,
    grouped,
    shown_distance,
    typed_distance,
)
from blowfishdb.core.policy.policy import Part, Policy, group_counts, own_graph, parts_of
from blowfishdb.core.policy.statements import ColumnChange, PolicyDifference

_FEW = 6  # how many known counts are listed one by one


def known_sentences(policy: Policy) -> tuple[str, ...]:
    """Everything that is known, and then its effect; nothing where nothing is known."""
    if policy.constraints is None:
        return ()
    things = known_things(policy)
    listed = [f"Known to everyone: {thing}." for thing in things[:_FEW]]
    if len(things) > _FEW:
        listed.append(f"Known to everyone: {len(things) - _FEW:,} more counts or tables.")
    return (*listed, effect(policy))


def known_things(policy: Policy) -> tuple[str, ...]:
    """Everything that is known, one by one: tables, then counts, then ranges."""
    constraints = policy.constraints
    if constraints is None:
        return ()
    conditions = [(str(count.where), count.answer) for count in constraints.counts]
    conditions += [(str(box.where), box.answer) for box in constraints.ranges]
    tables = [_table(table, policy.domain) for table in constraints.marginals]
    return (*tables, *(_known_condition(condition, answer) for condition, answer in conditions))


def _known_condition(condition: str, answer: int | None) -> str:
    return f"how many rows have {condition}{'' if answer is None else f', namely {answer:,}'}"


def _table(table: Marginal, domain: Domain) -> str:
    rows = 1
    for bins in table_bins(table, domain).values():
        rows *= bins.count
    names = ", ".join(f"'{name}'" for name in table.columns)
    each = "value" if len(table.columns) == 1 else "combination"
    values = "" if table.answers is None else ", with their values"
    return f"how many rows there are for each {each} of {names} ({rows:,} counts{values})"


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
        classes = over_classes(policy)
    except TooLarge:
        return None
    return None if classes.edges is None else most_records(classes.known, classes.graph, classes.edges)


# --- one policy ---------------------------------------------------------------------------------


def sentence(policy: Policy, column: str) -> str:
    """What the policy hides about a column."""
    part = parts_of(policy).of(column)
    if len(part.columns) == 1:
        return _column_sentence(policy.domain, current(policy, column, most=_FEW**2))
    if part.graph.complete:
        return f"Hide which value of '{column}' someone has."
    return _shared_sentence(policy, part)


@lru_cache(maxsize=64)
def sentences(policy: Policy) -> tuple[str, ...]:
    """What the policy hides, column by column, and how columns and presence are treated."""
    parts = parts_of(policy)
    several = len(policy.domain) > 1
    if parts.whole_record and several:
        hidden = ["Hide everything in a person's record."]
    else:
        hidden = [sentence(policy, part.columns[0]) for part in parts.parts]
    if len(parts.parts) > 1:
        hidden.append(composition(parts.joint))
    if parts.hides_presence:
        hidden.append("Hide also whether someone is in the data, and so how many rows there are.")
    return (*hidden, *known_sentences(policy))


def composition(joint: bool) -> str:
    """How the columns of a record are combined."""
    if joint:
        return "Columns are hidden together: records may differ in several columns at once."
    return (
        "Columns are hidden one by one: with each further column in which two records differ, less is hidden."
    )


def pair_words(policy: Policy, part: Part) -> str | None:
    """The pairs that a part of the policy hides, to be put into a sentence; None if there are none."""
    if len(part.columns) > 1:
        return _shared_pairs(policy, part)
    rule = current(policy, part.columns[0], most=_FEW**2)
    two = f"two values of '{rule.column}'"
    if rule.hides is Hides.EVERYTHING:
        return f"any {two}"
    if rule.hides is Hides.NOTHING:
        return f"a missing value of '{rule.column}' and any other" if rule.missing else None
    return f"{two} {_condition(policy.domain, rule)}"


def _condition(domain: Domain, rule: ColumnRule) -> str:
    attribute = domain[rule.column]
    if rule.hides in (Hides.WITHIN, Hides.WIDTH):
        cells = attribute.threshold(typed_distance(attribute, rule.said))
        far = shown_distance(attribute, cells)
        return f"within {far} of each other" if rule.hides is Hides.WITHIN else f"in the same group of {far}"
    listed = rule.said or ()
    short = 0 < len(listed) <= _FEW and all(len(entry) <= _FEW for entry in listed)
    if rule.hides is Hides.GROUPS:
        groups = "; ".join(", ".join(group) for group in listed)
        return f"in the same group ({groups})" if short else f"in the same one of {rule.entries:,} groups"
    pairs = "; ".join(f"{u} and {v}" for u, v in listed)
    return f"that are a listed pair ({pairs})" if short else f"that are one of {rule.entries:,} listed pairs"


def _column_sentence(domain: Domain, rule: ColumnRule) -> str:
    if rule.hides is Hides.NOTHING:
        if rule.missing:
            return f"Hide only whether someone's '{rule.column}' is missing, not which value it is."
        return f"Hide nothing about '{rule.column}'."
    missing = " Hide also whether it is missing." if rule.missing else ""
    if not rule.missing and domain[rule.column].has_missing_cell:
        missing = " Whether it is missing is not hidden."
    if rule.hides is Hides.EVERYTHING:
        return f"Hide which value of '{rule.column}' someone has.{missing}"
    condition = _condition(domain, rule).removeprefix("that are ")
    return f"Hide which of two values of '{rule.column}' someone has when they are {condition}.{missing}"


def _shared_sentence(policy: Policy, part: Part) -> str:
    names = _listed(part.columns)
    if area_radius(part.graph) is not None:
        far = area_distance(policy, part)
        return (
            f"Hide which of two places ({names}) someone has when they are within {far} of each other, "
            "the distances in all these columns added up."
        )
    if part.graph.cliques is not None:
        return f"Hide which of two combinations of {names} someone has when they are in the same group."
    return f"Hide which of two combinations of {names} someone has when the policy joins them."


def _shared_pairs(policy: Policy, part: Part) -> str | None:
    names = _listed(part.columns)
    if part.graph.complete:
        return (
            "any two records"
            if len(part.columns) == len(policy.domain)
            else f"any two combinations of {names}"
        )
    if area_radius(part.graph) is not None:
        return f"two places ({names}) within {area_distance(policy, part)} of each other"
    if part.graph.cliques is not None:
        return f"two combinations of {names} in the same group"
    return f"two combinations of {names} that the policy joins"


def area_unit(domain: Domain, columns: tuple[str, ...]) -> bool:
    """Whether a distance over these columns can be told in data units: their cells are equally wide."""
    attributes = [domain[name] for name in columns]
    kinds = {attribute.unit if isinstance(attribute, Date) else "" for attribute in attributes}
    same = len({attribute.in_cells(1) for attribute in attributes}) == 1
    return same and len(kinds) == 1 and all(attribute.ordered for attribute in attributes)


def area_radius(graph: PolicyGraph) -> int | None:
    """How far apart two places of an area may be, in cells, the distances of all axes added up."""
    return graph.theta if isinstance(graph, Grid) else None


def area_distance(policy: Policy, part: Part, times: int = 1) -> str:
    """How far apart two places of an area may be, in words; ``times`` that distance."""
    theta = (area_radius(part.graph) or 1) * times
    if area_unit(policy.domain, part.columns):
        return shown_distance(policy.domain[part.columns[0]], theta)
    return f"{grouped(theta)} cell{'s' if theta > 1 else ''}"


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in columns)


# --- two policies -------------------------------------------------------------------------------


def difference(old: Policy, new: Policy) -> PolicyDifference:
    """What publishing ``new`` in place of ``old`` would change, for a curator to read first."""
    if old.domain != new.domain:
        raise InvalidInput("The two policies are about different columns, so they cannot be compared.")
    columns = tuple(_column_change(old, new, name) for name in old.domain)
    covered, hidden = includes(new.graph, old.graph), includes(old.graph, new.graph)
    tightens, loosens = (None if included is None else not included for included in (hidden, covered))
    newly, no_longer = _newly_exact(old, new), _newly_exact(new, old)
    changes = _change_sentences(old, new, columns)
    if (
        old.constraints != new.constraints
    ):  # other records are tied together: neither hides all the other does
        tightens = loosens = True
        changes += _known_change(old, new)
    changes += _direction(tightens, loosens)
    changes += [f"From now on exact and free for everyone who may ask: {answer}." for answer in newly]
    changes += [f"No longer exact: {answer}." for answer in no_longer]
    return PolicyDifference(columns, tightens, loosens, newly, no_longer, tuple(changes))


def _column_change(old: Policy, new: Policy, column: str) -> ColumnChange:
    before, after = (own_graph(policy, column).counted for policy in (old, new))
    covered, hidden = includes(after, before), includes(before, after)
    tightens, loosens = (None if included is None else not included for included in (hidden, covered))
    return ColumnChange(column, sentence(old, column), sentence(new, column), tightens, loosens)


def _newly_exact(old: Policy, new: Policy) -> tuple[str, ...]:
    """Counts that ``new`` gives exactly and ``old`` did not: groups that are no unions of old groups."""
    if new.hides_presence:
        return ()
    facts = ["how many rows there are"] if old.hides_presence else []
    if not keeps_component_totals(new):
        return tuple(facts)
    for name in new.domain:
        if new.domain[name].may_drop:  # a row may always move in or out of a group unseen
            continue
        graph = own_graph(new, name)
        exact = not old.hides_presence and keeps_component_totals(old)
        before = own_graph(old, name).components() if exact else None
        counts = group_counts(name, graph)
        if counts and not (before and includes(Partitioned(graph.components()), Partitioned(before))):
            facts.append(counts)
    return tuple(facts)


def _change_sentences(old: Policy, new: Policy, columns: tuple[ColumnChange, ...]) -> list[str]:
    changes = [f"'{c.column}' was: {c.before} Now: {c.after}" for c in columns if c.changed]
    before, after = parts_of(old), parts_of(new)
    if before.joint != after.joint:
        changes.append(f"Was: {composition(before.joint)} Now: {composition(after.joint)}")
    if before.hides_presence != after.hides_presence:
        now = "hidden" if after.hides_presence else "no longer hidden"
        changes.append(f"Whether someone is in the data, and how many rows there are, is {now}.")
    return changes


def _known_change(old: Policy, new: Policy) -> list[str]:
    before, after = (" ".join(known_sentences(policy)) for policy in (old, new))
    nothing = "nothing is taken to be known."
    return [
        f"What everyone knows already was: {before or nothing} Now: {after or nothing}",
        "Known counts tie records together: those are now hidden as a whole, and single ones are not.",
    ]


def _direction(tightens: bool | None, loosens: bool | None) -> list[str]:
    if tightens is False and loosens is False:
        return ["Both policies hide exactly the same."]
    sentences = []
    if tightens:
        sentences.append("This hides more: some values that could be told apart must now stay hidden.")
    if loosens:
        sentences.append("This hides less: some values that had to stay hidden may now be told apart.")
    if tightens is None:
        sentences.append("Whether this hides more could not be computed for policies of this size.")
    if loosens is None:
        sentences.append("Whether this hides less could not be computed for policies of this size.")
    return sentences


def stays_promised(version: int, change: PolicyDifference) -> str:
    """What a policy that answers relied on means for prices once one that hides less is published beside it.

    Every answer loses at least as much under a policy that hides more, so nothing is cheaper before it ends.
    """
    if change.loosens is False:
        return ""
    stays = f"Version {version} of the policy stays promised beside it, unless it is withdrawn"
    if change.loosens and change.tightens is False:
        return f"{stays}: prices do not fall until then."
    return f"{stays}: until then every answer has to fit under both."
