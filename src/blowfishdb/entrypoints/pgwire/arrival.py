"""Someone comes in: what they say first, how they show who they are, and what is ready for them then."""

from __future__ import annotations

import secrets
from typing import final

from blowfishdb.adapters.accounts import Attempt, network
from blowfishdb.adapters.wire_passwords import WireAccount
from blowfishdb.entrypoints.pgwire import protocol
from blowfishdb.entrypoints.pgwire.asking import Asker
from blowfishdb.entrypoints.pgwire.defaults import of_account
from blowfishdb.entrypoints.pgwire.door import Door
from blowfishdb.entrypoints.pgwire.errors import NOT_AUTHORIZED, TOO_MANY, WRONG_PASSWORD, Refusal
from blowfishdb.entrypoints.pgwire.execution import Executor
from blowfishdb.entrypoints.pgwire.extended import Handling
from blowfishdb.entrypoints.pgwire.portals import Shelf
from blowfishdb.entrypoints.pgwire.protocol import Body, StartUp
from blowfishdb.entrypoints.pgwire.reader import Reader
from blowfishdb.entrypoints.pgwire.runner import Runner
from blowfishdb.entrypoints.pgwire.scram import MECHANISM, Exchange, Wrong
from blowfishdb.entrypoints.pgwire.settings import REPORTED, Settings
from blowfishdb.entrypoints.pgwire.spending import Purse
from blowfishdb.entrypoints.server.access import Caller


@final
class Arrival:
    """One connection until it is known who is there."""

    def __init__(self, door: Door, address: str, shelf: Shelf, out: bytearray, *, encrypted: bool) -> None:
        self.door = door
        self.address = address
        self.encrypted = encrypted
        self.out = out
        self.process = door.next_process()
        self.secret = secrets.randbits(31)
        self.runner: Runner | None = None
        """What answers them, once they are in."""
        self._shelf = shelf
        self._known: WireAccount | None = None
        self._exchange: Exchange | None = None
        self._attempt: Attempt | None = None
        self._parameters: dict[str, str] = {}

    def start(self, message: StartUp) -> None:
        """The first message: who wants to come in."""
        self._parameters = message.parameters
        unknown = [name for name in message.parameters if name.startswith("_pq_.")]
        if message.minor or unknown:
            self.out += protocol.negotiate(0, unknown)
        user = message.parameters.get("user", "")
        if not user:
            raise Refusal(NOT_AUTHORIZED, "no PostgreSQL user name specified in startup packet", fatal=True)
        if message.parameters.get("replication", "").lower() not in ("", "false", "off", "no", "0"):
            raise Refusal("0A000", "Nothing is replicated through this door.", fatal=True)
        if not self.encrypted and not self.door.plain_allowed(self.address):
            raise Refusal(
                NOT_AUTHORIZED,
                "Connections from other machines must be encrypted.",
                hint="Try: sslmode=require",
                fatal=True,
            )
        self.out += protocol.sasl_mechanisms(MECHANISM)

    def authenticate(self, body: bytes) -> Handling:
        """The two messages by which a client shows that it knows the password."""
        name = self._parameters["user"]
        passwords = self.door.passwords
        if self._exchange is None:
            sent = Body(body)
            if sent.text() != MECHANISM:
                raise Refusal(NOT_AUTHORIZED, f"The way to come in is {MECHANISM}.", fatal=True)
            first = sent.take(sent.int32())
            sent.end()
            self.door.server.rates.take(f"address:{network(self.address)}")
            self._attempt = yield lambda: passwords.begin(name, self.address)
            self._known = yield lambda: passwords.find(name)
            stand_in = yield lambda: passwords.stand_in(name)
            self._exchange = Exchange(stand_in if self._known is None else self._known.verifier)
            try:
                self.out += protocol.sasl_continue(self._exchange.challenge(first))
            except Wrong:
                raise _wrong_password(name) from None
            return
        try:
            proof = self._exchange.verdict(body)
        except Wrong:
            raise _wrong_password(name) from None
        if self._known is None:
            raise _wrong_password(name)
        attempt = self._attempt
        assert attempt is not None
        yield lambda: passwords.succeeded(attempt)
        self.out += protocol.sasl_final(proof)
        yield self._enter

    def _enter(self) -> None:
        """Somebody is in: a workspace in their name, their settings, and what clients want to know."""
        assert self._known is not None
        account, server = self._known.account, self.door.server
        inside = self.door.enter(self.process, self.secret, account.user)
        if inside is None:
            raise Refusal(
                TOO_MANY,
                f"Through this door {self.door.limits.per_user} connections of one account may be open.",
                hint="Try: a pool of connections in the client",
                fatal=True,
            )
        settings = Settings(account.user)
        settings.begin_with(self.door.passwords.defaults(of_account(account.user)))
        caller = Caller(account, server.workspace.as_user(account.user), server)
        purse = Purse(account.user, server.scratch, settings)
        asker = Asker(caller, self.door.passwords, settings, purse)
        reader = Reader(account.user, self.process, settings)
        executor = Executor(asker, reader, self.door, self._shelf)
        for name, value in self._parameters.items():
            if name not in ("user", "database", "options", "replication") and not name.startswith("_pq_."):
                settings.set(name, value)
        for name, value in _options(self._parameters.get("options", "")):
            settings.set(name, value)
        settings.connected()
        self.out += protocol.AUTHENTICATED
        for key, shown in REPORTED.items():
            told = "off" if key == "in_hot_standby" else settings.get(key)
            self.out += protocol.parameter_status(shown, told)
        self.out += protocol.backend_key(self.process, self.secret)
        self.out += protocol.READY["I"]
        self.runner = Runner(self.door, inside, self._known, executor)

    def leave(self) -> None:
        """The connection is over."""
        if self.runner is not None:
            self.runner.leave()
        self.door.left(self.process, self.secret)


def _wrong_password(name: str) -> Refusal:
    return Refusal(
        WRONG_PASSWORD,
        f'password authentication failed for user "{name[:60]}"',
        detail="The name or the wire password is wrong; the password of the pages does not open this door.",
        hint="A curator issues a wire password: blowfishdb wire issue NAME",
        fatal=True,
    )


def _options(text: str) -> list[tuple[str, str]]:
    """``-c name=value`` and ``--name=value``, as libpq sends them."""
    words, found, at = text.replace("\\ ", "\x00").split(), [], 0
    while at < len(words):
        word = words[at].replace("\x00", " ")
        if word == "-c" and at + 1 < len(words):
            at += 1
            word = words[at].replace("\x00", " ")
        elif word.startswith("-c") or word.startswith("--"):
            word = word[2:]
        name, equals, value = word.partition("=")
        if equals:
            found.append((name.replace("-", "_"), value))
        at += 1
    return found
