"""What it costs to keep secret whose values are missing, for the curator who has to choose.

One usual question is priced under a usual policy of the column, with missing values public and with missing
values secret. Nothing is read: prices follow from the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, final

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.axis import Axis
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain import Domain
from blowfishdb.core.graphs import Full, Threshold
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import project
from blowfishdb.core.questions import Cumulative, Histogram, Question
from blowfishdb.core.typed_values import shown_distance
from blowfishdb.mechanisms import Best

_BINS = 20
_ERROR = Accuracy(50, 0.05)
_PARTS = 200


@final
@dataclass(frozen=True)
class MissingPrices:
    """A question in words, and its ε if it is public who has no value, and if it is secret."""

    question: str
    public: Epsilon
    secret: Epsilon

    def __str__(self) -> str:
        return f"{self.question}: ε {self.public:.3g} if it is public, ε {self.secret:.3g} if it is secret."


@lru_cache(maxsize=256)
def missing_prices(attribute: Attribute) -> MissingPrices:
    """Both prices of a usual question about a column."""
    public, secret = (_price(replace(attribute, missing=rule)) for rule in ("public", "value"))  # type: ignore[type-var]
    return MissingPrices(_words(attribute), public, secret)


def _reach(attribute: Attribute) -> int:
    return max(1, attribute.value_count // _PARTS)


def _words(attribute: Attribute) -> str:
    if not attribute.ordered:
        return "Counts of every value within ±50, where every two values are hidden"
    far = shown_distance(attribute, _reach(attribute))
    return f"A cumulative histogram of {_BINS} bins within ±50, where values within {far} are hidden"


def _price(attribute: Any) -> Epsilon:
    values: int = attribute.value_count
    line = attribute.ordered and values > 1
    kind = Cumulative() if attribute.ordered else Histogram()
    bins = attribute.bins(count=_BINS) if attribute.ordered else attribute.bins()
    graph = Threshold(values, _reach(attribute)) if line else Full(values)
    policy = Policy.by_column(Domain(column=attribute), {"column": graph})
    problem = project(Question(kind, (Axis("column", attribute, bins),)), policy)
    return Best().for_accuracy(problem.workload, problem.graph, _ERROR).epsilon
