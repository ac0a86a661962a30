"""The books: what was charged, whether it adds up, and whether the server is well."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from blowfishdb.adapters.heads import Audited, Head
from blowfishdb.adapters.ledger import Event
from blowfishdb.entrypoints.api.access import Anyone, BookReader, Caller, watching
from blowfishdb.entrypoints.api.metrics import Metrics
from blowfishdb.entrypoints.api.server import server_of
from blowfishdb.entrypoints.api.shapes import Audit, EventShown, HeadShown, Health
from blowfishdb.messages import plain_epsilon

router: Final = APIRouter(tags=["Books"])
at_the_root: Final = APIRouter(tags=["Books"])
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
    if dataset is not None:
        caller.gateway.facts(dataset)
    audited = _audited(caller, [Head.of(text) for text in since])
    events = [event for event in caller.gateway.events(dataset) if event.seq > after][:limit]
    return Audit(**audited.to_plain(), events=[_event(event) for event in events])


@router.get("/head", summary="Where the books end")
def head(caller: BookReader) -> HeadShown:
    """The number of the last event and its hash: to be kept elsewhere, for ``GET /audit?since=``."""
    return HeadShown(head=str(caller.gateway.head()))


@router.get("/health", summary="Is the server well?")
def health(request: Request, _: Anyone) -> Health:
    """Answers once the workspace can be read."""
    server_of(request).workspace.datasets()
    return Health(status="ok", version=version("blowfishdb"))


@router.get("/metrics", summary="Numbers for Prometheus", response_class=Response)
@at_the_root.get("/metrics", include_in_schema=False, response_class=Response)
def metrics(request: Request, _: Watching) -> Response:
    """Requests by route, and budgets; for programs on this machine, curators and auditors."""
    numbers: Metrics = request.app.state.metrics
    return Response(numbers.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _audited(caller: Caller, since: list[Head]) -> Audited:
    """Compared with what the server's own witness file says, too."""
    witness = caller.server.settings.witness
    return caller.gateway.audited(since, witness or None)


def _event(event: Event) -> EventShown:
    return EventShown(
        seq=event.seq,
        at=event.at,
        kind=event.kind,
        dataset=event.dataset,
        analyst=event.analyst,
        charge=event.charge,
        **plain_epsilon("amount", event.amount),
        facts=dict(event.facts),
        hash=event.hash,
        salt=event.salt,
        sealed=[dict(entry) for entry in event.sealed],
    )
