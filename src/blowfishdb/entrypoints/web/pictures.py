"""Charts as pictures, for those who look without JavaScript.

A page names an address for each of its charts inside ``<noscript>``. Only a browser that runs no scripts asks
for it, and only then is the picture made: from the very figure of the page, so that a noisy draw is not drawn
anew. The address itself carries the figure, encrypted for the one who saw the page: whichever worker is asked
can draw it, nothing is kept, and whoever reads addresses in a log reads nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import zlib
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from fastapi import APIRouter, Request, Response

from blowfishdb.adapters.store import Store
from blowfishdb.charts import picture_of
from blowfishdb.core.errors import NotFound
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.api.keys import key
from blowfishdb.entrypoints.api.server import server_of
from blowfishdb.entrypoints.web.figures import Figure
from blowfishdb.entrypoints.web.gates import PageVisitor

router: Final = APIRouter(include_in_schema=False)

_LONGEST: Final = 7_000  # characters; servers in front take addresses of 8,000
_NONCE: Final = 12
_EVERYONE: Final = b"everyone"
_HEADERS: Final = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}


def picture_address(figure: Figure, caller: Caller | None, store: Store) -> str | None:
    """Where the picture of a figure can be had, for ``&dark=true`` to follow; None if nowhere."""
    body = zlib.compress(json.dumps(figure.specification, separators=(",", ":")).encode(), 9)
    nonce = secrets.token_bytes(_NONCE)
    sealed = nonce + AESGCM(key(store, "pictures")).encrypt(nonce, body, _reader(caller))
    text = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
    if len(text) <= _LONGEST:
        return f"/pictures?of={text}"
    return None if figure.elsewhere is None else f"{figure.elsewhere}?"


@router.get("/pictures")
def picture(request: Request, caller: PageVisitor, of: str = "", dark: bool = False) -> Response:
    """The picture of a figure on a page that the caller has seen."""
    specification = _opened(of, caller, server_of(request).workspace.store)
    return Response(picture_of(specification, dark=dark), media_type="image/svg+xml", headers=_HEADERS)


def _opened(text: str, caller: Caller | None, store: Store) -> dict[str, Any]:
    try:
        sealed = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        raise _unknown() from None
    cipher = AESGCM(key(store, "pictures"))
    for reader in (_reader(caller), _EVERYONE):
        try:
            body = cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], reader)
        except (InvalidTag, ValueError):
            continue
        found: dict[str, Any] = json.loads(zlib.decompress(body))  # we packed it ourselves
        return found
    raise _unknown()


def _reader(caller: Caller | None) -> bytes:
    return _EVERYONE if caller is None else b"user:" + caller.name.encode()


def _unknown() -> NotFound:
    return NotFound("There is no such picture for you.", fixes=("load its page again",))
