"""Answers as JSON texts, by an encoder that is quick with many numbers; they say what Python's would."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson


def written(data: dict[str, Any]) -> str:
    """The text of an answer; what the quick encoder does not know, or would change, Python's own writes."""
    if not _finite(data):
        return json.dumps(data)
    try:
        return orjson.dumps(data).decode()
    except TypeError:  # whole numbers beyond 64 bits, halves of characters
        return json.dumps(data)


def read(text: object) -> Any:
    """What a text says, where no whole number needs more than 64 bits: the quick reader rounds those."""
    try:
        return orjson.loads(text)  # type: ignore[arg-type]
    except orjson.JSONDecodeError:  # numbers that are none, halves of characters, too deep
        return json.loads(text)  # type: ignore[arg-type]


def _finite(value: Any) -> bool:
    """Whether all of its numbers are; the quick encoder writes null for others."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if not isinstance(value, list | tuple):
        return True
    try:
        return math.isfinite(sum(value))
    except (TypeError, OverflowError):  # not all of them are numbers, or they are too large to tell
        return {*map(type, value)} == {str} or all(map(_finite, value))
