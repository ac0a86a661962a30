"""Questions: what they would cost, how they would be answered, and their answers.

What people send to ask: a question in one of three forms, and its terms. Unknown fields are refused.

The curator's experiments: prices under other policies, and true answers beside noisy ones.

Stored answers: listed, shown, exported, compared. Reading them costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Any, Final, final

from fastapi import BackgroundTasks, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from blowfishdb.adapters.store.values import RequestKey
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.entrypoints.server import once, problems
from blowfishdb.entrypoints.server.access import (
    Asker,
    Caller,
    Curator,
    SignedIn,
    answer_body,
    shown_to,
    summary_body,
)
from blowfishdb.entrypoints.server.api import books
from blowfishdb.entrypoints.server.api.requests import Body, Plain
from blowfishdb.entrypoints.server.once import Key, Reply, RunningQuestions, answered_once
from blowfishdb.entrypoints.server.problems import Problem, read
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.entrypoints.server.server import Quoted
from blowfishdb.entrypoints.server.waiting import given_up
from blowfishdb.language.condition import condition
from blowfishdb.messages.answers import Answer, compare
from blowfishdb.messages.arranged import arranged
from blowfishdb.messages.questions import Terms
from blowfishdb.messages.quotes import Quote
from blowfishdb.show.exports import FORMATS, export
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.made_up import MOST_ROWS

_LONGEST: Final = 100_000
_TERMS: Final = ("error", "epsilon", "mechanism")

Amount = str | float | int
"""A privacy loss as people write it."""


class QuestionBody(Body):
    """A question (short text or object) or a SELECT, and how accurate or how costly its answer may be."""

    question: str | Plain | None = Field(
        default=None,
        description="The short form, or an object with kind, columns, where (text or object) and what the "
        "kind needs: bounds, shares, count, limit, k and iterations, or measures and group_size; and how the "
        "answer is shown, an arrangement of show, having, order, limit and offset, possible (true leaves out "
        "groups of which the condition leaves no row) and across (columns whose groups stand side by side).",
        examples=["cumulative(salary, bins=20) where age >= 30"],
    )
    sql: str | None = Field(default=None, max_length=_LONGEST, examples=["SELECT COUNT(*) FROM salaries"])
    error: float | None = Field(
        default=None, allow_inf_nan=False, description="The answer is within ±error …"
    )
    confidence: float = Field(default=0.95, allow_inf_nan=False, description="… this share of the time, …")
    each: bool = Field(default=False, description="… each value by itself instead of all at once.")
    epsilon: Amount | None = Field(default=None, description="What to spend, instead of an error.")
    mechanism: str | None = Field(
        default=None,
        max_length=255,
        description="Instead of the cheapest: one that promises its error, or, with an epsilon, one whose "
        "error depends on the data (alpha, beta, low and high are then null).",
        examples=["adaptive", "optimized"],
    )

    def asking(self, dataset: Dataset, *, explaining: bool = False) -> Asking:
        """The question on its terms, checked against the declared columns."""
        if (self.question is None) == (self.sql is None):
            raise InvalidInput(
                "Send a question or sql, one of the two.", fixes=('{"question": "count()", "error": 50}',)
            )
        asked, stated = self._form(dataset, explaining=explaining)
        terms = Terms.from_plain(
            self.model_dump(include={"error", "confidence", "each", "epsilon", "mechanism"})
        )
        if stated.accuracy is not None or stated.epsilon is not None:
            if terms.accuracy is not None or terms.epsilon is not None:
                raise InvalidInput(
                    "The SQL states its terms, so the request must not.", fixes=("one of the two",)
                )
            terms = replace(stated, mechanism=terms.mechanism)
        if terms.accuracy is None and terms.epsilon is None:
            raise InvalidInput(
                "This question does not say how accurate the answer must be.",
                fixes=('"error": 50, "confidence": 0.95', '"epsilon": "0.1"'),
            )
        return replace(asked, terms=terms)

    def _form(self, dataset: Dataset, *, explaining: bool) -> tuple[Asking, Terms]:
        if self.sql is not None:
            dataset = dataset.counted_by(self.sql)
            parsed = dataset.select(self.sql)
            if parsed.explain and not explaining:
                raise InvalidInput(
                    "EXPLAIN asks how a question would be answered, and is not a question.",
                    fixes=("POST …/explain", "leave out EXPLAIN"),
                )
            return dataset.question(parsed.form), Terms(parsed.accuracy, parsed.epsilon)
        question = self.question or {}
        if isinstance(question, str):
            if len(question) > _LONGEST:
                raise InvalidInput("This question is too long to read.")
            return dataset.question(question), Terms()
        return dataset.question(read("question", lambda: _object(question, dataset))), Terms()


def _object(sent: Plain, dataset: Dataset) -> QuestionForm:
    """A question as an object; its condition may be a text."""
    where = sent.get("where")
    if not isinstance(where, str):
        form = QuestionForm.from_plain(sent)
    else:
        bare = QuestionForm.from_plain({name: value for name, value in sent.items() if name != "where"})
        form = bare.only(condition(where, dataset.schema))
    form.check(dataset.schema)
    return form


class AskBody(QuestionBody):
    """A quote to take up, or a question as for a quote; ``max_cost`` is the most it may cost."""

    quote_id: str | None = Field(default=None, max_length=_LONGEST)
    max_cost: Amount | None = None

    @property
    def by_quote(self) -> bool:
        """Whether a quote says everything; whatever else says it too is refused."""
        if self.quote_id is None:
            return False
        if (
            self.question is not None
            or self.sql is not None
            or any(getattr(self, t) is not None for t in _TERMS)
        ):
            raise InvalidInput(
                "A quote already says what is asked.", fixes=("send quote_id and max_cost only",)
            )
        return True


class TradeoffOf(QuestionBody):
    """A question, and the policies to price it under: by name, or as distances in a column."""

    policies: dict[str, Plain] | None = Field(default=None, max_length=200)
    column: str | None = Field(default=None, max_length=255)
    thresholds: list[int | float] = Field(default=[], max_length=200)
    thetas: dict[str, float] | None = Field(
        default=None, max_length=200, description="Where on the axis each of the named policies stands."
    )
    at_epsilon: Amount | None = None


class PreviewOf(QuestionBody):
    """A question to see with and without noise, under a policy that need not be published."""

    policy: Plain | None = None
    stand_in: bool = Field(default=False, description="Show made-up counts instead of the true ones.")


class MadeUpOf(QuestionBody):
    """A question to try on made-up rows: how many, and a number that decides which."""

    rows: int = Field(default=1_000, ge=1, le=MOST_ROWS)
    seed: int = Field(default=0, ge=0, le=2**32)


class Compared(Body):
    """The numbers of two answers."""

    a: int = Field(ge=1)
    b: int = Field(ge=1)


class InBatch(QuestionBody):
    """A question of a batch, and the dataset that it is about."""

    dataset: str = Field(max_length=255)


class PlanOf(Body):
    """Questions that are settled on together."""

    questions: list[InBatch] = Field(min_length=1, max_length=100)


class BatchOf(PlanOf):
    """Questions that are settled on together; ``max_cost`` is the most that all of them may cost."""

    max_cost: Amount | None = None


router: Final = Router(PREFIX, tags=["Questions"])


@router.post(
    "/datasets/{dataset}/quotes", summary="What a question would cost", response_model=dict[str, Any]
)
def quote(
    dataset: str, body: QuestionBody, caller: Asker, request: Request, more: bool = True
) -> JSONResponse:
    """What an answer would cost. Free, and computed without touching the data; valid for an hour.

    With ``more=false`` the price alone, at once: ``plain_epsilon`` and ``dividend`` are null, and neither
    ``alternatives`` nor ``fits`` are looked for. A quote is given up when its connection is closed.
    """
    with caller.server.workspace.store.at_one_look():
        asking = body.asking(caller.gateway[dataset])
        offered = offer(caller, dataset, asking, body, more=more, cancel=given_up(request.scope))
    return JSONResponse(offered.to_plain())


@router.post("/datasets/{dataset}/explain", summary="How a question would be answered")
def explain(dataset: str, body: QuestionBody, caller: Asker) -> dict[str, Any]:
    """How a question would be answered: boxes, policy graph, sensitivity, mechanism. Free."""
    source = caller.gateway[dataset]
    return source.explain(body.asking(source, explaining=True)).to_plain()


@router.post("/datasets/{dataset}/answers", summary="Ask", responses=problems.documented(402, 410))
def ask(dataset: str, body: AskBody, caller: Asker, request: Request, key: Key = None) -> Response:
    """The answer to a quote or to a question, charged once. A refusal comes before any row is read."""
    return answer_once(dataset, body, caller, request, key).response()


@router.post("/datasets/{dataset}/made-up", summary="Try a question on made-up rows")
def try_out(dataset: str, body: MadeUpOf, caller: Asker) -> dict[str, Any]:
    """An answer from rows that were made up from the declarations: marked, about nobody, and free.

    Nothing is read, charged or stored. The price is that of a first question, without known counts.
    """
    answer = body.asking(caller.gateway[dataset].made_up(body.rows, seed=body.seed)).ask()
    return answer.to_plain()


@router.post("/plans", summary="What several questions would cost as one", response_model=dict[str, Any])
def plan(body: PlanOf, caller: Asker) -> dict[str, Any]:
    """What questions cost that are settled on together, alone and beside the others. Free."""
    asked = [one.asking(caller.gateway[one.dataset]) for one in body.questions]
    return caller.gateway.plan(*asked).quotes().to_plain()


@router.post("/batches", summary="Ask several questions as one", responses=problems.documented(402, 410))
def batch(body: BatchOf, caller: Asker, request: Request, key: Key = None) -> Response:
    """Questions that are settled on before any of them is answered, for what ``POST /plans`` says.

    Charged as a whole or not at all. What follows from the others by arithmetic is free, and its interval is
    that of a planned question.
    """

    def answer(_: Cancellation | None, sent: RequestKey | None) -> Reply:
        asked = [one.asking(caller.gateway[one.dataset]) for one in body.questions]
        answers = caller.gateway.batch(*asked).ask(max_cost=body.max_cost, key=sent)
        return Reply(200, {"answers": [answer_body(answer, caller) for answer in answers]})

    return answered_once(caller, request, key, body.model_dump(mode="json"), answer).response()


@router.delete("/answers/running/{key}", summary="Cancel a running question", status_code=202)
def cancel(key: str, caller: Asker) -> dict[str, Any]:
    """Give up a question of yours that is running under this idempotency key.

    Before its charge is made this is free; afterwards what it costs stays charged.
    """
    RunningQuestions(caller.server).stop(caller.name, key)
    return {"cancelling": key}


# --- what pages do, too ---------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class OfferedQuote:
    """A quote that can be taken up by its id, until it expires."""

    quote: Quote
    id: str
    expires: str

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {**self.quote.to_plain(), "quote_id": self.id, "expires": self.expires}


def offer(
    caller: Caller,
    dataset: str,
    asking: Asking,
    body: QuestionBody,
    *,
    more: bool = True,
    cancel: Cancellation | None = None,
) -> OfferedQuote:
    """The price of a question; ``body`` is what ``dataset`` was asked, and is again when it is taken up."""
    quote = asking.quote(more=more, cancel=cancel)
    id_, expires = caller.server.quotes.sign(
        user=caller.name,
        dataset=dataset,
        asked=body.model_dump(mode="json", include=set(QuestionBody.model_fields), exclude_defaults=True),
        policy_version=quote.policy_version,
        nano_epsilon=quote.most.nano,
    )
    return OfferedQuote(quote, id_, expires)


def answer_once(dataset: str, body: AskBody, caller: Caller, request: Request, key: str | None) -> Reply:
    """The answer to a quote or to a question; the new price, if the policy was changed since the quote."""

    source = caller.gateway[dataset]

    def reply(answer: Answer) -> Reply:
        budget = books.shown(caller.gateway, dataset)
        return Reply(200, {**answer_body(answer, caller), "budget": budget})

    def quoted() -> Quoted:
        return caller.server.quotes.open(body.quote_id or "", user=caller.name, dataset=dataset)

    def recall(answer: Answer) -> Reply:
        """What is stored is whole; it is shown as it was asked."""
        asked = QuestionBody.model_validate(quoted().asked) if body.by_quote else body
        return reply(arranged(answer, asked.asking(source).form, source.schema))

    def answer(cancel: Cancellation | None, sent: RequestKey | None) -> Reply:
        limit = None if body.max_cost is None else Epsilon(body.max_cost)
        asked: QuestionBody = body
        if body.by_quote:
            quote = quoted()
            asked = QuestionBody.model_validate(quote.asked)
            promised = Epsilon.from_nano(quote.nano_epsilon)
            limit = promised if limit is None else min(limit, promised)
            if source.gateway.facts(dataset).policy_version != quote.policy_version:
                return Reply.of(_policy_changed(offer(caller, dataset, asked.asking(source), asked)))
        return reply(asked.asking(source).ask(max_cost=limit, cancel=cancel, key=sent))

    sent = {"dataset": dataset, **body.model_dump(mode="json")}
    return answered_once(caller, request, key, sent, answer, recall)


def _policy_changed(now: OfferedQuote) -> Problem:
    return problems.problem(
        409,
        "policy-changed",
        "The policy was changed since this quote. Nothing was charged; the question has a new price.",
        fixes=(f"accept the new quote, which costs {now.quote.epsilon}",),
        quote=now.to_plain(),
    )


curating: Final = Router(PREFIX, tags=["Curating"])
curating.include_router(once.jobs)

Prefer = Annotated[str | None, Header(description="respond-async: do not wait, ask for the job instead.")]


@curating.post(
    "/datasets/{dataset}/tradeoff",
    summary="What a question costs under several policies",
    responses={202: {"description": "Under way; Location says where to ask for the job."}},
)
def tradeoff(
    dataset: str, body: TradeoffOf, caller: Curator, tasks: BackgroundTasks, prefer: Prefer = None
) -> Response:
    """Cost and error under each policy, or for each distance within which values are hidden."""
    source = caller.gateway[dataset]
    asking = body.asking(source)
    policies = None
    if body.policies is not None:
        policies = {name: _policy(sent, source.policy) for name, sent in body.policies.items()}
    if (policies is None) == (not body.thresholds):
        raise InvalidInput(
            "Send policies or thresholds, one of the two.", fixes=('"thresholds": [1000, 10000, 50000]',)
        )

    def work(progress: Progress | None) -> dict[str, Any]:
        return source.tradeoff(
            asking,
            policies,
            column=body.column,
            thresholds=body.thresholds,
            thetas=body.thetas,
            at_epsilon=body.at_epsilon,
            progress=progress,
        ).to_plain()

    if "respond-async" in (prefer or ""):
        return once.started(work, caller, tasks)
    return JSONResponse(work(None), headers={"Cache-Control": "no-store"})


@curating.post("/datasets/{dataset}/preview", summary="True and noisy answers side by side")
def preview(dataset: str, body: PreviewOf, caller: Curator) -> dict[str, Any]:
    """CURATOR VIEW, TRUE DATA. Nothing is charged; that someone looked is written into the ledger."""
    source = caller.gateway[dataset]
    policy = None if body.policy is None else _policy(body.policy, source.policy)
    return source.preview(body.asking(source), policy=policy, stand_in=body.stand_in).to_plain()


def _policy(sent: Plain, published: Policy) -> Policy:
    """A graph with what is known, or a graph alone: then the same is known as today."""

    def policy() -> Policy:
        known = sent.get("known") if "graph" in sent else None
        constraints = published.constraints if known is None else codec.constraints(known)
        return Policy(published.domain, codec.graph(sent.get("graph", sent)), constraints)

    return read("policy", policy)


stored_answers: Final = Router(PREFIX, tags=["Answers"])

Form = Enum("Form", {name: name for name in FORMATS}, type=str)  # type: ignore[misc]
Number = Annotated[int, Query(ge=0, le=2**62)]


@stored_answers.get("/answers", summary="List answers")
def answers(
    caller: SignedIn,
    dataset: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    after: Number = 0,
    newest: bool = False,
    full: bool = False,
) -> dict[str, Any]:
    """Every answer so far, the oldest first unless ``newest``; ``next`` is the ``after`` of the next page.

    With ``full``, each with its values; otherwise a line about each.
    """
    if dataset is not None:
        caller.gateway.facts(dataset)
    if newest:
        page = caller.gateway.answers(dataset, limit=limit + 1, before=after or None)[::-1]
    else:
        page = caller.gateway.answers(dataset, limit=limit + 1, after=after)
    more = page[limit - 1].number if len(page) > limit else None
    body = answer_body if full else summary_body
    return {"answers": [body(answer, caller) for answer in page[:limit]], "next": more}


@stored_answers.get("/answers/{number:int}", summary="One answer")
def answer(number: int, caller: SignedIn) -> dict[str, Any]:
    """One answer with its noise intervals and its receipt."""
    return answer_body(caller.gateway.answer(number), caller)


@stored_answers.get(
    "/answers/{number:int}.{form}",
    summary="One answer as a file",
    response_class=Response,
    responses={200: {"content": {media.partition(";")[0]: {} for media, _ in FORMATS.values()}}},
)
def exported(number: int, form: Form, caller: SignedIn, dark: bool = False) -> Response:
    """One answer as a file."""
    file = export(shown_to(caller.gateway.answer(number), caller), form.value, dark=dark)
    headers = {
        "Content-Disposition": f'attachment; filename="{file.filename}"',
        "Cache-Control": "private, no-store",
    }
    if form.value == "html":
        headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return Response(file.body, media_type=file.media_type, headers=headers)


@stored_answers.post("/compare", summary="Compare two answers")
def compared(body: Compared, caller: SignedIn) -> dict[str, Any]:
    """Two answers about the same bins: their difference, and where the noise does not explain it."""
    first, second = (caller.gateway.answer(number) for number in (body.a, body.b))
    return compare(first, second).to_plain()
