"""Who may see a page: the gates of the interface, for people in front of a browser.

A form carries the text that shows it was made for the one who sends it (the field ``csrf``). Nobody signed in
means to sign in first, which ``problem_pages`` sees to.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Final, final

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from blowfishdb.adapters.accounts import Role
from blowfishdb.adapters.attempts import network
from blowfishdb.core.errors import NotAllowed, NotSignedIn
from blowfishdb.entrypoints.api.access import Caller, Gate, address, who
from blowfishdb.entrypoints.api.server import server_of

CSRF_FIELD: Final = "csrf"
_OUR_OWN: Final = frozenset({"same-origin", "none"})


@final
class PageGate(Gate):
    """For these roles; without any, for everyone, signed in or not."""

    def __init__(self, *roles: Role) -> None:
        self.roles = roles

    async def __call__(self, request: Request) -> Caller | None:
        _check_origin(request)
        caller = await run_in_threadpool(who, request, await _field(request))
        request.state.caller, request.state.wanted = caller, self.roles
        if self.roles:
            if caller is None:
                raise NotSignedIn("Nobody is signed in, or no longer.", fixes=("sign in",))
            caller.account.check_role(*self.roles)
        return caller


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
    value = (await request.form()).get(CSRF_FIELD, "")
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
