"""Two answers beside each other, and where they differ by more than their noise allows."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from blowfishdb.answers import Answer
from blowfishdb.charts import comparison_chart, comparison_table
from blowfishdb.comparison import Comparison, compare
from blowfishdb.core.errors import BlowfishError, InvalidInput, NotFound
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.web.figures import figure
from blowfishdb.entrypoints.web.frame import meter, render, told
from blowfishdb.entrypoints.web.gates import PageReader

router: Final = APIRouter(include_in_schema=False)

_MOST_OFFERED: Final = 200


@router.get("/compare")
def compare_page(
    request: Request,
    caller: PageReader,
    a: Annotated[str, Query(max_length=20)] = "",
    b: Annotated[str, Query(max_length=20)] = "",
    pick: Annotated[list[str] | None, Query(max_length=1_000)] = None,
) -> Response:
    """The difference of answers ``a`` and ``b``, or of the two that were ticked in the log."""
    chosen = [number for number in ((a, b) if a or b else tuple(pick or ())) if number]
    problem: dict[str, Any] | None = None
    comparison: Comparison | None = None
    try:
        found = _picked(caller, chosen)
        if len(found) == 2:
            comparison = compare(*found)
    except NotFound:
        raise
    except BlowfishError as error:
        problem = told(request, error)
    stored = caller.gateway.answers()
    return render(
        request,
        "analyst/compare.html",
        caller=caller,
        status=200 if problem is None else problem["status"],
        problem=problem,
        comparison=comparison,
        figure=None if comparison is None else _figure(comparison),
        stored=list(reversed(stored))[:_MOST_OFFERED],
        chosen=[*chosen, "", ""][:2],
        meters=[meter(caller, name) for name in _datasets(comparison, stored)],
    )


def _picked(caller: Caller, numbers: list[str]) -> list[Answer]:
    if len(numbers) > 2:
        raise InvalidInput(
            f"Two answers are compared, and {len(numbers):,} were ticked.", fixes=("choose two below",)
        )
    return [caller.gateway.answer(_number(text)) for text in numbers]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise NotFound("Answers have numbers.", fixes=("choose two answers from the log",))
    return int(text)


def _figure(comparison: Comparison) -> Any:
    table = comparison_table(comparison)
    return figure(lambda width: comparison_chart(comparison, width=width), table, id="comparison")


def _datasets(comparison: Comparison | None, stored: list[Answer]) -> list[str]:
    shown = stored if comparison is None else [comparison.first, comparison.second]
    return list(dict.fromkeys(answer.receipt.dataset for answer in shown))
