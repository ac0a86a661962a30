"""The list of datasets, and the overview of one.

What is promised to the people in the data: a page for everyone, which needs nobody to sign in.

What only the demonstration has: starting over; and the salary demo for a workspace with nothing in it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request, Response

from blowfishdb.adapters.store.catalogue import CLOSED, OPEN, WAITING
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, NotFound, UnknownDataset
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.protection import curve, percent
from blowfishdb.core.policy.statements import Clause
from blowfishdb.core.policy.words import sentences
from blowfishdb.entrypoints.demo_data import SAMPLES
from blowfishdb.entrypoints.server.access import Caller, PageCurator, PageReader, PageVisitor, summary_body
from blowfishdb.entrypoints.server.api import accounts
from blowfishdb.entrypoints.server.api.datasets import typed_place
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.server import Server, server_of
from blowfishdb.entrypoints.server.web.figures import Figure, figure
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    forward,
    meter,
    redirect,
    render,
    shown_again,
    text,
    ticked,
)
from blowfishdb.entrypoints.server.web.imports import received
from blowfishdb.entrypoints.server.web.promise_table import promise_table
from blowfishdb.show.charts import protection_chart, protection_table

router: Final = Router(include_in_schema=False)

_LATEST: Final = 5
_CEILING: Final = 0.98  # above which a curve of certainty is a line along the edge of its chart
_GUIDE, _OFF, _ONE_YEAR = "guide", "off", 365 * 24 * 3600
_ORDER: Final = (WAITING, OPEN, CLOSED)


@router.get("/datasets")
def datasets_page(request: Request, caller: PageReader) -> Response:
    """Every dataset with its budget; where there is none yet, how to get one."""
    cards = [
        (caller.gateway.facts(name), meter(caller, name), last_activity(caller, name))
        for name in caller.gateway.datasets()
    ]
    shown = sorted(cards, key=lambda card: _ORDER.index(card[0].standing))
    guided = caller.server.settings.demo and request.cookies.get(_GUIDE) != _OFF
    known = {sample.name for sample in SAMPLES} <= set(caller.gateway.datasets())
    return render(request, "datasets.html", caller=caller, cards=shown, guided=guided and known)


def last_activity(caller: Caller, dataset: str) -> str:
    """The day of the newest answer or policy; every reader can see both. Empty while there is none."""
    newest = caller.gateway.events(dataset, kinds=("settled", "policy"), limit=1)
    return newest[0].at.date().isoformat() if newest else ""


def who_may_ask(caller: Caller, dataset: str) -> str:
    """In words: names are for those who decide and those who read the books."""
    granted = [each.user for each in caller.gateway.grants(dataset) if each.granted is not None]
    if not granted:
        return "every analyst, and curators"
    if caller.analyst:
        return "those whom the curator gave a share"
    return ", ".join(sorted(granted))


@router.get("/datasets/{dataset}")
def overview_page(request: Request, dataset: str, caller: PageReader) -> Response:
    """Columns, policy in words, budget and the latest answers of one dataset."""
    facts = caller.gateway.facts(dataset)
    books = facts.part_of or dataset
    answers = caller.gateway.answers(books, limit=_LATEST)
    return render(
        request,
        "overview.html",
        caller=caller,
        dataset=dataset,
        facts=facts,
        policy=sentences(facts.policy),
        columns=[(name, attribute.describe()) for name, attribute in facts.domain.columns],
        answers=[summary_body(answer, caller) for answer in reversed(answers)],
        asked=caller.gateway.pages.answered(books).count,
        untouched=facts.policy_version == 1,
        active=last_activity(caller, dataset),
        askers=who_may_ask(caller, dataset),
        sent=caller.curator and not facts.part_of and _was_sent(caller, dataset),
    )


def _was_sent(caller: Caller, dataset: str) -> bool:
    """Whether its rows are a copy of what is nowhere to be read again."""
    source = caller.gateway.source(dataset)
    return source.copy is not None and not source.location


@router.post("/datasets/{dataset}/refresh")
def refreshed(request: Request, dataset: str, caller: PageCurator, form: Sent) -> Response:
    """Answers from now on belong to a new snapshot. A file that was sent is sent anew."""
    same = ticked(form, "same_rows")
    shown_again(request, lambda problem: _rows_page(request, dataset, caller, problem, same_rows=same))
    with typed_place():
        source = received(caller, form) if "file" in form else None
        caller.gateway.refresh(dataset, source, same_rows=same)
    snapshot = caller.gateway.facts(dataset).snapshot
    flash = f"Answers from now on belong to snapshot {snapshot}."
    return forward(request, dataset_address(dataset), flash=flash)


@router.get("/datasets/{dataset}/rows")
def rows_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Where the rows come from, how a file was read, and the copy that answers come from."""
    return _rows_page(request, dataset, caller)


@router.post("/datasets/{dataset}/delete")
def deleted(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """End the dataset, once its name was typed."""
    shown_again(request, lambda problem: _rows_page(request, dataset, caller, problem))
    if text(form, "name") != dataset:
        raise InvalidInput(f"To delete it, type its name: {dataset}.")
    return redirect("/datasets", flash=caller.gateway.delete(dataset))


def _rows_page(
    request: Request,
    dataset: str,
    caller: Caller,
    problem: Problem | None = None,
    *,
    same_rows: bool = False,
) -> Response:
    return render(
        request,
        "curator/rows.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        same_rows=same_rows,
        source=caller.gateway.source(dataset),
        held=caller.gateway.copies(),
        most=caller.server.settings.longest_upload,
    )


guarantee_pages: Final = Router(include_in_schema=False)


@guarantee_pages.get("/datasets/{dataset}/guarantee")
def guarantee_page(request: Request, dataset: str, caller: PageVisitor) -> Response:
    """The guarantee in words, what it does not cover, and how it fades with distance."""
    workspace = server_of(request).workspace
    if dataset not in workspace:
        raise UnknownDataset("There is no such dataset.")  # which ones there are is for those inside
    facts, promised = workspace.facts(dataset), workspace.guarantee(dataset)
    return render(
        request,
        "analyst/guarantee.html",
        caller=caller,
        dataset=dataset,
        shown_as=facts.title,
        guarantee=promised,
        marked=_marked,
        sentences=sentences(facts.policy),
        version_of_policy=facts.policy_version,
        promise=promise_table(facts.policy, promised),
        description=facts.face.description,
        owner=facts.face.owner,
        contact=facts.face.contact,
        curves=[
            drawn
            for number, column in enumerate(facts.domain.names)
            if (drawn := _curve(facts.policy, number, column, promised.budget)) is not None
        ],
    )


def _marked(clause: Clause) -> tuple[str, str, str]:
    """A promise, cut around the number that matters most."""
    return (
        clause.promise.partition(percent(clause.certainty)) if clause.certainty else (clause.promise, "", "")
    )


def _curve(policy: Policy, number: int, column: str, budget: Epsilon) -> Figure | None:
    """None where there is nothing to see: values are hidden alike, or all of it is near certainty."""
    steps = curve(policy, column, budget)
    if len({step.certainty for step in steps}) < 2 or steps[0].certainty > _CEILING:
        return None
    return figure(
        lambda width: protection_chart(steps, column, budget, width=width),
        protection_table(steps, column, budget),
        id=f"protection-{number}",
        width=480,
    )


demonstration: Final = Router(include_in_schema=False)

_resetting: Final = threading.Lock()


@demonstration.post("/demo/reset")
def reset(request: Request, caller: PageReader) -> Response:
    """Forget every answer and every change of policy, and stay in the same role."""
    if not caller.server.settings.demo or request.app.state.reset is None:
        raise NotFound("This is not the demonstration, so nothing is forgotten here.")
    role = caller.role
    with _resetting:
        start_over(request.app)
    response = redirect("/datasets", flash="The demonstration starts over: nothing was asked.")
    accounts.play_role(request, response, role)
    return response


@demonstration.post("/guide")
def hide_guide(caller: PageReader) -> Response:
    """Show the three steps no more in this browser."""
    response = redirect("/datasets")
    response.set_cookie(_GUIDE, _OFF, max_age=_ONE_YEAR, path="/", httponly=True, samesite="strict")
    return response


@demonstration.post("/datasets/salary-demo")
def salary_demo(caller: PageCurator) -> Response:
    """Synthetic salaries beside an empty workspace, as something to try things with."""
    file = caller.gateway.file
    if caller.gateway.datasets() or file is None:
        raise InvalidInput(
            "The salary demo is for a workspace in a file with nothing in it yet.", fixes=("blowfishdb demo",)
        )
    folder, sample = file.parent, SAMPLES[0]
    if not sample.file(folder).exists():
        sample.make(folder)
    caller.gateway.add_dataset(sample.name, sample.file(folder), domain=sample.domain())
    return redirect(dataset_address(sample.name), flash=f"{sample.about}; about nobody.")


def start_over(app: FastAPI) -> None:
    """A new workspace in place of the old one, and a server for it in place of the old one."""
    before: Server = app.state.server
    before.workspace.close()
    file = Path(before.workspace.place)
    app.state.reset(file)
    app.state.server = Server.open(file, before.settings)
