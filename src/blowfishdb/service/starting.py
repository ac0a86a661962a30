"""What common questions cost under each policy that a curator may begin with; from declarations alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.policy.starting import StartingPoint
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.core.questions.round_bins import round_bins
from blowfishdb.messages.policies import PricedStart
from blowfishdb.messages.questions import Request, Terms
from blowfishdb.service.planning import Planner

_MOST: Final = 10
_CURVE: Final = 20
_BARS: Final = 10
_FINE: Final = 40
_LONG: Final = 200  # values in a list, beyond which nobody looks at each


def common_questions(domain: Domain) -> list[QuestionForm]:
    """Ten questions that somebody usually asks of such columns, or fewer where there are few columns."""
    return list(islice(_questions(domain), _MOST))


def _questions(domain: Domain) -> Iterator[QuestionForm]:
    sizes = {name: attribute.value_count for name, attribute in domain.columns}
    wide = [name for name, attribute in domain.columns if attribute.ordered and sizes[name] > _BARS]
    short = [name for name in domain.names if name not in wide and sizes[name] <= _LONG]
    for name in wide[:3]:
        yield QuestionForm("cumulative", (round_bins(name, domain[name], _CURVE),))
        yield QuestionForm("quantiles", (round_bins(name, domain[name], _FINE),), shares=(0.5,))
    for name in short[:3]:
        yield QuestionForm("histogram", (ColumnForm(name),))
    for name in wide[:3]:
        yield QuestionForm("histogram", (round_bins(name, domain[name], _BARS),))
    if wide and short:
        yield QuestionForm("histogram", (round_bins(wide[0], domain[wide[0]], _BARS), ColumnForm(short[0])))
    if len(short) > 1:
        yield QuestionForm("histogram", (ColumnForm(short[0]), ColumnForm(short[1])))
    for name in short[3:]:
        yield QuestionForm("histogram", (ColumnForm(name),))


def priced_starts(
    planner: Planner,
    dataset: str,
    user: str,
    points: Sequence[StartingPoint],
    *,
    error: float,
    rows_per_person: int,
) -> list[PricedStart]:
    """Each starting point with the price of every common question; None for what it refuses."""
    terms = Terms().accurate_to(error)
    domain = points[0].policy.domain
    asked = [Request(dataset, form, form.question(domain), terms, user) for form in common_questions(domain)]
    return [
        PricedStart(
            point.key,
            point.title,
            point.words,
            point.policy,
            error,
            tuple(request.question.describe() for request in asked),
            tuple(_price(planner, request, point, rows_per_person) for request in asked),
        )
        for point in points
    ]


def _price(planner: Planner, request: Request, point: StartingPoint, rows: int) -> Epsilon | None:
    try:
        return planner.plan(request, point.policy, rows).cost
    except BlowfishError:
        return None
