"""Stored answers: listed, shown, exported, compared. Reading them costs nothing."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from blowfishdb.comparison import compare
from blowfishdb.entrypoints.api.access import SignedIn
from blowfishdb.entrypoints.api.bodies_questions import Compared
from blowfishdb.entrypoints.api.showing import answer_body, shown_to, summary_body
from blowfishdb.exports import FORMATS, export

router: Final = APIRouter(tags=["Answers"])

Form = Enum("Form", {name: name for name in FORMATS}, type=str)  # type: ignore[misc]
Number = Annotated[int, Query(ge=0, le=2**62)]


@router.get("/answers", summary="List answers")
def answers(
    caller: SignedIn,
    dataset: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    after: Number = 0,
    newest: bool = False,
    full: bool = False,
) -> dict[str, Any]:
    """Every answer so far, the oldest first unless ``newest``; ``next`` is the ``after`` of the next page.

    With ``full``, each with its values; otherwise a line about each.
    """
    if dataset is not None:
        caller.gateway.facts(dataset)
    found = [
        answer
        for answer in caller.gateway.answers(dataset)
        if not after or _behind(answer.number, after, newest)
    ]
    if newest:
        found.reverse()
    more = found[limit - 1].number if len(found) > limit else None
    body = answer_body if full else summary_body
    return {"answers": [body(answer, caller) for answer in found[:limit]], "next": more}


def _behind(number: int, after: int, newest: bool) -> bool:
    return number < after if newest else number > after


@router.get("/answers/{number:int}", summary="One answer")
def answer(number: int, caller: SignedIn) -> dict[str, Any]:
    """One answer with its noise intervals and its receipt."""
    return answer_body(caller.gateway.answer(number), caller)


@router.get(
    "/answers/{number:int}.{form}",
    summary="One answer as a file",
    response_class=Response,
    responses={200: {"content": {media.partition(";")[0]: {} for media, _ in FORMATS.values()}}},
)
def exported(number: int, form: Form, caller: SignedIn, dark: bool = False) -> Response:
    """One answer as a file."""
    file = export(shown_to(caller.gateway.answer(number), caller), form.value, dark=dark)
    headers = {
        "Content-Disposition": f'attachment; filename="{file.filename}"',
        "Cache-Control": "private, no-store",
    }
    if form.value == "html":
        headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return Response(file.body, media_type=file.media_type, headers=headers)


@router.post("/compare", summary="Compare two answers")
def compared(body: Compared, caller: SignedIn) -> dict[str, Any]:
    """Two answers about the same bins: their difference, and where the noise does not explain it."""
    first, second = (caller.gateway.answer(number) for number in (body.a, body.b))
    return compare(first, second).to_plain()
