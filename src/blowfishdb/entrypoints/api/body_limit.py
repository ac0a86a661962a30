"""How long a request and its address may be; longer ones are refused before anything reads them."""

from __future__ import annotations

from typing import Final, final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blowfishdb.entrypoints.api.problems import problem

_LONGEST_PATH: Final = 1_500  # a name in it has at most 255 characters
_MOST_DIGITS: Final = 18


@final
class BodyLimit:
    """Refuses by the announced length, and counts what comes in case it was a lie."""

    def __init__(self, app: ASGIApp, *, longest: int) -> None:
        self._app = app
        self._longest = longest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if len(scope["path"]) > _LONGEST_PATH:
            detail = f"An address may have at most {_LONGEST_PATH:,} characters before its '?'."
            await problem(414, "too-long", detail, fixes=("a shorter one",))(scope, receive, send)
            return
        announced = Headers(scope=scope).get("Content-Length", "0")
        if not _is_length(announced) or int(announced) > self._longest:
            await self._refuse(scope, receive, send)
            return
        received, refused, started = 0, False, False

        async def counted() -> Message:
            nonlocal received, refused
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self._longest:
                    refused = True
                    return {"type": "http.disconnect"}  # whoever reads the body stops here
            return message

        async def unless_refused(message: Message) -> None:
            nonlocal started
            if refused and not started:
                return
            started = True
            await send(message)

        try:
            await self._app(scope, counted, unless_refused)
        except Exception:
            if not refused or started:
                raise
        if refused and not started:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"A request may have at most {self._longest:,} bytes."
        fixes = ("a smaller request", "a file that the server can read instead of its contents")
        headers = {"Connection": "close"}
        response = problem(413, "too-large", detail, fixes=fixes, headers=headers)
        await response(scope, receive, send)


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
