"""Quotes that can be taken up: everything that was quoted, signed, so that no server has to remember it.

Every worker signs with the same key (``keys.py``).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import zlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, final

from blowfishdb.adapters.clock import Clock, utc_now
from blowfishdb.adapters.store import Store
from blowfishdb.core.codec import canonical
from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.api.keys import key

LIFETIME: Final = timedelta(hours=1)


@final
@dataclass(frozen=True)
class Quoted:
    """What a quote was for, whose it is, and what it said."""

    user: str
    dataset: str
    asked: dict[str, Any]
    policy_version: int
    nano_epsilon: int
    expires: str


@final
class QuoteIds:
    """Signs quotes and opens what it signed."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def sign(
        self, *, user: str, dataset: str, asked: dict[str, Any], policy_version: int, nano_epsilon: int
    ) -> tuple[str, str]:
        """The id of a quote, and the moment at which it is over."""
        expires = (self._clock().astimezone(UTC) + LIFETIME).isoformat(timespec="seconds")
        quoted = Quoted(user, dataset, asked, policy_version, nano_epsilon, expires)
        body = zlib.compress(canonical(asdict(quoted)).encode())
        return f"{_text(body)}.{_text(self._seal(body))}", expires

    def open(self, text: str, *, user: str, dataset: str) -> Quoted:
        """What was quoted to this user about this dataset, if it is not over."""
        body, seal = _parts(text)
        if not hmac.compare_digest(self._seal(body), seal):  # nothing is unpacked that we did not pack
            raise _not_ours()
        quoted = Quoted(**json.loads(zlib.decompress(body)))
        if (quoted.user, quoted.dataset) != (user, dataset):
            raise _not_ours()
        if datetime.fromisoformat(quoted.expires) <= self._clock().astimezone(UTC):
            raise InvalidInput(
                "This quote is more than an hour old. Nothing was charged.",
                fixes=("a new quote; it is free",),
            )
        return quoted

    def _seal(self, body: bytes) -> bytes:
        return hmac.new(key(self._store, "quotes"), body, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _parts(text: str) -> tuple[bytes, bytes]:
    try:
        body, seal = (
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
            for part in text.encode("ascii").decode().split(".")
        )
    except (ValueError, binascii.Error):
        raise _not_ours() from None
    return body, seal


def _not_ours() -> InvalidInput:
    return InvalidInput(
        "This is not a quote of yours for this dataset. Nothing was charged.",
        fixes=("a new quote; it is free",),
    )
