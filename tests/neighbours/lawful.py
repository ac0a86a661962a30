"""How often answers with noise of their own can be off, from the scales of the noise that was drawn.

Exact, for the worst data there can be, and without asking the package: P(|Z| > m) = 2q^(m+1)/(1+q) where
q = exp(−1/b).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from blowfishdb.mechanisms.laplace import LaplaceOnWorkload
from blowfishdb.messages.answers import Answer
from tests.neighbours.questions import Question
from tests.neighbours.watching import Released

_EACH = ("histogram", "ranges", "rows", "count", "ranges by", "rectangles", "marginals")
_COUNTS = (*_EACH, "cumulative", "cumulative by")
_SLACK = 1e-9
_FAR = 60  # scales; what lies beyond is nothing


def check_law(question: Question, answer: Answer, released: Sequence[Released]) -> None:
    """AssertionError if an answer with one noise for each of its numbers is off more often than it says."""
    if len(released) != 1 or answer.alpha is None or answer.beta is None:
        return
    scales, plan = [float(scale) for scale in released[0].noise_scales], released[0].plan
    if not isinstance(plan, LaplaceOnWorkload) or not scales or answer.interval != "fresh":
        return
    bound = math.floor(min(answer.alpha, _half_width(question, answer)) + _SLACK)
    if question.kind in _COUNTS:
        fails = [_beyond(bound, scale) for scale in scales]
        wrong = _some(fails) if answer.simultaneous else max(fails)
    elif question.kind == "above":
        wrong = _some([_beyond(bound, scale) / 2 for scale in scales])
    elif question.kind == "top" and len(scales) > 1:
        wrong = _overtaken(bound, scales)
    else:
        return
    assert wrong <= answer.beta + _SLACK, f"off with {wrong:.3g}, promised {answer.beta}: {question}"


def _half_width(question: Question, answer: Answer) -> float:
    """How far the narrowest interval reaches above what came out, where that is shown as it is."""
    if question.kind not in _EACH or answer.high is None:
        return math.inf
    plain = ~answer.exact & (answer.high > 0)
    return float(np.min((answer.high - answer.raw)[plain], initial=math.inf))


def _beyond(bound: int, scale: float) -> float:
    """P(|Z| > bound)."""
    q = math.exp(-1 / scale)
    return 2 * q ** (bound + 1) / (1 + q)


def _some(fails: Sequence[float]) -> float:
    return 1 - math.prod(1 - each for each in fails)


def _overtaken(bound: int, scales: Sequence[float]) -> float:
    """The first bin is larger than all others by just more than the bound, and one of them is picked."""
    reach = math.ceil(_FAR * max(scales))
    at = np.arange(-reach, reach + 1)
    first, *others = (_masses(at, scale) for scale in scales)
    none = np.ones(at.size)
    for masses in others:
        none *= _at_most(masses, bound)
    return float(1 - (first * none).sum())


def _masses(at: np.ndarray, scale: float) -> np.ndarray:
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(at)


def _at_most(masses: np.ndarray, more: int) -> np.ndarray:
    """For every place z the chance of at most z + ``more``."""
    sums = np.cumsum(masses)
    return np.concatenate((sums[more:], np.ones(min(more, sums.size))))[: sums.size]
