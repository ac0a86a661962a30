"""Predicate: a condition on rows as a typed tree, never as SQL text, and how conditions combine.

A predicate can be evaluated on one row, on cells of a domain, and turned into the coarsest cuts of each
column that still tell it apart. NULL follows SQL: a condition on a missing value is neither true nor false,
and a row counts only if the whole predicate is true, so ``~(age >= 30)`` is ``age < 30``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import NoReturn, final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, integers
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidPredicate, InvalidValue, UnknownColumn

Truth = tuple[BoolArray, BoolArray]
"""Three-valued logic, elementwise: (surely true, surely false); neither is SQL's unknown."""

Spans = list[tuple[int, int]]
"""Increasing half-open intervals with gaps between them."""

DEEPEST = 64
"""Levels of a condition: those that people write have a few, and this many bound every walk through one."""


class Predicate(ABC):
    """A condition on rows; combine with ``&``, ``|`` and ``~``."""

    __slots__ = ()

    @abstractmethod
    def atoms(self) -> Iterator[Atom]:
        """The conditions on single columns that it is made of."""

    @abstractmethod
    def truth(self, of_atom: Callable[[Atom], Truth]) -> Truth:
        """Its truth, given the truth of its atoms."""

    def columns(self) -> frozenset[str]:
        """The columns it mentions."""
        return frozenset(atom.column for atom in self.atoms())

    def check(self, domain: Domain) -> None:
        """Every atom fits its column, and none cuts through a cell."""
        for atom in self.atoms():
            atom.cells(domain[atom.column])

    def matches(self, row: Mapping[str, object], domain: Domain | None = None) -> bool:
        """Whether one row of raw values satisfies it.

        Only a domain knows the order of an ordered category; without one, ordering texts is refused.
        """

        def of_atom(atom: Atom) -> Truth:
            if atom.column not in row:
                raise UnknownColumn(f"The row has no column {atom.column!r}.")
            attribute = None if domain is None else domain[atom.column]
            return atom.on_value(row[atom.column], attribute)

        return bool(self.truth(of_atom)[0])

    def on_cells(self, domain: Domain, cells: Mapping[str, ArrayLike]) -> BoolArray:
        """Where it holds, for arrays of cells that broadcast together.

        A row with a cell of -1 in any column was dropped and never matches.
        """
        self.check(domain)
        arrays = {name: _cell_array(domain[name], name, array) for name, array in cells.items()}

        def of_atom(atom: Atom) -> Truth:
            if atom.column not in arrays:
                raise UnknownColumn(f"There are no cells for the column {atom.column!r}.")
            return atom.on_cells_of(domain[atom.column], arrays[atom.column])

        matched = self.truth(of_atom)[0]
        for array in arrays.values():
            matched = matched & (array >= 0)
        return np.asarray(matched, dtype=np.bool_)

    def cuts(self, domain: Domain) -> dict[str, Bins]:
        """For each mentioned column, the coarsest contiguous bins on which every atom is constant.

        Only end points are computed, so columns with 10⁹ cells cost nothing.
        """
        starts: dict[str, set[int]] = {}
        for atom in self.atoms():
            ends = {end for span in atom.cells(domain[atom.column]) for end in span}
            starts.setdefault(atom.column, {0}).update(ends)
        return {column: _bins(domain[column], edges) for column, edges in starts.items()}

    def __and__(self, other: Predicate) -> And:
        return And((*_parts(self, And), *_parts(other, And)))

    def __or__(self, other: Predicate) -> Or:
        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> Not:
        return Not(self)

    def __rand__(self, other: object) -> NoReturn:
        raise InvalidPredicate(f"Only conditions can be combined, and {other!r} is not one.")

    __ror__ = __rand__

    def __bool__(self) -> NoReturn:
        raise InvalidPredicate(
            "A condition has no truth value of its own: and, or, not and chained comparisons cannot be used.",
            fixes=("use & instead of and, | instead of or, ~ instead of not", ".between(lo, hi)"),
        )


class Atom(Predicate):
    """A condition on one column."""

    __slots__ = ()

    column: str

    @abstractmethod
    def cells(self, attribute: Attribute) -> Spans:
        """The cells, among those of values, on which it is true; InvalidPredicate if it does not fit."""

    @abstractmethod
    def on_value(self, value: object, attribute: Attribute | None) -> Truth:
        """Its truth for one raw value."""

    @abstractmethod
    def on_cells_of(self, attribute: Attribute, cells: IntArray) -> Truth:
        """Its truth for each cell of the column."""

    def atoms(self) -> Iterator[Atom]:
        yield self

    def truth(self, of_atom: Callable[[Atom], Truth]) -> Truth:
        return of_atom(self)


@dataclass(frozen=True, slots=True)
class _Parts(Predicate):
    """Several predicates that become one."""

    parts: tuple[Predicate, ...]
    height: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "height", _checked_height(self.parts))

    def atoms(self) -> Iterator[Atom]:
        return (atom for part in self.parts for atom in part.atoms())


@final
@dataclass(frozen=True, slots=True)
class And(_Parts):
    """Every part holds."""

    def truth(self, of_atom: Callable[[Atom], Truth]) -> Truth:
        true, false = zip(*(part.truth(of_atom) for part in self.parts), strict=True)
        return reduce(and_, true), reduce(or_, false)

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@final
@dataclass(frozen=True, slots=True)
class Or(_Parts):
    """At least one part holds."""

    def truth(self, of_atom: Callable[[Atom], Truth]) -> Truth:
        true, false = zip(*(part.truth(of_atom) for part in self.parts), strict=True)
        return reduce(or_, true), reduce(and_, false)

    def __str__(self) -> str:
        return " or ".join(f"({part})" if isinstance(part, And) else str(part) for part in self.parts)


@final
@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """The part is false; unknown stays unknown."""

    part: Predicate
    height: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "height", _checked_height((self.part,)))

    def atoms(self) -> Iterator[Atom]:
        return self.part.atoms()

    def truth(self, of_atom: Callable[[Atom], Truth]) -> Truth:
        true, false = self.part.truth(of_atom)
        return false, true

    def __str__(self) -> str:
        return f"not ({self.part})"


@final
@dataclass(frozen=True, slots=True)
class Everything(Predicate):
    """Every row that was not dropped."""

    def atoms(self) -> Iterator[Atom]:
        return iter(())

    def truth(self, of_atom: Callable[[Atom], Truth]) -> Truth:
        return np.asarray(True), np.asarray(False)

    def __str__(self) -> str:
        return "everything"


def _parts(predicate: object, kind: type[And] | type[Or]) -> tuple[Predicate, ...]:
    """The parts of a predicate of the same kind, so that ``a & b & c`` is one node."""
    if isinstance(predicate, kind):
        return predicate.parts
    _check_parts((predicate,))
    return (predicate,)  # type: ignore[return-value]


def _checked_height(parts: tuple[Predicate, ...]) -> int:
    """How many levels a combination has; functions that walk a condition call themselves as often."""
    _check_parts(parts)
    height = 1 + max(part.height if isinstance(part, And | Or | Not) else 0 for part in parts)
    if height > DEEPEST:
        raise InvalidPredicate("This condition is nested too deeply.", fixes=("a flatter one",))
    return height


def _check_parts(parts: object) -> None:
    if not isinstance(parts, tuple) or not parts:
        raise InvalidPredicate("A combination of conditions needs at least one of them.")
    for part in parts:
        if not isinstance(part, Predicate):
            raise InvalidPredicate(
                f"Only conditions can be combined, and {part!r} is not one.",
                fixes=("put each comparison in parentheses: (col('age') >= 30) & (col('sex') == 'F')",),
            )


def _cell_array(attribute: Attribute, name: str, cells: ArrayLike) -> IntArray:
    array = integers(np.asarray(cells), f"The cells of {name!r}", InvalidValue)
    if array.size and not -1 <= array.min() <= array.max() < attribute.size:
        raise InvalidValue(f"The cells of {name!r} must lie between -1 (dropped) and {attribute.size - 1}.")
    return array


def _bins(attribute: Attribute, starts: set[int]) -> Bins:
    missing = {attribute.value_count} if attribute.has_missing_cell else set()
    inside = {start for start in starts if start < attribute.value_count}
    return Bins.edges(attribute.size, np.array(sorted(inside | missing), dtype=np.int64))
