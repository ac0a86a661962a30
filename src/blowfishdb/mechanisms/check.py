"""check_mechanism: the contract that every mechanism keeps, checked on small problems of every kind.

Each clause has a name; a mechanism that breaks one raises ``ContractViolation`` with it. The privacy clause
does not trust a plan's words: it shifts the noise by the certificate's witness and compares what comes out,
and it compares the scales that a release really draws with those of the certificate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, cast, final

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidEpsilon, NoGuarantee, NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import (
    AddRemove,
    Banded,
    Explicit,
    Full,
    Grid,
    Partitioned,
    PolicyGraph,
    Threshold,
)
from blowfishdb.core.graphs import Product as ProductGraph
from blowfishdb.core.noise import Noise, Scale
from blowfishdb.core.workloads import (
    AllRanges,
    Cumulative,
    Histogram,
    Marginals,
    Matrix,
    Ranges,
    Rectangles,
    Workload,
)
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.plan import Certificate, Mechanism, Plan

_EPSILONS = (Epsilon("1"), Epsilon("0.1"), Epsilon("0.333333333"), Epsilon("2.718281827"))
_RUNS = 20_000
_BETA = 0.05


class ContractViolation(AssertionError):
    """A mechanism broke a clause of the contract."""

    def __init__(self, clause: str, case: str, what: str) -> None:
        self.clause = clause
        self.case = case
        super().__init__(f"[{clause}] {case}: {what}")


@final
@dataclass(frozen=True)
class Checked:
    """On which cases the mechanism planned, on which it refused, and where it has no certificate."""

    planned: tuple[str, ...]
    refused: tuple[str, ...]
    without_certificate: tuple[str, ...]


@final
@dataclass(frozen=True, eq=False)
class Case:
    """One small problem."""

    name: str
    workload: Workload
    graph: PolicyGraph

    def fail(self, clause: str, what: str) -> NoReturn:
        """Raise the violation of a clause on this problem."""
        raise ContractViolation(clause, self.name, what)

    def histogram(self, stream: np.random.Generator) -> IntArray:
        """Counts of one to nine people, so that somebody can leave every cell."""
        return stream.integers(1, 10, size=self.workload.size).astype(np.int64)


def cases() -> Iterator[Case]:
    """Small problems under every kind of policy."""
    ragged = Ranges(7, [0, 2, 3, 5, 0], [6, 4, 3, 6, 1])
    signed = Matrix([[-1, 0, 2, 0, 1], [0, -1, -1, 0, 0], [1, 1, 1, 1, 1]])
    halves = Matrix(np.array([[Fraction(1, 2), Fraction(-1, 3), 0, 1, 1], [1, 0, 0, 0, 0]], dtype=object))
    squares = Rectangles((3, 3), [[0, 0], [1, 1], [0, 2]], [[1, 1], [2, 2], [2, 2]])
    mixed = ProductGraph(Full(2), Threshold(3, 1))
    yield Case("full, prefixes", Cumulative(6), Full(6))
    yield Case("full, histogram", Histogram(5), Full(5))
    yield Case("threshold, all ranges", AllRanges(7), Threshold(7, 2))
    yield Case("threshold, prefixes", Cumulative(12), Threshold(12, 3))
    yield Case("line, prefixes", Cumulative(6), Threshold(6, 1))
    yield Case("line, signed questions", signed, Threshold(5, 1))
    yield Case("line, fractions", halves, Threshold(5, 1))
    yield Case("banded, ranges", ragged, Banded([2, 2, 4, 4, 4, 6, 6]))
    yield Case("partition, ranges", ragged, Partitioned([0, 0, 0, 1, 1, 2, 2]))
    yield Case("scattered partition, histogram", Histogram(6), Partitioned([0, 1, 0, 1, 2, 0]))
    yield Case("tree, histogram", Histogram(6), Explicit(6, [(0, 3), (1, 3), (3, 4), (2, 5)]))
    yield Case("L1 grid, rectangles", squares, Grid((3, 3), 1))
    yield Case("product, marginals", Marginals((2, 3), [[0], [1]]), mixed)
    yield Case("hidden presence, prefixes", Cumulative(5), Threshold(5, 2).hide_presence())
    yield Case("hidden presence, marginals", Marginals((2, 3), [[0], [1]]), mixed.hide_presence())
    yield Case("add or remove, signed questions", signed, AddRemove(5))
    yield Case("add or remove, negative questions", Matrix([[-1, 0, 0], [0, -2, -1]]), AddRemove(3))
    yield Case("nothing hidden, histogram", Histogram(4), Explicit(4, ()))
    yield Case("one cell", Cumulative(1), Full(1))


def check_mechanism(mechanism: Mechanism) -> Checked:
    """Hold ``mechanism`` against the contract; raises ``ContractViolation`` at the first broken clause."""
    planned, refused, bare = [], [], []
    for case in cases():
        try:
            plan = mechanism.plan(case.workload, case.graph)
        except (NotProven, TooLarge):
            refused.append(case.name)
            continue
        except Exception as error:
            raise ContractViolation("plans or refuses", case.name, f"raised {error!r}.") from error
        if not isinstance(plan, Plan):
            case.fail("plans or refuses", f"gave a {type(plan).__name__} instead of a plan.")
        planned.append(case.name)
        for clause in (_words, _refusals, _determinism):
            clause(case, plan)
        try:
            certificate = plan.certificate(epsilon=1)
        except NoGuarantee:
            bare.append(case.name)  # not of the form A·x + N·η: its privacy is tested elsewhere
            continue
        _privacy(case, plan, certificate)
        for clause in (_unbiasedness, _exactness, _grid, _errors, _accuracy):
            clause(case, plan)
    return Checked(tuple(planned), tuple(refused), tuple(bare))


# --- noise that can be replayed and watched -----------------------------------------------------


@final
class _SeededWords:
    """Uniform words from a seed; for checks only."""

    def __init__(self, seed: int) -> None:
        self._stream = np.random.Generator(np.random.Philox(key=seed))

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._stream.integers(0, 2**64, size=count, dtype=np.uint64)


@final
class _Watched:
    """Noise that remembers which scales were asked for."""

    def __init__(self, seed: int) -> None:
        self._noise = Noise(_SeededWords(seed))
        self.drawn: Counter[Fraction] = Counter()

    def discrete_laplace(self, scale: Scale, size: int | None = None) -> object:
        drawn = self._noise.discrete_laplace(scale, 1 if size is None else size)
        self.drawn[Fraction(scale)] += drawn.size
        return drawn[0] if size is None else drawn


def _noisy(plan: Plan) -> IntArray:
    return np.flatnonzero(plan.scales.floats() > 0).astype(np.int64)


def _batch(plan: Plan, epsilon: Epsilon, runs: int, seed: int) -> IntArray:
    """``runs`` independent noise vectors, one per row."""
    noise = Noise(_SeededWords(seed))
    drawn = np.zeros((runs, len(plan.scales)), dtype=np.int64)
    for index, scale in enumerate(plan.scales.distinct):
        rows = np.flatnonzero(plan.scales.which == index)
        if scale and rows.size:
            drawn[:, rows] = noise.discrete_laplace(scale / epsilon.fraction, runs * rows.size).reshape(
                runs, -1
            )
    return drawn


# --- clauses ------------------------------------------------------------------------------------


def _words(case: Case, plan: Plan) -> None:
    if not plan.name.strip() or not plan.explain().strip():
        case.fail("explains itself", "a plan needs a name and an explanation.")


def _refusals(case: Case, plan: Plan) -> None:
    x = case.histogram(np.random.default_rng(1))
    attempts: list[tuple[Numbers, float, type[Exception], str]] = [
        (np.append(x, 1), 1.0, SizeMismatch, "a cell too many"),
        (x + 0.5, 1.0, SizeMismatch, "half people"),
    ]
    if not plan.exact.all():
        attempts += [(x, value, InvalidEpsilon, f"ε = {value}") for value in (math.nan, 0.0, -1.0)]
    for counts, epsilon, expected, what in attempts:
        try:
            plan.release(counts, epsilon=epsilon, noise=Noise(_SeededWords(0)))
        except expected:
            continue
        except Exception as error:
            raise ContractViolation("refuses", case.name, f"{what} raised {error!r}.") from error
        case.fail("refuses", f"{what} was accepted.")


def _determinism(case: Case, plan: Plan) -> None:
    x = case.histogram(np.random.default_rng(2))
    first, second = (plan.release(x, epsilon="0.7", noise=Noise(_SeededWords(5))) for _ in range(2))
    if not np.array_equal(first, second):
        case.fail("deterministic given noise", "the same noise gave two answers.")
    if first.shape != (case.workload.count,):
        case.fail("deterministic given noise", f"there should be {case.workload.count} answers.")


def _privacy(case: Case, plan: Plan, at_one: Certificate) -> None:
    edges = case.graph.edges()
    stream = np.random.default_rng(3)
    for epsilon in _EPSILONS:
        certificate = plan.certificate(epsilon=epsilon)
        try:
            worst = certificate.worst_loss(case.graph)
        except NotProven as error:
            raise ContractViolation("private", case.name, str(error)) from error
        if worst > epsilon.fraction:
            case.fail("private", f"an edge loses {float(worst)} at ε = {epsilon}.")
        if [scale for scale in plan.scales.fractions(epsilon) if scale] != list(certificate.scales):
            case.fail("private", "the certificate is about other noise than the plan's.")
        watched = _Watched(4)
        plan.release(case.histogram(stream), epsilon=epsilon, noise=cast(Noise, watched))
        if not plan.exact.all() and watched.drawn != Counter(certificate.scales):
            case.fail("private", "a release draws other noise than its certificate says.")
    noisy = _noisy(plan)
    for u, v in edges.tolist():
        shift = np.zeros(len(plan.scales), dtype=np.int64)
        shift[noisy] = at_one.witness(u, v)
        before = case.histogram(stream)
        after = before.copy()
        for cell, change in ((u, 1), (v, -1)):
            if cell < after.size:
                after[cell] += change
        noise = np.zeros(len(plan.scales), dtype=np.int64)
        noise[noisy] = stream.integers(-9, 10, size=noisy.size)
        here = _floats(plan.decode(plan.measure(before) + shift + noise, before))
        there = _floats(plan.decode(plan.measure(after) + noise, after))
        if not np.allclose(here, there, rtol=1e-9, atol=1e-7):
            case.fail("private", f"the noise does not hide a move between cells {u} and {v}.")


def _unbiasedness(case: Case, plan: Plan) -> None:
    stream = np.random.default_rng(6)
    for _ in range(5):
        x = case.histogram(stream)
        truth = _floats(case.workload.answer(x))
        if not np.allclose(_floats(plan.decode(plan.measure(x), x)), truth, atol=1e-7):
            case.fail("unbiased", "without noise the answers are not W·x.")
        noise = np.zeros(len(plan.scales), dtype=np.int64)
        noise[_noisy(plan)] = stream.integers(-50, 51, size=_noisy(plan).size)
        error = _floats(plan.decode(plan.measure(x) + noise, x)) - truth
        if not np.allclose(error, _floats(plan.spread(noise)), atol=1e-6):
            case.fail("unbiased", "the error of a release is not T·η.")


def _floats(answers: Numbers) -> FloatArray:
    return np.asarray(answers, dtype=np.float64)  # answers to fractional questions are exact rationals


def _exactness(case: Case, plan: Plan) -> None:
    stream = np.random.default_rng(7)
    for seed in range(5):
        x = case.histogram(stream)
        wrong = plan.release(x, epsilon="0.2", noise=Noise(_SeededWords(seed))) != case.workload.answer(x)
        if wrong[plan.exact].any():
            case.fail("exact answers are exact", "an answer that should carry no noise is off.")
    if ((plan.squared_errors(epsilon=1) == 0) != plan.exact).any():
        case.fail("exact answers are exact", "an answer is exact if and only if its error is zero.")


def _grid(case: Case, plan: Plan) -> None:
    """Where each answer carries a noise variable of its own, answers stay whole multiples of the grid."""
    if not plan.one_to_one:
        return
    noisy = _noisy(plan)
    hit = [np.flatnonzero(plan.spread(row)) for row in np.eye(len(plan.scales), dtype=np.int64)[noisy]]
    if any(answers.size != 1 for answers in hit) or len({int(a[0]) for a in hit}) != noisy.size:
        case.fail(
            "declared grid", "a plan that is one to one gives every noise variable an answer of its own."
        )
    answers = plan.release(case.histogram(np.random.default_rng(8)), epsilon=1, noise=Noise(_SeededWords(9)))
    scaled = np.array([Fraction(value) * case.workload.denominator for value in answers.tolist()])
    if any(value.denominator != 1 for value in scaled):
        case.fail("declared grid", "an answer lies between the values that it can take.")


def _errors(case: Case, plan: Plan) -> None:
    for epsilon in (Epsilon("1.3"), Epsilon("0.1")):
        promised = plan.squared_errors(epsilon=epsilon)
        if promised.dtype != np.float64 or promised.shape != (case.workload.count,):
            case.fail("error as promised", "there should be one number, a float, for every answer.")
        if not np.allclose(promised, plan.variances(plan.scales.variances(epsilon)), rtol=1e-9):
            case.fail("error as promised", "the squared errors are not the variances of the noise.")
        if not math.isclose(plan.squared_error(epsilon=epsilon), float(promised.mean()), rel_tol=1e-9):
            case.fail("error as promised", "the squared error is not the mean over the answers.")
        squares = _floats(plan.spread(_batch(plan, epsilon, _RUNS, 10))) ** 2
        _compare(case, squares.sum(axis=1), float(promised.sum()), 4.0)
        for answer in range(case.workload.count):
            _compare(case, squares[:, answer], float(promised[answer]), 6.0)


def _compare(case: Case, squares: FloatArray, promised: float, deviations: float) -> None:
    mean, error = float(squares.mean()), float(squares.std()) / math.sqrt(squares.size)
    if abs(mean - promised) > deviations * error + 1e-9 * promised:
        case.fail("error as promised", f"{promised:.4g} was promised and {mean:.4g} found.")


def _accuracy(case: Case, plan: Plan) -> None:
    if plan.exact.all():
        if (
            plan.epsilon_for(alpha=0.5, beta=_BETA) != Epsilon(0)
            or plan.alpha_for(epsilon=1, beta=_BETA) != 0
        ):
            case.fail("accuracy", "what is exact costs nothing.")
        return
    for simultaneous in (True, False):
        reached = plan.alpha_for(epsilon="0.5", beta=_BETA, simultaneous=simultaneous)
        if plan.alpha_for(epsilon=2, beta=_BETA, simultaneous=simultaneous) > reached:
            case.fail("accuracy", "a larger ε gave a larger error.")
        alpha = math.floor(reached) + 0.7
        epsilon = plan.epsilon_for(alpha=alpha, beta=_BETA, simultaneous=simultaneous)
        if plan.epsilon_for(alpha=2 * alpha, beta=_BETA, simultaneous=simultaneous) > epsilon:
            case.fail("accuracy", "a weaker promise cost more.")
        if plan.epsilon_for(alpha=alpha, beta=_BETA / 10, simultaneous=simultaneous) < epsilon:
            case.fail("accuracy", "a safer promise cost less.")
        if plan.alpha_for(epsilon=epsilon, beta=_BETA, simultaneous=simultaneous) > 1.05 * alpha:
            case.fail("accuracy", "ε for an error, and the error at that ε, contradict each other.")
        outside = np.abs(_floats(plan.spread(_batch(plan, epsilon, _RUNS, 11)))) > alpha
        failed = outside.any(axis=1).mean() if simultaneous else outside.mean(axis=0).max()
        if failed > _BETA + 4 * math.sqrt(_BETA * (1 - _BETA) / _RUNS):
            case.fail(
                "accuracy", f"±{alpha} was promised but for {_BETA}, and failed {failed:.4f} of the time."
            )
