"""Conservative quantiles by simulation, with the discrete noise as it was drawn (THEORY §5).

The r-th smallest of N draws is at least the (1−β)-quantile but for γ, and γ is taken out of β, so what is
promised holds unconditionally. Streams are keyed by a digest of what was measured: quotes are reproducible,
and no stored value can move one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import numpy as np

from blowfishdb.core.accuracy import order_statistic
from blowfishdb.core.arrays import FloatArray

Statistic = Callable[[FloatArray], FloatArray]

_GAMMA = 0.01
_DRAWS = 4 * 10**7
_PATIENCE = 5
_SAMPLES = 10_000
_CHUNK = 2 * 10**6


def quantile(
    statistic: Statistic, scales: FloatArray, width: int, beta: float, key: str
) -> FloatArray | None:
    """A bound on the (1−β)-quantile of ``statistic`` of a batch of noise; None if β is too small to be seen.

    ``width`` is how many numbers one draw takes. A statistic with several columns has one bound for each.
    """
    gamma, allowed = _GAMMA * beta, beta * (1 - _GAMMA)
    needed = math.ceil(1.2 * math.log(gamma) / math.log1p(-allowed))
    if needed * width > _PATIENCE * _DRAWS:
        return None
    samples = max(needed, min(_SAMPLES, _DRAWS // width))
    rank = order_statistic(samples, allowed, gamma)
    if rank is None:
        return None
    stream, step = _stream(key), max(1, _CHUNK // width)
    drawn = [
        statistic(discrete(stream, min(step, samples - begin), scales)) for begin in range(0, samples, step)
    ]
    return np.asarray(np.partition(np.concatenate(drawn), rank - 1, axis=0)[rank - 1])


def discrete(stream: np.random.Generator, samples: int, scales: FloatArray) -> FloatArray:
    """Discrete Laplace noise for planning: the difference of two geometric variables ⌊b·E⌋."""
    shape = (samples, scales.size)
    first, second = (np.floor(stream.standard_exponential(size=shape) * scales) for _ in range(2))
    return np.asarray(first - second)


def _stream(key: str) -> np.random.Generator:
    words = np.frombuffer(hashlib.sha256(key.encode()).digest()[:16], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=words))
