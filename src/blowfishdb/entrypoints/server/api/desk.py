"""What people keep beside answers: names, cards for people without an account, dashboards, requests for more.

A card shows one answer and nothing else: no analyst, no budget, no other answer. Its verification says match
or no match.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, final

from fastapi import Query, Request
from pydantic import Field

from blowfishdb.core.errors import NotAllowed
from blowfishdb.core.policy.words import sentences
from blowfishdb.entrypoints.server.access import Anyone, Asker, Caller, Curator, SignedIn, summary_body
from blowfishdb.entrypoints.server.api.requests import Body
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.entrypoints.server.server import Server, server_of
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.desk import LONGEST_NAME, LONGEST_NOTE, LONGEST_REASON, Card, Label

router: Final = Router(PREFIX, tags=["Desk"])


class Labelled(Body):
    """What an answer is called, and what is noted about it."""

    name: str = Field(default="", max_length=LONGEST_NAME, examples=["Men, by age"])
    note: str = Field(default="", max_length=LONGEST_NOTE)


class Sharing(Body):
    """Whether answers of a dataset may be shown to people without an account."""

    cards: bool


class Wanted(Body):
    """Why more is needed."""

    reason: str = Field(max_length=LONGEST_REASON, examples=["The yearly report needs ±20."])


class Settled(Body):
    """What became of a request."""

    state: str = Field(max_length=20, examples=["declined"])
    reply: str = Field(default="", max_length=LONGEST_REASON)


class Gathered(Body):
    """Answers to be on one page."""

    title: str = Field(max_length=LONGEST_NAME)
    answers: list[int] = Field(min_length=1, max_length=50)


@router.put("/answers/{number:int}/label", summary="Name an answer")
def label(number: int, body: Labelled, caller: Asker) -> dict[str, Any]:
    """Name an answer and note something about it: whoever asked it, and curators."""
    return named(caller, number, Label(body.name.strip(), body.note.strip())).to_plain()


@router.post("/answers/{number:int}/card", summary="Make a card of an answer")
def make_card(number: int, caller: Asker) -> dict[str, Any]:
    """An address at which whoever has it sees this answer, where the curator of the dataset allows cards."""
    return card_body(carded(caller, number))


@router.get("/cards/{card}", summary="A card")
def card(card: str, _: Anyone, request: Request) -> dict[str, Any]:
    """The answer of a card with its interval, what was promised, its receipt number and the ledger's head."""
    return shown_card(server_of(request), card).to_plain()


@router.delete("/cards/{card}", summary="End a card")
def end_card(card: str, caller: Asker) -> dict[str, Any]:
    """Its address shows nothing from now on: whoever made it, and curators."""
    return card_body(ended(caller, card))


@router.get("/cards/{card}/verify", summary="Does a card match the books?")
def verify(
    card: str,
    _: Anyone,
    request: Request,
    fingerprint: Annotated[str, Query(max_length=64)] = "",
    head: Annotated[str, Query(max_length=100)] = "",
) -> dict[str, Any]:
    """Whether the books have an answer of this fingerprint, and this head; the card's own if none is sent."""
    return {"matches": verified(server_of(request), card, fingerprint, head)}


@router.put("/datasets/{dataset}/sharing", summary="Allow cards, or not")
def share(dataset: str, body: Sharing, caller: Curator) -> dict[str, Any]:
    """Whether cards may be made of answers of this dataset, and are shown; nothing is unless this says so."""
    caller.gateway.facts(dataset)
    caller.gateway.desk.allow_cards(dataset, body.cards, caller.name)
    return {"dataset": dataset, "cards": body.cards}


@router.post("/datasets/{dataset}/requests", summary="Ask the curator for more")
def want(dataset: str, body: Wanted, caller: Asker) -> dict[str, Any]:
    """A request for a larger grant, in a sentence; it changes nothing by itself."""
    caller.gateway.facts(dataset)
    return caller.gateway.desk.request(dataset, caller.name, body.reason).to_plain()


@router.get("/requests", summary="Requests for more")
def wanted(caller: SignedIn) -> dict[str, Any]:
    """Those of everyone for curators, your own otherwise."""
    mine = None if caller.curator else caller.name
    return {"requests": [each.to_plain() for each in caller.gateway.desk.requests(user=mine)]}


@router.put("/requests/{id}", summary="Answer a request")
def settle(id: str, body: Settled, caller: Curator) -> dict[str, Any]:  # noqa: A002
    """Say what became of a request; a grant is made for itself, under grants."""
    return caller.gateway.desk.settle_request(id, body.state, body.reply, caller.name).to_plain()


@router.post("/dashboards", summary="Answers on one page")
def gather(body: Gathered, caller: Asker) -> dict[str, Any]:
    """A page of answers with an address of its own, for those who may see them."""
    for number in body.answers:
        caller.gateway.answer(number)
    made = caller.gateway.desk.make_dashboard(body.title, body.answers, caller.name)
    return {"id": made.id, "address": f"/dashboards/{made.id}"}


@router.get("/dashboards/{id}", summary="A dashboard")
def dashboard(id: str, caller: SignedIn) -> dict[str, Any]:  # noqa: A002
    """Its title, and a line about each of its answers."""
    found = caller.gateway.desk.dashboard(id)
    answers = [summary_body(caller.gateway.answer(number), caller) for number in found.answers]
    return {"id": found.id, "title": found.title, "made": found.made, "answers": answers}


# --- what pages do, too ---------------------------------------------------------------------------


def named(caller: Caller, number: int, label: Label) -> Label:
    """Name an answer, if it is the caller's or the caller is a curator."""
    answer = caller.gateway.answer(number)
    if not (caller.curator or answer.receipt.user == caller.name):
        raise NotAllowed(
            "An answer is named by whoever asked for it, or by a curator.", fixes=("a dashboard of your own",)
        )
    caller.gateway.desk.call(number, label, caller.name)
    return label


def carded(caller: Caller, number: int) -> Card:
    """A card of an answer."""
    answer = caller.gateway.answer(number)
    return caller.gateway.desk.make_card(number, answer.receipt.dataset, caller.name)


def ended(caller: Caller, id_: str) -> Card:
    """End a card, if it is the caller's or the caller is a curator."""
    desk = caller.gateway.desk
    found = next((each for each in desk.cards() if each.id == id_), None)
    if found is not None and not (caller.curator or found.by == caller.name):
        raise NotAllowed("A card is ended by whoever made it, or by a curator.")
    return desk.end_card(id_, caller.name)


def card_body(card: Card) -> dict[str, Any]:
    """A card for whoever may make one."""
    return {"id": card.id, "answer": card.answer, "address": f"/cards/{card.id}", "ended": card.ended}


@final
@dataclass(frozen=True, eq=False)
class ShownCard:
    """What a card shows: one answer, and what was promised; nothing about whoever asked."""

    card: Card
    answer: Answer
    name: str
    policy: tuple[str, ...]
    fingerprint: str

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        told = self.answer.to_plain()
        kept = (
            "labels",
            "axes",
            "kind",
            "values",
            "low",
            "high",
            "exact",
            "alpha",
            "beta",
            "promise",
            "measures",
        )
        receipt = self.answer.receipt
        return {
            "name": self.name,
            "question": receipt.question,
            "dataset": receipt.dataset,
            "receipt": self.answer.number,
            "epsilon": str(receipt.epsilon),
            "settled": receipt.settled,
            "policy": list(self.policy),
            "policy_version": receipt.policy_version,
            "head": receipt.head,
            "fingerprint": self.fingerprint,
            **{name: told[name] for name in kept},
        }


def shown_card(server: Server, id_: str) -> ShownCard:
    """The card at an address, for whoever has it."""
    gateway = server.workspace
    card = gateway.desk.card(id_)
    answer = gateway.answer(card.answer)
    receipt = answer.receipt
    bare = replace(answer, receipt=replace(receipt, user="", sql=""))
    policy = gateway.policy_at(receipt.dataset, receipt.policy_version)
    words = (receipt.policy,) if policy is None else sentences(policy)
    print_ = gateway.desk.fingerprint(card.answer)
    return ShownCard(card, bare, gateway.desk.label(card.answer).name, words, print_)


def verified(server: Server, id_: str, fingerprint: str, head: str) -> bool:
    """Whether the books have what was written down from a card; what it shows now, where nothing was."""
    shown = shown_card(server, id_)
    return server.workspace.desk.matches(
        shown.card.answer, fingerprint.strip().lower() or shown.fingerprint, head or shown.answer.receipt.head
    )
