"""Columns as people type them: texts to a declaration or to what is hidden of it, and back to texts.

Options of a command and fields of a form hold nothing but texts. What they mean is said here once, so that
``200,000`` is the same number and ``north, south`` the same group wherever it is typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.errors import InvalidGraph, InvalidInput, InvalidThreshold
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.columns import ColumnRule, Hides, ungrouped

FIELDS: Final = {
    "integer": ("lo", "hi", "step"),
    "real": ("lo", "hi", "step"),
    "date": ("lo", "hi", "unit"),
    "category": ("values", "ordered"),
    "boolean": (),
}
"""What is typed about a column of each kind, besides what becomes of missing values and of those outside."""

_DECLARED: Final = {
    "integer": "the lowest and the highest value, in steps of 1",
    "real": "the lowest and the highest value, in steps of 0.01",
    "date": "the first and the last day, in cells of a day",
    "category": "all values, and whether they have an order",
    "boolean": "nothing: it holds false and true",
}
_SIGNS: Final = str.maketrans("", "", "_$")
_BETWEEN: Final = re.compile(r";|,\s|,(?!\d{3}(?!\d))")  # not the comma inside 10,000
_PAIR: Final = re.compile(r"\s+(?:and|or|–|-)\s+|;|,\s|,(?!\d{3}(?!\d))")


# --- which values a column may hold ---------------------------------------------------------------


def read_column(typed: Mapping[str, Any], now: Attribute | None = None) -> Attribute:
    """The column ``now``, with what was typed in place of it; None says nothing.

    Besides a ``kind`` and its fields (values are on lines): ``missing``, ``outside``, and ``limits``, which
    are both ends in one text (``0:200000``, ``0..200000``) or all values with commas between them.
    """
    given = {name: text for name, text in typed.items() if text is not None}
    before: dict[str, Any] = {} if now is None else codec.plain(now)
    kind: str = given.setdefault("kind", before.get("kind", ""))
    if "values" in given:
        given["values"] = _lines(given["values"])
    if "limits" in given:
        given |= _limits(given.pop("limits"), kind)
    read = _whole if kind == "integer" else str.strip if kind == "date" else _amount
    given |= {name: read(given[name]) for name in ("lo", "hi", "step") if name in given}
    if kind == "real" and "step" in given:
        given["grid"] = given.pop("step")
    if "ordered" in given:
        given["ordered"] = bool(given["ordered"])
    try:
        return codec.attribute(before | given if before.get("kind") == kind else given)
    except InvalidInput:
        raise
    except (TypeError, ValueError, KeyError):  # a field too many for this kind, or one too few
        raise InvalidInput(
            f"A column of kind {kind} is not declared like that.", fixes=(_DECLARED[kind],)
        ) from None


def _limits(typed: str, kind: str) -> dict[str, Any]:
    if kind == "category":
        return {"values": [value.strip() for value in typed.split(",")]}
    low, separator, high = typed.partition(".." if ".." in typed else ":")
    if not separator:
        raise InvalidInput(f"'{typed}' is not a lowest and a highest value.", fixes=("0:200000", "0..200000"))
    return {"lo": low, "hi": high}


def written_column(attribute: Attribute) -> dict[str, str]:
    """What ``read_column`` reads as this column, all in texts; ``"1"`` where values have an order."""
    texts: dict[str, str] = codec.plain(attribute)
    if "grid" in texts:
        texts["step"] = texts.pop("grid")
    texts |= {name: _decimal(str(texts[name])) for name in ("lo", "hi", "step") if name in texts}
    if "values" in texts:
        texts["values"] = "\n".join(map(str, texts["values"]))
        texts["ordered"] = "1" if texts["ordered"] else ""
    return texts


def _whole(typed: str) -> int:
    try:
        return int(_amount(typed))
    except ValueError:
        raise InvalidInput(f"'{typed.strip()[:40]}' is not a whole number.") from None


def _amount(typed: str) -> str:
    return ungrouped(typed.translate(_SIGNS).strip())


def _decimal(text: str) -> str:
    """A fraction with a power of ten below the line as a decimal; any other text as it is."""
    if not re.fullmatch(r"-?\d+/\d+", text):
        return text
    near = float(Fraction(text))
    return f"{near:.12f}".rstrip("0") if Fraction(str(near)) == Fraction(text) else text


# --- what is hidden of it -------------------------------------------------------------------------

_UNSAID: Final = {
    Hides.WITHIN: "Say within which distance values are hidden.",
    Hides.WIDTH: "Say how wide the groups are.",
    Hides.GROUPS: "List the groups, one on each line.",
    Hides.PAIRS: "List the pairs, one on each line.",
}
EXAMPLES: Final = {
    Hides.WITHIN: "a positive number in the units of the column, such as 1,000",
    Hides.WIDTH: "a positive number in the units of the column, such as 1,000",
    Hides.GROUPS: "values of one group on each line, with semicolons or commas between them",
    Hides.PAIRS: "two values on each line, with “and” between them",
}


def read_rule(column: str, hides: Hides, typed: str) -> ColumnRule:
    """What was typed, where it needs something typed: a distance, or groups or pairs on lines."""
    if hides not in _UNSAID:
        return ColumnRule(column, hides)
    if not typed:
        raise InvalidThreshold(_UNSAID[hides], fixes=(EXAMPLES[hides],))
    if hides is Hides.GROUPS:
        return ColumnRule(column, hides, [_parts(line, _BETWEEN) for line in _lines(typed)])
    if hides is Hides.PAIRS:
        pairs = [_parts(line, _PAIR) for line in _lines(typed)]
        if any(len(pair) != 2 for pair in pairs):
            raise InvalidGraph("A pair to hide is two values on one line.", fixes=(EXAMPLES[hides],))
        return ColumnRule(column, hides, pairs)
    return ColumnRule(column, hides, typed)


def written_rule(rule: ColumnRule) -> str:
    """The text that ``read_rule`` reads as this rule; empty where nothing is to be typed."""
    if rule.hides in (Hides.GROUPS, Hides.PAIRS):
        between = "; " if rule.hides is Hides.GROUPS else " and "
        return "\n".join(between.join(entry) for entry in rule.said)
    return rule.said if isinstance(rule.said, str) else ""


def _lines(typed: str) -> list[str]:
    return [line.strip() for line in typed.splitlines() if line.strip()]


def _parts(line: str, between: re.Pattern[str]) -> list[str]:
    return [part.strip() for part in between.split(line) if part.strip()]
