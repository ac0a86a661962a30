"""All faults, and the table of those that are known to be found, which the documentation shows."""

from __future__ import annotations

from tests.seeded import defects, ledger_faults, pricing_faults
from tests.seeded.planting import Fault

_SEEN = frozenset(
    {
        *("csv comments", "sensitivity", "cells", "where drops", "drops", "per row", "kernel of a row"),
        *("past of a row", "paid alone", "half together", "uncounted", "kernel without outside"),
        *("presence one at a time", "apex", "totals of the absent", "exact and absent", "first column"),
        *("projected edges", "missing", "kept for nothing", "not held", "never kept", "lost is free"),
    }
)
"""The faults that a run has found; the others wait for one that takes long enough."""
_ALL: tuple[Fault, ...] = (*defects.FAULTS, *pricing_faults.FAULTS, *ledger_faults.FAULTS)

ONCE_REAL = tuple(fault for fault in defects.FAULTS if fault.name in _SEEN)
INVENTED = tuple(fault for fault in _ALL if fault.name in _SEEN and fault not in defects.FAULTS)
FAULTS: tuple[Fault, ...] = (*ONCE_REAL, *INVENTED)
WAITING = tuple(fault for fault in _ALL if fault.name not in _SEEN)


def table(faults: tuple[Fault, ...]) -> str:
    """Faults as Markdown: what is wrong, and the function that is replaced."""
    lines = [f"| {fault.name} | {fault.words} | `{fault.symbol}` |" for fault in faults]
    return "\n".join(["| fault | what is wrong | function |", "|---|---|---|", *lines])
