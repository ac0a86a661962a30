"""Asking: the question, its price, and the button that names it."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any, Final, final

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from blowfishdb.adapters.store.values import State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import AnswerInProgress, BlowfishError
from blowfishdb.core.policy.words import sentences
from blowfishdb.entrypoints.server.access import Caller, PageAsker
from blowfishdb.entrypoints.server.api import questions
from blowfishdb.entrypoints.server.api.questions import AskBody, OfferedQuote
from blowfishdb.entrypoints.server.once import Reply, RunningQuestions
from blowfishdb.entrypoints.server.problems import Problem, told
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.waiting import given_up
from blowfishdb.entrypoints.server.web.answers import answer_figure, shown_as
from blowfishdb.entrypoints.server.web.ask_draft import (
    ALONG,
    CUTS,
    MECHANISMS,
    SHAPES,
    WAYS,
    Draft,
    example_boxes,
    example_conditions,
    example_more,
    example_per,
    example_ranges,
    example_sql,
    example_told,
)
from blowfishdb.entrypoints.server.web.ask_fields import LABELS, mistakes, read_draft
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    redirect,
    render,
    render_part,
    shown_again,
    text,
)
from blowfishdb.language.condition import example_condition
from blowfishdb.messages.policies import DatasetInfo
from blowfishdb.messages.quotes import Quote
from blowfishdb.show.tables import dividend

router: Final = Router(include_in_schema=False)

_PATIENCE: Final = 10.0  # seconds that a form sent twice waits for the answer to the first
_POLL: Final = 0.1
_UNDER_WAY: Final[dict[State | None, str]] = {
    State.RESERVED: "Its ε is set aside; rows are about to be read.",
    State.READING: "Rows are being read.",
}


@router.get("/datasets/{dataset}/ask")
def ask_page(request: Request, dataset: str, caller: PageAsker) -> Response:
    """The form with the price of what stands in it; both are in the address."""
    return _page(request, dataset, caller)


@router.post("/datasets/{dataset}/ask")
def spend(request: Request, dataset: str, form: Sent, caller: PageAsker) -> Response:
    """Take a quote up, once for each form that was shown, and go to the answer."""
    quote_id, key = text(form, "quote_id"), text(form, "key")
    shown_again(request, lambda problem: _page(request, dataset, caller, problem=problem))
    reply = _answered(request, dataset, caller, quote_id, key)
    if reply.status == 200:
        return redirect(f"/answers/{reply.body['id']}{shown_as(reply.body['form'])}")
    if reply.status == 409:
        change = _Change.of(caller, dataset, quote_id)
        return _page(request, dataset, caller, change=change, status=409)
    return _page(request, dataset, caller, problem=Problem(**reply.body))


@router.get("/datasets/{dataset}/asking")
def under_way(dataset: str, caller: PageAsker) -> Response:
    """What happens to the newest question of the caller, for a page that waits for its answer."""
    caller.gateway.facts(dataset)
    newest = caller.gateway.pages.charge_page(dataset, analyst=caller.name, number=1, size=1).charges
    state = newest[0][0].state if newest else None
    words = _UNDER_WAY.get(state, "Waiting for its turn, or being planned.")
    return JSONResponse({"words": words}, headers={"Cache-Control": "no-store"})


@router.post("/datasets/{dataset}/asking/stop")
def give_up(dataset: str, form: Sent, caller: PageAsker) -> Response:
    """Give up a question that is under way: free before its rows are read, charged after that."""
    caller.gateway.facts(dataset)
    RunningQuestions(caller.server).stop(caller.name, text(form, "key"))
    return JSONResponse({"words": "Giving it up."}, status_code=202)


@router.get("/datasets/{dataset}/made-up")
def made_up_page(request: Request, dataset: str, caller: PageAsker) -> Response:
    """What stands in the form, answered from made-up rows: the whole answer, about nobody."""
    facts = caller.gateway.facts(dataset)
    draft = Draft.read(request.query_params, facts.domain)
    answer, problem = None, None
    try:
        source = caller.gateway[dataset].made_up()
        answer = read_draft(draft, source).asking.ask()
    except BlowfishError as error:
        problem = told(request, error)
    return render(
        request,
        "analyst/made_up.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        answer=answer,
        figure=None if answer is None else answer_figure(answer),
        back=dataset_address(dataset, "/ask") + draft.address(),
    )


def _answered(request: Request, dataset: str, caller: Caller, quote_id: str, key: str) -> Reply:
    """The answer as the interface gives it; who presses the button twice waits for the first time."""
    body, until = AskBody(quote_id=quote_id[:100_000]), time.monotonic() + _PATIENCE
    while True:
        try:
            return questions.answer_once(dataset, body, caller, request, key)
        except AnswerInProgress:
            if time.monotonic() > until:
                raise
            time.sleep(_POLL)


def _page(
    request: Request,
    dataset: str,
    caller: Caller,
    *,
    problem: Problem | None = None,
    change: _Change | None = None,
    status: int = 200,
) -> Response:
    facts = caller.gateway.facts(dataset)
    draft = Draft.read(request.query_params, facts.domain)
    priced = {
        "dataset": dataset,
        "draft": draft,
        "columns": [
            (name, attribute.ordered, attribute.describe()) for name, attribute in facts.domain.columns
        ],
        **_priced(request, draft, caller, dataset),
        "action": dataset_address(dataset, "/ask") + draft.address(explain=""),
        "try_out": dataset_address(dataset, "/made-up") + draft.address(explain=""),
        "key": str(uuid.uuid4()),
        "change": change,
        "policy": sentences(facts.policy),
        "labels": LABELS,
    }
    if request.method == "GET" and request.headers.get("Part") in ("quote", "price"):
        return render_part(request, "analyst/quote_alone.html", caller=caller, **priced)
    return render(
        request,
        "analyst/ask.html",
        caller=caller,
        status=status,
        shapes=SHAPES,
        along=ALONG,
        cuts=CUTS,
        mechanisms=MECHANISMS,
        ways=WAYS,
        more_example=example_more(facts.domain, draft.column),
        per_example=example_per(facts.domain, draft.column),
        where_example=example_condition(facts.domain, draft.second),
        ranges_example=example_ranges(facts.domain, draft.column),
        boxes_example=example_boxes(facts.domain, draft.column, draft.second),
        told_example=example_told(facts.domain),
        conditions_example=example_conditions(facts.domain),
        sql_example=_example(caller, facts),
        held=_held(caller, dataset),
        problem=problem,
        **priced,
    )


def _example(caller: Caller, facts: DatasetInfo) -> str:
    """A statement that is answered; of several tables, about the first."""
    counted = caller.gateway.facts(f"{facts.name}.{facts.tables[0].name}") if facts.tables else facts
    return example_sql(counted.domain, counted.name)


def _priced(request: Request, draft: Draft, caller: Caller, dataset: str) -> dict[str, Any]:
    """The quote and, if wanted, how it would be answered; or what is wrong, with which fields if with any."""
    priced: dict[str, Any] = {"quote": None, "explanation": None, "wrong": None, "wrongs": {}}
    source = caller.gateway[dataset]
    try:
        read = read_draft(draft, source)
    except BlowfishError as error:
        found = mistakes(draft, source)
        priced["wrong"] = told(request, error)
        priced["wrongs"] = {name: told(request, each) for name, each in found.items()}
        return priced
    try:
        more, cancel = request.headers.get("Part") != "price", given_up(request.scope)
        offered = questions.offer(caller, dataset, read.asking, read.body, more=more, cancel=cancel)
        priced["quote"] = _Price.of(offered, draft)
        priced["explanation"] = source.explain(read.asking) if read.explaining else None
    except BlowfishError as error:
        priced["wrong"] = told(request, error)
    return priced


def _held(caller: Caller, dataset: str) -> Epsilon:
    """What is set aside for questions of the caller: under way, or cut off before anybody knew."""
    mine = (grant.held for grant in caller.gateway.grants(dataset) if grant.user == caller.name)
    return next(mine, Epsilon(0))


@final
@dataclass(frozen=True)
class _Price:
    """A quote as the page shows it, with what else could be asked as queries of the page."""

    quote: Quote
    id: str
    state: str
    """``owned``, ``free``, ``payable``, ``short`` (it does not fit), ``bound`` (not under an earlier promise)
    or ``exhausted`` (nothing is left)."""
    share: str
    cheaper: tuple[tuple[str, Epsilon, str], ...]
    fits: tuple[tuple[str, str | None], ...]

    @property
    def dividend(self) -> str:
        """What plain differential privacy would cost."""
        return dividend(self.quote)

    @classmethod
    def of(cls, offered: OfferedQuote, draft: Draft) -> _Price:
        """The price of a draft."""
        quote = offered.quote
        cheaper = tuple(
            (f"±{other.alpha:,.10g}", other.epsilon, draft.address(error=f"{other.alpha:.12g}"))
            for other in quote.alternatives
            if draft.mode == "form"
        )
        fits = tuple((fit.words, draft.fitted(fit)) for fit in quote.fits)
        return cls(quote, offered.id, _state(quote), _share(quote.epsilon, quote.remaining), cheaper, fits)


def _state(quote: Quote) -> str:
    if quote.binding is not None and quote.affordable == 0:
        return "bound"
    if quote.owned:
        return "owned"
    if not quote.most:
        return "free"
    if quote.epsilon <= quote.remaining:
        return "payable"
    return "short" if quote.remaining else "exhausted"


def _share(cost: Epsilon, left: Epsilon) -> str:
    """A part of what the asker has left, in per cent; what is not nothing is not called that."""
    if cost > left or not left:
        return "more than all"
    part = 100 * float(cost) / float(left)
    return f"{part:.0f} %" if part >= 1 or not part else "under 1 %"


@final
@dataclass(frozen=True)
class _Change:
    """A quote whose policy is no longer the published one, and what was published since."""

    epsilon: Epsilon
    version: int
    sentences: tuple[str, ...]

    @classmethod
    def of(cls, caller: Caller, dataset: str, quote_id: str) -> _Change:
        """What the quote said, and what was published after it."""
        quoted = caller.server.quotes.open(quote_id, user=caller.name, dataset=dataset)
        published = (event.facts for event in caller.gateway.events(dataset, kinds=("policy",)))
        since = [facts for facts in published if facts["from_version"] >= quoted.policy_version]
        return cls(
            Epsilon.from_nano(quoted.nano_epsilon),
            quoted.policy_version,
            tuple(sentence for facts in since for sentence in facts["difference"]),
        )
