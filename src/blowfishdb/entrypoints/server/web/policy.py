"""The policy page: edit the sentence, and answers, graph, protection and promise follow; then publish it.

What the curator looks at while trying a policy: answers with and without noise, the graph, protection.

The part of the policy page about what the world already knows: kept in the draft, checked on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response

from blowfishdb.adapters.store.catalogue import WAITING
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.constraints import Constraints
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.errors import BlowfishError, InvalidInput, NotFound, NotProven, PolicyConflict
from blowfishdb.core.policy.columns import shown_cell
from blowfishdb.core.policy.guarantee import guarantee
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.protection import at_most, certainty_at, curve, probe
from blowfishdb.core.policy.words import sentences
from blowfishdb.core.questions.projection import project
from blowfishdb.entrypoints.server.access import Caller, PageCurator
from blowfishdb.entrypoints.server.api.policies import file_of
from blowfishdb.entrypoints.server.problems import Problem, read, told
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.figures import Figure, figure, pictured
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    redirect,
    render,
    shown_again,
    text,
    ticked,
)
from blowfishdb.entrypoints.server.web.known_form import (
    CHECK,
    SIGNS,
    KnownInput,
    changed,
    known_form,
)
from blowfishdb.entrypoints.server.web.place_form import PlaceMap
from blowfishdb.entrypoints.server.web.policy_form import (
    SHAPES,
    PolicyForm,
    TemplateForm,
    bounds,
)
from blowfishdb.entrypoints.server.web.promise_table import promise_table
from blowfishdb.language.policy_file import read_policy
from blowfishdb.show.charts import (
    box_labels,
    graph_chart,
    graph_table,
    preview_chart,
    preview_table,
    protection_chart,
    protection_table,
)
from blowfishdb.show.words import headline
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset

MADE_UP: Final = "made-up"
GRAPH: Final = "graph"
PROTECTION: Final = "protection"
_NEAR: Final = (0.4, 0.44)  # where along a column two values to compare are suggested


@final
@dataclass(frozen=True)
class View:
    """A part of the page: what there is to see, or why there is nothing."""

    figure: Figure | None = None
    problem: Problem | None = None
    words: str = ""


@final
@dataclass(frozen=True)
class Price:
    """What a question costs under the policy on the page, and under the published one if it may be asked."""

    question: str
    cost: Epsilon
    published: Epsilon | None


def attempt(request: Request, show: Callable[[], View]) -> View:
    """A part of a page that may fail without taking the others with it."""
    try:
        return show()
    except BlowfishError as error:
        return View(problem=told(request, error))


def answers_view(dataset: Dataset, asking: Asking, policy: Policy, *, made_up: bool) -> tuple[View, Epsilon]:
    """The true answer and one noisy draw on the same axes, and what it costs under the policy."""
    seen = dataset.preview(asking, policy=policy, stand_in=made_up)
    drawn = figure(lambda width: preview_chart(seen, width=width), preview_table(seen), id="answers")
    return View(drawn), seen.noisy.receipt.epsilon


def graph_view(asking: Asking, policy: Policy, *, again: str | None = None) -> View:
    """The policy as the question sees it: on its bins."""
    problem = project(asking.request().counts, policy)
    axes = problem.cells.axes
    small, columns = problem.graph, {axis.column: axis.bins.count for axis in axes}
    labels = box_labels([axis.labels() for axis in axes])
    ordered = len(axes) == 1 and axes[0].attribute.ordered
    drawn = figure(
        lambda width: graph_chart(small, labels, columns=columns, ordered=ordered, width=width),
        graph_table(small, labels),
        id="graph",
        again=again,
    )
    return View(drawn)


def protection_view(policy: Policy, column: str, budget: Epsilon, *, again: str | None = None) -> View:
    """How sure an attacker can become, against how far two values are apart."""
    steps = curve(policy, column, budget)
    table = protection_table(steps, column, budget)
    drawn = figure(
        lambda width: protection_chart(steps, column, budget, width=width),
        table,
        id="protection",
        again=again,
    )
    return View(drawn)


def probed_view(policy: Policy, column: str, pair: tuple[str, str], budget: Epsilon) -> View:
    """Two values, and how sure an attacker can become which of them someone has."""
    return View(words=probe(policy, column, *pair, budget).sentence)


def suggested_pair(attribute: Attribute) -> tuple[str, str]:
    """Two values of a column to begin with: of its declaration, not of its rows."""
    first, second = (int(share * attribute.value_count) for share in _NEAR)
    if second == first:
        first, second = 0, min(1, attribute.value_count - 1)
    return shown_cell(attribute, first), shown_cell(attribute, second)


router: Final = Router(include_in_schema=False)

_LONGEST_FILE: Final = 900_000
State = dict[str, str]


@router.get("/datasets/{dataset}/policy")
def policy_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """CURATOR VIEW, TRUE DATA: a draft in the address, and everything that follows from it."""
    return show_policy(request, dataset, caller, dict(request.query_params))


def show_policy(
    request: Request,
    dataset: str,
    caller: Caller,
    typed: State,
    *,
    file: str | None = None,
    known: KnownInput | None = None,
    problem: Problem | None = None,
) -> Response:
    """The page; ``file`` and ``known`` are what was just typed or asked there, with what is wrong with it."""
    facts, draft = caller.gateway.facts(dataset), caller.gateway.draft(dataset)
    form = PolicyForm.of(draft).changed(typed)
    policy, wrong = form.policy(draft)
    template = TemplateForm.of(facts.domain, typed)
    suggestion = suggested_pair(facts.domain[template.column])
    probing = typed.get("probing") == template.column  # values of another column are none of this one
    pair = (typed.get("u", ""), typed.get("v", "")) if probing else suggestion
    state = {**form.query(), **template.query(), "data": "true" if typed.get("data") == "true" else MADE_UP}
    state |= {"probing": template.column, "u": pair[0], "v": pair[1]} if pair != suggestion else {}
    total, meant = caller.gateway.budget(dataset).total, draft if policy is None else policy
    mistakes = template.mistakes(caller.gateway[dataset])
    return render(
        request,
        "curator/policy.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        form=form,
        wrong={name: _helped(told(request, error), form, name) for name, error in wrong.items()},
        asked=template,
        wrongs={name: told(request, error) for name, error in mistakes.items()},
        shapes=SHAPES,
        domain=facts.domain,
        bounds=_bounds(form, draft, wrong),
        place_map=PlaceMap.of(form.place, facts.domain) if form.place.columns and policy else None,
        signs=SIGNS,
        policy_version=facts.policy_version,
        standing=facts.standing,
        pair=pair,
        state=urlencode(state),
        was=typed.get("was"),
        made_up=state["data"] == MADE_UP,
        total=total,
        adding_up=_adding_up(len(facts.domain.names), total),
        file=(file_of(meant, dataset) or "") if file is None else file,
        file_refused=file is not None,
        known=known_form(meant, known or KnownInput(), _asking(template, caller.gateway[dataset])),
        **{
            **(_NOTHING if policy is None else _shown(request, caller, dataset, policy, state)),
            **(_UNASKED if mistakes else {}),  # said at the fields
        },
    )


def _bounds(form: PolicyForm, draft: Policy, wrong: Mapping[str, BlowfishError]) -> dict[str, str]:
    """Where groups of numbers begin and end, of the columns that are hidden in such groups."""
    rules = [rule for rule in form.columns if rule.hides == "width" and rule.column not in wrong]
    return {rule.column: bounds(draft.domain[rule.column], rule.graph(draft)) for rule in rules}


def _asking(template: TemplateForm, dataset: Dataset) -> Asking | None:
    """The question on the page, if it can be asked."""
    try:
        return template.asking(dataset)
    except BlowfishError:
        return None


def _helped(problem: Problem, form: PolicyForm, column: str) -> Problem:
    """What is wrong about a column, never without something to try."""
    rule = next(each for each in form.columns if each.column == column)
    return problem.model_copy(update={"fixes": problem.fixes or [rule.example]})


_NOTHING: Final[dict[str, Any]] = {
    "policy": None,
    "answers": None,
    "graph": None,
    "protection": None,
    "probed": None,
    "price": None,
    "change": None,
    "guarantee": None,
    "draft_differs": False,
}


_UNASKED: Final[dict[str, Any]] = {"answers": None, "graph": None, "price": None}


def _shown(request: Request, caller: Caller, name: str, policy: Policy, state: State) -> dict[str, Any]:
    """Everything that follows from a policy that makes sense."""
    dataset, facts = caller.gateway[name], caller.gateway.facts(name)
    template, total = TemplateForm.of(facts.domain, state), caller.gateway.budget(name).total
    prices: list[Price] = []

    def answered() -> View:
        asking = template.asking(dataset)
        view, cost = answers_view(dataset, asking, policy, made_up=state["data"] == MADE_UP)
        published = None if change.same is True else _published_cost(dataset, template)
        prices[:] = [Price(headline(asking.request().question.describe()), cost, published)]
        return view

    pair = (state["u"], state["v"]) if "u" in state else suggested_pair(facts.domain[template.column])
    change = caller.gateway.propose(name, policy)
    answers = attempt(request, answered)
    return {
        "policy": sentences(policy),
        "answers": answers,
        "graph": attempt(
            request, lambda: graph_view(template.asking(dataset), policy, again=_again(name, GRAPH, state))
        ),
        "protection": attempt(
            request,
            lambda: protection_view(policy, template.column, total, again=_again(name, PROTECTION, state)),
        ),
        "probed": attempt(request, lambda: probed_view(policy, template.column, pair, total)),
        "price": prices[0] if prices else None,
        "change": change,
        "guarantee": guarantee(policy, total, rows_per_person=facts.rows_per_person),
        "draft_differs": caller.gateway.propose(name, caller.gateway.draft(name)).same is not True,
    }


def _again(dataset: str, part: str, state: State) -> str:
    """Where a picture of the page is drawn again, by what the page has in its own address."""
    return dataset_address(dataset, f"/policy/{part}.svg?{urlencode(state)}")


@router.get("/datasets/{dataset}/policy/{part}.svg")
def policy_picture(
    request: Request, dataset: str, part: str, caller: PageCurator, dark: bool = False
) -> Response:
    """The graph or the protection of the page with this address, for whoever looks without JavaScript."""
    state = dict(request.query_params)
    policy, template = _described(caller, dataset, state), _template(caller, dataset, state)
    if part == GRAPH:
        view = graph_view(template.asking(caller.gateway[dataset]), policy)
    elif part == PROTECTION:
        view = protection_view(policy, template.column, caller.gateway.budget(dataset).total)
    else:
        raise NotFound("There is no such picture.", fixes=(GRAPH, PROTECTION))
    assert view.figure is not None
    return pictured(view.figure.specification, dark=dark)


def _template(caller: Caller, dataset: str, typed: Mapping[str, str]) -> TemplateForm:
    return TemplateForm.of(caller.gateway.facts(dataset).domain, typed)


def _published_cost(dataset: Dataset, template: TemplateForm) -> Epsilon | None:
    """What the question costs today, also where its answer is stored already; None where it is refused."""
    try:
        (point,) = dataset.tradeoff(template.asking(dataset), {"published": dataset.policy}).points
        return point.epsilon if point.promised is None else point.promised
    except NotProven:
        return None


def _adding_up(columns: int, total: Epsilon) -> str:
    """What hiding columns one by one gives up, in numbers."""
    together, apart = (at_most(certainty_at(steps, total)) for steps in (1, columns))
    return f"between records that differ in all {columns} columns an attacker can be {apart}, not {together}"


# --- saving and publishing ------------------------------------------------------------------------


@router.post("/datasets/{dataset}/policy/draft")
def save_draft(dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Keep the policy to go on with later; nothing follows it yet."""
    state = text(form, "state")
    caller.gateway.save_draft(dataset, _meant(caller, dataset, state))
    address = dataset_address(dataset, f"/policy?{urlencode(parse_qsl(state))}")
    return redirect(address, flash="Draft saved. Analysts still see the published policy.")


@router.post("/datasets/{dataset}/policy/file")
def keep_file(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Keep what a file says as the draft, as the interface does."""
    typed, state = text(form, "file"), dict(parse_qsl(text(form, "state"), keep_blank_values=True))
    shown_again(
        request,
        lambda problem: show_policy(request, dataset, caller, state, file=typed, problem=problem),
    )
    domain = caller.gateway.facts(dataset).domain
    caller.gateway.save_draft(
        dataset, read("policy", lambda: read_policy(typed[:_LONGEST_FILE], domain, dataset=dataset))
    )
    return redirect(
        dataset_address(dataset, "/policy"), flash="Draft saved. Analysts still see the published policy."
    )


@router.post("/datasets/{dataset}/policy/forget")
def forget_draft(dataset: str, caller: PageCurator) -> Response:
    """Begin again with the published policy."""
    caller.gateway.save_draft(dataset, caller.gateway.facts(dataset).policy)
    return redirect(dataset_address(dataset, "/policy"), flash="Back to the published policy.")


@router.get("/datasets/{dataset}/policy/publish")
def publish_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """What publishing means: the guarantee, what changes, what becomes exact, what was spent before."""
    return _confirmation(request, caller, dataset, request.url.query)


@router.post("/datasets/{dataset}/policy/publish")
def publish(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """From now on new answers follow it."""
    state = text(form, "state")
    policy = _meant(caller, dataset, state)
    exact = caller.gateway.propose(dataset, policy).newly_exact
    facts = caller.gateway.facts(dataset)
    shown_again(request, lambda problem: _confirmation(request, caller, dataset, state, problem))
    if text(form, "version") != str(facts.policy_version):
        raise PolicyConflict(
            "Another policy was published while you were reading, so the difference below is new.",
            fixes=("read it again, then publish",),
        )
    if not all(ticked(form, name) for name in ("confirm", *(f"exact-{n}" for n in range(len(exact))))):
        raise InvalidInput("Tick every box below: publishing is a promise.", fixes=("tick the boxes",))
    caller.gateway.publish(dataset, policy, confirm=True, withdraw=ticked(form, "withdraw"))
    caller.gateway.save_draft(dataset, policy)
    if facts.standing == WAITING:
        opened = f"Published: '{dataset}' is open. Analysts can ask from now on, and so can you."
        return redirect(dataset_address(dataset), flash=opened)
    sentence = f"Published as version {facts.policy_version + 1}. New answers follow it from now on."
    return redirect(dataset_address(dataset, "/guarantee"), flash=sentence)


def _meant(caller: Caller, dataset: str, state: str) -> Policy:
    """The policy that a state describes, for those who act on it."""
    return _described(caller, dataset, dict(parse_qsl(state, keep_blank_values=True)))


def _described(caller: Caller, dataset: str, state: State) -> Policy:
    draft = caller.gateway.draft(dataset)
    form = PolicyForm.of(draft).changed(state)
    policy, wrong = form.policy(draft)
    if policy is None:
        raise next(iter(wrong.values()))
    return policy


def _confirmation(
    request: Request, caller: Caller, dataset: str, state: str, problem: Problem | None = None
) -> Response:
    facts, budget = caller.gateway.facts(dataset), caller.gateway.budget(dataset)
    policy = _meant(caller, dataset, state)
    promised = guarantee(policy, budget.total, rows_per_person=facts.rows_per_person)
    return render(
        request,
        "curator/publish.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        state=state,
        policy_version=facts.policy_version,
        standing=facts.standing,
        sentences=sentences(policy),
        change=caller.gateway.propose(dataset, policy),
        guarantee=promised,
        promise=promise_table(policy, promised),
        budget=budget,
        past=caller.gateway.past(dataset, policy),
    )


known_pages: Final = Router(include_in_schema=False)


@known_pages.post("/datasets/{dataset}/policy/known")
def change_known(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Add to what is known or take something back, in the draft; or compare it with the rows.

    CURATOR VIEW, TRUE DATA: what a comparison finds is in its answer, and in no address.
    """
    state = dict(parse_qsl(text(form, "state"), keep_blank_values=True))
    typed = KnownInput.of(form)
    shown_again(
        request,
        lambda problem: show_policy(request, dataset, caller, state, known=typed, problem=problem),
    )
    if text(form, "do") == CHECK:
        check = caller.gateway.check_known(dataset)
        return show_policy(request, dataset, caller, state, known=KnownInput(checked=check.sentences))
    draft = caller.gateway.draft(dataset)
    known = changed(draft.constraints or Constraints(), form, draft.domain)
    caller.gateway.save_draft(dataset, draft.knowing(known))
    address = dataset_address(dataset, f"/policy?{urlencode(state)}#known")
    return redirect(address, flash="Kept in the draft. Nothing follows it before it is published.")
