"""Where clients connect, and the bytes that they send and get.

Bytes are taken apart in the event loop, and what is known already is answered there; everything else runs in
threads, so many at a time. A connection handles one message after another, and reads no further meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, final

from blowfishdb.adapters.accounts import network
from blowfishdb.core.errors import BlowfishError, TooManyAttempts
from blowfishdb.entrypoints.pgwire import protocol
from blowfishdb.entrypoints.pgwire.door import Door
from blowfishdb.entrypoints.pgwire.errors import (
    IDLE,
    NOT_AUTHORIZED,
    SHUTDOWN,
    TOO_MANY,
    Refusal,
    refusal_of,
    unexpected,
)
from blowfishdb.entrypoints.pgwire.extended import Handling
from blowfishdb.entrypoints.pgwire.protocol import Cancel, Encryption, Malformed, StartUp
from blowfishdb.entrypoints.pgwire.session import Session
from blowfishdb.entrypoints.server.middleware import LOGGER

_PAUSE: Final = 262_144  # bytes that may wait before no more are read
_ROOM: Final = 16_384  # bytes of a connection that are taken at once
_LOOK: Final = 0.5  # seconds between looks at what other workers were told


@final
class Listener:
    """Listens at a port, and lets clients through a door."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self._connections: set[_Connection] = set()
        self._listening: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen from now on; the port, which is a free one for 0."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: _Connection(self.door, self._connections),
            host,
            port,
            reuse_port=hasattr(socket, "SO_REUSEPORT") or None,
            backlog=512,
        )
        self._watch = loop.create_task(self._look())
        return int(self._listening.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Let nobody in any more, and tell those who are inside that it is over."""
        if self._listening is not None:
            self._listening.close()
        if self._watch is not None:
            self._watch.cancel()
        for connection in list(self._connections):
            connection.end(Refusal(SHUTDOWN, "terminating connection: the server ends", fatal=True))
        self.door.close()

    async def _look(self) -> None:
        """See what other workers were told to give up, while somebody waits."""
        while True:
            await asyncio.sleep(_LOOK)
            self.door.write_log()
            if self.door.waiting:
                with contextlib.suppress(RuntimeError):  # it ends, and takes on no more work
                    await asyncio.wrap_future(self.door.work(self.door.look_for_cancels))


@final
class _Connection(asyncio.BufferedProtocol):
    """The bytes of one connection."""

    def __init__(self, door: Door, others: set[_Connection]) -> None:
        self._door = door
        self._loop = asyncio.get_running_loop()
        self._others = others
        self._buffer = bytearray()
        self._room = memoryview(bytearray(_ROOM))
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._busy = False
        self._writable = True
        self._paused = False
        self._started = False
        self._encrypted = False
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._address = "nowhere"
        self._task: asyncio.Future[None] | None = None

    # --- what asyncio calls -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else "nowhere"
        self._others.add(self)
        if len(self._others) > self._door.limits.total:
            self.end(Refusal(TOO_MANY, "sorry, too many clients already", fatal=True))
            return
        self._wait(self._door.limits.sign_in_seconds)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self._buffer += self._room[:nbytes]
        if len(self._buffer) > _PAUSE and self._busy and not self._paused and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True
        self._drain()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._others.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self._session.leave()
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
        """Counted like coming in: nobody has shown who asks, and other workers are told by a note."""
        with contextlib.suppress(BlowfishError):
            self._door.server.rates.take(f"address:{network(self._address)}")
            await asyncio.wrap_future(self._door.work(lambda: self._door.cancel(asked.process, asked.secret)))
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
                    result = await asyncio.wrap_future(self._door.work(work))
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
        if session.over:
            self._flush()
            self._leave()
            return
        if len(session.out) > _ROOM:  # otherwise what answers several messages is sent together
            self._flush()
        if session.signed_in:
            self._deadline = self._loop.time() + self._door.limits.idle_seconds
            if self._timer is None or self._timer.when() > self._deadline:
                self._wait(self._door.limits.idle_seconds)

    def _flush(self) -> None:
        session = self._session
        if session is not None and session.out and self._transport is not None:
            self._transport.write(bytes(session.out))
            session.out.clear()

    # --- the end -------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """End the connection if nothing comes for so long; the timer runs on while the deadline moves."""
        if self._timer is not None:
            self._timer.cancel()
        self._deadline = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._deadline, self._silent)

    def _silent(self) -> None:
        signed_in = self._session is not None and self._session.signed_in
        if self._busy:
            self._wait(self._door.limits.idle_seconds)
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._silent)
            return
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
