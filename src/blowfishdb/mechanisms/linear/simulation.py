"""Accuracy by simulation, for plans whose errors have no closed tail.

The largest error M = max_i |(T·η)_i| is simulated once with *continuous* noise at ε = 1; it scales as 1/ε, so
every later (α, β) is a lookup. A conservative order statistic of the draws is at least the (1−β)-quantile but
for γ, and γ is taken out of β, so the failure probability is at most β unconditionally. One answer at a time,
and where β is too small to be seen in draws, an exact bound on tails takes their place
(``tail_bound``; ``discretisation`` passes from continuous to discrete noise: α shrinks by t).

Where the plan is small and t matters, ε is then lowered as far as draws of *discrete* noise certify. There is
one certificate for each ε of a fixed grid (steps of half a per cent), with a stream of its own, so accuracies
close to each other share it, and a price is a lookup once its neighbourhood has been asked for. A quote looks
at no more than six of them, the j-th with the share γ/2^{j+1}: where it looks next depends on streams that
are independent of those it has not seen, so the failure probabilities add up to at most β again.

Streams are keyed by the plan, so a quote is reproducible; they are never used for a release. What was
simulated can be shared between processes: it is a list of numbers under the digest of everything that it
follows from, and sets α only; noise scales are computed for every release.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol, final

import numpy as np

from blowfishdb.core.accuracy import LARGEST_EPSILON, Accuracy
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import Infeasible
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.law import (
    GAMMA,
    SAMPLES,
    conservative,
    continuous,
    discrete,
    discretisation,
    draws_to_see,
    quantile_bound,
)
from blowfishdb.mechanisms.linear.strategy import UnitScales

VERSION: Final = "2"
"""Of what is simulated and how; numbers of another version are not taken over."""

_DRAWS = 2 * 10**7  # numbers per simulation: about half a second
_PATIENCE = 7  # times as many where there is no other way
_CERTIFYING = 50_000  # draws of one certificate at most: many prices share it, so it may be a close one
_QUICKLY = 5 * 10**5
_SMALL = 2 * 10**6
_COLUMN = 4  # what ordering the draws of one answer takes, next to making them
_CHUNK = 10**6
_NEAR = 2**17  # numbers that stay near the processor while errors are worked out
_ETAS = (0.2, 0.05, 0.01)
_NOTICEABLE = 1.02
_RARE = 0.02
_ATTEMPTS = 6
_WRITTEN_OUT = 12_000
_STEP = 1.005  # between two ε of the grid on which there are certificates
_FLOOR = 0.97  # no certificate is looked for below this share of what continuous noise would need
_LIKELY = 0.993  # of it: where the first certificate is looked for
_FAR = 40  # steps between two certificates
_WORTHWHILE = 2
_TINY = 1e-300
_MOST_REMEMBERED = 4_096
_DENSE = 2**12  # entries of T up to which it is written out
_ONE_THREAD = 250_000  # multiplications that the linear algebra library does not spread over threads
_PROBES = 4


class LinearErrors(Protocol):
    """What a simulation needs to know of a plan whose error is T·η."""

    @property
    def workload(self) -> Workload: ...
    @property
    def scales(self) -> UnitScales: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def largest_deviation(self) -> float: ...
    def spread(self, noise: Numbers) -> Numbers: ...
    def largest_errors(self, noise: Numbers) -> FloatArray: ...
    def largest_variance(self, of_noise: FloatArray) -> float: ...


class SharedLaws(Protocol):
    """Where processes tell each other what they have simulated."""

    def recall(self, key: str) -> Mapping[str, tuple[float, ...]]:
        """Everything that is known under a digest, by name; nothing if there is any doubt about it."""

    def keep(self, key: str, numbers: Mapping[str, tuple[float, ...]]) -> None:
        """Tell the others; what cannot be kept is simulated again."""


@final
class _Sharing:
    """Where this process shares what it simulates; nowhere unless it is told."""

    laws: SharedLaws | None = None


def share_laws(laws: SharedLaws | None) -> None:
    """From now on, take from ``laws`` what other processes have simulated, and tell it what this one does."""
    _Sharing.laws = laws


@final
@dataclass(frozen=True, eq=False)
class Simulation:
    """The law of the errors of one plan, with a memory: a second quote is a lookup."""

    plan: LinearErrors
    _numbers: OrderedDict[str, tuple[float, ...]] = field(default_factory=OrderedDict)
    _turn: threading.RLock = field(default_factory=threading.RLock)

    def epsilon(self, accuracy: Accuracy) -> Epsilon:
        """The least ε known to meet ``accuracy``."""
        ideal, enough = self._span(accuracy)
        if enough > _NOTICEABLE * ideal and self._small(accuracy.beta, accuracy.simultaneous):
            enough = min(enough, self._lowered(accuracy, ideal, enough))
        if enough > float(LARGEST_EPSILON):
            raise Infeasible(
                "No reasonable privacy loss reaches this accuracy.",
                fixes=("allow a larger error", "accept a lower confidence"),
            )
        return Epsilon.at_least(enough)

    def floor(self, accuracy: Accuracy) -> float:
        """What ``epsilon`` is going to be at least; nothing is certified for it."""
        return _FLOOR * self._span(accuracy)[0]

    def alpha(self, epsilon: Epsilon, beta: float, *, simultaneous: bool) -> float:
        """The least α known to hold at ``epsilon``."""
        bounds = [bound / float(epsilon) + t for bound, t in self._bounds(beta, simultaneous)]
        if self._small(beta, simultaneous):
            name = f"alpha {_named(beta, simultaneous)} {epsilon.nano}"
            bounds += self._remembered(name, lambda: self._certified(epsilon, beta, simultaneous, 0, 1))
        return min(bounds)

    # --- memory ---------------------------------------------------------------------------------

    def _remembered(self, name: str, simulate: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
        """Numbers of that name: from here, from another process, or simulated now, by one thread."""
        with self._turn:
            if name not in self._numbers and _Sharing.laws is not None and self.key is not None:
                self._numbers.update(_Sharing.laws.recall(self.key))
            if name not in self._numbers:
                self._numbers[name] = simulate()
                if _Sharing.laws is not None and self.key is not None:
                    _Sharing.laws.keep(self.key, {name: self._numbers[name]})
            while len(self._numbers) > _MOST_REMEMBERED:
                self._numbers.popitem(last=False)
            return self._numbers[name]

    @cached_property
    def key(self) -> str | None:
        """A digest of everything that the law follows from; None where T is too large to be gone through.

        Of a large T four random combinations of its columns count, which no other T has.
        """
        plan = self.plan
        if self._transfer is not None:
            told = self._transfer
        elif plan.workload.count * _PROBES <= _DRAWS and self._unit_scales.size <= _DRAWS // _PROBES:
            probes = self._stream(2**63).standard_normal(size=(_PROBES, self._unit_scales.size))
            told = np.asarray(plan.spread(probes), dtype=np.float64)
        else:
            return None
        parts = (VERSION, plan.fingerprint, plan.width, plan.workload.count, plan.largest_deviation)
        text = "|".join(str(part) for part in (*parts, told.shape, self._unit_scales.shape))
        body = hashlib.sha256(text.encode())
        body.update(np.ascontiguousarray(told).tobytes())
        body.update(np.ascontiguousarray(self._unit_scales).tobytes())
        return body.hexdigest()

    # --- from a bound at ε = 1 ------------------------------------------------------------------

    def _span(self, accuracy: Accuracy) -> tuple[float, float]:
        """What continuous noise would need, and what is known to be enough without a certificate."""
        bounds = self._bounds(accuracy.beta, accuracy.simultaneous)
        ideal = min(bound for bound, _ in bounds) / accuracy.alpha
        enough = min((b / (accuracy.alpha - t) for b, t in bounds if t < accuracy.alpha), default=math.inf)
        return ideal, enough

    def _bounds(self, beta: float, simultaneous: bool) -> list[tuple[float, float]]:
        """Pairs (u, t): at any ε, discrete errors stay within u/ε + t with probability 1 − β."""
        name = f"bounds {_named(beta, simultaneous)}"
        numbers = self._remembered(name, lambda: self._simulated_bounds(beta, simultaneous))
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def _simulated_bounds(self, beta: float, simultaneous: bool) -> tuple[float, ...]:
        gamma = GAMMA * beta / 2 / len(_ETAS)
        samples = self._samples(beta * (1 - GAMMA) * (1 - max(_ETAS)), gamma) if simultaneous else 0
        numbers: list[float] = []
        for eta in _ETAS:
            allowed = beta * (1 - GAMMA) * (1 - eta)
            if samples:
                unit = conservative(self._unit_errors(samples), allowed, gamma)
            else:
                share = allowed / self.plan.workload.count if simultaneous else allowed
                unit = self.plan.largest_deviation * quantile_bound(share, self._terms_for(share))
            numbers += [unit, discretisation(self._roughness, eta)]
        return tuple(numbers)

    @cached_property
    def _roughness(self) -> float:
        """The largest ‖T_i‖² over noise that there is."""
        return self.plan.largest_variance((self._unit_scales > 0).astype(np.float64))

    @cached_property
    def _unit_scales(self) -> FloatArray:
        return self.plan.scales.floats()

    def _samples(self, beta: float, gamma: float) -> int:
        """As many draws as time allows; 0 if they cannot show a failure probability of β."""
        affordable = min(SAMPLES, max(500, _DRAWS // self.plan.width))
        needed = draws_to_see(beta, gamma)
        if needed > affordable and needed * self.plan.width > _PATIENCE * _DRAWS:
            return 0
        return max(affordable, needed)

    def _terms_for(self, probability: float) -> int:
        """Going through T takes seconds on a large plan; at a few per cent it would lower ε by only 8 %."""
        quick = self._unit_scales.size * self.plan.width <= 3 * _DRAWS
        return self._terms if quick or probability < _RARE else 1

    @cached_property
    def _terms(self) -> int:
        """m such that no single noise variable has more than 1/m of the largest variance of an answer."""
        scales = self._unit_scales
        if scales.size > _WRITTEN_OUT or scales.size * self.plan.width > _PATIENCE * _DRAWS:
            return 1
        largest, step = 0.0, max(1, _CHUNK // self.plan.width)
        for begin in range(0, scales.size, step):
            some = np.arange(begin, min(begin + step, scales.size))
            single = np.zeros((some.size, scales.size))
            single[np.arange(some.size), some] = scales[some]
            largest = max(largest, float(self.plan.largest_errors(single).max()))
        share = 2 * largest**2 / self.plan.largest_deviation**2
        return max(1, math.floor(1 / share * (1 - 1e-9)))

    def _unit_errors(self, samples: int) -> FloatArray:
        """Sorted draws of M at ε = 1; the last ones are kept."""
        if samples not in self._memory:
            stream, scales = self._stream(0), self._unit_scales
            errors = [
                self._largest_errors(continuous(stream, rows, scales)) for rows in self._chunks(samples)
            ]
            self._memory.clear()
            self._memory[samples] = np.sort(np.concatenate(errors))
        return self._memory[samples]

    @cached_property
    def _memory(self) -> dict[int, FloatArray]:
        return {}

    # --- from discrete draws at one ε -----------------------------------------------------------

    def _small(self, beta: float, simultaneous: bool) -> bool:
        """Whether a certificate takes milliseconds."""
        width = self.plan.width if simultaneous else max(self.plan.width, _COLUMN * self.plan.workload.count)
        return self._certificate_samples(beta, simultaneous) * width <= _SMALL

    def _certificate_samples(self, beta: float, simultaneous: bool) -> int:
        gamma = GAMMA * beta / 2 ** (_ATTEMPTS + 1) / (1 if simultaneous else self.plan.workload.count)
        needed = math.ceil(2 * math.log(gamma) / math.log1p(-beta * (1 - GAMMA)))
        width = self.plan.width if simultaneous else max(self.plan.width, _COLUMN * self.plan.workload.count)
        close = min(_CERTIFYING, _QUICKLY // width)
        return max(needed, close, min(2 * SAMPLES, max(5_000, _SMALL // width)))

    def _lowered(self, accuracy: Accuracy, ideal: float, enough: float) -> float:
        """The least ε of the grid that gets a certificate, as far as six of them show."""
        place, lowest, certified = _place(_LIKELY * ideal), _place(_FLOOR * ideal) + 1, math.inf
        last, tried = _below(min(enough, float(LARGEST_EPSILON))), set[int]()
        for attempt in range(_ATTEMPTS):
            place = min(place, last) if tried else place
            if place in tried or place >= certified or place > last:
                break
            tried.add(place)
            reached = self._certificate(place, accuracy.beta, accuracy.simultaneous)[attempt]
            steps = math.ceil(math.log(max(reached, _TINY) / accuracy.alpha) / math.log(_STEP))
            if reached > accuracy.alpha:
                place += max(1, min(_FAR, steps))
                continue
            certified = place
            place = max(place + steps, lowest)
            if certified - place < _WORTHWHILE:
                break
        return enough if math.isinf(certified) else float(_on_grid(int(certified)))

    def _certificate(self, place: int, beta: float, simultaneous: bool) -> tuple[float, ...]:
        """For the first to the last attempt, an α that holds at an ε of the grid."""
        name = f"certificate {_named(beta, simultaneous)} {place}"
        return self._remembered(
            name,
            lambda: self._certified(_on_grid(place), beta, simultaneous, 2**32 + place, _ATTEMPTS),
        )

    def _certified(
        self, epsilon: Epsilon, beta: float, simultaneous: bool, stream: int, attempts: int
    ) -> tuple[float, ...]:
        """What holds at ``epsilon``, with noise as it will be: discrete."""
        draws, scales = self._stream(1 + stream), self._unit_scales / float(epsilon)
        measure = self._largest_errors if simultaneous else self._errors
        chunks = self._chunks(self._certificate_samples(beta, simultaneous))
        errors = [measure(discrete(draws, rows, scales)) for rows in chunks]
        ordered = np.sort(np.concatenate(errors), axis=0)
        allowed = beta * (1 - GAMMA)
        return tuple(
            conservative(ordered, allowed, GAMMA * beta / 2 ** (attempt + 1))
            for attempt in range(1, attempts + 1)
        )

    # --- T --------------------------------------------------------------------------------------

    @cached_property
    def _transfer(self) -> FloatArray | None:
        """T, one row for each noise variable; None where the plan knows a shorter way."""
        rows, answers = self._unit_scales.size, self.plan.workload.count
        if rows * answers > _DENSE or answers > self.plan.width:
            return None
        return np.asarray(self.plan.spread(np.eye(rows)), dtype=np.float64)

    def _largest_errors(self, noise: FloatArray) -> FloatArray:
        if self._transfer is None:
            step = max(1, _NEAR // self.plan.width)
            begins = range(0, noise.shape[0], step)
            return np.concatenate([self.plan.largest_errors(noise[at : at + step]) for at in begins])
        return np.concatenate([np.abs(some).max(axis=1) for some in self._products(noise, self._transfer)])

    def _errors(self, noise: FloatArray) -> FloatArray:
        if self._transfer is None:
            return np.abs(np.asarray(self.plan.spread(noise), dtype=np.float64))
        return np.asarray(np.abs(np.concatenate(list(self._products(noise, self._transfer)))))

    @staticmethod
    def _products(noise: FloatArray, transfer: FloatArray) -> Iterator[FloatArray]:
        """Piece by piece: threads that wait for each other would take ten times as long as the sums."""
        rows = max(64, _ONE_THREAD // transfer.size)
        for begin in range(0, noise.shape[0], rows):
            yield noise[begin : begin + rows] @ transfer

    def _stream(self, number: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self.plan.fingerprint, number]))

    def _chunks(self, samples: int) -> Iterator[int]:
        rows = max(1, _CHUNK // self.plan.width)
        for start in range(0, samples, rows):
            yield min(rows, samples - start)


def _named(beta: float, simultaneous: bool) -> str:
    return f"{beta!r} {'all' if simultaneous else 'each'}"


def _place(epsilon: float) -> int:
    """The last place of the grid that is not above ``epsilon``."""
    return math.floor(math.log(epsilon) / math.log(_STEP))


def _below(epsilon: float) -> int:
    """The last place of the grid below ``epsilon``."""
    place = _place(epsilon)
    return place if float(_on_grid(place)) < epsilon else place - 1


def _on_grid(place: int) -> Epsilon:
    return Epsilon.at_least(math.exp(place * math.log(_STEP)))
