"""Secret: a true value that cannot be printed, serialised, compared or returned by accident.

Only mechanisms open one (``reveal``), at the moment they add noise; a test checks that no other
module calls it.
"""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar, final

from blowfishdb.core.errors import SecretLeak

T = TypeVar("T")


@final
class Secret(Generic[T]):
    """A value that came from the data."""

    __slots__ = ("__value",)

    def __init__(self, value: T) -> None:
        self.__value = value

    def reveal(self) -> T:
        """The true value. Allowed only where noise is added to it."""
        return self.__value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise SecretLeak("A true value cannot be copied, stored, compared or iterated over.")

    __reduce_ex__ = __reduce__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    __bool__ = __len__ = __iter__ = __array__ = __int__ = __float__ = __index__ = _refuse
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
