"""The texts as they were agreed on, and what differs from them now."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.surface import answers, commands, names, routes

MADE: Final[dict[str, Callable[[], str]]] = {
    "names": names.text,
    "routes": routes.text,
    "commands": commands.text,
    "answers": answers.text,
}
_FOLDER: Final = Path(__file__).parent / "texts"


def difference(name: str) -> str:
    """What a text says now and did not say, or says no longer; empty if it is as agreed."""
    agreed, now = _file(name).read_text(encoding="utf-8"), MADE[name]()
    lines = difflib.unified_diff(agreed.splitlines(), now.splitlines(), "agreed", "now", lineterm="")
    return "\n".join(lines)


def agree(name: str) -> Path:
    """Write a text anew."""
    _file(name).write_text(MADE[name](), encoding="utf-8")
    return _file(name)


def _file(name: str) -> Path:
    return _FOLDER / f"{name}.txt"
