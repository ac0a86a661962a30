"""Tokens of one's own, and the users of a workspace.

Signing in and out, and who one is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from blowfishdb.adapters.tokens import Account, csrf
from blowfishdb.core.errors import InvalidInput, NotAllowed, NotFound
from blowfishdb.entrypoints.server.access import (
    Anyone,
    Caller,
    Curator,
    SignedIn,
    address,
    door,
    from_this_machine,
)
from blowfishdb.entrypoints.server.api.requests import DemoRole, NewToken, NewUser, SignIn, UserChange
from blowfishdb.entrypoints.server.api.responses import Me, TokenList, TokenMade, TokenShown, User, UserList
from blowfishdb.entrypoints.server.server import Server, Settings, server_of

router: Final = APIRouter(tags=["Accounts"])


@router.get("/tokens", summary="My tokens")
def tokens(caller: SignedIn) -> TokenList:
    """The caller's own tokens, the newest first; never their texts."""
    mine = caller.server.tokens.tokens(caller.name)
    return TokenList(tokens=[TokenShown(**token.to_plain()) for token in mine if token.purpose == "api"])


@router.post("/tokens", summary="Make a token", status_code=201)
def make_token(body: NewToken, caller: SignedIn) -> TokenMade:
    """A token for a program that works in the caller's name. Its text is shown this once."""
    settings = caller.server.settings
    lifetime = settings.token_lifetime if body.days is None else timedelta(days=body.days)
    text, token = caller.server.tokens.issue(caller.name, purpose="api", lifetime=lifetime, label=body.label)
    return TokenMade(token=text, **token.to_plain())


@router.delete("/tokens/{token_id}", summary="End a token", status_code=204)
def end_token(token_id: str, caller: SignedIn) -> None:
    """From now on it lets nobody in."""
    caller.server.tokens.revoke_token(token_id, owner=caller.name)


@router.get("/users", summary="All users")
def users(caller: Curator) -> UserList:
    """Everyone, also those who were revoked."""
    return UserList(users=[User(**account.to_plain()) for account in caller.server.accounts.list()])


@router.post("/users", summary="Let someone in", status_code=201)
def add_user(body: NewUser, caller: Curator) -> User:
    """A new user; a name is never given away a second time."""
    password = None if body.password is None else body.password.get_secret_value()
    return User(**caller.server.accounts.add(body.user, body.role, password, by=caller.name).to_plain())


@router.patch("/users/{user}", summary="Change a role or a password")
def change_user(user: str, body: UserChange, caller: Curator) -> User:
    """Another role counts from the next request on; another password signs the user out everywhere."""
    accounts = caller.server.accounts
    if body.role not in (None, caller.role):
        _check_other(user, caller)
    if body.password is not None:  # first: one that cannot be used changes nothing
        accounts.set_password(user, body.password.get_secret_value(), by=caller.name)
    if body.role is not None:
        accounts.set_role(user, body.role, by=caller.name)
    found = accounts.find(user)
    if found is None or (body.role is None and body.password is None):
        raise InvalidInput("Say what to change about which user.", fixes=("role", "password"))
    return User(**found.to_plain())


@router.delete("/users/{user}", summary="Let someone in no longer", status_code=204)
def revoke_user(user: str, caller: Curator) -> None:
    """Neither by password nor by any token; what they spent stays theirs."""
    _check_other(user, caller)
    caller.server.accounts.revoke(user, by=caller.name)


def _check_other(user: str, caller: Caller) -> None:
    """A curator who locks themselves out may leave nobody who could let them in again."""
    account = caller.server.accounts.find(user)
    if account is not None and account.user == caller.name:
        raise NotAllowed("Nobody can take away their own role.", fixes=("ask another curator",))


signing: Final = APIRouter(tags=["Signing in"])
demo: Final = APIRouter(tags=["Signing in"])
"""Only for the demonstration."""

_LONGEST_COOKIE: Final = 200

Door = Annotated[Caller | None, Depends(door)]


@signing.post("/session", summary="Sign in")
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


@signing.delete("/session", summary="Sign out", status_code=204)
def sign_out(request: Request, response: Response, caller: Anyone) -> None:
    """End what the cookie stands for, everywhere; signing out twice does nothing."""
    settings = server_of(request).settings
    if caller is not None and caller.secret is not None:
        caller.server.tokens.revoke_text(caller.secret)
    response.delete_cookie(settings.cookie, path="/", secure=settings.https, httponly=True, samesite="strict")


@signing.get("/me", summary="Who am I?")
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
    text, _ = server.tokens.issue(account.user, purpose="session", lifetime=settings.session_lifetime)
    _set_cookie(response, settings, settings.cookie, text, settings.session_lifetime)
    request.state.user = account.user
    return Me(user=account.user, role=account.role, csrf=csrf(text), demo=settings.demo)


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
