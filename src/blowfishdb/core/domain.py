"""Domain: the declared columns of a table, in order.

Everything private is counted over the cells of a domain, and its bounds are promises by the curator: they
are declared, never read from the data. Nothing is written out, so 10¹² cells and far more are fine.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self, final

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.dates import Date
from blowfishdb.core.errors import EmptyDomain, InvalidAttribute, SizeMismatch, UnknownColumn

__all__ = ["Attribute", "Boolean", "Category", "Date", "Domain", "Integer", "Real"]


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Domain:
    """Named attributes: ``Domain(age=Integer(0, 120), sex=Category(["F", "M"]))``."""

    columns: tuple[tuple[str, Attribute], ...]

    def __init__(self, /, **attributes: Attribute) -> None:
        self._declare(attributes)

    @classmethod
    def of(cls, attributes: Mapping[str, Attribute]) -> Self:
        """From a mapping, for column names that are not Python words (``"hours-per-week"``)."""
        if not isinstance(attributes, Mapping):
            raise InvalidAttribute("A domain is made from a mapping of column names to attributes.")
        domain = cls.__new__(cls)
        domain._declare(attributes)
        return domain

    def _declare(self, attributes: Mapping[str, Attribute]) -> None:
        if not attributes:
            raise EmptyDomain("A domain needs at least one column.", fixes=("Domain(age=Integer(0, 120))",))
        for name, attribute in attributes.items():
            if not isinstance(name, str) or not name.strip():
                raise InvalidAttribute(f"A column name must be a text that is not empty, not {name!r}.")
            if not isinstance(attribute, Attribute):
                raise InvalidAttribute(
                    f"The column {name!r} must be an Integer, Real, Category, Date or Boolean, "
                    f"not {type(attribute).__name__}.",
                    fixes=(f"{name}=Integer(0, 120)",),
                )
        object.__setattr__(self, "columns", tuple(attributes.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the declared order."""
        return tuple(name for name, _ in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(attribute.size for _, attribute in self.columns)

    @property
    def size(self) -> int:
        """How many combinations of cells there are, as a Python integer of any length."""
        return math.prod(self.shape)

    def __getitem__(self, name: str) -> Attribute:
        for known, attribute in self.columns:
            if known == name:
                return attribute
        raise _unknown(name, self.names, "the domain declares")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Domain({', '.join(f'{name}={attribute!r}' for name, attribute in self.columns)})"

    def describe(self) -> str:
        """One line for each column."""
        return "\n".join(f"{name}: {attribute.describe()}" for name, attribute in self.columns)

    def project(self, *names: str) -> Domain:
        """The domain of some columns, in the given order."""
        if len(set(names)) < len(names):
            raise InvalidAttribute("A column can be chosen only once.")
        return Domain.of({name: self[name] for name in names})

    def encode(self, columns: Mapping[str, Iterable[object]]) -> dict[str, IntArray]:
        """The cells of every declared column of a table; other columns of the table are ignored."""
        for name in self.names:
            if name not in columns:
                raise _unknown(name, tuple(columns), "the table has")
        cells = {name: attribute.encode(columns[name]) for name, attribute in self.columns}
        if len({column.size for column in cells.values()}) > 1:
            lengths = ", ".join(f"{name} has {column.size:,}" for name, column in cells.items())
            raise SizeMismatch(f"All columns must have the same number of rows: {lengths}.")
        return cells


def _unknown(name: object, known: tuple[str, ...], where: str) -> UnknownColumn:
    close = difflib.get_close_matches(str(name), map(str, known), n=1)
    return UnknownColumn(
        f"There is no column {name!r}; {where}: {', '.join(str(column) for column in known)}.",
        fixes=(repr(close[0]),) if close else (),
    )
