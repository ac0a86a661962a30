"""What people send to ask: a question in one of three forms, and its terms. Unknown fields are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pydantic import Field

from blowfishdb.adapters.sql_condition import condition
from blowfishdb.asking import Asking
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.forms import QuestionForm
from blowfishdb.datasets import Dataset
from blowfishdb.entrypoints.api.bodies import Body, Plain
from blowfishdb.entrypoints.api.reading import read
from blowfishdb.messages import Terms

_LONGEST: Final = 100_000
_TERMS: Final = ("error", "epsilon", "mechanism")

Amount = str | float | int
"""A privacy loss as people write it."""


class Asked(Body):
    """A question (short text or object) or a SELECT, and how accurate or how costly its answer may be."""

    question: str | Plain | None = Field(
        default=None,
        description="The short form, or an object with kind, columns, where (text or object) and what the "
        "kind needs: bounds, shares, count, limit, or k and iterations.",
        examples=["cumulative(salary, bins=20) where age >= 30"],
    )
    sql: str | None = Field(default=None, max_length=_LONGEST, examples=["SELECT COUNT(*) FROM salaries"])
    error: float | None = Field(
        default=None, allow_inf_nan=False, description="The answer is within ±error …"
    )
    confidence: float = Field(default=0.95, allow_inf_nan=False, description="… this share of the time, …")
    each: bool = Field(default=False, description="… each value by itself instead of all at once.")
    epsilon: Amount | None = Field(default=None, description="What to spend, instead of an error.")
    mechanism: str | None = Field(
        default=None,
        max_length=255,
        description="Instead of the cheapest: one that promises its error, or, with an epsilon, one whose "
        "error depends on the data (alpha, beta, low and high are then null).",
        examples=["adaptive", "optimized"],
    )

    def asking(self, dataset: Dataset, *, explaining: bool = False) -> Asking:
        """The question on its terms, checked against the declared columns."""
        if (self.question is None) == (self.sql is None):
            raise InvalidInput(
                "Send a question or sql, one of the two.", fixes=('{"question": "count()", "error": 50}',)
            )
        asked, said = self._form(dataset, explaining=explaining)
        terms = Terms.from_plain(
            self.model_dump(include={"error", "confidence", "each", "epsilon", "mechanism"})
        )
        if said.accuracy is not None or said.epsilon is not None:
            if terms.accuracy is not None or terms.epsilon is not None:
                raise InvalidInput(
                    "The SQL states its terms, so the request must not.", fixes=("one of the two",)
                )
            terms = replace(said, mechanism=terms.mechanism)
        if terms.accuracy is None and terms.epsilon is None:
            raise InvalidInput(
                "This question does not say how accurate the answer must be.",
                fixes=('"error": 50, "confidence": 0.95', '"epsilon": "0.1"'),
            )
        return replace(asked, terms=terms)

    def _form(self, dataset: Dataset, *, explaining: bool) -> tuple[Asking, Terms]:
        if self.sql is not None:
            parsed = dataset.select(self.sql)
            if parsed.explain and not explaining:
                raise InvalidInput(
                    "EXPLAIN asks how a question would be answered, and is not a question.",
                    fixes=("POST …/explain", "leave out EXPLAIN"),
                )
            return dataset.question(parsed.form), Terms(parsed.accuracy, parsed.epsilon)
        question = self.question or {}
        if isinstance(question, str):
            if len(question) > _LONGEST:
                raise InvalidInput("This question is too long to read.")
            return dataset.question(question), Terms()
        return dataset.question(read("question", lambda: _object(question, dataset))), Terms()


def _object(said: Plain, dataset: Dataset) -> QuestionForm:
    """A question as an object; its condition may be a text."""
    where = said.get("where")
    if not isinstance(where, str):
        form = QuestionForm.from_plain(said)
    else:
        bare = QuestionForm.from_plain({name: value for name, value in said.items() if name != "where"})
        form = bare.only(condition(where, dataset.schema))
    form.check(dataset.schema)
    return form


class Asks(Asked):
    """A quote to take up, or a question as for a quote; ``max_cost`` is the most it may cost."""

    quote_id: str | None = Field(default=None, max_length=_LONGEST)
    max_cost: Amount | None = None

    @property
    def by_quote(self) -> bool:
        """Whether a quote says everything; whatever else says it too is refused."""
        if self.quote_id is None:
            return False
        if (
            self.question is not None
            or self.sql is not None
            or any(getattr(self, t) is not None for t in _TERMS)
        ):
            raise InvalidInput(
                "A quote already says what is asked.", fixes=("send quote_id and max_cost only",)
            )
        return True


class TradeoffOf(Asked):
    """A question, and the policies to price it under: by name, or as distances in a column."""

    policies: dict[str, Plain] | None = Field(default=None, max_length=200)
    column: str | None = Field(default=None, max_length=255)
    thresholds: list[int | float] = Field(default=[], max_length=200)
    thetas: dict[str, float] | None = Field(
        default=None, max_length=200, description="Where on the axis each of the named policies stands."
    )
    at_epsilon: Amount | None = None


class PreviewOf(Asked):
    """A question to see with and without noise, under a policy that need not be published."""

    policy: Plain | None = None
    stand_in: bool = Field(default=False, description="Show made-up counts instead of the true ones.")


class Compared(Body):
    """The numbers of two answers."""

    a: int = Field(ge=1)
    b: int = Field(ge=1)


class InBatch(Asked):
    """A question of a batch, and the dataset that it is about."""

    dataset: str = Field(max_length=255)


class BatchOf(Body):
    """Questions that are settled on together; ``max_cost`` is the most that all of them may cost."""

    questions: list[InBatch] = Field(min_length=1, max_length=100)
    max_cost: Amount | None = None
