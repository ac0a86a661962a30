"""How fast one caller may send requests: a bucket of tokens that fills up again, in each process."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, final

from blowfishdb.core.errors import TooManyAttempts

_MOST_CALLERS: Final = 10_000  # beyond this the one who called longest ago is forgotten


@final
class Rates:
    """One bucket for each caller; safe to share between threads."""

    def __init__(
        self, per_second: float, burst: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._now = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str) -> None:
        """Count one request, or refuse it and say when the next one counts."""
        now = self._now()
        with self._lock:
            full, then = self._buckets.pop(caller, (self._burst, now))
            full = min(self._burst, full + (now - then) * self._per_second)
            allowed = full >= 1
            self._buckets[caller] = (full - 1 if allowed else full, now)
            if len(self._buckets) > _MOST_CALLERS:
                self._buckets.popitem(last=False)
        if not allowed:
            wait = max(1, math.ceil((1 - full) / self._per_second))
            raise TooManyAttempts(
                "These are more requests than one caller may send at a time.",
                wait=wait,
                fixes=(f"again in {wait} second{'s' if wait > 1 else ''}",),
            )
