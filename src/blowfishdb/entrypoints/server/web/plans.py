"""The plan board: questions that are settled on together, how close each has to be, and what all of it costs.

How close is what matters: the ± of each question stands on the board, and can be changed there. All of them
can be fitted to what may be spent: every ± grows or shrinks by the same factor, so that what was closer than
the others stays so.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qsl

from fastapi import Request, Response

from blowfishdb.adapters.store.values import RequestKey
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.errors import BlowfishError, Infeasible, InvalidAlpha, InvalidInput
from blowfishdb.entrypoints.server.access import Caller, PageAsker
from blowfishdb.entrypoints.server.api.questions import QuestionBody
from blowfishdb.entrypoints.server.once import Reply, answered_once
from blowfishdb.entrypoints.server.problems import Problem, told
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.waiting import given_up
from blowfishdb.entrypoints.server.web.ask_draft import Draft
from blowfishdb.entrypoints.server.web.ask_fields import read_draft
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    meter,
    redirect,
    render,
    render_part,
    shown_again,
    text,
)
from blowfishdb.entrypoints.server.web.typed import at_field, field_of, is_number, number_text, privacy_loss
from blowfishdb.language.extensions import split_extensions
from blowfishdb.messages.desk import Planned
from blowfishdb.messages.quotes import TogetherQuote
from blowfishdb.workspace.asking import Asking

router: Final = Router(include_in_schema=False)

_LONGEST: Final = 20_000
_TRIES: Final = 8  # prices that are looked at to fit a plan to what may be spent
_CLOSE: Final = 0.97  # and from which part of that on it is used well
_OVER: Final = 1.003


@router.post("/plan/add")
def put_on_plan(form: Sent, caller: PageAsker) -> Response:
    """Put what stands in the form of a dataset on the plan."""
    dataset, address = text(form, "dataset"), text(form, "address")[:_LONGEST]
    source = caller.gateway[dataset]
    typed = dict(parse_qsl(address.removeprefix("?"), keep_blank_values=True))
    draft = _terms_apart(Draft.read(typed, source.schema))
    asked = read_draft(draft, source).body.model_dump(mode="json", exclude_defaults=True)
    kept = caller.gateway.desk
    planned = kept.plan(caller.name)
    if all((each.dataset, each.asked) != (dataset, asked) for each in planned):
        kept.keep_plan(caller.name, [*planned, Planned(dataset, asked, draft.address(explain=""))])
    return redirect("/plan")


@router.get("/plan")
def plan_page(request: Request, caller: PageAsker) -> Response:
    """The questions on the plan: what each costs alone and beside the others, and what all of them cost."""
    return _plan(request, caller)


@router.post("/plan/set")
def set_what_matters(request: Request, form: Sent, caller: PageAsker) -> Response:
    """Another ± for questions on the plan, or another ε for those that state one."""
    planned = caller.gateway.desk.plan(caller.name)
    typed = {f"close-{at}": text(form, f"close-{at}") for at in range(len(planned)) if f"close-{at}" in form}
    shown_again(request, lambda problem: _plan(request, caller, problem=problem, typed=typed))
    changed = list(planned)
    for name, value in typed.items():
        at = int(name.removeprefix("close-"))
        with at_field(request, name):
            changed[at] = _closer(planned[at], value)
    if changed != planned:
        caller.gateway.desk.keep_plan(caller.name, changed)
    return _plan(request, caller) if request.headers.get("Part") else redirect("/plan")


@router.post("/plan/fit")
def fit_plan(request: Request, form: Sent, caller: PageAsker) -> Response:
    """Make all errors larger or smaller alike, until all of it costs what may be spent."""
    typed = text(form, "spend")
    shown_again(request, lambda problem: _plan(request, caller, problem=problem, typed={"spend": typed}))
    with at_field(request, "spend"):
        most = privacy_loss(typed)
        fitted = _fitted(caller, caller.gateway.desk.plan(caller.name), most)
    caller.gateway.desk.keep_plan(caller.name, fitted)
    return redirect("/plan", flash=f"Every ± grew or shrank alike, so that all of it costs at most ε {most}.")


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
    most, title, key = text(form, "most"), text(form, "title"), text(form, "key")
    shown_again(request, lambda problem: _plan(request, caller, problem=problem, typed={"title": title}))
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
        return _plan(request, caller, problem=Problem(**reply.body), typed={"title": title})
    numbers = list(dict.fromkeys(reply.body["answers"]))
    made = kept.make_dashboard((title or "Plan")[:120], numbers, caller.name)
    kept.keep_plan(caller.name, [])
    return redirect(f"/dashboards/{made.id}", flash="Everything on the plan is answered.")


# --- what matters ---------------------------------------------------------------------------------


def _terms_apart(draft: Draft) -> Draft:
    """A statement that says how close its answer has to be, with that in fields of its own."""
    if draft.mode != "sql" or not draft.sql:
        return draft
    said = split_extensions(draft.sql)
    bare = replace(draft, sql=said.select.strip())
    if said.group_size is not None:
        return draft
    if said.epsilon is not None:
        return replace(bare, by="epsilon", epsilon=str(said.epsilon))
    if said.accuracy is None:
        return draft
    often, every = f"{100 * (1 - said.accuracy.beta):.6g}", "all" if said.accuracy.simultaneous else "each"
    return replace(bare, by="error", error=f"{said.accuracy.alpha:.12g}", confidence=often, every=every)


def _closer(planned: Planned, typed: str) -> Planned:
    """A question with another ±, or another ε, here and where it is edited."""
    if "epsilon" in planned.asked:
        return _with(planned, "epsilon", str(privacy_loss(typed)))
    if not is_number(typed) or not 0 < float(number_text(typed)) < math.inf:
        raise InvalidAlpha(
            f"“{typed[:40]}” is no error: say how far off it may be, more than 0.", fixes=("50",)
        )
    return _with(planned, "error", f"{float(number_text(typed)):.12g}")


def _with(planned: Planned, name: str, value: str) -> Planned:
    kept = dict(parse_qsl(planned.address.removeprefix("?"), keep_blank_values=True))
    draft = replace(Draft(), **{**kept, name: value})
    stated = float(value) if name == "error" else value
    return replace(planned, asked={**planned.asked, name: stated}, address=draft.address())


def _scaled(planned: Sequence[Planned], factor: float) -> list[Planned]:
    """Every ± times a factor, on the loose side of three digits; every ε that is stated divided by it."""
    scaled = []
    for each in planned:
        if "epsilon" in each.asked:
            stated = math.floor(float(Epsilon(each.asked["epsilon"])) / factor * 1e6) / 1e6
            scaled.append(_with(each, "epsilon", f"{max(stated, 1e-6):.6f}".rstrip("0")))
        elif "error" in each.asked:
            scaled.append(_with(each, "error", f"{_up(float(each.asked['error']) * factor):.12g}"))
        else:
            scaled.append(each)
    return scaled


def _up(error: float) -> float:
    digit = 10.0 ** (math.floor(math.log10(error)) - 2)
    return math.ceil(error / digit - 1e-9) * digit


def _fitted(caller: Caller, planned: Sequence[Planned], most: Epsilon) -> list[Planned]:
    """The plan with every error times the least factor that is found for which all of it costs at most so
    much.

    Half the noise costs about twice as much, which says where to look next.
    """
    if not most:
        raise InvalidInput("Nothing can be asked for nothing.", fixes=("0.5",))
    factor, best = 1.0, None
    for _ in range(_TRIES):
        tried = _scaled(planned, factor)
        price = caller.gateway.plan(*_askings(caller, tried)).quotes().most
        if price <= most:
            best = tried
            if not price or float(price) >= _CLOSE * float(most):
                break
        elif best is not None:
            break
        factor *= float(price) / float(most) * _OVER
    if best is None:
        raise Infeasible(f"No plan was found that costs at most ε {most}.", fixes=("drop a question", "more"))
    return best


# --- the page -------------------------------------------------------------------------------------


def _askings(caller: Caller, planned: Sequence[Planned]) -> list[Asking]:
    return [QuestionBody(**each.asked).asking(caller.gateway[each.dataset]) for each in planned]


def _plan(
    request: Request,
    caller: Caller,
    *,
    problem: Problem | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    planned = caller.gateway.desk.plan(caller.name)
    quote: TogetherQuote | None = None
    if planned:
        try:
            quote = caller.gateway.plan(*_askings(caller, planned)).quotes(cancel=given_up(request.scope))
        except BlowfishError as error:
            problem = problem or told(request, error)
    used = list(dict.fromkeys(each.dataset for each in planned if each.dataset in caller.gateway))
    left = {name: caller.gateway.left(name) for name in used}
    costs = {} if quote is None else _by_dataset(quote)
    shown: dict[str, Any] = {
        "planned": planned,
        "typed": typed or {},
        "close": [_stated(each) for each in planned],
        "quote": quote,
        "shares": [] if quote is None else _shares(quote),
        "short": [name for name, cost in costs.items() if cost > left.get(name, Epsilon(0))],
        "left": left,
        "costs": costs,
        "key": str(uuid.uuid4()),
        "names": caller.gateway.datasets(),
    }
    if request.headers.get("Part"):
        at = field_of(request)
        wrongs = {at: problem} if at and problem else {}
        return render_part(
            request, "analyst/plan_board.html", caller=caller, wrongs=wrongs,
            problem=None if at else problem, **shown,
        )  # fmt: skip
    meters = [meter(caller, name) for name in used]
    return render(request, "analyst/plan.html", caller=caller, problem=problem, meters=meters, **shown)


def _stated(planned: Planned) -> tuple[str, str]:
    """How close a question has to be: ``±`` or ``ε``, and how much; nothing where a SELECT says it."""
    if "epsilon" in planned.asked:
        return "ε", str(planned.asked["epsilon"])
    return ("±", f"{planned.asked['error']:,.12g}") if "error" in planned.asked else ("", "")


def _shares(quote: TogetherQuote) -> list[int]:
    """Which part of the joint price each question takes, in per cent."""
    whole = float(quote.epsilon)
    return [round(100 * float(part.epsilon) / whole) if whole else 0 for part in quote.parts]


def _by_dataset(quote: TogetherQuote) -> dict[str, Epsilon]:
    costs: dict[str, Epsilon] = {}
    for part in quote.parts:
        costs[part.dataset] = costs.get(part.dataset, Epsilon(0)) + part.epsilon
    return costs
