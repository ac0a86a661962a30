"""What answers promise about their error, held against the truth: exact numbers at once, noisy ones in sum.

One noisy answer may miss; of many, no more may than they say. Each kind of promise is counted by itself, and
the counts are judged when enough worlds have been lived through.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blowfishdb.messages.answers import Answer
from tests.neighbours.questions import Question
from tests.neighbours.worlds import World

_SURE = 4.75  # standard deviations: one honest run in a million is accused


@dataclass
class Beliefs:
    """How often the promises of each kind were made, and missed."""

    made: dict[tuple[Any, ...], list[tuple[float, bool]]] = field(default_factory=lambda: defaultdict(list))

    heard: set[tuple[str, str, bool]] = field(default_factory=set)
    """By dataset, charge and side: an answer that is given again says nothing new."""

    def hear(
        self, question: Question, world: World, answer: Answer, truth: np.ndarray, *, first: bool
    ) -> None:
        """An answer and what is true."""
        receipt = answer.receipt
        again = (receipt.dataset, receipt.charge, first) in self.heard
        self.heard.add((receipt.dataset, receipt.charge, first))
        asked = question.terms.alpha
        assert asked is None or answer.alpha is None or answer.alpha <= asked + 1e-9, (
            f"asked for ±{asked}, given ±{answer.alpha}: {question}"
        )
        if question.kind in ("top", "above"):
            if not again:
                self._picked(question, world, answer, truth)
            return
        assert answer.values.shape == truth.shape, f"{question} has {answer.values.shape} values"
        wrong = answer.exact & (np.abs(answer.values - truth) > 1e-9)
        assert not wrong.any(), f"said to be exact: {answer.values}, true: {truth}, {question}"
        if answer.low is None or answer.high is None or answer.beta is None or answer.exact.all() or again:
            return
        missed = ((truth < answer.low - 1e-9) | (truth > answer.high + 1e-9))[~answer.exact]
        key = (answer.kind, answer.interval, answer.simultaneous, answer.beta)
        found = [bool(missed.any())] if answer.simultaneous else missed.tolist()
        self.made[key] += [(answer.beta, miss) for miss in found]

    def _picked(self, question: Question, world: World, answer: Answer, truth: np.ndarray) -> None:
        """No bin that is more than α too small is among the picked ones, and none that is α larger is not."""
        if answer.alpha is None or answer.beta is None:
            return
        kind, wanted = question.kind, question.detail[0]
        limit = sorted(truth)[-min(wanted, truth.size)] if kind == "top" else wanted
        chosen = np.isin(question.labels(world.columns), answer.labels[0])
        wrong = (chosen & (truth < limit - answer.alpha)) | (~chosen & (truth > limit + answer.alpha))
        self.made[kind, answer.interval, True, answer.beta].append((answer.beta, bool(wrong.any())))

    def judge(self) -> None:
        """AssertionError if a kind of promise was missed more often than chance explains."""
        for key, outcomes in self.made.items():
            count, missed = len(outcomes), sum(miss for _, miss in outcomes)
            beta = outcomes[0][0]
            most = beta * count + _SURE * math.sqrt(max(beta * count, 1.0))
            assert missed <= most, f"{key}: missed {missed} of {count}, promised {beta * count:.1f}"


def truth_of(question: Question, world: World, one: bool) -> np.ndarray | None:
    """The true answer of one of the two databases; None where it depends on a key's hash, or is no count."""
    from tests.neighbours.rows import counted, in_view, record

    rows = in_view(world.one if one else world.other, bool(world.place.view))
    people = world.people
    if people is not None and people.told:
        return None
    if people is not None and people.keyed:
        of = [row.person for row in rows]
        if any(of.count(person) > people.rows for person in of):
            return None
    records = [record(world.columns, row) for row in counted(rows, people)]
    filler = [tuple(0 for _ in world.columns)] * world.place.filler
    return question.truth(world.columns, [*filler, *records])
