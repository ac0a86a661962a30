"""The list of datasets, and the overview of one."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.api.bodies import Refresh
from blowfishdb.entrypoints.api.datasets import datasets as listed
from blowfishdb.entrypoints.api.datasets import refresh, shown
from blowfishdb.entrypoints.api.showing import summary_body
from blowfishdb.entrypoints.web.forms import Sent, text
from blowfishdb.entrypoints.web.frame import dataset_address, meter, redirect, render, told
from blowfishdb.entrypoints.web.gates import PageCurator, PageReader

router: Final = APIRouter(include_in_schema=False)

_LATEST: Final = 5


@router.get("/datasets")
def datasets_page(request: Request, caller: PageReader) -> Response:
    """Every dataset with its budget; where there is none yet, how to get one."""
    cards = [(each, meter(caller, each.name)) for each in listed(caller).datasets]
    return render(request, "datasets.html", caller=caller, cards=cards)


@router.get("/datasets/{dataset}")
def overview_page(request: Request, dataset: str, caller: PageReader) -> Response:
    """Columns, policy in words, budget and the latest answers of one dataset."""
    facts = shown(caller.gateway, dataset)
    answers = caller.gateway.answers(dataset)
    return render(
        request,
        "overview.html",
        caller=caller,
        dataset=dataset,
        facts=facts,
        columns=[line.partition(": ")[::2] for line in facts.columns_in_words],
        answers=[summary_body(answer, caller) for answer in reversed(answers[-_LATEST:])],
        asked=len(answers),
        untouched=facts.policy_version == 1,
    )


@router.post("/datasets/{dataset}/refresh")
def refreshed(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """The rows have changed: answers from now on belong to a new snapshot."""
    said = Refresh(same_rows=bool(text(form, "same_rows")))
    try:
        snapshot = refresh(dataset, caller, said).snapshot
    except BlowfishError as error:
        return _rows_page(request, dataset, caller, told(request, error), same_rows=said.same_rows)
    return redirect(dataset_address(dataset), flash=f"Answers from now on belong to snapshot {snapshot}.")


@router.get("/datasets/{dataset}/rows")
def rows_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Where the rows come from, how a file was read, and the copy that answers come from."""
    return _rows_page(request, dataset, caller)


@router.post("/datasets/{dataset}/delete")
def deleted(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """End the dataset, once its name was typed."""
    try:
        if text(form, "name") != dataset:
            raise InvalidInput(f"To delete it, type its name: {dataset}.")
        words = caller.gateway.delete(dataset)
    except BlowfishError as error:
        return _rows_page(request, dataset, caller, told(request, error))
    return redirect("/datasets", flash=words)


def _rows_page(
    request: Request,
    dataset: str,
    caller: Caller,
    problem: dict[str, Any] | None = None,
    *,
    same_rows: bool = False,
) -> Response:
    return render(
        request,
        "curator/rows.html",
        caller=caller,
        dataset=dataset,
        status=200 if problem is None else problem["status"],
        problem=problem,
        same_rows=same_rows,
        source=caller.gateway.source(dataset),
        held=caller.gateway.copies(),
    )
