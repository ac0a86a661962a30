"""What goes in and out of the service: requests, quotes, answers, receipts. Never a true value."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions import Question


@final
@dataclass(frozen=True, eq=False)
class Request:
    """A question with what it may cost: an accuracy to reach, or an ε to spend."""

    dataset: str
    question: Question
    accuracy: Accuracy | None
    epsilon: Epsilon | None
    user: str


@final
@dataclass(frozen=True)
class Quote:
    """What a question would cost. Free, and computed without touching the data."""

    dataset: str
    question: str
    epsilon: Epsilon
    alpha: float
    beta: float
    simultaneous: bool
    mechanism: str
    explanation: str
    policy: str
    policy_version: int
    plain_epsilon: Epsilon
    remaining: Epsilon
    owned: bool

    @property
    def dividend(self) -> float | None:
        """How many times more the best plain-DP plan would cost; None where this answer is free."""
        return float(self.plain_epsilon) / float(self.epsilon) if self.epsilon else None

    @property
    def affordable(self) -> int | None:
        """How many such answers the remaining budget allows; None if they are free."""
        return self.remaining // self.epsilon if self.epsilon else None

    def __str__(self) -> str:
        every = "all answers at once" if self.simultaneous else "each answer"
        cost = "already owned, costs nothing" if self.owned else f"costs ε = {self.epsilon:.3g}"
        return (
            f"{self.question} of {self.dataset}: within ±{self.alpha:g} on {every}, "
            f"{100 * (1 - self.beta):g} times in 100; {cost}"
        )


@final
@dataclass(frozen=True)
class Receipt:
    """What was charged for an answer, and how it was made."""

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


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """Noisy answers with their noise intervals.

    ``values`` are tidy (no negative counts, cumulative answers increase); ``raw`` is the unbiased
    release. With probability 1 − ``beta`` the truth lies in ``low … high``: everywhere at once if
    ``simultaneous``, otherwise at each place.
    """

    labels: tuple[tuple[str, ...], ...]
    """The bins along each axis, in words."""
    axes: tuple[str, ...]
    kind: str
    values: FloatArray
    raw: FloatArray
    low: FloatArray
    high: FloatArray
    exact: BoolArray
    alpha: float
    beta: float
    simultaneous: bool
    receipt: Receipt

    def __repr__(self) -> str:
        return f"<Answer {self.receipt.question}: {len(self.values):,} values, ±{self.alpha:g}>"

    def columns(self) -> dict[str, Any]:
        """The answer as columns: bins, tidy values, noise intervals, and which of them are exact."""
        names = list(zip(*itertools.product(*self.labels), strict=True))
        bins = {axis: list(column) for axis, column in zip(self._headings(), names, strict=True)}
        return {**bins, "value": self.values, "low": self.low, "high": self.high, "exact": self.exact}

    def _headings(self) -> tuple[str, ...]:
        return self.axes if len(self.axes) == len(self.labels) else ("answer",)

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
        from blowfishdb.charts import answer_chart

        return answer_chart(self)

    def to_plain(self) -> dict[str, Any]:
        """The answer as plain data, for storage; exact decimals for ε."""
        body: dict[str, Any] = {
            field.name: _to_plain(getattr(self, field.name)) for field in dataclasses.fields(self)
        }
        body["receipt"] = {
            field.name: _to_plain(getattr(self.receipt, field.name))
            for field in dataclasses.fields(self.receipt)
        }
        return body

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Answer:
        """An answer from storage."""
        body = dict(stored)
        receipt = dict(body.pop("receipt"))
        for name in ("epsilon", "cost"):
            receipt[name] = Epsilon(receipt[name])
        for name in ("values", "raw", "low", "high"):
            body[name] = np.array(body[name], dtype=np.float64)
        body["exact"] = np.array(body["exact"], dtype=np.bool_)
        body["labels"] = tuple(tuple(axis) for axis in body["labels"])
        body["axes"] = tuple(body["axes"])
        return cls(**body, receipt=Receipt(**receipt))


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value) if isinstance(value, Epsilon | Receipt) else value
