"""How a dataset introduces itself, whether it is open, and its declaration while nothing was asked."""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response

from blowfishdb.core.domain.domain import Domain
from blowfishdb.entrypoints.server.access import Caller, PageCurator
from blowfishdb.entrypoints.server.api.datasets import change_dataset, typed_place
from blowfishdb.entrypoints.server.api.requests import DatasetChange
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    redirect,
    render,
    shown_again,
    text,
    ticked,
)
from blowfishdb.entrypoints.server.web.import_form import (
    CHOICES,
    ColumnTexts,
    check_complete,
    checked,
    confirmed_count,
    declared_columns,
    sent_columns,
)
from blowfishdb.messages.policies import Face

router: Final = Router(include_in_schema=False)

_LONGEST: Final = 4_000


@router.get("/datasets/{dataset}/about")
def about_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Title, description, owner and contact, to be changed; and whether it takes questions."""
    return _about(request, caller, dataset, caller.gateway.facts(dataset).face)


@router.post("/datasets/{dataset}/about")
def introduce(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Write down what was typed."""
    typed = {name: text(form, name)[: _LONGEST + 1] for name in ("title", "description", "owner", "contact")}
    typed["description"] = typed["description"].replace("\r\n", "\n")
    listed = ticked(form, "listed")
    shown_again(
        request,
        lambda problem: _about(
            request, caller, dataset, caller.gateway.facts(dataset).face, problem, typed=typed, listed=listed
        ),
    )
    caller.gateway.introduce(dataset, Face(**typed, listed=listed))
    return redirect(dataset_address(dataset), flash="Saved.")


@router.post("/datasets/{dataset}/standing")
def stand(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Close it to new questions, or open it again."""
    opened = text(form, "opened") == "1"
    shown_again(
        request,
        lambda problem: _about(request, caller, dataset, caller.gateway.facts(dataset).face, problem),
    )
    change_dataset(caller, dataset, DatasetChange(opened=opened))
    words = "takes questions again" if opened else "takes no more questions; what was answered stays"
    return redirect(dataset_address(dataset), flash=f"'{dataset}' {words}.")


def _about(
    request: Request,
    caller: Caller,
    dataset: str,
    face: Face,
    problem: Problem | None = None,
    *,
    typed: dict[str, str] | None = None,
    listed: bool | None = None,
) -> Response:
    return render(
        request,
        "curator/about.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        typed=typed or {name: getattr(face, name) for name in ("title", "description", "owner", "contact")},
        listed=face.listed if listed is None else listed,
        standing=caller.gateway.facts(dataset).standing,
        asked=caller.gateway.pages.answered(dataset).count,
    )


@router.get("/datasets/{dataset}/columns")
def columns_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """The declared columns, to be corrected while nothing was asked; afterwards, why they stay."""
    columns = declared_columns(caller.gateway.facts(dataset).domain)
    return _columns(request, caller, dataset, columns)


@router.post("/datasets/{dataset}/columns")
def redeclare(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Declare them anew: everything is hidden again, until a policy is published."""
    columns, attributes = checked(sent_columns(form))
    shown_again(request, lambda problem: _columns(request, caller, dataset, columns, problem))
    check_complete(columns, attributes)
    with typed_place():
        caller.gateway.redeclare(dataset, Domain.of(attributes))
    flash = "The columns are declared anew, and everything about them is hidden."
    return redirect(dataset_address(dataset, "/start"), flash=flash)


def _columns(
    request: Request,
    caller: Caller,
    dataset: str,
    columns: list[ColumnTexts],
    problem: Problem | None = None,
) -> Response:
    return render(
        request,
        "curator/columns.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        columns=columns,
        confirmed=confirmed_count(columns),
        charged=bool(caller.gateway.pages.by_state(dataset)),
        described=[(name, each.describe()) for name, each in caller.gateway.facts(dataset).domain.columns],
        **CHOICES,
    )
