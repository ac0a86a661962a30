"""The access page: who may come in, in which role, the tokens of programs, and database clients.

Signing in and out, the role switch of the demonstration, and the theme.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import Request, Response

from blowfishdb.adapters.accounts import check_password
from blowfishdb.adapters.tokens import Role
from blowfishdb.core.errors import InvalidInput, NotFound
from blowfishdb.entrypoints.pgwire.defaults import read_setting
from blowfishdb.entrypoints.server.access import (
    Caller,
    PageCurator,
    PageEntry,
    PageVisitor,
    from_this_machine,
)
from blowfishdb.entrypoints.server.api import accounts
from blowfishdb.entrypoints.server.api import wire as clients
from blowfishdb.entrypoints.server.api.requests import WireChange
from blowfishdb.entrypoints.server.api.responses import WireMade
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.entrypoints.server.web.frame import (
    THEMES,
    Sent,
    dataset_address,
    redirect,
    render,
    shown_again,
    text,
)
from blowfishdb.entrypoints.server.web.typed import at_field, loss_text, number_text

router: Final = Router(include_in_schema=False)

_USERS: Final = "users"
_TOKENS: Final = "tokens"
_WIRE: Final = "wire"
_NOBODY: Final = ("", Role.ANALYST.value)
_MOST_DAYS: Final = 3_650
_WIRE_FIELDS: Final = (
    ("error", "Error"),
    ("confidence", "Confidence"),
    ("max_cost", "Max cost ε"),
    ("daily_cap", "Cap a day ε"),
    ("preview", "Preview"),
)
"""What a curator sets for database clients on this page, and how it is called."""
_WRITTEN: Final = {"error": number_text, "max_cost": loss_text, "daily_cap": loss_text}
"""How numbers among them are typed."""


@router.get("/datasets/{dataset}/access")
def access_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Users and their roles, what they may spend on this dataset, and one's own tokens."""
    return _page(request, caller, dataset)


@router.post("/datasets/{dataset}/access/add")
def add(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Let someone in."""
    user, role, password = text(form, "user"), text(form, "role"), text(form, "password")
    _again(request, caller, dataset, typed=(user, role))
    if password:
        with at_field(request, "password"):
            check_password(password)
    with at_field(request, "user"):
        made = caller.server.accounts.add(user, _role(role), password or None, by=caller.name)
    return _done(dataset, f"{made.user} may come in as {made.role.value}.")


@router.post("/datasets/{dataset}/access/role")
def set_role(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Another role for someone, from their next request on."""
    user, role = text(form, "user"), text(form, "role")
    _again(request, caller, dataset)
    accounts.change_account(caller, user, role=_role(role))
    return _done(dataset, f"{user} now has the role {role}.")


@router.post("/datasets/{dataset}/access/password")
def set_password(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Another password for someone, who is signed out everywhere."""
    user, password = text(form, "user"), text(form, "password")
    _again(request, caller, dataset)
    with at_field(request, f"password {user}"):
        if not password:
            raise InvalidInput("Type the new password.", fixes=("at least a few random words",))
        accounts.change_account(caller, user, password=password)
    return _done(dataset, f"{user} has a new password and is signed out everywhere.")


@router.post("/datasets/{dataset}/access/revoke")
def revoke(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Let someone in no longer."""
    user = text(form, "user")
    _again(request, caller, dataset)
    accounts.revoke_account(caller, user)
    return _done(dataset, f"{user} is let in no longer. What they spent stays spent.")


@router.post("/datasets/{dataset}/access/token")
def issue(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """A token for a program. Its text is on this one page and never again, so nothing is redirected."""
    label, days = text(form, "label"), text(form, "days")
    _again(request, caller, dataset, part=_TOKENS, token=(label, days))
    with at_field(request, "days"):
        valid = _days(days)
    with at_field(request, "label"):
        made, _ = accounts.new_token(caller, label, valid)
    return _page(request, caller, dataset, made=made)


@router.post("/datasets/{dataset}/access/token/end")
def end(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """End a token."""
    _again(request, caller, dataset, part=_TOKENS)
    caller.server.tokens.revoke_token(text(form, "token"), owner=caller.name)
    return _done(dataset, "The token lets nobody in any more.")


@router.post("/datasets/{dataset}/access/wire")
def issue_wire(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """A wire password for database clients of a user, on this one page and never again."""
    _again(request, caller, dataset, part=_WIRE)
    made = clients.new_password(caller, text(form, "user"))
    return _page(request, caller, dataset, wire=made)


@router.post("/datasets/{dataset}/access/wire/end")
def end_wire(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """End the wire password of a user."""
    user = text(form, "user")
    _again(request, caller, dataset, part=_WIRE)
    clients.revoke_password(caller, user)
    return _done(dataset, f"Database clients of {user} are let in no longer.")


@router.post("/datasets/{dataset}/access/wire/defaults")
def set_wire(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """What connections of a user begin with, or questions about the dataset if no user is named."""
    user = text(form, "user")
    typed = {name: text(form, name)[:100] for name, _ in _WIRE_FIELDS}
    _again(request, caller, dataset, part=_WIRE, setting=(user, dict(typed)))
    for name, value in typed.items():
        with at_field(request, f"{name} {user}"):
            typed[name] = read_setting(name, _WRITTEN.get(name, str)(value))
    if user and typed["daily_cap"] == (clients.wire_access(caller, user).highest_cap or ""):
        del typed["daily_cap"]  # it was left as it is: a lower one of the user's own stays
    said = WireChange.model_validate(typed)
    with at_field(request, f"daily_cap {user}"):
        if user:
            clients.change_defaults(caller, user, said)
        else:
            clients.change_dataset(caller, dataset, said)
    if user:
        return _done(dataset, f"Database clients of {user} now begin with these settings.")
    return _done(dataset, f"Database clients that ask about {dataset} now begin with these settings.")


def _role(role: str) -> Role:
    known = {each.value: each for each in Role}
    if role not in known:
        raise InvalidInput("There is no such role.", fixes=tuple(known))
    return known[role]


def _days(typed: str) -> float | None:
    """For how long a token is valid; None where nothing was typed."""
    try:
        days = float(number_text(typed)) if typed else None
    except ValueError:
        days = 0
    if days is not None and not 0 < days <= _MOST_DAYS:
        raise InvalidInput(f"A token is valid for up to {_MOST_DAYS:,} days.", fixes=("90", "30"))
    return days


def _again(request: Request, caller: Caller, dataset: str, part: str = _USERS, **typed: Any) -> None:
    """What is refused from here on is shown beside what was ``typed``."""
    shown_again(request, lambda problem: _page(request, caller, dataset, part=part, problem=problem, **typed))


def _done(dataset: str, sentence: str) -> Response:
    return redirect(dataset_address(dataset, "/access"), flash=sentence)


def _page(
    request: Request,
    caller: Caller,
    dataset: str,
    *,
    part: str = "",
    problem: Problem | None = None,
    typed: tuple[str, str] = _NOBODY,
    token: tuple[str, str] = ("", "90"),
    setting: tuple[str, Mapping[str, str]] | None = None,
    made: str | None = None,
    wire: WireMade | None = None,
) -> Response:
    grants = {grant.user: grant for grant in caller.gateway.grants(dataset)}
    users = sorted(caller.server.accounts.list(), key=lambda account: not account.active)
    return render(
        request,
        "curator/access.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        part=part,
        users=users,
        grants=grants,
        limited=any(grant.granted is not None for grant in grants.values()),
        tokens=accounts.own_tokens(caller),
        typed=typed,
        token=token,
        setting=setting,
        made=made,
        wire=wire,
        clients=[clients.wire_access(caller, user.user) for user in users if user.active],
        of_dataset=clients.wire_of_dataset(dataset, caller).defaults,
        wire_fields=_WIRE_FIELDS,
        every_role=[role.value for role in Role],
    )


signing_pages: Final = Router(include_in_schema=False)

_LONGEST: Final = 2_000
_ONE_YEAR: Final = 365 * 24 * 3600


@signing_pages.get("/signin")
def sign_in_page(request: Request, caller: PageVisitor, next: str = "/") -> Response:  # noqa: A002
    """The form; whoever is signed in already is let through."""
    if caller is not None:
        return redirect(_local(next))
    return _form(request, next)


@signing_pages.post("/signin")
def sign_in(request: Request, form: Sent, _: PageEntry) -> Response:
    """Check the password, set the cookie, and go where the visitor wanted to go."""
    name, password, wanted = text(form, "user"), form.get("password", ""), text(form, "next", "/")
    response = redirect(_local(wanted))
    shown_again(request, lambda problem: _form(request, wanted, problem, user=name))
    if not isinstance(password, str) or len(name) > 255 or len(password) > _LONGEST:
        raise InvalidInput("That name or password is too long.")
    accounts.check_in(request, response, name, password)
    return response


@signing_pages.post("/signout")
def sign_out(request: Request, caller: PageVisitor) -> Response:
    """End what the cookie stands for."""
    response = redirect("/signin", flash="You are signed out.")
    accounts.check_out(request, response, caller)
    return response


@signing_pages.post("/switch")
def switch(request: Request, form: Sent, _: PageVisitor) -> Response:
    """Play another role; in the demonstration only."""
    if not server_of(request).settings.demo:
        raise NotFound("Roles are chosen by name and password here.", fixes=("sign in",))
    role = _role(text(form, "role"))
    response = redirect(_local(text(form, "next", "/")), flash=f"You are now the {role.value}.")
    accounts.play_role(request, response, role)
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


def _form(request: Request, wanted: str, problem: Problem | None = None, user: str = "") -> Response:
    playing = server_of(request).settings.demo and from_this_machine(request)
    return render(
        request,
        "signin.html",
        caller=None,
        problem=problem,
        next=_local(wanted),
        user=user,
        playing=playing,
    )


def _local(address: str) -> str:
    """An address on this server; anything else is somebody's trick to lead people away."""
    plain = address.isprintable() and "\\" not in address
    return address if plain and address.startswith("/") and not address.startswith("//") else "/"
