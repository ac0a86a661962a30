"""SCRAM-SHA-256: the server's half of the exchange (RFC 5802, RFC 7677).

The password never travels: the client shows that it knows it, and so does the server. Whoever is unknown, or
has no password, goes through the same steps and fails at the end.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final, final

from blowfishdb.adapters.wire_passwords import Verifier

MECHANISM: Final = "SCRAM-SHA-256"


class Wrong(Exception):
    """The exchange does not show that the password is known."""


@final
class Exchange:
    """One attempt to come in: two messages of the client, two of the server."""

    def __init__(self, verifier: Verifier, nonce: str | None = None) -> None:
        self._verifier = verifier
        self._nonce = secrets.token_urlsafe(18) if nonce is None else nonce
        self._header = ""
        self._said = ""

    def challenge(self, first: bytes) -> bytes:
        """The answer to the client's first message."""
        flag, _, rest = _text(first).partition(",")
        identity, _, bare = rest.partition(",")
        if flag not in ("n", "y") or (identity and not identity.startswith("a=")):
            raise Wrong
        attributes = _attributes(bare)
        nonce = attributes.get("r", "")
        if not nonce or "m" in attributes:
            raise Wrong
        self._header = f"{flag},{identity},"
        self._nonce = nonce + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        challenge = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._said = f"{bare},{challenge}"
        return challenge.encode()

    def verdict(self, final_message: bytes) -> bytes:
        """The server's proof, if the client's is right."""
        without, _, proof = _text(final_message).rpartition(",p=")
        attributes = _attributes(without)
        header = base64.b64encode(self._header.encode()).decode()
        if attributes.get("c") != header or attributes.get("r") != self._nonce:
            raise Wrong
        auth = f"{self._said},{without}".encode()
        signature = hmac.digest(self._verifier.stored_key, auth, "sha256")
        try:
            sent = base64.b64decode(proof, validate=True)
        except binascii.Error:
            raise Wrong from None
        if len(sent) != len(signature):
            raise Wrong
        client_key = bytes(a ^ b for a, b in zip(sent, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key):
            raise Wrong
        return b"v=" + base64.b64encode(hmac.digest(self._verifier.server_key, auth, "sha256"))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Wrong from None


def _attributes(text: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}
