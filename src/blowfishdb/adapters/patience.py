"""Patience: how long a curator's look at rows may take, all in all."""

from __future__ import annotations

import time
from typing import Final, final

from blowfishdb.core.errors import TooLarge

_FIXES: Final = ("declare the columns without a proposal", "blowfishdb import, where the rows are")


@final
class Patience:
    """So many seconds from now; ``fixes`` for whoever looks too long."""

    def __init__(self, seconds: float, fixes: tuple[str, ...] = _FIXES) -> None:
        self._seconds = seconds
        self._fixes = fixes
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left; there are some, or the look is over."""
        found = self._end - time.monotonic()
        if found <= 0:
            raise TooLarge(
                f"Looking at these rows takes longer than {self._seconds:g} seconds.",
                fixes=self._fixes,
            )
        return found

    def check(self) -> None:
        """Go on only while there is time."""
        _ = self.left
