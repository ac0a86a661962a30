"""Comparison: two answers side by side, and where they differ by more than their noise allows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from blowfishdb.answers import Answer
from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.errors import InvalidInput


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """The difference ``first − second`` at every place, with its noise interval.

    Each truth lies in its own interval except with probability β₁ or β₂, so both do except with probability
    β₁ + β₂, and then their difference lies between low₁ − high₂ and high₁ − low₂: ±(α₁ + α₂). This union
    bound needs no independence, so it also holds for two answers that were computed from the same release.
    Where one of the answers promises no error, neither does their difference: there is no interval and no β.
    """

    first: Answer
    second: Answer
    difference: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    beta: float | None
    simultaneous: bool

    @property
    def band(self) -> tuple[FloatArray, FloatArray] | None:
        """``low`` and ``high``; None where no error is promised."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def differs(self) -> BoolArray:
        """Where zero is outside the interval: the noise alone does not explain the difference."""
        if self.band is None:
            return np.zeros(self.difference.shape, dtype=np.bool_)
        low, high = self.band
        return np.asarray((low > 0) | (high < 0), dtype=np.bool_)

    @property
    def alpha(self) -> float | None:
        """α₁ + α₂, as the two answers state them; None if one states none."""
        if self.first.alpha is None or self.second.alpha is None:
            return None
        return self.first.alpha + self.second.alpha

    @property
    def grain(self) -> float:
        """Which differences are worth showing."""
        return self.first.grain + self.second.grain

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        if self.band is None:
            return "How much of the difference is noise is not known."
        found, places = int(self.differs.sum()), len(self.difference)
        if places == 1:
            return f"They differ by {'more than' if found else 'no more than'} the noise allows."
        if not found:
            return "No bar differs by more than the noise allows."
        verb = "differs" if found == 1 else "differ"
        return f"{found:,} of {places:,} bars {verb} by more than the noise allows."

    @property
    def promise(self) -> str:
        """What the interval of the difference means, in words."""
        if self.beta is None:
            both = self.first.alpha is None and self.second.alpha is None
            return f"{'Neither' if both else 'Only one'} of the answers promises an error beforehand."
        where = "everywhere at once" if self.simultaneous else "at each place"
        runs = f"{100 * (1 - self.beta):.4g} of 100 runs"
        return f"In {runs} the true difference lies in its noise interval, {where}."

    def __repr__(self) -> str:
        return f"<Comparison of {self.first.number} and {self.second.number}: {self.sentence}>"

    def __str__(self) -> str:
        return f"{self.sentence} {self.promise}"

    def plot(self) -> Any:
        """Both answers in one chart, and their difference below it."""
        from blowfishdb.charts import comparison_chart

        return comparison_chart(self)

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "a": self.first.number,
            "b": self.second.number,
            "axes": list(self.first.axes),
            "kind": self.first.kind,
            "labels": [list(axis) for axis in self.first.labels],
            "first": self.first.values.tolist(),
            "second": self.second.values.tolist(),
            "difference": self.difference.tolist(),
            "low": None if self.low is None else self.low.tolist(),
            "high": None if self.high is None else self.high.tolist(),
            "differs": self.differs.tolist(),
            "alpha": self.alpha,
            "beta": self.beta,
            "simultaneous": self.simultaneous,
            "sentence": self.sentence,
            "promise": self.promise,
        }


def compare(first: Answer, second: Answer) -> Comparison:
    """The difference of two answers to questions of the same kind about the same bins."""
    _check_same(first, second)
    difference = first.values - second.values
    if first.band is None or second.band is None or first.beta is None or second.beta is None:
        return Comparison(first, second, difference, None, None, None, simultaneous=False)
    beta = float(Fraction(repr(first.beta)) + Fraction(repr(second.beta)))
    if beta >= 1:
        raise InvalidInput(
            "Together these two answers may both be wrong every time, so their difference says nothing.",
            fixes=("ask for a higher confidence, such as 0.95",),
        )
    return Comparison(
        first,
        second,
        difference,
        low=first.band[0] - second.band[1],
        high=first.band[1] - second.band[0],
        beta=beta,
        simultaneous=first.simultaneous and second.simultaneous,
    )


def _check_same(first: Answer, second: Answer) -> None:
    """Whatever makes two answers incomparable, in the order in which it can be mended."""
    if "clusters" in (first.kind, second.kind):
        raise InvalidInput(
            "Clusters cannot be compared: the first of one answer need not be the first of another.",
            fixes=("compare two histograms of the same columns",),
        )
    for what, one, other in (
        ("columns", " and ".join(first.axes), " and ".join(second.axes)),
        ("forms of question", first.kind, second.kind),
    ):
        if one != other:
            raise InvalidInput(
                f"These answers are about different {what}: {one}, and {other}.",
                fixes=(f"ask one of them again for {one}",),
            )
    if first.labels == second.labels:
        return
    for axis, (here, there) in enumerate(itertools.zip_longest(first.labels, second.labels, fillvalue=())):
        if here != there:
            name = first.axes[min(axis, len(first.axes) - 1)]
            raise InvalidInput(
                f"These answers cut '{name}' into different bins: "
                f"{_bins(first, here)}, {_bins(second, there)}.",
                fixes=("ask one of them again with the bins of the other",),
            )


def _bins(answer: Answer, labels: tuple[str, ...]) -> str:
    """How many bins, and which comes first: enough to see what differs."""
    bins = f"{len(labels):,} bin{'' if len(labels) == 1 else 's'} from {labels[0]!r}" if labels else "no bins"
    return f"answer {answer.number} has {bins}" if answer.number else f"one has {bins}"
