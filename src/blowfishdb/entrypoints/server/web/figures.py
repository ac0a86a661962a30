"""Charts on a page: the drawing for two widths, in whichever theme, and the table that says the same.

The page carries specifications without colours; ``static/charts.js`` draws them in the colours of the theme.
Both widths come along because a chart that is merely scaled down cannot be read on a telephone. Making them
takes longer than the rest of a page, so it waits until the page has begun to travel.

Charts as pictures, for those who look without JavaScript.

A page names an address for each of its charts inside ``<noscript>``. Only a browser that runs no scripts asks
for it, and only then is the picture made: from the very figure of the page, so that a noisy draw is not drawn
anew. The address itself carries the figure, encrypted for the one who saw the page: whichever worker is asked
can draw it, nothing is kept, and whoever reads addresses in a log reads nothing. A figure without noise that
follows from the address of its page need not be carried: it is drawn again, at an address of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, final

from cryptography.fernet import InvalidToken
from fastapi import Request, Response

from blowfishdb.core.errors import BlowfishError, NotFound
from blowfishdb.entrypoints.server.access import Caller, PageVisitor
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.server import Server, server_of
from blowfishdb.entrypoints.server.web.packing import NotPacked, packed, unpacked
from blowfishdb.show.charts import picture_of
from blowfishdb.show.tables import OneNumber, Table

WIDE: Final = 640
NARROW: Final = 272
Drawing = Callable[[int], Any]
"""The chart for a width in pixels: ``lambda width: answer_chart(answer, width=width)``."""


@final
@dataclass(frozen=True, eq=False)
class Figure:
    """What ``figure`` in macros.html renders."""

    id: str
    table: Table
    width: int
    headed: bool
    draw: Drawing = field(repr=False)
    elsewhere: str | None = None
    """Where else it can be had as a picture."""
    again: str | None = None
    """Where the very same is drawn again, if it need not be carried along."""
    number: OneNumber | None = None
    """What it shows, where that is one number: the page says it large, and there is nothing to draw."""

    @property
    def drawn(self) -> bool:
        """Whether there is a chart; if not, its table says everything."""
        return self._specifications is not None

    @property
    def title(self) -> str:
        """What the chart shows."""
        return _lines(self._heading, "text") or self.table.caption

    @property
    def words(self) -> str:
        """What it promises."""
        return _lines(self._heading, "subtitle")

    @property
    def specification(self) -> dict[str, Any]:
        """What is drawn, with its title, for the width that was asked for."""
        return {} if self._specifications is None else self._specifications[0]

    @property
    def wide(self) -> str:
        """The specification for the width that was asked for."""
        return "null" if self._specifications is None else self._embedded(self._specifications[0])

    @property
    def narrow(self) -> str:
        """The specification for a telephone; without the rows that are those of the wide one."""
        if self._specifications is None:
            return "null"
        wide, narrow = self._specifications
        there = wide.get("datasets", {})
        own = {name: rows for name, rows in narrow.get("datasets", {}).items() if rows != there.get(name)}
        return self._embedded({**narrow, "datasets": own})

    def _embedded(self, spec: dict[str, Any]) -> str:
        return _embedded(spec if self.headed else {key: spec[key] for key in spec if key != "title"})

    @property
    def _heading(self) -> object:
        return {} if self._specifications is None else self._specifications[0].get("title", {})

    @cached_property
    def _specifications(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Both, at the first look at either; None for what cannot be drawn, which must not stop the page.

        Our charts are checked by their tests; checking every row again would take most of the time.
        """
        from altair.utils.schemapi import debug_mode

        try:
            with debug_mode(False):
                return _specification(self.draw(self.width)), _specification(self.draw(NARROW))
        except BlowfishError:
            return None


def figure(
    draw: Drawing,
    table: Table,
    *,
    id: str,  # noqa: A002
    width: int = WIDE,
    headed: bool = True,
    elsewhere: str | None = None,
    again: str | None = None,
    number: OneNumber | None = None,
) -> Figure:
    """A chart and its table twin; ``id`` is unique on its page. Not ``headed`` if the page says its title."""
    return Figure(id, table, width, headed, draw, elsewhere, again, number)


def _specification(chart: Any) -> dict[str, Any]:
    """The chart without colours, which follow the theme of whoever looks; its rows have short names."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    text = json.dumps(spec, ensure_ascii=False)
    for number, name in enumerate(spec.get("datasets", {})):
        text = text.replace(f'"{name}"', f'"{number}"')
    short: dict[str, Any] = json.loads(text)
    return short


def _lines(title: object, part: str) -> str:
    lines = title.get(part, "") if isinstance(title, dict) else title
    return " ".join(lines) if isinstance(lines, list) else str(lines)


def _embedded(spec: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(spec, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


pictures: Final = Router(include_in_schema=False)

_LONGEST: Final = 7_000  # characters; servers in front take addresses of 8,000
_HEADERS: Final = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}


def picture_address(figure: Figure, caller: Caller | None, server: Server) -> str | None:
    """Where the picture of a figure can be had, for ``&dark=true`` to follow; None if nowhere."""
    if figure.again is not None:
        return figure.again
    text = server.seal(_purpose(caller)).encrypt(packed(figure.specification)).decode().rstrip("=")
    if len(text) <= _LONGEST:
        return f"/pictures?of={text}"
    return None if figure.elsewhere is None else f"{figure.elsewhere}?"


@pictures.get("/pictures")
def picture(request: Request, caller: PageVisitor, of: str = "", dark: bool = False) -> Response:
    """The picture of a figure on a page that the caller has seen."""
    return pictured(_opened(of, caller, server_of(request)), dark=dark)


def pictured(specification: dict[str, Any], *, dark: bool) -> Response:
    """The picture of a specification, in one theme."""
    return Response(picture_of(specification, dark=dark), media_type="image/svg+xml", headers=_HEADERS)


def _opened(text: str, caller: Caller | None, server: Server) -> dict[str, Any]:
    sealed = text.encode(errors="replace") + b"=" * (-len(text) % 4)
    for reader in (caller, None):
        try:
            body = server.seal(_purpose(reader)).decrypt(sealed)
            return unpacked(body)
        except (InvalidToken, NotPacked):
            continue
    raise NotFound("There is no such picture for you.", fixes=("load its page again",))


def _purpose(reader: Caller | None) -> str:
    return "pictures for everyone" if reader is None else f"pictures for the user {reader.name}"
