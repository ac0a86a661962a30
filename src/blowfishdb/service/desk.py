"""The desk: what people keep beside answers, in the catalogue, where every change is sealed and on record.

A card shows one answer to whoever has its address. The curator of the dataset decides whether there may be
any; the address cannot be guessed, and ending a card ends it at once.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from blowfishdb.adapters.store.catalogue import Catalogue
from blowfishdb.adapters.store.chain import digest
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import Head, stamp, utc_now
from blowfishdb.core.errors import InvalidInput, NotAllowed, NotFound
from blowfishdb.messages.desk import (
    MOST_PLANNED,
    BudgetRequest,
    Card,
    Dashboard,
    Label,
    Planned,
)

_ID_BYTES: Final = 24  # of a card: nobody guesses 192 bits
_MOST_OPEN: Final = 20  # requests of one user that nobody has looked at yet


@final
@dataclass(frozen=True, eq=False)
class Desk:
    """Names, notes, cards, dashboards, plans and requests of a workspace."""

    _ledger: Ledger

    @property
    def _kept(self) -> Catalogue:
        return Catalogue(self._ledger.store)

    def _read(self, kind: str, name: str) -> Any:
        body = self._kept.get(kind, name)
        return None if body is None else json.loads(body)

    def _write(self, kind: str, name: str, value: Any, by: str) -> None:
        self._kept.put(kind, name, json.dumps(value, ensure_ascii=False), by)

    def _all(self, kind: str) -> dict[str, Any]:
        return {name: json.loads(body) for name, body in self._kept.newest_of(kind).items()}

    # --- names and notes ------------------------------------------------------------------------

    def label(self, answer: int) -> Label:
        """What an answer is called."""
        kept = self._all("label").get(str(answer))
        return Label() if kept is None else Label.from_plain(kept)

    def labels(self) -> dict[int, Label]:
        """Every answer that has a name or a note."""
        return {int(number): Label.from_plain(kept) for number, kept in self._all("label").items()}

    def call(self, answer: int, label: Label, by: str) -> None:
        """Name an answer, and note something about it."""
        if label != self.label(answer):
            self._write("label", str(answer), label.to_plain(), by)

    # --- cards ----------------------------------------------------------------------------------

    def cards_allowed(self, dataset: str) -> bool:
        """Whether answers of a dataset may be shown to people without an account."""
        return bool((self._read("sharing", dataset) or {}).get("cards"))

    def allow_cards(self, dataset: str, allowed: bool, by: str) -> None:
        """Decide that; cards that are there already stop being shown where it is no longer allowed."""
        if allowed != self.cards_allowed(dataset):
            self._write("sharing", dataset, {"cards": allowed}, by)

    def make_card(self, answer: int, dataset: str, by: str) -> Card:
        """A card of an answer: the one there is, or a new one."""
        if not self.cards_allowed(dataset):
            raise NotAllowed(
                f"Answers of '{dataset}' are not shown to people without an account.",
                fixes=("ask the curator to allow cards, on the Access page of the dataset",),
            )
        for card in self.cards(dataset):
            if card.answer == answer and card.ended is None:
                return card
        card = Card(secrets.token_urlsafe(_ID_BYTES), answer, dataset, by, stamp(utc_now))
        self._write("card", card.id, card.to_plain(), by)
        return card

    def cards(self, dataset: str | None = None) -> list[Card]:
        """Every card, or those of a dataset, oldest first; ended ones too."""
        every = (Card.from_plain(kept) for kept in self._all("card").values())
        return sorted((c for c in every if dataset in (None, c.dataset)), key=lambda card: card.made)

    def card(self, id_: str) -> Card:
        """The card at an address, while it is shown; whatever is not shown is not there."""
        kept = self._read("card", id_) if 0 < len(id_) <= 255 else None
        card = None if kept is None else Card.from_plain(kept)
        if card is None or card.ended is not None or not self.cards_allowed(card.dataset):
            raise NotFound("There is no such card, or it is no longer shown.", fixes=("ask who sent it",))
        return card

    def end_card(self, id_: str, by: str) -> Card:
        """Stop showing a card; its address shows nothing from now on."""
        kept = self._read("card", id_) if 0 < len(id_) <= 255 else None
        if kept is None:
            raise NotFound("There is no such card.")
        card = Card.from_plain(kept)
        if card.ended is None:
            card = replace(card, ended=stamp(utc_now))
            self._write("card", card.id, card.to_plain(), by)
        return card

    def fingerprint(self, answer: int) -> str:
        """The hash of a stored answer, as the event that settled it has it."""
        return digest(self._stored(answer))

    def matches(self, answer: int, fingerprint: str, head: str) -> bool:
        """Whether an answer is stored as its fingerprint says, and the books lead from the head to its event.

        The answer is compared with the event that settled it, and every event between that one and the head
        with its own hash, which contains the hash of the one before it.
        """
        if fingerprint != self.fingerprint(answer):
            return False
        try:
            kept = Head.of(head)
        except InvalidInput:
            return False
        return self._ledger.leads_to(kept, answer, fingerprint)

    def _stored(self, answer: int) -> str:
        stored = self._ledger.stored([answer]).get(answer)
        if stored is None:
            raise NotFound(f"There is no answer number {answer}.", fixes=("list the answers",))
        return stored.answer

    # --- requests for more ----------------------------------------------------------------------

    def request(self, dataset: str, user: str, reason: str) -> BudgetRequest:
        """Ask the curator for more."""
        open_ = [each for each in self.requests(user=user) if each.state == "open"]
        if len(open_) >= _MOST_OPEN:
            raise InvalidInput("Many of your requests are still open.", fixes=("wait for an answer",))
        made = BudgetRequest(secrets.token_hex(8), dataset, user, reason.strip(), stamp(utc_now))
        self._write("request", made.id, made.to_plain(), user)
        return made

    def requests(self, *, dataset: str | None = None, user: str | None = None) -> list[BudgetRequest]:
        """Requests for more, oldest first."""
        every = (BudgetRequest.from_plain(kept) for kept in self._all("request").values())
        chosen = (r for r in every if dataset in (None, r.dataset) and user in (None, r.user))
        return sorted(chosen, key=lambda each: each.at)

    def open_request(self, id_: str) -> BudgetRequest:
        """A request that nobody has answered yet."""
        found = next((each for each in self.requests() if each.id == id_), None)
        if found is None:
            raise NotFound("There is no such request.")
        if found.state != "open":
            raise InvalidInput("This request was answered already.")
        return found

    def settle_request(self, id_: str, state: str, reply: str, by: str) -> BudgetRequest:
        """Say what became of a request."""
        found = self.open_request(id_)
        if state not in ("granted", "declined"):
            raise InvalidInput("A request is granted or declined.", fixes=("granted", "declined"))
        answered = replace(found, state=state, reply=reply.strip()[:500])
        self._write("request", id_, answered.to_plain(), by)
        return answered

    # --- plans and dashboards -------------------------------------------------------------------

    def plan(self, user: str) -> list[Planned]:
        """The questions on somebody's plan."""
        return [Planned.from_plain(each) for each in self._read("plan", user) or []]

    def keep_plan(self, user: str, questions: Sequence[Planned]) -> None:
        """Put other questions on it."""
        if len(questions) > MOST_PLANNED:
            raise InvalidInput(
                f"A plan has at most {MOST_PLANNED} questions.", fixes=("pay for these first",)
            )
        self._write("plan", user, [each.to_plain() for each in questions], user)

    def make_dashboard(self, title: str, answers: Sequence[int], by: str) -> Dashboard:
        """Answers on one page."""
        made = Dashboard(secrets.token_urlsafe(9), title.strip(), tuple(answers), by, stamp(utc_now))
        self._write("dashboard", made.id, made.to_plain(), by)
        return made

    def dashboard(self, id_: str) -> Dashboard:
        """The dashboard of that name."""
        kept = self._read("dashboard", id_) if 0 < len(id_) <= 255 else None
        if kept is None:
            raise NotFound("There is no such dashboard.")
        return Dashboard.from_plain(kept)

    def dashboards(self) -> list[Dashboard]:
        """Every dashboard, the newest first."""
        every = (Dashboard.from_plain(kept) for kept in self._all("dashboard").values())
        return sorted(every, key=lambda each: each.made, reverse=True)
