"""The trade-off page: what a question costs under one distance after another, and its answer under any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import urlencode

from fastapi import BackgroundTasks, Request, Response

from blowfishdb.core.cancellation import Progress
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.errors import InvalidThreshold
from blowfishdb.core.policy.columns import (
    column_graph,
    data_distance,
    shown_distance,
    typed_distance,
    written_distance,
)
from blowfishdb.core.policy.policy import Policy
from blowfishdb.entrypoints.server import once
from blowfishdb.entrypoints.server.access import Caller, PageCurator
from blowfishdb.entrypoints.server.problems import told
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web import policy as views
from blowfishdb.entrypoints.server.web.figures import figure
from blowfishdb.entrypoints.server.web.frame import Sent, dataset_address, render, shown_again
from blowfishdb.entrypoints.server.web.policy import MADE_UP, View, attempt
from blowfishdb.entrypoints.server.web.policy_form import SHAPES, PolicyForm, TemplateForm
from blowfishdb.entrypoints.server.web.typed import at_field
from blowfishdb.messages.quotes import Tradeoff
from blowfishdb.show.charts import tradeoff_chart
from blowfishdb.show.tables import tradeoff_table

router: Final = Router(include_in_schema=False)

EVERYTHING: Final = "everything"
_MOST: Final = 60
_STEPS: Final = (1, 2, 5)


@router.get("/datasets/{dataset}/tradeoff")
def tradeoff_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Cost and error against distance; a point leads to the answer and the graph under its policy."""
    typed = dict(request.query_params)
    wanted = _Wanted.of(caller, dataset, typed)
    context: dict[str, Any] = {
        "asked": wanted.template,
        "shapes": SHAPES,
        "domain": caller.gateway.facts(dataset).domain,
        "distances": wanted.distances,
        "made_up": typed.get("data", MADE_UP) == MADE_UP,
        "ordered": wanted.attribute.ordered,
    }
    shown_again(request, lambda problem: _page(request, dataset, caller, context, problem=problem))
    with at_field(request, "distances"):
        wanted.cells()
    mistakes = wanted.template.mistakes(caller.gateway[dataset])
    if mistakes:
        wrongs = {name: told(request, error) for name, error in mistakes.items()}
        return _page(request, dataset, caller, context, wrongs=wrongs)
    tradeoff = wanted.priced(caller, None)
    state = {**wanted.template.query(), "distances": wanted.distances, "data": typed.get("data", MADE_UP)}
    links = {p.policy: f"?{urlencode({**state, 'point': p.policy})}#point" for p in tradeoff.points}
    chart = figure(
        lambda width: tradeoff_chart(
            tradeoff, column=wanted.template.column, width=width, point=typed.get("point", "")
        ),
        tradeoff_table(tradeoff),
        id="tradeoff",
    )
    picked = _picked(request, caller, dataset, wanted, typed)
    return _page(request, dataset, caller, context, chart=chart, found=tradeoff, links=links, picked=picked)


@router.post("/datasets/{dataset}/tradeoff/job")
def tradeoff_job(dataset: str, form: Sent, caller: PageCurator, tasks: BackgroundTasks) -> Response:
    """The same in the background, for a bar that shows how far it is; plans stay warm for the page itself."""
    typed = {name: value for name, value in form.items() if isinstance(value, str)}
    wanted = _Wanted.of(caller, dataset, typed)

    def work(progress: Progress) -> dict[str, Any]:
        return wanted.priced(caller, progress).to_plain()

    return once.started(work, caller, tasks)


@final
@dataclass(frozen=True)
class _Wanted:
    """A question and the distances to try, as they were typed."""

    dataset: str
    template: TemplateForm
    attribute: Attribute
    distances: str
    draft: Policy

    @classmethod
    def of(cls, caller: Caller, dataset: str, typed: Mapping[str, str]) -> _Wanted:
        domain = caller.gateway.facts(dataset).domain
        template = TemplateForm.of(domain, typed)
        attribute = domain[template.column]
        same = typed.get("of", template.column) == template.column
        distances = typed.get("distances", "").strip() if same else ""
        return cls(dataset, template, attribute, distances or usual(attribute), caller.gateway.draft(dataset))

    def priced(self, caller: Caller, progress: Progress | None) -> Tradeoff:
        """Every policy with its price."""
        policies, thetas = self.policies()
        asking = self.template.asking(caller.gateway[self.dataset])
        return caller.gateway.tradeoff(asking.request(), policies, thetas=thetas, progress=progress)

    def policies(self) -> tuple[dict[str, Policy], dict[str, float]]:
        """The draft with the column hidden within each distance, from the weakest to the strongest."""
        cells = self.cells()
        column, last = self.template.column, self.attribute.value_count - 1
        policies: dict[str, Policy] = {}
        thetas: dict[str, float] = {}
        for theta in sorted(cells):
            everything = theta >= last
            graph = column_graph(
                self.attribute,
                everything=everything,
                hide_within=None if everything else written_distance(self.attribute, theta),
            )
            name = EVERYTHING if everything else f"within {shown_distance(self.attribute, theta)}"
            policies[name] = self.draft.with_column(column, graph)
            thetas[name] = float(data_distance(self.attribute, min(theta, max(last, 1))))
        return policies, thetas

    def cells(self) -> set[int]:
        """The distances in cells of the column."""
        parts = [part for part in split(self.distances) if part]
        if not parts or len(parts) > _MOST:
            raise InvalidThreshold(f"List between 1 and {_MOST} distances.", fixes=(usual(self.attribute),))
        last = max(1, self.attribute.value_count - 1)
        return {
            last
            if part.lower() in (EVERYTHING, "all")
            else min(last, self.attribute.threshold(typed_distance(self.attribute, part)))
            for part in parts
        }


def split(typed: str) -> list[str]:
    """Distances as people list them: on lines, with commas or with semicolons; 10,000 stays one number."""
    lines = typed.replace(";", "\n").replace(", ", "\n").splitlines()
    return [line.strip().rstrip(",") for line in lines]


def usual(attribute: Attribute) -> str:
    """1, 2, 5, 10 … up to the extent of the column, and everything."""
    if not attribute.ordered:
        return EVERYTHING
    last = attribute.value_count - 1
    ladder = [step * 10**power for power in range(len(str(last))) for step in _STEPS]
    chosen = [theta for theta in ladder if max(1, last // 250) <= theta <= last * 2 // 3]
    return ", ".join([*(shown_distance(attribute, theta) for theta in chosen), EVERYTHING])


def _picked(
    request: Request, caller: Caller, dataset: str, wanted: _Wanted, typed: Mapping[str, str]
) -> dict[str, Any] | None:
    """The policy of the point that was clicked: its answer, its graph, and the way to use it."""
    policies, _ = wanted.policies()
    policy = policies.get(typed.get("point", ""))
    if policy is None:
        return None
    source = caller.gateway[dataset]
    asking = wanted.template.asking(source)
    made_up = typed.get("data", MADE_UP) == MADE_UP

    def answered() -> View:
        return views.answers_view(source, asking, policy, made_up=made_up)[0]

    state = {**PolicyForm.of(policy).query(), **wanted.template.query(), "data": typed.get("data", MADE_UP)}
    return {
        "name": typed["point"],
        "answers": attempt(request, answered),
        "graph": attempt(request, lambda: views.graph_view(asking, policy)),
        "use": dataset_address(dataset, f"/policy?{urlencode(state)}"),
    }


def _page(request: Request, dataset: str, caller: Caller, context: dict[str, Any], **more: Any) -> Response:
    shown = {"chart": None, "found": None, "links": {}, "picked": None, **more}
    return render(request, "curator/tradeoff.html", caller=caller, dataset=dataset, **context, **shown)
