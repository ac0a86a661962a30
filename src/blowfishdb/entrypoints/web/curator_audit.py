"""The audit page: whether the books add up, and every entry of them. For curators and auditors."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from blowfishdb.adapters.ledger_values import State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.api.books import audit
from blowfishdb.entrypoints.api.shapes import Audit, EventShown
from blowfishdb.entrypoints.web.frame import render
from blowfishdb.entrypoints.web.gates import PageBookReader

router: Final = APIRouter(include_in_schema=False)

_PER_PAGE: Final = 100
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_STATES: Final = {
    State.SETTLED: "answered",
    State.LOST: "charged without an answer",
    State.READING: "held: data being read",
    State.RESERVED: "held: reserved",
    State.VOID: "given back",
}
_ENTRIES: Final = {"dataset": "declaration of the data", "policy": "policy"}
_KINDS: Final = {
    "budget": "budget set",
    "grant": "grant",
    "policy": "policy published",
    "carried": "past counted",
    "promise": "promise kept",
    "withdrawn": "promise withdrawn",
    "preview": "curator looked",
    "source": "rows declared",
    "reserved": "charge reserved",
    "reading": "reading begins",
    "settled": "answered",
    "lost": "no answer came out",
    "void": "charge given back",
    "entry": "declaration",
}


@router.get("/datasets/{dataset}/audit")
def audit_page(
    request: Request,
    dataset: str,
    caller: PageBookReader,
    kind: str = "",
    who: str = "",
    page: str = "1",
    since: str = "",
) -> Response:
    """Whether every hash and every sum adds up, charges by state, and the newest events first."""
    books, refused = _compared(caller, dataset, since)
    chosen = [
        event
        for event in reversed(books.events)
        if (not kind or event.kind == kind) and (not who or event.analyst == who)
    ]
    pages = max(1, -(-len(chosen) // _PER_PAGE))
    number = min(pages, max(1, int(page) if page.isdecimal() and len(page) < 9 else 1))
    return render(
        request,
        "curator/audit.html",
        caller=caller,
        dataset=dataset,
        books=books,
        kinds=_KINDS,
        people=sorted({event.analyst for event in books.events}),
        kind=kind,
        who=who,
        questions={answer.number: answer.receipt.question for answer in caller.gateway.answers(dataset)},
        events=[(event, _said(event)) for event in chosen[(number - 1) * _PER_PAGE : number * _PER_PAGE]],
        found=len(chosen),
        page=number,
        pages=pages,
        charges=_by_state(books.events),
        since=since[:100],
        extends=not refused,
        refused=refused,
    )


@router.get("/datasets/{dataset}/audit.json")
def audit_json(dataset: str, caller: PageBookReader) -> Response:
    """All events, as the interface for programs gives them."""
    text = json.dumps(_books(caller, dataset).model_dump(mode="json"), indent=1, ensure_ascii=False)
    return _file(text, dataset, "json", "application/json")


@router.get("/datasets/{dataset}/audit.csv")
def audit_csv(dataset: str, caller: PageBookReader) -> Response:
    """All events, one on each line."""
    out = io.StringIO()
    writer = csv.writer(out)
    names = list(EventShown.model_fields)
    writer.writerow(names)
    for event in _books(caller, dataset).events:
        plain = event.model_dump(mode="json")
        for name in ("facts", "sealed"):
            plain[name] = json.dumps(plain[name], sort_keys=True, ensure_ascii=False)
        writer.writerow([_cell(plain[name]) for name in names])
    return _file(out.getvalue(), dataset, "csv", "text/csv; charset=utf-8")


def _books(caller: Caller, dataset: str, since: str = "") -> Audit:
    return audit(caller, dataset=dataset, after=0, limit=None, since=[since] if since else [])


def _compared(caller: Caller, dataset: str, since: str) -> tuple[Audit, str]:
    """The books, and what is wrong with them if they must extend a head; nothing if they do."""
    try:
        books = _books(caller, dataset, since)
    except InvalidInput as refusal:
        return _books(caller, dataset), refusal.message
    wrong = [problem for problem in books.problems if "head" in problem]
    return books, wrong[0] if wrong else ""


def _cell(value: object) -> object:
    """A name that begins like a formula stays a name when a spreadsheet opens the file."""
    risky = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if risky else value


def _file(text: str, dataset: str, ending: str, kind: str) -> Response:
    safe = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in dataset)
    headers = {"Content-Disposition": f'attachment; filename="audit-{safe}.{ending}"'}
    return Response(text, media_type=kind, headers=headers)


def _by_state(events: list[EventShown]) -> list[tuple[str, int, Epsilon]]:
    """Every charge counted in the state that it entered last."""
    last = {event.charge: event for event in events if event.charge is not None}
    counts, amounts = Counter[str](), Counter[str]()
    for event in last.values():
        counts[event.kind] += 1
        amounts[event.kind] += event.nano_amount
    return [
        (words, counts[state.value], Epsilon.from_nano(amounts[state.value]))
        for state, words in _STATES.items()
        if counts[state.value]
    ]


def _said(event: EventShown) -> list[str]:
    """The facts of an event that mean something to people; everything is in the files."""
    facts: dict[str, Any] = dict(event.facts)
    if event.kind == "policy":
        change = [str(sentence) for sentence in facts.get("difference", [])]
        past = facts.get("past", {}).get("sentence")
        versions = f"Version {facts.get('from_version')} → {facts.get('to_version')}."
        return [versions, *change, *([past] if past else [])]
    if event.kind in ("promise", "withdrawn"):
        return [f"Version {facts.get('version')} of the policy."]
    if event.kind == "entry":
        return [f"Version {facts.get('version')} of the {_ENTRIES.get(str(facts.get('entry')), 'entry')}."]
    if event.kind == "grant":
        return [f"granted by {facts['by']}"] if facts.get("by") else []
    told = (str(facts[name]) for name in ("question", "reason") if facts.get(name))
    return [said for said in told if not _HASH.fullmatch(said)]
