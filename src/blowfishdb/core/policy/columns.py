"""What is hidden about one column: from words to a graph, and from a graph back to words.

Command line, API, pages and policy files all come through here, so that "within 1,000" means the same
everywhere.

Values and distances of a column as people type them and as they read them.

Whatever a command line, a form or a policy file holds is text. ``"40,000"``, ``"2024-12-31"``, ``"7 days"``
and ``"true"`` become cells and numbers of cells here, and cells become such text again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.bins import LIMIT, Bins, EqualBins
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.values import number, text
from blowfishdb.core.errors import InvalidBins, InvalidGraph, InvalidInput, InvalidValue, TooLarge
from blowfishdb.core.graphs import Explicit, Full, Partitioned, PolicyGraph, Threshold
from blowfishdb.core.policy.policy import own_graph

if TYPE_CHECKING:
    from blowfishdb.core.policy.policy import Policy


_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_SPACED = re.compile(r"[+-]?[1-9]\d{0,2}([ \u00a0\u202f'’]\d{3})+(\.\d+)?")
_POINTED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+,\d+")
_WITH_COMMA = re.compile(r"[+-]?(\d+,\d{1,2}|0,\d+)")
_CURRENCIES = str.maketrans("", "", "$€£¥")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) *(second|minute|hour|day|week)s?")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MISSING = "missing"
_GROUP_FROM = 10_000  # below, digits stay together: 1984 is more often a year than an amount


# --- from what was typed ------------------------------------------------------------------------


def typed_cell(attribute: Attribute, value: object) -> int:
    """The cell of a value of the column, perhaps typed as text; ``"missing"`` where that has a cell."""
    if not isinstance(value, str):
        return attribute.cell(value)
    try:
        return attribute.cell(value)
    except InvalidValue as refused:
        typed = value.strip()
        if attribute.has_missing_cell and typed.lower() == _MISSING:
            return attribute.value_count
        meant = _meant(attribute, typed)
        if meant is None:
            raise refused if isinstance(attribute, Category | Date) else _not_one(attribute, value) from None
        return attribute.cell(meant)


def _meant(attribute: Attribute, typed: str) -> object:
    """What a text stands for in a column of this kind; None if nothing."""
    if isinstance(attribute, Boolean):
        return _TRUTHS.get(typed.lower())
    if isinstance(attribute, Category):
        if typed in attribute.values:
            return typed
        return int(typed) if re.fullmatch(r"[+-]?\d{1,18}", typed) else None
    if isinstance(attribute, Date):
        return None
    try:
        return number(ungrouped(typed), "A value", InvalidValue)
    except InvalidInput:
        return None


def _not_one(attribute: Attribute, value: str) -> InvalidValue:
    kind = "True or False" if isinstance(attribute, Boolean) else "a number"
    return InvalidValue(f"{value!r} is not {kind}, and this column holds nothing else.")


def typed_distance(attribute: Attribute, distance: object) -> object:
    """A distance as the column's ``threshold`` takes it, from ``"10,000"``, ``"0.5"`` or ``"7 days"``."""
    if not isinstance(distance, str):
        return distance
    typed = distance.strip()
    duration = _DURATION.fullmatch(typed)
    if duration and isinstance(attribute, Date):
        try:
            seconds = Fraction(duration[1]) * _SECONDS[duration[2]]
            return timedelta(microseconds=int(seconds * 10**6))
        except (OverflowError, ValueError):
            raise InvalidValue("This distance is longer than any column of dates.") from None
    return ungrouped(typed)


def ungrouped(typed: str) -> str:
    """A number without its currency, and without what stands between its thousands: ``$ 10,000``, ``10 000``,
    ``10'000``, ``1.234,50``. ``1,5`` and ``0,125`` have none of those."""
    bare = typed.translate(_CURRENCIES).strip()
    if _GROUPED.fullmatch(bare):
        return bare.replace(",", "")
    if _SPACED.fullmatch(bare):
        return re.sub(r"[ \u00a0\u202f'’]", "", bare)
    if _POINTED.fullmatch(bare):
        return bare.replace(".", "").replace(",", ".")
    return typed if bare == typed.strip() else bare


def with_point(typed: str) -> str:
    """A number with a decimal comma, as people type, with a point: ``1,5``, ``20,00``, ``0,125``."""
    return typed.replace(",", ".") if _WITH_COMMA.fullmatch(typed.strip()) else typed


# --- and back -----------------------------------------------------------------------------------


def written_cell(attribute: Attribute, cell: int) -> str:
    """A text that ``typed_cell`` reads as this cell."""
    if attribute.has_missing_cell and cell == attribute.value_count:
        return _MISSING
    lowest = attribute.lower(cell)
    return str(lowest) if isinstance(attribute, Category | Boolean) else text(lowest)


def shown_cell(attribute: Attribute, cell: int) -> str:
    """A cell as a person reads it: ``"40,000"``, ``"30–39"``, ``"1984"``."""
    missing = attribute.has_missing_cell and cell == attribute.value_count
    if missing or not isinstance(attribute, Integer | Real):
        return attribute.label(cell)
    ends = [Fraction(str(end)) for end in (attribute.lower(cell), attribute.upper(cell))]
    if all(abs(end) < _GROUP_FROM for end in ends):
        return attribute.label(cell)
    return "–".join(dict.fromkeys(map(grouped, ends)))


def grouped(amount: int | Fraction) -> str:
    """A number with its thousands set apart: 10,000 and 1,234.5."""
    whole, point, rest = text(amount).partition(".")
    return f"{int(whole):,}{point}{rest}" if "/" not in whole and whole != "-0" else text(amount)


def data_distance(attribute: Attribute, cells: int) -> Fraction:
    """How far apart values can be and still be at most ``cells`` cells apart, in data units."""
    return cells / attribute.in_cells(1)


def shown_distance(attribute: Attribute, cells: int) -> str:
    """The same as a person reads it: ``"10,000"``, ``"7 days"``, ``"2 places"``."""
    unit = attribute.unit if isinstance(attribute, Date) else "place"
    if isinstance(attribute, Integer | Real):
        return grouped(data_distance(attribute, cells))
    return f"{cells:,} {unit}{'s' if cells != 1 else ''}"


def written_distance(attribute: Attribute, cells: int) -> str:
    """A text that ``typed_distance`` and ``threshold`` read as this number of cells."""
    if isinstance(attribute, Date):
        return shown_distance(attribute, cells).replace(",", "")
    return text(data_distance(attribute, cells))


Groups = Mapping[str, Iterable[object]] | Sequence[Iterable[object]]
Pairs = Iterable[tuple[object, object]]

MOST_LISTED = 10_000
"""How many groups or pairs are listed for an editor."""


class Hides(Enum):
    """What a column's graph joins, by the word that ``column_graph`` has for it."""

    EVERYTHING = "everything"
    WITHIN = "hide_within"
    WIDTH = "groups_of"
    GROUPS = "groups"
    PAIRS = "between"
    NOTHING = "nothing"


# --- from words to a graph ----------------------------------------------------------------------


def column_graph(
    attribute: Attribute,
    *,
    hide_within: object = None,
    groups: Groups | None = None,
    groups_of: object = None,
    between: Pairs | None = None,
    everything: bool = False,
    nothing: bool = False,
) -> PolicyGraph:
    """The graph over the values of a column that exactly one of these describes.

    ``hide_within`` a distance in data units; inside named or listed ``groups`` of values (``"30..39"`` is a
    range); inside ``groups_of`` a width; ``between`` listed pairs; or ``everything``; or ``nothing``. A cell
    for missing values is not part of it: ``Policy.by_column`` joins that to every value, or sets it apart.
    """
    rules = (hide_within, groups, groups_of, between, everything or None, nothing or None)
    if sum(word is not None for word in rules) != 1:
        raise InvalidGraph(
            "Say exactly one thing about a column.",
            fixes=("hide within a distance", "hide within groups", "hide everything"),
        )
    size = attribute.value_count
    if hide_within is not None:
        return Threshold(size, attribute.threshold(typed_distance(attribute, hide_within)))
    if groups is not None:
        return Partitioned(_labels(attribute, groups))
    if groups_of is not None:
        bins = attribute.bins(width=typed_distance(attribute, groups_of))
        return Partitioned(Bins.width(size, int(bins.last(0)) + 1))
    if between is not None:
        return Explicit(size, [_edge(attribute, pair) for pair in between])
    return Full(size) if everything else Explicit(size, ())


def _labels(attribute: Attribute, groups: Groups) -> IntArray:
    """The group of every value; each is in exactly one."""
    if attribute.value_count > LIMIT:
        raise TooLarge(f"Groups of values are for at most {LIMIT:,} cells.", fixes=("groups of equal width",))
    listed = groups.items() if isinstance(groups, Mapping) else enumerate(groups, start=1)
    labels = np.full(attribute.value_count, -1, dtype=np.int64)
    count = 0
    for count, (name, members) in enumerate(listed, start=1):
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise InvalidBins(f"The group {name!r} must be a list of values.")
        cells = [_cells(attribute, member, name) for member in members]
        if not cells:
            raise InvalidBins(f"The group {name!r} is empty; leave it out.")
        for first, stop in cells:
            if (labels[first:stop] >= 0).any():
                twice = written_cell(attribute, first + int(np.argmax(labels[first:stop] >= 0)))
                raise InvalidBins(f"{twice} is in two groups, or twice in one.")
            labels[first:stop] = count - 1
    if (labels < 0).any():
        alone = ", ".join(written_cell(attribute, int(cell)) for cell in np.flatnonzero(labels < 0)[:5])
        raise InvalidBins(
            f"Groups must cover every value; without a group: {alone}.",
            fixes=("add them to a group", "give each of them a group of its own"),
        )
    return labels


def _cells(attribute: Attribute, member: object, group: object) -> tuple[int, int]:
    """The cells ``first … stop-1`` that a value or a range names."""
    try:
        if isinstance(member, str) and ".." in member and not isinstance(attribute, Category):
            low, _, high = member.partition("..")
            first, last = typed_cell(attribute, low), typed_cell(attribute, high)
        else:
            first = last = typed_cell(attribute, member)
    except InvalidInput as error:
        raise InvalidBins(f"In the group {group!r}: {error.message}", fixes=error.fixes) from None
    if first > last:
        raise InvalidBins(f"In the group {group!r}: the range {member} is the wrong way round.")
    if last >= attribute.value_count:
        raise InvalidBins(f"In the group {group!r}: missing values are not grouped with others.")
    return first, last + 1


def _edge(attribute: Attribute, pair: object) -> tuple[int, int]:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise InvalidGraph("A pair to hide is two values of the column.", fixes=("[low, high]",))
    u, v = (typed_cell(attribute, value) for value in pair)
    if attribute.value_count in (u, v):
        raise InvalidGraph("Whether missing values are hidden is declared; leave them out of the pairs.")
    if u == v:
        raise InvalidGraph(f"{pair[0]} and {pair[1]} are the same value here; there is nothing to hide.")
    return u, v


# --- and back -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class ColumnRule:
    """What a policy hides of one column, in texts.

    ``said``: the distance, the width, the groups or the pairs; None where there are too many to list, and
    True where nothing is to be added. ``entries`` counts the groups or pairs. ``missing``: a cell for missing
    values is joined to every value.
    """

    column: str
    hides: Hides
    said: Any = True
    entries: int | None = None
    missing: bool = False

    def graph(self, attribute: Attribute) -> PolicyGraph:
        """The graph that the rule describes: ``current`` undone."""
        if self.said is None:
            raise InvalidGraph(f"What is hidden about '{self.column}' is too much to list.")
        return column_graph(attribute, **{self.hides.value: self.said})


def current(policy: Policy, column: str, *, most: int = MOST_LISTED) -> ColumnRule:
    """What ``policy`` says about a column, for an editor to begin with; ``most`` entries are listed."""
    attribute = policy.domain[column]
    graph, missing = values_graph(policy, column)
    if graph.complete:
        return ColumnRule(column, Hides.EVERYTHING, missing=missing)
    if isinstance(graph, Threshold) and attribute.ordered:
        return ColumnRule(column, Hides.WITHIN, written_distance(attribute, graph.theta), missing=missing)
    parts = graph.cliques
    if parts is not None:
        if isinstance(parts, EqualBins) and attribute.ordered and parts.size == attribute.value_count:
            width = written_distance(attribute, parts.cells)
            return ColumnRule(column, Hides.WIDTH, width, parts.count, missing)
        few = parts.count <= most and _written(attribute, parts) <= most
        groups = [group_members(attribute, cells) for cells in parts] if few else None
        return ColumnRule(column, Hides.GROUPS, groups, parts.count, missing)
    if graph.edge_count == 0:
        return ColumnRule(column, Hides.NOTHING, missing=missing)
    edges = graph.edges().tolist() if graph.edge_count <= most else None
    pairs = edges and [[written_cell(attribute, cell) for cell in edge] for edge in edges]
    return ColumnRule(column, Hides.PAIRS, pairs, graph.edge_count, missing)


def values_graph(policy: Policy, column: str) -> tuple[PolicyGraph, bool]:
    """The graph of a column without ⊥ and without the cell of missing values, and whether it was joined."""
    graph = own_graph(policy, column).counted
    split = graph.without_last() if policy.domain[column].has_missing_cell else None
    return split or (graph, False)


def _written(attribute: Attribute, parts: Bins) -> int:
    """About how many values and ranges the groups are when they are written out."""
    if isinstance(attribute, Category):
        return parts.size
    return parts.count if parts.contiguous else 1 + int(np.count_nonzero(np.diff(parts.assignment())))


def group_members(attribute: Attribute, cells: IntArray) -> list[str]:
    """The values of a group; three or more neighbours of a numeric column as a range."""
    breaks = np.flatnonzero(np.diff(cells) != 1) + 1
    written: list[str] = []
    for run in np.split(cells, breaks):
        ends = [written_cell(attribute, int(cell)) for cell in (run[0], run[-1])]
        if run.size < 3 or isinstance(attribute, Category):
            written += [written_cell(attribute, int(cell)) for cell in run]
        else:
            written.append("..".join(ends))
    return written
