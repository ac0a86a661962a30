"""Charts as pictures, for those who look without JavaScript.

A page names an address for each of its charts inside ``<noscript>``. Only a browser that runs no scripts asks
for it, and only then is the picture made: from the very figure of the page, so that a noisy draw is not drawn
anew. The latest figures are kept in memory for that, each under a name that nobody can guess and for the one
who saw its page.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from typing import Final, final

from fastapi import APIRouter, Response

from blowfishdb.charts import svg, themed
from blowfishdb.core.errors import NotFound
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.web.figures import Figure
from blowfishdb.entrypoints.web.gates import PageVisitor

router: Final = APIRouter(include_in_schema=False)

_MOST: Final = 256
_HEADERS: Final = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}


@final
class Shelf:
    """The figures of the latest pages; the oldest leave first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[str | None, Figure]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, figure: Figure, owner: str | None) -> str:
        """Keep a figure; its name."""
        name = secrets.token_urlsafe(16)
        with self._lock:
            self._kept[name] = (owner, figure)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return name

    def get(self, name: str, owner: str | None) -> Figure:
        """The figure; for its owner only."""
        with self._lock:
            found = self._kept.get(name)
        if found is None or found[0] not in (None, owner):
            raise NotFound("This picture is kept no longer.", fixes=("load its page again",))
        return found[1]


_SHELF: Final = Shelf(_MOST)


def picture_address(figure: Figure, caller: Caller | None) -> str:
    """Where the picture of a figure can be had for a while."""
    return f"/pictures/{_SHELF.put(figure, None if caller is None else caller.name)}"


@router.get("/pictures/{name}")
def picture(name: str, caller: PageVisitor, dark: bool = False) -> Response:
    """The picture of a figure on a page that the caller has just seen."""
    figure = _SHELF.get(name, None if caller is None else caller.name)
    drawn = svg(themed(figure.draw(figure.width), dark=dark))
    return Response(drawn, media_type="image/svg+xml", headers=_HEADERS)
