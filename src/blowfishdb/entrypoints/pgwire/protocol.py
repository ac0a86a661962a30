"""Messages of PostgreSQL's protocol 3.0 as bytes: what clients send, read strictly; what they are told.

A message is a letter, a length that counts itself, and a body. The very first one of a connection has no
letter.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

_CANCEL: Final = 80_877_102
_SSL: Final = 80_877_103
_GSS: Final = 80_877_104
LONGEST_START: Final = 10_000
"""Bytes; nobody is known yet who sends them."""
_KNOWN: Final = frozenset(b"QPBDESHCFXpdcf")
_INT: Final = struct.Struct("!i")
_SHORT: Final = struct.Struct("!h")


class Malformed(Exception):
    """Bytes that are no message; the connection ends."""


@final
@dataclass(frozen=True)
class StartUp:
    """Who wants to come in, and what they set; ``minor`` is the version of the protocol beyond 3."""

    parameters: dict[str, str]
    minor: int = 0


@final
@dataclass(frozen=True)
class Encryption:
    """Whether what follows may be encrypted: by TLS, or by GSSAPI."""

    tls: bool


@final
@dataclass(frozen=True)
class Cancel:
    """Give up what another connection is waiting for."""

    process: int
    secret: int


def first_message(buffer: bytearray) -> StartUp | Encryption | Cancel | None:
    """The first message, taken from the buffer; None while it is not whole."""
    if len(buffer) < 4:
        return None
    (length,) = _INT.unpack_from(buffer)
    if not 8 <= length <= LONGEST_START:
        raise Malformed("invalid length of startup packet")
    if len(buffer) < length:
        return None
    body = Body(bytes(buffer[4:length]))
    del buffer[:length]
    code = body.int32()
    if code == _CANCEL:
        return Cancel(body.int32(), body.int32())
    if code in (_SSL, _GSS):
        return Encryption(tls=code == _SSL)
    major, minor = divmod(code, 65_536)
    if major != 3:
        raise Malformed(f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0")
    parameters: dict[str, str] = {}
    while name := body.text():
        parameters[name] = body.text()
    return StartUp(parameters, minor)


def next_message(buffer: bytearray, longest: int) -> tuple[int, bytes] | None:
    """The letter and the body of the next message, taken from the buffer; None while it is not whole."""
    if len(buffer) < 5:
        return None
    letter = buffer[0]
    (length,) = _INT.unpack_from(buffer, 1)
    if letter not in _KNOWN:
        raise Malformed(f"invalid frontend message type {letter}")
    if not 4 <= length <= longest:
        raise Malformed("invalid message length")
    if len(buffer) <= length:
        return None
    body = bytes(buffer[5 : length + 1])
    del buffer[: length + 1]
    return letter, body


@final
class Body:
    """A cursor over the body of a message."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def text(self) -> str:
        """Up to the next zero byte."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise Malformed("invalid string in message")
        raw, self._at = self._data[self._at : end], end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise Malformed("invalid byte sequence for encoding UTF8") from None

    def int16(self) -> int:
        """Two bytes as a whole number."""
        return int(_SHORT.unpack(self.take(2))[0])

    def int32(self) -> int:
        """Four bytes as a whole number."""
        return int(_INT.unpack(self.take(4))[0])

    def count(self) -> int:
        """How many things follow."""
        return self.int16() & 0xFFFF

    def take(self, length: int) -> bytes:
        """So many bytes."""
        if length < 0 or self._at + length > len(self._data):
            raise Malformed("insufficient data left in message")
        raw, self._at = self._data[self._at : self._at + length], self._at + length
        return raw

    def letter(self) -> str:
        """One byte as a letter."""
        return chr(self.take(1)[0])

    def rest(self) -> bytes:
        """Whatever is left."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._data):
            raise Malformed("invalid message format")


# --- what clients are told ------------------------------------------------------------------------


def message(letter: bytes, body: bytes = b"") -> bytes:
    """A message."""
    return letter + _INT.pack(len(body) + 4) + body


def text(value: str) -> bytes:
    """A text and a zero byte; a text of ours has none inside."""
    return value.replace("\0", " ").encode("utf-8", "replace") + b"\0"


def sasl_mechanisms(*names: str) -> bytes:
    """The ways to show who one is."""
    return message(b"R", _INT.pack(10) + b"".join(map(text, names)) + b"\0")


def sasl_continue(data: bytes) -> bytes:
    """The challenge."""
    return message(b"R", _INT.pack(11) + data)


def sasl_final(data: bytes) -> bytes:
    """What shows the client who the server is."""
    return message(b"R", _INT.pack(12) + data)


AUTHENTICATED: Final = message(b"R", _INT.pack(0))
PARSED: Final = message(b"1")
BOUND: Final = message(b"2")
CLOSED: Final = message(b"3")
NO_DATA: Final = message(b"n")
EMPTY: Final = message(b"I")
SUSPENDED: Final = message(b"s")
COPY_DONE: Final = message(b"c")
READY: Final = {status: message(b"Z", status.encode()) for status in "ITE"}


def parameter_status(name: str, value: str) -> bytes:
    """A setting that clients follow."""
    return message(b"S", text(name) + text(value))


def backend_key(process: int, secret: int) -> bytes:
    """By which a client can cancel what it waits for."""
    return message(b"K", struct.pack("!ii", process, secret))


def negotiate(minor: int, unknown: Sequence[str]) -> bytes:
    """That the client knows a newer protocol than the server."""
    return message(b"v", struct.pack("!ii", minor, len(unknown)) + b"".join(map(text, unknown)))


def complete(tag: str) -> bytes:
    """A statement is done."""
    return message(b"C", text(tag))


def fields(letter: bytes, said: dict[str, str]) -> bytes:
    """An error (``E``) or a notice (``N``)."""
    return message(
        letter, b"".join(key.encode() + text(value) for key, value in said.items() if value) + b"\0"
    )


def row_description(columns: Sequence[tuple[str, int, int]], formats: Sequence[int]) -> bytes:
    """The columns of what follows: name, type, size of a value, and how it is written."""
    body = [_SHORT.pack(len(columns))]
    for (name, oid, size), code in zip(columns, formats, strict=True):
        body += [text(name), struct.pack("!ihihih", 0, 0, _signed(oid), size, -1, code)]
    return message(b"T", b"".join(body))


def parameter_description(oids: Sequence[int]) -> bytes:
    """The types of what has to be filled in."""
    return message(b"t", _SHORT.pack(len(oids)) + b"".join(_INT.pack(_signed(oid)) for oid in oids))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """One row."""
    parts = [_SHORT.pack(len(values))]
    for value in values:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            parts += (_INT.pack(len(value)), value)
    return message(b"D", b"".join(parts))


def copy_out(columns: int) -> bytes:
    """Text of so many columns follows."""
    return message(b"H", struct.pack("!bh", 0, columns) + b"\0\0" * columns)


def copy_data(line: bytes) -> bytes:
    """A line of it."""
    return message(b"d", line)


def _signed(oid: int) -> int:
    return oid if oid < 2**31 else oid - 2**32
