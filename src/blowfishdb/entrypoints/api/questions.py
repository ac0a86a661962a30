"""Questions: what they would cost, how they would be answered, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from blowfishdb.adapters.backends import Cancellation
from blowfishdb.adapters.ledger_values import RequestKey
from blowfishdb.answers import Answer
from blowfishdb.asking import Asking
from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.api import budgets, problems
from blowfishdb.entrypoints.api.access import Asker, Caller
from blowfishdb.entrypoints.api.bodies_questions import Asked, Asks, BatchOf
from blowfishdb.entrypoints.api.cancelling import RunningQuestions
from blowfishdb.entrypoints.api.once import Key, answered_once
from blowfishdb.entrypoints.api.quote_ids import Quoted, QuoteIds
from blowfishdb.entrypoints.api.showing import answer_body

router: Final = APIRouter(tags=["Questions"])


@router.post("/datasets/{dataset}/quotes", summary="What a question would cost")
def quote(dataset: str, body: Asked, caller: Asker) -> dict[str, Any]:
    """What an answer would cost. Free, and computed without touching the data; valid for an hour."""
    return _quoted(body.asking(caller.gateway[dataset]), body, caller)


@router.post("/datasets/{dataset}/explain", summary="How a question would be answered")
def explain(dataset: str, body: Asked, caller: Asker) -> dict[str, Any]:
    """How a question would be answered: boxes, policy graph, sensitivity, mechanism. Free."""
    source = caller.gateway[dataset]
    return source.explain(body.asking(source, explaining=True)).to_plain()


@router.post("/datasets/{dataset}/answers", summary="Ask", responses=problems.documented(402, 410))
def ask(dataset: str, body: Asks, caller: Asker, request: Request, key: Key = None) -> Response:
    """The answer to a quote or to a question, charged once. A refusal comes before any row is read."""
    asks = _Answering(dataset, body, caller)
    said = {"dataset": dataset, **body.model_dump(mode="json")}
    return answered_once(caller, request, key, said, asks.respond, asks.recall)


@router.post("/batches", summary="Ask several questions as one", responses=problems.documented(402, 410))
def batch(body: BatchOf, caller: Asker, request: Request, key: Key = None) -> Response:
    """Questions that are settled on before any of them is answered, at most for the sum of their quotes.

    What follows from the others by arithmetic is free, and its interval is that of a planned question.
    """
    said = body.model_dump(mode="json")

    def respond(_: Cancellation | None, sent: RequestKey | None) -> JSONResponse:
        asked = [one.asking(caller.gateway[one.dataset]) for one in body.questions]
        answers = caller.gateway.batch(*asked).ask(max_cost=body.max_cost, key=sent)
        found = {"answers": [answer_body(answer, caller) for answer in answers]}
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    return answered_once(caller, request, key, said, respond)


@router.delete("/answers/running/{key}", summary="Cancel a running question", status_code=202)
def cancel(key: str, caller: Asker) -> dict[str, Any]:
    """Give up a question of yours that is running under this idempotency key.

    Before its charge is made this is free; afterwards what it costs stays charged.
    """
    RunningQuestions(caller.gateway.store).stop(caller.name, key)
    return {"cancelling": key}


# --- steps ----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class _Answering:
    """One request for an answer."""

    dataset: str
    body: Asks
    caller: Caller

    def respond(self, cancel: Cancellation | None, sent: RequestKey | None) -> JSONResponse:
        """The answer, or the new price if the policy was changed since the quote."""
        source = self.caller.gateway[self.dataset]
        limit = None if self.body.max_cost is None else Epsilon(self.body.max_cost)
        asked: Asked = self.body
        if self.body.by_quote:
            quoted = self._quoted()
            asked = Asked.model_validate(quoted.asked)
            promised = Epsilon.from_nano(quoted.nano_epsilon)
            limit = promised if limit is None else min(limit, promised)
            if source.gateway.facts(self.dataset).policy_version != quoted.policy_version:
                return _policy_changed(_quoted(asked.asking(source), asked, self.caller))
        asking = asked.asking(source)
        return self.recall(asking.ask(max_cost=limit, cancel=cancel, key=sent))

    def recall(self, answer: Answer) -> JSONResponse:
        """An answer as it is sent, now or again."""
        body = {
            **answer_body(answer, self.caller),
            "budget": budgets.shown(self.caller.gateway, self.dataset),
        }
        return JSONResponse(body, headers={"Cache-Control": "no-store"})

    def _quoted(self) -> Quoted:
        signed = QuoteIds(self.caller.gateway.store)
        return signed.open(self.body.quote_id or "", user=self.caller.name, dataset=self.dataset)


def _quoted(asking: Asking, body: Asked, caller: Caller) -> dict[str, Any]:
    quote = asking.quote()
    text, expires = QuoteIds(caller.gateway.store).sign(
        user=caller.name,
        dataset=asking.dataset,
        asked=body.model_dump(mode="json", include=set(Asked.model_fields), exclude_defaults=True),
        policy_version=quote.policy_version,
        nano_epsilon=quote.epsilon.nano,
    )
    return {**quote.to_plain(), "quote_id": text, "expires": expires}


def _policy_changed(quote: dict[str, Any]) -> JSONResponse:
    return problems.problem(
        409,
        "policy-changed",
        "The policy was changed since this quote. Nothing was charged; the question has a new price.",
        fixes=(f"accept the new quote, which costs {quote['epsilon']}",),
        more={"quote": quote},
    )
