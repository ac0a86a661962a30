"""Signing in and out, and who one is."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from blowfishdb.adapters.accounts import Account
from blowfishdb.adapters.tokens import csrf
from blowfishdb.core.errors import NotAllowed, NotFound
from blowfishdb.entrypoints.api.access import Anyone, Caller, SignedIn, address, door, from_this_machine
from blowfishdb.entrypoints.api.bodies import DemoRole, SignIn
from blowfishdb.entrypoints.api.server import Server, server_of
from blowfishdb.entrypoints.api.settings import Settings
from blowfishdb.entrypoints.api.shapes import Me

router: Final = APIRouter(tags=["Signing in"])
demo: Final = APIRouter(tags=["Signing in"])
"""Only for the demonstration."""

_LONGEST_COOKIE: Final = 200

Door = Annotated[Caller | None, Depends(door)]


@router.post("/session", summary="Sign in")
def sign_in(request: Request, response: Response, body: SignIn, _: Door) -> Me:
    """Sign in with a password: sets a cookie, and returns the text that changes must be sent along with.

    After several wrong passwords the next one waits, longer each time: for a name at an address, and for an
    address. A second cookie lets this browser wait for nothing but its own mistakes; it lets nobody in.
    """
    server = server_of(request)
    settings, password = server.settings, body.password.get_secret_value()
    browser = request.cookies.get(settings.browser_cookie, "")[:_LONGEST_COOKIE] or None
    account = server.accounts.check_password(body.user, password, address=address(request), browser=browser)
    entered = _enter(server, account, request, response)
    known = server.accounts.remember(account, browser)
    _set_cookie(response, settings, settings.browser_cookie, known, settings.browser_lifetime)
    return entered


@router.delete("/session", summary="Sign out", status_code=204)
def sign_out(request: Request, response: Response, caller: Anyone) -> None:
    """End what the cookie stands for, everywhere; signing out twice does nothing."""
    settings = server_of(request).settings
    if caller is not None and caller.secret is not None:
        caller.server.tokens.revoke_text(caller.secret)
    response.delete_cookie(settings.cookie, path="/", secure=settings.https, httponly=True, samesite="strict")


@router.get("/me", summary="Who am I?")
def me(caller: SignedIn) -> Me:
    """The name and the role of the one who asks."""
    text = None if caller.secret is None else csrf(caller.secret)
    return Me(user=caller.name, role=caller.role, csrf=text, demo=caller.server.settings.demo)


@demo.post("/session/demo", summary="Choose a role (demonstration only)")
def play(request: Request, response: Response, body: DemoRole, _: Door) -> Me:
    """Become the user who is called like a role, without a password; only from this machine."""
    if not from_this_machine(request):
        raise NotAllowed("The demonstration is only for people on this machine.", fixes=("sign in",))
    server = server_of(request)
    account = server.accounts.find(body.role.value)
    if account is None or not account.active or account.role is not body.role:
        raise NotFound(f"The demonstration has no user '{body.role.value}'.")
    return _enter(server, account, request, response)


def _enter(server: Server, account: Account, request: Request, response: Response) -> Me:
    settings = server.settings
    before = request.cookies.get(settings.cookie)
    if before:
        server.tokens.revoke_text(before)
    text, _ = server.tokens.issue(account.name, purpose="session", lifetime=settings.session_lifetime)
    _set_cookie(response, settings, settings.cookie, text, settings.session_lifetime)
    request.state.user = account.name
    return Me(user=account.name, role=account.role, csrf=csrf(text), demo=settings.demo)


def _set_cookie(response: Response, settings: Settings, name: str, text: str, lifetime: timedelta) -> None:
    response.set_cookie(
        name,
        text,
        max_age=int(lifetime.total_seconds()),
        path="/",
        secure=settings.https,
        httponly=True,
        samesite="strict",
    )
