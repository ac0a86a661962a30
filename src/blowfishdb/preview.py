"""Preview: the true answer beside one noisy draw, for the curator only.

Nothing is charged, because the curator may see the data anyway; that someone looked is written into the
ledger. Choosing a policy by looking at true answers can itself reveal something about them, so the same
picture can be drawn from made-up counts instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, final

import numpy as np

from blowfishdb.answering import answer_of
from blowfishdb.answers import Answer, Receipt
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import Projected
from blowfishdb.core.questions import Reading, Release
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms.curator_view import true_answers
from blowfishdb.messages import Request
from blowfishdb.service import Service

_STAND_IN_ROWS = 10_000


@final
@dataclass(frozen=True, eq=False)
class Preview:
    """CURATOR VIEW, TRUE DATA: what the answer is, and what an analyst could be told."""

    truth: Reading
    noisy: Answer
    stand_in: bool

    def __repr__(self) -> str:
        return f"<Preview of {self.noisy.receipt.question}>"

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data; for the curator's pages only."""
        return {
            "truth": {"labels": self.truth.labels, "values": self.truth.values.tolist()},
            "noisy": self.noisy.to_plain(),
            "stand_in": self.stand_in,
            "watermark": "made-up data" if self.stand_in else "CURATOR VIEW, TRUE DATA",
        }


def preview(
    service: Service, request: Request, *, policy: Policy | None = None, stand_in: bool = False
) -> Preview:
    """The answer with and without noise, under the published policy or under a draft."""
    dataset = service.datasets(request.dataset)
    planned = service.planner.plan(request, policy or dataset.policy, dataset.rows_per_person)
    problem, choice = planned.problem, planned.choice
    if stand_in:
        counts = Secret(_made_up(problem))
    else:
        facts = {"question": request.question.describe()}
        service.ledger.note(dataset.name, request.user, "preview", facts)
        counts = service.backend(dataset).prepare(problem.cells).count()
    truth = true_answers(problem.workload, counts)
    seen = choice.plan.observe(counts, epsilon=choice.epsilon or Epsilon(1), noise=service.noise)
    receipt = Receipt(
        charge="preview",
        dataset=dataset.name,
        question=request.question.describe(),
        user=request.user,
        epsilon=planned.cost,
        mechanism=choice.plan.name,
        policy=(policy or dataset.policy).describe(),
        policy_version=dataset.policy_version,
        snapshot=dataset.snapshot,
        settled=datetime.now(UTC).isoformat(timespec="seconds"),
        sql="",
        cost=Epsilon(0),
        known=planned.known,
    )
    everything_exact = Release(truth, np.ones(truth.shape, dtype=np.bool_), 0.0, True)
    return Preview(
        truth=request.counts.kind.read(everything_exact, problem.axes),
        noisy=answer_of(
            request, problem, planned.promise, planned.released(seen), receipt, better=planned.better(seen)
        ),
        stand_in=stand_in,
    )


def _made_up(problem: Projected) -> IntArray:
    """A smooth hill over the boxes along every axis: the same for everybody, and about nobody."""
    hill = np.ones(1)
    for boxes in problem.cells.shape:
        place = np.linspace(-2.0, 2.0, boxes) if boxes > 1 else np.zeros(1)
        hill = np.outer(hill, np.exp(-(place**2))).ravel()
    return np.asarray(np.rint(hill / hill.sum() * _STAND_IN_ROWS), dtype=np.int64)
