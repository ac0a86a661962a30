"""Guarantee: what a policy and a budget promise to a person in the data, and what they do not."""

from __future__ import annotations

import math
from collections.abc import Iterator

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.constraints.under_policy import keeps_component_totals
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.policy.columns import shown_distance, values_graph
from blowfishdb.core.policy.policy import Part, Parts, Policy, group_counts, own_graph, parts_of
from blowfishdb.core.policy.protection import CERTAIN, at_most, certainty_at, extent, percent
from blowfishdb.core.policy.statements import Clause, Guarantee, Limit
from blowfishdb.core.policy.words import area_distance, area_radius, known_sentences, pair_words

_LOST = 0.975  # where the next step goes beyond this, "effectively not hidden" is fair
_NEARLY_SURE = 0.99


def guarantee(policy: Policy, budget: Epsilon, *, rows_per_person: int = 1) -> Guarantee:
    """What spending all of ``budget`` under ``policy`` can reveal about one person."""
    parts = parts_of(policy)
    clauses = tuple(_clause(policy, parts, part, budget) for part in parts.parts)
    presence = ""
    if parts.hides_presence:
        presence = (
            "Whether someone is in the data is hidden as well: an attacker who thought it equally likely "
            f"that they are and that they are not can be {at_most(certainty_at(1, budget))} (was 50 %)."
        )
    return Guarantee(
        budget,
        rows_per_person,
        clauses,
        _together(parts, clauses, budget),
        presence,
        _not_hidden(policy, parts),
        _known(policy, budget),
    )


def _known(policy: Policy, budget: Epsilon) -> str:
    """What the promise means when everyone knows some counts already."""
    if policy.constraints is None:
        return ""
    return " ".join(
        (
            *known_sentences(policy),
            "With these counts, knowing everything about everyone else could tell what one person has before "
            "any question is asked. The promise is therefore about all records that the counts tie together: "
            "of two possible states of the data that agree with the counts and differ as little as they "
            "allow, an attacker who thought both equally likely can be "
            f"{at_most(certainty_at(1, budget))} which one is real.",
        )
    )


# --- one part -----------------------------------------------------------------------------------


def _clause(policy: Policy, parts: Parts, part: Part, budget: Epsilon) -> Clause:
    pairs = pair_words(policy, part)
    sure = certainty_at(1, budget)
    if pairs is None:
        return _nothing(part, parts.hides_presence, budget)
    promise = (
        f"Suppose an attacker knows everything about everyone else and thinks {pairs} are equally likely for "
        f"one person. After every answer this budget allows, they can be {at_most(sure)} (was 50 %)."
    )
    limits, beyond = _limits(policy, part, parts.hides_presence, budget)
    split = part.graph.without_last()
    if split is not None and not split[1]:
        beyond = f"{beyond} Whether '{part.columns[0]}' is missing is not hidden.".strip()
    return Clause(part.columns, promise, sure, limits, beyond)


def _nothing(part: Part, presence: bool, budget: Epsilon) -> Clause:
    name = part.columns[0]
    if not presence:
        promise = (
            f"Nothing about '{name}' is hidden: an attacker may become certain which value a person has."
        )
        return Clause(part.columns, promise, None, (), "")
    limit = Limit("any two values", 2, certainty_at(2, budget))
    promise = (
        f"Which of two values of '{name}' a person has is hidden only because they may not be in the data at "
        "all: an attacker who thought two values equally likely can be "
        f"{at_most(limit.certainty)} (was 50 %)."
    )
    return Clause(part.columns, promise, None, (limit,), "")


def _limits(policy: Policy, part: Part, presence: bool, budget: Epsilon) -> tuple[tuple[Limit, ...], str]:
    graph, missing = (part.graph, False) if len(part.columns) > 1 else values_graph(policy, part.columns[0])
    farthest, split = extent(graph)
    if farthest <= 1 and not split:
        return (), ""
    if missing or presence:
        return _either_way(graph, missing, budget)
    if graph.cliques is not None:
        return (), "In which group it is, is not hidden."
    limits = tuple(
        Limit(_apart(policy, part, graph, steps), steps, certainty_at(steps, budget))
        for steps in range(2, min(farthest, 3) + 1)
        if steps == 2 or certainty_at(steps - 1, budget) < CERTAIN  # nothing is left to be added
    )
    return limits, " ".join(_beyond(policy, part, graph, limits, (farthest, split), budget))


def _either_way(graph: PolicyGraph, missing: bool, budget: Epsilon) -> tuple[tuple[Limit, ...], str]:
    """A vertex that is joined to every value: no two are more than two edges apart."""
    why = "either could also be missing" if missing else "the person may also not be in the data"
    apart = "in different groups" if graph.cliques is not None else "any other two values"
    if graph.line_reach is not None or area_radius(graph) is not None:
        apart = "farther apart"
    limit = Limit(apart, 2, certainty_at(2, budget))
    return (limit,), f"{apart.capitalize()}: {at_most(limit.certainty)}, because {why}."


def _apart(policy: Policy, part: Part, graph: PolicyGraph, steps: int) -> str:
    """``steps`` edges as a distance in data units, where there is one; not beyond the largest."""
    if area_radius(graph) is not None:
        return area_distance(policy, part, steps)
    attribute = policy.domain[part.columns[0]]
    if graph.line_reach is not None and attribute.ordered:
        return shown_distance(attribute, min(steps * graph.line_reach, graph.size - 1))
    return {2: "two steps", 3: "three steps"}.get(steps, f"{steps:,} steps")


def _beyond(
    policy: Policy,
    part: Part,
    graph: PolicyGraph,
    limits: tuple[Limit, ...],
    reach: tuple[int, bool],
    budget: Epsilon,
) -> Iterator[str]:
    """Limits as "At 2,000 apart: 88 %; at 3,000: 95 %.", and how it goes on from there."""
    farthest, split = reach
    if limits:
        first, *rest = limits
        more = "".join(f"; at {limit.apart}: {percent(limit.certainty)}" for limit in rest)
        yield f"At {first.apart} apart: {percent(first.certainty)}{more}."
    listed = limits[-1].distance if limits else 1
    if farthest > listed:
        following = certainty_at(listed + 1, budget)
        lost = (
            math.ceil(math.log(_NEARLY_SURE / (1 - _NEARLY_SURE)) / float(budget)) if budget else farthest + 1
        )
        if following >= _LOST:
            yield "Larger differences are effectively not hidden."
        elif lost <= farthest:
            edge = _apart(policy, part, graph, lost - 1)
            yield f"Beyond {edge} apart it is more than 99 %, which is effectively not hidden."
        else:
            yield f"However far apart: {at_most(certainty_at(farthest, budget))}."
    if split:
        yield "Values that no chain of such pairs joins are not hidden from each other."


# --- the whole ----------------------------------------------------------------------------------


def _together(parts: Parts, clauses: tuple[Clause, ...], budget: Epsilon) -> str:
    promised = sum(clause.certainty is not None for clause in clauses)
    if promised < 2:
        return ""
    if parts.joint:
        return (
            "This holds for several columns at once: records that differ in more than one of them, in each "
            f"by no more than this, are hidden just as well ({at_most(certainty_at(1, budget))})."
        )
    if parts.hides_presence:  # by way of ⊥ no two records are more than two edges apart
        each = f"in 2 or more: {percent(certainty_at(2, budget))}"
    else:
        counts = sorted({2, min(3, promised), promised})
        certain = [count for count in counts if certainty_at(count, budget) >= CERTAIN]
        each = "; ".join(
            f"in {count}{' or more' if count in certain and count < promised else ''}: "
            f"{percent(certainty_at(count, budget))}"
            for count in counts
            if count not in certain[1:]
        )
    return (
        "Columns add up. How sure an attacker can be between records that differ in several of these "
        f"columns, in each by no more than this: {each}."
    )


def invariants(policy: Policy) -> list[str]:
    """What a policy does not hide from anyone, in words: exact counts are given away freely.

    The total of every connected component is the same for all neighbouring databases, unless something
    that is known forces records of other components to move as well.
    """
    if policy.hides_presence:
        return []
    if not keeps_component_totals(policy):
        return ["how many rows there are"]
    columns = (name for name in policy.domain if not policy.domain[name].may_drop)
    parts = [counts for name in columns if (counts := group_counts(name, own_graph(policy, name)))]
    return ["how many rows there are", *parts]


def _not_hidden(policy: Policy, parts: Parts) -> tuple[str, ...]:
    if parts.hides_presence:
        return ()
    facts = ["that the person is in the data", *invariants(policy)]
    if not keeps_component_totals(policy):
        return tuple(facts)
    if len(facts) > 3:
        facts.append("how many are in every combination of these groups")
    for part in parts.parts:
        if len(part.columns) > 1:
            count = _components(part.graph)
            names = ", ".join(f"'{name}'" for name in part.columns)
            if count is None or count > 1:
                each = "group" if count is None else f"of the {count:,} groups"
                facts.append(f"how many rows are in each {each} of {names} that nothing joins")
    return tuple(facts)


def _components(graph: PolicyGraph) -> int | None:
    try:
        return graph.components().count
    except TooLarge:
        return None
