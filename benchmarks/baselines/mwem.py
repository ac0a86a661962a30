"""MWEM: multiplicative weights towards what is answered worst (Hardt, Ligett and McSherry 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, Ballot, divided
from benchmarks.baselines.plan import Baseline, Problem
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.errors import InvalidWorkload, NotProven
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.compiled import compiled

_FOR_TOTAL = 0.05  # of the budget, where the number of records is hidden
_PASSES = 100  # over everything measured so far, after each round
_STEEPEST = 5.0  # the exponent of one step: noise much larger than n must not divide by zero


@final
@dataclass(frozen=True)
class Mwem(Baseline):
    """``rounds`` times: choose a badly answered question, measure it, reweight the cells; the last weights.

    Private: |question(x) − estimate| changes by at most one with a record, and choosing and measuring share
    the budget evenly. Where the number of records is hidden it is measured first: the paper takes it as
    public.
    """

    rounds: int = 10
    title: ClassVar[str] = "MWEM"
    axes: ClassVar[tuple[int, ...]] = tuple(range(1, 33))

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise InvalidWorkload("MWEM needs at least one round.")

    def check(self, workload: Workload) -> None:
        if not workload.binary:
            raise NotProven(
                "MWEM is proven for questions that count each record once or not at all.",
                fixes=("use Laplace()",),
            )

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        total = problem.total
        if total is None:
            first, budget = divided(budget, [_FOR_TOTAL, 1 - _FOR_TOTAL])
            everything = np.zeros(problem.size, dtype=np.int64)
            total = int(asking.counts(everything, np.array([first]))[0])
        rates = divided(budget, [1.0] * (2 * self.rounds))
        weights = _Weights(problem.size, float(max(1, total)))
        for choosing, measuring in zip(rates[::2], rates[1::2], strict=True):
            chosen = asking.choose([_worst(problem.workload, weights.cells())], choosing)[0]
            inside = _counted(problem.workload, chosen)
            answer = asking.counts(inside.astype(np.int64) - 1, np.array([measuring]))[0]
            weights.learn(inside, float(answer))
        return weights.cells()

    def describe(self) -> str:
        return (
            f"{self.rounds} times, a question that the estimate answers badly is chosen and measured, and "
            "the estimate follows by multiplicative weights"
        )


def _worst(workload: Workload, cells: FloatArray) -> Ballot:
    guesses = np.rint(workload.answer(cells)).astype(np.int64)

    def scores(counts: IntArray) -> IntArray:
        return np.asarray(np.abs(workload.answer(counts) - guesses), dtype=np.int64)

    return Ballot(np.arange(workload.size, dtype=np.int64), scores, sensitivity=1)


def _counted(workload: Workload, question: int) -> BoolArray:
    """The cells that a question counts."""
    row = np.zeros(workload.count, dtype=np.int64)
    row[question] = 1
    return np.asarray(workload.transpose(row) > 0)


@final
class _Weights:
    """Cells that add up to ``records``; those that every question so far treats alike are one atom."""

    def __init__(self, size: int, records: float) -> None:
        self._records = records
        self._atoms = np.zeros(size, dtype=np.int64)
        self._held = np.full(1, records)
        self._questions: list[BoolArray] = []
        self._answers: list[float] = []

    def cells(self) -> FloatArray:
        """Atoms spread evenly."""
        return np.asarray((self._held / np.bincount(self._atoms))[self._atoms])

    def learn(self, inside: BoolArray, answer: float) -> None:
        """Reweight for the new answer, then again and again for all: they are paid for."""
        sizes = np.bincount(self._atoms)
        finer, first, atoms = np.unique(2 * self._atoms + inside, return_index=True, return_inverse=True)
        self._held = self._held[finer // 2] * np.bincount(atoms) / sizes[finer // 2]
        self._questions = [question[finer // 2] for question in self._questions] + [inside[first]]
        self._answers.append(answer)
        self._atoms = atoms.astype(np.int64)
        _reweight(np.stack(self._questions), np.array(self._answers), self._held, self._records, _PASSES)


@compiled()
def _reweight(
    questions: BoolArray, answers: FloatArray, held: FloatArray, records: float, passes: int
) -> None:
    """The multiplicative weights of the paper: e^{(answer − estimate)/2n} on what a question counts."""
    for _ in range(passes):
        for q in range(answers.size - 1, -1, -1):
            inside = 0.0
            for atom in range(held.size):
                if questions[q, atom]:
                    inside += held[atom]
            factor = np.exp(min(_STEEPEST, max(-_STEEPEST, (answers[q] - inside) / (2 * records))))
            scale = records / (records - inside + inside * factor)
            for atom in range(held.size):
                held[atom] *= scale * factor if questions[q, atom] else scale
