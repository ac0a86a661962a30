"""Accuracy by simulation, for plans whose errors have no closed tail.

The largest error M = max_i |(T·η)_i| is simulated with continuous noise at ε = 1, once; M scales as
1/ε and gives a first guess. The guess is then certified with *discrete* noise at that very ε on
draws of their own: if at least r of N draws stay within α, where r is the conservative order
statistic, the true failure probability is at most β but for γ, and γ is taken out of β. A failed
certificate raises ε and tries again with half of the remaining γ. The stream is keyed by the plan,
so a quote is reproducible; it is never used for a release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.accuracy import LARGEST_EPSILON, Accuracy, order_statistic
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import Infeasible
from blowfishdb.core.workloads.base import Numbers

_DRAWS = 2 * 10**7  # noise variables per simulation: about half a second
_CHUNK = 10**6
_GAMMA = 0.01  # the share of β that covers the simulation's own uncertainty
_TRIES = 40


@final
@dataclass(frozen=True, eq=False)
class Simulation:
    """The law of max_i |(T·η)_i| for η_r of scale c_r/ε."""

    spread: Callable[[Numbers], Numbers]
    unit_scales: FloatArray
    key: int

    def epsilon(self, accuracy: Accuracy) -> Epsilon:
        """The least ε that a certificate was found for."""
        samples = self._samples(accuracy.beta)
        guess = self._unit_quantile(samples, accuracy.beta, accuracy.simultaneous) / accuracy.alpha
        for attempt in range(1, _TRIES):
            epsilon = Epsilon.at_least(guess)
            if epsilon > LARGEST_EPSILON:
                break
            reached = self._certified(epsilon, accuracy, samples, attempt)
            if reached <= accuracy.alpha:
                return epsilon
            guess *= max(1.01, min(1.5, reached / accuracy.alpha))
        raise Infeasible(
            "No reasonable privacy loss reaches this accuracy.",
            fixes=("allow a larger error", "accept a lower confidence"),
        )

    def alpha(self, epsilon: Epsilon, beta: float, *, simultaneous: bool) -> float:
        """The α that one certificate gives at ``epsilon``."""
        return self._certified(epsilon, Accuracy(1, beta, simultaneous), self._samples(beta), attempt=1)

    def _samples(self, beta: float) -> int:
        """As many as the time allows, but enough for an order statistic to exist."""
        affordable = min(20_000, max(500, _DRAWS // self.unit_scales.size))
        needed = math.ceil(math.log(_GAMMA * beta / 2**8) / math.log1p(-beta * (1 - _GAMMA)))
        return max(affordable, needed)

    def _certified(self, epsilon: Epsilon, accuracy: Accuracy, samples: int, attempt: int) -> float:
        """An α that holds at ``epsilon``, with noise as it will be: discrete."""
        gamma = _GAMMA * accuracy.beta / 2**attempt
        scales = self.unit_scales / float(epsilon)
        errors = self._largest(
            samples,
            lambda stream, shape: _floor(stream, scales, shape) - _floor(stream, scales, shape),
            attempt,
            accuracy.simultaneous,
        )
        return _conservative(errors, accuracy.beta * (1 - _GAMMA), gamma)

    def _unit_quantile(self, samples: int, beta: float, simultaneous: bool) -> float:
        """The (1−β)-quantile at ε = 1, with continuous noise."""
        errors = self._unit_errors(samples, simultaneous)
        return _conservative(errors, beta * (1 - _GAMMA), _GAMMA * beta / 2)

    @cached_property
    def _cache(self) -> dict[tuple[int, bool], FloatArray]:
        return {}

    def _unit_errors(self, samples: int, simultaneous: bool) -> FloatArray:
        if (samples, simultaneous) not in self._cache:
            self._cache[samples, simultaneous] = self._largest(
                samples,
                lambda stream, shape: stream.laplace(size=shape) * self.unit_scales,
                0,
                simultaneous,
            )
        return self._cache[samples, simultaneous]

    def _largest(
        self,
        samples: int,
        draw: Callable[[np.random.Generator, tuple[int, int]], Numbers],
        attempt: int,
        simultaneous: bool,
    ) -> FloatArray:
        """|T·η|: the maximum over answers per draw, or every answer in its own column."""
        stream = np.random.Generator(np.random.Philox(key=[self.key, attempt]))
        blocks = [np.abs(self.spread(draw(stream, shape))) for shape in self._shapes(samples)]
        if simultaneous:
            return np.concatenate([block.max(axis=-1) for block in blocks])
        return np.concatenate(blocks)

    def _shapes(self, samples: int) -> Iterator[tuple[int, int]]:
        rows = max(1, _CHUNK // self.unit_scales.size)
        for start in range(0, samples, rows):
            yield min(rows, samples - start), self.unit_scales.size


def _floor(stream: np.random.Generator, scales: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """⌊b·E⌋ is geometric; the difference of two is discrete Laplace of scale b."""
    return np.floor(stream.standard_exponential(size=shape) * scales)


def _conservative(errors: FloatArray, beta: float, gamma: float) -> float:
    """A value that is at least the (1−β)-quantile but for γ; of each column, the largest."""
    columns = 1 if errors.ndim == 1 else errors.shape[1]
    rank = order_statistic(errors.shape[0], beta, gamma / columns)
    if rank is None:
        return math.inf
    return float(np.partition(errors, rank - 1, axis=0)[rank - 1].max())
