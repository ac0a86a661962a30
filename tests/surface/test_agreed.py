"""What others build on changes only when somebody means it to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.surface.agreed import MADE, difference

LARGEST = 100_000
MACHINE = re.compile(r"/tmp|/home|/root|0x[0-9a-f]{6}|blowfishdb\.[a-z_]+\.|\b20\d\d-\d\d-\d\dT")


@pytest.mark.parametrize("name", MADE)
def test_it_is_as_agreed(name: str) -> None:
    differs = difference(name)
    accepting = f"If this is meant, say so in CHANGELOG.md and run: python -m tests.surface {name}"
    assert not differs, f"{name} differs from what was agreed on. {accepting}\n{differs}"


@pytest.mark.parametrize("name", MADE)
def test_a_text_is_short_and_speaks_of_no_machine_and_no_day(name: str) -> None:
    text = (Path(__file__).parent / "texts" / f"{name}.txt").read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    assert MACHINE.search(text) is None
