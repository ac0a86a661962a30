"""What every page has: navigation by role, the budget, a message from the last step, the theme."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Final, final
from urllib.parse import quote, unquote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from blowfishdb.adapters.accounts import Role
from blowfishdb.adapters.tokens import csrf
from blowfishdb.charts.frame import epsilon_text
from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.api.problems import problem_of, reference_of
from blowfishdb.entrypoints.api.server import server_of
from blowfishdb.entrypoints.web import static_files
from blowfishdb.entrypoints.web.gates import masked
from blowfishdb.entrypoints.web.pictures import picture_address
from blowfishdb.entrypoints.web.sending import streamed

_EVERYONE: Final = tuple(Role)
_CURATOR: Final = (Role.CURATOR,)
_TABS: Final[tuple[tuple[str, str, tuple[Role, ...]], ...]] = (
    ("Overview", "", _EVERYONE),
    ("Policy", "/policy", _CURATOR),
    ("Trade-off", "/tradeoff", _CURATOR),
    ("Ask", "/ask", (Role.ANALYST, Role.CURATOR)),
    ("Budget", "/budget", (Role.CURATOR, Role.AUDITOR)),
    ("Access", "/access", _CURATOR),
    ("Audit", "/audit", (Role.CURATOR, Role.AUDITOR)),
    ("Guarantee", "/guarantee", _EVERYONE),
)
_FLASH: Final = "flash"
_LONGEST_FLASH: Final = 500
THEMES: Final = ("light", "dark")


@final
@dataclass(frozen=True)
class Link:
    """A place to go; ``here`` if one is there."""

    name: str
    address: str
    here: bool


@final
@dataclass(frozen=True)
class Meter:
    """The budget of the dataset at hand; ``left`` is what the one who looks can still spend."""

    dataset: str
    total: str
    spent: str
    left: str
    percent: float

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left."""
        return float(self.left) <= 0


def render(
    request: Request,
    template: str,
    *,
    caller: Caller | None,
    dataset: str | None = None,
    status: int = 200,
    **context: Any,
) -> Response:
    """A page. ``dataset`` brings its tabs and its budget; a message from the last step is shown once."""
    flash = _flash(request)
    filled = environment().get_template(template)
    pieces = filled.generate(**_around(request, caller, dataset), flash=flash, **context)
    response = streamed(request, pieces, status)
    if flash is not None:
        response.delete_cookie(_FLASH, path="/")
    return response


def render_part(request: Request, template: str, *, caller: Caller, **context: Any) -> Response:
    """A part of a page for a script that puts it in the place of the old one: no frame around it."""
    filled = environment().get_template(template)
    return streamed(request, filled.generate(csrf=_csrf(caller), **context), 200)


def redirect(address: str, *, flash: str | None = None) -> RedirectResponse:
    """To another page after a form (303); ``flash`` is a sentence that the next page shows."""
    response = RedirectResponse(address, 303)
    if flash is not None:
        value = quote(flash[:_LONGEST_FLASH])
        response.set_cookie(_FLASH, value, max_age=60, path="/", httponly=True, samesite="strict")
    return response


def told(request: Request, error: BlowfishError) -> dict[str, Any]:
    """An error as ``alert`` in macros.html shows it: what the interface would answer, no more."""
    request.state.problem = type(error).__name__
    shown = getattr(request.state, "role", None) is Role.CURATOR
    response = problem_of(error, shown_places=shown, reference=reference_of(request))
    said: dict[str, Any] = json.loads(bytes(response.body))
    return said


def dataset_address(name: str, tail: str = "") -> str:
    """Where a page of a dataset is."""
    return f"/datasets/{quote(name, safe='')}{tail}"


@cache
def environment() -> Environment:
    """The templates; a name that nobody filled in is an error, not a gap."""
    made = Environment(
        loader=PackageLoader("blowfishdb.entrypoints.web", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["eps"] = epsilon_text
    made.filters["unbroken"] = lambda words: words.replace(" %", "\u00a0%")
    made.filters["count"] = lambda number: f"{number:,}"
    made.globals["static"] = static_files.address
    made.globals["to_dataset"] = dataset_address
    made.globals["version"] = version("blowfishdb")
    return made


def _around(request: Request, caller: Caller | None, dataset: str | None) -> dict[str, Any]:
    path = request.url.path
    theme = request.cookies.get("theme")
    query = f"?{request.url.query}" if request.url.query and request.method == "GET" else ""
    return {
        "me": caller,
        "csrf": _csrf(caller),
        "dataset": dataset,
        "demo": server_of(request).settings.demo,
        "roles": [role.value for role in Role],
        "sections": _sections(path, caller),
        "tabs": _tabs(path, caller, dataset),
        "meter": meter(caller, dataset),
        "theme": theme if theme in THEMES else None,
        "picture": lambda figure: picture_address(figure, caller, server_of(request).workspace.store),
        "here": path + query if request.method == "GET" else "/",
    }


def _csrf(caller: Caller | None) -> str:
    return masked(csrf(caller.secret)) if caller is not None and caller.secret else ""


def _sections(path: str, caller: Caller | None) -> list[Link]:
    if caller is None:
        return []
    return [
        Link("Datasets", "/datasets", path.startswith(("/datasets", "/import"))),
        Link("Answers", "/answers", path.startswith(("/answers", "/compare"))),
    ]


def _tabs(path: str, caller: Caller | None, dataset: str | None) -> list[Link]:
    if dataset is None or caller is None:
        return []
    root = dataset_address(dataset)
    given = quote(path, safe="/")
    return [
        Link(name, root + tail, given == root + tail or (bool(tail) and given.startswith(root + tail + "/")))
        for name, tail, roles in _TABS
        if caller.role in roles
    ]


def meter(caller: Caller | None, dataset: str | None) -> Meter | None:
    """The budget as the one who looks sees it; None without a dataset, or for the public."""
    if caller is None or dataset is None:
        return None
    budget = caller.gateway.budget(dataset)
    total, gone = float(budget.total), float(budget.spent) + float(budget.held)
    percent = min(100.0, round(100 * gone / total, 1)) if total else 100.0
    left = caller.gateway.left(dataset) if not caller.auditor else budget.remaining
    return Meter(dataset, str(budget.total), str(budget.spent), str(left), percent)


def _flash(request: Request) -> str | None:
    value = request.cookies.get(_FLASH)
    return None if value is None else unquote(value)[:_LONGEST_FLASH]
