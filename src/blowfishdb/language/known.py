"""The ``known`` section of a policy file: what the world already knows, as a curator writes it.

A published table of counts as a known table: a CSV file with some columns and a last one called count.

Policy graphs from files: a list of pairs of values that must stay indistinguishable.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blowfishdb.core.constraints.declared import Constraints, Count, Marginal, Range, table_bins
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.bins import LIMIT, Bins
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Predicate
from blowfishdb.core.errors import (
    BlowfishError,
    InvalidGraph,
    InvalidInput,
    InvalidValue,
    SourceMissing,
    TooLarge,
)
from blowfishdb.core.graphs import Explicit
from blowfishdb.core.graphs.general import with_last_apart
from blowfishdb.core.policy.columns import column_graph, group_members, typed_cell, written_cell
from blowfishdb.core.policy.policy import Policy
from blowfishdb.language.yaml import written_text


def read_known(section: Mapping[str, Any], domain: Domain) -> Constraints:
    """What a file says is known about the columns of ``domain``."""
    return Constraints(
        [_count(entry, domain) for entry in section.get("counts") or ()],
        [_table(entry, domain) for entry in section.get("tables") or ()],
        [_range(entry, domain) for entry in section.get("ranges") or ()],
        section.get("neighbours", "literal"),
    )


def _count(entry: Mapping[str, Any], domain: Domain) -> Count:
    from blowfishdb.language.condition import condition

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
    parts = graph.cliques
    assert parts is not None  # groups are what was asked for
    return with_last_apart(parts) if attribute.has_missing_cell else parts


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
    from blowfishdb.language.condition import condition_text

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
    return [group_members(attribute, values.members(at)) for at in range(values.count)]


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


_COUNT = "count"
_EXAMPLE = "region,count\nnorth,812\nsouth,590"


def read_table(text: str, domain: Domain, *, columns: Sequence[str] | None = None) -> Marginal:
    """The table that CSV text holds, with its counts; combinations that are not listed count 0.

    Values may be ranges, such as ``30..39``: then these are the rows of the table. ``columns``, if given, are
    those that the table must be about.
    """
    header, rows = _rows(text)
    names = header[:-1]
    if columns is not None and sorted(columns) != sorted(names):
        raise InvalidInput(f"The table is about {', '.join(names)}, not about {', '.join(columns)}.")
    groups = {name: _typed_groups(domain[name], [row[at] for row in rows]) for at, name in enumerate(names)}
    entry = {"columns": names, "groups": {name: each for name, each in groups.items() if each is not None}}
    (table,) = read_known({"tables": [entry]}, domain).marginals
    bins = table_bins(table, domain)
    shape = tuple(group.count for group in bins.values())
    if math.prod(shape) > LIMIT:
        raise TooLarge(f"A table with {math.prod(shape):,} combinations is above the limit of {LIMIT:,}.")
    counts = np.zeros(shape, dtype=np.int64)
    seen: set[tuple[int, ...]] = set()
    for number, row in enumerate(rows, start=2):
        cell = tuple(_place(domain, bins, name, typed) for name, typed in zip(names, row, strict=False))
        if cell in seen:
            raise InvalidInput(f"Line {number}: this combination is listed twice.")
        seen.add(cell)
        counts[cell] = _typed_count(row[-1], number)
    return Marginal(table.columns, table.bins, tuple(counts.ravel().tolist()))


def _rows(text: str) -> tuple[list[str], list[list[str]]]:
    lines = [[cell.strip() for cell in line] for line in csv.reader(io.StringIO(text)) if any(line)]
    if len(lines) < 2 or len(lines[0]) < 2 or lines[0][-1].lower() != _COUNT:
        raise InvalidInput(
            "A known table begins with the names of its columns; the last one is called count.",
            fixes=(_EXAMPLE,),
        )
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(lines[0]):
            raise InvalidInput(f"Line {number} has {len(line)} entries instead of {len(lines[0])}.")
    return lines[0], lines[1:]


def _typed_groups(attribute: Attribute, typed: list[str]) -> list[list[str]] | None:
    """The distinct ranges of a column; None where every row names one value."""
    distinct = dict.fromkeys(value for value in typed if not _is_missing(attribute, value))
    return [[value] for value in distinct] if attribute.ordered and any(".." in v for v in distinct) else None


def _place(domain: Domain, bins: Mapping[str, Bins], name: str, typed: str) -> int:
    attribute = domain[name]
    value = typed.partition("..")[0] if attribute.ordered else typed
    cell = attribute.value_count if _is_missing(attribute, typed) else typed_cell(attribute, value)
    return int(bins[name].assign(np.array([cell]))[0])


def _is_missing(attribute: Attribute, typed: str) -> bool:
    return attribute.has_missing_cell and typed.lower() in ("", "missing")


def _typed_count(typed: str, line: int) -> int:
    digits = typed.replace(",", "").replace("_", "")
    if not digits.isdecimal() or len(digits) > 18:
        raise InvalidInput(f"Line {line}: a count is a whole number, not negative.")
    return int(digits)


def read_graph(path: str | Path, attribute: Attribute) -> Explicit:
    """The policy graph whose edges a CSV file lists, two values of ``attribute`` a line.

    A first line that names columns instead of values is passed over; so are empty lines.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceMissing(f"There is no file '{file}' with the edges of a policy graph.")
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            rows = [
                (number, row)
                for number, row in enumerate(csv.reader(lines, skipinitialspace=True), start=1)
                if any(row)
            ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidGraph(f"'{file}' is not a CSV file in UTF-8.") from error
    if rows and not all(_is_value(cell, attribute) for cell in rows[0][1]):
        rows = rows[1:]
    edges = [_edge(row, number, file, attribute) for number, row in rows]
    return Explicit(attribute.value_count, edges)


def _edge(row: list[str], number: int, file: Path, attribute: Attribute) -> tuple[int, int]:
    if len(row) != 2:
        raise InvalidGraph(f"Line {number} of '{file}' has {len(row)} columns; an edge is a pair of values.")
    try:
        u, v = (_cell(text.strip(), attribute) for text in row)
    except BlowfishError as error:
        raise InvalidGraph(
            f"Line {number} of '{file}' names a value that the column does not have."
        ) from error
    if u == v:
        raise InvalidGraph(f"Line {number} of '{file}' joins a value with itself, which hides nothing.")
    return u, v


def _cell(text: str, attribute: Attribute) -> int:
    """The cell of a value written as text: as it stands, or as the number that it spells."""
    try:
        return attribute.cell(text)
    except InvalidValue:
        if not text.lstrip("-").isdigit():
            raise
        return attribute.cell(int(text))


def _is_value(text: str, attribute: Attribute) -> bool:
    try:
        _cell(text.strip(), attribute)
    except BlowfishError:
        return False
    return True
