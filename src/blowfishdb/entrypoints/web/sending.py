"""Sending a page: its head at once, the rest as it is made, compressed.

A compressed page must not carry a secret beside what a stranger can have it repeat: from lengths, the secret
could be guessed bit by bit (BREACH). The csrf text is therefore masked anew on every page, and the cookie is
sent to nobody's page but ours (SameSite=Strict), so that a stranger cannot have a page made for anyone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from fastapi import Request
from fastapi.responses import StreamingResponse

_HEAD: Final = "</h1>"
_ENOUGH: Final = 4_096
_SORRY: Final = '<div class="alert bad" role="alert"><p>The rest of this page could not be made.</p></div>'
_GZIP: Final = 31  # for zlib: with the header of a gzip file


def streamed(request: Request, pieces: Iterator[str], status: int) -> StreamingResponse:
    """The page; what goes wrong before its heading is still answered by a page that says so."""
    head = "".join(_through_heading(pieces))
    parts = _parts(head, pieces)
    headers = {"Vary": "Accept-Encoding, Cookie, Part"}
    packed = "gzip" in request.headers.get("Accept-Encoding", "")
    if packed:
        headers["Content-Encoding"] = "gzip"
    body = _compressed(parts) if packed else (part.encode() for part in parts)
    return StreamingResponse(body, status, headers, "text/html; charset=utf-8")


def _through_heading(pieces: Iterator[str]) -> Iterator[str]:
    for piece in pieces:
        yield piece
        if _HEAD in piece:
            return


def _parts(head: str, pieces: Iterator[str]) -> Iterator[str]:
    yield head
    held: list[str] = []
    try:
        for piece in pieces:
            held.append(piece)
            if sum(map(len, held)) > _ENOUGH:
                yield "".join(held)
                held.clear()
    except Exception:
        yield "".join(held) + _SORRY
        raise
    yield "".join(held)


def _compressed(parts: Iterator[str]) -> Iterator[bytes]:
    packer = zlib.compressobj(6, wbits=_GZIP)
    for part in parts:
        yield packer.compress(part.encode()) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()
