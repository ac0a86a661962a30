"""The curator's question: a column, a shape, bins and an accuracy, for the policy and trade-off pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from blowfishdb.asking import Asking
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.forms import ColumnForm, QuestionForm
from blowfishdb.datasets import Dataset

SHAPES: Final = (
    ("cumulative", "cumulative"),
    ("histogram", "histogram"),
    ("quantiles", "quartiles"),
    ("own", "my own …"),
)
_BINS: Final = 20
_QUARTILES: Final = (0.25, 0.5, 0.75)
_FIELDS: Final = ("column", "second", "ask", "bins", "own", "terms", "error", "confidence", "each", "epsilon")


@final
@dataclass(frozen=True)
class TemplateForm:
    """A question as it was typed; everything is text until it is asked."""

    column: str
    second: str = ""
    ask: str = "cumulative"
    bins: str = str(_BINS)
    own: str = ""
    terms: str = "accuracy"
    error: str = "50"
    confidence: str = "95"
    each: str = ""
    epsilon: str = "0.1"

    @classmethod
    def of(cls, domain: Domain, said: Mapping[str, str]) -> TemplateForm:
        """What was sent, or a question about the column with the most values that have an order."""
        ordered = [name for name, attribute in domain.columns if attribute.ordered]
        usual = max(ordered or list(domain.names), key=lambda name: domain[name].value_count)
        given = {name: said[name].strip() for name in _FIELDS if said.get(name, "").strip()}
        if "ask" in said and "bins" in said:
            given["bins"] = said["bins"].strip()  # emptied on purpose: every value alone
        if given.get("column") not in domain.names:
            given["column"] = usual
        if given.get("second") not in domain.names or given.get("second") == given["column"]:
            given.pop("second", None)
        if "ask" not in given and not domain[given["column"]].ordered:
            given["ask"] = "histogram"
        return cls(**given)

    def asking(self, dataset: Dataset) -> Asking:
        """The question on its terms."""
        question = dataset.question(self.own if self.ask == "own" else self.form(dataset.schema))
        if self.terms == "epsilon":
            return question.spend(self.epsilon)
        share = _number(self.confidence, "The share of the time", "95") / 100
        return question.accurate_to(
            _number(self.error, "The error", "50"), confidence=round(share, 9), each=bool(self.each)
        )

    def query(self) -> dict[str, str]:
        """The question as it stands in an address."""
        return {name: getattr(self, name) for name in _FIELDS if getattr(self, name) or name == "bins"}

    def form(self, domain: Domain) -> QuestionForm:
        """What is asked, without the terms."""
        if self.ask == "own" or self.ask not in dict(SHAPES):
            raise InvalidInput(
                "Write the question, or choose a shape.", fixes=("cumulative(salary, bins=20)",)
            )
        names = [self.column] + ([self.second] if self.second and self.ask == "histogram" else [])
        columns = tuple(self._cut(name, domain[name]) for name in names)
        shares = _QUARTILES if self.ask == "quantiles" else ()
        return QuestionForm(self.ask, columns, shares=shares)

    def _cut(self, name: str, attribute: Attribute) -> ColumnForm:
        """The column in its bins; each value alone where it has no order, or no more values than bins."""
        if not self.bins:
            return ColumnForm(name)
        try:
            bins = int(self.bins.replace(",", ""))
        except ValueError:
            raise InvalidInput(
                "The number of bins is a whole number.", fixes=("20", "nothing: each value by itself")
            ) from None
        alone = not attribute.ordered or bins >= attribute.value_count
        return ColumnForm(name, None if alone else bins)


def _number(typed: str, what: str, example: str) -> float:
    try:
        return float(typed.replace(",", ""))
    except ValueError:
        raise InvalidInput(f"{what} is a number.", fixes=(example,)) from None
