"""Advice: what would be cheaper, and what still fits. Computed like a price, without data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.policy import Policy
from blowfishdb.messages import Alternative, Fit, Request
from blowfishdb.planning import Planned, Planner

_COARSER = (2, 5, 10, 20)
_ANYWAY = (Fit("an answer that is already stored"), Fit("ask the curator for more"))


def cheaper(
    planner: Planner, request: Request, planned: Planned, rows_per_person: int
) -> tuple[Alternative, ...]:
    """The same question with twice the error."""
    asked = request.terms.accuracy
    if asked is None or not planned.cost:
        return ()
    doubled = replace(request, terms=replace(request.terms, accuracy=replace(asked, alpha=2 * asked.alpha)))
    return (Alternative(2 * asked.alpha, planner.price(planned.problem, doubled, rows_per_person).cost),)


def affordable(
    planner: Planner,
    request: Request,
    planned: Planned,
    policy: Policy,
    rows_per_person: int,
    left: Epsilon,
    fitting: Callable[[Request, Planned], bool],
) -> tuple[Fit, ...]:
    """What fits into the budget that is left: a larger error, wider bins, or another decision.

    ``left`` is what may be spent in the planned way, ``fitting`` says of another one whether it may be taken.
    """
    if request.terms.accuracy is None:
        return what_is_left(left, *_wider_bins(planner, request, policy, rows_per_person, fitting))
    fits = [*_larger_error(request, request.terms.accuracy, planned, rows_per_person, left)]
    fits += [*_wider_bins(planner, request, policy, rows_per_person, fitting)]
    return (*fits, *_ANYWAY)


def what_is_left(left: Epsilon, *more: Fit) -> tuple[Fit, ...]:
    """What fits where an ε was stated: a smaller one."""
    smaller = (Fit(f"epsilon {left}", epsilon=left),) if left else ()
    return (*smaller, *more, *_ANYWAY)


def _larger_error(
    request: Request, asked: Accuracy, planned: Planned, rows_per_person: int, left: Epsilon
) -> Iterator[Fit]:
    per_row = Epsilon.from_nano(left.nano // (rows_per_person * planned.choice.factor))
    if not per_row:
        return
    kind, axes = request.counts.kind, planned.problem.axes
    needed = kind.requirement(asked, axes)
    margin = planned.choice.plan.alpha_for(
        epsilon=per_row, beta=needed.beta, simultaneous=needed.simultaneous
    )
    error = _rounded_up(kind.promised(margin, axes))
    yield Fit(f"±{error:,g}", error=error)


def _rounded_up(alpha: float) -> float:
    """Two digits are enough to type, and rounding up keeps it affordable."""
    unit = 10 ** max(0, math.floor(math.log10(alpha)) - 1) if alpha > 0 else 1
    return math.ceil(alpha / unit) * unit


def _wider_bins(
    planner: Planner,
    request: Request,
    policy: Policy,
    rows_per_person: int,
    fitting: Callable[[Request, Planned], bool],
) -> Iterator[Fit]:
    """The finest of a few coarser cuts that fits."""
    for times in _COARSER:
        coarser = _coarsened(request, policy.domain, times)
        if coarser is None:
            return
        try:
            fits = fitting(coarser, planner.plan(coarser, policy, rows_per_person))
        except BlowfishError:
            return
        if fits:
            bins = coarser.form.columns[0].bins
            yield Fit(f"{bins:,} bins", bins=bins)
            return


def _coarsened(request: Request, domain: Domain, times: int) -> Request | None:
    """The question on one ordered column with fewer bins; None where there are few already."""
    form = request.form
    if len(form.columns) != 1 or not form.cut_into_bins or not domain[form.columns[0].name].ordered:
        return None
    bins = request.counts.axes[0].value_bins // times
    if bins < 2:
        return None
    column = replace(form.columns[0], bins=bins, width=None, edges=None, groups=None)
    coarser = replace(form, columns=(column,))
    return replace(request, form=coarser, question=coarser.question(domain))
