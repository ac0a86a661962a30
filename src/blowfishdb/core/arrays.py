"""Arrays of whole numbers: the one way in, checked and read-only."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blowfishdb.core.errors import InvalidInput

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class ByContent:
    """Equality and hash of a frozen dataclass by what it holds, arrays included."""

    def _content(self) -> tuple[object, ...]:
        fields = (getattr(self, field.name) for field in dataclasses.fields(self))  # type: ignore[arg-type]
        return (type(self), *map(_hashable, fields))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByContent):
            return NotImplemented
        return type(self) is type(other) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())


def _hashable(value: object) -> object:
    if not isinstance(value, np.ndarray):
        return value
    return (value.shape, tuple(value.flat) if value.dtype == object else (value.dtype.str, value.tobytes()))


def integers(values: ArrayLike | Iterable[Any], what: str, error: type[InvalidInput]) -> IntArray:
    """A read-only int64 copy of ``values``; anything that is not a whole number is refused."""
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values))  # type: ignore[arg-type]
    except (TypeError, ValueError) as reason:
        raise error(f"{what} must be a list of whole numbers.") from reason
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype == np.bool_ or not np.issubdtype(array.dtype, np.integer):
        raise error(f"{what} must be whole numbers, not {array.dtype}.")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise error(f"{what} must fit in 63 bits.")
    frozen = array.astype(np.int64)
    frozen.flags.writeable = False
    return frozen


def whole(value: object, what: str, error: type[InvalidInput]) -> int:
    """``value`` as a Python int; booleans and anything with a fraction are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise error(f"{what} must be a whole number, not {value!r}.")
    return int(value)


def ceil_div(numerator: int, denominator: int) -> int:
    """⌈numerator / denominator⌉ in whole numbers."""
    return -(-numerator // denominator)
