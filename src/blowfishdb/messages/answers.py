"""Answers and receipts: what leaves the service. Never a true value.

Comparison: two answers side by side, and where they differ by more than their noise allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Self, final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.plain import Message, epsilon_fields
from blowfishdb.core.questions.promise import EXACT, brief, ranks_alone, sentence

NOTHING: Final = Epsilon(0)
MADE_UP: Final = "made-up rows: "
"""What is said before every question about rows that were made up."""


@final
@dataclass(frozen=True)
class PaidUnder(Message):
    """What an answer cost under an earlier policy that was still promised when it was given."""

    _said = ("words",)

    version: int
    epsilon: Epsilon

    @property
    def words(self) -> str:
        """For whoever reads the receipt."""
        cost = f"ε {self.epsilon:.3g}" if self.epsilon else "nothing"
        return f"{cost} under version {self.version} of the policy, which is still promised"


@final
@dataclass(frozen=True)
class Receipt(Message):
    """What was charged for an answer, and how it was made.

    >>> receipt = people["salary"].cumulative(bins=20).accurate_to(50).ask().receipt
    >>> receipt.question, receipt.epsilon, receipt.policy_version
    ('cumulative of salary (20 bins)', Epsilon('0.117114263'), 2)
    """

    charge: str
    dataset: str
    question: str
    user: str
    epsilon: Epsilon
    mechanism: str
    policy: str
    policy_version: int
    snapshot: int
    settled: str
    sql: str
    cost: Epsilon
    """What this asking cost: ε the first time, nothing when a stored answer is returned."""
    known: str = ""
    """What counts that everyone knows did to the price or the noise, in words; empty where none are known."""
    head: str = ""
    """Where the books ended when the charge was reserved: the number of an event and its hash. Whoever keeps
    the receipt can be shown that the books extend it; empty on receipts of older versions."""
    promised: tuple[PaidUnder, ...] = ()
    """What it cost under every earlier policy that was still promised."""
    debit: Epsilon = NOTHING
    """What this asking took from the account of whoever asked, and from caps: the largest of these costs and
    ``cost``; nothing when a stored answer is returned."""

    @property
    def again(self) -> Receipt:
        """The receipt of an answer that was out before, and costs nothing more."""
        return replace(self, cost=NOTHING, debit=NOTHING)

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Self:
        """A receipt as it is stored, or as a server shows it: a name that it keeps to itself is empty."""
        receipt = super().from_plain({**stored, "user": stored["user"] or ""})
        return receipt if "debit" in stored else replace(receipt, debit=receipt._largest())

    def _largest(self) -> Epsilon:
        """The debit where an older version wrote down the costs alone."""
        if self.cost != self.epsilon:
            return self.cost
        return max((self.cost, *(under.epsilon for under in self.promised)))


@final
@dataclass(frozen=True, eq=False)
class Places(Message):
    """Where clusters are: a row for each, in the units of the columns, and the columns' declared limits."""

    centroids: FloatArray
    limits: tuple[tuple[float, float], ...]


@final
@dataclass(frozen=True, eq=False)
class Answer(Message):
    """Noisy answers with their noise intervals.

    ``values`` are tidy (no negative counts, cumulative answers increase); ``raw`` is the unbiased
    release. With probability 1 − ``beta`` the truth lies in ``low … high``: everywhere at once if
    ``simultaneous``, otherwise at each place. A mechanism whose error depends on the data promises no such
    thing: then ``low``, ``high``, ``alpha`` and ``beta`` are None. Of clusters, ``values`` are the numbers
    of rows nearest to each, and ``places`` says where they are.

    >>> answer = people["region"].histogram().accurate_to(50).ask()
    >>> answer.promise
    'In 95 of 100 runs every bar is within 50 people of the truth.'
    >>> list(answer.columns()), bool((answer.high - answer.low <= 100).all())
    (['region', 'value', 'low', 'high', 'exact'], True)
    """

    _said = ("promise",)

    labels: tuple[tuple[str, ...], ...]
    """The bins along each axis, in words."""
    axes: tuple[str, ...]
    kind: str
    values: FloatArray
    raw: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    exact: BoolArray
    alpha: float | None
    beta: float | None
    simultaneous: bool
    receipt: Receipt
    interval: str = "fresh"
    """Whose choice the interval survives: ``fresh`` noise of its own, ``planned`` together with what it was
    computed from, or ``any`` question chosen after looking at what it was computed from."""
    form: dict[str, Any] = field(default_factory=dict)
    """The question as plain data, so that it can be asked again."""
    places: Places | None = None
    """Of clusters only."""
    notes: tuple[str, ...] = ()
    """As what values count that are missing or outside the declared ones, column by column."""
    measures: tuple[str, ...] = ()
    """Of aggregates: which, in words; several are the last axis, and so is one of all rows."""
    group_size: int | None = None
    """Of aggregates: how many rows a group has at least whose error is promised."""
    listed: bool = False
    """Whether labels name group after group, as they were asked to be shown; else all combinations are."""
    loose: tuple[str, ...] = ()
    """The columns whose values have no order of their own, so that a picture may sort them."""

    @property
    def number(self) -> int:
        """The number under which it is stored; 0 for a preview."""
        return int(self.receipt.charge) if self.receipt.charge.isdecimal() else 0

    @property
    def made_up(self) -> bool:
        """Whether it is about made-up rows, and so about nobody."""
        return self.receipt.question.startswith(MADE_UP)

    @property
    def promise(self) -> str:
        """What is promised about the values, in the one sentence that every door prints."""
        if len(self.exact) and bool(self.exact.all()):
            return EXACT
        if self.kind == "quantiles" and self.band is None and self.beta is not None:
            return ranks_alone(self.alpha, self.beta)
        columns = len(self.axes)
        return sentence(self.kind, self.alpha, self.beta, self.simultaneous, self.group_size, columns=columns)

    @property
    def brief(self) -> str:
        """The same in a line of a table."""
        if len(self.exact) and bool(self.exact.all()):
            return "exact"
        places, columns = len(self.values), len(self.axes)
        return brief(
            self.kind, self.alpha, self.beta, self.simultaneous, places, self.group_size, columns=columns
        )

    @property
    def band(self) -> tuple[FloatArray, FloatArray] | None:
        """``low`` and ``high``; None where no error is promised."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def grain(self) -> float:
        """Which differences are worth showing: the promised error, else a thousandth of the largest value."""
        if self.alpha is not None:
            return self.alpha
        return float(np.nanmax(np.abs(self.values), initial=0.0)) / 1_000 or 1.0

    @property
    def measured_last(self) -> bool:
        """Whether the last axis is that of the aggregates, not of a column by which rows are grouped."""
        return len(self.measures) > 1 or (bool(self.measures) and self.labels == (self.measures,))

    def __repr__(self) -> str:
        unsaid = "noise intervals" if self.measures else "no error promised"
        within = unsaid if self.alpha is None else f"±{self.alpha:g}"
        return f"<Answer {self.receipt.question}: {len(self.values):,} values, {within}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from blowfishdb.show.exports import answer_html

        return answer_html(self)

    def columns(self) -> dict[str, Any]:
        """The answer as columns: bins, tidy values, noise intervals if promised, and which are exact."""
        if self.places is not None:
            return self._cluster_columns(self.places)
        names = list(zip(*self.bins, strict=True)) or [()] * len(self.headings)
        bins = {axis: list(column) for axis, column in zip(self.headings, names, strict=True)}
        band = {} if self.band is None else dict(zip(("low", "high"), self.band, strict=True))
        return {**bins, "value": self.values, **band, "exact": self.exact}

    @property
    def arranged(self) -> bool:
        """Whether it is shown otherwise than it was released: other numbers, some groups, another order."""
        return bool(self.form.get("arrangement"))

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The groups in words, the parts along each column; one without a name if there is no column."""
        labels = self.labels[:-1] if self.measured_last else self.labels
        return list(zip(*labels, strict=True) if self.listed else itertools.product(*labels))

    @property
    def bins(self) -> list[tuple[str, ...]]:
        """What each value is of, in words: its group, and which aggregate it is where there are several."""
        told = [(name,) for name in self.labels[-1]] if self.measured_last else [()]
        return [(*group, *name) for group in self.groups for name in told]

    def _cluster_columns(self, places: Places) -> dict[str, Any]:
        """A row for each cluster; a column of the data that is called like one of ours gets a mark."""
        ours = ("cluster", "size", "exact")
        named = [f"{axis} (column)" if axis in ours else axis for axis in self.axes]
        where = dict(zip(named, places.centroids.T, strict=True))
        return {"cluster": list(self.labels[0]), **where, "size": self.values, "exact": self.exact}

    @property
    def headings(self) -> tuple[str, ...]:
        """What the bins along each axis are of."""
        if self.places is not None:
            return ("cluster",)
        one_number = self.kind == "count" or len(self.axes) != len(self.labels)
        return ("answer",) if one_number else self.axes

    def to_arrow(self) -> Any:
        """A pyarrow table."""
        import pyarrow as pa

        return pa.table(self.columns())

    def to_pandas(self) -> Any:
        """A pandas data frame (pandas has to be installed)."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A Polars data frame (polars has to be installed)."""
        import polars as pl

        return pl.DataFrame(self.columns())

    def plot(self) -> Any:
        """An Altair chart of the answer with its noise interval."""
        from blowfishdb.show.charts import answer_chart

        return answer_chart(self)

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Self:
        """An answer from storage."""
        if stored["kind"] == "quantiles" and "promise" not in stored:  # its interval named upper ends of bins
            stored = {**stored, "low": None, "high": None}
        return super().from_plain(stored)


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """The difference ``first − second`` at every place, with its noise interval.

    Each truth lies in its own interval except with probability β₁ or β₂, so both do except with probability
    β₁ + β₂, and then their difference lies between low₁ − high₂ and high₁ − low₂: ±(α₁ + α₂). This union
    bound needs no independence, so it also holds for two answers that were computed from the same release.
    Where one of the answers promises no error, neither does their difference: there is no interval and no β.

    >>> from blowfishdb.messages.answers import compare
    >>> old, young = (people.where(bf.col("age") >= 50), people.where(bf.col("age") < 50))
    >>> first, second = (each["region"].histogram().accurate_to(50).ask() for each in (old, young))
    >>> compare(first, second).promise
    'In 90 of 100 runs the true difference lies in its noise interval, everywhere at once.'
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
        differing, bars = int(self.differs.sum()), len(self.difference)
        if bars == 1:
            return f"They differ by {'more than' if differing else 'no more than'} the noise allows."
        if not differing:
            return "No bar differs by more than the noise allows."
        verb = "differs" if differing == 1 else "differ"
        return f"{differing:,} of {bars:,} bars {verb} by more than the noise allows."

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
        from blowfishdb.show.charts import comparison_chart

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
    if first.made_up or second.made_up:
        raise InvalidInput("Made-up rows are about nobody, so there is nothing to compare with them.")
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
    if (first.labels, first.listed) == (second.labels, second.listed):
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


def answer_summary(answer: Answer) -> dict[str, Any]:
    """One line of a list of answers, as JSON-ready data; a name that is not shown is null."""
    receipt = answer.receipt
    return {
        "id": answer.number,
        "dataset": receipt.dataset,
        "question": receipt.question,
        "kind": answer.kind,
        "axes": list(answer.axes),
        "form": answer.form,
        "size": len(answer.values),
        "alpha": answer.alpha,
        "beta": answer.beta,
        "simultaneous": answer.simultaneous,
        "promise": answer.promise,
        "brief": answer.brief,
        **epsilon_fields("epsilon", receipt.epsilon),
        "mechanism": receipt.mechanism,
        "policy_version": receipt.policy_version,
        "snapshot": receipt.snapshot,
        "settled": receipt.settled,
        "user": receipt.user or None,
    }
