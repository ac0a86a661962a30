"""Values as PostgreSQL's protocol writes them, as text and in binary, and how parameters are read.

Only the types that are returned or taken here; a parameter of another type is read as its text.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final, final

from blowfishdb.core.errors import InvalidInput

TEXT_FORMAT: Final = 0
BINARY_FORMAT: Final = 1
_EPOCH: Final = date(2000, 1, 1)
_MOMENT: Final = datetime(2000, 1, 1)


@final
@dataclass(frozen=True, eq=False)
class PgType:
    """A type: its number, its name, the size of a value (-1: it varies), and how values are written."""

    oid: int
    name: str
    size: int
    text: Callable[[Any], str]
    binary: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    """A value from its binary form."""
    parse: Callable[[str], Any]
    """A value from its text."""

    def write(self, value: Any, code: int) -> bytes | None:
        """A value in the format that was asked for; None for NULL."""
        if value is None:
            return None
        return self.binary(value) if code == BINARY_FORMAT else self.text(value).encode()


def _plain_float(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    written = repr(float(value))
    return written.removesuffix(".0")


def _struct(code: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    layout = struct.Struct(f"!{code}")

    def read(data: bytes) -> Any:
        if len(data) != layout.size:
            raise InvalidInput("A parameter does not have the size of its type.")
        return layout.unpack(data)[0]

    return layout.pack, read


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput("A parameter is not text in UTF-8.") from None


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in ("t", "true", "y", "yes", "on", "1"):
        return True
    if word in ("f", "false", "n", "no", "off", "0"):
        return False
    raise InvalidInput(f"{text[:40]!r} is neither true nor false.")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a whole number.") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a number.") from None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InvalidInput(f"{text[:40]!r} is not a number.") from None


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text.strip()[:10])
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a date.") from None


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a moment.") from None


def _read_day(data: bytes) -> date:
    try:
        return _EPOCH + timedelta(days=_struct("i")[1](data))
    except OverflowError:
        raise InvalidInput("A parameter is a date beyond the calendar.") from None


def _read_moment(data: bytes) -> datetime:
    try:
        return _MOMENT + timedelta(microseconds=_struct("q")[1](data))
    except OverflowError:
        raise InvalidInput("A parameter is a moment beyond the calendar.") from None


def _at_midnight(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def _moment_text(value: Any) -> str:
    return _at_midnight(value).replace(tzinfo=None).isoformat(sep=" ")


def _moment_binary(value: Any) -> bytes:
    past = _at_midnight(value).replace(tzinfo=None) - _MOMENT
    return struct.pack("!q", past // timedelta(microseconds=1))


def _numeric_binary(value: Any) -> bytes:
    """Digits in groups of four, the weight of the first group, sign and scale."""
    number = Decimal(str(value))
    if not number.is_finite():
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole = "".join(map(str, digits)) + "0" * max(0, exponent)
    left, right = (whole[:-scale] or "0", whole[-scale:].rjust(scale, "0")) if scale else (whole, "")
    left, right = left.rjust(-(-len(left) // 4) * 4, "0"), right.ljust(-(-len(right) // 4) * 4, "0")
    groups = [int((left + right)[at : at + 4]) for at in range(0, len(left + right), 4)]
    weight = len(left) // 4 - 1
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups = groups[:-1]
    head = struct.pack("!hhHh", len(groups), weight if groups else 0, 0x4000 if sign else 0, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


def _read_numeric(data: bytes) -> Decimal:
    try:
        count, weight, sign, scale = struct.unpack_from("!hhHh", data)
        groups = struct.unpack_from(f"!{count}h", data, 8) if count >= 0 else ()
    except struct.error:
        raise InvalidInput("A parameter is not a number.") from None
    if sign not in (0, 0x4000) or len(data) != 8 + 2 * count or not -400 < weight < 400:
        raise InvalidInput("A parameter is not a finite number.")
    number = sum(
        (Decimal(group) * Decimal(10) ** (4 * (weight - at)) for at, group in enumerate(groups)), Decimal(0)
    )
    return (-number if sign else number).quantize(Decimal(1).scaleb(-scale)) if scale < 400 else number


def _bool_binary(value: Any) -> bytes:
    return b"\x01" if value else b"\x00"


def _simple(
    oid: int, name: str, size: int, code: str, text: Callable[[Any], str], parse: Callable[[str], Any]
) -> PgType:
    write, read = _struct(code)
    return PgType(oid, name, size, text, write, read, parse)


def _texts(oid: int, name: str) -> PgType:
    return PgType(oid, name, -1, str, lambda value: str(value).encode(), _utf8, str)


BOOL: Final = PgType(16, "bool", 1, lambda value: "t" if value else "f", _bool_binary, any, _boolean)
INT8: Final = _simple(20, "int8", 8, "q", lambda value: str(int(value)), _whole)
INT2: Final = _simple(21, "int2", 2, "h", lambda value: str(int(value)), _whole)
INT4: Final = _simple(23, "int4", 4, "i", lambda value: str(int(value)), _whole)
OID: Final = _simple(26, "oid", 4, "I", lambda value: str(int(value)), _whole)
FLOAT4: Final = _simple(700, "float4", 4, "f", _plain_float, _number)
FLOAT8: Final = _simple(701, "float8", 8, "d", _plain_float, _number)
TEXT: Final = _texts(25, "text")
VARCHAR: Final = _texts(1043, "varchar")
BPCHAR: Final = _texts(1042, "bpchar")
NAME: Final = _texts(19, "name")
UNKNOWN: Final = _texts(705, "unknown")
JSON: Final = _texts(114, "json")
DATE: Final = PgType(
    1082,
    "date",
    4,
    lambda value: str(value.isoformat()),
    lambda value: struct.pack("!i", (value - _EPOCH).days),
    _read_day,
    _day,
)
TIMESTAMP: Final = PgType(1114, "timestamp", 8, _moment_text, _moment_binary, _read_moment, _moment)
TIMESTAMPTZ: Final = PgType(
    1184, "timestamptz", 8, lambda value: _moment_text(value) + "+00", _moment_binary, _read_moment, _moment
)
NUMERIC: Final = PgType(
    1700, "numeric", -1, lambda value: f"{Decimal(str(value)):f}", _numeric_binary, _read_numeric, _decimal
)


def _array(oid: int, element: PgType) -> PgType:
    def written(value: Any) -> str:
        return "{" + ",".join("NULL" if one is None else _quoted(element.text(one)) for one in value) + "}"

    def binary(value: Any) -> bytes:
        head = struct.pack("!iiI", 1 if value else 0, int(None in value), element.oid)
        if not value:
            return head
        parts = [head, struct.pack("!ii", len(value), 1)]
        for one in value:
            data = b"" if one is None else element.binary(one)
            parts.append(struct.pack("!i", -1 if one is None else len(data)) + data)
        return b"".join(parts)

    def read(data: bytes) -> list[Any]:
        try:
            return [None if one is None else element.read(one) for one in _elements(data)]
        except struct.error:
            raise InvalidInput("A parameter does not have the size of its type.") from None

    def parse(text: str) -> list[Any]:
        return [None if one is None else element.parse(one) for one in _listed(text)]

    return PgType(oid, f"_{element.name}", -1, written, binary, read, parse)


def _elements(data: bytes) -> list[bytes | None]:
    """The values of a list in binary."""
    dimensions, _, _ = struct.unpack_from("!iiI", data)
    if dimensions > 1:
        raise _no_list()
    count = struct.unpack_from("!i", data, 12)[0] if dimensions == 1 else 0
    values: list[bytes | None] = []
    at = 20
    for _ in range(count):
        (size,) = struct.unpack_from("!i", data, at)
        at += 4
        if size > len(data) - at:
            raise _no_list()
        values.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return values


def _listed(text: str) -> list[str | None]:
    """The values of a list as text: ``{north,"New York",NULL}``."""
    inside = text.strip()
    if not (inside.startswith("{") and inside.endswith("}")):
        raise _no_list()
    inside, at = inside[1:-1], 0
    values: list[str | None] = []
    while at < len(inside):
        each = _LISTED.match(inside, at)
        if each is None:
            raise _no_list()
        quoted, bare, at = each[1], each[2], each.end()
        if quoted is not None:
            values.append(re.sub(r"\\(.)", r"\1", quoted))
        elif bare is not None:
            values.append(None if bare.strip().upper() == "NULL" else bare.strip())
    return values


_LISTED: Final = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^",{}\\]+))(?:,|$)', re.DOTALL)


def _no_list() -> InvalidInput:
    return InvalidInput("A parameter is not a list of values.", fixes=("{north,south}",))


def _quoted(text: str) -> str:
    if text and text.upper() != "NULL" and not set(text) & set('{},"\\ \t\n'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


ARRAYS: Final = {
    element.oid: _array(oid, element)
    for oid, element in (
        (1000, BOOL),
        (1005, INT2),
        (1007, INT4),
        (1016, INT8),
        (1009, TEXT),
        (1028, OID),
        (1021, FLOAT4),
        (1022, FLOAT8),
        (1115, TIMESTAMP),
        (1182, DATE),
        (1231, NUMERIC),
    )
}
"""The list of each type, by the number of the type."""

BY_OID: Final = {
    each.oid: each
    for each in (
        BOOL,
        INT8,
        INT2,
        INT4,
        OID,
        FLOAT4,
        FLOAT8,
        TEXT,
        VARCHAR,
        BPCHAR,
        NAME,
        UNKNOWN,
        JSON,
        DATE,
        TIMESTAMP,
        TIMESTAMPTZ,
        NUMERIC,
        *ARRAYS.values(),
    )
}


def parameter(oid: int, code: int, data: bytes | None) -> Any:
    """What was sent in place of ``$1``; a type that is not known is read as text."""
    if data is None:
        return None
    kind = BY_OID.get(oid)
    if code == BINARY_FORMAT:
        if kind is None:
            raise InvalidInput(f"A parameter of the type {oid} cannot be read in binary.", fixes=("as text",))
        return kind.read(data)
    text = _utf8(data)
    return text if kind is None else kind.parse(text)
