"""Tokens of one's own, and the users of a workspace."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from fastapi import APIRouter

from blowfishdb.adapters.accounts import Account
from blowfishdb.adapters.tokens import Token
from blowfishdb.core.errors import InvalidInput, NotAllowed
from blowfishdb.entrypoints.api.access import Caller, Curator, SignedIn
from blowfishdb.entrypoints.api.bodies import NewToken, NewUser, UserChange
from blowfishdb.entrypoints.api.shapes import TokenList, TokenMade, TokenShown, User, UserList

router: Final = APIRouter(tags=["Accounts"])


@router.get("/tokens", summary="My tokens")
def tokens(caller: SignedIn) -> TokenList:
    """The caller's own tokens, the newest first; never their texts."""
    mine = caller.server.tokens.tokens(caller.name)
    return TokenList(tokens=[_shown(token) for token in mine if token.purpose == "api"])


@router.post("/tokens", summary="Make a token", status_code=201)
def make_token(body: NewToken, caller: SignedIn) -> TokenMade:
    """A token for a program that works in the caller's name. Its text is shown this once."""
    settings = caller.server.settings
    lifetime = settings.token_lifetime if body.days is None else timedelta(days=body.days)
    text, token = caller.server.tokens.issue(caller.name, purpose="api", lifetime=lifetime, label=body.label)
    return TokenMade(token=text, **_shown(token).model_dump())


@router.delete("/tokens/{token_id}", summary="End a token", status_code=204)
def end_token(token_id: str, caller: SignedIn) -> None:
    """From now on it lets nobody in."""
    caller.server.tokens.revoke_token(token_id, owner=caller.name)


@router.get("/users", summary="All users")
def users(caller: Curator) -> UserList:
    """Everyone, also those who were revoked."""
    return UserList(users=[_user(account) for account in caller.server.accounts.list()])


@router.post("/users", summary="Let someone in", status_code=201)
def add_user(body: NewUser, caller: Curator) -> User:
    """A new user; a name is never given away a second time."""
    password = None if body.password is None else body.password.get_secret_value()
    return _user(caller.server.accounts.add(body.user, body.role, password, by=caller.name))


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
    return _user(found)


@router.delete("/users/{user}", summary="Let someone in no longer", status_code=204)
def revoke_user(user: str, caller: Curator) -> None:
    """Neither by password nor by any token; what they spent stays theirs."""
    _check_other(user, caller)
    caller.server.accounts.revoke(user, by=caller.name)


def _check_other(user: str, caller: Caller) -> None:
    """A curator who locks themselves out may leave nobody who could let them in again."""
    account = caller.server.accounts.find(user)
    if account is not None and account.name == caller.name:
        raise NotAllowed("Nobody can take away their own role.", fixes=("ask another curator",))


def _user(account: Account) -> User:
    return User(user=account.name, role=account.role, created=account.created, active=account.active)


def _shown(token: Token) -> TokenShown:
    return TokenShown(
        id=token.id, label=token.label, created=token.created, expires=token.expires, active=token.active
    )
