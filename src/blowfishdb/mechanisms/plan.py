"""Mechanism and Plan: everything about cost and accuracy is known before the data is read.

``mechanism.plan(workload, graph)`` sees no data. A linear plan answers W·x by measuring integer
rows with independent discrete Laplace noise η and combining them; its error is T·η for a public
matrix T, so the exact error and the privacy loss for an accuracy follow without data.

Data-dependent mechanisms: what they measure next depends on what they have measured, privately.

Their error depends on the data, so none of them promises an (α, β) beforehand: asking for one raises
``NoGuarantee``. They are for questions that state an ε, and usually beat what can be promised.

Certificate: a release in a form that anyone can check, edge by edge, in exact arithmetic.

A linear release is A·x + N·η with independent η_r of discrete Laplace scale b_r. It is ε-private if
for every edge (u, v) some z has N·z = A(e_u − e_v) and Σ |z_r|/b_r ≤ ε: moving a record from v to
u is then undone by shifting the noise by z.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, eye_array

from blowfishdb.core.accuracy import Accuracy, check_beta, independent_alpha, independent_epsilon
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray, integers
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.errors import NoGuarantee, NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.refinement import refined
from blowfishdb.core.secret import Secret
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.cost import component_sums, invariant_components, unchanging_rows
from blowfishdb.mechanisms.linear.simulation import Simulation
from blowfishdb.mechanisms.linear.strategy import UnitScales


@final
@dataclass(frozen=True, eq=False)
class Certificate:
    """A, N and b, with a witness z for every edge."""

    released: csr_array
    mixing: csr_array
    scales: list[Fraction]
    witness: Callable[[int, int], IntArray]

    @classmethod
    def of_rows(cls, rows: csr_array, scales: list[Fraction]) -> Certificate:
        """Independent noise on integer rows: N is the identity and z the change of the rows."""
        padded = csr_array(rows)
        columns = csr_array(padded.T)

        def change(u: int, v: int) -> IntArray:
            zero = np.zeros(padded.shape[0], dtype=np.int64)
            sides = [columns[[w]].toarray()[0] if w < columns.shape[0] else zero for w in (u, v)]
            return np.asarray(sides[0] - sides[1])

        return cls(padded, csr_array(eye_array(padded.shape[0], dtype=np.int64)), scales, change)

    def loss(self, u: int, v: int) -> Fraction:
        """The exact loss on one edge; NotProven if the witness does not undo the move."""
        z = self.witness(u, v)
        move = np.zeros(self.released.shape[1], dtype=np.int64)
        for vertex, sign in ((u, 1), (v, -1)):
            if vertex < move.size:  # a vertex beyond the cells counts nowhere
                move[vertex] += sign
        if (self.mixing @ z != self.released @ move).any():
            raise NotProven(f"The noise cannot undo a move between cells {u} and {v}.")
        return sum((Fraction(abs(int(z[r]))) / self.scales[r] for r in np.flatnonzero(z)), start=Fraction(0))

    def worst_loss(self, graph: PolicyGraph) -> Fraction:
        """The largest loss over all edges of ``graph``."""
        return max((self.loss(int(u), int(v)) for u, v in graph.edges()), default=Fraction(0))


_ROUNDING = 1e-9


class Mechanism(ABC):
    """A way to answer workloads privately."""

    @abstractmethod
    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        """How this mechanism would answer ``workload`` under ``graph``; NotProven if no proof covers it."""


@final
@dataclass(frozen=True, eq=False)
class Observation:
    """What left the trust boundary: answers, the noisy measurements behind them, and invariant totals."""

    answers: Numbers
    measured: Numbers
    totals: Numbers | None
    """The exact total of every component of the policy graph; None where records may come and go."""


@final
@dataclass(frozen=True, eq=False)
class EarlierRelease:
    """What a plan released at ``epsilon``: its noisy rows over the cells, in order, and what came out."""

    rows: csr_array
    values: IntArray
    epsilon: Epsilon


class Plan(ABC):
    """One mechanism, one workload, one policy: its cost, its error, and its release."""

    name: str
    workload: Workload
    graph: PolicyGraph

    # --- what a plan defines ------------------------------------------------------------------

    @property
    @abstractmethod
    def scales(self) -> UnitScales:
        """The noise variables η."""

    @abstractmethod
    def measure(self, x: IntArray) -> Numbers:
        """What the data contributes, before noise: one number per noise variable."""

    @abstractmethod
    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        """The answers from noisy measurements; of ``x`` only what is invariant may be used."""

    @abstractmethod
    def spread(self, noise: Numbers) -> Numbers:
        """T·η: the error of every answer, for a batch of noise vectors (last axis)."""

    @abstractmethod
    def variances(self, of_noise: FloatArray) -> FloatArray:
        """The variance of every answer, given the variance of every noise variable."""

    @property
    @abstractmethod
    def one_to_one(self) -> bool:
        """Whether each answer carries exactly one noise variable of its own: then T is the identity."""

    @abstractmethod
    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        """The measured integer rows and their scales, leaving out rows that no edge changes.

        Anyone can check that max over edges of Σ_r |row_r·(e_u − e_v)| / scale_r ≤ ε.
        """

    def certificate(self, *, epsilon: AnyEpsilon) -> Certificate:
        """The release in the form A·x + N·η, checkable by anyone in exact arithmetic."""
        return Certificate.of_rows(*self.rows(epsilon=epsilon))

    @abstractmethod
    def explain(self) -> str:
        """What the plan does and why it costs what it costs, in a sentence or two."""

    # --- what follows, and what a plan may know a shorter way to ------------------------------

    def published(self, measured: Numbers, totals: Numbers | None) -> Numbers:
        """What may be seen of the noisy measurements: A·x + N·η of the certificate, in whole numbers.

        The measurements themselves where every one is private by itself (N is the identity).
        """
        return measured

    @property
    def refinable(self) -> bool:
        """Whether every noise variable can be told from what is released and the data, so that it can shrink.

        So it is where each measurement is private by itself (N is the identity), or each answer has one.
        """
        return True

    @property
    def free(self) -> bool:
        """Whether every answer is exact, so that a release costs nothing."""
        return bool(self.exact.all())

    def total_variance(self, of_noise: FloatArray) -> float:
        """The variances of all answers together; a plan on many questions need not list them."""
        return float(self.variances(of_noise).sum())

    def largest_variance(self, of_noise: FloatArray) -> float:
        """At least the largest variance of an answer."""
        return float(self.variances(of_noise).max())

    def largest_errors(self, noise: Numbers) -> FloatArray:
        """max_i |(T·η)_i| for every noise vector of a batch."""
        return np.asarray(np.abs(self.spread(noise)).max(axis=-1), dtype=np.float64)

    @property
    def width(self) -> int:
        """How many numbers one draw of ``largest_errors`` takes."""
        return max(len(self.scales), self.workload.count)

    @cached_property
    def exact(self) -> BoolArray:
        """Which answers carry no noise at all: no edge changes them, and the plan makes use of that."""
        spread = self.variances((self.scales.floats() > 0).astype(np.float64))
        noiseless = spread <= _ROUNDING * spread.max(initial=0.0)
        return np.asarray(noiseless & unchanging_rows(self.workload, self.graph))

    def squared_errors(self, *, epsilon: AnyEpsilon) -> FloatArray:
        """The expected squared error of every answer, exact for the discrete noise."""
        return self.variances(self.scales.variances(positive(epsilon)))

    def total_squared_error(self, *, epsilon: AnyEpsilon) -> float:
        """The sum of ``squared_errors``, without listing them where a plan can."""
        return self.total_variance(self.scales.variances(positive(epsilon)))

    def squared_error(self, *, epsilon: AnyEpsilon) -> float:
        """The mean of ``squared_errors``."""
        return self.total_squared_error(epsilon=epsilon) / self.workload.count

    @cached_property
    def unit_error(self) -> float:
        """The total squared error at ε = 1 in the continuous limit: what plans are compared by."""
        return self.total_variance(2.0 * self.scales.floats() ** 2)

    @cached_property
    def largest_deviation(self) -> float:
        """At least the largest standard deviation of an answer at ε = 1 in the continuous limit."""
        return math.sqrt(self.largest_variance(2.0 * self.scales.floats() ** 2))

    def epsilon_for(self, *, alpha: float, beta: float, simultaneous: bool = True) -> Epsilon:
        """The least ε known to meet (α, β); zero if every answer is exact."""
        return self.epsilon_at(Accuracy(alpha, beta, simultaneous))

    def epsilon_at(self, accuracy: Accuracy) -> Epsilon:
        """The least ε known to meet ``accuracy``; zero if every answer is exact."""
        if self.free:
            return Epsilon(0)
        if self.one_to_one:
            return independent_epsilon(self._noisy_scales, accuracy)
        return self.simulation.epsilon(accuracy)

    def price_floor(self, accuracy: Accuracy) -> float:
        """What ``epsilon_at`` is going to be at least; found out in less time."""
        if self.free or self.one_to_one:
            return 0.0
        return self.simulation.floor(accuracy)

    def alpha_for(self, *, epsilon: AnyEpsilon, beta: float, simultaneous: bool = True) -> float:
        """The least α known to hold with probability 1 − β at ``epsilon``."""
        check_beta(beta)
        if self.free:
            return 0
        if self.one_to_one:
            return independent_alpha(self._noisy_scales, positive(epsilon), beta, simultaneous=simultaneous)
        return self.simulation.alpha(positive(epsilon), beta, simultaneous=simultaneous)

    @property
    def _noisy_scales(self) -> FloatArray:
        floats = self.scales.floats()
        return floats[floats > 0]

    @cached_property
    def simulation(self) -> Simulation:
        """The law of the largest error, simulated once on a stream of the plan's own."""
        return Simulation(self)

    @cached_property
    def fingerprint(self) -> int:
        """Names the plan's simulation stream, so that a quote is reproducible."""
        text = f"{self.name}|{self.workload.describe()}|{self.graph.describe()}|{len(self.scales)}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])

    @final
    def release(self, x: Secret[IntArray] | ArrayLike, *, epsilon: AnyEpsilon, noise: Noise) -> Numbers:
        """Private answers to the workload at exactly ``epsilon``."""
        return self.observe(x, epsilon=epsilon, noise=noise).answers

    @final
    def observe(self, x: Secret[IntArray] | ArrayLike, *, epsilon: AnyEpsilon, noise: Noise) -> Observation:
        """A release with the noisy measurements that it was made from: where data is opened.

        Where every answer is exact no noise is drawn, and nothing of the measurements may be seen: they may
        be finer than the answers, as the cells are of which a total is made.
        """
        counts = _opened(x, self.workload.size)
        measured = self.measure(counts)
        if not self.free:
            measured = measured + self.scales.draw(noise, positive(epsilon))
        return self._observation(measured, counts)

    @final
    def refine(
        self, x: Secret[IntArray] | ArrayLike, earlier: EarlierRelease, *, epsilon: AnyEpsilon, noise: Noise
    ) -> Observation:
        """The same release again with less noise; both together lose ``epsilon`` (docs/proofs/refinement.md).

        Private only if ``x`` are the very counts that ``earlier`` was made from, and if it is refined once.
        """
        if not self.refinable:
            raise NotProven(
                f"What {self.name} shows are sums of several noise variables: none can be refined."
            )
        counts = _opened(x, self.workload.size)
        noisy = np.flatnonzero(self.scales.floats() > 0)
        before = np.asarray(earlier.values - earlier.rows @ counts, dtype=np.int64)
        scales = [self.scales.fractions(at) for at in (earlier.epsilon, positive(epsilon))]
        coarse, fine = ([each[row] for row in noisy] for each in scales)
        drawn = np.zeros(len(self.scales), dtype=np.int64)
        drawn[noisy] = refined(before, coarse, fine, noise)
        return self._observation(self.measure(counts) + drawn, counts)

    def _observation(self, measured: Numbers, counts: IntArray) -> Observation:
        components = invariant_components(self.graph)
        totals = None if components is None else component_sums(counts, components)
        published = self.published(measured, totals)
        seen = np.zeros_like(published) if self.free else published
        return Observation(self.decode(measured, counts), seen, totals)


class PlanOfSums(Plan):
    """An ``inner`` plan under hidden presence, applied to sums of cells; noise and errors are its own."""

    inner: Plan

    @property
    def one_to_one(self) -> bool:
        return self.inner.one_to_one

    @property
    def refinable(self) -> bool:
        return self.inner.refinable

    def published(self, measured: Numbers, totals: Numbers | None) -> Numbers:
        return self.inner.published(measured, None)  # records come and go there: no total is public

    def spread(self, noise: Numbers) -> Numbers:
        return self.inner.spread(noise)

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return self.inner.variances(of_noise)

    def total_variance(self, of_noise: FloatArray) -> float:
        return self.inner.total_variance(of_noise)

    def largest_variance(self, of_noise: FloatArray) -> float:
        return self.inner.largest_variance(of_noise)

    def largest_errors(self, noise: Numbers) -> FloatArray:
        return self.inner.largest_errors(noise)

    @property
    def width(self) -> int:
        return self.inner.width


def shown(value: Any) -> str:
    """A number as people write it: whole where it is whole, otherwise three digits."""
    number = float(value)
    return f"{number:,.0f}" if math.isclose(number, round(number)) else f"{number:,.3g}"


class DataDependentMechanism(ABC):
    """A way to answer workloads privately whose error, as a rule, depends on the data."""

    @abstractmethod
    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan | DataDependentPlan:
        """How this mechanism would answer ``workload`` under ``graph``; NotProven if no proof covers it."""


class DataDependentPlan(ABC):
    """One data-dependent mechanism, one workload, one policy."""

    name: str
    workload: Workload
    graph: PolicyGraph

    @abstractmethod
    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        """A private estimate of every cell, at exactly ``epsilon`` on every edge of the policy, or less."""

    @abstractmethod
    def explain(self) -> str:
        """What the plan does and why it is private, in a sentence or two."""

    @cached_property
    def exact(self) -> BoolArray:
        """Which answers no edge of the policy changes: they are given as they are and cost nothing."""
        try:
            return unchanging_rows(self.workload, self.graph)
        except TooLarge:  # not found out within reason: answered from the estimate like all others
            return np.zeros(self.workload.count, dtype=np.bool_)

    @property
    def free(self) -> bool:
        """Whether every answer is exact, so that a release costs nothing."""
        return bool(self.exact.all())

    @final
    def observe(self, x: Secret[IntArray] | ArrayLike, *, epsilon: AnyEpsilon, noise: Noise) -> Observation:
        """A release, with what no edge changes put in exactly.

        Nothing is kept of what was measured: which questions were asked depends on the data, so they cannot
        be combined with the rows of other releases.
        """
        counts = _opened(x, self.workload.size)
        true = np.asarray(self.workload.answer(counts), dtype=np.float64)
        answers = true if self.free else self.release(counts, epsilon=epsilon, noise=noise)
        return Observation(np.where(self.exact, true, answers), measured=np.empty(0), totals=None)

    @final
    def release(self, x: Secret[IntArray] | ArrayLike, *, epsilon: AnyEpsilon, noise: Noise) -> FloatArray:
        """Private answers to the workload: those of the estimated cells, which is post-processing."""
        cells = self.estimate(_opened(x, self.workload.size), epsilon=positive(epsilon), noise=noise)
        return np.asarray(self.workload.answer(cells), dtype=np.float64)

    def squared_errors(self, *, epsilon: AnyEpsilon) -> NoReturn:
        """Not known before the data is seen."""
        raise self._unknown()

    def squared_error(self, *, epsilon: AnyEpsilon) -> NoReturn:
        """Not known before the data is seen."""
        raise self._unknown()

    def epsilon_for(self, *, alpha: float, beta: float, simultaneous: bool = True) -> NoReturn:
        """No ε is known to reach an accuracy on all data."""
        raise self._unknown()

    def alpha_for(self, *, epsilon: AnyEpsilon, beta: float, simultaneous: bool = True) -> NoReturn:
        """No accuracy is known to hold on all data."""
        raise self._unknown()

    def _unknown(self) -> NoGuarantee:
        return NoGuarantee(
            f"How far off {self.name} is depends on the data, so it promises no accuracy.",
            fixes=("state an ε instead", "the cheapest mechanism with a promise: best"),
        )


def _opened(x: Secret[IntArray] | ArrayLike, size: int) -> IntArray:
    """The true counts of so many cells, for whoever adds noise to them at once."""
    counts = integers(x.reveal() if isinstance(x, Secret) else x, "Counts", SizeMismatch)
    if counts.shape != (size,):
        raise SizeMismatch(f"Expected {size:,} counts, got shape {counts.shape}.")
    return counts
