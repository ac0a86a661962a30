"""Arrangements: which of the released numbers are shown, of which groups, and in which order.

An arrangement is a function of what was released, so it costs nothing and is no part of a release: the same
question in another order is the same question. Groups that are left out were measured like the others.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray, whole
from blowfishdb.core.domain.bins import common_bins
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.domain.predicates import Atom, Predicate, Truth
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.questions.numbers import Number, ReleasedTable, Told, number_from_plain, replaced

_COMPARES: Final[dict[str, Callable[[FloatArray, FloatArray], BoolArray]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "<>": operator.ne,
}
_DEEPEST: Final = 16


class Having(ABC):
    """A condition on the released numbers of a group."""

    __slots__ = ()

    @abstractmethod
    def truth(self, table: ReleasedTable) -> tuple[BoolArray, BoolArray]:
        """Where it is true and where it is false, by the released values; elsewhere there is none."""

    @abstractmethod
    def to_plain(self) -> Any:
        """JSON-ready data."""

    @abstractmethod
    def words(self, names: tuple[str, ...]) -> str:
        """The condition in words."""

    @property
    @abstractmethod
    def numbers(self) -> tuple[Number, ...]:
        """What is compared."""

    @abstractmethod
    def replaced(self, numbers: Sequence[Number]) -> Having:
        """With other numbers in the places of those that are released."""


@final
@dataclass(frozen=True, slots=True)
class Compared(Having):
    """One number beside another."""

    sign: str
    left: Number
    right: Number

    def __post_init__(self) -> None:
        if self.sign not in _COMPARES:
            raise InvalidInput(f"Numbers are not compared by {self.sign!r}.", fixes=tuple(_COMPARES))

    def truth(self, table: ReleasedTable) -> tuple[BoolArray, BoolArray]:
        left, right = self.left.of(table), self.right.of(table)
        known = ~(np.isnan(left) | np.isnan(right))
        holds = _COMPARES[self.sign](left, right)
        return known & holds, known & ~holds

    def to_plain(self) -> Any:
        return {"sign": self.sign, "left": self.left.to_plain(), "right": self.right.to_plain()}

    def words(self, names: tuple[str, ...]) -> str:
        return f"{self.left.words(names)} {self.sign} {self.right.words(names)}"

    @property
    def numbers(self) -> tuple[Number, ...]:
        return self.left, self.right

    def replaced(self, numbers: Sequence[Number]) -> Having:
        return Compared(self.sign, replaced(self.left, numbers), replaced(self.right, numbers))


@final
@dataclass(frozen=True, slots=True)
class Joined(Having):
    """Several conditions: ``and``, ``or``; ``not`` of one."""

    word: str
    parts: tuple[Having, ...]

    def __post_init__(self) -> None:
        if self.word not in ("and", "or", "not") or not self.parts:
            raise InvalidInput("Conditions are joined by and, or, not.")
        if self.word == "not" and len(self.parts) != 1:
            raise InvalidInput("One condition is turned around by not.")

    def truth(self, table: ReleasedTable) -> tuple[BoolArray, BoolArray]:
        true, false = zip(*(part.truth(table) for part in self.parts), strict=True)
        if self.word == "not":
            return false[0], true[0]
        every, any_ = np.logical_and.reduce, np.logical_or.reduce
        return (every(true), any_(false)) if self.word == "and" else (any_(true), every(false))

    def to_plain(self) -> Any:
        return {self.word: [part.to_plain() for part in self.parts]}

    def words(self, names: tuple[str, ...]) -> str:
        parts = [f"({p.words(names)})" if isinstance(p, Joined) else p.words(names) for p in self.parts]
        return f"not {parts[0]}" if self.word == "not" else f" {self.word} ".join(parts)

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(number for part in self.parts for number in part.numbers)

    def replaced(self, numbers: Sequence[Number]) -> Having:
        return Joined(self.word, tuple(part.replaced(numbers) for part in self.parts))


def having_from_plain(stored: object, depth: int = 0) -> Having:
    """A condition from its plain form."""
    if depth > _DEEPEST:
        raise InvalidInput("This condition is nested too deeply.")
    match stored:
        case {"sign": str() as sign, "left": left, "right": right, **rest} if not rest:
            return Compared(sign, number_from_plain(left), number_from_plain(right))
        case Mapping() if len(stored) == 1:
            ((word, parts),) = stored.items()
            if isinstance(parts, list):
                return Joined(str(word), tuple(having_from_plain(part, depth + 1) for part in parts))
    raise InvalidInput(
        "A condition on groups has sign, left and right; or and, or, not.",
        fixes=('{"sign": ">", "left": {"told": 0}, "right": 100}',),
    )


@final
@dataclass(frozen=True, slots=True)
class OrderKey:
    """What groups are ordered by: a column, in its declared order or by its texts, or a number."""

    by: str | Number
    descending: bool = False
    names: tuple[str, ...] = ()
    """What the groups of a column are called here, if they come in the order of these names."""
    missing_first: bool = False
    """Whether groups without a value, and numbers of which nothing can be said, come before all others."""

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data, without what was not said."""
        what = {"column": self.by} if isinstance(self.by, str) else {"number": self.by.to_plain()}
        said: dict[str, Any] = {"names": list(self.names)} if self.names else {}
        said |= {"descending": True} if self.descending else {}
        return what | said | ({"missing_first": True} if self.missing_first else {})

    @classmethod
    def from_plain(cls, stored: object) -> OrderKey:
        """From its plain form."""
        said = dict(stored) if isinstance(stored, Mapping) else {}
        descending, number, column = (said.pop(name, None) for name in ("descending", "number", "column"))
        names, missing_first = said.pop("names", ()), said.pop("missing_first", False)
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise InvalidInput("The names of groups are a list of texts.")
        unclear = not isinstance(missing_first, bool) or not isinstance(column, str | None)
        if said or unclear or (column is None) == (number is None):
            raise InvalidInput(
                "Groups are ordered by a column or a number, perhaps descending.",
                fixes=('{"column": "region"}', '{"number": {"told": 0}, "descending": true}'),
            )
        by = number_from_plain(number) if column is None else column
        return cls(by, bool(descending), tuple(names), missing_first)

    def arranged(self, groups: IntArray, places: FloatArray) -> IntArray:
        """The groups by their ``places``, equal ones as they were; what has no place is last, or first."""
        by = -places if self.descending else places
        unknown = np.isnan(by)
        return groups[np.lexsort((by, ~unknown if self.missing_first else unknown))]


@final
@dataclass(frozen=True)
class Arrangement:
    """How an answer is shown: numbers by their names, groups for which something holds, order, how many."""

    show: tuple[tuple[str, Number], ...] = ()
    """The released numbers as they are, if none is said."""
    having: Having | None = None
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    possible: bool = False
    """Whether groups of which the condition leaves no row, by the declaration, are left out, as in SQL."""
    across: tuple[str, ...] = ()
    """The columns whose groups stand beside each other: numbers are those of the first group, of the second,
    and so on."""

    def __post_init__(self) -> None:
        named = all(isinstance(name, str) for name in self.across)
        if not named or len(set(self.across)) < len(self.across):
            raise InvalidInput("Groups stand beside each other by different columns.", fixes=('["sex"]',))
        names = [name for name, _ in self.show]
        if len(set(names)) < len(names) or not all(names):
            raise InvalidInput("Every number that is shown has a name of its own.", fixes=("AS share",))
        for number in (self.limit, self.offset):
            if number is not None and whole(number, "How many groups are shown", InvalidInput) < 0:
                raise InvalidInput("No fewer than 0 groups are shown, and no fewer left out.")

    def __bool__(self) -> bool:
        return self != Arrangement()

    @property
    def chooses(self) -> bool:
        """Whether groups are left out."""
        return self.having is not None or self.limit is not None or self.offset > 0 or self.possible

    @property
    def by_numbers(self) -> bool:
        """Whether released numbers decide which groups are left out."""
        ordered = any(not isinstance(key.by, str) for key in self.order)
        return self.having is not None or (ordered and (self.limit is not None or self.offset > 0))

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Every number that it speaks of."""
        ordered = (key.by for key in self.order if not isinstance(key.by, str))
        compared = () if self.having is None else self.having.numbers
        return (*(number for _, number in self.show), *compared, *ordered)

    def check(self, columns: Sequence[str], numbers: int) -> None:
        """Whatever speaks of other columns, or of numbers that are not released, is refused."""
        for name in self.across:
            if name not in columns:
                raise InvalidInput(f"Groups are not by '{name}', so they are not beside each other by it.")
        for key in self.order:
            if isinstance(key.by, str) and (key.by not in columns or key.by in self.across):
                raise InvalidInput(f"Groups are not by '{key.by}', so they are not ordered by it.")
        for number in self.numbers:
            if any(index >= numbers for index in number.told):
                raise InvalidInput(f"So many numbers are not released; there are {numbers}.")

    def of_groups(self, numbers: Sequence[Number], across: tuple[str, ...]) -> Arrangement:
        """The same, with its numbers told by those of groups beside each other."""
        show = tuple((name, replaced(number, numbers)) for name, number in self.show)
        order = tuple(
            key if isinstance(key.by, str) else replace(key, by=replaced(key.by, numbers))
            for key in self.order
        )
        having = None if self.having is None else self.having.replaced(numbers)
        return replace(self, show=show, order=order, having=having, across=across)

    def showing(self, count: int) -> Arrangement:
        """Without saying that the ``count`` released numbers are shown as they are."""
        as_they_are = tuple(number for _, number in self.show) == tuple(map(Told, range(count)))
        return replace(self, show=()) if as_they_are else self

    def rows(self, table: ReleasedTable, ranks: Mapping[str, FloatArray], possible: BoolArray) -> IntArray:
        """Which groups are shown, in order.

        ``ranks`` says where each column puts every group, ``possible`` which groups can have rows.
        """
        kept = np.flatnonzero(possible) if self.possible else np.arange(len(table.values))
        if self.having is not None:
            kept = kept[self.having.truth(table)[0][kept]]
        for key in reversed(self.order):
            places = ranks[key.by] if isinstance(key.by, str) else key.by.of(table)
            kept = key.arranged(kept, places[kept])
        stop = None if self.limit is None else self.offset + self.limit
        return kept[self.offset : stop]

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data, without what was not said."""
        fields: dict[str, Any] = {}
        if self.show:
            fields["show"] = [{"name": name, "number": number.to_plain()} for name, number in self.show]
        if self.having is not None:
            fields["having"] = self.having.to_plain()
        if self.order:
            fields["order"] = [key.to_plain() for key in self.order]
        if self.limit is not None:
            fields["limit"] = self.limit
        if self.offset:
            fields["offset"] = self.offset
        if self.possible:
            fields["possible"] = True
        if self.across:
            fields["across"] = list(self.across)
        return fields

    @classmethod
    def from_plain(cls, stored: object) -> Arrangement:
        """From its plain form."""
        if not isinstance(stored, Mapping) or set(stored) - {*PARTS}:
            raise InvalidInput(f"An arrangement has {', '.join(PARTS[:-1])} and {PARTS[-1]}.")
        if not isinstance(stored.get("possible", False), bool):
            raise InvalidInput("Groups that can have no rows are left out, or not: true or false.")
        having, offset = stored.get("having"), stored.get("offset", 0)
        return cls(
            tuple(map(_shown, _list(stored.get("show", [])))),
            None if having is None else having_from_plain(having),
            tuple(map(OrderKey.from_plain, _list(stored.get("order", [])))),
            stored.get("limit"),
            0 if offset is None else offset,
            stored.get("possible", False),
            tuple(_list(stored.get("across", []))),
        )


PARTS: Final = ("show", "having", "order", "limit", "offset", "possible", "across")
"""What an arrangement says in plain data."""


def _list(stored: object) -> list[Any]:
    if not isinstance(stored, list | tuple):
        raise InvalidInput("What is shown, and in which order, are lists.")
    return list(stored)


def _shown(stored: object) -> tuple[str, Number]:
    match stored:
        case {"name": str() as name, "number": number, **rest} if not rest:
            return name, number_from_plain(number)
    raise InvalidInput("A number that is shown has a name.", fixes=('{"name": "n", "number": {"told": 0}}',))


def possible_along(axis: Axis, where: Predicate, domain: Domain) -> BoolArray:
    """In which bins of a column a condition may hold, whatever the other columns are."""
    attribute = axis.attribute
    fine = common_bins(axis.bins, where.cuts(domain).get(axis.column), attribute.size)
    cells = fine.first(np.arange(fine.count))

    def of_atom(atom: Atom) -> Truth:
        if atom.column == axis.column:
            return atom.on_cells_of(attribute, cells)
        return np.ones(1, dtype=np.bool_), np.ones(1, dtype=np.bool_)

    told = np.zeros(axis.bins.count, dtype=np.bool_)
    told[axis.bins.assign(cells[np.broadcast_to(where.truth(of_atom)[0], cells.shape)])] = True
    return told


def places_along(axis: Axis, names: Sequence[str] = ()) -> FloatArray:
    """Where a column puts each of its bins: as declared, or by their texts where it has no order.

    Named groups are in the order of their ``names``. Missing values have no place, unless they are named too.
    """
    if names and len(names) < axis.value_bins:
        raise InvalidInput(f"{axis.column} has {axis.value_bins} groups, and {len(names)} names are given.")
    placed = axis.bins.count if len(names) >= axis.bins.count else axis.value_bins
    texts = names or axis.labels()
    places = np.full(axis.bins.count, np.nan)
    by_text = bool(names) or not axis.attribute.ordered
    order = sorted(range(placed), key=texts.__getitem__) if by_text else range(placed)
    places[list(order)] = np.arange(placed)
    return places
