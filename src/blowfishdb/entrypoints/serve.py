"""Serving a workspace: one process or several on the same file or database, and a clean end.

Every worker opens the workspace by itself; the ledger sees to it that they agree. On SIGTERM or Ctrl-C no new
request is taken, questions under way are answered and settled within ``ending_seconds`` or else given up, and
only then the files are let go. Within ten seconds it is over, also where a source hangs.

How people reach a server safely: by TLS of its own, or through a server in front that speaks it.

What a request says about where it came from (``X-Forwarded-For``, ``X-Forwarded-Proto``) can be written by
anybody, so it is believed only from addresses that whoever starts the server names.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import logging.config
import math
import os
import socket
import ssl
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.server.api.datasets import usual_places
from blowfishdb.entrypoints.server.server import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from blowfishdb.entrypoints.pgwire.listener import Listener
    from blowfishdb.entrypoints.server.middleware import Metrics
    from blowfishdb.entrypoints.server.server import Server


_THIS_MACHINE: Final = ("127.0.0.1", "::1")


@final
@dataclass(frozen=True)
class Doors:
    """The files of a certificate, or the servers in front; neither for plain HTTP.

    ``https`` says that people come through TLS, here or at a server in front.
    """

    certificate: str | None = None
    key: str | None = None
    proxies: tuple[str, ...] = ()
    https: bool = False

    @classmethod
    def of(
        cls,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        behind_proxy: bool = False,
        proxies: Iterable[str] = (),
    ) -> Doors:
        """Checked before anything is started; ``behind_proxy`` means TLS at a server in front."""
        named = tuple(_network(text) for text in proxies)
        if certificate is None and key is None:
            return cls(None, None, named or (_THIS_MACHINE if behind_proxy else ()), behind_proxy)
        if behind_proxy:
            raise InvalidInput(
                "TLS is spoken either here or by a server in front.",
                fixes=("--tls-cert and --tls-key", "--https-behind-proxy"),
            )
        if certificate is None or key is None:
            raise InvalidInput(
                "TLS needs a certificate and its key.", fixes=("--tls-cert and --tls-key together",)
            )
        _check_files(certificate, key)
        return cls(str(certificate.resolve()), str(key.resolve()), named, True)


PLAIN: Final = Doors()


@final
@dataclass(frozen=True)
class WireDoor:
    """Where database clients are let in: an address, a port, and the certificate that they see."""

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None

    @classmethod
    def of(cls, host: str, port: int, doors: Doors, *, workers: int = 1) -> WireDoor:
        """Checked before anything is started: from elsewhere nobody comes in without TLS."""
        if port == 0 and workers > 1:
            raise InvalidInput("Several workers share one port, so it is named.", fixes=("--pgwire 5433",))
        if doors.certificate is None and not _loopback(host):
            raise InvalidInput(
                f"{host} can be reached from other machines, and database clients are let in from there by "
                "TLS alone, which is spoken here.",
                fixes=("--tls-cert and --tls-key", "--host 127.0.0.1"),
            )
        return cls(host, port, doors.certificate, doors.key)

    def to_text(self) -> str:
        """As a text, by which a server tells its workers."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> WireDoor:
        """From its text."""
        return cls(**json.loads(text))

    async def opened(self, server: Server, metrics: Metrics) -> Listener:
        """Open it; the log says where."""
        from blowfishdb.entrypoints.pgwire.door import Door
        from blowfishdb.entrypoints.pgwire.listener import Listener, tls_context

        listener = Listener(Door(server, metrics, tls=tls_context(self.certificate, self.key)))
        port = await listener.open(self.host, self.port)
        logging.getLogger("uvicorn").info("PostgreSQL clients are let in at %s port %d.", self.host, port)
        return listener


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError:
        raise InvalidInput(
            "A server in front is named by its address.", fixes=("127.0.0.1", "10.0.0.0/24", "fd00::/8")
        ) from None


def _check_files(certificate: Path, key: Path) -> None:
    for path, what in ((certificate, "certificate"), (key, "key")):
        if not path.is_file():
            raise InvalidInput(f"There is no {what} at '{path}'.", fixes=("a file in PEM form",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError):
        raise InvalidInput(
            f"'{certificate}' and '{key}' cannot be used for TLS.",
            fixes=(
                "a certificate (with those that vouch for it) and the key that it was made for, in PEM form",
                "a key without a password, readable by the server alone",
            ),
        ) from None


def _no_password() -> str:
    """Nobody is there to type one when a server starts by itself."""
    raise ValueError


_WORKSPACE: Final = "BLOWFISHDB_WORKSPACE"
_SETTINGS: Final = "BLOWFISHDB_SETTINGS"
_WIRE: Final = "BLOWFISHDB_PGWIRE"
_SHARED_METRICS: Final = "PROMETHEUS_MULTIPROC_DIR"
_LAWS: Final = "BLOWFISHDB_LAWS"
_THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_PATIENCE: Final = 60  # seconds that a worker may be too busy to say that it is alive
_LEAVING: Final = 3.0  # seconds in which a worker that has told everyone must have ended

LOGS: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(message)s"},
        "server": {"()": "blowfishdb.entrypoints.server.middleware.ServerLines"},
    },
    "handlers": {
        "requests": {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "line"},
        "server": {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "server"},
    },
    "loggers": {
        "blowfishdb.server": {"handlers": ["requests"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["server"], "level": "INFO", "propagate": False},
    },
}
"""One JSON line for each request and for each thing that happens to the server, on standard error."""


def serve(
    workspace: str | Path,
    host: str = "127.0.0.1",
    port: int = 8787,
    workers: int = 1,
    open_browser: bool = False,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    doors: Doors = PLAIN,
    pgwire: int | None = None,
) -> None:
    """Serve a workspace until the process is asked to end; at port ``pgwire`` to database clients as well."""
    import uvicorn

    from blowfishdb.entrypoints.http import BoundedHeads
    from blowfishdb.workspace.embedded import Workspace

    if workers < 1:
        raise InvalidInput("A server needs at least one worker.")
    wire = None if pgwire is None else WireDoor.of(host, pgwire, doors, workers=workers)
    address = str(workspace) if "://" in str(workspace) else str(Path(workspace).resolve())
    Workspace(address).close()  # made or migrated once, before workers race to; and a wrong path is told here
    sources = settings.sources or usual_places(address)
    settings = replace(settings, https=settings.https or doors.https, sources=sources)
    _warn_if_open(host, settings)
    if open_browser:
        threading.Thread(target=_open_browser, args=(host, port, doors), daemon=True).start()
    told = {_WORKSPACE: address, _SETTINGS: settings.to_text()}
    told |= {} if wire is None else {_WIRE: wire.to_text()}
    with _shared_folders(workers) as shared, _environment({**told, **shared}):
        uvicorn.run(
            "blowfishdb.entrypoints.serve:worker",
            factory=True,
            host=host,
            port=port,
            workers=workers,
            http=BoundedHeads,
            loop="asyncio",  # the door for database clients asks a transport what asyncio's are
            log_config=LOGS,
            access_log=False,
            server_header=False,
            timeout_worker_healthcheck=_PATIENCE,
            timeout_graceful_shutdown=math.ceil(settings.ending_seconds),
            ssl_certfile=doors.certificate,
            ssl_keyfile=doors.key,
            proxy_headers=bool(doors.proxies),
            forwarded_allow_ips=list(doors.proxies),
        )


def worker() -> FastAPI:
    """The app of one worker, from what the server told it."""
    from blowfishdb.adapters.laws import LawFolder
    from blowfishdb.entrypoints.server.app import create_app
    from blowfishdb.mechanisms.linear.simulation import VERSION, share_laws

    settings = Settings.from_text(os.environ[_SETTINGS])
    if _LAWS in os.environ:
        share_laws(LawFolder(os.environ[_LAWS], VERSION))
    app = create_app(os.environ[_WORKSPACE], settings=settings)
    app.state.leaving = _LEAVING
    if _WIRE in os.environ:
        app.state.door = WireDoor.from_text(os.environ[_WIRE]).opened
    return app


def _warn_if_open(host: str, settings: Settings) -> None:
    """Passwords may be about to travel in the clear."""
    if settings.https or _loopback(host):
        return
    logging.config.dictConfig(LOGS)
    logging.getLogger("uvicorn").warning(
        "%s can be reached from other machines, and passwords travel to it unencrypted. Give it a "
        "certificate (--tls-cert, --tls-key), or a server in front that speaks TLS (--https-behind-proxy).",
        host,
    )


def _loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _shared_folders(workers: int) -> Iterator[dict[str, str]]:
    """Where several workers put their numbers together, and tell each other laws of noise; one has its own.

    Linear algebra is kept to one thread: as many as there are processors are at work already.
    """
    if workers == 1:
        yield {}
        return
    with (
        tempfile.TemporaryDirectory(prefix="blowfishdb-metrics-") as metrics,
        tempfile.TemporaryDirectory(prefix="blowfishdb-laws-") as laws,
    ):
        yield {_SHARED_METRICS: metrics, _LAWS: laws, **dict.fromkeys(_THREADS, "1")}


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables that workers inherit, taken back afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _open_browser(host: str, port: int, doors: Doors) -> None:
    """Once somebody answers at the port."""
    for _ in range(100):
        try:
            with socket.create_connection((host, port), timeout=1):
                break
        except OSError:
            time.sleep(0.1)
    else:
        logging.getLogger("blowfishdb.server").warning("No page was opened: the server took too long.")
        return
    scheme = "https" if doors.certificate else "http"
    webbrowser.open(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/")
