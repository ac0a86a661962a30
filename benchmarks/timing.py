"""What the benchmarks measure with: seconds, medians, 95th percentiles, memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import median

_Remembering = type(lru_cache(lambda: None))


def seconds(act: Callable[[], object]) -> float:
    """How long it takes, once."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def clocks(act: Callable[[], object]) -> tuple[float, float]:
    """How long it takes, once: by the clock, and of a processor, which says more on a busy machine."""
    start, worked = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - start, time.process_time() - worked


def p50(times: Sequence[float]) -> float:
    """The median, in milliseconds."""
    return 1e3 * median(times)


def p95(times: Sequence[float]) -> float:
    """The 95th percentile, in milliseconds."""
    return 1e3 * sorted(times)[-(-95 * len(times) // 100) - 1]


def peak() -> str:
    """The most memory that this process ever had."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


def forget() -> None:
    """Empty every memory of plans and labels; those without a bound hold compiled code, and stay."""
    for name, module in list(sys.modules.items()):
        if name.startswith("blowfishdb."):
            for found in list(vars(module).values()):
                if isinstance(found, _Remembering) and found.cache_parameters()["maxsize"] is not None:
                    found.cache_clear()
