"""HTTP as it is read from a connection: a head that never ends is not kept in memory for ever."""

from __future__ import annotations

from typing import Any, Final, final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LONGEST_HEAD: Final = 65_536  # bytes of an address and headers; what else came in one piece with them counts
_TOO_LONG: Final = "The head of this request is too long."


@final
class BoundedHeads(HttpToolsProtocol):
    """Bodies are counted where they are read; what comes before, between and behind their parts is here."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._idle = 0

    def data_received(self, data: bytes) -> None:
        """Read on, unless too much came that is neither a whole head nor part of a body."""
        self._idle += len(data)
        super().data_received(data)
        if self._idle > _LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response(_TOO_LONG)

    def on_headers_complete(self) -> None:
        """A whole head."""
        super().on_headers_complete()
        self._idle = 0

    def on_body(self, body: bytes) -> None:
        """Part of a body."""
        super().on_body(body)
        self._idle = 0

    def on_message_complete(self) -> None:
        """A whole request."""
        super().on_message_complete()
        self._idle = 0
