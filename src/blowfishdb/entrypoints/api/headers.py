"""Headers that keep a browser from doing with our pages what they were not made for."""

from __future__ import annotations

from typing import Final, final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FOR_DATA: Final = "default-src 'none'; frame-ancestors 'none'"
_FOR_PAGES: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
_ONE_YEAR: Final = "max-age=31536000; includeSubDomains"


@final
class SecurityHeaders:
    """On every response, unless the route has set a header itself."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app = app
        self._https = https
        self._always = {**_ALWAYS, **({"Strict-Transport-Security": _ONE_YEAR} if https else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                page = headers.get("Content-Type", "").startswith("text/html")
                headers.setdefault("Content-Security-Policy", _FOR_PAGES if page else _FOR_DATA)
                for name, value in self._always.items():
                    headers.setdefault(name, value)
                if self._https:
                    message["headers"] = [_secured(*each) for each in message["headers"]]
            await send(message)

        await self._app(scope, receive, with_headers)


def _secured(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A cookie that travels by TLS only, whatever it is for."""
    if name.lower() != b"set-cookie" or b"; secure" in value.lower():
        return name, value
    return name, value + b"; Secure"
