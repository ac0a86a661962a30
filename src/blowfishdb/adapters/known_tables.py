"""A published table of counts as a known table: a CSV file with some columns and a last one called count."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

import numpy as np

from blowfishdb.adapters.policy_known import read_known
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.bins import LIMIT, Bins
from blowfishdb.core.constraints.declared import Marginal, table_bins
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidInput, TooLarge
from blowfishdb.core.typed_values import typed_cell

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
    groups = {name: _groups(domain[name], [row[at] for row in rows]) for at, name in enumerate(names)}
    entry = {"columns": names, "groups": {name: each for name, each in groups.items() if each is not None}}
    (table,) = read_known({"tables": [entry]}, domain).marginals
    bins = table_bins(table, domain)
    shape = tuple(group.count for group in bins.values())
    if math.prod(shape) > LIMIT:
        raise TooLarge(f"A table with {math.prod(shape):,} combinations is above the limit of {LIMIT:,}.")
    counts = np.zeros(shape, dtype=np.int64)
    seen: set[tuple[int, ...]] = set()
    for number, row in enumerate(rows, start=2):
        place = tuple(_place(domain, bins, name, typed) for name, typed in zip(names, row, strict=False))
        if place in seen:
            raise InvalidInput(f"Line {number}: this combination is listed twice.")
        seen.add(place)
        counts[place] = _count(row[-1], number)
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


def _groups(attribute: Attribute, typed: list[str]) -> list[list[str]] | None:
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


def _count(typed: str, line: int) -> int:
    digits = typed.replace(",", "").replace("_", "")
    if not digits.isdecimal() or len(digits) > 18:
        raise InvalidInput(f"Line {line}: a count is a whole number, not negative.")
    return int(digits)
