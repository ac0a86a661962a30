"""All faults, and the table of them that the documentation shows."""

from __future__ import annotations

from tests.seeded import (
    aggregate_faults,
    defects,
    known_faults,
    ledger_faults,
    meeting_faults,
    pricing_faults,
    promise_faults,
    refining_faults,
    synthesis_faults,
    table_faults,
    time_faults,
)
from tests.seeded.planting import Fault

ONCE_REAL: tuple[Fault, ...] = defects.FAULTS
INVENTED: tuple[Fault, ...] = (
    *pricing_faults.FAULTS,
    *time_faults.FAULTS,
    *ledger_faults.FAULTS,
    *known_faults.FAULTS,
    *meeting_faults.FAULTS,
    *refining_faults.FAULTS,
    *aggregate_faults.FAULTS,
    *table_faults.FAULTS,
    *synthesis_faults.FAULTS,
    *promise_faults.FAULTS,
)
FAULTS = ONCE_REAL + INVENTED


def table(faults: tuple[Fault, ...]) -> str:
    """Faults as Markdown: what is wrong, and the function that is replaced."""
    lines = [f"| {fault.name} | {fault.words} | `{fault.symbol}` |" for fault in faults]
    return "\n".join(["| fault | what is wrong | function |", "|---|---|---|", *lines])
