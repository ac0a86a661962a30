"""The books: what was charged, whether it adds up, and whether the server is well.

Budgets: what a dataset may lose, and who may spend how much of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request, Response

from blowfishdb.adapters.store.values import Audited, Event, Head
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotFound
from blowfishdb.core.plain import epsilon_fields
from blowfishdb.entrypoints.server.access import Anyone, BookReader, Caller, Curator, SignedIn, watching
from blowfishdb.entrypoints.server.api.requests import Allowance, Total
from blowfishdb.entrypoints.server.api.responses import (
    Audit,
    BudgetShown,
    EventList,
    EventShown,
    GrantList,
    GrantShown,
    HeadShown,
    Health,
)
from blowfishdb.entrypoints.server.middleware import Metrics
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.workspace.gateway import Gateway

router: Final = Router(PREFIX, tags=["Books"])
at_the_root: Final = Router(tags=["Books"])
"""Where monitoring systems look."""

Watching = Annotated[Caller | None, Depends(watching)]


@router.get("/audit", summary="The audit log")
def audit(
    caller: BookReader,
    dataset: Annotated[str | None, Query(max_length=255)] = None,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only events with a higher number.")] = 0,
    limit: Annotated[int | None, Query(ge=1, le=100_000)] = None,
    since: Annotated[
        list[str], Query(max_length=1_000, description="Heads that were kept: the books must extend them.")
    ] = [],  # noqa: B006 (FastAPI copies it)
) -> Audit:
    """Every event of the ledger in order, and what is wrong with the whole of it, if anything."""
    audited = audited_books(caller, dataset, since)
    return audit_shown(audited, caller.gateway.events(dataset, after=after, limit=limit))


@router.get("/events", summary="What happened")
def events(
    caller: BookReader,
    dataset: Annotated[str | None, Query(max_length=255)] = None,
    kind: Annotated[list[str], Query(max_length=50)] = [],  # noqa: B006 (FastAPI copies it)
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    newest: bool = False,
) -> EventList:
    """The events of the ledger, the oldest first unless ``newest``; ``next`` is the next page's ``after``.

    They are as they were entered. Whether they add up is said by the audit log.
    """
    if dataset is not None:
        caller.gateway.facts(dataset)
    gateway, most = caller.gateway, limit + 1
    if newest:
        page = gateway.events(dataset, kinds=kind, limit=most, before=after or None)[::-1]
    else:
        page = gateway.events(dataset, kinds=kind, limit=most, after=after)
    more = page[limit - 1].seq if len(page) > limit else None
    return EventList(events=[EventShown(**event.to_plain()) for event in page[:limit]], next=more)


@router.get("/head", summary="Where the books end")
def head(caller: BookReader) -> HeadShown:
    """The number of the last event and its hash: to be kept elsewhere, for ``GET /audit?since=``."""
    return HeadShown(head=str(caller.gateway.head()))


@router.get("/health", summary="Is the server well?")
def health(request: Request, _: Anyone) -> Health:
    """Answers once the workspace can be read."""
    server_of(request).workspace.datasets()
    return Health(status="ok", version=request.app.version)


@router.get("/metrics", summary="Numbers for Prometheus", response_class=Response)
@at_the_root.get("/metrics", include_in_schema=False, response_class=Response)
def metrics(request: Request, _: Watching) -> Response:
    """Requests by route, and budgets; for programs on this machine, curators and auditors."""
    numbers: Metrics = request.app.state.metrics
    return Response(numbers.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def audited_books(caller: Caller, dataset: str | None, since: Sequence[str] = ()) -> Audited:
    """What is wrong with all books, for whoever looks at a dataset, or at all of them.

    They must extend the heads ``since``, and what the server's own witness file says.
    """
    if dataset is not None:
        caller.gateway.facts(dataset)
    witness = caller.server.settings.witness
    return caller.gateway.audited([Head.of(text) for text in since], witness or None)


def audit_shown(audited: Audited, events: Iterable[Event]) -> Audit:
    """Books as programs and files get them."""
    return Audit(**audited.to_plain(), events=[EventShown(**event.to_plain()) for event in events])


budgets: Final = Router(PREFIX, tags=["Budgets"])


@budgets.get("/datasets/{dataset}/budget", summary="The budget of a dataset")
def budget(dataset: str, caller: SignedIn) -> BudgetShown:
    """Total, spent, held for questions under way, and what the caller can still spend."""
    return BudgetShown(**shown(caller.gateway, dataset))


@budgets.put("/datasets/{dataset}/budget", summary="Set the budget")
def set_budget(dataset: str, body: Total, caller: Curator) -> BudgetShown:
    """Promise that the dataset loses at most this much, all answers together."""
    caller.gateway.set_budget(dataset, Epsilon(body.total))
    return BudgetShown(**shown(caller.gateway, dataset))


@budgets.get("/datasets/{dataset}/grants", summary="Who may spend what")
def grants(dataset: str, caller: BookReader) -> GrantList:
    """Everyone who has a grant or ever asked."""
    return _grants(caller.gateway, dataset)


@budgets.get("/datasets/{dataset}/spending", summary="Who spent what, day by day")
def spending(dataset: str, caller: BookReader) -> dict[str, Any]:
    """What each of those who ask has spent on each day; what was lost is spent, too."""
    caller.gateway.facts(dataset)
    spent = caller.gateway.pages.spending(dataset)
    told = [{"day": each.day, "user": each.analyst, **epsilon_fields("spent", each.amount)} for each in spent]
    return {"dataset": dataset, "spending": told}


@budgets.put("/datasets/{dataset}/grants/{user}", summary="Let someone spend part of it")
def grant(dataset: str, user: str, body: Allowance, caller: Curator) -> GrantList:
    """A user may spend up to this much in all. Once there are grants, only those who have one can spend."""
    grant_to(caller, dataset, user, Epsilon(body.epsilon))
    return _grants(caller.gateway, dataset)


def grant_to(caller: Caller, dataset: str, user: str, epsilon: Epsilon) -> None:
    """Let someone who may come in spend up to this much of a dataset."""
    account = caller.server.accounts.find(user)
    if account is None or not account.active:
        raise NotFound("There is no such user.", fixes=("look at the list of users",))
    caller.gateway.grant(dataset, account.user, epsilon)


def shown(gateway: Gateway, dataset: str) -> dict[str, Any]:
    """A budget as JSON has it, for the user of the gateway."""
    return {**gateway.budget(dataset).to_plain(), **epsilon_fields("left", gateway.left(dataset))}


def _grants(gateway: Gateway, dataset: str) -> GrantList:
    return GrantList(
        dataset=dataset, grants=[GrantShown(**grant.to_plain()) for grant in gateway.grants(dataset)]
    )
