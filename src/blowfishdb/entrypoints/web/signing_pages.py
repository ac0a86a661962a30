"""Signing in and out, the role switch of the demonstration, and the theme."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response
from pydantic import SecretStr

from blowfishdb.adapters.accounts import Role
from blowfishdb.core.errors import BlowfishError, InvalidInput, NotFound
from blowfishdb.entrypoints.api import signing
from blowfishdb.entrypoints.api.access import from_this_machine
from blowfishdb.entrypoints.api.bodies import DemoRole, SignIn
from blowfishdb.entrypoints.api.server import server_of
from blowfishdb.entrypoints.web.forms import Sent, text
from blowfishdb.entrypoints.web.frame import THEMES, redirect, render, told
from blowfishdb.entrypoints.web.gates import PageEntry, PageVisitor

router: Final = APIRouter(include_in_schema=False)

_LONGEST: Final = 2_000
_ONE_YEAR: Final = 365 * 24 * 3600


@router.get("/")
def start(caller: PageVisitor) -> Response:
    """Where each role begins."""
    return redirect("/signin" if caller is None else "/datasets")


@router.get("/signin")
def sign_in_page(request: Request, caller: PageVisitor, next: str = "/") -> Response:  # noqa: A002
    """The form; whoever is signed in already is let through."""
    if caller is not None:
        return redirect(_local(next))
    return _form(request, next)


@router.post("/signin")
def sign_in(request: Request, form: Sent, entry: PageEntry) -> Response:
    """Check the password, set the cookie, and go where the visitor wanted to go."""
    name, password, wanted = text(form, "user"), form.get("password", ""), text(form, "next", "/")
    response = redirect(_local(wanted))
    try:
        if not isinstance(password, str) or len(name) > 255 or len(password) > _LONGEST:
            raise InvalidInput("That name or password is too long.")
        body = SignIn(user=name, password=SecretStr(password))
        signing.sign_in(request, response, body, entry)
    except BlowfishError as error:
        return _form(request, wanted, error=error, user=name)
    return response


@router.post("/signout")
def sign_out(request: Request, caller: PageVisitor) -> Response:
    """End what the cookie stands for."""
    response = redirect("/signin", flash="You are signed out.")
    signing.sign_out(request, response, caller)
    return response


@router.post("/switch")
def switch(request: Request, form: Sent, caller: PageVisitor) -> Response:
    """Play another role; in the demonstration only."""
    if not server_of(request).settings.demo:
        raise NotFound("Roles are chosen by name and password here.", fixes=("sign in",))
    chosen = text(form, "role")
    if chosen not in {role.value for role in Role}:
        raise InvalidInput("There is no such role.", fixes=tuple(role.value for role in Role))
    response = redirect(_local(text(form, "next", "/")), flash=f"You are now the {chosen}.")
    signing.play(request, response, DemoRole(role=Role(chosen)), caller)
    return response


@router.post("/theme")
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
