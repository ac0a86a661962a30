"""What people keep beside answers: names and notes, cards, plans, dashboards, and requests for more.

A card is a page for whoever has its address; nobody has to sign in for it, and it shows one answer and
nothing about whoever asked.
"""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl

from fastapi import Query, Request, Response

from blowfishdb.adapters.store.values import RequestKey
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.errors import BlowfishError, InvalidInput, NotFound
from blowfishdb.entrypoints.server.access import (
    Caller,
    PageAsker,
    PageCurator,
    PageReader,
    PageVisitor,
    shown_to,
)
from blowfishdb.entrypoints.server.api import books, desk
from blowfishdb.entrypoints.server.api.questions import QuestionBody
from blowfishdb.entrypoints.server.once import Reply, answered_once
from blowfishdb.entrypoints.server.problems import Problem, told
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.entrypoints.server.web.answers import answer_figure
from blowfishdb.entrypoints.server.web.ask_draft import Draft
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    meter,
    redirect,
    render,
    shown_again,
    text,
    texts,
    ticked,
)
from blowfishdb.messages.desk import Label, Planned
from blowfishdb.messages.quotes import TogetherQuote
from blowfishdb.show.charts import answer_chart, svg, themed
from blowfishdb.workspace.asking import Asking

router: Final = Router(include_in_schema=False)

_LONGEST: Final = 20_000
_CARD_WIDTH: Final = 560


# --- names, notes and cards -----------------------------------------------------------------------


@router.post("/answers/{number:int}/label")
def name_it(number: int, form: Sent, caller: PageAsker) -> Response:
    """Name an answer, and note something about it."""
    label = Label(" ".join(text(form, "name").split()), text(form, "note"))
    desk.named(caller, number, label)
    return redirect(f"/answers/{number}", flash="Name and note are kept.")


@router.post("/answers/{number:int}/card")
def make_card(number: int, caller: PageAsker) -> Response:
    """A card of the answer, to be sent, cited or embedded."""
    return redirect(
        f"/cards/{desk.carded(caller, number).id}", flash="Whoever has this address sees this card."
    )


@router.get("/cards/{card}.svg")
def card_picture(request: Request, card: str, _: PageVisitor, dark: bool = False) -> Response:
    """The picture of a card, which a page elsewhere may embed."""
    shown = desk.shown_card(server_of(request), card)
    body = svg(themed(answer_chart(shown.answer, width=_CARD_WIDTH), dark=dark))
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return Response(body, media_type="image/svg+xml", headers=headers)


@router.get("/cards/{card}")
def card_page(request: Request, card: str, caller: PageVisitor) -> Response:
    """One answer with its interval, what was promised, its receipt number and the ledger's head."""
    shown = desk.shown_card(server_of(request), card)
    mine = caller is not None and (caller.curator or caller.name == shown.card.by)
    return render(
        request,
        "analyst/card.html",
        caller=caller,
        card=shown,
        figure=answer_figure(shown.answer, elsewhere=f"/cards/{card}.svg"),
        mine=mine,
        address=str(request.url_for("card_page", card=card)),
    )


@router.get("/cards/{card}/verify")
def verify_page(
    request: Request,
    card: str,
    caller: PageVisitor,
    fingerprint: Annotated[str, Query(max_length=64)] = "",
    head: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Whether what was written down from a card is in the books: match or no match."""
    server = server_of(request)
    return render(
        request,
        "analyst/verify.html",
        caller=caller,
        card=desk.shown_card(server, card),
        matches=desk.verified(server, card, fingerprint, head),
        fingerprint=fingerprint,
        head=head,
    )


@router.post("/cards/{card}/end")
def end_card(card: str, caller: PageAsker) -> Response:
    """Stop showing a card."""
    ended = desk.ended(caller, card)
    return redirect(
        f"/answers/{ended.answer}", flash="The card is ended: its address shows nothing any more."
    )


@router.get("/datasets/{dataset}/cards")
def cards_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Whether answers may be shown to people without an account, and which are."""
    caller.gateway.facts(dataset)
    kept = caller.gateway.desk
    cards = [card for card in kept.cards(dataset)[::-1] if card.ended is None]
    return render(
        request,
        "curator/cards.html",
        caller=caller,
        dataset=dataset,
        allowed=kept.cards_allowed(dataset),
        cards=cards,
        questions=caller.gateway.pages.asked([card.answer for card in cards]),
    )


@router.post("/datasets/{dataset}/cards")
def allow_cards(dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Decide that."""
    caller.gateway.facts(dataset)
    allowed = ticked(form, "allowed")
    caller.gateway.desk.allow_cards(dataset, allowed, caller.name)
    said = "Cards may be made of answers." if allowed else "No card of this dataset is shown any more."
    return redirect(dataset_address(dataset, "/cards"), flash=said)


# --- requests for more ----------------------------------------------------------------------------


@router.post("/datasets/{dataset}/request")
def request_more(request: Request, dataset: str, form: Sent, caller: PageAsker) -> Response:
    """Ask the curator for more, in a sentence."""
    caller.gateway.facts(dataset)
    reason = text(form, "reason")
    shown_again(request, lambda problem: _requests(request, caller, problem=problem, typed=(dataset, reason)))
    caller.gateway.desk.request(dataset, caller.name, reason)
    return redirect("/requests", flash="The curator has your request.")


@router.get("/requests")
def requests_page(request: Request, caller: PageAsker, dataset: str = "") -> Response:
    """The curator's inbox; an analyst sees what became of their own requests."""
    return _requests(request, caller, typed=(dataset, ""))


@router.post("/requests/{id}")
def settle_request(request: Request, id: str, form: Sent, caller: PageCurator) -> Response:  # noqa: A002
    """Grant what is asked for, or decline it; a new grant is made at once."""
    granted, epsilon, reply = text(form, "state") == "granted", text(form, "epsilon"), text(form, "reply")
    shown_again(request, lambda problem: _requests(request, caller, problem=problem))
    kept = caller.gateway.desk
    found = next((each for each in kept.requests() if each.id == id), None)
    if found is None:
        raise NotFound("There is no such request.")
    if granted:
        books.grant_to(caller, found.dataset, found.user, Epsilon(epsilon))
    kept.settle_request(id, "granted" if granted else "declined", reply, caller.name)
    said = (
        f"{found.user} may spend up to ε {Epsilon(epsilon)} in all."
        if granted
        else "The request is declined."
    )
    return redirect("/requests", flash=said)


def _requests(
    request: Request, caller: Caller, *, problem: Problem | None = None, typed: tuple[str, str] = ("", "")
) -> Response:
    mine = None if caller.curator else caller.name
    every = caller.gateway.desk.requests(user=mine)[::-1]
    names = caller.gateway.datasets()
    grants = {
        (name, grant.user): grant for name in {each.dataset for each in every} & set(names)
        for grant in caller.gateway.grants(name)
    }  # fmt: skip
    return render(
        request,
        "analyst/requests.html",
        caller=caller,
        problem=problem,
        typed=typed,
        names=names,
        waiting=[each for each in every if each.state == "open"],
        done=[each for each in every if each.state != "open"][:50],
        grants=grants,
        meters=[meter(caller, name) for name in names],
    )


# --- plans and dashboards -------------------------------------------------------------------------


@router.post("/plan/add")
def put_on_plan(form: Sent, caller: PageAsker) -> Response:
    """Put what stands in the form of a dataset on the plan."""
    dataset, address = text(form, "dataset"), text(form, "address")[:_LONGEST]
    facts, source = caller.gateway.facts(dataset), caller.gateway[dataset]
    draft = Draft.read(dict(parse_qsl(address.removeprefix("?"), keep_blank_values=True)), facts.domain)
    body, _ = draft.asked(facts.domain, dataset, source.select)
    body.asking(source)  # what cannot be asked is not put there
    asked = body.model_dump(mode="json", exclude_defaults=True)
    kept = caller.gateway.desk
    planned = kept.plan(caller.name)
    if all((each.dataset, each.asked) != (dataset, asked) for each in planned):
        kept.keep_plan(caller.name, [*planned, Planned(dataset, asked, draft.address(explain=""))])
    return redirect("/plan")


@router.get("/plan")
def plan_page(request: Request, caller: PageAsker) -> Response:
    """The questions on the plan: what each costs alone and beside the others, and what all of them cost."""
    return _plan(request, caller)


@router.post("/plan/drop")
def drop_from_plan(form: Sent, caller: PageAsker) -> Response:
    """Take a question off."""
    kept, at = caller.gateway.desk, text(form, "at")
    planned = kept.plan(caller.name)
    if at.isdecimal() and int(at) < len(planned):
        kept.keep_plan(caller.name, [each for number, each in enumerate(planned) if number != int(at)])
    return redirect("/plan")


@router.post("/plan/ask")
def pay_for_plan(request: Request, form: Sent, caller: PageAsker) -> Response:
    """Pay once for everything on the plan, no more than was shown, and go to the page of all answers."""
    shown_again(request, lambda problem: _plan(request, caller, problem=problem))
    most, title, key = text(form, "most"), text(form, "title") or "Plan", text(form, "key")
    limit = Epsilon(most)
    kept = caller.gateway.desk
    planned = kept.plan(caller.name)
    if not planned:
        raise InvalidInput("There is nothing on the plan.", fixes=("put a question on it",))

    def answer(_: Cancellation | None, sent: RequestKey | None) -> Reply:
        found = caller.gateway.batch(*_askings(caller, planned)).ask(max_cost=limit, key=sent)
        return Reply(200, {"answers": [each.number for each in found]})

    said = {"plan": [each.to_plain() for each in planned], "most": str(limit)}
    reply = answered_once(caller, request, key or None, said, answer)
    if reply.status != 200:
        return _plan(request, caller, problem=Problem(**reply.body))
    made = kept.make_dashboard(title[:120], list(dict.fromkeys(reply.body["answers"])), caller.name)
    kept.keep_plan(caller.name, [])
    return redirect(f"/dashboards/{made.id}", flash="Everything on the plan is answered.")


def _askings(caller: Caller, planned: list[Planned]) -> list[Asking]:
    return [QuestionBody(**each.asked).asking(caller.gateway[each.dataset]) for each in planned]


def _plan(request: Request, caller: Caller, *, problem: Problem | None = None) -> Response:
    planned = caller.gateway.desk.plan(caller.name)
    quote: TogetherQuote | None = None
    if planned:
        try:
            quote = caller.gateway.plan(*_askings(caller, planned)).quotes()
        except BlowfishError as error:
            problem = problem or told(request, error)
    used = list(dict.fromkeys(each.dataset for each in planned if each.dataset in caller.gateway))
    left = {name: caller.gateway.left(name) for name in used}
    costs = {} if quote is None else _by_dataset(quote)
    return render(
        request,
        "analyst/plan.html",
        caller=caller,
        problem=problem,
        planned=planned,
        quote=quote,
        short=[name for name, cost in costs.items() if cost > left.get(name, Epsilon(0))],
        left=left,
        costs=costs,
        key=str(uuid.uuid4()),
        meters=[meter(caller, name) for name in used],
        names=caller.gateway.datasets(),
    )


def _by_dataset(quote: TogetherQuote) -> dict[str, Epsilon]:
    costs: dict[str, Epsilon] = {}
    for part in quote.parts:
        costs[part.dataset] = costs.get(part.dataset, Epsilon(0)) + part.epsilon
    return costs


@router.get("/dashboards")
def dashboards_page(request: Request, caller: PageReader) -> Response:
    """Every dashboard."""
    listed = caller.gateway.desk.dashboards()[:200]
    return render(
        request, "analyst/dashboards.html", caller=caller, dashboards=listed, named=not caller.analyst
    )


@router.post("/dashboards")
def make_dashboard(request: Request, form: Sent, caller: PageAsker) -> Response:
    """The ticked answers on one page."""
    numbers = [int(each) for each in texts(form, "pick") if each.isdecimal()]
    for number in numbers:
        caller.gateway.answer(number)
    title = text(form, "title") or f"{len(numbers)} answers"
    made = caller.gateway.desk.make_dashboard(title, list(dict.fromkeys(numbers)), caller.name)
    return redirect(f"/dashboards/{made.id}")


@router.get("/dashboards/{id}")
def dashboard_page(request: Request, id: str, caller: PageReader) -> Response:  # noqa: A002
    """All answers of a dashboard on one page, to be shared with those who may see them, or printed."""
    found = caller.gateway.desk.dashboard(id)
    labels = caller.gateway.desk.labels()
    answers = [shown_to(each, caller) for each in caller.gateway.answers_at(found.answers)]
    shown = [
        (each, labels.get(each.number, Label()), answer_figure(each, id=f"answer-{each.number}", width=480))
        for each in answers
    ]
    spent = sum((each.receipt.epsilon for each in answers), Epsilon(0))
    return render(
        request,
        "analyst/dashboard.html",
        caller=caller,
        board=found,
        shown=shown,
        spent=spent,
        used=list(dict.fromkeys(each.receipt.dataset for each in answers)),
    )


def planned_by(caller: Caller) -> dict[str, Any]:
    """What the navigation says: how many questions are on the plan, how many requests wait."""
    kept = caller.gateway.desk
    waiting = [each for each in kept.requests() if each.state == "open"] if caller.curator else []
    return {"planned": len(kept.plan(caller.name)), "waiting": len(waiting)}
