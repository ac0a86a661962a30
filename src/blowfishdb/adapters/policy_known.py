"""The ``known`` section of a policy file: what the world already knows, as a curator writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blowfishdb.adapters.yaml_text import written_text
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.bins import Bins
from blowfishdb.core.column_policies import column_graph, group_members
from blowfishdb.core.constraints.declared import Constraints, Count, Marginal, Range
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.graphs import Partitioned
from blowfishdb.core.policy import Policy
from blowfishdb.core.predicates import Predicate
from blowfishdb.core.typed_values import typed_cell, written_cell


def read_known(section: Mapping[str, Any], domain: Domain) -> Constraints:
    """What a file says is known about the columns of ``domain``."""
    return Constraints(
        [_count(entry, domain) for entry in section.get("counts") or ()],
        [_table(entry, domain) for entry in section.get("tables") or ()],
        [_range(entry, domain) for entry in section.get("ranges") or ()],
        section.get("neighbours", "literal"),
    )


def _count(entry: Mapping[str, Any], domain: Domain) -> Count:
    from blowfishdb.adapters.sql_condition import condition

    return Count(condition(entry["where"], domain), _answer(entry.get("count")))


def _table(entry: Mapping[str, Any], domain: Domain) -> Marginal:
    names = tuple(entry["columns"])
    groups = entry.get("groups") or {}
    for name in groups:
        if name not in names:
            raise InvalidInput(f"'{name}' has groups, but is not a column of this table.")
    bins = tuple(_bins(domain[name], groups[name]) if name in groups else None for name in names)
    counts = entry.get("counts")
    return Marginal(names, bins, None if counts is None else tuple(_whole(count) for count in counts))


def _bins(attribute: Attribute, groups: Any) -> Bins:
    """Groups of values, or of a width; missing values are a row of their own."""
    graph = (
        column_graph(attribute, groups=groups)
        if isinstance(groups, dict | list)
        else column_graph(attribute, groups_of=groups)
    )
    assert isinstance(graph, Partitioned)
    if not attribute.has_missing_cell:
        return graph.parts
    return Bins.labels([*graph.parts.assignment().tolist(), graph.parts.count])


def _range(entry: Mapping[str, Any], domain: Domain) -> Range:
    sides = []
    for name, ends in entry["within"].items():
        low, high = (typed_cell(domain[name], end) for end in ends)
        if max(low, high) >= domain[name].value_count:
            raise InvalidInput(f"A range of '{name}' has no place for missing values.")
        sides.append((name, domain[name].lower(low), domain[name].upper(high)))
    return Range(tuple(sides), _answer(entry.get("count")))


def _answer(count: object) -> int | None:
    return None if count is None else _whole(count)


def _whole(count: object) -> int:
    typed = str(count).replace(",", "").replace("_", "")
    if not typed.isdecimal() or len(typed) > 18:
        raise InvalidInput("A known count is a whole number, not negative.", fixes=("count: 512",))
    return int(typed)


# --- writing ------------------------------------------------------------------------------------------


def known_document(policy: Policy) -> dict[str, Any]:
    """What is known as the data that a file holds; ``read_known`` undone."""
    from blowfishdb.adapters.sql_condition import condition_text

    known, domain = policy.constraints, policy.domain
    if known is None:
        return {}
    section: dict[str, Any] = {"neighbours": known.reading.value}
    if known.counts:
        section["counts"] = [
            _with({"where": condition_text(count.where)}, "count", count.answer)
            for count in known.counts
            if isinstance(count.where, Predicate)
        ]
    if known.marginals:
        section["tables"] = [_table_document(table, domain) for table in known.marginals]
    if known.ranges:
        section["ranges"] = [
            _with({"within": _sides(box, domain)}, "count", box.answer) for box in known.ranges
        ]
    return section


def _with(entry: dict[str, Any], key: str, answer: int | None) -> dict[str, Any]:
    return entry if answer is None else {**entry, key: str(answer)}


def _table_document(table: Marginal, domain: Domain) -> dict[str, Any]:
    groups = {
        str(name): _groups(domain[str(name)], bins)
        for name, bins in zip(table.columns, table.bins, strict=True)
        if bins is not None
    }
    entry: dict[str, Any] = {"columns": list(table.columns)}
    if groups:
        entry["groups"] = groups
    return entry if table.answers is None else {**entry, "counts": [str(count) for count in table.answers]}


def _groups(attribute: Attribute, bins: Bins) -> list[list[str]]:
    values = bins if not attribute.has_missing_cell else bins.without_last_cell()
    if values is None:
        raise InvalidInput("A known table that puts missing values in one row with others cannot be written.")
    return [list(group_members(attribute, values.members(at))) for at in range(values.count)]


def _sides(box: Range, domain: Domain) -> dict[str, list[str]]:
    return {
        str(name): [written_cell(domain[str(name)], domain[str(name)].cell(end)) for end in ends]
        for name, *ends in box.sides
    }


def known_lines(section: Mapping[str, Any]) -> Iterator[str]:
    """The section as lines of a file."""
    if not section:
        return
    yield "known:"
    yield f"  neighbours: {section['neighbours']}"
    for key in ("counts", "tables", "ranges"):
        if key in section:
            yield f"  {key}:"
            yield from (f"    - {_flow(entry)}" for entry in section[key])


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{written_text(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return written_text(value)
