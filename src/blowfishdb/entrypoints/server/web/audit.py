"""The audit page: whether the books add up, and every entry of them. For curators and auditors.

The budget page: what may be lost in total, where it went, who may spend how much, what that promises.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from fastapi import Request, Response

from blowfishdb.adapters.store.catalogue import KEPT_ROWS
from blowfishdb.adapters.store.values import Answered, Audited, Event, State
from blowfishdb.adapters.tokens import Role
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy.guarantee import guarantee
from blowfishdb.core.policy.protection import at_most, certainty_at
from blowfishdb.core.questions.synthesis import listed
from blowfishdb.entrypoints.server.access import Caller, PageBookReader, PageCurator
from blowfishdb.entrypoints.server.api.books import audit_shown, audited_books, grant_to
from blowfishdb.entrypoints.server.api.responses import EventShown
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.figures import figure
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    redirect,
    render,
    shown_again,
    text,
    ticked,
)
from blowfishdb.entrypoints.server.web.promise_table import promise_table
from blowfishdb.entrypoints.server.web.typed import at_field, privacy_loss
from blowfishdb.show.charts import budget_chart, spending_chart, spending_table
from blowfishdb.show.tables import budget_table

router: Final = Router(include_in_schema=False)

_PER_PAGE: Final = 100
_CHARGES: Final = 25
_DRAWN: Final = 50  # answers; earlier ones are one part of the budget
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_STATES: Final = {
    State.SETTLED: "answered",
    State.LOST: "charged without an answer",
    State.READING: "held: data being read",
    State.RESERVED: "held: reserved",
    State.VOID: "given back",
}
_ENTRIES: Final = {
    "dataset": "declaration of the data",
    "policy": "policy",
    "face": "title and description",
    "standing": "word whether it is open",
    "sharing": "word whether cards may be made",
    "deleted": "word that it is deleted",
}
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
    state: str = "",
    asker: str = "",
    part: str = "1",
) -> Response:
    """Whether every hash and every sum adds up, charges by state, and the newest events first.

    On the first page all books are checked; further ones only go on with the list. Charges stand in a list of
    their own (``state``, ``asker``, ``part`` of it), each with what it went through.
    """
    caller.gateway.facts(dataset)
    pages, number = caller.gateway.pages, int(page) if page.isdecimal() and len(page) < 9 else 1
    shown = pages.event_page(dataset, kind=kind, analyst=who, number=number, size=_PER_PAGE)
    books, refused = _compared(caller, dataset, since) if shown.number == 1 else (None, "")
    settled = [event.charge for event in shown.events if event.charge and event.kind == State.SETTLED.value]
    at = int(part) if part.isdecimal() and len(part) < 9 else 1
    charged = pages.charge_page(dataset, state=state, analyst=asker, number=at, size=_CHARGES)
    spent, total = pages.spending(dataset), caller.gateway.budget(dataset).total
    drawn = figure(
        lambda width: spending_chart(spent, total, width=width), spending_table(spent, total), id="spending"
    )
    return render(
        request,
        "curator/audit.html",
        charged=charged,
        asked=pages.asked([charge.id for charge, _ in charged.charges]),
        states={state.value: words for state, words in _STATES.items()},
        state=state,
        asker=asker,
        spending=drawn if spent else None,
        caller=caller,
        dataset=dataset,
        books=books,
        kinds=_KINDS,
        people=pages.people(dataset),
        kind=kind,
        who=who,
        questions=pages.asked(settled),
        events=[(event, _facts(event)) for event in shown.events],
        found=shown.count,
        page=shown.number,
        pages=shown.pages,
        charges=_by_state(pages.by_state(dataset)),
        since=since[:100],
        extends=not refused,
        refused=refused,
    )


@router.get("/datasets/{dataset}/audit.json")
def audit_json(dataset: str, caller: PageBookReader) -> Response:
    """All events, as the interface for programs gives them."""
    books = audit_shown(audited_books(caller, dataset), caller.gateway.events(dataset))
    return _file(books.model_dump_json(indent=1), dataset, "json", "application/json")


@router.get("/datasets/{dataset}/audit.csv")
def audit_csv(dataset: str, caller: PageBookReader) -> Response:
    """All events, one on each line."""
    out = io.StringIO()
    writer = csv.writer(out)
    names = list(EventShown.model_fields)
    writer.writerow(names)
    for event in audit_shown(audited_books(caller, dataset), caller.gateway.events(dataset)).events:
        plain = event.model_dump(mode="json")
        for name in ("facts", "sealed"):
            plain[name] = json.dumps(plain[name], sort_keys=True, ensure_ascii=False)
        writer.writerow([_cell(plain[name]) for name in names])
    return _file(out.getvalue(), dataset, "csv", "text/csv; charset=utf-8")


def _compared(caller: Caller, dataset: str, since: str) -> tuple[Audited, str]:
    """The books, and what is wrong with them if they must extend a head; nothing if they do."""
    try:
        books = audited_books(caller, dataset, [since] if since else [])
    except InvalidInput as refusal:
        return audited_books(caller, dataset), refusal.message
    return books, next((problem for problem in books.problems if "head" in problem), "")


def _cell(value: object) -> object:
    """A name that begins like a formula stays a name when a spreadsheet opens the file."""
    risky = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if risky else value


def _file(text: str, dataset: str, ending: str, kind: str) -> Response:
    safe = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in dataset)
    headers = {"Content-Disposition": f'attachment; filename="audit-{safe}.{ending}"'}
    return Response(text, media_type=kind, headers=headers)


def _by_state(charges: Mapping[State, tuple[int, Epsilon]]) -> list[tuple[str, int, Epsilon]]:
    """How many charges are in each state, in words, and how much they are together."""
    return [(words, *charges[state]) for state, words in _STATES.items() if state in charges]


def _facts(event: Event) -> list[str]:
    """The facts of an event that mean something to people; everything is in the files."""
    facts: dict[str, Any] = dict(event.facts)
    if event.kind == "policy":
        change = [str(sentence) for sentence in facts.get("difference", [])]
        past = facts.get("past", {}).get("sentence")
        versions = f"Version {facts.get('from_version')} → {facts.get('to_version')}."
        return [versions, *change, *([past] if past else [])]
    if event.kind in ("promise", "withdrawn"):
        return [f"Version {facts.get('version')} of the policy."]
    if event.kind == "entry" and facts.get("entry") == KEPT_ROWS:
        columns = [str(name) for name in facts.get("columns", [])]
        return [f"Synthetic tables may keep rows of {listed(columns)}." if columns else "No rows are kept."]
    if event.kind == "entry":
        return [f"Version {facts.get('version')} of the {_ENTRIES.get(str(facts.get('entry')), 'entry')}."]
    if event.kind == "grant":
        return [f"granted by {facts['by']}"] if facts.get("by") else []
    words = (str(facts[name]) for name in ("question", "reason") if facts.get(name))
    return [each for each in words if not _HASH.fullmatch(each)]


budget_pages: Final = Router(include_in_schema=False)


@budget_pages.get("/datasets/{dataset}/budget")
def budget_page(request: Request, dataset: str, caller: PageBookReader, total: str = "") -> Response:
    """Total, spent and held; ``total`` asks what another total would promise, and changes nothing."""
    shown_again(request, lambda problem: _page(request, caller, dataset, typed=total, problem=problem))
    with at_field(request, "try-total"):
        tried = privacy_loss(total) if total.strip() else None
    return _page(request, caller, dataset, tried=tried, typed=total)


@budget_pages.post("/datasets/{dataset}/budget")
def set_total(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Promise another total. More than before weakens the promise, so it is shown first and confirmed."""
    typed = text(form, "total")
    shown_again(request, lambda problem: _page(request, caller, dataset, typed=typed, problem=problem))
    with at_field(request, "total"):
        total = privacy_loss(typed)
    if total > caller.gateway.budget(dataset).total and not ticked(form, "weaken"):
        return _page(request, caller, dataset, tried=total, typed=typed, asking=True)
    with at_field(request, "total"):
        caller.gateway.set_budget(dataset, total)
    return redirect(dataset_address(dataset, "/budget"), flash=f"The total budget is now ε {total}.")


@budget_pages.post("/datasets/{dataset}/budget/grant")
def grant(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Let someone spend part of the total."""
    user, typed = text(form, "user"), text(form, "epsilon")
    granting = (user, typed)
    shown_again(request, lambda problem: _page(request, caller, dataset, granting=granting, problem=problem))
    with at_field(request, f"grant {user}"):
        epsilon = privacy_loss(typed)
        grant_to(caller, dataset, user, epsilon)
    return redirect(dataset_address(dataset, "/budget"), flash=f"{user} may spend up to ε {epsilon} in all.")


@budget_pages.post("/datasets/{dataset}/budget/withdraw")
def withdraw(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Take an earlier promise back, on pages."""
    version = text(form, "version")
    shown_again(request, lambda problem: _page(request, caller, dataset, problem=problem))
    caller.gateway.withdraw(dataset, int(version) if version.isdecimal() else 0)
    sentence = f"The promise of version {version} is withdrawn. The audit log says so."
    return redirect(dataset_address(dataset, "/budget"), flash=sentence)


def _page(
    request: Request,
    caller: Caller,
    dataset: str,
    *,
    tried: Epsilon | None = None,
    typed: str = "",
    asking: bool = False,
    problem: Problem | None = None,
    granting: tuple[str, str] | None = None,
) -> Response:
    gateway = caller.gateway
    facts, budget, grants = gateway.facts(dataset), gateway.budget(dataset), gateway.grants(dataset)
    answers = gateway.answers(dataset, limit=_DRAWN)
    earlier = gateway.pages.answered(dataset, before=answers[0].number) if answers else Answered()
    chart = figure(
        lambda width: budget_chart(budget, answers, earlier, width=width),
        budget_table(budget, answers, earlier),
        id="budget",
    )
    shown = tried or budget.total
    granted = sum((grant.granted for grant in grants if grant.granted is not None), Epsilon(0))
    listed = {grant.user for grant in grants}
    promised = guarantee(facts.policy, shown, rows_per_person=facts.rows_per_person)
    return render(
        request,
        "curator/budget.html",
        caller=caller,
        dataset=dataset,
        budget=budget,
        chart=chart if answers or budget.spent else None,
        tried=tried if tried is not None and tried != budget.total else None,
        typed=typed,
        asking=asking,
        problem=problem,
        granting=granting or ("", ""),
        grants=grants,
        granted=granted,
        limited=any(grant.granted is not None for grant in grants),
        ungranted=budget.total - granted,
        people=[
            account.user
            for account in caller.server.accounts.list()
            if account.active and account.role is not Role.AUDITOR and account.user not in listed
        ],
        sure_now=at_most(certainty_at(1, budget.total)),
        sure_then=at_most(certainty_at(1, shown)),
        kept=gateway.kept(dataset),
        promise=promised,
        table=promise_table(facts.policy, promised),
    )
