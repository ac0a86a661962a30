"""The access page: who may come in, in which role, and the tokens of programs.

Signing in and out, the role switch of the demonstration, and the theme.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import SecretStr, ValidationError

from blowfishdb.adapters.tokens import Role
from blowfishdb.core.errors import BlowfishError, InvalidInput, NotFound
from blowfishdb.entrypoints.server.access import (
    Caller,
    PageCurator,
    PageEntry,
    PageVisitor,
    from_this_machine,
)
from blowfishdb.entrypoints.server.api import accounts
from blowfishdb.entrypoints.server.api.accounts import (
    add_user,
    change_user,
    end_token,
    make_token,
    revoke_user,
    tokens,
    users,
)
from blowfishdb.entrypoints.server.api.requests import DemoRole, NewToken, NewUser, SignIn, UserChange
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.entrypoints.server.web.frame import (
    THEMES,
    Sent,
    dataset_address,
    redirect,
    render,
    text,
    told,
)

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


signing_pages: Final = APIRouter(include_in_schema=False)

_LONGEST: Final = 2_000
_ONE_YEAR: Final = 365 * 24 * 3600


@signing_pages.get("/")
def start(caller: PageVisitor) -> Response:
    """Where each role begins."""
    return redirect("/signin" if caller is None else "/datasets")


@signing_pages.get("/signin")
def sign_in_page(request: Request, caller: PageVisitor, next: str = "/") -> Response:  # noqa: A002
    """The form; whoever is signed in already is let through."""
    if caller is not None:
        return redirect(_local(next))
    return _form(request, next)


@signing_pages.post("/signin")
def sign_in(request: Request, form: Sent, entry: PageEntry) -> Response:
    """Check the password, set the cookie, and go where the visitor wanted to go."""
    name, password, wanted = text(form, "user"), form.get("password", ""), text(form, "next", "/")
    response = redirect(_local(wanted))
    try:
        if not isinstance(password, str) or len(name) > 255 or len(password) > _LONGEST:
            raise InvalidInput("That name or password is too long.")
        body = SignIn(user=name, password=SecretStr(password))
        accounts.sign_in(request, response, body, entry)
    except BlowfishError as error:
        return _form(request, wanted, error=error, user=name)
    return response


@signing_pages.post("/signout")
def sign_out(request: Request, caller: PageVisitor) -> Response:
    """End what the cookie stands for."""
    response = redirect("/signin", flash="You are signed out.")
    accounts.sign_out(request, response, caller)
    return response


@signing_pages.post("/switch")
def switch(request: Request, form: Sent, caller: PageVisitor) -> Response:
    """Play another role; in the demonstration only."""
    if not server_of(request).settings.demo:
        raise NotFound("Roles are chosen by name and password here.", fixes=("sign in",))
    chosen = text(form, "role")
    if chosen not in {role.value for role in Role}:
        raise InvalidInput("There is no such role.", fixes=tuple(role.value for role in Role))
    response = redirect(_local(text(form, "next", "/")), flash=f"You are now the {chosen}.")
    accounts.play(request, response, DemoRole(role=Role(chosen)), caller)
    return response


@signing_pages.post("/theme")
def theme(form: Sent, _: PageVisitor) -> Response:
    """Light, dark, or as the system has it."""
    chosen = text(form, "theme")
    response = redirect(_local(text(form, "next", "/")))
    if chosen in THEMES:
        response.set_cookie("theme", chosen, max_age=_ONE_YEAR, path="/", samesite="strict")
    else:
        response.delete_cookie("theme", path="/")
    return response


def _form(request: Request, wanted: str, error: BlowfishError | None = None, user: str = "") -> Response:
    problem = None if error is None else told(request, error)
    playing = server_of(request).settings.demo and from_this_machine(request)
    return render(
        request,
        "signin.html",
        caller=None,
        status=200 if problem is None else problem["status"],
        problem=problem,
        next=_local(wanted),
        user=user,
        playing=playing,
    )


def _local(address: str) -> str:
    """An address on this server; anything else is somebody's trick to lead people away."""
    plain = address.isprintable() and "\\" not in address
    return address if plain and address.startswith("/") and not address.startswith("//") else "/"
