"""What answers promise about their error, held against the truth: exact numbers at once, noisy ones in sum.

One noisy answer may miss; of many, no more may than they say. Each kind of promise is counted by itself, and
the counts are judged when enough worlds have been lived through. Answers of one life share their noise (a
refined one with the one before it, a curve with itself), and a world that is drawn again keeps its noise:
so a life is one observation, the share of its promises that were missed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import rel_entr

from blowfishdb.messages.answers import Answer
from tests.neighbours.questions import Question
from tests.neighbours.worlds import World

_ACCUSED = 1e-6
"""How many honest runs may be accused of missing one kind of promise."""


@dataclass
class Beliefs:
    """How often the promises of each kind were made, and missed."""

    made: dict[tuple[Any, ...], dict[int, list[bool]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """By kind and then by life: whether its promises were missed."""

    heard: set[tuple[int, str]] = field(default_factory=set)
    """By life and charge: an answer that is given again says nothing new."""

    def hear(self, question: Question, world: World, answer: Answer, truth: np.ndarray, *, life: int) -> None:
        """An answer and what is true; a ``life`` is where its noise came from."""
        heard = (life, answer.receipt.charge)
        again = heard in self.heard
        self.heard.add(heard)
        asked = question.terms.alpha
        assert asked is None or answer.alpha is None or answer.alpha <= asked + 1e-9, (
            f"asked for ±{asked}, given ±{answer.alpha}: {question}"
        )
        if question.kind in ("top", "above"):
            if not again:
                self._picked(question, world, answer, truth, life)
            return
        assert answer.values.shape == truth.shape, f"{question} has {answer.values.shape} values"
        wrong = answer.exact & (np.abs(answer.values - truth) > 1e-9)
        assert not wrong.any(), f"said to be exact: {answer.values}, true: {truth}, {question}"
        if answer.low is None or answer.high is None or answer.beta is None or answer.exact.all() or again:
            return
        missed = ((truth < answer.low - 1e-9) | (truth > answer.high + 1e-9))[~answer.exact]
        key = (answer.kind, answer.interval, answer.simultaneous, answer.beta)
        self.made[key][life] += [bool(missed.any())] if answer.simultaneous else missed.tolist()

    def _picked(self, question: Question, world: World, answer: Answer, truth: np.ndarray, life: int) -> None:
        """No bin that is more than α too small is among the picked ones, and none that is α larger is not."""
        if answer.alpha is None or answer.beta is None:
            return
        kind, wanted = question.kind, question.detail[0]
        limit = sorted(truth)[-min(wanted, truth.size)] if kind == "top" else wanted
        chosen = np.isin(question.labels(world.columns), answer.labels[0])
        wrong = (chosen & (truth < limit - answer.alpha)) | (~chosen & (truth > limit + answer.alpha))
        self.made[kind, answer.interval, True, answer.beta][life].append(bool(wrong.any()))

    def judge(self) -> None:
        """AssertionError if a kind of promise was missed more often than chance explains."""
        for key, lives in self.made.items():
            beta, missed = key[-1], float(np.mean([np.mean(promises) for promises in lives.values()]))
            chance = _at_least(missed, beta, len(lives))
            assert chance >= _ACCUSED, f"{key}: missed {missed:.2f} of {len(lives)} lives, at {chance:.0e}"


def _at_least(missed: float, beta: float, lives: int) -> float:
    """At most how likely such a mean of independent shares is, if each is expected to be β (Hoeffding)."""
    if missed <= beta:
        return 1.0
    return math.exp(-lives * float(rel_entr(missed, beta) + rel_entr(1 - missed, 1 - beta)))


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
