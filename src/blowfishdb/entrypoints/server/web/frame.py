"""What every page has: navigation by role, the budget, a message from the last step, the theme.

What a form sent, read field by field.

Sending a page: its head at once, the rest as it is made, compressed.

A compressed page must not carry a secret beside what a stranger can have it repeat: from lengths, the secret
could be guessed bit by bit (BREACH). The csrf text is therefore masked anew on every page, and the cookie is
sent to nobody's page but ours (SameSite=Strict), so that a stranger cannot have a page made for anyone.

What pages load: style, scripts and the chart library, each under an address that names its contents.

A file is never changed under the same address, so browsers keep it for a year. The chart library is made once
per machine from the package that also draws pictures on the server; nothing comes from outside.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, final
from urllib.parse import quote, unquote

from fastapi import Depends, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse, StreamingResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData

from blowfishdb.adapters.tokens import Role, csrf
from blowfishdb.core.errors import NotFound
from blowfishdb.entrypoints.server.access import Caller, Gate, masked
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.entrypoints.server.web.figures import picture_address
from blowfishdb.entrypoints.server.web.typed import field_of
from blowfishdb.show.charts.frame import DARK, LIGHT, config
from blowfishdb.show.words import loss, moment


async def sent(request: Request) -> FormData:
    """The fields of the form; the page's gate has already read them."""
    return await request.form()


Sent = Annotated[FormData, Depends(sent)]
"""A dependency that yields the form: ``def save(form: Sent, caller: PageCurator)``."""


def text(form: FormData, name: str, default: str = "") -> str:
    """A field as a text without spaces around it; a file is none."""
    value = form.get(name, default)
    return value.strip() if isinstance(value, str) else default


def texts(form: FormData, name: str) -> list[str]:
    """All texts that were sent under one name, as ticked boxes are."""
    return [value.strip() for value in form.getlist(name) if isinstance(value, str)]


def ticked(form: FormData, name: str) -> bool:
    """Whether a box was ticked."""
    return bool(text(form, name))


_HEAD: Final = "</h1>"
_ENOUGH: Final = 16_384  # characters that are sent together
_SORRY: Final = '<div class="alert bad" role="alert"><p>The rest of this page could not be made.</p></div>'
_GZIP: Final = 31  # for zlib: with the header of a gzip file


def streamed(request: Request, pieces: Iterator[str], status: int) -> StreamingResponse:
    """The page; what goes wrong before its heading is still answered by a page that says so."""
    head = "".join(_through_heading(pieces))
    parts = _parts(head, pieces)
    headers = {"Vary": "Accept-Encoding, Cookie, Part"}
    packed = "gzip" in request.headers.get("Accept-Encoding", "")
    if packed:
        headers["Content-Encoding"] = "gzip"
    body = _compressed(parts) if packed else (part.encode() for part in parts)
    return StreamingResponse(body, status, headers, "text/html; charset=utf-8")


def _through_heading(pieces: Iterator[str]) -> Iterator[str]:
    for piece in pieces:
        yield piece
        if _HEAD in piece:
            return


def _parts(head: str, pieces: Iterator[str]) -> Iterator[str]:
    yield head
    together: list[str] = []
    length = 0
    try:
        for piece in pieces:
            together.append(piece)
            length += len(piece)
            if length > _ENOUGH:
                yield "".join(together)
                together.clear()
                length = 0
    except Exception:
        yield "".join(together) + _SORRY
        raise
    yield "".join(together)


def _compressed(parts: Iterator[str]) -> Iterator[bytes]:
    packer = zlib.compressobj(6, wbits=_GZIP)
    for part in parts:
        yield packer.compress(part.encode()) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


static_files: Final = Router(include_in_schema=False)

_KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_VEGA: Final = "vega.js"
_EXPORT: Final = "window.vegaEmbed = vegaEmbed;"
_THEMES: Final = "chart-themes.js"
_FOREVER: Final = "public, max-age=31536000, immutable"
_making: Final = threading.Lock()


@final
@dataclass(frozen=True)
class Asset:
    """A file as it is sent: as it is, and compressed."""

    kind: str
    body: bytes
    compressed: bytes

    @classmethod
    def of(cls, name: str, body: bytes) -> Asset:
        """The file called ``name``."""
        return cls(_KINDS[Path(name).suffix], body, gzip.compress(body, 9, mtime=0))


@final
class _NobodyInParticular(Gate):
    """Files without a secret in them: who asks is not looked up, so that a page costs one look, not six."""

    async def __call__(self, request: Request) -> Caller | None:
        return None


Open = Annotated[Caller | None, Depends(_NobodyInParticular())]


@static_files.get("/static/{digest}/{name}")
def static_file(request: Request, digest: str, name: str, _: Open) -> Response:
    """One of our files. Under the address of another release it is sent too, but not kept."""
    asset = vega() if name == _VEGA else _assets().get(name)
    if asset is None:
        raise NotFound("There is no such file.")
    headers = {
        "Cache-Control": _FOREVER if digest == release() else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(asset.compressed, media_type=asset.kind, headers=headers)
    return Response(asset.body, media_type=asset.kind, headers=headers)


def static_address(name: str) -> str:
    """Where a page finds a file."""
    return f"/static/{release()}/{name}"


@cache
def release() -> str:
    """What the files are, as a short text that differs whenever one of them does."""
    digest = hashlib.sha256(version("vl-convert-python").encode())
    for name, asset in sorted(_assets().items()):
        digest.update(name.encode() + b"\0" + asset.body)
    return digest.hexdigest()[:16]


@cache
def _assets() -> Mapping[str, Asset]:
    folder = files("blowfishdb.entrypoints.server.web").joinpath("static")
    ours = {
        each.name: Asset.of(each.name, each.read_bytes())
        for each in folder.iterdir()
        if Path(each.name).suffix in _KINDS
    }
    themes = {"light": config(LIGHT), "dark": config(DARK)}
    return {**ours, _THEMES: Asset.of(_THEMES, f"export const themes = {json.dumps(themes)};\n".encode())}


def vega() -> Asset:
    """The chart library; making it takes seconds, so it is kept on this machine."""
    with _making:
        return _vega()


@cache
def _vega() -> Asset:
    file = _cache_folder() / f"vega-embed-{version('vl-convert-python')}.js.gz"
    try:
        compressed = file.read_bytes()
        return Asset(_KINDS[".js"], gzip.decompress(compressed), compressed)
    except (OSError, EOFError):
        import vl_convert

        made = Asset.of(_VEGA, vl_convert.javascript_bundle(_EXPORT).encode())
        _keep(file, made.compressed)
        return made


def _keep(file: Path, contents: bytes) -> None:
    """Half a file is never mistaken for it; a machine where nothing can be kept makes it anew."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(contents)
        part.replace(file)
    except OSError:
        return


def _cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "blowfishdb"


_EVERYONE: Final = tuple(Role)
_CURATOR: Final = (Role.CURATOR,)
_TABS: Final[tuple[tuple[str, str, tuple[Role, ...]], ...]] = (
    ("Overview", "", _EVERYONE),
    ("Policy", "/policy", _CURATOR),
    ("Trade-off", "/tradeoff", _CURATOR),
    ("Ask", "/ask", (Role.ANALYST, Role.CURATOR)),
    ("Synthetic", "/synthetic", (Role.ANALYST, Role.CURATOR)),
    ("Budget", "/budget", (Role.CURATOR, Role.AUDITOR)),
    ("Access", "/access", _CURATOR),
    ("Cards", "/cards", _CURATOR),
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
    granted: str = ""
    """What the one who looks may spend in all, where that is limited; ``mine`` is what they have spent."""
    mine: str = ""
    mine_percent: float = 0.0

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left for the one who looks."""
        return float(self.left) <= 0

    @property
    def used_up(self) -> bool:
        """Whether nothing is left for anyone."""
        return self.percent >= 100


def render(
    request: Request,
    template: str,
    *,
    caller: Caller | None,
    dataset: str | None = None,
    problem: Problem | None = None,
    status: int = 200,
    **context: Any,
) -> Response:
    """A page. ``dataset`` brings its tabs and its budget; a message from the last step is shown once.

    What went wrong, the page's status says, too. A problem of one field (``at_field``) is shown there:
    ``wrongs`` has the problems of fields by their names, and ``problem`` is then None.
    """
    flash = _flash(request)
    filled = environment().get_template(template)
    at = field_of(request) if problem is not None else ""
    around = {"at": at, "wrongs": {at: problem} if at else {}, **_around(request, caller, dataset)}
    told = {"flash": flash, "problem": None if at else problem}
    pieces = filled.generate(**(around | told | context))
    response = streamed(request, pieces, status if problem is None else problem.status)
    if flash is not None:
        response.delete_cookie(_FLASH, path="/")
    return response


def render_part(request: Request, template: str, *, caller: Caller, **context: Any) -> Response:
    """A part of a page for a script that puts it in the place of the old one: no frame around it."""
    filled = environment().get_template(template)
    return streamed(request, filled.generate(**{"csrf": _csrf(caller), "wrongs": {}, **context}), 200)


def redirect(address: str, *, flash: str | None = None) -> RedirectResponse:
    """To another page after a form (303); ``flash`` is a sentence that the next page shows."""
    response = RedirectResponse(address, 303)
    _keep_flash(response, flash)
    return response


def forward(request: Request, address: str, *, flash: str | None = None) -> Response:
    """The same after a form with a file: a script that showed how much is sent is told where to go on."""
    if request.headers.get("Part") != "address":
        return redirect(address, flash=flash)
    response = JSONResponse({"next": address})
    _keep_flash(response, flash)
    return response


def _keep_flash(response: Response, flash: str | None) -> None:
    if flash is not None:
        value = quote(flash[:_LONGEST_FLASH])
        response.set_cookie(_FLASH, value, max_age=60, path="/", httponly=True, samesite="strict")


def shown_again(request: Request, page: Callable[[Problem], Response]) -> None:
    """From here on, what is refused is shown by ``page`` beside what was typed, not on a page of its own."""
    request.state.again = page


def dataset_address(name: str, tail: str = "") -> str:
    """Where a page of a dataset is."""
    return f"/datasets/{quote(name, safe='')}{tail}"


@cache
def environment() -> Environment:
    """The templates; a name that nobody filled in is an error, not a gap."""
    made = Environment(
        loader=PackageLoader("blowfishdb.entrypoints.server.web", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["eps"] = loss
    made.filters["moment"] = moment
    made.filters["unbroken"] = lambda words: words.replace(" %", "\u00a0%").replace("ε ", "ε\u00a0")
    made.filters["zip"] = lambda one, other: list(zip(one, other, strict=True))
    made.filters["count"] = lambda number: f"{number:,}"
    made.globals["static"] = static_address
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
        "called": _called(caller, dataset),
        "demo": server_of(request).settings.demo,
        "roles": [role.value for role in Role],
        "sections": _sections(path, caller),
        "tabs": _tabs(path, caller, dataset),
        "meter": meter(caller, dataset),
        "theme": theme if theme in THEMES else None,
        "picture": lambda figure: picture_address(figure, caller, server_of(request)),
        "path": path,
        "here": path + query if request.method == "GET" else "/",
    }


def _called(caller: Caller | None, dataset: str | None) -> str:
    """What headings call a dataset: its title, and its name where it has none."""
    return "" if caller is None or dataset is None else caller.gateway.facts(dataset).title


def _csrf(caller: Caller | None) -> str:
    return masked(csrf(caller.secret)) if caller is not None and caller.secret else ""


def _sections(path: str, caller: Caller | None) -> list[Link]:
    if caller is None:
        return []
    links = [
        Link("Datasets", "/datasets", path.startswith(("/datasets", "/import"))),
        Link("Answers", "/answers", path.startswith(("/answers", "/compare", "/dashboards"))),
    ]
    if caller.auditor:
        return links
    desk = caller.gateway.desk
    planned = len(desk.plan(caller.name))
    waiting = sum(each.state == "open" for each in desk.requests()) if caller.curator else 0
    links.append(Link(_counted("Plan", planned), "/plan", path.startswith("/plan")))
    links.append(Link(_counted("Requests", waiting), "/requests", path.startswith("/requests")))
    return links


def _counted(name: str, count: int) -> str:
    return f"{name} ({count})" if count else name


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
    shown = Meter(dataset, str(budget.total), str(budget.spent), str(left), percent)
    grant = next((each for each in caller.gateway.grants(dataset) if each.user == caller.name), None)
    if grant is None or grant.granted is None:
        return shown
    used, most = float(grant.spent) + float(grant.held), float(grant.granted)
    mine = min(100.0, round(100 * used / most, 1)) if most else 100.0
    return replace(shown, granted=str(grant.granted), mine=str(grant.spent), mine_percent=mine)


def _flash(request: Request) -> str | None:
    value = request.cookies.get(_FLASH)
    return None if value is None else unquote(value)[:_LONGEST_FLASH]
