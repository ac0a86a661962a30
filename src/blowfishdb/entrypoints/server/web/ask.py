"""Asking: the question, its price, and the button that names it."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any, Final, final

from fastapi import APIRouter, Request, Response

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import AnswerInProgress, BlowfishError
from blowfishdb.core.policy.words import sentences
from blowfishdb.entrypoints.server.access import Caller, PageAsker
from blowfishdb.entrypoints.server.api import questions
from blowfishdb.entrypoints.server.api.questions import AskBody
from blowfishdb.entrypoints.server.server import QuoteIds
from blowfishdb.entrypoints.server.web.ask_draft import (
    CUTS,
    MECHANISMS,
    SHAPES,
    WAYS,
    Draft,
    example_more,
    example_ranges,
    example_sql,
)
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    redirect,
    render,
    render_part,
    text,
    told,
)
from blowfishdb.language.condition import example_condition
from blowfishdb.messages.quotes import Fit, Quote
from blowfishdb.show.tables import dividend

router: Final = APIRouter(include_in_schema=False)

_PATIENCE: Final = 10.0  # seconds that a form sent twice waits for the answer to the first
_POLL: Final = 0.1


@router.get("/datasets/{dataset}/ask")
def ask_page(request: Request, dataset: str, caller: PageAsker) -> Response:
    """The form with the price of what stands in it; both are in the address."""
    return _page(request, dataset, caller)


@router.post("/datasets/{dataset}/ask")
def spend(request: Request, dataset: str, form: Sent, caller: PageAsker) -> Response:
    """Take a quote up, once for each form that was shown, and go to the answer."""
    quote_id, key = text(form, "quote_id"), text(form, "key")
    try:
        response = _answered(request, dataset, caller, quote_id, key)
    except BlowfishError as error:
        said = told(request, error)
        return _page(request, dataset, caller, problem=said, status=said["status"])
    body = json.loads(bytes(response.body))
    if response.status_code == 200:
        return redirect(f"/answers/{body['id']}")
    if "quote" in body:
        change = _Change.of(caller, dataset, quote_id, body["quote"])
        return _page(request, dataset, caller, change=change, status=409)
    return _page(request, dataset, caller, problem=body, status=response.status_code)


def _answered(request: Request, dataset: str, caller: Caller, quote_id: str, key: str) -> Response:
    """The answer as the interface gives it; who presses the button twice waits for the first time."""
    body, until = AskBody(quote_id=quote_id[:100_000]), time.monotonic() + _PATIENCE
    while True:
        try:
            return questions.ask(dataset, body, caller, request, key)
        except AnswerInProgress:
            if time.monotonic() > until:
                raise
            time.sleep(_POLL)


def _page(
    request: Request,
    dataset: str,
    caller: Caller,
    *,
    problem: dict[str, Any] | None = None,
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
        **_priced(request, draft, facts.domain, caller, dataset),
        "action": dataset_address(dataset, "/ask") + draft.address(explain=""),
        "key": str(uuid.uuid4()),
        "change": change,
        "policy": sentences(facts.policy),
    }
    if request.method == "GET" and request.headers.get("Part") == "quote":
        return render_part(request, "analyst/quote_alone.html", caller=caller, **priced)
    return render(
        request,
        "analyst/ask.html",
        caller=caller,
        status=status,
        shapes=SHAPES,
        cuts=CUTS,
        mechanisms=MECHANISMS,
        ways=WAYS,
        more_example=example_more(facts.domain, draft.column),
        where_example=example_condition(facts.domain, draft.second),
        ranges_example=example_ranges(facts.domain, draft.column),
        sql_example=example_sql(facts.domain, dataset),
        held=_held(caller, dataset),
        problem=problem,
        **priced,
    )


def _priced(request: Request, draft: Draft, domain: Domain, caller: Caller, dataset: str) -> dict[str, Any]:
    """The quote and, if wanted, how it would be answered; or what is wrong with the question."""
    said: dict[str, Any] = {"quote": None, "explanation": None, "wrong": None}
    try:
        asked, explaining = draft.asked(domain, dataset, caller.gateway[dataset].select)
        quote = questions.quote(dataset, asked, caller)
        said["quote"] = _Price.of(quote, draft, caller.gateway.budget(dataset).total)
        said["explanation"] = questions.explain(dataset, asked, caller) if explaining else None
    except BlowfishError as error:
        said["wrong"] = told(request, error)
    return said


def _held(caller: Caller, dataset: str) -> Epsilon:
    """What is set aside for questions of the caller: under way, or cut off before anybody knew."""
    mine = (grant.held for grant in caller.gateway.grants(dataset) if grant.user == caller.name)
    return next(mine, Epsilon(0))


@final
@dataclass(frozen=True)
class _Price:
    """A quote as the page shows it, with what else could be asked as queries of the page."""

    plain: dict[str, Any]
    state: str
    """``owned``, ``free``, ``payable``, ``short`` (it does not fit), ``bound`` (not under an earlier promise)
    or ``exhausted`` (nothing is left)."""
    share: str
    cheaper: tuple[tuple[str, str, str], ...]
    fits: tuple[tuple[str, str | None], ...]

    @property
    def dividend(self) -> str:
        """What plain differential privacy would cost."""
        return dividend(Quote.from_plain(self.plain))

    @classmethod
    def of(cls, quote: dict[str, Any], draft: Draft, total: Epsilon) -> _Price:
        """The price of a draft."""
        cost, left = Epsilon(quote["epsilon"]), Epsilon(quote["remaining"])
        cheaper = tuple(
            (f"±{other['alpha']:,.10g}", other["epsilon"], draft.address(error=f"{other['alpha']:.12g}"))
            for other in quote["alternatives"]
            if draft.mode == "form"
        )
        fits = tuple((fit.words, draft.fitted(fit)) for fit in map(Fit.from_plain, quote["fits"]))
        bound = quote["binding"] is not None and quote["affordable"] == 0
        state = "bound" if bound else _state(quote["owned"], cost, left)
        return cls(quote, state, _share(cost, total), cheaper, fits)


def _state(owned: bool, cost: Epsilon, left: Epsilon) -> str:
    if owned:
        return "owned"
    if not cost:
        return "free"
    if cost <= left:
        return "payable"
    return "short" if left else "exhausted"


def _share(cost: Epsilon, total: Epsilon) -> str:
    """A part of the budget in per cent; what is not nothing is not called that."""
    if not total:
        return ""
    part = 100 * float(cost) / float(total)
    return f"{part:.0f} %" if part >= 1 or not part else "under 1 %"


@final
@dataclass(frozen=True)
class _Change:
    """A policy that was published between a quote and its button."""

    before: Epsilon
    after: Epsilon
    from_version: int
    to_version: int
    sentences: tuple[str, ...]

    @classmethod
    def of(cls, caller: Caller, dataset: str, quote_id: str, now: dict[str, Any]) -> _Change:
        """What the quote said, what the new one says, and what was published in between."""
        quoted = QuoteIds(caller.gateway.store).open(quote_id, user=caller.name, dataset=dataset)
        published = (event.facts for event in caller.gateway.events(dataset) if event.kind == "policy")
        since = [facts for facts in published if facts["from_version"] >= quoted.policy_version]
        return cls(
            Epsilon.from_nano(quoted.nano_epsilon),
            Epsilon(now["epsilon"]),
            quoted.policy_version,
            now["policy_version"],
            tuple(sentence for facts in since for sentence in facts["difference"]),
        )
