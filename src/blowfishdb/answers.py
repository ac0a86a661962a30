"""Answers and receipts: what leaves the service. Never a true value."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.promises import EXACT, brief, ranks_alone, sentence


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
    known: str = ""
    """What counts that everyone knows did to the price or the noise, in words; empty where none are known."""
    head: str = ""
    """Where the books ended when the charge was reserved: the number of an event and its hash. Whoever keeps
    the receipt can be shown that the books extend it; empty on receipts of older versions."""


@final
@dataclass(frozen=True, eq=False)
class Places:
    """Where clusters are: a row for each, in the units of the columns, and the columns' declared limits."""

    centroids: FloatArray
    limits: tuple[tuple[float, float], ...]

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {"centroids": self.centroids.tolist(), "limits": [list(ends) for ends in self.limits]}

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Places:
        """From its plain form."""
        limits = tuple((float(low), float(high)) for low, high in stored["limits"])
        return cls(np.array(stored["centroids"], dtype=np.float64), limits)


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """Noisy answers with their noise intervals.

    ``values`` are tidy (no negative counts, cumulative answers increase); ``raw`` is the unbiased
    release. With probability 1 − ``beta`` the truth lies in ``low … high``: everywhere at once if
    ``simultaneous``, otherwise at each place. A mechanism whose error depends on the data promises no such
    thing: then ``low``, ``high``, ``alpha`` and ``beta`` are None. Of clusters, ``values`` are the numbers
    of rows nearest to each, and ``places`` says where they are.
    """

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

    @property
    def number(self) -> int:
        """The number under which it is stored; 0 for a preview."""
        return int(self.receipt.charge) if self.receipt.charge.isdecimal() else 0

    @property
    def promise(self) -> str:
        """What is promised about the values, in the one sentence that every door prints."""
        if len(self.exact) and bool(self.exact.all()):
            return EXACT
        if self.kind == "quantiles" and self.band is None and self.beta is not None:
            return ranks_alone(self.alpha, self.beta)
        return sentence(self.kind, self.alpha, self.beta, self.simultaneous)

    @property
    def brief(self) -> str:
        """The same in a line of a table."""
        if len(self.exact) and bool(self.exact.all()):
            return "exact"
        return brief(self.kind, self.alpha, self.beta, self.simultaneous, len(self.values))

    @property
    def band(self) -> tuple[FloatArray, FloatArray] | None:
        """``low`` and ``high``; None where no error is promised."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def grain(self) -> float:
        """Which differences are worth showing: the promised error, else a thousandth of the largest value."""
        if self.alpha is not None:
            return self.alpha
        return float(np.abs(self.values).max(initial=0.0)) / 1_000 or 1.0

    def __repr__(self) -> str:
        within = "no error promised" if self.alpha is None else f"±{self.alpha:g}"
        return f"<Answer {self.receipt.question}: {len(self.values):,} values, {within}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from blowfishdb.notebook import answer_html

        return answer_html(self)

    def columns(self) -> dict[str, Any]:
        """The answer as columns: bins, tidy values, noise intervals if promised, and which are exact."""
        if self.places is not None:
            return self._cluster_columns(self.places)
        names = list(zip(*itertools.product(*self.labels), strict=True))
        bins = {axis: list(column) for axis, column in zip(self.headings, names, strict=True)}
        band = {} if self.band is None else dict(zip(("low", "high"), self.band, strict=True))
        return {**bins, "value": self.values, **band, "exact": self.exact}

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
        return {**body, "promise": self.promise}

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Answer:
        """An answer from storage."""
        body = {name: value for name, value in stored.items() if name != "promise"}
        receipt = dict(body.pop("receipt"))
        for name in ("epsilon", "cost"):
            receipt[name] = Epsilon(receipt[name])
        if body["kind"] == "quantiles" and "promise" not in stored:  # its interval named upper ends of bins
            body["low"] = body["high"] = None
        for name in ("values", "raw", "low", "high"):
            body[name] = None if body[name] is None else np.array(body[name], dtype=np.float64)
        body["exact"] = np.array(body["exact"], dtype=np.bool_)
        body["labels"] = tuple(tuple(axis) for axis in body["labels"])
        body["notes"] = tuple(body.get("notes", ()))
        body["axes"] = tuple(body["axes"])
        if body.get("places") is not None:
            body["places"] = Places.from_plain(body["places"])
        return cls(**body, receipt=Receipt(**receipt))


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Places):
        return value.to_plain()
    return str(value) if isinstance(value, Epsilon | Receipt) else value
