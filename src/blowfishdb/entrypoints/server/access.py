"""Who is calling, and whether they may: the one gate that every route stands behind.

A caller is known by a token in the ``Authorization`` header, or by the cookie of someone who signed in. A
browser sends the cookie by itself, so whoever changes something with it must also send the text that only
our own pages know (``X-CSRF-Token``).

Who may see a page: the gates of the interface, for people in front of a browser.

A form carries the text that shows it was made for the one who sends it (the field ``csrf``). Nobody signed in
means to sign in first, which ``web.problem_page`` sees to.

What people are shown of an answer: everything but whose question it was and how the rows were read.

Others' names are for curators and auditors, and so is the SQL, which names tables and columns as the source
has them.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, final

from fastapi import Depends, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.concurrency import run_in_threadpool

from blowfishdb.adapters.accounts import network
from blowfishdb.adapters.tokens import Account, Purpose, Role, csrf_matches
from blowfishdb.core.errors import NotAllowed, NotSignedIn
from blowfishdb.entrypoints.server.server import Server, server_of
from blowfishdb.messages.answers import Answer, answer_summary
from blowfishdb.workspace.embedded import Workspace

CSRF_HEADER: Final = "X-CSRF-Token"
_THIS_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PASSED_ON: Final = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@final
@dataclass(frozen=True, eq=False)
class Caller:
    """Someone who is signed in: their account, and the workspace in their name.

    ``secret`` is the cookie they are signed in by; None for a token.
    """

    account: Account
    gateway: Workspace
    server: Server
    secret: str | None = None

    @property
    def name(self) -> str:
        """Their name."""
        return self.account.user

    @property
    def role(self) -> Role:
        """Their role, today."""
        return self.account.role

    @property
    def curator(self) -> bool:
        """Whether they decide."""
        return self.role is Role.CURATOR

    @property
    def analyst(self) -> bool:
        """Whether they only ask."""
        return self.role is Role.ANALYST

    @property
    def auditor(self) -> bool:
        """Whether they read the books."""
        return self.role is Role.AUDITOR


class Gate(ABC):
    """What stands before a route; a route without one is refused when the server starts."""

    @abstractmethod
    async def __call__(self, request: Request) -> Caller | None:
        """Let the request through, or raise."""


@final
class _Allowed(Gate):
    def __init__(self, roles: tuple[Role, ...]) -> None:
        self.roles = roles

    async def __call__(self, request: Request) -> Caller:
        caller = await who(request)
        if caller is None:
            raise _not_signed_in()
        caller.account.check_role(*self.roles)
        return caller


@final
class _Public(Gate):
    async def __call__(self, request: Request) -> Caller | None:
        return await who(request)


@final
class _Door(Gate):
    """Where people sign in: whoever they were before does not matter, only where they come from."""

    async def __call__(self, request: Request) -> Caller | None:
        server_of(request).rates.take(f"address:{network(address(request))}")
        return None


@final
class _Watching(Gate):
    """Whoever reads the books, and programs on this machine if the settings say so."""

    async def __call__(self, request: Request) -> Caller | None:
        caller = await who(request)
        if caller is not None:
            caller.account.check_role(Role.CURATOR, Role.AUDITOR)
        elif not (server_of(request).settings.loopback_metrics and from_this_machine(request)):
            raise _not_signed_in()
        return caller


def allowed(*roles: Role) -> _Allowed:
    """The gate for these roles; it yields the ``Caller``."""
    return _Allowed(roles)


signed_in: Final = allowed(*Role)
"""The gate for everyone who is signed in."""
public: Final = _Public()
"""The gate that is open; it yields the ``Caller`` if there is one."""
watching: Final = _Watching()
door: Final = _Door()

SignedIn = Annotated[Caller, Depends(signed_in)]
Curator = Annotated[Caller, Depends(allowed(Role.CURATOR))]
Asker = Annotated[Caller, Depends(allowed(Role.ANALYST, Role.CURATOR))]
BookReader = Annotated[Caller, Depends(allowed(Role.CURATOR, Role.AUDITOR))]
Anyone = Annotated[Caller | None, Depends(public)]


async def who(request: Request, field: str | None = None) -> Caller | None:
    """The one who sent a request, counted against what one caller may send; None for nobody.

    A token that is wrong or over is refused rather than overlooked, so that nobody works on signed out.
    ``field`` is what a form sent in place of the header, which a form cannot send.
    """
    server = server_of(request)
    bearer, cookie = _bearer(request), request.cookies.get(server.settings.cookie)
    if bearer is not None:
        account = await _holder(server, bearer, "api")
    elif cookie:
        account = await _holder(server, cookie, "session")
    else:
        account = None
    server.rates.take(f"user:{account.user}" if account else f"address:{network(address(request))}")
    if account is None:
        if bearer is not None:
            raise _not_signed_in()
        return None
    if bearer is None:
        _check_csrf(request, cookie or "", field)
    request.state.user, request.state.role = account.user, account.role
    secret = cookie if bearer is None else None
    return Caller(account, server.workspace.as_user(account.user), server, secret)


async def _holder(server: Server, text: str, purpose: Purpose) -> Account | None:
    """Whose token it is, today; other requests go on while the database has to be asked."""
    if server.tokens.at_hand(text):
        return server.tokens.who(text, purpose=purpose)
    return await run_in_threadpool(server.tokens.who, text, purpose=purpose)


def address(request: Request) -> str:
    """Where a request came from."""
    return request.client.host if request.client else "nowhere"


def from_this_machine(request: Request) -> bool:
    """Whether it was sent on the machine that the server runs on, to an address of that machine.

    The name it was sent to counts because a page from elsewhere can lead a browser here under its own name.
    Behind TLS everything comes from a server in front, perhaps on this machine, so nothing counts as such;
    nor does what another server says it passed on.
    """
    if any(name in request.headers for name in _PASSED_ON):
        return False
    here = (request.url.hostname or "") in _THIS_MACHINE
    try:
        near = ipaddress.ip_address(address(request)).is_loopback
    except ValueError:
        near = False
    return here and near and not server_of(request).settings.https


def check_gates(app: FastAPI) -> None:
    """Refuse to serve a route that nobody decided about."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        guarded = isinstance(route, APIRoute) and any(isinstance(g, Gate) for g in _calls(route.dependant))
        if not guarded:
            raise NotAllowed(
                f"Nobody said who may use {context.path}.", fixes=("give it a gate of access.py",)
            )


def _calls(dependant: Dependant) -> Iterator[object]:
    for needed in dependant.dependencies:
        yield needed.call
        yield from _calls(needed)


def _bearer(request: Request) -> str | None:
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None


def _check_csrf(request: Request, cookie: str, field: str | None) -> None:
    given = request.headers.get(CSRF_HEADER, "") if field is None else field
    if request.method not in _SAFE and not csrf_matches(cookie, given):
        raise NotAllowed(
            f"A browser that changes something must send the header {CSRF_HEADER}.",
            fixes=("the csrf text that GET /api/v1/me returns", "a token instead of a cookie"),
        )


def _not_signed_in() -> NotSignedIn:
    return NotSignedIn(
        "Nobody is signed in, or no longer.", fixes=("sign in", "a valid token in the Authorization header")
    )


_UPLOADS: Final = re.compile(r"/import/file|/datasets/[^/]+/refresh")
CSRF_FIELD: Final = "csrf"
_MOST_FIELDS: Final = 50_000  # a table of two thousand columns; how long a form may be is limited anyway
_OUR_OWN: Final = frozenset({"same-origin", "none"})


def takes_files(path: str) -> bool:
    """Whether files of rows are sent there, which are longer than anything else.

    A route of these asks for its gate before its form: what is long is read only for whoever may send it.
    """
    return _UPLOADS.fullmatch(path) is not None


@final
class PageGate(Gate):
    """For these roles; without any, for everyone, signed in or not."""

    def __init__(self, *roles: Role) -> None:
        self.roles = roles

    async def __call__(self, request: Request) -> Caller | None:
        _check_origin(request)
        if self.roles and takes_files(request.scope["path"]):
            await _check_sender(request, self.roles)
        caller = await who(request, await _field(request))
        request.state.caller, request.state.wanted = caller, self.roles
        if self.roles:
            if caller is None:
                raise NotSignedIn("Nobody is signed in, or no longer.", fixes=("sign in",))
            caller.account.check_role(*self.roles)
        return caller


async def _check_sender(request: Request, roles: tuple[Role, ...]) -> None:
    server, bearer = server_of(request), _bearer(request)
    secret = bearer or request.cookies.get(server.settings.cookie)
    account = await _holder(server, secret, "api" if bearer else "session") if secret else None
    if account is None:
        raise NotSignedIn("Nobody is signed in, or no longer.", fixes=("sign in",))
    account.check_role(*roles)


@final
class PageDoor(Gate):
    """Where people sign in: whoever they were before does not matter, only where they come from."""

    async def __call__(self, request: Request) -> Caller | None:
        _check_origin(request)
        server_of(request).rates.take(f"address:{network(address(request))}")
        return None


PageReader = Annotated[Caller, Depends(PageGate(*Role))]
PageCurator = Annotated[Caller, Depends(PageGate(Role.CURATOR))]
PageAsker = Annotated[Caller, Depends(PageGate(Role.ANALYST, Role.CURATOR))]
PageBookReader = Annotated[Caller, Depends(PageGate(Role.CURATOR, Role.AUDITOR))]
PageVisitor = Annotated[Caller | None, Depends(PageGate())]
PageEntry = Annotated[Caller | None, Depends(PageDoor())]


async def _field(request: Request) -> str | None:
    """What a form sent as its csrf field; None for anything that is not a form."""
    kind = request.headers.get("Content-Type", "")
    if request.method != "POST" or not kind.startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        return None
    value = (await request.form(max_fields=_MOST_FIELDS)).get(CSRF_FIELD, "")
    return _unmasked(value) if isinstance(value, str) else ""


def masked(csrf: str) -> str:
    """The csrf text as a page carries it: different each time, so that compressing it tells nothing."""
    mask = secrets.token_bytes(len(csrf) // 2)
    return mask.hex() + _xor(mask, bytes.fromhex(csrf)).hex()


def _unmasked(field: str) -> str:
    try:
        both = bytes.fromhex(field)
    except ValueError:
        return ""
    half = len(both) // 2
    return _xor(both[:half], both[half:]).hex() if len(both) == 2 * half else ""


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _check_origin(request: Request) -> None:
    """A form on somebody else's page must not even sign anybody in; browsers say where a form was."""
    origin = request.headers.get("Sec-Fetch-Site", "none")
    if request.method == "POST" and origin not in _OUR_OWN:
        raise NotAllowed("This form was sent from another site, so it was not read.", fixes=("our own page",))


def shown_to(answer: Answer, caller: Caller) -> Answer:
    """The answer without what the caller may not see."""
    if not caller.analyst:
        return answer
    own = answer.receipt.user == caller.name
    return replace(answer, receipt=replace(answer.receipt, sql="", user=answer.receipt.user if own else ""))


def answer_body(answer: Answer, caller: Caller) -> dict[str, Any]:
    """The answer as JSON; a name that is not shown is null."""
    body = shown_to(answer, caller).to_plain()
    body["receipt"]["user"] = body["receipt"]["user"] or None
    return {"id": answer.number, **body}


def summary_body(answer: Answer, caller: Caller) -> dict[str, Any]:
    """One line of a list of answers."""
    return answer_summary(shown_to(answer, caller))
