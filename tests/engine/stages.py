"""Stages of an answer, told as they are reached: what the processes that are killed have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def around(reach: Callable[[str], None], owner: type, name: str, before: str, after: str) -> None:
    """Let ``reach`` know before and after every call of a method, from now on in this process."""
    inner = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        reach(before)
        result = inner(*args, **options)
        reach(after)
        return result

    setattr(owner, name, wrapped)
