"""Time, passed in: nothing depends on a clock that never goes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)


def stamp(clock: Clock) -> str:
    """A moment as it is stored."""
    return clock().astimezone(UTC).isoformat(timespec="microseconds")
