"""There are enough faults, each replaces a function that is there, and the documentation lists them all."""

from __future__ import annotations

from pathlib import Path

from tests.seeded.faults import FAULTS, INVENTED, ONCE_REAL, table
from tests.seeded.finding import SCOPES
from tests.seeded.planting import located

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def test_there_are_enough() -> None:
    assert len(ONCE_REAL) == 10
    assert len(INVENTED) >= 30
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_each_replaces_one_function_in_a_world_that_exists() -> None:
    for fault in FAULTS:
        located(fault.symbol)
        assert fault.shows_in in SCOPES


def test_the_page_lists_them() -> None:
    page = PAGE.read_text()
    for faults in (ONCE_REAL, INVENTED):
        assert table(faults) in page, f"put this into docs/audit.md:\n{table(faults)}"
