"""The door: where clients connect, how many may, and what happens when they leave or give up.

Bytes are taken apart in the event loop, and what is known already is answered there; everything else runs in
threads, so many at a time. A connection handles one message after another, and reads no further meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import os
import ssl
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, final

from blowfishdb.adapters.accounts import Limits as PasswordLimits
from blowfishdb.adapters.store.once import Scratch
from blowfishdb.adapters.wire_passwords import WirePasswords
from blowfishdb.core.errors import BlowfishError, InvalidInput, TooManyAttempts
from blowfishdb.entrypoints.pgwire import protocol
from blowfishdb.entrypoints.pgwire.catalogue import Catalogue
from blowfishdb.entrypoints.pgwire.errors import (
    IDLE,
    NOT_AUTHORIZED,
    SHUTDOWN,
    TOO_MANY,
    Refusal,
    refusal_of,
    unexpected,
)
from blowfishdb.entrypoints.pgwire.execution import Catalogues, Kept
from blowfishdb.entrypoints.pgwire.protocol import Cancel, Encryption, Malformed, StartUp
from blowfishdb.entrypoints.pgwire.results import Table
from blowfishdb.entrypoints.pgwire.session import Handling, Session
from blowfishdb.entrypoints.server.middleware import LOGGER, Metrics
from blowfishdb.entrypoints.server.server import Server

_PAUSE: Final = 262_144  # bytes that may wait before no more are read
_CANCELS: Final = "wire cancels"
_LOOK: Final = 0.5  # seconds between looks at what other workers were told


@final
@dataclass(frozen=True)
class Limits:
    """How many connections there may be, how long one may say nothing, and how long coming in may take."""

    total: int = 500
    per_user: int = 250
    idle_seconds: float = 3600.0
    sign_in_seconds: float = 30.0

    def __post_init__(self) -> None:
        if min(self.total, self.per_user, self.idle_seconds, self.sign_in_seconds) <= 0:
            raise InvalidInput("Connections need room and time.")


@final
class Door(Catalogues):
    """Everything that the connections of one worker share."""

    def __init__(
        self,
        server: Server,
        metrics: Metrics,
        *,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.server = server
        self.limits = limits
        self.tls = tls
        guesses = PasswordLimits(server.settings.wrong_passwords)
        self.passwords = WirePasswords(server.workspace.store, limits=guesses)
        self._metrics = metrics
        self._numbers = itertools.count(os.getpid() * 1_000 % 2**30 + 1)
        self._inside: dict[Session, str | None] = {}
        self._by_user: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._catalogue: tuple[object, Catalogue, Kept] | None = None
        self._threads = ThreadPoolExecutor(server.settings.questions_at_once, thread_name_prefix="pgwire")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._watch: asyncio.Task[None] | None = None

    # --- opening and closing ----------------------------------------------------------------------

    async def open(self, host: str, port: int) -> int:
        """Listen from now on; the port, which is a free one for 0."""
        self._loop = asyncio.get_running_loop()
        self._listening = await self._loop.create_server(
            lambda: _Connection(self), host, port, reuse_port=hasattr(os, "SO_REUSEPORT") or None, backlog=512
        )
        self._watch = self._loop.create_task(self._look_for_cancels())
        return int(self._listening.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Let nobody in any more, and tell those who are inside that it is over."""
        if self._listening is not None:
            self._listening.close()
        if self._watch is not None:
            self._watch.cancel()
        for connection in list(self._connections):
            connection.end(Refusal(SHUTDOWN, "terminating connection: the server ends", fatal=True))
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._catalogue is not None:
            self._catalogue[1].close()
            self._catalogue = None

    # --- what sessions share ------------------------------------------------------------------------

    def next_process(self) -> int:
        """A number for a connection."""
        return next(self._numbers)

    def plain_allowed(self, address: str) -> bool:
        """Whether someone may come in unencrypted: from this machine alone."""
        try:
            return ipaddress.ip_address(address).is_loopback
        except ValueError:
            return False

    def connected(self, connection: _Connection) -> bool:
        """Count a connection; False if there are too many."""
        self._connections.add(connection)
        return len(self._connections) <= self.limits.total

    def enter(self, session: Session, user: str) -> bool:
        """Count someone who is signed in; False if too many connections are theirs."""
        with self._lock:
            if self._by_user[user] >= self.limits.per_user:
                return False
            self._by_user[user] += 1
            self._inside[session] = user
            return True

    def left(self, connection: _Connection, session: Session | None) -> None:
        """A connection is over."""
        self._connections.discard(connection)
        with self._lock:
            user = self._inside.pop(session, None) if session is not None else None
            if user is not None:
                self._by_user[user] -= 1
                if not self._by_user[user]:
                    del self._by_user[user]

    def later(self, seconds: float, call: Callable[[], object]) -> threading.Timer:
        """Call something after so many seconds, unless it is cancelled before."""
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()
        return timer

    def work(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Do something in a thread."""
        assert self._loop is not None
        return self._loop.run_in_executor(self._threads, call)

    def count(self, route: str, code: str, seconds: float) -> None:
        """Note a statement among the requests of the server."""
        status = 200 if code == "00000" else 500 if code == "XX000" else 400
        self._metrics.count(route, "SQL", status, seconds)

    def recall(self, key: Any) -> list[Table]:
        """A list in which an answer can be kept, as long as nothing in the workspace changes."""
        nothing: list[Table] = []
        return self.server.workspace.store.recalled(("wire answer", key), lambda _: nothing)

    # --- the catalogue --------------------------------------------------------------------------------

    def current(self) -> tuple[Catalogue, Kept]:
        """The catalogue over the datasets of this moment."""
        workspace = self.server.workspace
        infos = [workspace.facts(name) for name in workspace.datasets()]
        state = tuple((info.name, info.domain, info.policy_version) for info in infos)
        with self._lock:
            held = self._catalogue
            if held is None or held[0] != state:
                held = self._catalogue = (state, Catalogue(infos), Kept(OrderedDict()))
            store = workspace.store
        store.recalled(("wire catalogue",), lambda _: held)
        return held[1], held[2]

    def at_hand(self) -> tuple[Catalogue, Kept] | None:
        """The catalogue, if nothing in the workspace was changed since it was last looked at."""
        store = self.server.workspace.store
        if not store.remembers(("wire catalogue",)):
            return None
        held = store.recalled(("wire catalogue",), lambda _: None)
        return None if held is None else (held[1], held[2])

    # --- giving up ------------------------------------------------------------------------------------

    def cancel(self, process: int, secret: int) -> None:
        """Give up what a connection waits for; one of another worker is told through the workspace."""
        if self._cancelled_here(process, secret):
            return
        scratch: Scratch = self.server.scratch
        with contextlib.suppress(BlowfishError):
            scratch.put(_CANCELS, f"{process} {secret}", "stop")

    def _cancelled_here(self, process: int, secret: int) -> bool:
        for session in list(self._inside):
            if session.process == process and session.secret == secret:
                running = session.running
                if running is not None:
                    running.asked = True
                    running.cancel.leave()
                return True
        return False

    async def _look_for_cancels(self) -> None:
        """What other workers were told to give up, looked for while something runs for long."""
        while True:
            await asyncio.sleep(_LOOK)
            waiting = [s for s in list(self._inside) if s.running is not None and not s.running.asked]
            for session in waiting:
                note = f"{session.process} {session.secret}"
                with contextlib.suppress(BlowfishError):
                    if await self.work(lambda note=note: self.server.scratch.get(_CANCELS, note)) is not None:
                        self._cancelled_here(session.process, session.secret)
                        await self.work(lambda note=note: self.server.scratch.drop(_CANCELS, note))


@final
class _Connection(asyncio.Protocol):
    """The bytes of one connection."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._busy = False
        self._writable = True
        self._paused = False
        self._started = False
        self._encrypted = False
        self._timer: asyncio.TimerHandle | None = None
        self._address = "nowhere"
        self._task: asyncio.Future[None] | None = None

    # --- what asyncio calls -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else "nowhere"
        if not self._door.connected(self):
            self.end(Refusal(TOO_MANY, "sorry, too many clients already", fatal=True))
            return
        self._wait(self._door.limits.sign_in_seconds)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _PAUSE and self._busy and not self._paused and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True
        self._drain()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._door.left(self, self._session)
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self._session.over = True
            if self._session.running is not None:
                self._session.running.cancel.leave()
        self._buffer.clear()
        self._transport = None

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._drain()

    # --- messages ------------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Handle the messages that are there, as long as none takes a while."""
        try:
            while not self._busy and self._writable and self._transport is not None:
                if not self._next():
                    break
        except Malformed as error:
            self.end(Refusal("08P01", str(error), fatal=True))
        except Refusal as refusal:
            self.end(refusal)
        except TooManyAttempts as error:
            self.end(Refusal("53400", error.message, hint=error.fixes[0] if error.fixes else "", fatal=True))
        self._flush()

    def _next(self) -> bool:
        """Whether there was a message."""
        session = self._session
        if session is None or not self._started:
            return self._first()
        longest = self._door.server.settings.longest_body if session.signed_in else protocol.LONGEST_START
        message = protocol.next_message(self._buffer, longest)
        if message is None:
            return False
        letter, body = message
        if not session.signed_in:
            if letter != ord("p"):
                raise Malformed("expected a password response")
            self._step(session, session.authenticate(body), None)
        else:
            if letter == ord("p"):
                raise Malformed("nobody was asked for a password")
            self._step(session, session.handle(letter, body), None)
        return True

    def _first(self) -> bool:
        message = protocol.first_message(self._buffer)
        match message:
            case None:
                return False
            case Cancel():
                self._busy = True
                self._task = asyncio.ensure_future(self._cancel(message))
                return False
            case Encryption():
                return self._encryption(message)
            case StartUp():
                self._session = Session(self._door, self._address, encrypted=self._encrypted)
                self._started = True
                self._session.start(message)
        return True

    def _encryption(self, asked: Encryption) -> bool:
        assert self._transport is not None
        if not asked.tls or self._door.tls is None or self._encrypted:
            self._transport.write(b"N")
            return True
        if self._buffer:
            raise Malformed("received unencrypted data after SSL request")
        self._transport.write(b"S")
        self._busy = True
        self._task = asyncio.ensure_future(self._encrypt(self._door.tls))
        return False

    async def _encrypt(self, context: ssl.SSLContext) -> None:
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        try:
            transport = await loop.start_tls(self._transport, self, context, server_side=True)
        except (OSError, ssl.SSLError):
            self._leave()
            return
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._encrypted, self._busy = transport, True, False
        self._drain()

    async def _cancel(self, asked: Cancel) -> None:
        with contextlib.suppress(BlowfishError):
            await self._door.work(lambda: self._door.cancel(asked.process, asked.secret))
        self._leave()

    def _step(self, session: Session, handling: Handling, sent: Any) -> None:
        """Go on with a message until it is answered, or until something takes a while."""
        try:
            work = handling.send(sent)
        except StopIteration:
            self._done(session)
            return
        self._busy = True
        self._task = asyncio.ensure_future(self._go_on(session, handling, work))

    async def _go_on(self, session: Session, handling: Handling, work: Callable[[], Any]) -> None:
        try:
            while True:
                try:
                    result = await self._door.work(work)
                except asyncio.CancelledError:
                    handling.close()
                    raise
                except Exception as error:
                    work = handling.throw(error)
                    continue
                work = handling.send(result)
        except StopIteration:
            pass
        except Refusal as refusal:
            self.end(refusal)
        except Malformed as error:
            self.end(Refusal("08P01", str(error), fatal=True))
        except BlowfishError as error:
            self.end(_fatal(refusal_of(error, shown_places=False, reference="")))
        except RuntimeError:
            self._leave()  # the server ends, and takes no more work
            return
        except Exception as error:
            LOGGER.error('{"method": "SQL", "route": "pgwire", "problem": "%s"}', type(error).__name__)
            self.end(_fatal(unexpected("pgwire")))
        self._busy = False
        self._done(session)
        if self._paused and self._transport is not None:
            self._transport.resume_reading()
            self._paused = False
        self._drain()

    def _done(self, session: Session) -> None:
        self._flush()
        if session.over:
            self._leave()
        elif session.signed_in:
            self._wait(self._door.limits.idle_seconds)

    def _flush(self) -> None:
        session = self._session
        if session is not None and session.out and self._transport is not None:
            self._transport.write(bytes(session.out))
            session.out.clear()

    # --- the end -------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """End the connection if nothing comes for so long."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._silent)

    def _silent(self) -> None:
        if self._busy:
            self._wait(self._door.limits.idle_seconds)
            return
        signed_in = self._session is not None and self._session.signed_in
        why = "nothing was asked for a long time" if signed_in else "coming in took too long"
        self.end(Refusal(IDLE if signed_in else NOT_AUTHORIZED, f"terminating connection: {why}", fatal=True))

    def end(self, refusal: Refusal) -> None:
        """Say why, and close."""
        if self._transport is not None:
            self._flush()
            self._transport.write(_fatal(refusal).to_bytes())
        self._leave()

    def _leave(self) -> None:
        if self._session is not None:
            self._session.over = True
        if self._transport is not None:
            self._transport.close()


def _fatal(refusal: Refusal) -> Refusal:
    return Refusal(refusal.code, refusal.message, hint=refusal.hint, detail=refusal.detail, fatal=True)


def tls_context(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """What a certificate and its key make of a connection; None without them."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context
