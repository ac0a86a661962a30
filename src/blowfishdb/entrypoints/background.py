"""A server in this very process, beside whatever else it does: for the demonstration's check of itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from blowfishdb.core.errors import SourceError

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

THIS_MACHINE: Final = "127.0.0.1"
_TRIED: Final = 20
_PATIENCE: Final = 10  # seconds that questions under way may take once the server is asked to end


def listening(host: str = THIS_MACHINE, port: int = 0) -> socket.socket:
    """A socket that already listens at ``port``, or at the next one that is free; 0 takes any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = [port, *range(port + 1, min(port + _TRIED, 65_536)), 0] if port else [0]
    for candidate in wanted:
        try:
            return socket.create_server((host, candidate), family=family, backlog=512)
        except OSError:
            continue
    raise SourceError(f"No port of {host} can be listened to.", fixes=("another host or port",))


def address_of(listener: socket.socket) -> str:
    """The address to type into a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_for(app: FastAPI, log_config: dict[str, Any] | None = None) -> uvicorn.Server:
    """The server of an app, on a socket that someone else opened: ``server.run(sockets=[…])``."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=log_config,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_PATIENCE,
        )
    )


@contextmanager
def serving(app: FastAPI, *, host: str = THIS_MACHINE, port: int = 0) -> Iterator[str]:
    """Serve an app while inside; the address is answered from the first moment on."""
    server = server_for(app)
    with listening(host, port) as listener:
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="blowfishdb-server", daemon=True
        )
        thread.start()
        try:
            yield address_of(listener)
        finally:
            server.should_exit = True
            thread.join()
