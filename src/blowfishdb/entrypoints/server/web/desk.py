"""What people keep beside answers: names and notes, cards, dashboards, and requests for more.

A card is a page for whoever has its address; nobody has to sign in for it, and it shows one answer and
nothing about whoever asked.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request, Response

from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.server.access import (
    Caller,
    PageAsker,
    PageCurator,
    PageReader,
    PageVisitor,
    shown_to,
)
from blowfishdb.entrypoints.server.api import books, desk
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.entrypoints.server.web.answers import answer_figure, answer_page_again, log_page_again
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
from blowfishdb.entrypoints.server.web.typed import at_field, privacy_loss
from blowfishdb.messages.desk import Label
from blowfishdb.show.charts import answer_chart, svg, themed

router: Final = Router(include_in_schema=False)

_LONGEST: Final = 20_000
_CARD_WIDTH: Final = 560


# --- names, notes and cards -----------------------------------------------------------------------


@router.post("/answers/{number:int}/label")
def name_it(request: Request, number: int, form: Sent, caller: PageAsker) -> Response:
    """Name an answer, and note something about it."""
    name, note = " ".join(text(form, "name").split()), text(form, "note")
    shown_again(request, lambda problem: answer_page_again(request, number, caller, problem, (name, note)))
    with at_field(request, "name"):
        Label(name)
    with at_field(request, "note"):
        label = Label(name, note)
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
    with at_field(request, "reason"):
        caller.gateway.desk.request(dataset, caller.name, reason)
    return redirect("/requests", flash="The curator has your request.")


@router.get("/requests")
def requests_page(request: Request, caller: PageAsker, dataset: str = "") -> Response:
    """The curator's inbox; an analyst sees what became of their own requests."""
    return _requests(request, caller, typed=(dataset, ""))


@router.post("/requests/{id}")
def settle_request(request: Request, id: str, form: Sent, caller: PageCurator) -> Response:  # noqa: A002
    """Grant what is asked for, or decline it; a new grant is made at once."""
    granted, typed, reply = text(form, "state") == "granted", text(form, "epsilon"), text(form, "reply")
    shown_again(
        request, lambda problem: _requests(request, caller, problem=problem, settling=(id, typed, reply))
    )
    kept = caller.gateway.desk
    found = kept.open_request(id)
    if granted:
        with at_field(request, f"epsilon {id}"):
            epsilon = privacy_loss(typed)
            books.grant_to(caller, found.dataset, found.user, epsilon)
    kept.settle_request(id, "granted" if granted else "declined", reply, caller.name)
    said = f"{found.user} may spend up to ε {epsilon} in all." if granted else "The request is declined."
    return redirect("/requests", flash=said)


def _requests(
    request: Request,
    caller: Caller,
    *,
    problem: Problem | None = None,
    typed: tuple[str, str] = ("", ""),
    settling: tuple[str, str, str] = ("", "", ""),
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
        settling=settling,
        names=names,
        waiting=[each for each in every if each.state == "open"],
        done=[each for each in every if each.state != "open"][:50],
        grants=grants,
        granted={name for (name, _), grant in grants.items() if grant.granted is not None},
        meters=[meter(caller, name) for name in names],
    )


# --- dashboards -----------------------------------------------------------------------------------


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
    shown_again(request, lambda problem: log_page_again(request, caller, problem, numbers))
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
