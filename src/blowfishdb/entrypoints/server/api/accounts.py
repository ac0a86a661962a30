"""Tokens of one's own, and the users of a workspace.

Signing in and out, and who one is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

from fastapi import Depends, Request, Response
from pydantic import SecretStr

from blowfishdb.adapters.tokens import Account, Role, Token, csrf
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
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.entrypoints.server.server import Server, Settings, server_of

router: Final = Router(PREFIX, tags=["Accounts"])


@router.get("/tokens", summary="My tokens")
def tokens(caller: SignedIn) -> TokenList:
    """The caller's own tokens, the newest first; never their texts."""
    return TokenList(tokens=[TokenShown(**token.to_plain()) for token in own_tokens(caller)])


@router.post("/tokens", summary="Make a token", status_code=201)
def make_token(body: NewToken, caller: SignedIn) -> TokenMade:
    """A token for a program that works in the caller's name. Its text is shown this once."""
    text, token = new_token(caller, body.label, body.days)
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
    added = caller.server.accounts.add(body.user, body.role, _text(body.password), by=caller.name)
    return User(**added.to_plain())


@router.patch("/users/{user}", summary="Change a role or a password")
def change_user(user: str, body: UserChange, caller: Curator) -> User:
    """Another role counts from the next request on; another password signs the user out everywhere."""
    changed = change_account(caller, user, role=body.role, password=_text(body.password))
    return User(**changed.to_plain())


@router.delete("/users/{user}", summary="Let someone in no longer", status_code=204)
def revoke_user(user: str, caller: Curator) -> None:
    """Neither by password nor by any token; what they spent stays theirs."""
    revoke_account(caller, user)


# --- what pages do, too ---------------------------------------------------------------------------


def own_tokens(caller: Caller) -> list[Token]:
    """The tokens for programs of the caller, the newest first."""
    return [token for token in caller.server.tokens.tokens(caller.name) if token.purpose == "api"]


def new_token(caller: Caller, label: str, days: float | None) -> tuple[str, Token]:
    """The text of a token for a program, which nobody can look up later, and what may be known of it."""
    lifetime = caller.server.settings.token_lifetime if days is None else timedelta(days=days)
    return caller.server.tokens.issue(caller.name, purpose="api", lifetime=lifetime, label=label)


def change_account(
    caller: Caller, user: str, *, role: Role | None = None, password: str | None = None
) -> Account:
    """A user with another role, another password or both."""
    accounts = caller.server.accounts
    if role not in (None, caller.role):
        _check_other(user, caller)
    if password is not None:  # first: one that cannot be used changes nothing
        accounts.set_password(user, password, by=caller.name)
    if role is not None:
        accounts.set_role(user, role, by=caller.name)
    account = accounts.find(user)
    if account is None or (role is None and password is None):
        raise InvalidInput("Say what to change about which user.", fixes=("role", "password"))
    return account


def revoke_account(caller: Caller, user: str) -> None:
    """From now on the user is let in neither by password nor by any token."""
    _check_other(user, caller)
    caller.server.accounts.revoke(user, by=caller.name)


def _check_other(user: str, caller: Caller) -> None:
    """A curator who locks themselves out may leave nobody who could let them in again."""
    account = caller.server.accounts.find(user)
    if account is not None and account.user == caller.name:
        raise NotAllowed("Nobody can take away their own role.", fixes=("ask another curator",))


def _text(password: SecretStr | None) -> str | None:
    return None if password is None else password.get_secret_value()


signing: Final = Router(PREFIX, tags=["Signing in"])
demo: Final = Router(PREFIX, tags=["Signing in"])
"""Only for the demonstration."""

_LONGEST_COOKIE: Final = 200

Door = Annotated[Caller | None, Depends(door)]


@signing.post("/session", summary="Sign in")
def sign_in(request: Request, response: Response, body: SignIn, _: Door) -> Me:
    """Sign in with a password: sets a cookie, and returns the text that changes must be sent along with.

    After several wrong passwords the next one waits, longer each time: for a name at an address, and for an
    address. A second cookie lets this browser wait for nothing but its own mistakes; it lets nobody in.
    """
    return check_in(request, response, body.user, body.password.get_secret_value())


@signing.delete("/session", summary="Sign out", status_code=204)
def sign_out(request: Request, response: Response, caller: Anyone) -> None:
    """End what the cookie stands for, everywhere; signing out twice does nothing."""
    check_out(request, response, caller)


@signing.get("/me", summary="Who am I?")
def me(caller: SignedIn) -> Me:
    """The name and the role of the one who asks."""
    text = None if caller.secret is None else csrf(caller.secret)
    return Me(user=caller.name, role=caller.role, csrf=text, demo=caller.server.settings.demo)


@demo.post("/session/demo", summary="Choose a role (demonstration only)")
def play(request: Request, response: Response, body: DemoRole, _: Door) -> Me:
    """Become the user who is called like a role, without a password; only from this machine."""
    return play_role(request, response, body.role)


def check_in(request: Request, response: Response, user: str, password: str) -> Me:
    """Let a user in by password: the response gets the cookies of someone signed in."""
    server = server_of(request)
    settings = server.settings
    browser = request.cookies.get(settings.browser_cookie, "")[:_LONGEST_COOKIE] or None
    account = server.accounts.check_password(user, password, address=address(request), browser=browser)
    entered = _enter(server, account, request, response)
    known = server.accounts.remember(account, browser)
    _set_cookie(response, settings, settings.browser_cookie, known, settings.browser_lifetime)
    return entered


def check_out(request: Request, response: Response, caller: Caller | None) -> None:
    """End what the cookie of a caller stands for, and take the cookie back."""
    settings = server_of(request).settings
    if caller is not None and caller.secret is not None:
        caller.server.tokens.revoke_text(caller.secret)
    response.delete_cookie(settings.cookie, path="/", secure=settings.https, httponly=True, samesite="strict")


def play_role(request: Request, response: Response, role: Role) -> Me:
    """Let someone on this machine be the user who is called like a role, in the demonstration."""
    if not from_this_machine(request):
        raise NotAllowed("The demonstration is only for people on this machine.", fixes=("sign in",))
    server = server_of(request)
    account = server.accounts.find(role.value)
    if account is None or not account.active or account.role is not role:
        raise NotFound(f"The demonstration has no user '{role.value}'.")
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
