"""Every refusal as a problem (RFC 9457): what happened, whether it was charged, and what to try.

A problem is made once and has two faces: JSON for programs, a page for someone with a browser.

Plain data that someone sent, turned into values; whatever does not fit is an ``InvalidInput``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar, final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from blowfishdb.adapters.tokens import Role
from blowfishdb.core import errors
from blowfishdb.core.errors import BlowfishError, InvalidInput

MEDIA_TYPE: Final = "application/problem+json"

STATUS: Final[tuple[tuple[type[errors.BlowfishError], int], ...]] = (
    (errors.UnknownDataset, 404),
    (errors.NotFound, 404),
    (errors.KeyReused, 409),
    (errors.NameTaken, 409),
    (errors.TooLarge, 422),
    (errors.InvalidInput, 422),
    (errors.BudgetExhausted, 402),
    (errors.MaxCostExceeded, 402),
    (errors.NotSignedIn, 401),
    (errors.NotAllowed, 403),
    (errors.TooManyAttempts, 429),
    (errors.PolicyConflict, 409),
    (errors.NotOpen, 409),
    (errors.AnswerInProgress, 409),
    (errors.AnswerLost, 410),
    (errors.Refused, 422),
    (errors.SourceMissing, 503),
    (errors.SourceError, 502),
    (errors.WorkspaceError, 503),
)
"""The first class that fits decides; what is not listed is our mistake, and a 500."""

_OUR_MISTAKE: Final = 500
_FOR_PROGRAMS: Final = ("/api/", "/metrics", "/static/")


@final
class Problem(BaseModel):
    """Why a request was refused or failed. Never contains a value from the data."""

    model_config = ConfigDict(extra="allow", frozen=True)
    _headers: dict[str, str] = PrivateAttr(default_factory=dict)

    type: str = Field(examples=["urn:blowfishdb:problem:budget-exhausted"])
    title: str
    status: int
    detail: str
    charged: bool = Field(description="Whether budget was spent although no answer came back.")
    fixes: list[str] = Field(description="What to try, most promising first.")
    reference: str | None = Field(default=None, description="The id under which the server logged it.")

    @property
    def headers(self) -> dict[str, str]:
        """What its response says besides."""
        return self._headers

    @property
    def body(self) -> dict[str, Any]:
        """The problem as programs get it."""
        return self.model_dump(exclude_unset=True)

    def response(self) -> JSONResponse:
        """The response that programs get."""
        return JSONResponse(self.body, self.status, headers=self.headers, media_type=MEDIA_TYPE)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems a route may answer with, for its documentation."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


COMMON: Final = documented(400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 502, 503)
"""What any route behind a gate may answer with."""


def install(app: FastAPI) -> None:
    """Turn every error of an app into a problem."""
    app.add_exception_handler(errors.BlowfishError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)


def status_of(error: errors.BlowfishError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), _OUR_MISTAKE)


def problem(
    status: int,
    name: str,
    detail: str,
    *,
    fixes: Sequence[str] = (),
    charged: bool = False,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Problem:
    """A problem; ``name`` is in kebab case."""
    made = Problem(
        type=f"urn:blowfishdb:problem:{name}",
        title=name.replace("-", " ").capitalize(),
        status=status,
        detail=detail,
        charged=charged,
        fixes=list(fixes),
        **more,
    )
    made.headers.update(headers or {})
    return made


def problem_of(error: errors.BlowfishError, *, shown_places: bool, reference: str = "") -> Problem:
    """The problem that an error of ours is.

    Where rows are kept, and why reading them failed, is for curators (``shown_places``): messages about a
    source or the workspace name files and hosts, and what fails may depend on the rows. Others are told that
    it failed and what became of the charge, in the same words and under the same name whatever the reason.
    """
    status = status_of(error)
    name, detail, fixes = kebab(type(error).__name__), error.message, error.fixes
    if status == _OUR_MISTAKE:
        return unexpected(reference, charged=error.charged)
    more: dict[str, Any] = {}
    headers: dict[str, str] = {}
    names_places = isinstance(error, errors.SourceError | errors.WorkspaceError)
    if names_places and not isinstance(error, errors.Cancelled) and not shown_places:
        money = "What it cost stays charged." if error.charged else "Nothing was charged."
        detail = f"The data could not be reached. {money}"
        constant = errors.QueryFailed if error.charged else errors.SourceError
        name, status = kebab(constant.__name__), status_of(constant(""))
        fixes = ("again in a moment", f"ask a curator, with the reference {reference}")
        more["reference"] = reference
    if isinstance(error, errors.BudgetExhausted) and error.needed is not None:
        more |= {"needed": error.needed, "left": error.left}
    if isinstance(error, errors.TooManyAttempts | errors.AnswerInProgress):
        headers["Retry-After"] = str(error.wait)
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="blowfishdb"'
    return problem(status, name, detail, fixes=fixes, charged=error.charged, headers=headers, **more)


def unexpected(reference: str, *, charged: bool = False) -> Problem:
    """Something that nobody foresaw; only the log says more."""
    return problem(
        _OUR_MISTAKE,
        "unexpected",
        "Something went wrong inside the server. The ledger says what became of a question under way.",
        fixes=(f"ask a curator, with the reference {reference}",),
        charged=charged,
        reference=reference,
    )


def kebab(name: str) -> str:
    """``BudgetExhausted`` as ``budget-exhausted``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def reference_of(request: Request) -> str:
    """The id under which a request is logged."""
    return str(getattr(request.state, "id", ""))


def told(request: Request, error: errors.BlowfishError) -> Problem:
    """The problem that an error is for the one who sent a request; the log says so, too."""
    request.state.problem = type(error).__name__
    shown = getattr(request.state, "role", None) is Role.CURATOR
    return problem_of(error, shown_places=shown, reference=reference_of(request))


async def respond(request: Request, problem: Problem) -> Response:
    """The problem with the face that fits: the page that ``web.install`` left here, JSON for programs."""
    if request.url.path.startswith(_FOR_PROGRAMS):
        return problem.response()
    page: Response = await run_in_threadpool(request.app.state.problem_page, request, problem)
    return page


async def _of_ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.BlowfishError)
    return await respond(request, told(request, error))


async def _of_validation(request: Request, error: Exception) -> Response:
    """Where the body or a parameter does not fit; what was sent is not repeated, it may be a password."""
    assert isinstance(error, RequestValidationError)
    request.state.problem = "RequestValidationError"
    mistakes = [_mistake(each) for each in error.errors()][:10]
    detail = "The request does not have the form that it needs."
    return await respond(request, problem(422, "invalid-input", detail, fixes=mistakes))


def _mistake(error: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"][:8] if part != "body") or "the body"
    why = str(error["msg"]) if error["type"] not in ("json_invalid", "value_error") else "it cannot be read"
    return f"{where[:200]}: {why[:200]}"


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    words = {
        400: "The request cannot be read.",
        404: "There is nothing at this address.",
        405: "This address does not answer to this method.",
    }
    name = kebab(HTTPStatus(status).phrase.title().replace(" ", ""))
    detail = words.get(status, HTTPStatus(status).phrase + ".")
    fixes = ("the list of routes at /api/docs",)
    return await respond(request, problem(status, name, detail, fixes=fixes, headers=error.headers))


T = TypeVar("T")


def read(what: str, build: Callable[[], T]) -> T:
    """What ``build`` makes of the data; ``what`` names it for the one who sent it.

    Constructors check values, not that JSON has the right shape, so a missing key or a text in place of a
    list surfaces here. Its message would quote internals, and is left out.
    """
    try:
        return build()
    except BlowfishError:
        raise
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        raise InvalidInput(
            f"The {what} is not in the form that it needs ({type(error).__name__}).",
            fixes=(f"the {what} as GET returns it", "the form in /api/docs"),
        ) from None
