"""Plain data: the one way in which a value that travels becomes JSON and comes back.

A ``Message`` is a frozen dataclass. Its plain form has a key for every field, by the rules below, and for
every property named in ``_said``: sentences and sums that a reader of JSON would otherwise have to work out.
Those are not read back. A key that an older version did not write takes the default of its field.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput

T = TypeVar("T")
Read = Callable[[Any], Any]
_FORMS: dict[type[Any], tuple[Callable[[Any], Any], Read]] = {}


def write_as(kind: type[Any], write: Callable[[Any], Any], read: Read) -> None:
    """Values of a class that is no message, such as a policy, have a plain form of their own."""
    _FORMS[kind] = (write, read)


class Message:
    """A frozen dataclass that can be written as plain data, and read from it."""

    _said: ClassVar[tuple[str, ...]] = ()
    """Properties that the plain form has beside the fields."""
    _nano: ClassVar[bool] = False
    """Whether each ε is there twice: as a decimal text, and as a whole number of nano-ε."""

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data; an ε is an exact decimal text."""
        layout, told = _layout(type(self)), dict[str, Any]()
        for name in (*layout.readers, *self._said):
            value = getattr(self, name)
            twice = self._nano and (isinstance(value, Epsilon) or name in layout.epsilons)
            told |= epsilon_fields(name, value) if twice else {name: plain(value)}
        return told

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Self:
        """From its plain form."""
        readers = _layout(cls).readers
        return cls(**{name: read(stored[name]) for name, read in readers.items() if name in stored})


def epsilon_fields(name: str, epsilon: Epsilon | None) -> dict[str, Any]:
    """An ε as JSON carries it: an exact decimal text, and a whole number of nano-ε."""
    both = (None, None) if epsilon is None else (str(epsilon), epsilon.nano)
    return dict(zip((name, f"nano_{name}"), both, strict=True))


_AS_IT_IS = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """Any value of a message, as JSON-ready data."""
    if type(value) in _AS_IT_IS:  # ten thousand labels are asked nothing else
        return value
    match value:
        case Message():
            return value.to_plain()
        case Epsilon():
            return str(value)
        case np.ndarray():
            return _listed(value)
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case tuple() | list():
            return [plain(each) for each in value]
        case Mapping():
            return {name: plain(each) for name, each in value.items()}
    form = _FORMS.get(type(value))
    return value if form is None else form[0](value)


def _listed(array: np.ndarray[Any, Any]) -> Any:
    """Numbers as a list; what is not a number has no place in JSON, and is null."""
    if array.dtype.kind != "f" or not np.isnan(array).any():
        return array.tolist()
    numbers = array.astype(object)
    numbers[np.isnan(array)] = None
    return numbers.tolist()


@dataclasses.dataclass(frozen=True)
class _Layout:
    """How each field of a message is read, and which hold an ε; decided once for a class."""

    readers: dict[str, Read]
    epsilons: frozenset[str]


_LAYOUTS: dict[type[Any], _Layout] = {}


def _layout(kind: type[Any]) -> _Layout:
    if kind not in _LAYOUTS:
        hints = get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind)]
        _LAYOUTS[kind] = _Layout(
            {name: _reader(hints[name]) for name in names},
            frozenset(name for name in names if Epsilon in (hints[name], *get_args(hints[name]))),
        )
    return _LAYOUTS[kind]


def _reader(hint: Any) -> Read:
    """How a value of a type is read from plain data."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (some,) = (_reader(each) for each in inner if each is not type(None))
        return lambda value: None if value is None else some(value)
    if origin is tuple:
        return _tuple_reader(inner)
    if origin is np.ndarray:
        (number,) = get_args(inner[1])
        return lambda value: np.array(value, dtype=number)
    if not isinstance(hint, type):
        return lambda value: value
    if hint in _FORMS:
        return _FORMS[hint][1]
    if issubclass(hint, Message):
        return hint.from_plain
    if issubclass(hint, datetime):
        return hint.fromisoformat
    return hint if issubclass(hint, Epsilon | Enum) else lambda value: value


def _tuple_reader(inner: tuple[Any, ...]) -> Read:
    if inner[-1] is Ellipsis:
        each = _reader(inner[0])
        return lambda values: tuple(map(each, values))
    readers = [_reader(hint) for hint in inner]
    return lambda values: tuple(read(value) for read, value in zip(readers, values, strict=True))


def of_kind(table: Mapping[str, T], kind: object, what: str) -> T:
    """What plain data names by its ``kind``."""
    if not isinstance(kind, str) or kind not in table:
        raise InvalidInput(f"There is no {what} of kind {kind!r}; known kinds are {', '.join(table)}.")
    return table[kind]
