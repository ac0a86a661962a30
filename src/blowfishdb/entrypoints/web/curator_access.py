"""The access page: who may come in, in which role, and the tokens of programs."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import SecretStr, ValidationError

from blowfishdb.adapters.accounts import Role
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.api.accounts import (
    add_user,
    change_user,
    end_token,
    make_token,
    revoke_user,
    tokens,
    users,
)
from blowfishdb.entrypoints.api.bodies import NewToken, NewUser, UserChange
from blowfishdb.entrypoints.web.forms import Sent, text
from blowfishdb.entrypoints.web.frame import dataset_address, redirect, render, told
from blowfishdb.entrypoints.web.gates import PageCurator

router: Final = APIRouter(include_in_schema=False)

_USERS: Final = "users"
_TOKENS: Final = "tokens"


@router.get("/datasets/{dataset}/access")
def access_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Users and their roles, what they may spend on this dataset, and one's own tokens."""
    return _page(request, caller, dataset)


@router.post("/datasets/{dataset}/access/add")
def add(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Let someone in."""
    user, role, password = text(form, "user"), text(form, "role"), text(form, "password")
    try:
        made = add_user(_new_user(user, role, password), caller)
    except BlowfishError as error:
        return _page(request, caller, dataset, wrong=(_USERS, told(request, error)), typed=(user, role))
    return _done(dataset, f"{made.user} may come in as {made.role.value}.")


@router.post("/datasets/{dataset}/access/role")
def set_role(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Another role for someone, from their next request on."""
    user, role = text(form, "user"), text(form, "role")
    try:
        change_user(user, UserChange(role=_role(role)), caller)
    except BlowfishError as error:
        return _page(request, caller, dataset, wrong=(_USERS, told(request, error)))
    return _done(dataset, f"{user} now has the role {role}.")


@router.post("/datasets/{dataset}/access/password")
def set_password(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Another password for someone, who is signed out everywhere."""
    user, password = text(form, "user"), text(form, "password")
    try:
        if not password:
            raise InvalidInput("Type the new password.", fixes=("at least a few random words",))
        change_user(user, UserChange(password=SecretStr(password)), caller)
    except BlowfishError as error:
        return _page(request, caller, dataset, wrong=(_USERS, told(request, error)))
    return _done(dataset, f"{user} has a new password and is signed out everywhere.")


@router.post("/datasets/{dataset}/access/revoke")
def revoke(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Let someone in no longer."""
    user = text(form, "user")
    try:
        revoke_user(user, caller)
    except BlowfishError as error:
        return _page(request, caller, dataset, wrong=(_USERS, told(request, error)))
    return _done(dataset, f"{user} is let in no longer. What they spent stays spent.")


@router.post("/datasets/{dataset}/access/token")
def issue(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """A token for a program. Its text is on this one page and never again, so nothing is redirected."""
    try:
        made = make_token(_new_token(text(form, "label"), text(form, "days")), caller)
    except BlowfishError as error:
        return _page(request, caller, dataset, wrong=(_TOKENS, told(request, error)))
    return _page(request, caller, dataset, made=made.token)


@router.post("/datasets/{dataset}/access/token/end")
def end(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """End a token."""
    try:
        end_token(text(form, "token"), caller)
    except BlowfishError as error:
        return _page(request, caller, dataset, wrong=(_TOKENS, told(request, error)))
    return _done(dataset, "The token lets nobody in any more.")


def _new_user(user: str, role: str, password: str) -> NewUser:
    try:
        return NewUser(user=user, role=_role(role), password=SecretStr(password) if password else None)
    except ValidationError:
        raise InvalidInput("This name or this password is too long.", fixes=("a shorter one",)) from None


def _role(role: str) -> Role:
    known = {each.value: each for each in Role}
    if role not in known:
        raise InvalidInput("There is no such role.", fixes=tuple(known))
    return known[role]


def _new_token(label: str, days: str) -> NewToken:
    try:
        return NewToken(label=label, days=float(days) if days else None)
    except (ValidationError, ValueError):
        raise InvalidInput(
            "A token has a short label and is valid for up to 3,650 days.", fixes=("90", "30")
        ) from None


def _done(dataset: str, said: str) -> Response:
    return redirect(dataset_address(dataset, "/access"), flash=said)


def _page(
    request: Request,
    caller: Caller,
    dataset: str,
    *,
    wrong: tuple[str, dict[str, Any]] | None = None,
    typed: tuple[str, str] = ("", Role.ANALYST.value),
    made: str | None = None,
) -> Response:
    given = {grant.user: grant for grant in caller.gateway.grants(dataset)}
    return render(
        request,
        "curator/access.html",
        caller=caller,
        dataset=dataset,
        status=200 if wrong is None else wrong[1]["status"],
        users=sorted(users(caller).users, key=lambda user: not user.active),
        grants=given,
        limited=any(grant.granted is not None for grant in given.values()),
        tokens=tokens(caller).tokens,
        wrong=dict([wrong]) if wrong else {},
        typed=typed,
        made=made,
        every_role=[role.value for role in Role],
    )
