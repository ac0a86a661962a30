"""What the curator looks at while trying a policy: answers with and without noise, the graph, protection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from fastapi import Request

from blowfishdb.asking import Asking
from blowfishdb.charts import (
    graph_chart,
    graph_table,
    preview_chart,
    preview_table,
    protection_chart,
    protection_table,
)
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import project
from blowfishdb.core.protection import curve, probe
from blowfishdb.core.typed_values import shown_cell
from blowfishdb.datasets import Dataset
from blowfishdb.entrypoints.web.figures import Figure, figure
from blowfishdb.entrypoints.web.frame import told

MADE_UP: Final = "made-up"
_NEAR: Final = (0.4, 0.44)  # where along a column two values to compare are suggested


@final
@dataclass(frozen=True)
class View:
    """A part of the page: what there is to see, or why there is nothing."""

    figure: Figure | None = None
    problem: dict[str, Any] | None = None
    words: str = ""


def attempt(request: Request, show: Callable[[], View]) -> View:
    """A part of a page that may fail without taking the others with it."""
    try:
        return show()
    except BlowfishError as error:
        return View(problem=told(request, error))


def answers(dataset: Dataset, asking: Asking, policy: Policy, *, made_up: bool) -> tuple[View, Epsilon]:
    """The true answer and one noisy draw on the same axes, and what it costs under the policy."""
    seen = dataset.preview(asking, policy=policy, stand_in=made_up)
    drawn = figure(lambda width: preview_chart(seen, width=width), preview_table(seen), id="answers")
    return View(drawn), seen.noisy.receipt.epsilon


def graph(asking: Asking, policy: Policy) -> View:
    """The policy as the question sees it: on its bins."""
    problem = project(asking.request().counts, policy)
    axes = problem.cells.axes
    labels = axes[0].labels() if len(axes) == 1 else None
    small = problem.graph
    drawn = figure(
        lambda width: graph_chart(small, labels, width=width), graph_table(small, labels), id="graph"
    )
    return View(drawn)


def protection(policy: Policy, column: str, budget: Epsilon) -> View:
    """How sure an attacker can become, against how far two values are apart."""
    steps = curve(policy, column, budget)
    table = protection_table(steps, column, budget)
    drawn = figure(lambda width: protection_chart(steps, column, budget, width=width), table, id="protection")
    return View(drawn)


def probed(policy: Policy, column: str, pair: tuple[str, str], budget: Epsilon) -> View:
    """Two values, and how sure an attacker can become which of them someone has."""
    found = probe(policy, column, *pair, budget)
    return View(words=found.sentence)


def suggested(attribute: Attribute) -> tuple[str, str]:
    """Two values of a column to begin with: of its declaration, not of its rows."""
    first, second = (int(share * attribute.value_count) for share in _NEAR)
    if second == first:
        first, second = 0, min(1, attribute.value_count - 1)
    return shown_cell(attribute, first), shown_cell(attribute, second)
