"""One connection: what is answered to each message of whoever is there.

A message is handled by a generator. It yields what may take a while, gets back what came of it, and leaves
what is to be sent in ``out``; so the order of messages is kept, and nobody else waits.
"""

from __future__ import annotations

from typing import final

from blowfishdb.entrypoints.pgwire import protocol
from blowfishdb.entrypoints.pgwire.arrival import Arrival
from blowfishdb.entrypoints.pgwire.copying import copied
from blowfishdb.entrypoints.pgwire.door import Door
from blowfishdb.entrypoints.pgwire.errors import PROTOCOL_VIOLATION, Refusal
from blowfishdb.entrypoints.pgwire.extended import Extended, Handling
from blowfishdb.entrypoints.pgwire.portals import Shelf
from blowfishdb.entrypoints.pgwire.protocol import Body, Malformed, StartUp
from blowfishdb.entrypoints.pgwire.runner import Runner
from blowfishdb.entrypoints.pgwire.statements import split

_QUERY, _SYNC, _TERMINATE = b"QSX"
_IGNORED = frozenset(b"Hdcf")
"""Flush, for nothing waits to be sent, and what is left over from a COPY that nobody asked for."""


@final
class Session:
    """The state of one connection and what it answers."""

    def __init__(self, door: Door, address: str, *, encrypted: bool) -> None:
        self.out = bytearray()
        self.over = False
        self._shelf = Shelf()
        self._arrival = Arrival(door, address, self._shelf, self.out, encrypted=encrypted)
        self._runner: Runner | None = None
        self._extended: Extended | None = None
        self._skipping = False

    def start(self, message: StartUp) -> None:
        """The first message: who wants to come in."""
        self._arrival.start(message)

    @property
    def signed_in(self) -> bool:
        """Whether it is known who is there."""
        return self._runner is not None

    def authenticate(self, body: bytes) -> Handling:
        """The messages by which a client shows that it knows the password."""
        yield from self._arrival.authenticate(body)
        runner = self._runner = self._arrival.runner
        if runner is not None:
            self._extended = Extended(runner, self._shelf, self.out)

    # --- messages -------------------------------------------------------------------------------

    def handle(self, letter: int, body: bytes) -> Handling:
        """Answer one message of someone who is signed in."""
        runner = self._runner
        assert runner is not None
        if letter == _QUERY:
            yield from self._query(runner, body)
        elif letter == _SYNC:
            self._skipping = False
            self._ready(runner)
        elif letter == _TERMINATE:
            self.over = True
        elif letter not in _IGNORED and not self._skipping:
            assert self._extended is not None
            try:
                yield from self._extended.handle(letter, Body(body))
            except (Refusal, Malformed) as refusal:
                self._skipping = True
                self._refuse(runner, refusal)

    def _query(self, runner: Runner, body: bytes) -> Handling:
        """A message with statements, one after another until one is refused."""
        try:
            sent = Body(body)
            text = sent.text()
            sent.end()
            yield from self._simple(runner, text)
        except (Refusal, Malformed) as refusal:
            self._refuse(runner, refusal)
        self._skipping = False
        self._shelf.forget("")
        self._shelf.close("")
        if not self.over:
            self._ready(runner)

    def _simple(self, runner: Runner, text: str) -> Handling:
        statements = split(text)
        if not statements:
            self.out += protocol.EMPTY
            return
        runner.executor.block.several = len(statements) > 1
        for statement in statements:
            if statement.parameters:
                raise Refusal("42P02", f"there is no parameter ${statement.parameters}")
            table = yield from runner.run(statement, {})
            self.out += runner.said(table)
            self.out += copied(table) if table.tag.startswith("COPY") else table.plain

    def _ready(self, runner: Runner) -> None:
        block = runner.executor.block
        self.out += block.ready()
        self.out += protocol.READY[block.status]

    def _refuse(self, runner: Runner, refusal: Refusal | Malformed) -> None:
        if isinstance(refusal, Malformed):  # its length was right, so the next message is found
            refusal = Refusal(PROTOCOL_VIOLATION, str(refusal))
        self.out += refusal.to_bytes()
        self.over |= refusal.fatal
        self.out += runner.executor.block.failed()

    def leave(self) -> None:
        """The connection is over; what it waited for goes on only if rows are being read."""
        self.over = True
        self._arrival.leave()
