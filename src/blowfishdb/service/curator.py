"""Preview: the true answer beside one noisy draw, for the curator only.

Nothing is charged, because the curator may see the data anyway; that someone looked is written into the
ledger. Choosing a policy by looking at true answers can itself reveal something about them, so the same
picture can be drawn from made-up counts instead.

Whether the data satisfies the counts that a policy takes to be known; for the curator only.

True counts are shown, so that somebody looked is written into the ledger, as for a preview.

Whether columns that are declared without missing values have none; for the curator, before anyone asks.

The rule for missing values is part of the declaration, so that no answer depends on whether there are any.
Where it says that there are none, somebody has to look: here, when rows are declared or refreshed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from blowfishdb.adapters.backends import TIMEOUT, Backend
from blowfishdb.adapters.copies import Patience
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.constraints import Constraints, Count, Marginal, Range
from blowfishdb.core.constraints.declared import table_bins
from blowfishdb.core.constraints.known_cells import known_on_boxes, refined
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis, CellQuery, Domain
from blowfishdb.core.errors import InvalidAttribute, QueryFailed
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.questions.readings import Release
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms.curator_view import some_rows, true_answers, true_counts
from blowfishdb.messages.answers import Receipt
from blowfishdb.messages.curator import KnownCheck, Preview, Unsatisfied
from blowfishdb.messages.questions import Request
from blowfishdb.service.service import Service

_STAND_IN_ROWS = 10_000


def preview(
    service: Service, request: Request, *, policy: Policy | None = None, stand_in: bool = False
) -> Preview:
    """The answer with and without noise, under the published policy or under a draft."""
    dataset = service.datasets(request.dataset)
    task = service.planner.plan(request, policy or dataset.policy, dataset.rows_per_person)
    problem, choice = task.problem, task.choice
    if stand_in:
        counts = Secret(_made_up(problem))
    else:
        facts = {"question": request.question.describe()}
        service.ledger.note(dataset.books, request.user, "preview", facts)
        counts = service.backend(dataset).prepare(problem.cells).count()
    truth = true_answers(problem.workload, counts)
    seen = choice.plan.observe(counts, epsilon=choice.epsilon or Epsilon(1), noise=service.noise)
    receipt = Receipt(
        charge="preview",
        dataset=dataset.name,
        question=request.question.describe(),
        user=request.user,
        epsilon=task.cost,
        mechanism=choice.plan.name,
        policy=(policy or dataset.policy).describe(),
        policy_version=dataset.policy_version,
        snapshot=dataset.snapshot,
        settled=datetime.now(UTC).isoformat(timespec="seconds"),
        sql="",
        cost=Epsilon(0),
        known=task.known,
    )
    everything_exact = Release(truth, np.ones(truth.shape, dtype=np.bool_), 0.0, True)
    return Preview(
        truth=request.counts.kind.read(everything_exact, problem.axes),
        noisy=task.answer(seen, receipt),
        stand_in=stand_in,
    )


def _made_up(problem: Projected) -> IntArray:
    """A smooth hill over the boxes along every axis: the same for everybody, and about nobody."""
    hill = np.ones(1)
    for boxes in problem.cells.shape:
        place = np.linspace(-2.0, 2.0, boxes) if boxes > 1 else np.zeros(1)
        hill = np.outer(hill, np.exp(-(place**2))).ravel()
    return np.asarray(np.rint(hill / hill.sum() * _STAND_IN_ROWS), dtype=np.int64)


def check_known(service: Service, dataset: str, user: str, policy: Policy) -> KnownCheck:
    """Counts what is declared with an answer, each thing by itself: one statement for each."""
    record = service.datasets(dataset)
    parts = [] if policy.constraints is None else [*_answered(policy.constraints)]
    if not parts:
        return KnownCheck(0, ())
    service.ledger.note(dataset, user, "preview", {"question": "whether the declared counts are true"})
    backend, checked = service.backend(record), 0
    wrong: list[Unsatisfied] = []
    for part in parts:
        boxes = refined(part, policy.domain, {})
        known = known_on_boxes(part, policy.domain, boxes)
        axes = tuple(Axis(name, policy.domain[name], bins) for name, bins in boxes.items())
        counted = true_counts(known, backend.prepare(CellQuery(axes)).count())
        for row, (declared, true) in enumerate(zip(known.answers[0], counted.tolist(), strict=True)):
            checked += declared is not None
            if declared is not None and declared != true:
                wrong.append(Unsatisfied(_row(part, policy.domain, row), declared, int(true)))
    return KnownCheck(checked, tuple(wrong))


def _answered(known: Constraints) -> Iterator[Constraints]:
    """Everything that is declared with an answer, one thing at a time."""
    yield from (Constraints(marginals=[table]) for table in known.marginals if table.answers is not None)
    yield from (Constraints(counts=[count]) for count in known.counts if count.answer is not None)
    yield from (Constraints(ranges=[box]) for box in known.ranges if box.answer is not None)


def _row(part: Constraints, domain: Domain, row: int) -> str:
    """What one declared count is about, in words."""
    match (*part.marginals, *part.counts, *part.ranges):
        case (Marginal() as table,):
            bins = table_bins(table, domain)
            places = np.unravel_index(row, tuple(group.count for group in bins.values()))
            named = (
                f"'{name}' {Axis(name, domain[name], group).labels()[int(place)]}"
                for (name, group), place in zip(bins.items(), places, strict=True)
            )
            return ", ".join(named)
        case (Count() as count,):
            return str(count.where)
        case (Range() as box,):
            return str(box.where)
    raise AssertionError


_UNSEEN: Final = ("say how missing values count, and nobody has to look", "fewer columns")


def check_none_missing(domain: Domain, opened: Callable[[Domain], Backend]) -> None:
    """Refuse a declaration of no missing values that the rows contradict; one statement for each column.

    All of them together take no longer than one question may.
    """
    unsaid = {name: _apart(attribute) for name, attribute in domain.columns if attribute.missing == "none"}
    if not unsaid:
        return
    backend, patience = opened(Domain.of(dict(domain.columns) | unsaid)), Patience(TIMEOUT, _UNSEEN)
    try:
        found = [axis.column for axis in _axes(unsaid) if _some_missing(backend, axis, patience)]
    finally:
        backend.close()
    if found:
        listed = ", ".join(f"'{name}'" for name in found)
        raise InvalidAttribute(
            f"Some values of {listed} are missing, or cannot be read as declared: say how they count.",
            fixes=(
                'missing="value": they have a place of their own, and who has none stays secret',
                'missing="public": a place of their own, and everyone may know who has none; costs nothing',
                'missing="drop": their rows are left out',
                'missing="clamp": they count as the lowest value, and every answer says so',
            ),
        )


def _apart(attribute: Any) -> Any:
    return replace(attribute, missing="value")


def _axes(columns: dict[str, Any]) -> Iterator[Axis]:
    for name, attribute in columns.items():
        yield Axis(name, attribute, Bins.edges(attribute.size, [0, attribute.value_count]))


def _some_missing(backend: Backend, axis: Axis, patience: Patience) -> bool:
    prepared = backend.prepare(CellQuery((axis,)))
    try:
        return some_rows(1, replace(prepared, timeout=patience.left).count())
    except QueryFailed:
        patience.check()
        raise
